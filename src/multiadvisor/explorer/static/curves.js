// Learning curves: one for each setting, with an interval over the runs that differ in their seed alone; a chart for
// each task, as scores of different tasks have nothing to do with each other.

import { el, field, fill, setText, svg } from "./dom.js";
import { curveStyle } from "./hues.js";
import { Plot } from "./lines.js";
import { Answers } from "./source.js";
import { countRows, heads, tableOf } from "./tables.js";

const nameOf = (measure) => measure[0].toUpperCase() + measure.slice(1);
const MOST_CURVES = 12;
const BEFORE_THE_FIRST = "The curves begin when the first evaluation of the training is saved.";
const NO_RECORD = "None of these runs kept a record of its training: `multiadvisor train` keeps one.";

// A piece of the line as it is drawn in the chart.
function swatch() {
  return svg("0 0 28 8", { d: "M0 4H28", fill: "none", "stroke-width": "3" }, { class: "swatch" });
}

class Chart {
  constructor(task) {
    this.task = task;
    this.title = el("h3", { title: "The runs of this task" }, task);
    this.plot = new Plot();
    this.canvas = this.plot.canvas;
    this.more = el("p", { class: "hint", hidden: true });
    this.rows = el("tbody");
    this.head = el("tr", {}, heads(["setting", "runs", "last evaluation", "95% interval", "own score"]));
    this.numbers = tableOf(`Settings of ${task}`, this.head, this.rows, "settings");
    this.root = el("section", { class: "stack", "aria-label": task }, this.title, this.plot.root, this.numbers, this.more);
  }

  render(all, measure, palette) {
    const kept = all.filter((curve) => curve.figures[measure]);
    const best = [...kept].sort((p, q) => q.figures[measure].mean.at(-1) - p.figures[measure].mean.at(-1)).slice(0, MOST_CURVES);
    const shown = kept.filter((curve) => best.includes(curve));
    this.shown = shown;
    this.root.hidden = !shown.length; // this task has no such thing
    if (!shown.length) return;
    this.more.hidden = kept.length === shown.length;
    setText(this.more, `The ${shown.length} highest of ${kept.length} settings are shown.`);
    const ends = shown.map((curve) => curve.figures[measure].mean.at(-1).toFixed(2).replace("-", "\u2212"));
    const told = shown.map((curve, k) => `${curve.label}: ${ends[k]} at the end`).join("; ");
    const weighted = measure === "score" && shown.some((curve) => curve.own !== undefined);
    this.head.lastChild.hidden = !weighted;
    const name = () => el("th", { scope: "row" }, swatch(), el("span"));
    countRows(this.rows, shown.length, () => el("tr", {}, name(), ...[1, 2, 3, 4].map(() => el("td"))));
    shown.forEach((curve, k) => {
      const [name, runs, end, range, own] = this.rows.children[k].children;
      own.hidden = !weighted;
      setText(own, curve.own === undefined ? ends[k] : curve.own.toFixed(2).replace("-", "\u2212"));
      const { colour, dash } = curveStyle(k);
      const line = name.firstChild.firstChild;
      line.setAttribute("stroke", colour);
      line.setAttribute("stroke-dasharray", dash.join(" "));
      setText(name.lastChild, curve.label);
      setText(runs, String(curve.runs));
      setText(end, ends[k]);
      const [low, high] = ["low", "high"].map((end) => curve.figures[measure][end]).map((part) => part.at(-1).toFixed(2));
      setText(range, curve.runs > 1 ? `${low} to ${high}`.replaceAll("-", "\u2212") : "one run");
    });
    const lines = shown.map((curve, k) => {
      const { mean, low, high } = curve.figures[measure];
      return { xs: curve.steps, ys: mean, band: curve.runs > 1 ? [low, high] : null, ...curveStyle(k) };
    });
    const height = Math.round(Math.min(380, Math.max(220, this.plot.width * 0.36)));
    const yName = nameOf(measure) + (weighted ? ", by the task's own weights" : "");
    const axes = { xs: [0, Math.max(...shown.map((curve) => curve.steps.at(-1)))], xName: "steps", yName, zero: false };
    this.plot.draw({ lines, height, palette, ...axes }, `${nameOf(measure)} of ${this.task} by steps. ${told}`);
  }
}

export class Curves {
  constructor(store, source, redraw) {
    Object.assign(this, { store, source, answers: new Answers(redraw), curves: null, problem: "", charts: [] });
    this.pick = el("select", { onchange: () => store.set({ measure: this.pick.value }) });
    this.empty = el("p", { class: "empty" });
    this.head = el("div", { class: "line" }, el("h2", {}, "Learning curves"), field("Show", this.pick));
    this.body = el("div", { class: "charts" });
    this.root = el("section", { class: "card wide" }, this.head, this.empty, this.body);
  }

  // The curves are asked for when they are first looked at, and again where runs were added or trained further.
  load(key) {
    const { found, problem = "" } = this.answers.of(key, () => this.source.json("curves")) ?? {};
    this.problem = problem;
    if (!found || this.curves === found.curves) return;
    this.curves = found.curves;
    const tasks = [...new Set(this.curves.map((curve) => curve.task))];
    const known = new Map(this.charts.map((chart) => [chart.task, chart]));
    this.charts = tasks.map((task) => known.get(task) ?? new Chart(task));
    this.body.replaceChildren(...this.charts.map((chart) => chart.root));
    this.offered = [...new Set(this.curves.flatMap((curve) => Object.keys(curve.figures)))];
  }

  render(measure, palette) {
    let text = this.problem || (this.curves ? "" : "Loading \u2026");
    if (!text && !this.curves.length && this.training) text = BEFORE_THE_FIRST;
    if (!text && !this.curves.length) text = NO_RECORD;
    setText(this.empty, text);
    this.empty.hidden = !text;
    for (const part of [this.head.lastChild, this.body]) part.hidden = Boolean(text);
    if (text) return;
    this.measure = this.offered.includes(measure) ? measure : this.offered[0];
    fill(this.pick, this.offered, () => this.offered.map((one) => [one, nameOf(one)]), this.measure);
    for (const chart of this.charts)
      chart.render(this.curves.filter((curve) => curve.task === chart.task), this.measure, palette);
  }

  // The charts that stand on the page, for a picture.
  get drawn() {
    return this.problem ? [] : this.charts.filter((chart) => chart.shown?.length);
  }
}
