// Why this action: what each action is worth, and who makes it so. One bar for each action, negative to the left.

import { el, gapText, setText, signed, widthOf } from "./dom.js";
import { bestActions } from "./maths.js";

const TOGETHER = 6; // a group with more advisors than this is one part of the bar
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

// The parts of a bar: large groups together, the others one by one.
function partsOf(run) {
  return run.groups.flatMap((group) =>
    group.members.length > TOGETHER
      ? [{ label: group.name, members: new Set(group.members) }]
      : group.members.map((j) => ({ label: run.names[j], members: new Set([j]) })),
  );
}

// The longest of these texts that has room in so many pixels.
function fitting(texts, room) {
  return texts.find((text) => text.length * 6.3 + 10 < room) || "";
}

export class Bars {
  constructor() {
    this.body = el("div", { class: "bars" });
    this.all = el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Every advisor's values" });
    this.open = el("details", { class: "more" }, el("summary", {}, "Every advisor"), this.all);
    this.root = el("div", {}, this.body, this.open);
    this.run = null;
  }

  build(run) {
    this.run = run;
    this.parts = partsOf(run);
    if (this.parts.length > 24) {
      const rest = new Set(this.parts.slice(23).flatMap((part) => [...part.members]));
      this.parts = [...this.parts.slice(0, 23), { label: `${rest.size} more`, members: rest }];
    }
    this.rows = run.actions.map((name, a) => {
      const segments = this.parts.map((part) =>
        el("span", { class: "segment", title: part.label }, el("span", { class: "inside" })),
      );
      const zero = el("span", { class: "zero" });
      const mark = el("span", { class: "total" });
      const row = {
        segments,
        zero,
        mark,
        tag: el("span", { class: "tag" }),
        number: el("span", { class: "number" }),
        track: el("span", { class: "track", "aria-hidden": "true" }, ...segments, zero, mark),
      };
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
    this.body.replaceChildren(...this.rows.map((row) => row.root), this.key);
    this.table = null;
  }

  render(frame) {
    const { run, total, advisors, advice, action } = frame;
    if (run !== this.run) this.build(run);
    const sums = run.actions.map((_, a) => this.parts.map(() => 0));
    advisors.forEach((j, i) => {
      const p = this.parts.findIndex((part) => part.members.has(j));
      for (let a = 0; a < run.A; a += 1) sums[a][p] += advice[i][a];
    });
    let low = 0;
    let high = 0;
    sums.forEach((row, a) => {
      low = Math.min(
        low,
        total[a],
        row.reduce((sum, value) => sum + Math.min(value, 0), 0),
      );
      high = Math.max(
        high,
        total[a],
        row.reduce((sum, value) => sum + Math.max(value, 0), 0),
      );
    });
    const width = high - low || 1;
    const at = (value) => (100 * (value - low)) / width;
    const track = widthOf(this.rows[0].track, 40);
    const best = advisors.length ? bestActions(total) : [];
    this.rows.forEach((row, a) => {
      let right = 0;
      let left = 0;
      row.segments.forEach((segment, p) => {
        const value = sums[a][p];
        const from = value >= 0 ? right : left + value;
        if (value >= 0) right += value;
        else left += value;
        const share = (100 * Math.abs(value)) / width;
        segment.style.left = `${at(from)}%`;
        segment.style.width = `${share}%`;
        segment.hidden = share < 0.15;
        segment.classList.toggle("negative", value < 0);
        setText(
          segment.firstChild,
          fitting([`${this.parts[p].label} ${signed(value)}`, signed(value), signed(value, 1)], (share * track) / 100),
        );
        segment.title = `${this.parts[p].label} ${signed(value, 4)}`;
      });
      row.zero.style.left = `${at(0)}%`;
      row.mark.style.left = `${at(total[a])}%`;
      setText(row.number, advisors.length ? signed(total[a], 3) : "");
      row.number.dataset.exact = String(total[a]);
      row.root.classList.toggle("chosen", a === action);
      const wins = best.includes(a);
      const words = [];
      if (a === action) words.push(frame.explored ? "explored" : "done");
      if (wins && best.length > 1) words.push("tie");
      else if (wins && a !== action) words.push(action < 0 ? "best" : "best now");
      else if (!wins && best.length) words.push(gapText(total[a] - total[best[0]]));
      setText(row.tag, words.join(", "));
    });
    const parts = this.parts.length > 1 ? "The diamond is the sum. " : "";
    setText(
      this.key,
      advisors.length ? `${parts}${advisors.length} of ${run.n} advisors speak.` : "The game is over: nobody speaks.",
    );
    if (this.open.open) this.renderAll(frame);
  }

  renderAll({ run, advisors, advice }) {
    if (!this.table) {
      const head = el(
        "tr",
        {},
        el("th", { scope: "col" }, "advisor"),
        run.actions.map((name) => el("th", { scope: "col" }, actionText(name))),
      );
      this.lines = el("tbody");
      this.table = el("table", { class: "numbers" }, el("thead", {}, head), this.lines);
      this.all.replaceChildren(this.table);
    }
    const size = advice.map((own) => Math.max(...own.map(Math.abs)));
    const most = Math.max(...size, 1e-300);
    const order = advisors.map((_, i) => i).sort((p, q) => size[q] - size[p]);
    while (this.lines.children.length < order.length)
      this.lines.append(
        el(
          "tr",
          {},
          el("th", { scope: "row" }),
          run.actions.map(() => el("td", { class: "share" })),
        ),
      );
    while (this.lines.children.length > order.length) this.lines.lastChild.remove();
    order.forEach((i, k) => {
      const line = this.lines.children[k];
      setText(line.children[0], run.names[advisors[i]]);
      for (let a = 0; a < run.A; a += 1) {
        const cell = line.children[a + 1];
        setText(cell, signed(advice[i][a], 4));
        cell.classList.toggle("negative", advice[i][a] < 0);
        cell.style.setProperty("--share", `${Math.round((100 * Math.abs(advice[i][a])) / most)}%`);
      }
    });
  }
}
