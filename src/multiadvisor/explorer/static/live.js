// A training while it goes on: its files are looked at again every two seconds, and again where nobody answered.

import { el, field, option, setText } from "./dom.js";
import { MOST_TERMS, termStyle } from "./hues.js";
import { Legend, Plot, axisText } from "./lines.js";

const EVERY = 2000; // milliseconds
const RETRY = 3000;

// Which runs are being trained, and which checkpoint of each is the newest.
export class Watch {
  constructor(source, redraw, changed) {
    Object.assign(this, { source, redraw, changed, logs: {}, problem: "", wanted: "" });
    this.versions = {}; // what the page shows of each run, and ...
    this.newest = {}; // ... what there is
    this.training = {};
    if (source.live) this.step();
  }

  async step() {
    let wait = EVERY;
    try {
      const { runs } = await this.source.json("live");
      if (!runs.length) return; // agents without folders: nobody else trains them
      let redraw = this.problem !== "";
      this.problem = "";
      for (const { id, training, version } of runs) {
        if (this.training[id] !== training) redraw = true;
        if ((this.newest[id] ?? 0) !== version) redraw = true;
        this.newest[id] = version;
        this.training[id] = training;
      }
      if (this.wanted) redraw = (await this.read(this.wanted)) || redraw;
      if (redraw) this.redraw();
      if (!this.busy) wait = 2 * EVERY;
    } catch (error) {
      if (this.problem !== error.message) this.redraw();
      this.problem = error.message;
      wait = RETRY;
    }
    window.setTimeout(() => this.step(), wait);
  }

  // How many checkpoints came since the page was opened, and whether more may come.
  get checkpoints() {
    return Object.values(this.newest).reduce((sum, version) => sum + version, 0);
  }

  get busy() {
    return Object.values(this.training).some(Boolean);
  }

  // Whether a run was trained further than what is shown of it.
  stale(id) {
    return (this.newest[id] ?? 0) !== (this.versions[id] ?? 0);
  }

  // From now on the newest checkpoints are shown.
  adopt() {
    for (const id of Object.keys(this.newest))
      if (this.stale(id)) {
        this.versions[id] = this.newest[id];
        this.changed(id);
      }
  }

  // New lines of a run's log; whether there were any.
  async read(id) {
    const known = this.logs[id] ?? { lines: [], head: null, influence: [] };
    const seen = await this.source.json(`live/${id}/${known.lines.length}`);
    const begun = seen.count < known.lines.length || (known.head && seen.head && known.head.steps !== seen.head.steps);
    if (begun) {
      this.logs[id] = { lines: [], head: null, influence: [] };
      return this.read(id);
    }
    const news = seen.lines.length > 0 || seen.influence.length !== known.influence.length || !this.logs[id];
    this.logs[id] = { head: seen.head, lines: [...known.lines, ...seen.lines], influence: seen.influence };
    return news;
  }

  // The log of a run, or null; it is kept up to date from now on.
  log(id) {
    if (this.wanted !== id) {
      this.wanted = id;
      if (!this.logs[id] && this.source.live)
        this.read(id).then(() => this.redraw(), () => {});
    }
    return this.logs[id] ?? null;
  }
}

const SHOWN = { score: "Score of greedy episodes", returns: "Return of each term", influence: "Influence of each term", losses: "Loss", epsilon: "Exploration", steps_per_second: "Steps per second" };

const HINT =
  "The score is the mean of the greedy episodes of an evaluation, without exploration. The curves below end with the last evaluation that was saved, and the other views play episodes of their own: their scores may differ.";

export function seriesFrom(kind, log) {
  const pick = (lines, field) => {
    const kept = lines.filter((line) => line[field] !== undefined);
    if (field === "epsilon" && !kept.some((line) => line.epsilon > 0)) return { xs: [], kept: [] }; // it has none
    return { xs: kept.map((line) => line.steps), kept: kept.map((line) => line[field]) };
  };
  if (["score", "epsilon", "steps_per_second"].includes(kind)) {
    const { xs, kept } = pick(log.lines, kind);
    return [{ name: SHOWN[kind], xs, ys: kept }];
  }
  const { xs, kept } = pick(kind === "influence" ? log.influence : log.lines, kind);
  const names = [...new Set(kept.flatMap((one) => Object.keys(one)))];
  return names.map((name) => ({ name, xs, ys: kept.map((one) => one[name] ?? NaN) }));
}

// What the last look found: the page's own, at an episode of the newest checkpoint, or the training's own.
function troubleOf(log) {
  const seen = [...log.influence, ...log.lines].filter(({ stuck }) => stuck !== undefined);
  const last = seen.reduce((one, other) => (one && one.steps >= other.steps ? one : other), null);
  return last?.stuck ? `Stuck after ${last.steps.toLocaleString("en")} steps: ${last.stuck}.` : "";
}

