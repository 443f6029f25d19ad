// The main view: one agent plays, and every advisor's wish is visible.

import { card, el, field, fill, option, sameParts, scoreText, setText, settle, signed, widthOf } from "./dom.js";
import { boardOf } from "./board.js";
import { frameOf, ledItems } from "./frame.js";
import { Bars, actionText } from "./bars.js";
import { BoardView } from "./boardview.js";
import { Reason, Reasons, reasonText } from "./reason.js";
import { Inspector } from "./inspector.js";
import { Timeline, seriesOf } from "./timeline.js";
import { Weights, weightsNow } from "./weights.js";
import { WhatIf } from "./whatif.js";
import { Attractors, attractorText, ringsOf } from "./attractors.js";
import { Observed, PictureView } from "./picture.js";
import { Rewards } from "./rewards.js";
import { Moments } from "./moments.js";

const AROUND = 290; // pixels above and below the board that are not its own
const LEADING = -2; // the map of whoever has the strongest wish in this step

function leadText(run, { lead }) {
  const wish = (j, action, value) => `${run.names[j]}, ${signed(value, 3)} for ${actionText(run.actions[action])}`;
  const next = lead.next < 0 ? "" : ` Dashed, the next: ${wish(lead.next, lead.nextAction, lead.nextValue)}.`;
  return `Framed, the strongest wish: ${wish(lead.at, lead.action, lead.value)}.${next} `;
}

export class EpisodeView {
  constructor(app) {
    const { store, source, player, redraw, insights, answer } = app;
    Object.assign(this, { store, source, player, redraw, insights, answer });
    this.hovered = -1;
    this.board = new BoardView("Board", {
      hover: (cell) => {
        if (cell === this.hovered) return;
        this.hovered = cell;
        redraw();
      },
      pin: (cell) => store.set({ cell: store.state.cell === cell ? -1 : cell }),
    });
    this.bars = new Bars();
    this.bars.open.addEventListener("toggle", () => store.set({ all: this.bars.open.open }));
    this.reason = new Reason(store);
    this.reasons = new Reasons(source, redraw);
    this.reason.open.addEventListener("toggle", redraw);
    this.inspector = new Inspector(store);
    this.timeline = new Timeline(store);
    this.weights = new Weights(store, source, () => app.retrain(), redraw);
    this.whatIf = new WhatIf(source, redraw);
    this.attractors = new Attractors(source, redraw);
    const check = (name, text) => {
      const box = el("input", { type: "checkbox", onchange: () => store.set({ [name]: box.checked }) });
      this[`${name}Box`] = box;
      return el("label", { class: "check" }, box, text);
    };
    this.layer = el(
      "select",
      { id: "attractors", onchange: () => store.set({ attractors: this.layer.value }) },
      option("off", "none"),
      option("exact", "exact"),
      option("learned", "learned"),
    );
    this.map = el("select", { id: "map", onchange: () => store.set({ map: Number(this.map.value) }) });
    this.layers = el(
      "div",
      { class: "controls" },
      check("heat", "Values"),
      check("arrows", "Arrows"),
      field("Map of", this.map),
      field("Attractors", this.layer),
    );
    this.box = el("div", { class: "boardbox" }, this.board.root);
    this.picture = new PictureView(source, redraw);
    this.observed = new Observed(store);
    this.observed.root.addEventListener("toggle", redraw);
    this.rewards = new Rewards(store, redraw);
    this.moments = new Moments(store, app.loader, source, redraw);
    this.state = el("p", { class: "prose" });
    this.layerText = el("p", { class: "hint", id: "layer-text" });
    this.facts = el("p", { class: "facts" });
    this.boardCard = card("Board", this.layers, this.box, this.picture.root, this.observed.root, this.state, this.board.legend, this.layerText);
    this.timeCard = card(null, this.player.place(), this.timeline.root);
    this.reasonCard = card("The shortest reason", this.reason.root);
    this.detailCard = card(null, this.inspector.root);
    this.toolCards = [
      el(
        "section",
        { class: "card" },
        el("div", { class: "line" }, el("h2", {}, "Weights"), this.weights.badge, this.weights.reset),
        this.weights.root,
      ),
      card("What if", this.whatIf.root),
    ];
    // the clock stands beside the board, so that both are seen at once; on a narrow page it comes right after it
    for (const one of [this.boardCard, this.timeCard]) one.classList.add("first");
    for (const one of [this.detailCard, ...this.toolCards]) one.classList.add("later");
    this.root = el(
      "div",
      { class: "columns episode" },
      el("div", { class: "stack" }, this.boardCard, this.rewards.root, this.detailCard),
      el(
        "div",
        { class: "stack" },
        this.timeCard,
        card("Why this action", this.bars.root),
        this.reasonCard,
        ...this.toolCards,
      ),
      this.moments.root,
    );
    this.memo = {};
    this.settled = null; // the episode whose texts have the room they need
  }

  // The landscape and the series are kept until something they depend on changes.
  remember(name, key, make) {
    if (!sameParts(this.memo[name]?.key, key)) this.memo[name] = { key, value: make() };
    return this.memo[name].value;
  }

