// The library's own sentence on one action against another, word for word: `multiadvisor explain` says the same.

import { contributions } from "./frame.js";
import { hearPart, shortestReason } from "./maths.js";

const NAMED = 3; // so many of a group are named, the others counted
const NOISE = 1e-6; // of all gains: who loses less is not said to object
const POINTS = { N: "North", W: "West", S: "South", E: "East" };

function joined(parts) {
  return parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts.join("");
}

function firstFew(parts, count) {
  return parts.length <= NAMED + 1 ? parts : [...parts.slice(0, NAMED), `${count - NAMED} more`];
}

// Advisors in words, those of a group together: "fruits at (2, 3) and (2, 5), and ghost 2".
function crowd(some) {
  const crowds = new Map();
  for (const { said, group } of some) {
    const found = group ? /^(.+?) (\(.*\)|\S+)$/.exec(said) : null;
    const [kind, place] = found ? [found[1], found[2]] : [said, ""];
    const key = JSON.stringify([group, kind]);
    if (!crowds.has(key)) crowds.set(key, { group, kind, places: [] });
    crowds.get(key).places.push(place);
  }
  const all = [...crowds.values()];
  const parts = all.map(({ group, kind, places }) => {
    const at = places[0].startsWith("(") ? " at" : "";
    return `${places.length === 1 ? kind : group}${at} ${joined(firstFew(places, places.length))}`.trimEnd();
  });
  const named = all.slice(0, NAMED).reduce((sum, { places }) => sum + places.length, 0);
  const shown = firstFew(parts, some.length - named + NAMED);
  return all.length === some.length ? joined(shown) : shown.join(", and ");
}

// As Python rounds: what lies exactly between two numbers goes to the even one.
function fixed(value, digits) {
  if (!Number.isFinite(value)) return String(value);
  const exact = value.toFixed(60);
  const end = exact.indexOf(".") + 1 + digits;
  const even = /^50*$/.test(exact.slice(end)) && Number(exact[end - 1]) % 2 === 0;
  return even ? exact.slice(0, end) : value.toFixed(digits);
}

