// Packs from the server as runs and episodes: who speaks in which step, from which rows of the table.

import { signed } from "./dom.js";
import { AGGREGATIONS, combinedParts, preferencesOf, weightedAdvice } from "./maths.js";

const ARRAYS = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

// A header and its arrays out of one message.
export function unpack(buffer, start = 0) {
  if (buffer.byteLength < start + 8) throw new Error("This episode is damaged: reload the page.");
  const length = new DataView(buffer, start).getUint32(0, true);
  if (start + 8 + length > buffer.byteLength) throw new Error("This episode is damaged: reload the page.");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start + 8, length)));
  const arrays = {};
  for (const { name, type, shape, offset } of header.arrays) {
    const count = shape.reduce((product, size) => product * size, 1);
    const bytes = count * ARRAYS[type].BYTES_PER_ELEMENT;
    if (start + 8 + length + offset + bytes > buffer.byteLength)
      throw new Error("This episode is damaged: reload the page.");
    arrays[name] = new ARRAYS[type](buffer, start + 8 + length + offset, count);
  }
  return { header, arrays };
}

export class Run {
  constructor(buffer, start = 0) {
    const { header, arrays } = unpack(buffer, start);
    Object.assign(this, header);
    this.table = arrays.table || null;
    this.continuous = header.numbers !== null; // its action is compared with the centre of the box
    this.n = header.advisors.length;
    this.A = header.actions.length;
    this.names = header.advisors.map((advisor) => advisor.name);
    this.weights = Float64Array.from(header.advisors, (advisor) => advisor.weight);
    this.groups = groupsOf(header.advisors);
    this.plain = header.aggregation === "sum";
    // of an aggregation from elsewhere only what the server computed is known, step by step
    this.known = header.aggregator.parts.every((part) => Object.hasOwn(AGGREGATIONS, part.name));
    if (!this.grid) return;
    if (this.table) {
      this.offset = arrays.layout.subarray(0, this.n);
      this.stride = arrays.layout.subarray(this.n);
    }
    const mover = new Map(this.grid.sprites.map((sprite, k) => [sprite.place, k]));
    this.terms = this.grid.terms.map((terms) => terms.map(([place, factor]) => [mover.get(place), factor]));
    this.itemOf = new Int32Array(this.n).fill(-1);
    this.grid.items.forEach((item, k) => {
      this.itemOf[item.advisor] = k;
    });
    this.cellAt = new Int32Array(this.grid.rows * this.grid.columns).fill(-1);
    this.grid.cells.forEach(([row, column], cell) => {
      this.cellAt[row * this.grid.columns + column] = cell;
    });
  }

  // An advisor by its place; behind the last one stands an actor's entropy.
  nameOf(j) {
    return this.names[j] ?? "entropy (no advisor)";
  }

  // The row of advisor j where the player stands on `cell` and the others where they are.
  rowOf(j, cells, cell) {
    let local = 0;
    for (const [k, factor] of this.terms[j]) local += factor * (k === 0 ? cell : cells[k]);
    return this.offset[j] + this.stride[j] * local;
  }
}

// Advisors of one group together; an advisor without a group is one by itself.
function groupsOf(advisors) {
  const groups = new Map();
  advisors.forEach(({ name, group }, j) => {
    const key = group || name;
    if (!groups.has(key)) groups.set(key, { name: key, members: [] });
    groups.get(key).members.push(j);
  });
  return [...groups.values()];
}

const FEW = 100; // so many advisors are summed anew in every step
const BLOCK = 32;

