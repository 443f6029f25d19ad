// The shortest explanation: the fewest advisors that decide one action over another, and the table of all differences.

import { el, gapText, option, setText, signed } from "./dom.js";
import { contributions } from "./frame.js";
import { bestActions, ranked, shortestReason } from "./maths.js";
import { actionPhrase, actionText, actionWord } from "./bars.js";
import { librarySentence } from "./sentence.js";

// Whether an action was picked to compare the chosen one with.
function isPicked(total, action, against) {
  return against >= 0 && against < total.length && against !== action;
}

// The action that the chosen one is compared with: the next best, unless another was picked.
export function rival(total, action, against) {
  if (isPicked(total, action, against)) return against;
  let other = -1;
  total.forEach((value, a) => {
    if (a !== action && (other < 0 || value > total[other])) other = a;
  });
  return other;
}

// One plain sentence: who decided, against whom. Where the episode went another way than these weights would, it says so.
export function reasonText(frame, against = -1) {
  const { run, episode, step, total, action } = frame;
  if (step >= episode.steps) return "The episode is over.";
  if (frame.explored) return `${sentenceCase(actionPhrase(run.actions[action]))} to explore, at random.`;
  const best = bestActions(total);
  const changed = run.weights.some((weight, j) => weight !== frame.weights[j]);
  if (changed && !best.includes(action)) {
    const did = sentenceCase(actionPhrase(run.actions[action], ["went", "chose"]));
    const now = best.map((a) => actionWord(run.actions[a])).join(" or ");
    return `${did}; by these values and weights ${now} is best.`;
  }
  const asked = isPicked(total, action, against);
  if (episode.reasons && !asked && !(changed && run.continuous)) return `${sentenceCase(episode.reasons[step])}.`;
  return `${sentenceCase(librarySentence(frame, action, rival(total, action, against), asked))}.`;
}

function sentenceCase(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// The strongest wish, and the next that wants something else.
function leading({ run, advisors, lead, step, episode }) {
  if (!lead || step >= episode.steps) return { plus: [], minus: [] };
  const chip = (i, action, value) => ({ advisor: advisors[i], action: actionText(run.actions[action]), value });
  return {
    plus: [chip(lead.at, lead.action, lead.value)],
    minus: lead.next < 0 ? [] : [chip(lead.next, lead.nextAction, lead.nextValue)],
  };
}

export class Reason {
  constructor(store) {
    this.sentence = el("p", { class: "sentence", id: "sentence" });
    this.caveat = el("p", { class: "hint", id: "caveat" });
    this.pick = el("select", { id: "against", onchange: () => store.set({ against: Number(this.pick.value) }) });
    this.field = el("label", { class: "field" }, el("span", {}, "Compared with"), this.pick);
    this.chips = el("div", { class: "chips" });
    this.body = el("tbody");
    const head = el("tr", {}, ...["advisor", "difference", "decides"].map((name) => el("th", { scope: "col" }, name)));
    this.table = el("table", { class: "numbers" }, el("thead", {}, head), this.body);
    const region = el(
      "div",
      { class: "scroll", tabIndex: 0, role: "region", "aria-label": "All differences" },
      this.table,
    );
    this.open = el("details", { class: "more" }, el("summary", {}, "All differences"), region);
    this.root = el(
      "div",
      { class: "reason" },
      this.sentence,
      this.caveat,
      this.field,
      this.chips,
      this.open,
    );
    this.run = null;
  }

  render(frame, against) {
    const { run, total, advisors, action } = frame;
    if (run !== this.run) {
      this.run = run;
      this.open.hidden = !run.known;
      this.caveat.hidden = !run.caveat;
      setText(this.caveat, run.caveat ? `${sentenceCase(run.caveat)}.` : "");
      this.field.hidden = run.continuous;
      this.root.classList.toggle("many", run.plain && run.n > 8);
      this.pick.replaceChildren(
        option(-1, "the next best"),
        ...run.actions.map((name, a) => option(a, actionText(name))),
      );
    }
    this.pick.value = String(against < run.A ? against : -1);
    setText(this.sentence, reasonText(frame, against));
    const other = action >= 0 && advisors.length ? rival(total, action, against) : -1;
    const needed = other >= 0 && (run.plain || this.open.open);
    const sorted = needed ? ranked(advisors, contributions(frame, action, other)) : [];
    const reason = run.plain ? shortestReason(sorted) : leading(frame);
    const chips = [...reason.plus.slice(0, 8), ...reason.minus.slice(0, 4)];
    while (this.chips.children.length < chips.length) this.chips.append(el("span", { class: "chip" }));
    while (this.chips.children.length > chips.length) this.chips.lastChild.remove();
    chips.forEach((one, k) => {
      const chip = this.chips.children[k];
      chip.classList.toggle("negative", k >= reason.plus.length || one.value < 0);
      const worth = one.action ? `${signed(one.value, 3)} ${one.action}` : gapText(one.value);
      setText(chip, `${run.names[one.advisor]} ${worth}`);
    });
    if (!this.open.open) return;
    const decides = new Set([...reason.plus, ...reason.minus].map((one) => one.advisor));
    while (this.body.children.length < sorted.length)
      this.body.append(el("tr", {}, el("th", { scope: "row" }), el("td"), el("td")));
    while (this.body.children.length > sorted.length) this.body.lastChild.remove();
    sorted.sort((p, q) => Math.abs(q.value) - Math.abs(p.value));
    sorted.forEach((one, k) => {
      const line = this.body.children[k];
      setText(line.children[0], run.names[one.advisor]);
      setText(line.children[1], signed(one.value, 4));
      setText(line.children[2], decides.has(one.advisor) ? (one.value > 0 ? "for" : "against") : "");
    });
  }
}
