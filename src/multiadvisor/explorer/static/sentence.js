// The library's own sentence on one action against another, word for word: `multiadvisor explain` says the same.

import { largest, shortestReason } from "./maths.js";

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
  for (const { name, group } of some) {
    const found = group ? /^(.+?) (\(.*\)|\S+)$/.exec(name) : null;
    const [kind, place] = found ? [found[1], found[2]] : [name, ""];
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

// Whether two sums are equal up to rounding.
function isTie({ game, advice, total }, action, other) {
  const size = advice.reduce((all, own) => all + largest(own.map(Math.abs)), 0);
  return Math.abs(total[action] - total[other]) <= (advice.length + 1) * game.precision * size;
}

export function librarySentence(frame, action, other) {
  const { run, game, turn, total, advisors, advice } = frame;
  const moves = run.actions.join() === Object.keys(POINTS).join();
  const word = (a) => (moves ? POINTS[run.actions[a]] : run.actions[a]);
  const wall = moves && game.intoWall(turn, action) ? ", into the wall" : "";
  const does = `${moves ? "goes" : "chooses"} ${word(action)}${wall}`;
  if (other < 0) return `${does}: there is no other action`;
  if (!advisors.length) return `${does}: nobody has a say, so that all actions are a tie`;
  const all = advisors.map((j, i) => ({ ...run.advisors[j], value: advice[i][action] - advice[i][other] }));
  const strongest = [...all].sort((p, q) => Math.abs(q.value) - Math.abs(p.value));
  const gains = strongest.filter((one) => one.value > 0);
  const losses = strongest.filter((one) => one.value < 0);
  if (isTie(frame, action, other)) {
    const pair = `tie between ${word(action)} and ${word(other)}`;
    if (!gains.length || !losses.length) return `${pair}: they are the same to everybody`;
    const [a, b] = numbers(sum(gains), sum(losses));
    return `${pair}: ${crowd(gains)}, ${a}, ${verb(gains, "balance")} ${crowd(losses)}, ${b}`;
  }
  const worse = total[action] < total[other];
  const start = worse
    ? `${word(action)} would be worse than ${word(other)}`
    : `${does}${wall ? "," : ""} rather than ${word(other)}`;
  const reasons = deciding(all, worse ? -1 : 1);
  const [won, lost] = worse ? [losses, gains] : [gains, losses];
  const against = lost.filter((one) => Math.abs(one.value) > NOISE * Math.abs(sum(won)));
  if (!against.length) return `${start}: ${crowd(reasons)}, ${numbers(sum(reasons), Infinity)[0]}, and nobody objects`;
  const [a, b] = numbers(sum(reasons), sum(against));
  return `${start}: ${crowd(reasons)}, ${a}, ${verb(reasons, "outweigh")} ${crowd(against)}, ${b}`;
}
