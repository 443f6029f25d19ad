// One cell in exact numbers: the preference for every action, and the five advisors that weigh most.

import { el, precise, setText } from "./dom.js";
import { bestActions } from "./maths.js";
import { actionText } from "./bars.js";
import { heads, rowOf, tableOf } from "./tables.js";

const TOP_FIVE = 5;

export class Inspector {
  constructor(store) {
    this.title = el("h3");
    const pin = () => store.set({ cell: this.pinned ? -1 : this.cell });
    this.pin = el("button", { class: "quiet", "aria-pressed": "false", onclick: pin }, "Pin");
    this.body = el("tbody");
    this.head = el("tr");
    const box = tableOf("Values of the cell", this.head, this.body, "exact");
    this.table = box.firstChild;
    this.root = el("div", { class: "inspector" }, el("div", { class: "line" }, this.title, this.pin), box);
    this.run = null;
  }

  render(frame, cell, pinned) {
    const { run, episode, step, weights } = frame;
    if (run !== this.run) {
      this.run = run;
      this.head.replaceChildren(...heads(["value of", ...run.actions.map(actionText)]));
      this.lines = Array.from({ length: TOP_FIVE + 1 }, () => rowOf("", run.actions.map(() => "")));
      this.body.replaceChildren(...this.lines);
      this.lines[0].className = "sum";
    }
    this.cell = cell;
    this.pinned = pinned;
    const place = run.grid ? run.grid.cells[cell] : null;
    const own = run.grid && cell === episode.cells(step)[0];
    setText(this.title, place ? `Cell (${place[0]}, ${place[1]})${own ? ", here" : ""}` : "This state");
    this.pin.hidden = !place;
    this.pin.setAttribute("aria-pressed", String(pinned));
    setText(this.pin, pinned ? "Unpin" : "Pin");
    this.table.dataset.cell = String(cell);
    this.table.dataset.step = String(step);
    const total = episode.preferences(step, weights, place ? cell : null);
    const { advisors, advice } = episode.advice(step, weights, place ? cell : null);
    const best = advisors.length ? bestActions(total) : [];
    const size = advice.map((values) => Math.max(...values.map(Math.abs)));
    const order = advisors
      .map((_, i) => i)
      .sort((p, q) => size[q] - size[p])
      .slice(0, TOP_FIVE);
    const all = run.plain ? "all, Q\u03a3" : `all, by ${run.aggregation}`;
    this.fill(this.lines[0], advisors.length ? all : "no active advisors", advisors.length ? total : null, best);
    for (let k = 0; k < TOP_FIVE; k += 1) {
      const i = order[k];
      this.lines[k + 1].hidden = i === undefined;
      if (i !== undefined)
        this.fill(this.lines[k + 1], run.names[advisors[i]], advice[i], size[i] > 0 ? bestActions(advice[i]) : []);
    }
  }

  fill(line, name, values, best) {
    setText(line.children[0], name);
    for (let a = 0; a < this.run.A; a += 1) {
      const cell = line.children[a + 1];
      setText(cell, values ? precise(values[a]) : "");
      cell.classList.toggle("best", best.includes(a));
    }
  }
}
