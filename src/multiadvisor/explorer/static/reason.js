// Why this action: the library's sentence, the fewest advisors that decide, and the table of all differences. Sentences
// of the recorded steps come with the episode; under other weights, or against another action, the library is asked.

import { el, field, fill, gapText, sentenceCase, setText, signed } from "./dom.js";
import { actionText, actionWord } from "./bars.js";
import { Latest } from "./source.js";
import { fillRows, tableOf } from "./tables.js";

const ONLY_RECORDED =
  "This file has the sentences of the episode as it was played: `multiadvisor explore` says what other weights and actions mean.";

// The action that the chosen one is compared with: the next best, unless another was picked.
export function rival({ total, action }, against = -1) {
  if (against >= 0 && against < total.length && against !== action) return against;
  let other = -1;
  total.forEach((value, a) => {
    if (a !== action && (other < 0 || value > total[other])) other = a;
  });
  return other;
}

// The library's reasons: { sentence, other, plus, minus, lead, differences }; null at the end of the episode.
export class Reasons {
  constructor(source, redraw) {
    this.source = source;
    this.answers = new Latest(redraw);
  }

  of(frame, against, id, number) {
    const { episode, step, action, changed, weights, over } = frame;
    if (over) return null;
    const recorded = episode.reasons[step];
    const picked = against >= 0 && against < frame.run.A && against !== action;
    if (!changed && (!picked || against === recorded.other)) return recorded;
    const none = { sentence: "", other: rival(frame, against), plus: [], minus: [], lead: null, differences: null };
    if (!this.source.live) return { ...none, problem: ONLY_RECORDED };
    const own = changed ? Array.from(weights) : null;
    const asked = { do: "explain", run: id, episode: number, step, weights: own, against: picked ? against : null };
    const answer = this.answers.of(JSON.stringify(asked), () => this.source.ask(asked));
    return { ...none, ...(answer?.found ?? answer) };
  }
}

// The sentence; in its place, while it is awaited or where there is none, what the two actions come to.
export function reasonText(frame, reason) {
  if (frame.over) return "The episode is over.";
  if (reason.sentence) return `${sentenceCase(reason.sentence)}.`;
  const { run, total, action, changed } = frame;
  const worth = [action, reason.other].filter((a) => a >= 0).map((a) => `${actionWord(run.actions[a])} ${signed(total[a], 3)}`);
  const text = `${changed ? "With these weights: " : ""}${worth.join(", ")}.`;
  return reason.problem ? `${text} ${reason.problem}` : text;
}

// What everyone contributes to the action over the other, [[advisor, value]]: of a sum the difference of the weighted
// values; else as the library says. An actor's entropy stands behind the advisors.
function contributions(frame, reason) {
  const { run, episode, step, advisors, advice, action } = frame;
  const { other } = reason;
  if (other < 0) return [];
  if (!run.plain) {
    const values = reason.differences ?? (reason === episode.reasons[step] ? episode.differences(step) : []);
    return advisors.slice(0, values.length).map((j, i) => [j, values[i]]);
  }
  const own = advisors.map((j, i) => [j, advice[i][action] - advice[i][other]]);
  const { entropy } = episode.arrays;
  return entropy ? [...own, [run.n, entropy[2 * step] - entropy[2 * step + 1]]] : own;
}

export class Reason {
  constructor(store) {
    this.sentence = el("p", { class: "sentence", id: "sentence" });
    this.caveat = el("p", { class: "hint", id: "caveat" });
    this.pick = el("select", { id: "against", onchange: () => store.set({ against: Number(this.pick.value) }) });
    this.field = field("Compared with", this.pick);
    this.chips = el("div", { class: "chips" });
    this.body = el("tbody");
    const table = tableOf("All differences", ["advisor", "difference", "decides"], this.body);
    this.open = el("details", { class: "more" }, el("summary", {}, "All differences"), table);
    this.root = el("div", { class: "reason" }, this.sentence, this.caveat, this.field, this.chips, this.open);
    this.run = null;
  }

  render(frame, reason, against) {
    const { run } = frame;
    if (run !== this.run) {
      this.run = run;
      this.caveat.hidden = !run.caveat;
      setText(this.caveat, run.caveat ? `${sentenceCase(run.caveat)}.` : "");
      this.field.hidden = run.continuous;
      this.root.classList.toggle("many", run.plain && run.n > 8);
    }
    const choices = () => [[-1, "the next best"], ...run.actions.map((name, a) => [a, actionText(name)])];
    fill(this.pick, [run], choices, against < run.A ? against : -1);
    setText(this.sentence, reasonText(frame, reason));
    const found = reason ? contributions(frame, reason) : [];
    this.renderChips(run, reason, new Map(found));
    if (!this.open.open) return;
    const decides = new Set(reason ? [...reason.plus, ...reason.minus] : []);
    found.sort(([, p], [, q]) => Math.abs(q) - Math.abs(p));
    fillRows(
      this.body,
      found.map(([j, value]) => [run.nameOf(j), signed(value, 4), decides.has(j) ? (value > 0 ? "for" : "against") : ""]),
    );
  }

  // The fewest that decide, or the strongest wish and the next that wants something else.
  renderChips(run, reason, value) {
    const chip = (j, negative = value.get(j) < 0) => [`${run.nameOf(j)} ${gapText(value.get(j))}`, negative];
    let chips = [];
    if (reason?.lead) {
      const { at, action, value: most, next, nextAction, nextValue } = reason.lead;
      const wish = (j, a, q) => `${run.nameOf(j)} ${signed(q, 3)} ${actionText(run.actions[a])}`;
      chips = [[wish(at, action, most), most < 0], ...(next < 0 ? [] : [[wish(next, nextAction, nextValue), true]])];
    } else if (reason) chips = [...reason.plus.slice(0, 8).map((j) => chip(j)), ...reason.minus.slice(0, 4).map((j) => chip(j, true))];
    while (this.chips.children.length < chips.length) this.chips.append(el("span", { class: "chip" }));
    while (this.chips.children.length > chips.length) this.chips.lastChild.remove();
    chips.forEach(([text, negative], k) => {
      this.chips.children[k].classList.toggle("negative", negative);
      setText(this.chips.children[k], text);
    });
  }
}
