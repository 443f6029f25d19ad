// What each term paid: step by step, so far, and in each episode.

import { el, field, option, sameParts, scoreText, setText, signed } from "./dom.js";
import { MOST_TERMS, stylesOf, termsOf } from "./hues.js";
import { Legend, Plot } from "./lines.js";
import { scrubbing } from "./strokes.js";
import { heads, rowOf, tableOf } from "./tables.js";

// Those that paid most and, as one, all others; each with the number of its colour.
function largestOf(episode, most) {
  const terms = termsOf(episode.run).map((term, hue) => ({ ...term, hue }));
  if (terms.length <= most) return terms;
  const size = new Float64Array(episode.run.paid.length);
  for (const paid of episode.paid) for (const { advisor, value } of paid) size[advisor] += Math.abs(value);
  const sizeOf = ({ members }) => members.reduce((sum, j) => sum + size[j], 0);
  const sorted = [...terms].sort((p, q) => sizeOf(q) - sizeOf(p));
  const kept = sorted.slice(0, most - 1).filter((term) => sizeOf(term) > 0);
  const rest = sorted.slice(kept.length);
  const others = { name: `${rest.length} others`, members: rest.flatMap(({ members }) => members), hue: most - 1 };
  return [...kept, others];
}

// Rewards [steps] and running returns [steps + 1] of the terms that paid most, before the weights.
export function rewardsOf(episode, most = MOST_TERMS) {
  const terms = largestOf(episode, most);
  const place = new Int32Array(episode.run.paid.length);
  terms.forEach(({ members }, k) => members.forEach((j) => (place[j] = k)));
  const rewards = terms.map(() => new Float64Array(episode.steps));
  for (let step = 0; step < episode.steps; step += 1)
    for (const { advisor, value } of episode.paid[step]) rewards[place[advisor]][step] += value;
  const returns = rewards.map((own) => {
    const sums = new Float64Array(episode.steps + 1);
    own.forEach((value, step) => (sums[step + 1] = sums[step] + value));
    return sums;
  });
  return { terms, rewards, returns };
}

// What a line alone would hide: where it ends, or a reward that stands alone, above all that of the last step.
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
      option("rewards", "each step's own"),
    );
    this.plot = new Plot();
    this.body = el("tbody");
    this.head = el("tr");
    this.table = tableOf("What each term paid", this.head, this.body);
    this.hint = el("p", { class: "hint" });
    this.root = el(
      "section",
      { class: "card later", id: "rewards" },
      el("div", { class: "line" }, el("h2", {}, "Rewards"), field("Lines", this.kind)),
      this.legend.root,
      this.plot.root,
      this.table,
      this.hint,
    );
    this.where = null;
    scrubbing(this.plot.canvas, store, (x) => (this.where ? this.where(x) : null));
  }

  // `known`: from many episodes, once the server has them; `number`: which episode this is.
  render(episode, step, palette, known, number) {
    if (this.episode !== episode) {
      this.episode = episode;
      this.series = rewardsOf(episode);
    }
    const { terms, rewards, returns } = this.series;
    const own = this.kind.value === "rewards";
    const values = own ? rewards : returns;
    const at = (k) => (own ? (step < episode.steps ? rewards[k][step] : 0) : returns[k][step]);
    const names = terms.map((term) => term.name);
    const styles = stylesOf(terms.map(({ hue }) => hue));
    this.legend.render(names, names.map((_, k) => scoreText(at(k))), styles);
    const key = [this.plot.width, palette, step, own, [...this.legend.off].join(), episode];
    if (!sameParts(this.drawn, key)) {
      this.drawn = key;
      const xs = Array.from({ length: episode.steps + 1 }, (_, t) => t);
      const lines = values.flatMap((ys, k) =>
        this.legend.shows(names[k]) ? [{ xs, ys, steps: !own, marks: marksOf(ys, own), ...styles[k] }] : [],
      );
      const told = names.map((name, k) => `${name} ${signed(at(k))}`).join("; ");
      const label = `${own ? "Rewards of step" : "Paid before step"} ${step}: ${told}`;
      const yName = own ? "reward of the step" : "paid so far";
      const axes = { xs: [0, Math.max(1, episode.steps)], xName: "step", yName, cursor: step };
      this.where = this.plot.draw({ lines, palette, ...axes }, label);
    }
    this.renderTable(terms, returns, known, number);
    setText(
      this.hint,
      `What ${terms.length === 1 ? "the advisor was" : "the advisors were"} paid, before the weights.${
        terms.length < episode.run.paid.length ? " Those that paid most are shown; groups are sums." : ""
      }${episode.run.pointing ? " Each is paid 1 for what it points at; the score is the environment's own." : ""}`,
    );
  }

  renderTable(terms, returns, known, number) {
    const key = [this.series, known, number];
    if (sameParts(this.told, key)) return;
    this.told = key;
    const names = this.episode.run.paid.map(({ name }) => name);
    const of = (advisors) => (sum, j) => sum + (advisors[names[j]] ?? 0);
    const paid = ({ advisors }) => terms.map(({ members }) => members.reduce(of(advisors), 0));
    const rows = (known?.episodes ?? []).map((one) => ({ ...one, paid: paid(one) }));
    if (!rows.some((one) => one.episode === number)) {
      const { steps: length, earned } = this.episode;
      const score = earned.reduce((sum, value) => sum + value, 0);
      rows.push({ episode: number, length, score, paid: returns.map((sums) => sums[length]) });
      rows.sort((p, q) => p.episode - q.episode);
    }
    this.head.replaceChildren(...heads(["episode", "steps", "score", ...terms.map((term) => term.name)]));
    this.body.replaceChildren(
      ...rows.map((one) => {
        const go = el(
          "button",
          { class: "quiet", title: "Show this episode", onclick: () => this.store.set({ episode: one.episode, step: 0 }) },
          `episode ${one.episode + 1}`,
        );
        const cells = [String(one.length), ...[one.score, ...one.paid].map(scoreText)];
        return rowOf(go, cells, one.episode === number ? "now" : "");
      }),
    );
  }
}
