// The library's formulas, on plain arrays: nothing here knows of the page.

const TIE = 1e-12; // relative, as in the theory lab: closer than this is rounding

// ---- aggregations ----------------------------------------------------------------------------------------------------
// Each fills `out` [A] with what it makes of some rows of the table, heard with these weights: the twins of the
// library's. An advisor of weight 0 is silent.

function hearSum(table, A, rows, weights, parameter, out) {
  out.fill(0);
  rows.forEach((row, i) => {
    if (weights[i] !== 0) for (let a = 0; a < A; a += 1) out[a] += weights[i] * table[row * A + a];
  });
}

function hearMax(table, A, rows, weights, parameter, out) {
  out.fill(-Infinity);
  rows.forEach((row, i) => {
    if (weights[i] !== 0) for (let a = 0; a < A; a += 1) out[a] = Math.max(out[a], weights[i] * table[row * A + a]);
  });
  for (let a = 0; a < A; a += 1) if (out[a] === -Infinity) out[a] = 0;
}

function hearNorm(table, A, rows, weights, exponent, out) {
  for (let a = 0; a < A; a += 1) {
    const wished = rows.map((row, i) => Math.max(weights[i] * table[row * A + a], 0));
    const most = wished.reduce((p, q) => Math.max(p, q), 0);
    const total = most > 0 ? wished.reduce((sum, value) => sum + (value / most) ** exponent, 0) : 0;
    out[a] = most * total ** (1 / exponent);
  }
}

function hearVotes(table, A, rows, weights, parameter, out) {
  out.fill(0);
  rows.forEach((row, i) => {
    const own = table.subarray(row * A, (row + 1) * A);
    const most = largest(own);
    const vote = weights[i] / own.filter((value) => value === most).length;
    for (let a = 0; a < A; a += 1) if (own[a] === most) out[a] += vote;
  });
}

function hearRanks(table, A, rows, weights, parameter, out) {
  out.fill(0);
  rows.forEach((row, i) => {
    const own = table.subarray(row * A, (row + 1) * A);
    for (let a = 0; a < A; a += 1) {
      let points = 0.5;
      for (const value of own) points += own[a] > value ? 1 : own[a] === value ? 0.5 : 0;
      out[a] += weights[i] * points;
    }
  });
}

function hearBoltzmann(table, A, rows, weights, temperature, out, share) {
  out.fill(0);
  rows.forEach((row, i) => {
    const own = table.subarray(row * A, (row + 1) * A);
    const scaled = own.map((value) => (value - largest(own)) / temperature);
    const total = scaled.reduce((sum, value) => sum + Math.exp(value), 0);
    for (let a = 0; a < A; a += 1) out[a] += weights[i] * share(scaled[a], total);
  });
}

function hearMaxPlus(table, A, rows, weights, share, out) {
  const most = new Float64Array(A);
  hearMax(table, A, rows, weights, 0, most);
  out.fill(0);
  rows.forEach((row, i) => {
    for (let a = 0; a < A; a += 1) out[a] += Math.max(weights[i] * table[row * A + a], 0);
  });
  for (let a = 0; a < A; a += 1) out[a] = most[a] + share * out[a];
}

function hearNormalised(table, A, rows, weights, parameter, out) {
  out.fill(0);
  rows.forEach((row, i) => {
    for (let a = 0; a < A; a += 1) out[a] += Math.max(weights[i] * table[row * A + a], 0);
  });
  const most = largest(out);
  for (let a = 0; a < A; a += 1) out[a] = most > 0 ? out[a] / most : 0;
}

export const AGGREGATIONS = {
  sum: hearSum,
  max: hearMax,
  max_plus: hearMaxPlus,
  p_norm: hearNorm,
  majority: hearVotes,
  ranks: hearRanks,
  boltzmann_product: (...given) => hearBoltzmann(...given, (scaled, total) => scaled - Math.log(total)),
  boltzmann_sum: (...given) => hearBoltzmann(...given, (scaled, total) => Math.exp(scaled) / total),
  normalised: hearNormalised,
};

// Who is heard together and how: `at` are places among the advisors that speak.
export function heardParts(aggregator, advisors, weights) {
  return aggregator.parts
    .map((part, k) => {
      const at = advisors.map((_, i) => i).filter((i) => aggregator.of[advisors[i]] === k);
      return { ...part, number: k, at, weights: at.map((i) => weights[advisors[i]]) };
    })
    .filter((part) => part.at.length);
}

