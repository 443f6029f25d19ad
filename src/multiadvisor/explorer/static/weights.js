// Weights: of groups and advisors, mute and solo. The agent itself is never changed.

import { el, setText, slider } from "./dom.js";
import { Latest } from "./source.js";

const SLIDERS = 30;
const LISTED = 120; // advisors that are listed at once

// The state of the page while nobody has touched a weight.
export const OWN_WEIGHTS = { weights: {}, muted: [], solo: [] };

// w [n] as it is set on the page.
export function weightsNow(run, state) {
  const weights = Float64Array.from(run.weights);
  if (!run.known) return weights; // the server has computed its preferences under these
  for (const [j, value] of Object.entries(state.weights)) if (Number(j) < run.n) weights[j] = value;
  const alone = new Set(state.solo.filter((j) => j < run.n));
  if (alone.size) for (let j = 0; j < run.n; j += 1) if (!alone.has(j)) weights[j] = 0;
  for (const j of state.muted) if (j < run.n && !alone.has(j)) weights[j] = 0;
  return weights;
}

function toggled(list, members, on) {
  const set = new Set(list);
  for (const j of members)
    if (on) set.add(j);
    else set.delete(j);
  return [...set].sort((p, q) => p - q);
}

export class Weights {
  constructor(store, source, retrain, redraw) {
    Object.assign(this, { store, source, answers: new Latest(redraw) });
    this.badge = el("span", { class: "badge", hidden: true }, "changed");
    this.reset = el("button", { class: "quiet", hidden: true, onclick: () => store.set(OWN_WEIGHTS) }, "Reset");
    this.note = el("p", { class: "note", hidden: true });
    this.retrain = el("button", { hidden: true, onclick: retrain }, "Train again with these weights");
    this.progress = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Training" });
    this.preview = el("p", { role: "status" });
    this.command = el("code", { class: "command" });
    const copy = () => window.navigator.clipboard?.writeText(this.command.textContent);
    const line = el("div", { class: "line" }, this.command, el("button", { class: "quiet", onclick: copy }, "Copy"));
    this.effect = el("div", { class: "effect spaced", hidden: true }, this.preview, line);
    this.groups = el("div", { class: "weights" });
    this.find = el("input", {
      type: "search",
      placeholder: "Find an advisor",
      "aria-label": "Find an advisor",
      oninput: () => this.list(),
    });
    this.each = el("div", { class: "weights scroll", tabIndex: 0, role: "region", "aria-label": "Single advisors" });
    this.open = el(
      "details",
      { class: "more", ontoggle: () => this.list() },
      el("summary", {}, "Single advisors"),
      this.find,
      this.each,
    );
    this.root = el(
      "div",
      { class: "spaced" },
      this.effect,
      this.note,
      el("div", { class: "line" }, this.retrain, this.progress),
      this.groups,
      this.open,
    );
    this.controls = [];
    this.run = null;
    this.problem = null; // why the last training failed, until the weights are others
  }

  // Of many groups those that have most to say in this episode have a slider at once.
  build(run, { strengths }) {
    Object.assign(this, { run, strengths, controls: [] });
    const size = ({ members }) => members.reduce((sum, j) => sum + strengths[j], 0);
    const many = run.groups.length > SLIDERS;
    const known = () => run.groups.filter((group) => size(group) > 0).sort((p, q) => size(q) - size(p));
    const shown = many ? known().slice(0, SLIDERS) : run.groups;
    this.groups.replaceChildren(...shown.map((group) => this.control(group.name, group.members)));
    this.fixed = this.controls.length;
    this.open.hidden = run.groups.every((group) => group.members.length === 1) && !many;
    this.list();
  }

  list() {
    if (!this.run || !this.open.open) return;
    this.controls.length = this.fixed;
    const wanted = this.find.value.trim().toLowerCase();
    const found = this.run.names
      .map((name, j) => [name, j])
      .filter(([name]) => name.toLowerCase().includes(wanted))
      .sort(([, p], [, q]) => this.strengths[q] - this.strengths[p]);
    const more =
      found.length > LISTED
        ? [el("p", { class: "hint" }, `and ${found.length - LISTED} more: type a part of the name`)]
        : [];
    this.each.replaceChildren(...found.slice(0, LISTED).map(([name, j]) => this.control(name, [j])), ...more);
    this.update();
  }

