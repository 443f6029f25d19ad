// What other weights would make of the advice: the library's aggregations, on plain arrays. Reasons are the library's own.

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

// max_a of a landscape, cell by cell.
export function heights(landscape, A) {
  const out = new Float64Array(landscape.length / A);
  for (let c = 0; c < out.length; c += 1) out[c] = largest(landscape, c * A, A);
  return out;
}
