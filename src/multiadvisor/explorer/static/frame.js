// All that is shown of one step, computed once.

import { contributionsOf, heardParts, largest, leadOf, roundingOf } from "./maths.js";

export function frameOf(run, episode, step, weights) {
  const { advisors, rows, advice } = episode.advice(step, weights);
  const total = episode.preferences(step, weights);
  const action = step < episode.steps ? episode.action[step] : -1;
  const parts = run.known ? heardParts(run.aggregator, advisors, episode.heard(step, weights)) : [];
  const tolerance = run.known
    ? roundingOf(episode.table, run.A, parts, rows, episode.precision)
    : 8 * (advisors.length + 1) * episode.precision * largest(total.map(Math.abs));
  return {
    run,
    episode,
    step,
    weights,
    advisors,
    rows,
    advice,
    parts,
    total,
    tolerance,
    lead: run.known ? leadOf(parts, advice, tolerance) : null,
    action,
    explored: step < episode.steps && episode.explored[step] === 1,
  };
}

// What everyone contributes to one action over another; nothing is known of an aggregation from elsewhere.
export function contributions({ run, episode, rows, parts }, action, other) {
  return run.known ? contributionsOf(episode.table, run.A, parts, rows, action, other) : new Float64Array(rows.length);
}

// The items of the strongest wish and of the next that wants something else: [cell, whether it leads].
export function ledItems({ run, lead, advisors }) {
  if (!lead || !run.grid) return [];
  return [lead.next, lead.at]
    .filter((i) => i >= 0 && run.itemOf[advisors[i]] >= 0)
    .map((i) => [run.grid.items[run.itemOf[advisors[i]]].cell, i === lead.at]);
}
