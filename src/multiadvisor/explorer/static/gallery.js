// The gallery: small worlds with exact values. The slider is gamma; the arrows follow.

import { card, el, listed, option, scoreText, setText, signed, slider, widthOf } from "./dom.js";
import { boardOf } from "./board.js";
import { Episode, Run, unpack } from "./data.js";
import { Bars, actionPhrase, actionWord } from "./bars.js";
import { BoardView } from "./boardview.js";
import { bestActions } from "./maths.js";
import { frameOf } from "./frame.js";
import { reasonText } from "./reason.js";
import { Latest } from "./source.js";

const LARGEST_GAMMA = 0.999; // as on the server: closer to 1 the exact values take long
const PATIENCE = 400; // milliseconds after which it says that it is solving

export class Gallery {
  constructor(store, source, player, exhibits, plannings, redraw) {
    Object.assign(this, { store, source, player, exhibits, redraw });
    const show = (exhibit) => store.set({ exhibit, planning: "", gamma: -1, noise: -1, at: 0 });
    this.tabs = el(
      "div",
      { class: "exhibits", role: "group", "aria-label": "Exhibits" },
      exhibits.map((one) =>
        el("button", { title: "Look at this world", "data-id": one.id, onclick: () => show(one.id) }, one.title),
      ),
    );
    this.text = el("p", { class: "prose" });
    const set = (name) => ({ id: name, oninput: () => store.set({ [name]: Number(this[name].value), at: 0 }) });
    this.gamma = slider(0.01, 0.99, 0.01, set("gamma"));
    this.noise = slider(0, 1, 0.05, set("noise"));
    this.gammaText = el("input", {
      type: "number",
      min: 0,
      max: LARGEST_GAMMA,
      step: 0.0001,
      "aria-label": "Gamma, exactly",
      class: "number small",
      onchange: () => store.set({ gamma: Number(this.gammaText.value), at: 0 }),
    });
    this.planning = el(
      "select",
      { id: "planning", onchange: () => store.set({ planning: this.planning.value, at: 0 }) },
      plannings.map((name) => option(name, name)),
    );
    this.noiseText = el("output", { class: "number" });
    this.noiseField = el("div", { class: "field" }, el("label", { for: "noise" }, "noise"), this.noise, this.noiseText);
    this.board = new BoardView("Board of the exhibit");
    this.bars = new Bars();
    this.verdict = el("p", { class: "sentence", id: "verdict" });
    this.solving = el("p", { class: "hint", role: "status" });
    this.now = el("h3");
    this.box = el("div", { class: "boardbox" }, this.board.root);
    const controls = el(
      "div",
      { class: "controls" },
      el("div", { class: "field" }, el("label", { for: "gamma" }, "gamma"), this.gamma, this.gammaText),
      el("div", { class: "field" }, el("label", { for: "planning" }, "planning"), this.planning),
      this.noiseField,
    );
    const world = [this.tabs, this.text, controls, this.solving, this.box, this.board.legend, player.place()];
    const none = "The gallery needs the library: `multiadvisor explore` shows it.";
    this.root = exhibits.length
      ? el(
          "div",
          { class: "columns" },
          card("Gallery", ...world),
          card("In the first state", this.verdict, this.now, this.bars.root),
        )
      : card("Gallery", el("p", { class: "empty" }, none));
    this.answers = new Latest(redraw);
    this.shown = null;
  }

  settings(state) {
    const one = this.exhibits.find((entry) => entry.id === state.exhibit) || this.exhibits[0];
    return {
      one,
      planning: state.planning || one.planning,
      gamma: state.gamma > 0 && state.gamma < 1 ? Math.min(state.gamma, LARGEST_GAMMA) : one.gamma,
      noise: state.noise >= 0 ? state.noise : (one.noise ?? 0),
    };
  }

  // Asks for what is wanted; while an answer is awaited the last one stays.
  load({ one, planning, gamma, noise }) {
    const wish = `gallery/${one.id}?planning=${planning}&gamma=${gamma}&noise=${noise}`;
    const answer = this.answers.of(wish, async () => exhibitOf(await this.source.pack(wish)));
    if (!answer && !this.busy) {
      this.since = performance.now();
      window.setTimeout(this.redraw, PATIENCE);
    }
    this.busy = !answer;
    setText(this.solving, this.busy && performance.now() - this.since >= PATIENCE ? "Solving \u2026" : "");
    if (answer) [this.shown, this.problem] = [answer.found ?? null, answer.problem ?? ""];
  }

