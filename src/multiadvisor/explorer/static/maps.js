// Maps of a sweep: what was reached over two settings, a button for each pair; its agent is trained again and watched.

import { el, field, fill, setText } from "./dom.js";
import { Answers } from "./source.js";
import { rowOf, tableOf } from "./tables.js";

const valueOf = (cell, measure) => cell?.figures[measure];

export class Maps {
  constructor(source, redraw, watch) {
    Object.assign(this, { source, redraw, watch, answers: new Answers(redraw), maps: [], busy: false });
    this.pick = el("select", { onchange: redraw });
    this.hint = el("p", { class: "hint" });
    this.progress = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Training this cell's agent" });
    this.body = el("div");
    const head = el("div", { class: "line" }, el("h2", {}, "Maps"), field("Map", this.pick));
    this.root = el("section", { class: "card wide", hidden: true }, head, this.hint, this.progress, this.body);
  }

  load() {
    if (!this.source.live) return;
    // where it fails, whatever is asked next says why
    this.maps = this.answers.of("maps", () => this.source.json("maps"))?.found?.maps ?? this.maps;
  }

  render(measure) {
    const { maps } = this;
    fill(this.pick, [maps], () => maps.map(({ task, label }, k) => [k, `${task}: ${label}`]), this.pick.value || 0);
    const map = maps[Number(this.pick.value)];
    this.root.hidden = !map;
    if (!map) return;
    const shown = map.cells.flat().map((cell) => valueOf(cell, measure)).filter(Number.isFinite);
    const [low, high] = [Math.min(...shown), Math.max(...shown)];
    const range = `${low.toFixed(2)} to ${high.toFixed(2)}`.replaceAll("-", "\u2212");
    const text = `The last ${measure} of each run, from ${range}; choose a cell to train its agent again and watch it.`;
    setText(this.hint, this.problem || text);
    if (this.drawn === map && this.measure === measure) return;
    Object.assign(this, { drawn: map, measure });
    const buttons = map.cells.map((row) => row.map((cell) => this.button(cell, measure, low, high)));
    const lines = map.rows.map((row, k) => rowOf(String(row), buttons[k])).reverse();
    const corner = `${map.upwards} \u2191, ${map.across} \u2192`;
    this.body.replaceChildren(tableOf(map.label, [corner, ...map.columns.map(String)], el("tbody", {}, lines), "map"));
  }

  button(cell, measure, low, high) {
    const value = valueOf(cell, measure);
    if (!Number.isFinite(value)) return null;
    const share = Math.round((100 * (value - low)) / (high - low || 1));
    const node = el("button", { onclick: () => this.choose(cell) }, value.toFixed(Math.abs(value) >= 100 ? 0 : 2).replace("-", "\u2212"));
    node.style.background = `color-mix(in srgb, var(--positive-fill) ${share}%, var(--card))`;
    return node;
  }

  async choose(cell) {
    if (this.busy) return;
    this.busy = true;
    this.progress.hidden = false;
    this.problem = "";
    try {
      await this.watch(cell.run, (share) => (this.progress.value = share));
    } catch (error) {
      this.problem = error.message;
    }
    this.busy = false;
    this.progress.hidden = true;
    this.redraw();
  }
}
