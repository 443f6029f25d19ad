// What if: another action in this step, and how the episode goes on after both, as a fan of branches.

import { el, field, fill, setText } from "./dom.js";
import { actionText } from "./bars.js";
import { termStyle } from "./hues.js";
import { Legend, Plot } from "./lines.js";
import { rival } from "./reason.js";

const WHAT = "Both actions are played on, with the same random numbers.";

export class WhatIf {
  constructor(source, changed) {
    Object.assign(this, { source, changed, answer: null, run: null });
    this.pick = el("select", { "aria-label": "Another action", onchange: () => (this.picked = Number(this.pick.value)) });
    this.button = el("button", { onclick: () => this.ask() }, "Try it");
    this.clear = el("button", { class: "quiet", hidden: true, onclick: () => this.forget() }, "Clear");
    this.note = el("p", { class: "hint" }, WHAT);
    this.sentence = el("p", { class: "sentence" });
    this.legend = new Legend("Actions", changed);
    this.plot = new Plot();
    this.how = el("p", { class: "hint" });
    this.results = el("div", { class: "results", hidden: true }, this.sentence, this.legend.root, this.plot.root, this.how);
    this.line = el("div", { class: "line" }, field("Instead", this.pick), this.button, this.clear);
    this.root = el("div", { class: "spaced" }, this.line, this.note, this.results);
  }

  render(frame, context, palette) {
    const { run, episode, step } = frame;
    this.context = { ...context, frame };
    if (run !== this.run) {
      this.run = run;
      this.forget();
      this.picked = run.continuous ? 0 : null;
    }
    // the next best, until somebody picks another one
    const offered = step < episode.steps ? Math.max(rival(frame), 0) : this.pick.value;
    fill(this.pick, [run], () => run.tries.map((name, a) => [a, actionText(name)]), this.picked ?? offered);
    const over = step >= episode.steps;
    this.button.disabled = !this.source.live || over || Boolean(this.busy);
    if (!this.source.live)
      setText(this.note, "This file has no library behind it: open the run with `multiadvisor explore` to try other actions.");
    else if (over) setText(this.note, "The episode is over.");
    else if (!this.busy) setText(this.note, this.problem || WHAT);
    if (this.answer && (this.answer.step !== step || this.answer.episode !== episode)) this.forget();
    if (this.answer) this.draw(palette);
  }

  forget() {
    this.answer = null;
    this.problem = "";
    this.clear.hidden = true;
    this.results.hidden = true;
    this.changed();
  }

  async ask() {
    const { frame, id, number, weights } = this.context;
    const { step, episode } = frame;
    Object.assign(this, { busy: true, problem: "" });
    setText(this.note, "Playing on \u2026");
    this.changed();
    const action = Number(this.pick.value);
    const question = { do: "what-if", run: id, episode: number, step, action, weights: weights && Array.from(weights) };
    try {
      const answer = await this.source.ask(question, (share) => {
        if (this.busy) setText(this.note, `Continuing \u2026 ${Math.round(100 * share)}%`);
      });
      this.answer = { ...answer, episode };
    } catch (error) {
      this.problem = error.message;
    }
    this.results.hidden = this.clear.hidden = !this.answer;
    this.busy = false;
    this.changed();
  }

  // Every branch is a line: the score from this step on.
  draw(palette) {
    const { actions, count, step, sentence, note, every, measure } = this.answer;
    setText(this.sentence, sentence);
    setText(this.how, note);
    this.plot.root.hidden = this.legend.root.hidden = !actions.length;
    if (!actions.length) return; // as branches taught: nothing was played
    const names = actions.map(({ name }, k) => (k ? name : `${name}, as it was`));
    const ends = actions.map(({ ended }) => (count > 1 ? `${ended} of ${count} branches ended` : ended ? "ended" : "went on"));
    this.legend.render(names, ends);
    const longest = Math.max(...actions.flatMap(({ paths }) => paths.map((path) => path.length)));
    const xs = Array.from({ length: longest }, (_, t) => step + t * every);
    const fan = ({ paths }, k) => paths.map((ys) => ({ xs, ys, thin: count > 1, ...termStyle(k) }));
    const lines = actions.flatMap((one, k) => (this.legend.shows(names[k]) ? fan(one, k) : []));
    const axes = { xs: [step, Math.max(step + 1, xs[longest - 1])], xName: "step", yName: measure };
    this.plot.draw({ lines, palette, ...axes }, `Branches from step ${step}: ${sentence}`);
  }

  // The ways of the other action, for the board.
  get ways() {
    return this.answer?.ways ?? null;
  }
}
