// Two agents in the same episode, their clocks locked: where do they part?

import { el, field, sameParts, scoreText, setText, settle, widthOf } from "./dom.js";
import { boardOf } from "./board.js";
import { frameOf, ledItems } from "./frame.js";
import { Bars, actionPhrase } from "./bars.js";
import { BoardView } from "./boardview.js";
import { reasonText } from "./reason.js";
import { Timeline, seriesOf } from "./timeline.js";
import { fillRows, tableOf } from "./tables.js";
import { answerOf } from "./answer.js";
import { Answers } from "./source.js";
import { PictureView } from "./picture.js";

function sameDone(one, two, step) {
  if (!one.run.continuous) return one.action[step] === two.action[step];
  const other = two.numbersOf(step);
  return one.numbersOf(step).every((value, k) => value === other[k]);
}

// The first step in which the two do not do the same; -1 where they never part.
export function firstDivergence(one, two) {
  const steps = Math.min(one.steps, two.steps);
  for (let step = 0; step < steps; step += 1) if (!sameDone(one, two, step)) return step;
  return one.steps === two.steps ? -1 : steps;
}

// What a run is called: where its name says all there is to say of it, by that.
export function titleOf({ name, label }) {
  return name === label ? name : `${name} (${label})`;
}

// Whether a run, by its place, can stand beside another one: never beside itself, and only beside one of its task.
export function comparable(runs, one, two) {
  return one !== two && runs[two].task === runs[one]?.task && !runs[two].diagnosis && !runs[one].diagnosis;
}

// The place of the second run: the one that is named or, where that cannot be compared with the first, one that can; -1.
export function otherOf(runs, { run, other }) {
  if (!runs[other] || comparable(runs, run, other)) return runs[other] ? other : -1;
  return runs.findIndex((_, k) => comparable(runs, run, k));
}

class Side {
  constructor(label, source, redraw) {
    this.picture = new PictureView(source, redraw);
    this.board = new BoardView(label);
    this.bars = new Bars();
    this.sentence = el("p", { class: "sentence" });
    this.title = el("h2", { title: "The run on this side" });
    this.box = el("div", { class: "boardbox" }, this.board.root);
    this.root = el(
      "section",
      { class: "card" },
      this.title,
      this.box,
      this.picture.root,
      this.board.legend,
      this.sentence,
      this.bars.root,
    );
    this.memo = null;
  }

  render({ run, episode, id, number, version }, step, state, palette, { between: fraction, playing }) {
    const now = Math.min(step, episode.steps);
    if (!this.memo || this.memo.episode !== episode || this.memo.step !== now || this.memo.palette !== palette) {
      const frame = frameOf(run, episode, now, run.weights);
      const board = run.grid && boardOf(run, episode, now, episode.landscape(now, run.weights), palette);
      this.memo = { episode, step: now, frame, board, palette };
    }
    const { frame, board } = this.memo;
    const reason = episode.reasons[now];
    setText(this.title, titleOf(run));
    this.box.hidden = run.grid === null;
    this.board.legend.hidden = run.grid === null;
    if (run.grid) {
      const width = widthOf(this.box, 160);
      const between = now < episode.steps ? fraction : 0;
      const what = { ...board, fraction: between, heat: state.heat, arrows: state.arrows, led: ledItems(frame, reason) };
      this.board.render(what, { width, height: Math.max(200, Math.min(width, window.innerHeight * 0.55)) });
    }
    this.picture.render({ run, episode, id, number, version }, now);
    this.bars.render(frame, playing);
    setText(this.sentence, reasonText(frame, reason));
    return this.sentence.textContent;
  }
}

export class CompareView {
  constructor({ store, source, redraw, player, insights, firstPick, otherPick, pairEpisodePick }) {
    Object.assign(this, { store, source, player, insights, answers: new Answers(redraw) });
    this.timeline = new Timeline(store);
    this.sides = ["first", "second"].map((which) => new Side(`Board of the ${which} run`, source, redraw));
    this.boards = this.sides.map((side) => side.board);
    this.summary = el("p", { class: "sentence", id: "divergence" });
    this.names = [0, 1].map((k) => el("span", { class: `line-${k + 1}` }));
    this.numbers = el("tbody");
    const head = el("tr", {}, el("td"), ...this.names.map((name) => el("th", { scope: "col", title: "The run" }, name)));
    this.choice = el(
      "div",
      { class: "toolbar" },
      field("First run", firstPick),
      field("Second run", otherPick),
      field("Episode", pairEpisodePick),
    );
    this.terms = el("section", { class: "card wide", id: "terms", hidden: true });
    this.body = el(
      "div",
      { class: "stack" },
      this.terms,
      el("section", { class: "card wide" }, this.player.place(), this.timeline.root, this.summary),
      el("div", { class: "columns even" }, ...this.sides.map((side) => side.root)),
      el("section", { class: "card wide" }, el("h2", {}, "In numbers"), tableOf("Both runs", head, this.numbers, "pair")),
    );
    this.empty = el("section", { class: "card wide" }, el("h2", {}, "Compare"), el("p", { class: "empty" }));
    this.root = el("div", {}, this.choice, el("div", { class: "stack" }, this.empty, this.body));
    this.memo = null;
  }

