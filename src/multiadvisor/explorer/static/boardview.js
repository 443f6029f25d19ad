// The board as a part of the page: the canvas, an ARIA grid behind it for keyboards and screen readers, the pointer.

import { el, fitCanvas, precise, sameParts, setText, signed } from "./dom.js";
import { drawMoving, drawStill } from "./board.js";
import { bestActions } from "./maths.js";

const MOST = 1681; // cells of the ARIA grid: larger boards show a window of 41 x 41 around the player

export class BoardView {
  constructor(label, { hover = () => {}, pin = () => {} } = {}) {
    this.hover = hover;
    this.pin = pin;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.grid = el("div", { class: "cells", role: "grid", "aria-label": label });
    this.root = el("div", { class: "board" }, this.grid, this.canvas);
    this.low = el("span", { class: "number" });
    this.high = el("span", { class: "number" });
    this.ramp = el("span", { class: "ramp", "aria-hidden": "true" });
    this.unknown = el("span", {}, el("span", { class: "hatched", "aria-hidden": "true" }), "hatched: not known");
    this.legend = el(
      "div",
      { class: "legend" },
      el("span", {}, "value of the best action"),
      this.low,
      this.ramp,
      this.high,
      this.unknown,
    );
    this.picture = document.createElement("canvas");
    this.still = null;
    this.shape = "";
    this.what = null;
    this.focused = -1;
    this.root.addEventListener("pointermove", (event) => this.hover(this.cellUnder(event)));
    this.root.addEventListener("pointerleave", () => this.hover(-1));
    this.root.addEventListener("click", (event) => {
      const cell = this.cellUnder(event);
      if (cell >= 0) this.pin(cell);
    });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("focusin", (event) => {
      this.focused = Number(event.target.dataset.place ?? -1);
      this.hover(this.what ? this.what.run.cellAt[this.focused] : -1);
      this.relabel();
    });
    this.grid.addEventListener("focusout", () => {
      this.hover(-1);
    });
  }

  cellUnder(event) {
    if (!this.what) return -1;
    const box = this.canvas.getBoundingClientRect();
    const { grid, cellAt } = this.what.run;
    const column = Math.floor(((event.clientX - box.left) / box.width) * grid.columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * grid.rows);
    if (row < 0 || column < 0 || row >= grid.rows || column >= grid.columns) return -1;
    return cellAt[row * grid.columns + column];
  }

  // The grid's cells are made once for a shape; only the focused one is told in full.
  build(run, centre) {
    const { rows, columns } = run.grid;
    const wide = rows * columns <= MOST ? [0, rows, 0, columns] : windowAround(centre, run.grid);
    const shape = `${run.task} ${rows} ${columns} ${wide.join(" ")}`;
    if (shape === this.shape) return;
    this.shape = shape;
    const [top, bottom, left, right] = wide;
    this.grid.setAttribute("aria-rowcount", rows);
    this.grid.setAttribute("aria-colcount", columns);
    const lines = [];
    for (let row = top; row < bottom; row += 1) {
      const line = el("div", { role: "row", "aria-rowindex": row + 1 });
      for (let column = left; column < right; column += 1) {
        const place = row * columns + column;
        const free = run.cellAt[place] >= 0;
        const label = `row ${row}, column ${column}${free ? "" : ", a wall"}`;
        line.append(
          el("span", {
            role: "gridcell",
            tabIndex: -1,
            "data-place": place,
            "aria-colindex": column + 1,
            "aria-label": label,
          }),
        );
      }
      lines.push(line);
    }
    this.grid.replaceChildren(...lines);
    const start = this.at(run.cellAt.indexOf(centre)) || this.grid.querySelector("[role=gridcell]");
    if (start) start.tabIndex = 0;
  }

