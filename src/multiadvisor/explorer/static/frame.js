// All that is shown of one step, computed once.

import { combinedParts } from "./maths.js";

export function frameOf(run, episode, step, weights) {
  const { advisors, rows, advice } = episode.advice(step, weights);
  const over = step >= episode.steps;
  const parts = run.known ? combinedParts(run.aggregator, advisors, episode.applied(step, weights)) : [];
  const total = episode.preferences(step, weights);
  const action = over ? -1 : episode.action[step];
  const explored = !over && episode.explored[step] === 1;
  const changed = run.weights.some((weight, j) => weight !== weights[j]);
  return { run, episode, step, weights, advisors, rows, advice, over, parts, total, action, explored, changed };
}

// The items of the strongest wish and of the next that wants something else: [cell, whether it leads].
export function ledItems({ run }, reason) {
  if (!reason?.lead || !run.grid) return [];
  const { at, next } = reason.lead;
  return [next, at]
    .filter((j) => j >= 0 && run.itemOf[j] >= 0)
    .map((j) => [run.grid.items[run.itemOf[j]].cell, j === at]);
}
