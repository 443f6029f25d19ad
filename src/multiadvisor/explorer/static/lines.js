// Lines over time: a small chart with round numbers on its axes, for rewards, for observations and for a training.

import { el, fitCanvas, setText, widthOf } from "./dom.js";
import { termStyle } from "./hues.js";
import { shareOf, stroke, write } from "./strokes.js";

const LEFT = 52;
const RIGHT = 20;
const FOOT = 36;
const TOP = 26; // for the name of what is drawn

// A short number for an axis.
export function axisText(value) {
  const size = Math.abs(value);
  const [unit, sign, digits] = size >= 1e6 ? [1e6, "M", 3] : size >= 1e4 ? [1e3, "k", 3] : [1, "", 4];
  return `${Number((value / unit).toPrecision(digits))}${sign}`.replace("-", "\u2212");
}

function ticksOf(low, high, most, least = 0) {
  const raw = Math.max((high - low) / most || 1, least);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step)
    found.push(Math.abs(value) < step * 1e-9 ? 0 : Number(value.toPrecision(12)));
  return found;
}

// A chart of lines in a box of its own, as wide as there is room.
export class Plot {
  constructor() {
    this.canvas = el("canvas", { role: "img" });
    this.root = el("div", { class: "plot" }, this.canvas);
  }

  get width() {
    return widthOf(this.root, 220);
  }

  // Draws what `drawLines` takes, and says `label` instead to whoever does not see it.
  draw(what, label) {
    this.canvas.setAttribute("aria-label", label);
    return drawLines(this.canvas, { width: this.width, height: 170, ...what });
  }
}

// `lines`: [{ xs, ys, colour, dash, steps, band, marks }], `band` being the ends of an interval and `marks` points that
// get a dot, over the cursor; `thin` ones are among many. Returns how a place on the canvas becomes an x again.
function drawLines(canvas, { lines, width, height, palette, xs, xName, yName, cursor = null, zero = true }) {
  const context = fitCanvas(canvas, width, height);
  context.clearRect(0, 0, width, height);
  let [low, high] = zero ? [0, 0] : [Infinity, -Infinity];
  for (const { ys, band } of lines)
    for (const y of band ? band.flat() : ys)
      if (Number.isFinite(y)) {
        low = Math.min(low, y);
        high = Math.max(high, y);
      }
  if (!(low < high)) [low, high] = Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
  const [first, last] = xs;
  const x = (value) => LEFT + ((width - LEFT - RIGHT) * (value - first)) / (last - first || 1);
  const y = (value) => TOP + ((height - TOP - FOOT) * (high - value)) / (high - low);
  context.font = "11px system-ui, sans-serif";
  for (const value of ticksOf(low, high, Math.max(2, Math.floor(height / 32)))) {
    const level = Math.round(y(value)) + 0.5;
    const [colour, thick] = value === 0 ? [palette.soft, 0.75] : [palette.line, 1];
    stroke(context, [[LEFT, level], [width - RIGHT, level]], colour, thick);
    write(context, axisText(value), LEFT - 6, y(value), palette.soft, "right", "middle");
  }
  for (const value of ticksOf(first, last, Math.max(2, Math.floor(width / 90)), 1))
    write(context, axisText(value), x(value), height - FOOT + 8, palette.soft, "center");
  write(context, xName, width - RIGHT, height - 13, palette.soft, "right");
  write(context, yName, 0, 0, palette.soft);
  if (cursor !== null) stroke(context, [[x(cursor), TOP - 10], [x(cursor), height - FOOT]], palette.accent, 2);
  for (const { xs: at, ys, colour, dash = [], steps = false, band = null, marks = [], thin = false } of lines) {
    context.fillStyle = colour;
    if (band) {
      context.globalAlpha = 0.18;
      context.beginPath();
      band[1].forEach((value, k) => context.lineTo(x(at[k]), y(value)));
      for (let k = at.length - 1; k >= 0; k -= 1) context.lineTo(x(at[k]), y(band[0][k]));
      context.fill();
      context.globalAlpha = 1;
    }
    context.lineJoin = "round";
    const points = [];
    for (let k = 0; k < ys.length; k += 1) {
      if (!Number.isFinite(ys[k])) continue;
      if (steps && k > 0) points.push([x(at[k]), y(ys[k - 1])]);
      points.push([x(at[k]), y(ys[k])]);
    }
    context.globalAlpha = thin ? 0.5 : 1;
    stroke(context, points, colour, thin ? 1 : 2, dash);
    context.globalAlpha = 1;
    if (ys.length === 1) context.fillRect(x(at[0]) - 3, y(ys[0]) - 3, 6, 6);
    for (const k of marks) {
      context.beginPath();
      context.arc(x(at[k]), y(ys[k]), 4, 0, 2 * Math.PI);
      context.fill();
    }
  }
  return (place) => first + shareOf(place, LEFT, width - RIGHT) * (last - first);
}

// A legend whose entries are switches: one line on and off.
export class Legend {
  constructor(label, redraw) {
    this.off = new Set();
    this.redraw = redraw;
    this.root = el("div", { class: "switches", role: "group", "aria-label": label });
    this.names = [];
    this.buttons = [];
  }

  // `values` stand beside the names.
  render(names, values = [], styles = names.map((_, k) => termStyle(k))) {
    const known = names.length === this.names.length && names.every((name, k) => name === this.names[k]);
    if (!known) {
      this.names = names;
      this.buttons = names.map((name) => {
        const flip = () => {
          if (!this.off.delete(name)) this.off.add(name);
          this.redraw();
        };
        return el(
          "button",
          { class: "switch", title: "Show or hide this line", onclick: flip },
          el("span", { class: "swatch", "aria-hidden": "true" }),
          el("span", { class: "name" }, name),
          el("span", { class: "number" }),
        );
      });
      this.root.replaceChildren(...this.buttons);
    }
    this.buttons.forEach((button, k) => {
      const { colour, dash } = styles[k];
      const [swatch] = button.children;
      if (swatch.style.borderTopColor !== colour) swatch.style.borderTopColor = colour;
      swatch.style.borderTopStyle = dash.length ? "dashed" : "solid";
      button.setAttribute("aria-pressed", String(!this.off.has(names[k])));
      setText(button.lastChild, values[k] ?? "");
    });
  }

  shows(name) {
    return !this.off.has(name);
  }
}