  at(place) {
    return this.grid.querySelector(`[data-place="${place}"]`);
  }

  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const { columns } = this.what.run.grid;
    const place = Number(event.target.dataset.place);
    if (moves[event.key]) {
      const [down, right] = moves[event.key];
      const column = (place % columns) + right;
      if (column < 0 || column >= columns) return;
      const to = this.at(place + down * columns + right);
      if (to) {
        event.target.tabIndex = -1;
        to.tabIndex = 0;
        to.focus();
      }
    } else if (event.key === "Enter") {
      const cell = this.what.run.cellAt[place];
      if (cell >= 0) this.pin(cell);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  relabel() {
    const node = this.focused >= 0 ? this.at(this.focused) : null;
    const { run, episode, step, landscape } = this.what;
    const cell = run.cellAt[this.focused];
    if (!node || cell === undefined || cell < 0) return;
    const own = landscape.subarray(cell * run.A, (cell + 1) * run.A);
    const best = bestActions(own);
    const things = [];
    run.grid.items.forEach((item, k) => {
      if (item.cell === cell && episode.hasItem(step, k)) things.push(item.kind);
    });
    episode.cells(step).forEach((where, k) => {
      if (where === cell) things.push(k === 0 ? "player" : `${run.grid.sprites[k].kind} ${k}`);
    });
    const [row, column] = run.grid.cells[cell];
    const wish = best.length
      ? `Best: ${best.map((a) => run.actions[a]).join(" or ")}, ${precise(own[best[0]])}`
      : "What it is worth is not known";
    node.setAttribute(
      "aria-label",
      `row ${row}, column ${column}${things.length ? `, ${things.join(", ")}` : ""}. ${wish}`,
    );
  }

  // What does not move is kept as a picture from the second frame of a step on: a large board takes long.
  drawnStill(context, what, size) {
    const { rows, columns } = what.run.grid;
    const parts = ["run", "episode", "step", "landscape", "heights", "heat", "arrows", "ways", "palette"];
    const key = [size, window.devicePixelRatio, ...parts.map((name) => what[name])];
    key.push(JSON.stringify([what.attractors || [], what.led || []]));
    if (!sameParts(this.still?.key, key)) {
      this.still = { key, drawn: false, scale: drawStill(context, size, what) };
      return this.still.scale;
    }
    if (!this.still.drawn) {
      drawStill(fitCanvas(this.picture, columns * size, rows * size), size, what);
      this.still.drawn = true;
    }
    context.drawImage(this.picture, 0, 0, columns * size, rows * size);
    return this.still.scale;
  }

  // Draws `what` of the board into the box, as large as it fits.
  render(what, box) {
    this.what = what;
    const { rows, columns } = what.run.grid;
    const size = Math.max(3, Math.floor(Math.min(box.width / columns, box.height / rows)));
    this.build(what.run, what.episode.cells(what.step)[0]);
    const context = fitCanvas(this.canvas, columns * size, rows * size);
    this.root.style.width = `${columns * size}px`;
    this.root.style.height = `${rows * size}px`;
    const scale = this.drawnStill(context, what, size);
    drawMoving(context, size, what);
    this.legend.classList.toggle("mixed", scale.mixed);
    this.legend.classList.toggle("below", scale.high <= 0 && scale.low < 0);
    this.legend.hidden = !what.heat;
    this.unknown.hidden = what.run.table !== null && what.run.known;
    const bound = Math.max(-scale.low, scale.high);
    setText(this.low, signed(scale.mixed ? -bound : scale.low));
    setText(this.high, signed(scale.mixed ? bound : scale.high));
    if (document.activeElement && this.grid.contains(document.activeElement) && !what.fraction) this.relabel();
  }
}

function windowAround(cell, grid) {
  const [row, column] = grid.cells[cell];
  const top = Math.max(0, Math.min(row - 20, grid.rows - 41));
  const left = Math.max(0, Math.min(column - 20, grid.columns - 41));
  return [top, Math.min(grid.rows, top + 41), left, Math.min(grid.columns, left + 41)];
}
