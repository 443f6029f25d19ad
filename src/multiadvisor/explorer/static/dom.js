// Building elements: text is always text, so that a name with markup in it is shown and never run.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && !name.startsWith("aria") && name !== "list" && name !== "role") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function byId(id) {
  return document.getElementById(id);
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function option(value, text, selected = false) {
  return el("option", { value: String(value), textContent: text, selected });
}

const MINUS = "\u2212";

// A signed number, so that the sign is never told by colour alone.
export function signed(value, digits = 2) {
  if (!Number.isFinite(value)) return "";
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? MINUS : value > 0 && Number(text) !== 0 ? "+" : "") + text;
}

// Seven decimals: what the library would print.
export function precise(value) {
  return Number.isFinite(value) ? value.toFixed(7).replace("-", MINUS) : "";
}

export function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
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
