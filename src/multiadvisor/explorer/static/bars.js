// Why this action: what each action is worth, and who makes it so. One bar for each action, negative to the left; every
// part has a number and a colour of its own, and the list below the bars says whose it is.

import { el, gapText, plural, setText, signed, widthOf } from "./dom.js";
import { huesOf } from "./hues.js";
import { axisText } from "./lines.js";
import { bestActions, hearPart, normalisedShare } from "./maths.js";
import { countRows, rowOf, tableOf } from "./tables.js";

// Digits behind the point, fewer for large values, so that they fit into their column.
const digitsOf = (value) => (Math.abs(value) < 100 ? 3 : Math.abs(value) < 1000 ? 2 : 1);

const MOST_PARTS = 24; // of a bar
const TOGETHER = 6; // a group with more advisors than this is one part of the bar
const LISTED_PLAYING = 24; // advisors that are listed while it plays
const GLYPHS = { N: "\u2191", S: "\u2193", W: "\u2190", E: "\u2192" };

const COMPASS = { N: "North", S: "South", W: "West", E: "East" };

export function actionText(name) {
  return GLYPHS[name] ? `${GLYPHS[name]} ${name}` : name;
}

// An action in a sentence: "goes West", "chooses work on 2".
export function actionPhrase(name, verbs = ["goes", "chooses"]) {
  return COMPASS[name] ? `${verbs[0]} ${COMPASS[name]}` : `${verbs[1]} ${name}`;
}

export function actionWord(name) {
  return COMPASS[name] || name;
}

// The parts of a bar. What adds up is split: large groups together, the others one by one; so is a sum that is then
// normalised. What does not, as a maximum, is one part; of an aggregation from elsewhere only the whole is known.
function partsOf(run) {
  if (!run.known) return [{ label: run.aggregation, members: new Set(), which: -1 }];
  return run.aggregator.parts.flatMap(({ name, additive }, which) => {
    const belongs = (j) => run.aggregator.of[j] === which;
    if (!additive && name !== "normalised") {
      const named = run.groups.filter((group) => group.members.some(belongs)).map((group) => group.name);
      const label = named.length > 3 ? name : `${name} of ${named.join(", ")}`;
      return [{ label, members: new Set(run.names.map((_, j) => j).filter(belongs)), which }];
    }
    return run.groups.flatMap((group) => {
      const members = group.members.filter(belongs);
      return members.length > (run.pointing ? 0 : TOGETHER)
        ? [{ label: group.name, members: new Set(members), which }]
        : members.map((j) => ({ label: run.names[j], members: new Set([j]), which }));
    });
  });
}

// What each part of the bars is worth [A][parts].
function valuesOf(frame, shown) {
  const { run, episode, rows, advisors, parts, total } = frame;
  if (!run.known) return run.actions.map((_, a) => [total[a]]);
  const each = shown.map(({ members, which }) => {
    const part = parts.find((one) => one.number === which);
    const only = part ? part.at.map((_, k) => k).filter((k) => members.has(advisors[part.at[k]])) : [];
    if (!only.length) return new Float64Array(run.A);
    return (part.name === "normalised" ? normalisedShare : hearPart)(episode.table, run.A, part, rows, only);
  });
  return run.actions.map((_, a) => each.map((own) => own[a]));
}

// What a part is called in the bar of one action: under a maximum, whose wish it is.
function labelOf(frame, { label, which }, action) {
  const { run, parts, advice, advisors } = frame;
  if (run.aggregator.parts[which]?.name !== "max") return label;
  const part = parts.find(({ number }) => number === which);
  const members = part ? part.at.filter((_, k) => part.weights[k] !== 0) : [];
  if (!members.length) return label;
  return run.names[advisors[members.reduce((p, q) => (advice[q][action] > advice[p][action] ? q : p))]];
}

// What all parts of a bar come to, in words: "the sum", "max of fruits, plus sum of ghosts".
function wholeOf(run) {
  if (run.plain) return "the sum";
  if (!run.known) return `what ${run.aggregation} makes of them`;
  const { parts, of } = run.aggregator;
  if (parts.length === 1) return `${parts[0].name} of all`;
  return parts
    .map(({ name }, which) => {
      const groups = run.groups.filter((group) => group.members.some((j) => of[j] === which));
      return `${name} of ${groups.map((group) => group.name).join(", ")}`;
    })
    .join(", plus ");
}

// The longest of these texts that has room in so many pixels.
function fitting(texts, room) {
  return texts.find((text) => text.length * 6.3 + 8 < room) || "";
}

export class Bars {
  constructor() {
    this.body = el("div", { class: "bars" });
    this.all = el("div");
    this.open = el("details", { class: "more" }, el("summary", {}, "Every advisor"), this.all);
    this.numbers = new ActionNumbers();
    this.root = el("div", {}, this.numbers.root, this.body, this.open);
    this.run = null;
  }