  // A sentence instead of the view; the runs and the episode can be chosen all the same.
  say(text) {
    this.empty.hidden = !text;
    this.body.hidden = Boolean(text);
    setText(this.empty.lastChild, text);
    return text;
  }

  render(pair, state, palette) {
    const [one, two] = pair;
    if (!this.memo || this.memo.one !== one.episode || this.memo.two !== two.episode) {
      settle(this.sides.map((side) => side.sentence));
      this.memo = {
        one: one.episode,
        two: two.episode,
        series: pair.map(({ run, episode }) => seriesOf(episode, run.weights, episode.measured)),
        fork: firstDivergence(one.episode, two.episode),
      };
    }
    const { series, fork } = this.memo;
    const longest = Math.max(one.episode.steps, two.episode.steps);
    this.player.render(longest);
    const step = Math.min(state.step, longest);
    const told = this.sides.map((side, k) => side.render(pair[k], step, state, palette, this.player));
    this.timeline.render(series, step, palette, widthOf(this.timeline.plot, 240), fork);
    const alike = one.run.label === two.run.label;
    const scores = pair.map(({ run, episode }, k) => {
      const score = scoreText(series[k].score[episode.steps]);
      return `${alike ? `${run.name}, ` : ""}${run.label}: ${score} in ${episode.steps} steps`;
    });
    let text = "They never diverge.";
    if (fork >= 0) {
      const acts = pair.map(({ run, episode }) =>
        fork < episode.steps ? actionPhrase(episode.did(fork)) : "is done",
      );
      text = `They diverge in step ${fork}: the first ${acts[0]}, the second ${acts[1]}.`;
    }
    const how = pair.some(({ run }) => run.yardstick) ? " Scores are by the task's own weights." : "";
    setText(this.summary, `${text} ${scores.join("; ")}.${how}`);
    this.renderNumbers(pair, series, step);
    this.compare(pair);
    return `Step ${step}. First: ${told[0]} Second: ${told[1]}`;
  }

  // Both term by term, in all episodes, as the server says it.
  compare([one, two]) {
    if (!this.source.live) return;
    const asked = `compare/${one.id}/${two.id}`;
    const key = `${asked} ${one.version} ${two.version} ${this.insights.diagnosed}`;
    const { found, problem } = this.answers.of(key, () => this.source.json(asked)) ?? {};
    this.terms.hidden = false;
    if (sameParts(this.told, [key, found, problem])) return;
    this.told = [key, found, problem];
    const text = el("p", { class: "hint" }, problem ?? "Playing all episodes \u2026");
    this.terms.replaceChildren(el("h2", {}, "Term by term"), found ? answerOf(this.store, found) : text);
  }

  // What there is to say of both in numbers, side by side.
  renderNumbers(pair, series, step) {
    pair.forEach(({ run }, k) => setText(this.names[k], `${k + 1} ${run.name}`));
    fillRows(this.numbers, numbersOfPair(series, step));
  }
}

function numbersOfPair(series, step) {
  const line = (name, tell) => [name, ...series.map(tell)];
  const now = (one) => Math.min(step, one.steps);
  const closest = (one) => {
    if (one.closest < 0) return "none";
    const margin = one.margins[one.closest];
    return `step ${one.closest}, ${margin === 0 ? "a tie" : margin.toPrecision(2)}`;
  };
  const lost = (one) => one.penalties.filter((at) => at < step).length;
  return [
    line("score until now", (one) => scoreText(one.score[now(one)])),
    line("score at the end", (one) => scoreText(one.score[one.steps])),
    ...(series.some(({ episode }) => episode.run.yardstick)
      ? [line("own score at the end", ({ episode }) => scoreText(episode.earned.reduce((sum, value) => sum + value, 0)))]
      : []),
    line("steps", (one) => String(one.steps)),
    line(series[0].items ? "fruit left" : "active", (one) => String(one.active[now(one)])),
    line("penalties until now", (one) => String(lost(one))),
    line("closest call", closest),
    line("steps in which it is stuck", ({ episode }) => (episode.stuck.length ? String(episode.stuck[0].steps) : "none")),
  ];
}