export class Live {
  constructor(store, watch, redraw, see) {
    Object.assign(this, { store, watch, redraw });
    this.kind = el("select", { id: "live-kind", onchange: redraw }, Object.entries(SHOWN).map(([value, text]) => option(value, text)));
    this.legend = new Legend("Lines", redraw);
    this.plot = new Plot();
    this.more = el("p", { class: "hint" });
    this.title = el("h2", {}, "Training");
    this.state = el("p", { class: "prose" });
    this.trouble = el("p", { class: "prose trouble", role: "status", hidden: true });
    this.facts = el("dl", { class: "facts-now" });
    this.hint = el("p", { class: "hint" }, HINT);
    this.episode = el("button", { onclick: see }, "Latest episode");
    this.root = el(
      "section",
      { class: "card wide", id: "training", hidden: true },
      el("div", { class: "line" }, this.title, field("Curve", this.kind), this.episode),
      this.state,
      this.trouble,
      this.facts,
      this.legend.root,
      this.plot.root,
      this.hint,
      this.more,
    );
  }

  render(entry, palette) {
    const log = entry && !entry.diagnosis ? this.watch.log(entry.id) : null;
    this.root.hidden = !log || !log.head;
    if (this.root.hidden) return;
    const last = log.lines.at(-1) ?? { steps: log.head.steps };
    const { total } = log.head;
    const caveat = (this.kind.value === "influence" && log.influence.at(-1)?.caveat) || "";
    const busy = this.watch.training[entry.id] ?? true; // nobody has told yet
    const interrupted = !busy && last.steps < total;
    const state = interrupted ? "Interrupted" : busy ? "Training" : "Trained";
    setText(this.title, `${state}: ${entry.name}`);
    const broken = this.watch.problem ? ` ${this.watch.problem} Retrying.` : "";
    setText(
      this.state,
      `${last.steps.toLocaleString("en")} of ${total.toLocaleString("en")} steps (${Math.floor((100 * last.steps) / Math.max(1, total))}%).${interrupted ? " Continue with --resume." : ""}${broken}${caveat && ` Influence: ${caveat}.`}`,
    );
    const trouble = troubleOf(log);
    this.trouble.hidden = !trouble;
    setText(this.trouble, trouble);
    this.renderFacts(log);
    for (const choice of this.kind.options)
      choice.disabled = !seriesFrom(choice.value, log).some(({ ys }) => ys.length > 0);
    const all = seriesFrom(this.kind.value, log).filter(({ ys }) => ys.length);
    const size = ({ ys }) => Math.max(...ys.filter(Number.isFinite).map(Math.abs));
    const series = all.length > MOST_TERMS ? [...all].sort((p, q) => size(q) - size(p)).slice(0, MOST_TERMS) : all;
    this.more.hidden = all.length === series.length;
    setText(this.more, `The ${series.length} largest of ${all.length} are drawn.`);
    const names = series.map(({ name }) => name);
    this.legend.root.hidden = names.length < 2;
    this.legend.render(names, series.map(({ ys }) => axisText(ys.at(-1))));
    const lines = series.flatMap((one, k) => (this.legend.shows(one.name) ? [{ ...one, ...termStyle(k) }] : []));
    const ends = series.map(({ name, ys }) => `${name} ${axisText(ys.at(-1))}`);
    const label = `${SHOWN[this.kind.value]} after ${last.steps} steps: ${ends.join("; ") || "nothing yet"}`;
    const axes = { xs: [0, Math.max(1, last.steps)], xName: "steps", yName: SHOWN[this.kind.value] };
    this.plot.draw({ lines, height: 240, palette, ...axes, zero: this.kind.value !== "score" }, label);
  }

  renderFacts(log) {
    const latest = (kind) => seriesFrom(kind, log)[0].ys.at(-1);
    const evaluated = log.lines.findLast((line) => line.score !== undefined);
    const facts = [
      [`Score after ${evaluated?.steps.toLocaleString("en")} steps`, evaluated?.score],
      ["Steps per second", latest("steps_per_second") && Math.round(latest("steps_per_second"))],
      ["Exploration", latest("epsilon")],
      ["Checkpoints seen", log.influence.length || undefined],
    ].flatMap(([name, value]) => (value === undefined ? [] : [[name, axisText(value)]]));
    const text = JSON.stringify(facts);
    if (this.told === text) return;
    this.told = text;
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [el("div", {}, el("dt", {}, name), el("dd", {}, value))]));
  }
}