  build(run) {
    this.run = run;
    const all = partsOf(run);
    const hues = huesOf(run, all.map(({ label }) => label));
    this.every = all.map((part, p) => ({ ...part, hue: all.length > 1 ? `part-${hues[p]}` : "" }));
    this.several = all.length > 1;
    const places = Array.from({ length: Math.min(all.length, MOST_PARTS) });
    this.rows = run.actions.map((name, a) => {
      const segments = places.map(() => el("span", {}, el("span", { class: "inside" })));
      const part = (kind) => el("span", { class: kind });
      const row = { segments, zero: part("zero"), mark: part("total"), tag: part("tag"), number: part("number") };
      row.lane = el("span", { class: "lane" }, ...segments, row.zero, row.mark);
      row.track = el("span", { class: "track", "aria-hidden": "true" }, row.lane);
      row.root = el(
        "div",
        { class: "bar", "data-action": a },
        el("span", { class: "action" }, actionText(name)),
        row.track,
        row.number,
        row.tag,
      );
      return row;
    });
    this.key = el("p", { class: "hint" });
    this.legend = el(
      "ul",
      { class: "parts", hidden: !this.several, "aria-label": "Parts of the bars" },
      places.map((_, p) => el("li", {}, el("span", { class: "patch", "aria-hidden": "true" }, String(p + 1)), el("span"))),
    );
    this.entropy = el("p", { class: "hint entropy", hidden: true });
    this.body.replaceChildren(...this.rows.map(({ root }) => root), this.legend, ...(run.continuous ? [this.entropy] : []), this.key);
    this.table = null;
  }

  // The parts that are drawn and what each is worth [A][parts]: of many those that weigh most now, the others as one.
  chosen(values) {
    if (this.every.length <= MOST_PARTS) return [this.every, values];
    const size = this.every.map((_, p) => Math.max(...values.map((row) => Math.abs(row[p]))));
    const order = this.every.map((_, p) => p).sort((p, q) => size[q] - size[p] || p - q);
    const kept = order.slice(0, MOST_PARTS - 1).filter((p) => size[p] > 0);
    const rest = order.slice(kept.length);
    const others = { label: `${rest.length} more`, which: -1, hue: "part-7" };
    const sums = values.map((row) => [...kept.map((p) => row[p]), rest.reduce((sum, p) => sum + row[p], 0)]);
    return [[...kept.map((p) => this.every[p]), others], sums];
  }

  // `playing`: only the strongest advisors are listed, as a list of hundreds would take longer than a frame.
  render(frame, playing = false) {
    const { run, total, advisors, action } = frame;
    if (run !== this.run) this.build(run);
    this.numbers.render(frame);
    const [parts, sums] = this.chosen(valuesOf(frame, this.every));
    [...this.legend.children].forEach((item, p) => {
      item.hidden = p >= parts.length;
      item.className = parts[p]?.hue ?? "";
      setText(item.lastChild, parts[p]?.label ?? "");
    });
    let low = 0;
    let high = 0;
    sums.forEach((row, a) => {
      low = Math.min(low, total[a], row.reduce((sum, value) => sum + Math.min(value, 0), 0));
      high = Math.max(high, total[a], row.reduce((sum, value) => sum + Math.max(value, 0), 0));
    });
    const width = high - low || 1;
    const track = widthOf(this.rows[0].lane, 40);
    // moved by `translate`, so that a bar that grows shifts nothing else
    const move = (node, value) => {
      node.style.translate = `${((track * (value - low)) / width).toFixed(2)}px`;
    };
    const best = advisors.length ? bestActions(total) : [];
    const shorter = (label, value, p) =>
      this.several ? [label, String(p + 1)] : [signed(value), signed(value, 1)];
    this.rows.forEach((row, a) => {
      let right = 0;
      let left = 0;
      row.segments.forEach((segment, p) => {
        segment.hidden = p >= parts.length;
        if (segment.hidden) return;
        const value = sums[a][p];
        const from = value >= 0 ? right : left + value;
        if (value >= 0) right += value;
        else left += value;
        const share = (100 * Math.abs(value)) / width;
        move(segment, from);
        segment.style.width = `${share}%`;
        segment.hidden = share < 0.15;
        segment.className = `segment ${parts[p].hue}${value < 0 ? " negative" : ""}`;
        const label = labelOf(frame, parts[p], a);
        setText(
          segment.firstChild,
          fitting([`${label} ${signed(value)}`, ...shorter(label, value, p)], (share * track) / 100),
        );
        segment.title = `${label} ${signed(value, 4)}`;
      });
      move(row.zero, 0);
      move(row.mark, total[a]);
      setText(row.number, advisors.length ? signed(total[a], digitsOf(total[a])) : "");
      row.number.dataset.exact = String(total[a]);
      row.root.classList.toggle("chosen", a === action);
      const wins = best.includes(a);
      const words = [];
      if (a === action) words.push(frame.explored ? "explored" : "taken");
      // the centre of the box is no action that it could have picked
      if (run.continuous) words.push(...(a !== action && advisors.length ? [gapText(total[a] - total[0])] : []));
      else if (wins && best.length > 1) words.push("tie");
      else if (wins && a !== action) words.push(action < 0 ? "best" : "best now");
      else if (!wins && best.length && !(a === action && frame.explored)) words.push(gapText(total[a] - total[best[0]]));
      setText(row.tag, words.join(", "));
    });
    const centre = "Continuous actions cannot be listed: the centre of the box stands for all others. ";
    const aggregated = run.continuous ? centre : run.plain ? "" : `Aggregated by ${run.aggregation}. `;
    const whole = this.several || !run.plain ? `The diamond is ${wholeOf(run)}. Hatched parts are negative. ` : "";
    setText(
      this.key,
      advisors.length ? `${aggregated}${whole}${advisors.length} of ${plural(run.n, "advisor")} ${advisors.length === 1 ? "is" : "are"} active.` : "The episode is over: no advisor is active.",
    );
    const { entropy } = frame.episode.arrays;
    this.entropy.hidden = !entropy || frame.step >= frame.episode.steps;
    if (!this.entropy.hidden) {
      const [own, other] = entropy.subarray(2 * frame.step, 2 * frame.step + 2);
      const worth = `${signed(own)} for the action taken, ${signed(other)} for the centre of the box`;
      setText(this.entropy, `Beside the advisors, entropy: ${worth}. ${run.entropy}`);
    }
    if (this.open.open) this.renderAll(frame, playing ? LISTED_PLAYING : Infinity);
  }

