// All that is shown of one turn, computed once.

import { contributionsOf, heardParts, largest, leadOf, roundingOf } from "./maths.js";

export function frameOf(run, game, turn, weights) {
  const { advisors, rows, advice } = game.advice(turn, weights);
  const total = game.preferences(turn, weights);
  const action = turn < game.turns ? game.action[turn] : -1;
  const parts = run.known ? heardParts(run.voices, advisors, game.heard(turn, weights)) : [];
  const tolerance = run.known
    ? roundingOf(game.table, run.A, parts, rows, game.precision)
    : 8 * (advisors.length + 1) * game.precision * largest(total.map(Math.abs));
  return {
    run,
    game,
    turn,
    weights,
    advisors,
    rows,
    advice,
    parts,
    total,
    tolerance,
    lead: run.known ? leadOf(parts, advice, tolerance) : null,
    action,
    explored: turn < game.turns && game.explored[turn] === 1,
  };
}

// What everyone contributes to one action over another; nothing is known of an aggregation from elsewhere.
export function contributions({ run, game, rows, parts }, action, other) {
  return run.known ? contributionsOf(game.table, run.A, parts, rows, action, other) : new Float64Array(rows.length);
}

// The items of the strongest wish and of the next that wants something else: [cell, whether it leads].
export function ledItems({ run, lead, advisors }) {
  if (!lead || !run.grid) return [];
  return [lead.next, lead.at]
    .filter((i) => i >= 0 && run.itemOf[advisors[i]] >= 0)
    .map((i) => [run.grid.items[run.itemOf[advisors[i]]].cell, i === lead.at]);
}