// Four digits that count, as Python's "%.4g".
function general(value) {
  const [digits, power] = value.toExponential(3).split("e").map(Number);
  if (power >= -4 && power < 4) return String(Number(value.toPrecision(4)));
  return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

// Two sums with two decimals, or as many more as it takes to tell their sizes apart.
function numbers(first, second) {
  const seen = (text) => /[^-0.]/.test(text);
  const size = (text) => text.replace(/^-+/, "");
  for (let digits = 2; digits < 7; digits += 1) {
    const [a, b] = [fixed(first, digits), fixed(second, digits)];
    if (seen(a) && seen(b) && (size(a) !== size(b) || first === -second)) return [a, b];
  }
  return [general(first), general(second)];
}

function sum(some) {
  return some.reduce((total, one) => total + one.value, 0);
}

function verb(some, word) {
  return some.length === 1 ? `${word}s` : word;
}

// The fewest whose differences outweigh all those against them.
function deciding(all, sign) {
  const sorted = all.map((one) => ({ one, value: sign * one.value })).sort((p, q) => q.value - p.value);
  return shortestReason(sorted).plus.map(({ one }) => one);
}

// Votes as people count them: 5, or 2.5.
function votes(value) {
  return fixed(value, 2).replace(/0+$/, "").replace(/\.$/, "");
}

function single(value) {
  return numbers(value, Infinity)[0];
}

// Two wishes: those that are equal up to rounding look equal.
function two(first, second) {
  const equal = Math.abs(first - second) <= 1e-9 * Math.max(Math.abs(first), Math.abs(second));
  return equal ? [single(first), single(second)] : numbers(first, second);
}

// The gains of some outweigh the losses of the others.
function summed(all, start, side) {
  const strongest = byStrength(all);
  const gains = strongest.filter((one) => one.value > 0);
  const losses = strongest.filter((one) => one.value < 0);
  if (side === 0) {
    if (!gains.length || !losses.length) return `${start}: they are the same to everybody`;
    const [a, b] = numbers(sum(gains), sum(losses));
    return `${start}: ${crowd(gains)}, ${a}, ${verb(gains, "balance")} ${crowd(losses)}, ${b}`;
  }
  const reasons = deciding(all, side);
  const [won, lost] = side < 0 ? [losses, gains] : [gains, losses];
  const against = lost.filter((one) => Math.abs(one.value) > NOISE * Math.abs(sum(won)));
  if (!against.length) return `${start}: ${crowd(reasons)}, ${single(sum(reasons))}, and nobody objects`;
  const [a, b] = numbers(sum(reasons), sum(against));
  return `${start}: ${crowd(reasons)}, ${a}, ${verb(reasons, "outweigh")} ${crowd(against)}, ${b}`;
}

function byStrength(all) {
  return [...all].sort((p, q) => Math.abs(q.value) - Math.abs(p.value));
}

// The strongest wish, over whom; and those who are summed, where they change the decision.
function led({ frame, all, start, side, does, word, moves, action, other, asked }) {
  const { lead, advice, total, tolerance, run, advisors } = frame;
  const [would, away] = moves ? ["would go", "elsewhere"] : ["would choose", "otherwise"];
  const name = (i) => crowd([run.advisors[advisors[i]]]);
  const first = total.map((_, a) => lead.members.reduce((p, q) => (advice[q][a] > advice[p][a] ? q : p)));
  const top = total.map((_, a) => advice[first[a]][a]);
  const others = advisors.map((_, i) => i).filter((i) => !lead.members.includes(i));
  const gains = (a, b) => others.map((i) => ({ ...run.advisors[advisors[i]], value: advice[i][a] - advice[i][b] }));
  if (asked || side < 1) {
    const [x, y] = two(top[action], top[other]);
    const [mine, its] = [name(first[action]), name(first[other])];
    const text =
      first[action] === first[other]
        ? `${start}: ${mine} has the strongest wish for both, ${x} and ${y}`
        : `${start}: the strongest wish for ${word(action)} is ${mine}, ${x}, for ${word(other)} ${its}, ${y}`;
    const gap = sum(gains(action, other));
    if (Math.abs(gap) <= tolerance) return text;
    const speaking = byStrength(others.map((i) => all[i])).filter((one) => Math.sign(gap) * one.value > 0);
    const which = gap > 0 ? "for" : "against";
    return `${text}; ${crowd(speaking)}, ${single(gap)}, ${verb(speaking, "speak")} ${which} ${word(action)}`;
  }
  if (advice[lead.at][action] >= lead.value - tolerance) {
    const text = `${does}: ${name(lead.at)}`;
    if (lead.next < 0) return `${text}, ${single(lead.value)}, is the strongest wish, and nobody ${would} ${away}`;
    const [x, y] = two(lead.value, lead.nextValue);
    const beaten = `the next, ${name(lead.next)}, ${y}, ${would} ${word(lead.nextAction)}`;
    return `${text}, ${x}, is the strongest wish; ${beaten}`;
  }
  const gained = gains(action, lead.action);
  const winning = byStrength(gained).filter((one) => one.value > 0);
  const [x, y] = numbers(sum(gained), lead.value);
  const beaten = `the strongest wish, ${name(lead.at)}, ${y}, which ${would} ${word(lead.action)}`;
  const text = `${does}: ${crowd(winning)}, ${x}, ${verb(winning, "outweigh")} ${beaten}`;
  if (first[action] === lead.at) return text;
  return `${text}; the strongest for ${word(action)} is ${name(first[action])}, ${two(top[action], lead.value)[0]}`;
}

// How many votes, and whose.
function voted({ frame, start, side, does, word, action, other }) {
  const { total, run, episode, parts, rows, advisors } = frame;
  const [mine, its] = [votes(total[action]), votes(total[other])];
  const of = votes(parts[0].weights.reduce((all, weight) => all + weight, 0));
  if (side === 0) return `${start}: ${mine} of ${of} votes each`;
  if (side < 0) return `${start}: ${mine} of ${of} votes against ${its}`;
  const voters = advisors
    .map((j, i) => ({ ...run.advisors[j], value: hearPart(episode.table, run.A, parts[0], rows, [i])[action] }))
    .filter((one) => one.value > 0)
    .sort((p, q) => q.value - p.value);
  return `${does}: ${mine} of ${of} votes (${crowd(voters)}); ${word(other)} has ${its}`;
}

// Any other aggregation: the two preferences and, where it is known, who would be missed.
function heardOtherwise({ frame, all, start, side, word, action, other }) {
  const { total, run } = frame;
  if (side === 0) return `${start}, ${single(total[action])} each by ${run.aggregation}`;
  const [a, b] = numbers(total[action], total[other]);
  const text = `${start}, ${a} against ${b} by ${run.aggregation}`;
  const loud = byStrength(all);
  const least = NOISE * Math.abs(loud[0].value);
  const said = [
    [1, "for"],
    [-1, "against"],
  ].flatMap(([sign, which]) => {
    const found = loud.filter((one) => sign * one.value > least);
    return found.length ? [`${crowd(found)} ${verb(found, "speak")} ${which} ${word(action)}`] : [];
  });
  return said.length ? `${text}: ${said.join(", and ")}` : text;
}

// `asked`: whether the other action was asked about; else it is the next best.
export function librarySentence(frame, action, other, asked = false) {
  const { run, episode, step, total, advisors, advice, tolerance } = frame;
  const moves = run.actions.join() === Object.keys(POINTS).join();
  const word = (a) => (moves ? POINTS[run.actions[a]] : run.actions[a]);
  const wall = moves && episode.intoWall(step, action) ? ", into the wall" : "";
  const does = `${moves ? "goes" : "chooses"} ${word(action)}${wall}`;
  if (other < 0) return `${does}: there is no other action`;
  if (!advisors.length) return `${does}: no advisor has a say, so all actions tie`;
  const gap = total[action] - total[other];
  const side = Math.abs(gap) <= tolerance ? 0 : Math.sign(gap);
  const start = {
    [-1]: `${word(action)} would be worse than ${word(other)}`,
    0: `tie between ${word(action)} and ${word(other)}`,
    1: `${does}${wall ? "," : ""} rather than ${word(other)}`,
  }[side];
  const kinds = run.aggregator.parts.map((part) => part.name);
  const others = kinds.filter((kind) => kind !== "sum").join();
  const own = !others || (others === "max" && !frame.lead) ? null : contributions(frame, action, other);
  // of a sum from the weighted advice, as the page shows it
  const value = (i) => (own ? own[i] : advice[i][action] - advice[i][other]);
  const all = advisors.map((j, i) => ({ ...run.advisors[j], value: value(i) }));
  const about = { frame, all, start, side, does, word, moves, action, other, asked };
  if (!own) return summed(all, start, side);
  if (others === "max") return led(about);
  return kinds.join() === "majority" ? voted(about) : heardOtherwise(about);
}
