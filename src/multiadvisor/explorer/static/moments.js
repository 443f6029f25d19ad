// The most decisive steps, as a strip of pictures.

import { el, fitCanvas, sentenceCase, setText } from "./dom.js";
import { actionText } from "./bars.js";
import { boardOf, drawMoving, drawStill } from "./board.js";

const THUMB = 168; // pixels

function boardThumb(canvas, { run, episode }, step, palette) {
  const { rows, columns } = run.grid;
  const size = Math.max(3, Math.floor(Math.min(THUMB / columns, 130 / rows)));
  const context = fitCanvas(canvas, columns * size, rows * size);
  const what = boardOf(run, episode, Math.min(step, episode.steps), null, palette);
  drawStill(context, size, what);
  drawMoving(context, size, what);
}

export function goTo(store, episode, step) {
  store.set({ episode, step });
  document.querySelector(".columns.episode").scrollIntoView();
}

export class Moments {
  constructor(store, loader) {
    Object.assign(this, { store, loader });
    this.strip = el("ol", { class: "strip-of-moments" });
    this.hint = el("p", { class: "hint" });
    this.root = el("section", { class: "card across later", id: "moments" }, el("h2", {}, "Decisive moments"), this.strip, this.hint);
  }

  render(answer, entry, palette) {
    setText(this.hint, answer ? answer.problem || answer.found.chosen : "Playing all episodes \u2026");
    const moments = answer?.found?.moments ?? [];
    this.strip.hidden = !moments.length;
    if (this.shown !== moments || this.palette !== palette) {
      this.shown = moments;
      this.palette = palette;
      this.pending = new Map();
      this.strip.replaceChildren(...moments.map((one) => this.item(one)));
    }
    // boards are drawn when their episodes are there
    for (const [one, canvas] of this.pending) {
      const loaded = this.loader.get(entry, one.episode);
      if (!loaded) continue;
      boardThumb(canvas, loaded, one.step, palette);
      this.pending.delete(one);
    }
  }

  item(one) {
    let view;
    if (one.picture?.startsWith("data:")) view = el("img", { src: one.picture, alt: "" });
    else if (one.picture) view = el("pre", { class: "terminal" }, one.picture.replace(/\u001b\[[\d;]*m/g, ""));
    else if (this.board) {
      view = el("canvas", { "aria-hidden": "true" });
      this.pending.set(one, view);
    } else view = el("span", { class: "where" }, one.where);
    return el(
      "li",
      {},
      el(
        "button",
        { class: "moment", title: "Go to this step", onclick: () => goTo(this.store, one.episode, one.step) },
        el("span", { class: "thumb" }, view),
        el("strong", {}, `Episode ${one.episode + 1}, step ${one.step}: ${actionText(one.action)}`),
        el("span", { class: "reason" }, `${sentenceCase(one.reason)}.`),
      ),
    );
  }
}
