// Two agents in the same game, their clocks locked: where do they part?

import { el, scoreText, setText, widthOf } from "./dom.js";
import { heights } from "./data.js";
import { frameOf, ledItems } from "./frame.js";
import { Bars, actionPhrase } from "./bars.js";
import { BoardView } from "./boardview.js";
import { reasonText } from "./reason.js";
import { Timeline, seriesOf } from "./timeline.js";

// The first turn in which the two do not do the same; -1 where they never part.
export function firstDivergence(one, two) {
  const turns = Math.min(one.turns, two.turns);
  for (let turn = 0; turn < turns; turn += 1) if (one.action[turn] !== two.action[turn]) return turn;
  return one.turns === two.turns ? -1 : turns;
}

class Side {
  constructor(label, select) {
    this.board = new BoardView(label);
    this.bars = new Bars();
    this.sentence = el("p", { class: "sentence" });
    this.state = el("p", { class: "hint" });
    this.box = el("div", { class: "boardbox" }, this.board.root);
    this.root = el(
      "section",
      { class: "card" },
      select,
      this.box,
      this.board.legend,
      this.state,
      this.sentence,
      this.bars.root,
    );
    this.memo = null;
  }

  render({ run, game }, turn, state, palette, fraction) {
    const now = Math.min(turn, game.turns);
    if (!this.memo || this.memo.game !== game || this.memo.turn !== now) {
      const landscape = run.grid ? game.landscape(now, run.weights) : null;
      this.memo = {
        game,
        turn: now,
        frame: frameOf(run, game, now, run.weights),
        landscape,
        tops: landscape && heights(landscape, run.A),
      };
    }
    const { frame, landscape, tops } = this.memo;
    this.box.hidden = run.grid === null;
    this.board.legend.hidden = run.grid === null;
    if (run.grid) {
      const width = widthOf(this.box, 160);
      this.board.render(
        {
          run,
          game,
          turn: now,
          fraction: now < game.turns ? fraction : 0,
          landscape,
          heights: tops,
          heat: state.heat,
          arrows: state.arrows,
          attractors: [],
          led: ledItems(frame),
          palette,
        },
        { width, height: Math.max(200, Math.min(width, window.innerHeight * 0.55)) },
      );
    }
    this.bars.render(frame);
    setText(this.sentence, reasonText(frame));
    return frame;
  }
}

export class CompareView {
  constructor({ store, player, selects }) {
    this.player = player;
    this.timeline = new Timeline(store);
    this.sides = [new Side("Board of the first run", selects[0]), new Side("Board of the second run", selects[1])];
    this.summary = el("p", { class: "sentence", id: "divergence" });
    this.body = el(
      "div",
      { class: "stack" },
      el("section", { class: "card wide" }, this.player.place(), this.timeline.root, this.summary),
      el("div", { class: "columns even" }, ...this.sides.map((side) => side.root)),
    );
    this.empty = el("section", { class: "card wide" }, el("h2", {}, "Compare"), el("p", { class: "empty" }));
    this.root = el("div", { class: "stack" }, this.empty, this.body);
    this.memo = null;
  }

  // A sentence in the place of the view.
  say(text) {
    this.empty.hidden = !text;
    this.body.hidden = Boolean(text);
    setText(this.empty.lastChild, text);
    return text;
  }

  render(pair, state, palette) {
    const [one, two] = pair;
    if (!this.memo || this.memo.one !== one.game || this.memo.two !== two.game)
      this.memo = {
        one: one.game,
        two: two.game,
        series: pair.map(({ run, game }) => seriesOf(game, run.weights)),
        fork: firstDivergence(one.game, two.game),
      };
    const { series, fork } = this.memo;
    const longest = Math.max(one.game.turns, two.game.turns);
    this.player.render(longest);
    const turn = Math.min(state.turn, longest);
    const frames = this.sides.map((side, k) => side.render(pair[k], turn, state, palette, this.player.between));
    this.timeline.render(series, turn, palette, widthOf(this.timeline.plot, 240), fork);
    const scores = pair.map(({ run, game }, k) => {
      const score = scoreText(series[k].score[game.turns]);
      return `${run.label}: ${score} in ${game.turns} turns`;
    });
    let text = "They never part.";
    if (fork >= 0) {
      const acts = pair.map(({ run, game }) =>
        fork < game.turns ? actionPhrase(run.actions[game.action[fork]]) : "is done",
      );
      text = `They part in turn ${fork}: the first ${acts[0]}, the second ${acts[1]}.`;
    }
    setText(this.summary, `${text} ${scores.join("; ")}.`);
    return `Turn ${turn}. First: ${reasonText(frames[0])} Second: ${reasonText(frames[1])}`;
  }
}