// The preferences of one part [A]; with `only`, of some of its members, by their places in it.
export function hearPart(table, A, part, rows, only = null) {
  const out = new Float64Array(A);
  const some = only ? only.map((k) => rows[part.at[k]]) : part.at.map((i) => rows[i]);
  const heard = only ? only.map((k) => part.weights[k]) : part.weights;
  AGGREGATIONS[part.name](table, A, some, heard, part.parameter, out);
  return out;
}

// What some members of a part that is normalised add to it: their wishes, by the largest sum of all wishes.
export function normalisedShare(table, A, part, rows, only) {
  const wishes = (k, a) => Math.max(part.weights[k] * table[rows[part.at[k]] * A + a], 0);
  const sums = (members) => Float64Array.from({ length: A }, (_, a) => members.reduce((sum, k) => sum + wishes(k, a), 0));
  const most = largest(sums(part.at.map((_, k) => k)));
  return sums(only).map((value) => (most > 0 ? value / most : 0));
}

// The preferences of all: the parts are added.
export function preferencesOf(table, A, parts, rows) {
  const out = new Float64Array(A);
  for (const part of parts) {
    const own = hearPart(table, A, part, rows);
    for (let a = 0; a < A; a += 1) out[a] += own[a];
  }
  return out;
}

// What the lead of one action over another loses if an advisor is silent, for everyone who speaks [m].
export function contributionsOf(table, A, parts, rows, action, other) {
  const found = new Float64Array(rows.length);
  for (const part of parts) {
    const gap = (values) => values[action] - values[other];
    const now = gap(hearPart(table, A, part, rows));
    if (part.name === "normalised") {
      const own = part.at.map((i, k) => Float64Array.from({ length: A }, (_, a) => Math.max(part.weights[k] * table[rows[i] * A + a], 0)));
      const all = Float64Array.from({ length: A }, (_, a) => own.reduce((sum, wish) => sum + wish[a], 0));
      part.at.forEach((i, k) => {
        const others = all.map((sum, a) => Math.max(sum - own[k][a], 0));
        found[i] = now - (gap(others) / (largest(others) || 1));
      });
      continue;
    }
    part.at.forEach((i, k) => {
      if (part.additive) found[i] = gap(hearPart(table, A, part, rows, [k]));
      else {
        const weights = part.weights.map((weight, j) => (j === k ? 0 : weight));
        found[i] = now - gap(hearPart(table, A, { ...part, weights }, rows));
      }
    });
  }
  return found;
}

// How far apart two preferences may be by rounding alone.
export function roundingOf(table, A, parts, rows, precision) {
  const size = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  let total = 0;
  for (const part of parts) {
    const each = part.at.map((_, k) => k);
    if (part.additive)
      total += (each.length + 1) * each.reduce((sum, k) => sum + size(hearPart(table, A, part, rows, [k])), 0);
    else if (part.name === "max")
      total += 2 * each.reduce((most, k) => Math.max(most, size(hearPart(table, A, part, rows, [k]))), 0);
    else total += 8 * (each.length + 1) * size(hearPart(table, A, part, rows));
  }
  return precision * total;
}

// The strongest wish where a maximum decides, and the strongest of those who would rather have another action, as
// places among the advisors that speak; null where nothing of the kind is said.
export function leadOf(parts, advice, tolerance) {
  const members = parts
    .filter((part) => part.name === "max")
    .flatMap((part) => part.at.filter((_, k) => part.weights[k] !== 0))
    .sort((p, q) => p - q);
  const strongest = (some) => some.reduce((p, q) => (p < 0 || largest(advice[q]) > largest(advice[p]) ? q : p), -1);
  const at = strongest(members);
  if (at < 0) return null;
  const value = largest(advice[at]);
  const action = advice[at].indexOf(value);
  const next = strongest(members.filter((i) => advice[i][action] < largest(advice[i]) - tolerance));
  if (next < 0) return { members, at, action, value, next, nextAction: -1, nextValue: NaN };
  const nextValue = largest(advice[next]);
  return { members, at, action, value, next, nextAction: advice[next].indexOf(nextValue), nextValue };
}

// ---- actions ---------------------------------------------------------------------------------------------------------
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

// Contributions by advisor, the largest first.
export function ranked(advisors, contributions) {
  return advisors
    .map((advisor, i) => ({ advisor, value: contributions[i] }))
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
