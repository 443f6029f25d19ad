// Learning curves: one for each setting, with an interval over the runs that differ in their seed alone.

import { el, fitCanvas, option, plural, setText, widthOf } from "./dom.js";

const MEASURES = { score: "Score", turns: "Turns", finished: "Finished games", touches: "Touches" };
const MOST_CURVES = 12;
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [4, 2], [1, 2]];
const COLOURS = {
  light: ["#c2570a", "#1d5cc4", "#4f46e5", "#0f766e", "#9d174d", "#57534e"],
  dark: ["#f59a44", "#6ea6ff", "#a5a0ff", "#4fd1c0", "#f9a8d4", "#d6d3d1"],
};

export class Curves {
  constructor(store, source, redraw) {
    Object.assign(this, { store, source, redraw, curves: null, problem: "" });
    this.canvas = el("canvas", { role: "img" });
    this.pick = el(
      "select",
      { onchange: () => store.set({ measure: this.pick.value }) },
      Object.entries(MEASURES).map(([value, text]) => option(value, text)),
    );
    this.legend = el("ul", { class: "keys" });
    this.body = el("div", { class: "chart" }, this.canvas);
    this.more = el("p", { class: "hint", hidden: true });
    this.table = el("tbody");
    const head = ["setting", "runs", "last epoch", "95% interval"].map((text) => el("th", { scope: "col" }, text));
    this.numbers = el("table", { class: "numbers" }, el("thead", {}, el("tr", {}, ...head)), this.table);
    this.empty = el("p", { class: "empty" });
    this.head = el(
      "div",
      { class: "line" },
      el("h2", {}, "Learning curves"),
      el("label", { class: "field" }, el("span", {}, "Show"), this.pick),
    );
    this.parts = [this.body, this.legend, this.more, this.numbers];
    this.root = el("section", { class: "card wide" }, this.head, this.empty, ...this.parts);
  }

  // The curves are asked for when they are first looked at, and again where runs were added.
  async load(runs) {
    if (this.asked === runs) return;
    this.asked = runs;
    try {
      this.curves = await this.source.curves();
    } catch (error) {
      this.problem = error.message;
    }
    this.redraw();
  }

  forget() {
    if (this.problem) Object.assign(this, { asked: null, problem: "" });
  }

  render(measure, palette, dark) {
    const text = this.problem || (this.curves ? "" : "Loading \u2026");
    const none =
      this.curves && !this.curves.length
        ? "None of these runs kept a record of its training: `multiadvisor train` keeps one."
        : "";
    setText(this.empty, text || none);
    this.empty.hidden = !(text || none);
    for (const part of [this.head.lastChild, ...this.parts]) part.hidden = Boolean(text || none);
    if (text || none) return;
    this.pick.value = measure;
    const kept = this.curves.filter((curve) => curve[measure]);
    const best = [...kept].sort((p, q) => q[measure].mean.at(-1) - p[measure].mean.at(-1)).slice(0, MOST_CURVES);
    const shown = kept.filter((curve) => best.includes(curve));
    this.more.hidden = kept.length === shown.length;
    this.more.textContent = `The ${shown.length} highest of ${kept.length} settings are shown.`;
    const colours = COLOURS[dark ? "dark" : "light"];
    const width = widthOf(this.body, 260);
    const height = Math.min(420, Math.max(240, width * 0.42));
    const context = fitCanvas(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    const last = shown.map((curve) => curve[measure].mean.at(-1).toFixed(2));
    this.canvas.setAttribute(
      "aria-label",
      shown.length
        ? `${MEASURES[measure]} by epoch. ${shown.map((curve, k) => `${curve.label}: ${last[k]} in the last epoch`).join("; ")}`
        : `No run has recorded ${MEASURES[measure].toLowerCase()}`,
    );
    this.legend.replaceChildren(
      ...shown.map((curve, k) => {
        const swatch = el("span", { class: "swatch" });
        swatch.style.background = colours[k % colours.length];
        return el("li", {}, swatch, `${curve.task}: ${curve.label}, ${plural(curve.runs, "run")}`);
      }),
    );
    this.table.replaceChildren(
      ...shown.map((curve, k) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, `${curve.task}: ${curve.label}`),
          el("td", {}, String(curve.runs)),
          el("td", {}, last[k]),
          el(
            "td",
            {},
            curve.runs > 1
              ? `${curve[measure].low.at(-1).toFixed(2)} to ${curve[measure].high.at(-1).toFixed(2)}`
              : "one run",
          ),
        ),
      ),
    );
    if (!shown.length) {
      context.fillStyle = palette.soft;
      context.font = "14px system-ui, sans-serif";
      context.fillText(`No run has recorded ${MEASURES[measure].toLowerCase()}.`, 16, 32);
      return;
    }
    let low = Infinity;
    let high = -Infinity;
    let most = 1;
    for (const curve of shown) {
      low = Math.min(low, ...curve[measure].low);
      high = Math.max(high, ...curve[measure].high);
      most = Math.max(most, curve.epochs.at(-1));
    }
    if (high - low < 1e-9) {
      high += 1;
      low -= 1;
    }
    const left = 52;
    const bottom = height - 30;
    const x = (epoch) => left + ((width - left - 14) * (epoch - 1)) / Math.max(1, most - 1);
    const y = (value) => 12 + (bottom - 12) * (1 - (value - low) / (high - low));
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const value of steps(low, high)) {
      context.strokeStyle = palette.line;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(left, y(value));
      context.lineTo(width - 14, y(value));
      context.stroke();
      context.fillStyle = palette.soft;
      context.textAlign = "right";
      context.fillText(String(Number(value.toPrecision(6))).replace("-", "\u2212"), left - 8, y(value));
    }
    context.fillStyle = palette.soft;
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const epoch of [1, ...steps(1, most)].filter(Number.isInteger))
      context.fillText(String(epoch), x(epoch), bottom + 8);
    context.textAlign = "left";
    context.fillText("epoch", 4, bottom + 8);
    shown.forEach((curve, k) => {
      const { mean, low: lows, high: highs } = curve[measure];
      context.fillStyle = colours[k % colours.length];
      context.strokeStyle = colours[k % colours.length];
      if (curve.runs > 1) {
        context.globalAlpha = 0.18;
        context.beginPath();
        curve.epochs.forEach((epoch, e) => context.lineTo(x(epoch), y(highs[e])));
        for (let e = curve.epochs.length - 1; e >= 0; e -= 1) context.lineTo(x(curve.epochs[e]), y(lows[e]));
        context.fill();
        context.globalAlpha = 1;
      }
      context.lineWidth = 2;
      context.setLineDash(DASHES[(k + Math.floor(k / DASHES.length)) % DASHES.length]);
      context.beginPath();
      curve.epochs.forEach((epoch, e) => context.lineTo(x(epoch), y(mean[e])));
      context.stroke();
      context.setLineDash([]);
      if (curve.epochs.length === 1) context.fillRect(x(curve.epochs[0]) - 3, y(mean[0]) - 3, 6, 6);
    });
  }
}

function steps(low, high) {
  const raw = (high - low) / 8 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step)
    found.push(Number(value.toPrecision(12)));
  return found;
}
