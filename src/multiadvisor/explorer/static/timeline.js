// The episode at a glance: score, what is left, touches, disagreement or margin; where it is stuck, where it was closest.

import { el, fitCanvas, scoreText, setText, signed } from "./dom.js";
import { disagreementOf, marginOf } from "./maths.js";

// All series of a game under these weights; its score is what it earned, or what that is by the task's own weights.
export function seriesOf(game, weights, earned = game.earned) {
  const turns = game.turns;
  const score = new Float64Array(turns + 1);
  const speak = new Float64Array(turns + 1);
  const disagreement = new Float64Array(turns + 1);
  const margins = new Float64Array(turns).fill(Infinity);
  const touches = [];
  for (let turn = 0; turn <= turns; turn += 1) {
    const { advisors } = game.speaking(turn);
    speak[turn] = game.run.grid && game.run.grid.items.length ? countItems(game, turn) : advisors.length;
    if (turn === turns) break;
    score[turn + 1] = score[turn] + earned[turn];
    for (const { advisor, value } of game.paid[turn]) if (game.run.prices[advisor] * value < 0) touches.push(turn);
    if (!advisors.length) continue;
    const total = game.preferences(turn, weights);
    margins[turn] = game.run.continuous ? total[0] - total[1] : marginOf(total);
    if (game.run.plain) disagreement[turn] = disagreementOf(game.advice(turn, weights).advice, total);
  }
  const margin = Float64Array.from({ length: turns + 1 }, (_, turn) => margins[Math.min(turn, turns - 1)]);
  for (let turn = 0; turn <= turns; turn += 1) if (!Number.isFinite(margin[turn])) margin[turn] = 0;
  if (turns > 0) disagreement[turns] = disagreement[turns - 1];
  let closest = -1;
  for (let turn = 0; turn < turns && !game.run.continuous; turn += 1)
    if (Number.isFinite(margins[turn]) && (closest < 0 || margins[turn] < margins[closest])) closest = turn;
  const { grid } = game.run;
  const ghosts = grid !== null && grid.sprites.some((sprite) => sprite.kind === "ghost");
  return {
    plain: game.run.plain && !game.run.continuous,
    continuous: game.run.continuous,
    ghosts,
    items: grid !== null && grid.items.length > 0,
    turns,
    score,
    speak,
    disagreement,
    margin,
    margins,
    touches: [...new Set(touches)],
    closest,
    game,
  };
}

function countItems(game, turn) {
  let count = 0;
  for (let k = 0; k < game.run.grid.items.length; k += 1) if (game.hasItem(turn, k)) count += 1;
  return count;
}

export class Timeline {
  constructor(store) {
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 1,
      value: 0,
      class: "scrub",
      "aria-label": "Turn",
      oninput: () => store.set({ turn: Number(this.slider.value) }),
    });
    this.stuck = el("button", { type: "button", class: "mark", hidden: true });
    this.close = el("button", { type: "button", class: "mark", hidden: true, title: "Where the two best actions are nearest" });
    this.fork = el("button", { type: "button", class: "mark", hidden: true, title: "Where the two runs part" });
    for (const button of [this.stuck, this.close, this.fork])
      button.addEventListener("click", () => store.set({ turn: Number(button.dataset.turn) }));
    this.plot = el("div", { class: "plot" }, this.canvas, this.slider);
    this.root = el(
      "div",
      { class: "timeline" },
      this.plot,
      el("div", { class: "marks" }, this.stuck, this.close, this.fork),
    );
    const move = (event) => {
      if (event.buttons !== 1 || !this.shown) return;
      const box = this.canvas.getBoundingClientRect();
      const share = (event.clientX - box.left - GUTTER) / (box.width - GUTTER - PAD);
      store.set({ turn: Math.round(Math.max(0, Math.min(1, share)) * this.longest) });
    };
    this.canvas.addEventListener("pointerdown", move);
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("dblclick", (event) => event.preventDefault());
    this.picture = null;
  }

  // `all` has the series of one game, or of two that are compared.
  render(all, turn, palette, width, divergence = -1) {
    this.shown = all;
    const longest = Math.max(...all.map((series) => series.turns));
    this.longest = longest;
    if (Number(this.slider.max) !== longest) this.slider.max = longest;
    if (Number(this.slider.value) !== turn) this.slider.value = turn;
    this.slider.setAttribute("aria-valuetext", `turn ${turn} of ${longest}`);
    const height = 4 * LANE + 8;
    const key = [width, palette, divergence, ...all, ...all.map(({ game }) => game.stuck)];
    if (
      !this.picture ||
      key.some((part, k) => part !== this.picture.key[k]) ||
      key.length !== this.picture.key.length
    ) {
      const still = document.createElement("canvas");
      drawLanes(fitCanvas(still, width, height), all, longest, palette, width, divergence);
      this.picture = { key, still };
      this.marks(all, divergence);
    }
    const context = fitCanvas(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    context.drawImage(this.picture.still, 0, 0, width, height);
    const x = along(turn, longest, width);
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
    context.font = "600 11px system-ui, sans-serif";
    context.textBaseline = "top";
    context.textAlign = "right";
    all.forEach((series, k) => {
      context.fillStyle = all.length > 1 ? palette.series[k] : palette.ink;
      const [now, down] = [Math.min(turn, series.turns), all.length > 1 ? 9 + 13 * k : 16];
      [
        scoreText(series.score[now]),
        String(series.speak[now]),
        String(series.touches.filter((at) => at < turn).length),
        signed(series[lastLane(all)][now]),
      ].forEach((text, lane) => context.fillText(text, width - 4, down + lane * LANE));
    });
  }

  marks(all, divergence) {
    const [first] = all;
    const [stuck] = first.game.stuck;
    this.stuck.hidden = !stuck;
    if (stuck) {
      this.stuck.dataset.turn = stuck.since;
      this.stuck.title = stuck.sentence;
      const until = stuck.since + stuck.turns >= first.turns ? "the end" : stuck.since + stuck.turns;
      const whose = all.length > 1 ? "The first is stuck" : "Stuck";
      setText(this.stuck, `\u25a6 ${whose} in turns ${stuck.since} to ${until}`);
    }
    this.close.hidden = first.closest < 0;
    if (first.closest >= 0) {
      this.close.dataset.turn = first.closest;
      const margin = first.margins[first.closest];
      const whose = all.length > 1 ? "Its closest call" : "Closest call";
      const how = margin === 0 ? "a tie" : `margin ${margin.toPrecision(2)}`;
      setText(this.close, `\u25c6 ${whose}: turn ${first.closest}, ${how}`);
    }
    this.fork.hidden = divergence < 0;
    if (divergence >= 0) {
      this.fork.dataset.turn = divergence;
      setText(this.fork, `\u2387 First divergence: turn ${divergence}`);
    }
  }
}

