// The episode at a glance: score, what is left, penalties, disagreement or margin; where it is stuck, where it was closest.

import { el, fitCanvas, sameParts, scoreText, setText, signed, slider } from "./dom.js";
import { disagreementOf, marginOf } from "./maths.js";
import { scrubbing, shareOf, stroke, write } from "./strokes.js";

// All series of an episode under these weights; its score is what it earned, or what that is by the task's own weights.
export function seriesOf(episode, weights, earned = episode.earned) {
  const steps = episode.steps;
  const score = new Float64Array(steps + 1);
  const active = new Float64Array(steps + 1); // or how much fruit is left
  const disagreement = new Float64Array(steps + 1);
  const margins = new Float64Array(steps).fill(Infinity);
  const penalties = [];
  for (let step = 0; step <= steps; step += 1) {
    const { advisors } = episode.speaking(Math.min(step, Math.max(steps - 1, 0)));
    active[step] = episode.run.grid && episode.run.grid.items.length ? countItems(episode, step) : advisors.length;
    if (step === steps) break;
    score[step + 1] = score[step] + earned[step];
    for (const { advisor, value } of episode.paid[step]) if (episode.run.prices[advisor] * value < 0) penalties.push(step);
    if (!advisors.length) continue;
    const total = episode.preferences(step, weights);
    margins[step] = episode.run.continuous ? total[0] - total[1] : marginOf(total);
    if (episode.run.plain) disagreement[step] = disagreementOf(episode.advice(step, weights).advice, total);
  }
  const margin = Float64Array.from({ length: steps + 1 }, (_, step) => margins[Math.min(step, steps - 1)]);
  for (let step = 0; step <= steps; step += 1) if (!Number.isFinite(margin[step])) margin[step] = 0;
  if (steps > 0) disagreement[steps] = disagreement[steps - 1];
  let closest = -1;
  for (let step = 0; step < steps && !episode.run.continuous; step += 1)
    if (Number.isFinite(margins[step]) && (closest < 0 || margins[step] < margins[closest])) closest = step;
  const { grid } = episode.run;
  return {
    plain: episode.run.plain && episode.run.n > 1 && !episode.run.continuous,
    continuous: episode.run.continuous,
    items: grid !== null && grid.items.length > 0,
    steps,
    score,
    active,
    disagreement,
    margin,
    margins,
    penalties: [...new Set(penalties)],
    closest,
    episode,
  };
}

function countItems(episode, step) {
  let count = 0;
  for (let k = 0; k < episode.run.grid.items.length; k += 1) if (episode.hasItem(step, k)) count += 1;
  return count;
}

export class Timeline {
  constructor(store) {
    this.canvas = el("canvas", { "aria-hidden": "true" });
    const go = () => store.set({ step: Number(this.slider.value) });
    this.slider = slider(0, 1, 1, { value: 0, class: "scrub", "aria-label": "Step", oninput: go });
    this.stuck = el("button", { class: "mark", hidden: true });
    this.close = el("button", { class: "mark", hidden: true, title: "Where the two best actions are nearest" });
    this.fork = el("button", { class: "mark", hidden: true, title: "Where the two runs part" });
    for (const button of [this.stuck, this.close, this.fork])
      button.addEventListener("click", () => store.set({ step: Number(button.dataset.step) }));
    this.plot = el("div", { class: "plot" }, this.canvas, this.slider);
    this.root = el(
      "div",
      { class: "timeline" },
      this.plot,
      el("div", { class: "marks" }, this.stuck, this.close, this.fork),
    );
    scrubbing(this.canvas, store, (x) =>
      this.shown ? shareOf(x, GUTTER, this.canvas.clientWidth - PAD) * this.longest : null,
    );
    this.canvas.addEventListener("dblclick", (event) => event.preventDefault());
    this.picture = null;
  }

