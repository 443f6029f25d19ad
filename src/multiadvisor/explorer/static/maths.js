// What other weights would make of the advice: the library's aggregations, on plain arrays. Reasons are the library's own.

const TIE = 1e-12; // relative, as in the theory lab: closer than this is rounding

// ---- aggregations ----------------------------------------------------------------------------------------------------
// Each makes preferences [A] of advice, rows [m] of values [A], combined with weights [m]: the twins of the library's. An
// advisor of weight 0 is silent.

function numbers(count, of) {
  const out = new Float64Array(count);
  for (let k = 0; k < count; k += 1) out[k] = of(k);
  return out;
}

const total = (advice, term) => advice.reduce((sum, own, i) => sum + term(own, i), 0);
const wish = (own, weight, a) => Math.max(weight * own[a], 0);

function combineSum(A, advice, weights) {
  return numbers(A, (a) => total(advice, (own, i) => (weights[i] !== 0 ? weights[i] * own[a] : 0)));
}

function combineMax(A, advice, weights) {
  const weighed = advice.map((_, i) => i).filter((i) => weights[i] !== 0);
  if (!weighed.length) return new Float64Array(A);
  return numbers(A, (a) => weighed.reduce((most, i) => Math.max(most, weights[i] * advice[i][a]), -Infinity));
}

function combineNorm(A, advice, weights, exponent) {
  return numbers(A, (a) => {
    const most = advice.reduce((p, own, i) => Math.max(p, wish(own, weights[i], a)), 0);
    const sum = most > 0 ? total(advice, (own, i) => (wish(own, weights[i], a) / most) ** exponent) : 0;
    return most * sum ** (1 / exponent);
  });
}

function combineVotes(A, advice, weights) {
  const tops = advice.map((own) => largest(own));
  const shares = advice.map((own, i) => weights[i] / own.filter((value) => value === tops[i]).length);
  return numbers(A, (a) => total(advice, (own, i) => (own[a] === tops[i] ? shares[i] : 0)));
}

function combineRanks(A, advice, weights) {
  const points = (own, a) => own.reduce((sum, value) => sum + (own[a] > value ? 1 : own[a] === value ? 0.5 : 0), 0.5);
  return numbers(A, (a) => total(advice, (own, i) => weights[i] * points(own, a)));
}

function combineBoltzmann(A, advice, weights, temperature, share) {
  const scaled = advice.map((own) => own.map((value) => (value - largest(own)) / temperature));
  const sums = scaled.map((own) => own.reduce((sum, value) => sum + Math.exp(value), 0));
  return numbers(A, (a) => total(scaled, (own, i) => weights[i] * share(own[a], sums[i])));
}

function combineWishes(A, advice, weights) {
  return numbers(A, (a) => total(advice, (own, i) => wish(own, weights[i], a)));
}

function combineMaxPlus(A, advice, weights, share) {
  const [most, sum] = [combineMax(A, advice, weights), combineWishes(A, advice, weights)];
  return numbers(A, (a) => most[a] + share * sum[a]);
}

function combineNormalised(A, advice, weights) {
  const sum = combineWishes(A, advice, weights);
  const most = largest(sum);
  return sum.map((value) => (most > 0 ? value / most : 0));
}

export const AGGREGATIONS = {
  sum: combineSum,
  max: combineMax,
  max_plus: combineMaxPlus,
  p_norm: combineNorm,
  majority: combineVotes,
  ranks: combineRanks,
  boltzmann_product: (...given) => combineBoltzmann(...given, (scaled, sum) => scaled - Math.log(sum)),
  boltzmann_sum: (...given) => combineBoltzmann(...given, (scaled, sum) => Math.exp(scaled) / sum),
  normalised: combineNormalised,
};

// Who is combined, and how: `at` are places among the advisors that speak.
export function combinedParts(aggregator, advisors, weights) {
  return aggregator.parts
    .map((part, k) => {
      const at = advisors.map((_, i) => i).filter((i) => aggregator.of[advisors[i]] === k);
      return { ...part, number: k, at, weights: at.map((i) => weights[advisors[i]]) };
    })
    .filter((part) => part.at.length);
}

// The advice of the members of a part, or of some of them, by their places in it, and their weights.
function inputsOf(table, A, part, rows, only = part.at.map((_, k) => k)) {
  const advice = only.map((k) => table.subarray(rows[part.at[k]] * A, (rows[part.at[k]] + 1) * A));
  return [A, advice, only.map((k) => part.weights[k])];
}

// The preferences of one part [A], or of some of its members.
export function hearPart(table, A, part, rows, only) {
  return AGGREGATIONS[part.name](...inputsOf(table, A, part, rows, only), part.parameter);
}

// What some members of a part that is normalised add to it: their wishes, by the largest sum of all wishes.
export function normalisedShare(table, A, part, rows, only) {
  const wishes = (members) => combineWishes(...inputsOf(table, A, part, rows, members));
  const most = largest(wishes());
  return wishes(only).map((value) => (most > 0 ? value / most : 0));
}

// The preferences of all: the parts are added.
export function preferencesOf(table, A, parts, rows) {
  const each = parts.map((part) => hearPart(table, A, part, rows));
  return numbers(A, (a) => total(each, (own) => own[a]));
}

// ---- actions ---------------------------------------------------------------------------------------------------------
// The best actions, all of those that are equal up to rounding.
export function bestActions(values, from = 0, count = values.length) {
  const best = largest(values, from, count);
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
  return advisors.map((j, i) => numbers(actions, (a) => weights[j] * table[rows[i] * actions + a]));
}

// The gap between the sum of the maxima and the maximum of the sum: 0 where all want the same.
export function disagreementOf(advice, summed) {
  return Math.max(0, total(advice, (own) => largest(own)) - largest(summed));
}

// max_a of a landscape, cell by cell.
export function heights(landscape, A) {
  return numbers(landscape.length / A, (c) => largest(landscape, c * A, A));
}
