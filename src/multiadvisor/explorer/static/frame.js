// All that is shown of one turn, computed once.

export function frameOf(run, game, turn, weights) {
  const { advisors, advice } = game.advice(turn, weights);
  const total = game.preferences(turn, weights);
  const action = turn < game.turns ? game.action[turn] : -1;
  return {
    run,
    game,
    turn,
    weights,
    advisors,
    advice,
    total,
    action,
    explored: turn < game.turns && game.explored[turn] === 1,
  };
}
