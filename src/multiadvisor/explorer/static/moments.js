// The most decisive steps, as a strip of pictures.

import { el, fitCanvas, sentenceCase, setText } from "./dom.js";
import { actionText } from "./bars.js";
import { boardOf, drawMoving, drawStill } from "./board.js";
import { Answers } from "./source.js";

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
  constructor(store, loader, source, redraw) {
    Object.assign(this, { store, loader, source, answers: new Answers(redraw) });
    this.strip = el("ol", { class: "strip-of-moments" });
    this.hint = el("p", { class: "hint" });
    this.root = el("section", { class: "card across later", id: "moments" }, el("h2", {}, "Decisive moments"), this.strip, this.hint);
  }

  render(answer, entry, version, palette) {
    setText(this.hint, answer ? answer.problem || answer.found.chosen : "Playing all episodes \u2026");
    const moments = answer?.found?.moments ?? [];
    this.strip.hidden = !moments.length;
    if (this.shown !== moments || this.palette !== palette) {
      this.shown = moments;
      this.palette = palette;
      this.thumbs = moments.map((one) => this.thumb(one));
      this.pending = new Map(this.board ? moments.map((one, k) => [one, this.thumbs[k].firstChild]) : []);
      this.strip.replaceChildren(...moments.map((one, k) => this.item(one, this.thumbs[k])));
      this.looked = null;
    }
    if (moments.length && !this.board) this.look(`${entry.id} ${version}`, entry.id);
    // boards are drawn when their episodes are there
    for (const [one, canvas] of this.pending) {
      const loaded = this.loader.get(entry, one.episode);
      if (!loaded) continue;
      boardThumb(canvas, loaded, one.step, palette);
      this.pending.delete(one);
    }
  }

  // What the environment draws comes later, as that may take long; until then, and where it draws nothing, a text.
  look(key, id) {
    const pictures = this.answers.of(key, () => this.source.json(`moments/${id}`))?.found?.pictures;
    if (!pictures || this.looked === pictures) return;
    this.looked = pictures;
    this.shown.forEach(({ episode, step }, k) => {
      // of a newer checkpoint there are none here
      const picture = pictures.find((one) => one.episode === episode && one.step === step)?.picture;
      if (picture?.startsWith("data:")) this.thumbs[k].replaceChildren(el("img", { src: picture, alt: "" }));
      else if (picture)
        this.thumbs[k].replaceChildren(el("pre", { class: "terminal" }, picture.replace(/\u001b\[[\d;]*m/g, "")));
    });
  }

  thumb({ where }) {
    const view = this.board ? el("canvas", { "aria-hidden": "true" }) : el("span", { class: "where" }, where);
    return el("span", { class: "thumb" }, view);
  }

  item(one, thumb) {
    return el(
      "li",
      {},
      el(
        "button",
        { class: "moment", title: "Go to this step", onclick: () => goTo(this.store, one.episode, one.step) },
        thumb,
        el("strong", {}, `Episode ${one.episode + 1}, step ${one.step}: ${actionText(one.action)}`),
        el("span", { class: "reason" }, `${sentenceCase(one.reason)}.`),
      ),
    );
  }
}
