// What if: another action in this step, twenty continuations each, with common random numbers.

import { el, field, option, plural, setText, signed } from "./dom.js";
import { actionText, actionWord } from "./bars.js";

export class WhatIf {
  constructor(source, changed) {
    this.source = source;
    this.changed = changed;
    this.pick = el("select", { "aria-label": "Another action" });
    this.button = el("button", { onclick: () => this.ask() }, "Try it");
    this.clear = el("button", { class: "quiet", hidden: true, onclick: () => this.forget() }, "Clear");
    this.note = el("p", { class: "hint" }, "Twenty continuations of both actions, with the same random numbers.");
    this.results = el("div", { class: "results" });
    this.line = el("div", { class: "line" }, field("Instead", this.pick), this.button, this.clear);
    this.root = el("div", {}, this.line, this.note, this.results);
    this.answer = null;
    this.run = null;
  }

  render(frame, context) {
    const { run, episode, step } = frame;
    this.context = { ...context, frame };
    if (run !== this.run) {
      this.run = run;
      this.forget();
      this.pick.replaceChildren(...run.actions.map((name, a) => option(a, actionText(name))));
      this.pick.value = String(run.A > 1 ? 1 : 0);
    }
    this.line.hidden = run.continuous;
    const over = step >= episode.steps;
    const possible = this.source.live && run.compiled && !over;
    this.button.disabled = !possible || Boolean(this.busy);
    if (run.continuous)
      setText(
        this.note,
        "Its actions are real numbers: `multiadvisor explain RUN --step INT --against NUMBER,NUMBER,...` compares one with any other.",
      );
    else if (!this.source.live)
      setText(
        this.note,
        "This file has no library behind it: open the run with `multiadvisor explore` to try other actions.",
      );
    else if (!run.compiled)
      setText(this.note, "This task is a Python environment: it cannot be put back into an earlier state.");
    else if (over) setText(this.note, "The episode is over.");
    else if (!this.busy) setText(this.note, "Twenty continuations of both actions, with the same random numbers.");
    if (this.answer && (this.answer.step !== step || this.answer.episode !== episode)) this.forget();
  }

  forget() {
    this.answer = null;
    this.clear.hidden = true;
    this.results.replaceChildren();
    this.changed();
  }

  async ask() {
    const { frame, id, number, weights } = this.context;
    const { step, episode, run } = frame;
    const done = episode.action[step];
    const other = Number(this.pick.value);
    this.busy = true;
    setText(this.note, "Playing on \u2026");
    this.changed();
    const question = {
      do: "what-if",
      run: id,
      episode: number,
      step,
      actions: done === other ? [done] : [done, other],
      weights: weights && Array.from(weights),
    };
    try {
      const answer = await this.source.ask(question, (share) => {
        if (this.busy) setText(this.note, `Continuing \u2026 ${Math.round(100 * share)}%`);
      });
      this.answer = { ...answer, episode };
      this.clear.hidden = false;
      this.show(run, answer, done);
    } catch (error) {
      this.results.replaceChildren(el("p", { class: "note" }, error.message));
    }
    this.busy = false;
    this.changed();
  }

  show(run, answer, done) {
    const scores = answer.actions.flatMap((one) => one.score);
    const low = Math.min(...scores);
    const width = Math.max(...scores) - low || 1;
    this.results.replaceChildren(
      ...answer.actions.map((one) => {
        const dots = one.score.map((score, k) => {
          const dot = el("span", { class: "dot" });
          dot.style.left = `${(100 * (score - low)) / width}%`;
          dot.style.top = `${20 + (60 * ((k * 7) % answer.count)) / answer.count}%`;
          return dot;
        });
        const ended = one.terminated.filter(Boolean).length;
        const steps = one.length.reduce((sum, count) => sum + count, 0) / answer.count;
        const ends = one.interval.map((end) => signed(end)).join(", ");
        const episodes = `${ended} of ${plural(answer.count, "episode")} finished`;
        const text = `score from here ${signed(one.mean)} [${ends}], ${steps.toFixed(1)} steps, ${episodes}`;
        return el(
          "div",
          { class: "outcome" },
          el("strong", {}, `${actionText(run.actions[one.action])}${one.action === done ? ", as it was" : ""}`),
          el("span", { class: "strip", "aria-hidden": "true" }, ...dots),
          el("span", { class: "hint" }, text),
        );
      }),
    );
    if (answer.actions.length > 1) {
      const [was, would] = answer.actions;
      const better = would.score.reduce((count, score, k) => count + (score > was.score[k] ? 1 : 0), 0);
      const worse = would.score.reduce((count, score, k) => count + (score < was.score[k] ? 1 : 0), 0);
      const word = actionWord(run.actions[would.action]);
      const counts = `${word} would have been better in ${better} of ${answer.count}, worse in ${worse}.`;
      this.results.append(el("p", { class: "hint" }, `${counts} The lines on the board show its first thirty steps.`));
    }
  }

  // The ways of the other action, for the board.
  get ways() {
    if (!this.answer) return null;
    return this.answer.actions[this.answer.actions.length - 1].ways;
  }
}
