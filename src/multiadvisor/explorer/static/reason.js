// The shortest explanation: the fewest advisors that decide one action over another, and the table of all differences.

import { el, gapText, listed, option, setText, signed } from "./dom.js";
import { bestActions, differences, shortestReason } from "./maths.js";
import { actionPhrase, actionText, actionWord } from "./bars.js";

function named(run, some) {
  return listed(
    some.map((one) => run.names[one.advisor]),
    3,
  );
}

function sumOf(some) {
  return some.reduce((sum, one) => sum + one.value, 0);
}

// The action that the chosen one is compared with: the next best, unless another was picked.
export function rival(total, action, against) {
  if (against >= 0 && against < total.length && against !== action) return against;
  let other = -1;
  total.forEach((value, a) => {
    if (a !== action && (other < 0 || value > total[other])) other = a;
  });
  return other;
}

// One plain sentence: who decided, against whom.
export function reasonText(frame, against = -1) {
  const { run, total, advisors, advice } = frame;
  if (!advisors.length) return frame.turn >= frame.game.turns ? "The game is over." : "No advisor speaks here.";
  const best = bestActions(total);
  const action = frame.action >= 0 ? frame.action : best[0];
  const does = sentenceCase(actionPhrase(run.actions[action]));
  if (frame.explored) return `${does} to explore, at random.`;
  const other = rival(total, action, against);
  if (other < 0) return `${does}: there is no other action.`;
  const than = actionWord(run.actions[other]);
  const reason = shortestReason(differences(advisors, advice, action, other));
  const others = best.filter((a) => a !== action).map((a) => actionWord(run.actions[a]));
  if (best.length > 1 && best.includes(action) && best.includes(other))
    return `${does}: a tie with ${listed(others)}, broken at random.`;
  if (!best.includes(action)) {
    const did = sentenceCase(actionPhrase(run.actions[action], ["went", "chose"]));
    const now = best.map((a) => actionWord(run.actions[a])).join(" or ");
    return `${did}; by these values and weights ${now} is best.`;
  }
  if (!reason.decided) return `${does} rather than ${than}, by rounding alone.`;
  const gain = `${named(run, reason.plus)}, ${gapText(sumOf(reason.plus))}`;
  if (reason.loss === 0) return `${does} rather than ${than}: ${gain}, and nobody is against it.`;
  const loss = `${named(run, reason.minus)}, ${gapText(sumOf(reason.minus))}`;
  return `${does} rather than ${than}: ${gain}, outweigh${reason.plus.length === 1 ? "s" : ""} ${loss}.`;
}

function sentenceCase(text) {
  return text[0].toUpperCase() + text.slice(1);
}

export class Reason {
  constructor(store) {
    this.sentence = el("p", { class: "sentence", id: "sentence" });
    this.pick = el("select", { id: "against", onchange: () => store.set({ against: Number(this.pick.value) }) });
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
      {},
      this.sentence,
      el("label", { class: "field" }, el("span", {}, "Compared with"), this.pick),
      this.chips,
      this.open,
    );
    this.run = null;
  }

  render(frame, against) {
    const { run, total, advisors, advice } = frame;
    if (run !== this.run) {
      this.run = run;
      this.pick.replaceChildren(
        option(-1, "the next best"),
        ...run.actions.map((name, a) => option(a, actionText(name))),
      );
    }
    this.pick.value = String(against < run.A ? against : -1);
    setText(this.sentence, reasonText(frame, against));
    const action = frame.action >= 0 ? frame.action : bestActions(total)[0];
    const other = advisors.length ? rival(total, action, against) : -1;
    const sorted = other >= 0 ? differences(advisors, advice, action, other) : [];
    const reason = shortestReason(sorted);
    const chips = [...reason.plus.slice(0, 8), ...reason.minus.slice(0, 4)];
    while (this.chips.children.length < chips.length) this.chips.append(el("span", { class: "chip" }));
    while (this.chips.children.length > chips.length) this.chips.lastChild.remove();
    chips.forEach((one, k) => {
      const chip = this.chips.children[k];
      chip.classList.toggle("negative", one.value < 0);
      setText(chip, `${run.names[one.advisor]} ${gapText(one.value)}`);
    });
    if (!this.open.open) return;
    const decides = new Set([...reason.plus, ...reason.minus].map((one) => one.advisor));
    while (this.body.children.length < sorted.length)
      this.body.append(el("tr", {}, el("th", { scope: "row" }), el("td"), el("td")));
    while (this.body.children.length > sorted.length) this.body.lastChild.remove();
    sorted.forEach((one, k) => {
      const line = this.body.children[k];
      setText(line.children[0], run.names[one.advisor]);
      setText(line.children[1], signed(one.value, 4));
      setText(line.children[2], decides.has(one.advisor) ? (one.value > 0 ? "for" : "against") : "");
    });
  }
}