const PAD = 58; // on the right, for the numbers
const GUTTER = 92; // on the left, for the names
const LANE = 34;

function along(turn, turns, width) {
  return GUTTER + ((width - GUTTER - PAD) * turn) / Math.max(1, turns);
}

// Disagreement is that of a sum; elsewhere the margin between the two best actions stands in its place, or how far an
// action of real numbers is above the middle of all.
function lastLane(all) {
  return all.every((series) => series.plain) ? "disagreement" : "margin";
}

function drawLanes(context, all, longest, palette, width, divergence) {
  const { ghosts, items } = all[0];
  const lanes = [
    ["score", "score"],
    [items ? "fruit left" : "speaking", "speak"],
    [ghosts ? "touches" : "losses", null],
    [all[0].continuous ? "over middle" : lastLane(all), lastLane(all)],
  ];
  const height = lanes.length * LANE + 8;
  for (const { since, turns } of all[0].game.stuck) {
    context.fillStyle = palette.stuck;
    const x = along(since, longest, width);
    const end = along(since + turns, longest, width);
    context.fillRect(x, 0, end - x, height);
    context.strokeStyle = palette.soft;
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    context.save();
    context.beginPath();
    context.rect(x, height - 8, end - x, 8);
    context.clip();
    for (let at = x - 8; at < end; at += 6) {
      context.beginPath();
      context.moveTo(at, height);
      context.lineTo(at + 8, height - 8);
      context.stroke();
    }
    context.restore();
    context.globalAlpha = 1;
  }
  lanes.forEach(([label, name], lane) => {
    const top = 4 + lane * LANE;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, top + LANE - 3.5);
    context.lineTo(width, top + LANE - 3.5);
    context.stroke();
    let low = 0;
    let high = 0;
    if (name)
      for (const series of all)
        for (const value of series[name]) {
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
    all.forEach((series, k) => {
      context.strokeStyle = palette.series[k];
      context.fillStyle = palette.series[k];
      context.lineWidth = 1.75;
      context.setLineDash(k ? [4, 3] : []);
      if (!name) {
        for (const turn of series.touches) {
          context.beginPath();
          context.moveTo(along(turn, longest, width), top + 10 + 9 * k);
          context.lineTo(along(turn, longest, width), top + 18 + 9 * k);
          context.stroke();
        }
        return;
      }
      context.beginPath();
      series[name].forEach((value, turn) => {
        const x = along(turn, longest, width);
        const y = top + LANE - 5 - ((LANE - 11) * (value - low)) / (high - low || 1);
        if (turn === 0) context.moveTo(x, y);
        else context.lineTo(x, y);
      });
      context.stroke();
    });
    context.setLineDash([]);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = palette.soft;
    context.textBaseline = "top";
    context.textAlign = "left";
    context.fillText(label, 2, top + 12);
  });
  const mark = (turn, text) => {
    if (turn < 0) return;
    context.fillStyle = palette.ink;
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.font = "12px system-ui, sans-serif";
    context.fillText(text, along(turn, longest, width), height);
  };
  mark(all[0].closest, "\u25c6");
  mark(divergence, "\u2387");
}