export class Episode {
  constructor(run, buffer, start = 0) {
    const { header, arrays } = unpack(buffer, start);
    Object.assign(this, { run, steps: header.steps, terminated: header.terminated, seed: header.seed, arrays });
    this.reasons = header.reasons; // the library's own, of every step
    this.action = arrays.action;
    this.explored = arrays.explored;
    this.table = run.table || arrays.table || new Float64Array(0);
    this.movers = run.grid ? run.grid.sprites.length : 0;
    this.bytes = run.grid ? Math.ceil(run.grid.items.length / 8) : 0;
    this.earned = new Float64Array(this.steps);
    this.paid = Array.from({ length: this.steps }, () => []);
    for (let k = 0; k < arrays.reward.length; k += 1) {
      const step = arrays.reward_step[k];
      const j = arrays.reward_advisor[k];
      this.paid[step].push({ advisor: j, value: arrays.reward[k] });
      this.earned[step] += run.prices[j] * arrays.reward[k];
    }
    if (arrays.earned) this.earned = arrays.earned; // the environment's own score, which no weights add up to
    this.measured = this.earned; // by the task's own weights, where runs with different ones are compared
    if (run.yardstick)
      this.measured = Float64Array.from(this.paid, (paid) =>
        paid.reduce((sum, { advisor, value }) => sum + run.yardstick[advisor] * value, 0),
      );
    this.stuck = []; // where the library finds it stuck: [{ since, steps, sentence }]
    this.spoken = new Map();
  }

  // What is done in a step, for people.
  did(step) {
    if (!this.run.continuous) return this.run.actions[this.action[step]];
    return `(${Array.from(this.numbersOf(step), (value) => signed(value)).join(", ")})`;
  }

  // The numbers of an action that consists of such.
  numbersOf(step) {
    const size = this.run.numbers.names.length;
    return this.arrays.numbers.subarray(step * size, (step + 1) * size);
  }

  // Weights [n] as they are applied in a step: whoever points at something speaks louder or softer from step to step.
  applied(step, weights) {
    if (!this.arrays.factor) return weights;
    const found = Float64Array.from(weights);
    const { advisors, rows } = this.speaking(step);
    advisors.forEach((j, i) => (found[j] *= this.arrays.factor[rows[i]]));
    return found;
  }

  // How much each advisor has to say [n]: its largest weighted value, on average over some steps of the episode.
  get strengths() {
    if (this.strong) return this.strong;
    this.strong = new Float64Array(this.run.n);
    for (let step = 0; step < this.steps; step += Math.ceil(this.steps / 50)) {
      const { advisors, advice } = this.advice(step, this.run.weights);
      advisors.forEach((j, i) => (this.strong[j] += Math.max(...advice[i].map(Math.abs))));
    }
    return this.strong;
  }

  // The cells of everything that moves.
  cells(step) {
    return this.arrays.cells.subarray(step * this.movers, (step + 1) * this.movers);
  }

  hasItem(step, k) {
    return ((this.arrays.items[step * this.bytes + (k >> 3)] >> (k & 7)) & 1) === 1;
  }

  // What each active advisor contributes to the action of a step, as the library says; of a sum it is not sent.
  differences(step) {
    if (!this.firsts) {
      this.firsts = [0];
      for (let at = 0; at < this.steps; at += 1) this.firsts.push(this.firsts[at] + this.speaking(at).advisors.length);
    }
    return this.arrays.difference.subarray(this.firsts[step], this.firsts[step + 1]);
  }

  // Where the episode is in this step: a cell, or the number of a state; -1 where nobody knows.
  place(step) {
    if (this.run.grid) return this.arrays.cells[step * this.movers];
    if (this.arrays.state && step < this.steps) return this.arrays.state[step];
    return -1;
  }

  // Who speaks in this step, and from which rows.
  speaking(step) {
    const known = this.spoken.get(step);
    if (known) return known;
    const advisors = [];
    const rows = [];
    if (this.run.table) {
      const cells = this.cells(step);
      for (let j = 0; j < this.run.n; j += 1) {
        if (this.run.itemOf[j] >= 0 && !this.hasItem(step, this.run.itemOf[j])) continue;
        advisors.push(j);
        rows.push(this.run.rowOf(j, cells, cells[0]));
      }
    } else if (step < this.steps) {
      for (let j = 0; j < this.run.n; j += 1) {
        const row = this.arrays.rows[step * this.run.n + j];
        if (row >= 0) {
          advisors.push(j);
          rows.push(row);
        }
      }
    }
    const found = { advisors, rows };
    this.spoken.set(step, found);
    return found;
  }

  // The rows of everyone who speaks, where the player stands or would stand on another cell.
  rowsAt(step, cell = null) {
    const { advisors, rows } = this.speaking(step);
    if (cell === null || !this.run.table) return rows;
    const cells = this.cells(step);
    return advisors.map((j) => this.run.rowOf(j, cells, cell));
  }

