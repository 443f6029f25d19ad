// The library's formulas, on plain arrays: nothing here knows of the page.

const TIE = 1e-12; // relative, as in the theory lab: closer than this is rounding

// Q_Sigma(x, a) = sum_j w_j Q_j(x_j, a), over the rows of the advisors that speak.
export function weightedSum(table, actions, advisors, rows, weights, out) {
  out.fill(0);
  for (let i = 0; i < advisors.length; i += 1) {
    const weight = weights[advisors[i]];
    if (weight === 0) continue;
    const at = rows[i] * actions;
    for (let a = 0; a < actions; a += 1) out[a] += weight * table[at + a];
  }
  return out;
}

// The best actions, all of those that are equal up to rounding.
export function bestActions(values, from = 0, count = values.length) {
  let best = -Infinity;
  for (let a = 0; a < count; a += 1) best = Math.max(best, values[from + a]);
  const margin = TIE * Math.max(1, Math.abs(best));
  const found = [];
  for (let a = 0; a < count; a += 1) if (values[from + a] >= best - margin) found.push(a);
  return found;
}

export function largest(values, from = 0, count = values.length) {
  let best = -Infinity;
  for (let a = 0; a < count; a += 1) best = Math.max(best, values[from + a]);
  return best;
}

// By how much the best action beats the next one; 0 for a tie.
export function marginOf(values) {
  if (values.length < 2) return 0;
  const sorted = Array.from(values).sort((p, q) => q - p);
  const margin = sorted[0] - sorted[1];
  return margin <= TIE * Math.max(1, Math.abs(sorted[0])) ? 0 : margin;
}

// The weighted advice [m][A] of the advisors that speak.
export function weightedAdvice(table, actions, advisors, rows, weights) {
  return advisors.map((j, i) => {
    const at = rows[i] * actions;
    const own = new Float64Array(actions);
    for (let a = 0; a < actions; a += 1) own[a] = weights[j] * table[at + a];
    return own;
  });
}

// The gap between the sum of the maxima and the maximum of the sum: 0 where all want the same.
export function disagreementOf(advice, total) {
  let sum = 0;
  for (const own of advice) sum += largest(own);
  return Math.max(0, sum - largest(total));
}

// Differences between two actions, the largest first: the full table (RDX).
export function differences(advisors, advice, action, other) {
  return advisors
    .map((advisor, i) => ({ advisor, value: advice[i][action] - advice[i][other] }))
    .sort((p, q) => q.value - p.value || p.advisor - q.advisor);
}

// The fewest advisors that decide (MSX). Plus: whose differences together outweigh everything against the action. Minus:
// the fewest against it that would win if the weakest of those were missing. Sorting suffices; no subset is searched.
export function shortestReason(sorted) {
  const against = sorted.filter((one) => one.value < 0).reverse();
  const loss = -against.reduce((sum, one) => sum + one.value, 0);
  const plus = [];
  let gain = 0;
  for (const one of sorted) {
    if (one.value <= 0 || gain > loss) break;
    plus.push(one);
    gain += one.value;
  }
  const decided = gain > loss;
  const minus = [];
  if (decided && plus.length) {
    const threshold = gain - plus[plus.length - 1].value;
    let weight = 0;
    for (const one of against) {
      if (weight > threshold) break;
      minus.push(one);
      weight -= one.value;
    }
  }
  return { plus, minus, gain, loss, decided };
}

// Stretches of at least `least` turns that bring nothing and visit few places: where the game is stuck.
export function stuckStretches(places, earning, least = 12, few = 3) {
  const found = [];
  const turns = places.length - 1;
  let start = 0;
  while (start < turns) {
    const seen = new Set([places[start]]);
    let end = start;
    while (end < turns && !earning[end] && (seen.has(places[end + 1]) || seen.size < few)) {
      seen.add(places[end + 1]);
      end += 1;
    }
    if (end - start >= least) {
      found.push({ start, end });
      start = end;
    } else start += 1;
  }
  return found;
}