  control(name, members) {
    const { store } = this;
    const change = (value) => {
      const weights = { ...store.state.weights };
      for (const j of members) {
        if (value === this.run.weights[j]) delete weights[j];
        else weights[j] = value;
      }
      store.set({ weights });
    };
    // solo and mute lift each other: nobody can be both
    const choose = (name, other, button) => {
      const on = button.getAttribute("aria-pressed") !== "true";
      const lifted = on ? toggled(store.state[other], members, false) : store.state[other];
      store.set({ [name]: toggled(store.state[name], members, on), [other]: lifted });
    };
    const number = el("output", { class: "number" });
    // a weight of 1000 needs a longer slider than one of 1
    const far = Math.max(...members.map((j) => Math.abs(this.run.weights[j])));
    const scale = far > 2 ? far : 1;
    const range = slider(-2 * scale, 4 * scale, 0.05 * scale, {
      "aria-label": `Weight of ${name}`,
      oninput: () => change(Number(range.value)),
    });
    const toggle = (text, label, onclick) =>
      el("button", { class: "toggle", "aria-pressed": "false", "aria-label": `${label} ${name}`, onclick }, text);
    const mute = toggle("Mute", "Mute", () => choose("muted", "solo", mute));
    const solo = toggle("Solo", "Solo", () => choose("solo", "muted", solo));
    const [only] = members;
    const show = () => store.set({ map: store.state.map === only ? -1 : only });
    const map = members.length === 1 && this.run.grid ? toggle("Map", "Map of", show) : null;
    const label = members.length > 1 ? `${name} (${members.length})` : name;
    this.controls.push({ members, number, range, mute, solo, map });
    return el(
      "div",
      { class: "weight" },
      el("span", { class: "name", title: name }, label),
      range,
      number,
      el("span", { class: "buttons" }, mute, solo, map),
    );
  }

  update() {
    const { run } = this;
    const { state } = this.store;
    const muted = new Set(state.muted);
    const solo = new Set(state.solo);
    for (const control of this.controls) {
      const values = control.members.map((j) => state.weights[j] ?? run.weights[j]);
      const same = values.every((value) => value === values[0]);
      if (document.activeElement !== control.range || Number(control.range.value) !== values[0])
        control.range.value = values[0];
      for (const part of [control.range, control.mute, control.solo]) part.disabled = !run.known;
      setText(control.number, same ? values[0].toFixed(2) : "mixed");
      control.mute.setAttribute("aria-pressed", String(control.members.every((j) => muted.has(j))));
      control.solo.setAttribute("aria-pressed", String(control.members.every((j) => solo.has(j))));
      if (control.map) control.map.setAttribute("aria-pressed", String(state.map === control.members[0]));
    }
  }

  // What other weights would do in all episodes, and how to train with them: the server says it.
  foresee(id, weights) {
    const question = { do: "preview", run: id, weights: [...weights] };
    const answer = this.answers.of(JSON.stringify(question), () => this.source.ask(question));
    if (!answer) return;
    const { text, command } = answer.found ?? { text: answer.problem, command: "" };
    setText(this.preview, text);
    if (this.command.textContent !== command)
      this.command.replaceChildren(...command.split(/(?<= )/).map((word) => el("span", {}, word)));
    this.command.parentNode.hidden = !command;
    this.effect.hidden = false;
  }

  render(run, state, live, episode, id) {
    if (run !== this.run) this.build(run, episode);
    const weights = weightsNow(run, state);
    const changed = run.weights.some((value, j) => value !== weights[j]);
    if (changed && live && run.known) this.foresee(id, weights);
    else this.effect.hidden = true;
    this.badge.hidden = !changed;
    this.reset.hidden = !changed;
    this.note.hidden = !changed && run.known;
    const silent = weights.every((weight) => weight === 0);
    if (this.problem && this.problem.weights !== state.weights) this.problem = null;
    const parts = [run.reweighted, "The episode itself was played with the old weights."];
    if (!live) parts.push("This file cannot retrain.");
    else if (silent) parts.push("Nobody has a say now: raise a weight to train again.");
    else if (this.problem) parts.push(this.problem.text);
    const foreign = "Other weights can be tried only under the library's own aggregations";
    setText(this.note, run.known ? parts.join(" ") : `${foreign}, and this run uses ${run.aggregation}.`);
    this.retrain.hidden = !changed || !live || !this.progress.hidden;
    this.retrain.disabled = silent;
    this.update();
  }
}