  render({ run, episode, id, number, version }, state, palette) {
    const weights = this.remember("weights", [run, state.weights, state.muted, state.solo], () =>
      weightsNow(run, state),
    );
    const step = Math.min(state.step, episode.steps);
    const frame = this.remember("frame", [run, episode, step, weights], () => frameOf(run, episode, step, weights));
    const { changed } = frame;
    const reason = this.reasons.of(frame, state.against, id, number);
    const series = this.remember("series", [episode, weights], () => seriesOf(episode, weights));
    this.player.render(episode.steps);
    if (this.bars.open.open !== state.all) this.bars.open.open = state.all;
    this.renderBoard({ run, episode, id, number, step, weights, frame, reason }, state, palette);
    this.bars.render(frame, this.player.playing);
    if (this.settled !== episode) {
      const { bars, reason, inspector } = this;
      settle([this.layerText, bars.key, reason.sentence, reason.chips, inspector.table.parentNode]);
    }
    this.settled = episode;
    setText(this.reasonCard.firstChild, run.plain ? "The shortest reason" : "The reason");
    this.reason.render(frame, reason, state.against);
    this.weights.render(run, state, this.source.live, episode, id);
    this.toolCards[0].hidden = run.n === 1 && !changed; // a weight of one changes nothing
    this.whatIf.render(frame, { id, number, weights: changed ? weights : null }, palette);
    this.renderAround({ run, episode, id, number, version }, step, palette);
    this.timeline.render([series], step, palette, widthOf(this.timeline.plot, 240));
    const cell = run.grid ? this.cellShown(run, episode, step, state) : 0;
    this.inspector.render(frame, cell, run.grid !== null && state.cell >= 0 && this.hovered < 0);
    const how = run.plain ? run.method : `${run.method}, aggregated by ${run.aggregation}`;
    const score = scoreText(series.score[episode.steps]);
    const measured = scoreText(episode.measured.reduce((sum, value) => sum + value, 0));
    const by = run.yardstick ? ` By the task's own weights ${measured}.` : "";
    const end = episode.terminated ? "terminated" : "truncated";
    setText(this.facts, `${run.task}, ${how}, gamma ${run.settings.gamma}. Score ${score} in ${episode.steps} steps, ${end}.${by}`);
    return `Step ${step}. ${reasonText(frame, reason)}`;
  }

  // The picture, the rewards, the decisive moments and who drives.
  renderAround(shown, step, palette) {
    const { run, episode, id, number, version } = shown;
    const drawn = this.picture.render(shown, step);
    this.observed.render(shown, step, palette, !drawn);
    if (!run.grid) setText(this.boardCard.firstChild, drawn ? "Picture" : "State");
    const answer = this.insights.of(id, version);
    this.moments.board = run.grid !== null;
    this.moments.render(answer, { id }, version, palette);
    this.answer.render(answer, id, run);
    this.rewards.render(episode, step, palette, answer?.found ?? null, number);
  }

  cellShown(run, episode, step, state) {
    if (!run.table || !run.known) return episode.cells(step)[0];
    if (this.hovered >= 0) return this.hovered;
    return state.cell >= 0 && state.cell < run.grid.cells.length ? state.cell : episode.cells(step)[0];
  }

  renderBoard({ run, episode, id, number, step, weights, frame, reason }, state, palette) {
    for (const part of [this.box, this.layers, this.board.legend, this.layerText]) part.hidden = run.grid === null;
    this.state.hidden = run.grid !== null || !run.compiled;
    setText(this.boardCard.firstChild, run.grid === null ? "State" : "Board");
    if (run.grid === null) {
      const place = episode.place(step);
      const label = place >= 0 ? run.labels[place] || `state ${place}` : "";
      setText(
        this.state,
        `This task has no board.${label ? ` Step ${step} is in ${label}.` : ""} The bars show what its advisors want.`,
      );
      setText(this.layerText, "");
      return;
    }
    const leads = run.known && run.aggregator.parts.some((part) => part.name === "max");
    this.map.disabled = !run.table;
    const wanted = state.map === LEADING ? (reason?.lead?.at ?? -1) : state.map;
    const only = run.table && wanted >= 0 && wanted < run.n ? wanted : null;
    this.heatBox.checked = state.heat;
    this.arrowsBox.checked = state.arrows;
    this.layer.value = state.attractors;
    const names = () => run.names.map((name, j) => [j, name]);
    const choices = () => [[-1, "all advisors"], ...(leads ? [[LEADING, "the strongest wish"]] : []), ...names()];
    fill(this.map, [run], choices, state.map === LEADING && leads ? LEADING : (only ?? -1));
    const landscape = this.remember("landscape", [episode, step, weights, only], () =>
      episode.landscape(step, weights, only),
    );
    const board = this.remember("board", [landscape, palette], () => boardOf(run, episode, step, landscape, palette));
    const answer = this.attractors.look(state.attractors, { id, number, episode, step, weights, changed: frame.changed });
    const width = widthOf(this.box, 160);
    this.board.render(
      {
        ...board,
        fraction: this.player.between,
        heat: state.heat,
        arrows: state.arrows,
        attractors: answer && answer.late ? [] : ringsOf(state.attractors, answer),
        led: ledItems(frame, reason),
        ways: this.whatIf.ways,
        cell: this.hovered,
        pinned: state.cell,
      },
      { width, height: Math.max(220, Math.min(width, window.innerHeight - AROUND)) },
    );
    const led = reason?.lead ? leadText(run, reason) : "";
    const mapText = only === null ? "" : `Only ${run.names[only]} is shown: its own values, without its weight. `;
    const found = answer && answer.late ? "" : attractorText(state.attractors, answer, episode, step);
    setText(this.layerText, led + mapText + found);
  }
}