  // What the aggregator makes of the advice in this step, or where the player would stand on another cell.
  preferences(step, weights, cell = null) {
    const { A, known, aggregator } = this.run;
    const { advisors } = this.speaking(step);
    if (!known && step >= this.steps) return new Float64Array(A);
    if (!known) return this.arrays.preferences.slice(step * A, (step + 1) * A);
    const parts = combinedParts(aggregator, advisors, this.applied(step, weights));
    return preferencesOf(this.table, A, parts, this.rowsAt(step, cell));
  }

  // The weighted advice of everyone who speaks.
  advice(step, weights, cell = null) {
    const { advisors } = this.speaking(step);
    const rows = this.rowsAt(step, cell);
    const applied = this.applied(step, weights);
    return { advisors, rows, advice: weightedAdvice(this.table, this.run.A, advisors, rows, applied) };
  }

  // The preferences of every cell [cells * A], NaN where nobody knows them; with `only`, one advisor's own values.
  landscape(step, weights, only = null) {
    const { run } = this;
    const count = run.grid.cells.length;
    const { A } = run;
    const out = new Float64Array(count * A);
    const cells = this.cells(step);
    if (!run.table || (only === null && !run.known)) {
      // then only what was said where the player stood is known
      out.fill(NaN);
      out.set(this.preferences(step, weights), cells[0] * A);
      return out;
    }
    const advisors = only === null ? this.speaking(step).advisors : [only];
    if (only === null && !run.plain) {
      const parts = combinedParts(run.aggregator, advisors, weights);
      for (let c = 0; c < count; c += 1)
        out.set(preferencesOf( this.table, A, parts, advisors.map((j) => run.rowOf(j, cells, c)), ), c * A);
      return out;
    }
    if (only === null && advisors.length > FEW) return this.summedInBlocks(out, cells, advisors, weights);
    for (const j of advisors) this.addTo(out, j, this.firstOf(j, cells), only === null ? weights[j] : 1);
    return out;
  }

  // Where the values of an advisor begin in the table: those of cell 0, with everything else where it is now.
  firstOf(j, cells) {
    const { run } = this;
    let base = 0;
    for (const [k, times] of run.terms[j]) if (k !== 0) base += times * cells[k];
    return (run.offset[j] + run.stride[j] * base) * run.A;
  }

  // Adds one advisor's weighted values of every cell.
  addTo(out, j, first, weight) {
    if (weight === 0) return;
    const { run, table } = this;
    const { A } = run;
    let factor = 0;
    for (const [k, times] of run.terms[j]) if (k === 0) factor += times;
    const step = run.stride[j] * factor * A;
    if (step === A) {
      // the rows of all cells lie one behind the other, in the order of the cells
      for (let i = 0; i < out.length; i += 1) out[i] += weight * table[first + i];
      return;
    }
    for (let at = first, i = 0; i < out.length; at += step, i += A)
      for (let a = 0; a < A; a += 1) out[i + a] += weight * table[at + a];
  }

  // Of many advisors the sums of blocks are kept: from one step to the next only a few of them change.
  summedInBlocks(out, cells, advisors, weights) {
    if (this.kept?.weights !== weights) this.kept = { weights, blocks: new Map() };
    const { blocks } = this.kept;
    for (let at = 0; at < advisors.length; ) {
      const number = Math.floor(advisors[at] / BLOCK);
      const members = [];
      for (; at < advisors.length && Math.floor(advisors[at] / BLOCK) === number; at += 1) members.push(advisors[at]);
      const firsts = members.map((j) => this.firstOf(j, cells));
      const known = blocks.get(number);
      const same = (one, other) => one.length === other.length && one.every((value, k) => value === other[k]);
      if (!known || !same(known.members, members) || !same(known.firsts, firsts)) {
        const sum = known ? known.sum.fill(0) : new Float64Array(out.length);
        members.forEach((j, k) => this.addTo(sum, j, firsts[k], weights[j]));
        blocks.set(number, { members, firsts, sum });
      }
      const { sum } = blocks.get(number);
      for (let i = 0; i < out.length; i += 1) out[i] += sum[i];
    }
    return out;
  }
}
