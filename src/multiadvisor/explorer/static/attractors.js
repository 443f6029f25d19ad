// The attractor layer: the theory lab is asked about the board as it lies in this step.

import { plural } from "./dom.js";
import { Latest } from "./source.js";

export class Attractors {
  constructor(source, redraw) {
    this.source = source;
    this.answers = new Latest(redraw);
  }

  // What is known of this step, or null while the answer is awaited.
  look(kind, { id, number, episode, step, weights, changed }) {
    if (kind === "off" || !episode.run.grid || !episode.run.grid.items.length) return null;
    if (!this.source.live) return this.source.layer(id, step);
    const mask = episode.arrays.items.subarray(step * episode.bytes, (step + 1) * episode.bytes).join(".");
    const others = kind === "learned" ? episode.cells(step).subarray(1).join(".") : "";
    const own = changed ? Array.from(weights) : null;
    const key = `${id} ${number} ${mask} ${others} ${kind} ${own ? own.join(" ") : ""}`;
    const question = { do: "attractors", run: id, episode: number, step, weights: own };
    const answer = this.answers.of(key, () => this.source.ask(question));
    if (answer) this.last = { id, ...(answer.found ?? answer) };
    return answer ? this.last : this.last?.id === id ? { ...this.last, late: true } : null;
  }

  forget() {
    this.answers.forget();
    this.last = null;
  }
}

// Which rings to draw.
export function ringsOf(kind, answer) {
  if (!answer || answer.problem) return [];
  return (kind === "learned" ? answer.learned : answer.exact) || [];
}

// The layer in words, beginning with where the player stands.
export function attractorText(kind, answer, episode, step) {
  if (kind === "off") return "";
  if (!episode.run.grid || !episode.run.grid.items.length) return "Attractors are computed for boards of fruit only.";
  if (!answer) return "";
  if (answer.problem) return answer.problem;
  if (kind === "learned" && answer.learned === null && answer.planning === "egocentric")
    return "Attractors of learned values need the library: open the run with `multiadvisor explore`.";
  if (kind === "learned" && answer.learned === null)
    return `Attractors are defined for egocentric values, and these are ${answer.planning}: choose "exact".`;
  const rings = ringsOf(kind, answer);
  const name = (cell) => `(${episode.run.grid.cells[cell].join(", ")})`;
  const stable = rings.filter((one) => one.stable).map((one) => name(one.cell));
  const here = rings.find((one) => one.cell === episode.cells(step)[0]);
  const aggregated = episode.run.plain ? "" : `, aggregated by ${episode.run.aggregation}`;
  const from = kind === "learned" ? "the learned values" : `exact egocentric values at gamma ${answer.gamma}`;
  const values = `${from}${aggregated}`;
  const parts = [];
  if (here) {
    const kindOf = here.stable ? "a stable" : "an unstable";
    parts.push(`The player is at ${name(here.cell)}, which the solver calls ${kindOf} attractor.`);
  }
  const count = plural(rings.length, "attractor");
  if (!rings.length) parts.push(`By ${values}: ${count}.`);
  else {
    const which = stable.length ? `stable at ${stable.join(", ")}` : "none of them stable";
    parts.push(`By ${values}: ${count}, ${which}.`, "Double rings are stable, dashed ones are not.");
  }
  return parts.join(" ");
}
