// What each term paid: turn by turn, so far, and in each game.

import { el, option, scoreText, setText, signed, widthOf } from "./dom.js";
import { MOST_TERMS, stylesOf, termsOf } from "./hues.js";
import { Legend, drawLines } from "./lines.js";

// Those that paid most and, as one, all others; each with the number of its colour.
function largestOf(game, most) {
  const terms = termsOf(game.run).map((term, hue) => ({ ...term, hue }));
  if (terms.length <= most) return terms;
  const size = new Float64Array(game.run.paid.length);
  for (const paid of game.paid) for (const { advisor, value } of paid) size[advisor] += Math.abs(value);
  const sizeOf = ({ members }) => members.reduce((sum, j) => sum + size[j], 0);
  const sorted = [...terms].sort((p, q) => sizeOf(q) - sizeOf(p));
  const kept = sorted.slice(0, most - 1).filter((term) => sizeOf(term) > 0);
  const rest = sorted.slice(kept.length);
  const others = { name: `${rest.length} others`, members: rest.flatMap(({ members }) => members), hue: most - 1 };
  return [...kept, others];
}

// Rewards [turns] and running returns [turns + 1] of the terms that paid most, before the weights.
export function rewardsOf(game, most = MOST_TERMS) {
  const terms = largestOf(game, most);
  const place = new Int32Array(game.run.paid.length);
  terms.forEach(({ members }, k) => members.forEach((j) => (place[j] = k)));
  const rewards = terms.map(() => new Float64Array(game.turns));
  for (let turn = 0; turn < game.turns; turn += 1)
    for (const { advisor, value } of game.paid[turn]) rewards[place[advisor]][turn] += value;
  const returns = rewards.map((own) => {
    const sums = new Float64Array(game.turns + 1);
    own.forEach((value, turn) => (sums[turn + 1] = sums[turn] + value));
    return sums;
  });
  return { terms, rewards, returns };
}

// What a line alone would hide: where it ends, or a reward that stands alone, above all that of the last turn.
function marksOf(ys, own) {
  if (!own) return [ys.length - 1];
  return [...ys.keys()].filter((k) => ys[k] !== 0 && !ys[k - 1] && !ys[k + 1]);
}

export class Rewards {
  constructor(store, redraw) {
    this.store = store;
    this.legend = new Legend("Terms of the reward", redraw);
    this.kind = el(
      "select",
      { onchange: redraw, id: "rewards-kind" },
      option("returns", "paid so far"),
      option("rewards", "each turn's own"),
    );
    this.canvas = el("canvas", { role: "img" });
    this.plot = el("div", { class: "plot" }, this.canvas);
    this.body = el("tbody");
    this.head = el("tr");
    this.table = el(
      "div",
      { class: "scroll", tabIndex: 0, role: "region", "aria-label": "What each term paid" },
      el("table", { class: "numbers" }, el("thead", {}, this.head), this.body),
    );
    this.hint = el("p", { class: "hint" });
    this.root = el(
      "section",
      { class: "card later", id: "rewards" },
      el("div", { class: "line" }, el("h2", {}, "Rewards"), el("label", { class: "field" }, el("span", {}, "Lines"), this.kind)),
      this.legend.root,
      this.plot,
      this.table,
      this.hint,
    );
    this.where = null;
    const go = (event) => {
      if (event.buttons === 1 && this.where) store.set({ turn: Math.round(this.where(event.clientX)) });
    };
    this.canvas.addEventListener("pointerdown", go);
    this.canvas.addEventListener("pointermove", go);
  }

  // `known`: from many games, once the server has them; `number`: which game this is.
  render(game, turn, palette, known, number) {
    if (this.game !== game) {
      this.game = game;
      this.series = rewardsOf(game);
    }
    const { terms, rewards, returns } = this.series;
    const own = this.kind.value === "rewards";
    const values = own ? rewards : returns;
    const at = (k) => (own ? (turn < game.turns ? rewards[k][turn] : 0) : returns[k][turn]);
    const names = terms.map((term) => term.name);
    const styles = stylesOf(terms.map(({ hue }) => hue));
    this.legend.render(
      names,
      names.map((_, k) => scoreText(at(k)) || "0"),
      styles,
    );
    const width = widthOf(this.plot, 220);
    const key = [width, palette, turn, own, [...this.legend.off].join(), game];
    if (!this.drawn || key.some((part, k) => part !== this.drawn[k])) {
      this.drawn = key;
      const xs = Array.from({ length: game.turns + 1 }, (_, t) => t);
      const lines = values.flatMap((ys, k) =>
        this.legend.shows(names[k]) ? [{ xs, ys, steps: !own, marks: marksOf(ys, own), ...styles[k] }] : [],
      );
      this.where = drawLines(this.canvas, {
        lines,
        width,
        height: 170,
        palette,
        xs: [0, Math.max(1, game.turns)],
        xName: "turn",
        yName: own ? "reward of the turn" : "paid so far",
        cursor: turn,
      });
      this.canvas.setAttribute(
        "aria-label",
        `${own ? "Rewards of turn" : "Paid before turn"} ${turn}: ${names.map((name, k) => `${name} ${signed(at(k))}`).join("; ")}`,
      );
    }
    this.renderTable(terms, returns, known, number);
    setText(
      this.hint,
      `What ${terms.length === 1 ? "the advisor was" : "the advisors were"} paid, before the weights.${
        terms.length < game.run.paid.length ? " Those that paid most are shown; groups are sums." : ""
      }${game.run.pointing ? " Each is paid 1 for what it points at; the score is the environment's own." : ""}`,
    );
  }

  renderTable(terms, returns, known, number) {
    const key = [this.series, known, number];
    if (this.told && key.every((part, k) => part === this.told[k])) return;
    this.told = key;
    const names = this.game.run.paid.map(({ name }) => name);
    const rows = known ? known.games.map((one) => ({ game: one.game, turns: one.turns, score: one.score, paid: one.advisors })) : [];
    const cells = (one) => terms.map(({ members }) => members.reduce((sum, j) => sum + (one.paid[names[j]] ?? 0), 0));
    if (!rows.some((one) => one.game === number)) {
      const { game } = this;
      const score = game.earned.reduce((sum, value) => sum + value, 0);
      rows.push({ game: number, turns: game.turns, score, own: returns.map((sums) => sums[game.turns]) });
      rows.sort((p, q) => p.game - q.game);
    }
    const head = ["game", "turns", "score", ...terms.map((term) => term.name)];
    this.head.replaceChildren(...head.map((text) => el("th", { scope: "col" }, text)));
    this.body.replaceChildren(
      ...rows.map((one) => {
        const go = el(
          "button",
          { type: "button", class: "quiet", title: "Show this episode", onclick: () => this.store.set({ game: one.game, turn: 0 }) },
          `game ${one.game + 1}`,
        );
        const figures = [one.score, ...(one.own ?? cells(one))];
        return el(
          "tr",
          { class: one.game === number ? "now" : "" },
          el("th", { scope: "row" }, go),
          el("td", {}, String(one.turns)),
          ...figures.map((value) => el("td", {}, scoreText(value) || "0")),
        );
      }),
    );
  }
}
