// The most decisive steps, as a strip of pictures; who drives the agent; and where it is stuck.

import { el, fitCanvas, plural, scoreText, sentenceCase, setText, signed } from "./dom.js";
import { heads, tableOf } from "./tables.js";
import { actionText } from "./bars.js";
import { boardOf, drawMoving, drawStill } from "./board.js";
import { changesText, isPushed, whenSeen } from "./insight.js";

const THUMB = 168; // pixels
const DRIVERS = 8; // advisors in the table before the rest is folded away

function boardThumb(canvas, { run, episode }, step, palette) {
  const { rows, columns } = run.grid;
  const size = Math.max(3, Math.floor(Math.min(THUMB / columns, 130 / rows)));
  const context = fitCanvas(canvas, columns * size, rows * size);
  const what = boardOf(run, episode, Math.min(step, episode.steps), null, palette);
  drawStill(context, size, what);
  drawMoving(context, size, what);
}

function goTo(store, episode, step) {
  store.set({ episode, step });
  window.scrollTo({ top: 0 });
}

export class Moments {
  constructor(store, loader, redraw) {
    Object.assign(this, { store, loader, redraw, seen: false });
    this.strip = el("ol", { class: "strip-of-moments" });
    this.hint = el("p", { class: "hint" });
    this.root = el("section", { class: "card across later", id: "moments" }, el("h2", {}, "Decisive moments"), this.strip, this.hint);
    whenSeen(this.root, () => {
      this.seen = true;
      redraw();
    });
  }

  render(answer, entry, palette) {
    setText(this.hint, answer ? answer.problem || answer.found.chosen : this.seen ? "Playing all episodes \u2026" : "");
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

// Each advisor's return, influence and calibration in the episodes on the page, and the episodes that are stuck.
export class Drives {
  constructor(store) {
    this.store = store;
    this.body = el("tbody");
    this.rest = el("tbody", { hidden: true });
    this.head = el("tr", {}, heads(["advisor", "return", "", "expected", "followed", "bias"]));
    this.table = tableOf("Advisors", this.head, [this.body, this.rest]);
    this.more = el("button", { class: "quiet", title: "Show all advisors, or few", onclick: () => this.fold() });
    this.hint = el("p", { class: "hint" });
    this.stuck = el("ul", { class: "stuck" });
    this.calm = el("p", { class: "hint" });
    this.root = el(
      "section",
      { class: "card across later", id: "drives" },
      el("h2", {}, "Which term drives it"),
      this.hint,
      this.table,
      this.more,
      el("h3", {}, "Stuck episodes"),
      this.calm,
      this.stuck,
    );
  }

  fold() {
    this.rest.hidden = !this.rest.hidden;
    setText(this.more, this.rest.hidden ? this.moreText : "Show fewer");
  }

  render(answer, waiting) {
    const found = answer?.found;
    setText(this.hint, found ? found.meaning : answer?.problem || (waiting ? "Playing all episodes \u2026" : ""));
    for (const part of [...this.root.children].slice(2)) part.hidden = !found;
    if (!found) return;
    this.more.hidden = Object.keys(found.advisors).length <= DRIVERS;
    this.calm.hidden = found.stuck.length > 0;
    if (this.shown === found) return;
    this.shown = found;
    const pushed = isPushed(found);
    setText(this.head.children[2], pushed ? "share of the push" : "without it another action");
    const strength = ({ influence }) => (pushed ? (influence.push ?? -1) : influence.changed);
    const rows = Object.entries(found.advisors)
      .sort(([, p], [, q]) => strength(q) - strength(p) || (q.influence.margin ?? 0) - (p.influence.margin ?? 0))
      .map(([name, one]) => driverRow(name, one));
    const groups = Object.entries(found.groups).map(([name, one]) => driverRow(`${name} (all)`, one, "sum"));
    this.body.replaceChildren(...groups, ...rows.slice(0, DRIVERS));
    this.rest.replaceChildren(...rows.slice(DRIVERS));
    this.rest.hidden = true;
    this.moreText = `${plural(rows.length - DRIVERS, "more advisor")}`;
    setText(this.more, this.moreText);
    setText(this.calm, `None of the ${plural(found.episodes.length, "episode")} is stuck.`);
    this.stuck.replaceChildren(
      ...found.stuck.map((one) => {
        const go = () => goTo(this.store, one.episode, one.since);
        const title = "Go to the step since which it is stuck";
        const text = `\u25a6 Episode ${one.episode + 1}, step ${one.since}`;
        const sentence = el("p", {}, `${sentenceCase(one.sentence)}.`);
        return el("li", {}, el("button", { class: "mark", title, onclick: go }, text), sentence);
      }),
    );
  }
}

function driverRow(name, { influence, calibration, return: paid }, kind = "") {
  const figure = (value, text = signed) => (value === null || value === undefined ? "" : text(value) || "0");
  const { predicted, followed, bias } = calibration ?? {};
  const cells = [figure(paid, scoreText), changesText(influence), figure(predicted), figure(followed), figure(bias)];
  return el("tr", { class: kind }, el("th", { scope: "row" }, name), cells.map((text) => el("td", {}, text)));
}