  // `all` has the series of one episode, or of two that are compared.
  render(all, step, palette, width, divergence = -1) {
    this.shown = all;
    const longest = Math.max(...all.map((series) => series.steps));
    this.longest = longest;
    if (Number(this.slider.max) !== longest) this.slider.max = longest;
    if (Number(this.slider.value) !== step) this.slider.value = step;
    this.slider.setAttribute("aria-valuetext", `step ${step} of ${longest}`);
    const height = 4 * LANE + 8;
    const key = [width, palette, divergence, ...all, ...all.map(({ episode }) => episode.stuck)];
    if (!sameParts(this.picture?.key, key)) {
      const still = document.createElement("canvas");
      drawLanes(fitCanvas(still, width, height), all, longest, palette, width, divergence);
      this.picture = { key, still };
      this.marks(all, divergence);
    }
    const context = fitCanvas(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    context.drawImage(this.picture.still, 0, 0, width, height);
    const x = along(step, longest, width);
    stroke(context, [[x, 0], [x, height]], palette.accent, 2);
    context.font = "600 11px system-ui, sans-serif";
    all.forEach((series, k) => {
      const colour = all.length > 1 ? palette.series[k] : palette.ink;
      const [now, down] = [Math.min(step, series.steps), all.length > 1 ? 9 + 13 * k : 16];
      [
        scoreText(series.score[now]),
        String(series.active[now]),
        String(series.penalties.filter((at) => at < step).length),
        signed(series[lastLane(all)][now]),
      ].forEach((text, lane) => write(context, text, width - 4, down + lane * LANE, colour, "right"));
    });
  }

  marks(all, divergence) {
    const [first] = all;
    const [stuck] = first.episode.stuck;
    this.stuck.hidden = !stuck;
    if (stuck) {
      this.stuck.dataset.step = stuck.since;
      this.stuck.title = stuck.sentence;
      const until = stuck.since + stuck.steps >= first.steps ? "the end" : stuck.since + stuck.steps;
      const whose = all.length > 1 ? "The first is stuck" : "Stuck";
      setText(this.stuck, `\u25a6 ${whose} in steps ${stuck.since} to ${until}`);
    }
    this.close.hidden = first.closest < 0;
    if (first.closest >= 0) {
      this.close.dataset.step = first.closest;
      const margin = first.margins[first.closest];
      const whose = all.length > 1 ? "Its closest call" : "Closest call";
      const how = margin === 0 ? "a tie" : `margin ${margin.toPrecision(2)}`;
      setText(this.close, `\u25c6 ${whose}: step ${first.closest}, ${how}`);
    }
    this.fork.hidden = divergence < 0;
    if (divergence >= 0) {
      this.fork.dataset.step = divergence;
      setText(this.fork, `\u2387 First divergence: step ${divergence}`);
    }
  }
}

const PAD = 58; // on the right, for the numbers
const GUTTER = 92; // on the left, for the names
const LANE = 34;

function along(step, steps, width) {
  return GUTTER + ((width - GUTTER - PAD) * step) / Math.max(1, steps);
}

// Disagreement is that of a sum of several; elsewhere the margin between the two best actions stands in its place, or how
// far an action of real numbers is above the centre of the box.
function lastLane(all) {
  return all.every((series) => series.plain) ? "disagreement" : "margin";
}

function drawLanes(context, all, longest, palette, width, divergence) {
  const { items } = all[0];
  const lanes = [
    ["score", "score"],
    [items ? "fruit left" : "active", "active"],
    ["penalties", null],
    [all[0].continuous ? "advantage\nover centre" : lastLane(all), lastLane(all)],
  ];
  const height = lanes.length * LANE + 8;
  for (const { since, steps } of all[0].episode.stuck) {
    context.fillStyle = palette.stuck;
    const x = along(since, longest, width);
    const end = along(since + steps, longest, width);
    context.fillRect(x, 0, end - x, height);
    context.save();
    context.globalAlpha = 0.35;
    context.beginPath();
    context.rect(x, height - 8, end - x, 8);
    context.clip();
    for (let at = x - 8; at < end; at += 6) stroke(context, [[at, height], [at + 8, height - 8]], palette.soft);
    context.restore();
  }
  lanes.forEach(([label, name], lane) => {
    const top = 4 + lane * LANE;
    stroke(context, [[0, top + LANE - 3.5], [width, top + LANE - 3.5]], palette.line);
    let low = 0;
    let high = 0;
    if (name)
      for (const series of all)
        for (const value of series[name]) {
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
    all.forEach((series, k) => {
      const [colour, dash] = [palette.series[k], k ? [4, 3] : []];
      if (!name) {
        for (const step of series.penalties) {
          const x = along(step, longest, width);
          stroke(context, [[x, top + 10 + 9 * k], [x, top + 18 + 9 * k]], colour, 1.75, dash);
        }
        return;
      }
      const y = (value) => top + LANE - 5 - ((LANE - 11) * (value - low)) / (high - low || 1);
      const points = Array.from(series[name], (value, step) => [along(step, longest, width), y(value)]);
      stroke(context, points, colour, 1.75, dash);
    });
    context.font = "11px system-ui, sans-serif";
    const words = label.split("\n");
    words.forEach((text, k) => write(context, text, 2, top + 18 - 6 * words.length + 12 * k, palette.soft));
  });
  const mark = (step, text) => {
    context.font = "12px system-ui, sans-serif";
    if (step >= 0) write(context, text, along(step, longest, width), height, palette.ink, "center", "bottom");
  };
  mark(all[0].closest, "\u25c6");
  mark(divergence, "\u2387");
}