  render(state, palette) {
    if (!this.exhibits.length) return "";
    const wanted = this.settings(state);
    const { one, planning, gamma, noise } = wanted;
    this.load(wanted);
    for (const button of this.tabs.children) button.setAttribute("aria-pressed", String(button.dataset.id === one.id));
    setText(this.text, one.text);
    if (Number(this.gamma.value) !== gamma) this.gamma.value = gamma;
    if (document.activeElement !== this.gammaText) this.gammaText.value = gamma;
    this.planning.value = planning;
    this.noiseField.hidden = one.noise === null;
    if (Number(this.noise.value) !== noise) this.noise.value = noise;
    setText(this.noiseText, noise.toFixed(2));
    for (const part of [this.box, this.board.legend, this.bars.root]) part.hidden = !this.shown;
    if (!this.shown) {
      setText(this.verdict, this.problem || "Solving \u2026");
      return this.problem || "";
    }
    const { header, run, episode } = this.shown;
    const step = Math.min(state.at, episode.steps);
    this.player.render(episode.steps);
    const first = frameOf(run, episode, 0, run.weights);
    const frame = frameOf(run, episode, step, run.weights);
    const landscape = episode.landscape(step, run.weights);
    const untouched = run.grid.items.every((_, k) => episode.hasItem(step, k) === episode.hasItem(0, k));
    const attractors =
      header.attractor && untouched ? [{ cell: episode.cells(0)[0], stable: header.attractor.stable }] : [];
    const what = { ...boardOf(run, episode, step, landscape, palette), fraction: this.player.between, attractors };
    this.board.render(what, { width: Math.min(widthOf(this.box, 160), 460), height: 360 });
    this.bars.render(step === 0 ? { ...frame, action: -1 } : frame);
    setText(this.now, step === 0 ? "What the actions are worth there" : `In step ${step}`);
    setText(this.verdict, verdictText(header, run, first));
    this.verdict.dataset.best = bestActions(first.total)
      .map((a) => run.actions[a])
      .join(" ");
    this.verdict.dataset.gamma = String(header.gamma);
    this.verdict.dataset.exhibit = header.id;
    return `Step ${step}. ${step === 0 ? this.verdict.textContent : reasonText(frame, episode.reasons[step])}`;
  }
}

// A run, its episode, and what the solver says, out of one message.
function exhibitOf(buffer) {
  const { header, arrays } = unpack(buffer);
  const copy = (bytes) => bytes.slice().buffer;
  const run = new Run(copy(arrays.run));
  return { header, run, episode: new Episode(run, copy(arrays.episode)) };
}

function verdictText(header, run, frame) {
  const best = bestActions(frame.total);
  const words = best.map((a) => actionWord(run.actions[a]));
  const parts = [
    best.length > 1
      ? `A tie between ${listed(words, 9)}.`
      : `The aggregator ${actionPhrase(run.actions[best[0]])}, ${signed(frame.total[best[0]], 4)}.`,
  ];
  if (header.attractor) {
    const kind = header.attractor.stable ? "a stable" : "an unstable";
    const margin = header.attractor.margin.toPrecision(3);
    parts.push(`The solver calls this state ${kind} attractor, by a margin of ${margin}.`);
  } else if (header.planning === "egocentric" && header.noise === null) parts.push("No attractor.");
  if (header.critical !== null && header.planning === "egocentric" && header.noise === null)
    parts.push(`Attractors appear at gamma = ${header.critical.toFixed(4)}.`);
  if (header.agreement !== null)
    parts.push(`In ${Math.round(100 * header.agreement)}% of the cells the greedy action is one of the exact ones.`);
  parts.push(
    header.terminated
      ? `The greedy episode ends after ${header.steps} steps with a score of ${scoreText(header.score)}.`
      : `The greedy episode never ends: it was truncated after ${header.steps} steps with a score of ${scoreText(header.score)}.`,
  );
  if (!header.converged) parts.push("The values did not converge: nothing follows from them.");
  return parts.join(" ");
}
