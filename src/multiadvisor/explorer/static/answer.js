// What the server has to say of a run: sentences, of which some lead to a step, and tables of terms.

import { el, plural, setText } from "./dom.js";
import { rowOf, tableOf } from "./tables.js";
import { goTo } from "./moments.js";

const UNFOLDED = 8; // rows before the rest is folded away

function sentenceOf(store, { text, episode, step }) {
  if (step === undefined) return el("li", {}, text);
  const go = el("button", { class: "mark", title: "Go to this step", onclick: () => goTo(store, episode, step) });
  go.append(`Episode ${episode + 1}, step ${step}`);
  return el("li", {}, `${text} `, go);
}

function figureOf({ src, text }) {
  return el("figure", {}, el("img", { src, alt: text }), el("figcaption", { class: "hint" }, text));
}

// One answer as elements; the same for a run, for two runs, and for a diagnosis of anybody's policy.
export function answerOf(store, { title, sentences, head, rows, notes, pictures = [] }, titled = false) {
  const lines = rows.map(({ name, cells, kind }) => rowOf(name, cells, kind));
  const body = el("tbody", {}, lines.slice(0, UNFOLDED));
  const rest = el("tbody", { hidden: true }, lines.slice(UNFOLDED));
  const text = plural(rows.length - UNFOLDED, "more advisor");
  const fold = () => {
    rest.hidden = !rest.hidden;
    setText(more, rest.hidden ? text : "Show fewer");
  };
  const more = el("button", { class: "quiet", hidden: rows.length <= UNFOLDED, onclick: fold }, text);
  return el(
    "div",
    { class: "answer" },
    titled ? el("h3", {}, title) : null,
    sentences.length ? el("ul", { class: "findings" }, sentences.map((one) => sentenceOf(store, one))) : null,
    rows.length ? tableOf("Terms", head, [body, rest]) : null,
    more,
    notes.map((note) => el("p", { class: "hint" }, note)),
    pictures.length ? el("div", { class: "controls" }, pictures.map(figureOf)) : null,
  );
}

// The first card: what drives a run, and what to change.
export class Answer {
  constructor(store, source, insights, redraw) {
    Object.assign(this, { store, source, insights, redraw, asking: null });
    this.body = el("div", { class: "stack" });
    this.hint = el("p", { class: "hint", role: "status" });
    this.try = el("button", { onclick: () => this.ask() }, "Try other actions");
    const title = el("h2", {}, "Which term drives it");
    this.root = el("section", { class: "card wide", id: "drives" }, el("div", { class: "line" }, title, this.try), this.hint, this.body);
  }

  // `run`: what is shown, or null where only a diagnosis is.
  render(answer, id, run) {
    this.id = id;
    const cards = answer?.found?.cards ?? [];
    const busy = this.asking === id ? "Playing 5,000 steps and trying other actions in 100 states: this takes a minute or two." : "";
    setText(this.hint, busy || (answer ? (answer.problem ?? answer.trouble ?? "") : "Playing all episodes \u2026"));
    this.hint.hidden = !this.hint.textContent;
    this.try.hidden = !this.source.live || !run || run.pointing || cards.length !== 1;
    this.try.disabled = Boolean(this.asking);
    if (this.shown === cards || (!cards.length && !this.shown?.length)) return;
    this.shown = cards;
    this.body.replaceChildren(...cards.map((one) => answerOf(this.store, one, cards.length > 1)));
  }

  async ask() {
    const { id } = this;
    this.asking = id;
    this.redraw();
    try {
      await this.source.ask({ do: "diagnose", run: id });
      await this.insights.again(id);
    } catch (error) {
      this.insights.change(id, (answer) => ({ ...answer, trouble: error.message }));
    }
    this.asking = null;
    this.redraw();
  }
}