  renderAll({ run, episode, advisors, advice, rows }, most) {
    const { push } = episode.arrays;
    if (!this.table) {
      const head = ["advisor", ...run.actions.map(actionText), ...(push ? ["share of the push"] : [])];
      this.lines = el("tbody");
      this.table = tableOf("Every advisor's values", head, this.lines);
      this.all.replaceChildren(this.table);
    }
    const size = advice.map((own) => Math.max(...own.map(Math.abs)));
    const largest = Math.max(...size, 1e-300);
    const order = advisors.map((_, i) => i).sort((p, q) => size[q] - size[p]);
    const cells = () => run.actions.map(() => el("td", { class: "share" }));
    countRows(this.lines, order.length, () => rowOf("", [...cells(), ...(push ? [""] : [])]));
    order.forEach((i, k) => {
      const line = this.lines.children[k];
      if (line.hidden !== k >= most) line.hidden = k >= most;
      if (k >= most) return;
      setText(line.children[0], run.names[advisors[i]]);
      for (let a = 0; a < run.A; a += 1) {
        const cell = line.children[a + 1];
        setText(cell, signed(advice[i][a], 4));
        cell.classList.toggle("negative", advice[i][a] < 0);
        cell.style.setProperty("--share", `${Math.round((100 * Math.abs(advice[i][a])) / largest)}%`);
      }
      if (push) setText(line.lastChild, Number.isNaN(push[rows[i]]) ? "" : `${Math.round(100 * push[rows[i]])}%`);
    });
  }
}

// An action that is real numbers: each with its name, between its bounds.
export class ActionNumbers {
  constructor() {
    this.root = el("dl", { class: "action-numbers", "aria-label": "The action" });
    this.run = null;
  }

  render({ run, episode, step }) {
    this.root.hidden = !run.continuous;
    if (!run.continuous) return;
    const { names, low, high } = run.numbers;
    if (run !== this.run) {
      this.run = run;
      this.rows = names.map((name, k) => {
        const dot = el("span", { class: "dot" });
        const range = `${name}, from ${axisText(low[k])} to ${axisText(high[k])}`;
        const number = el("span", { class: "number" });
        const lane = el("span", { class: "range", "aria-hidden": "true" }, el("span", { class: "middle" }), dot);
        return { dot, number, root: el("div", { title: range }, el("dt", {}, name), el("dd", {}, lane, number)) };
      });
      this.root.replaceChildren(...this.rows.map((row) => row.root));
    }
    const over = step >= episode.steps;
    const numbers = over ? null : episode.numbersOf(step);
    this.rows.forEach(({ dot, number }, k) => {
      dot.hidden = over;
      if (!over) dot.style.left = `${(100 * (numbers[k] - low[k])) / (high[k] - low[k])}%`;
      setText(number, over ? "" : signed(numbers[k], 3));
    });
  }
}
