// Building elements: text is always text, so that a name with markup in it is shown and never run.

// What labels mean, by their text, as the server says it: shown where one hovers over them.
export const tips = {};

function explained(node, text) {
  if (node.title || !LABELS.has(node.tagName)) return;
  const known = text?.replace(/ [12]$/, ""); // of the first or the second run
  if (Object.hasOwn(tips, known)) node.title = tips[known];
  else if (node.scope === "col" && text) node.title = text; // a name, which may be cut
}

const LABELS = new Set(["TH", "H2", "H3", "SPAN", "LABEL", "DT", "SUMMARY", "BUTTON"]);

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  if (tag === "button") node.type = "button";
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && !name.startsWith("aria") && name !== "list" && name !== "role") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  explained(node, children.find((child) => typeof child === "string"));
  return node;
}

// A control with its label before it.
export function field(label, control) {
  return el("label", { class: "field" }, el("span", {}, label), control);
}

export function slider(min, max, step, props) {
  return el("input", { type: "range", min, max, step, ...props });
}

export function card(title, ...content) {
  return el("section", { class: "card" }, title ? el("h2", {}, title) : null, ...content);
}

export function byId(id) {
  return document.getElementById(id);
}

export function setText(node, text) {
  if (node.textContent === text) return;
  if (node.title && node.title === tips[node.textContent]) node.title = "";
  node.textContent = text;
  explained(node, text);
}

export function option(value, text) {
  return el("option", { value: String(value), textContent: text });
}

// The options of a select, [[value, text]], made again where the parts that they come from are others; and which is chosen.
export function fill(select, parts, choices, value) {
  if (!sameParts(select.parts, parts)) {
    select.parts = parts;
    select.replaceChildren(...choices().map(([value, text]) => option(value, text)));
  }
  if (select.value !== String(value)) select.value = String(value);
}

const MINUS = "\u2212";
const ROUNDING = 1e-6; // below this a figure is nothing

// A signed number, so that the sign is never told by colour alone.
export function signed(value, digits = 2) {
  if (!Number.isFinite(value)) return "";
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? MINUS : value > 0 && Number(text) !== 0 ? "+" : "") + text;
}

// A score: whole where it is whole, else with up to two decimals, or as many as it takes to see it.
export function scoreText(value) {
  if (!Number.isFinite(value)) return "";
  if (Math.abs(value) < ROUNDING) return "0";
  return (Number.isInteger(value) ? signed(value, 0) : gapText(value)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

// A small difference: two decimals, or as many as it takes to see it.
export function gapText(value) {
  const size = Math.abs(value);
  return size === 0 || size >= 0.005 ? signed(value) : `${value < 0 ? MINUS : "+"}${Number(size.toPrecision(1))}`;
}

// Seven decimals: what the library would print.
export function precise(value) {
  return Number.isFinite(value) ? value.toFixed(7).replace("-", MINUS) : "";
}

// The beginning of a sentence.
export function sentenceCase(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : "";
}

// Whether two lists have the same parts: what was made from them need not be made again.
export function sameParts(one, other) {
  return Boolean(one) && one.length === other.length && one.every((part, k) => part === other[k]);
}

export function plural(count, word, several = `${word}s`) {
  return `${count} ${count === 1 ? word : several}`;
}

export function listed(names, most = 3) {
  const shown = names.slice(0, most);
  const more = names.length - shown.length;
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}` : shown[0] || "";
}

// A canvas that fills its box at the screen's own resolution.
export function fitCanvas(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const wide = Math.round(width * ratio);
  const high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

const SHAPES = {
  play: "M8 5v14l11-7z",
  pause: "M7 5h3.5v14H7zM13.5 5H17v14h-3.5z",
  first: "M6 5h2.5v14H6zM19 5v14L9.5 12z",
  last: "M15.5 5H18v14h-2.5zM5 5v14l9.5-7z",
  back: "M15.5 5v14L7 12z",
  on: "M8.5 5v14L17 12z",
  loop: "M12 5V1.8L7.3 6.3 12 10.8V7.5a4.9 4.9 0 1 1-4.9 4.9H4.6A7.4 7.4 0 1 0 12 5z",
};

// A drawing of one path.
export function svg(viewBox, path, attributes = {}) {
  const make = (tag, given) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(given)) node.setAttribute(name, value);
    return node;
  };
  const picture = make("svg", { viewBox, "aria-hidden": "true", ...attributes });
  picture.append(make("path", path));
  return picture;
}

// A small picture in the colour of the text.
export function icon(name) {
  return svg("0 0 24 24", { d: SHAPES[name] });
}

const widths = new WeakMap();
let changed = () => {};
const observer = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) widths.set(target, contentRect.width);
  changed();
});

// The width of a box, told by the browser when it changes: asking in every frame would lay out the page again each time.
export function widthOf(node, least) {
  if (!widths.has(node)) {
    widths.set(node, node.clientWidth);
    observer.observe(node);
  }
  return Math.max(least, widths.get(node));
}

export function onWidth(listener) {
  changed = listener;
}

// Boxes whose text changes from step to step keep the most room they have needed, so that nothing below them jumps.
const needed = new WeakMap();
const steady = new ResizeObserver((entries) => {
  for (const { target, contentRect, borderBoxSize } of entries) {
    const known = needed.get(target);
    const height = borderBoxSize[0].blockSize;
    if (known && known.width !== contentRect.width) settle([target]);
    else if (height > 0 && !(known && height <= known.height)) {
      needed.set(target, { width: contentRect.width, height });
      target.style.minHeight = `${height}px`;
    }
  }
});

// From now on these boxes keep their room; what they needed before is forgotten.
export function settle(nodes) {
  for (const node of nodes) {
    node.style.minHeight = "";
    needed.delete(node);
    steady.unobserve(node);
    steady.observe(node);
  }
}
