// Several agents in one table: runs by row, and by column what each term was paid, how it drives, and whether it is right.

import { el, gapText, plural, sameParts, scoreText, setText } from "./dom.js";
import { csvText, saveCsv } from "./exporting.js";
import { isPushed } from "./insight.js";
import { rowOf, tableOf } from "./tables.js";

const WIDE = 8; // terms with columns of their own
const PLAIN = [
  ["score", "score", scoreText],
  ["own score", "own", scoreText],
  ["steps", "length", (value) => value.toFixed(1)],
  ["terminated", "terminated", (value) => `${Math.round(100 * value)}%`],
  ["stuck", "stuck", (value) => `${Math.round(100 * value)}%`],
];
const OF_TERM = [
  ["return", (one) => one.return, scoreText],
  ["drives", (one) => (one.alone ? null : (one.influence.push ?? one.influence.changed)), (value) => `${(100 * value).toFixed(1)}%`],
  ["bias", (one) => one.calibration?.bias ?? null, gapText],
];
const CSV_OF_TERM = [
  ["return", (one) => one.return],
  ["changed", (one) => one.influence.changed],
  ["margin", (one) => one.influence.margin],
  ["push", (one) => one.influence.push],
  ["predicted", (one) => one.calibration?.predicted],
  ["bias", (one) => one.calibration?.bias],
  ["correlation", (one) => one.calibration?.correlation],
];

// What a run's episodes tell, term by term: its advisors or, of many, what is known of their groups.
function byTerm(found) {
  const own = Object.entries(found.advisors);
  if (own.length === 1) return { [own[0][0]]: { ...own[0][1], alone: true } }; // it drives everything, which says nothing
  return own.length <= WIDE || !Object.keys(found.groups).length ? found.advisors : found.groups;
}

// The names of terms: all, or of many those that drive most.
function strongest(entries) {
  const size = new Map();
  for (const [name, one] of entries) size.set(name, Math.max(size.get(name) ?? 0, OF_TERM[1][1](one) ?? 0));
  const names = [...size.keys()];
  if (names.length <= WIDE) return names;
  return names.filter((name) => size.get(name) > 0).sort((p, q) => size.get(q) - size.get(p)).slice(0, WIDE);
}

function figuresOf(found) {
  return { ...found, stuck: found.stuck.length / found.episodes.length, weighted: found.own !== null, own: found.own ?? found.score };
}

// What the columns of a table with these answers mean.
function meaningOf(answers) {
  const episodes = answers[0]?.episodes.length;
  const same = episodes ? `The same ${episodes > 1 ? plural(episodes, "episode") : "episode"} for each. ` : "";
  const own = "Scores are by the task's own weights, each run's own beside it. ";
  const push = answers.some(isPushed) ? ", or its share of the push on a continuous action" : "";
  const drives = `\u201cdrives\u201d is the share of steps in which another action would be taken without it${push}`;
  const bias = "\u201cbias\u201d is what it expects minus what it gets";
  const caveat = answers.find((found) => found.caveat)?.caveat;
  const networks = caveat ? ` Of networks: ${caveat}.` : "";
  return `${same}${answers.some(({ weighted }) => weighted) ? own : ""}${drives}; ${bias}. Click a heading to sort.${networks}`;
}

// The runs of one task: only they have the same terms.
class TaskTable {
  constructor(task, redraw) {
    Object.assign(this, { task, redraw, order: { key: "", down: true }, drawn: null });
    this.head = el("tr");
    this.groups = el("tr");
    this.body = el("tbody");
    const box = tableOf(`Agents of ${task}`, this.head, this.body);
    box.classList.add("wide-table");
    this.head.before(this.groups);
    this.root = el("div", { class: "stack" }, el("h3", { title: "The runs of this task" }, task), box);
  }

  render(rows) {
    const key = [this.order, ...rows.flatMap(({ answer, run }) => [answer, run])];
    if (sameParts(this.drawn, key)) return;
    this.drawn = key;
    const columns = this.columns(rows);
    this.fillHead(columns);
    this.body.replaceChildren(...this.sorted(rows, columns).map((row) => this.row(row, columns)));
  }

  columns(rows) {
    const terms = strongest(rows.flatMap(({ found }) => (found ? Object.entries(byTerm(found)) : [])));
    const weighted = rows.some(({ found }) => found?.weighted);
    const plain = PLAIN.filter(([, field]) => field !== "own" || weighted).map(([name, field, text]) => ({ key: name, name, text, value: (found) => found[field] }));
    const own = terms.flatMap((term) =>
      OF_TERM.map(([name, of, text], k) => ({
        key: `${name}/${term}`,
        name,
        term,
        text,
        first: k === 0,
        value: (found) => (byTerm(found)[term] ? of(byTerm(found)[term]) : null),
      })),
    );
    // of groups nothing is known of the bias
    const known = ({ value, first }) => first || rows.some(({ found }) => Number.isFinite(found && value(found)));
    return [...plain, ...own.filter(known)];
  }

  fillHead(columns) {
    const terms = columns.filter(({ first }) => first).map(({ term }) => term);
    this.groups.hidden = !terms.length;
    this.groups.replaceChildren(
      el("td", { colSpan: 2 + columns.filter(({ term }) => !term).length }),
      ...terms.map((term) => {
        const colSpan = columns.filter((one) => one.term === term).length;
        return el("th", { scope: "colgroup", colSpan, class: "term", title: term }, term);
      }),
    );
    this.head.replaceChildren(
      this.sorter({ key: "", name: "run" }),
      el("th", { scope: "col", class: "words" }, "setting"),
      ...columns.map((column) => this.sorter(column)),
    );
  }

  sorter({ key, name, term = "", first = false }) {
    const { order } = this;
    const now = order.key === key;
    const act = () => {
      this.order = { key, down: now ? !order.down : true };
      this.redraw();
    };
    const mark = now ? (order.down ? " \u25be" : " \u25b4") : "";
    const sort = now ? (order.down ? "descending" : "ascending") : "none";
    const title = term ? `${name} of ${term}` : name;
    const button = el("button", { class: "sorter", onclick: act }, name + mark);
    const shown = { scope: "col", "aria-sort": sort, "data-key": key, title, class: first ? "first" : "" };
    return el("th", shown, button);
  }

  row({ run, answer, found }, columns) {
    const cells = found
      ? columns.map(({ value, text, first }) => {
          const number = value(found);
          const known = number !== null && number !== undefined;
          return el("td", { class: first ? "first" : "" }, known ? text(number) : "");
        })
      : [el("td", { class: "words", colSpan: Math.max(1, columns.length) }, answer ? answer.problem : "\u2026")];
    return rowOf(run.name, [el("td", { class: "words" }, run.label), ...cells]);
  }

  sorted(rows, columns) {
    const { key, down } = this.order;
    const column = columns.find((one) => one.key === key);
    if (!column) return key === "" && !down ? [...rows].reverse() : rows;
    const known = rows.filter(({ found }) => found && Number.isFinite(column.value(found)));
    const sorted = [...known].sort((p, q) => (column.value(q.found) - column.value(p.found)) * (down ? 1 : -1));
    return [...sorted, ...rows.filter((row) => !known.includes(row))];
  }
}

export class Agents {
  constructor(store, insights, redraw) {
    Object.assign(this, { store, insights, redraw, tables: new Map(), rows: [] });
    this.csv = el("button", { onclick: () => this.export() }, "Table as CSV");
    this.hint = el("p", { class: "hint" });
    this.body = el("div", { class: "stack" });
    this.root = el(
      "section",
      { class: "card wide", id: "agents" },
      el("div", { class: "line" }, el("h2", {}, "Agents"), this.csv),
      this.hint,
      this.body,
    );
  }

  // One run after the other is asked for, so that the others can be looked at meanwhile.
  render(runs, versions) {
    let waiting = false;
    this.rows = runs.map((run) => {
      const answer = this.insights.of(run.id, versions[run.id] ?? 0, !waiting);
      if (!answer) waiting = true;
      return { run, answer, found: answer?.found ? figuresOf(answer.found) : null };
    });
    const waits = waiting ? "Playing \u2026 " : "";
    const none = "No run was given: `multiadvisor explore RUN RUN` shows several.";
    setText(this.hint, runs.length ? waits + meaningOf(this.rows.flatMap(({ found }) => found ?? [])) : none);
    this.csv.disabled = !this.rows.some(({ found }) => found);
    const tasks = [...new Set(runs.map((run) => run.task))];
    for (const task of tasks) if (!this.tables.has(task)) this.tables.set(task, new TaskTable(task, this.redraw));
    const shown = tasks.map((task) => this.tables.get(task));
    if (shown.length !== this.body.children.length) this.body.replaceChildren(...shown.map((table) => table.root));
    for (const table of shown) table.render(this.rows.filter(({ run }) => run.task === table.task));
  }

  // The columns of `multiadvisor evaluate --report --csv`, every advisor by itself.
  csvText() {
    const rows = this.rows.filter(({ found }) => found);
    const names = [...new Set(rows.flatMap(({ found }) => Object.keys(found.advisors)))];
    const head = ["run", "task", "setting", "episodes", "score", "own score", "steps", "terminated", "stuck", "caveat"];
    const figures = ["score", "own", "length", "terminated", "stuck", "caveat"];
    const pushed = rows.some(({ found }) => isPushed(found));
    const columns = CSV_OF_TERM.filter(([what]) => what !== "push" || pushed);
    const lines = [[...head, ...names.flatMap((name) => columns.map(([what]) => `${what}/${name}`))]];
    for (const { run, found } of rows)
      lines.push([
        ...[run.name, run.task, run.label, found.episodes.length],
        ...figures.map((what) => found[what]),
        ...names.flatMap((name) => columns.map(([, of]) => (found.advisors[name] ? (of(found.advisors[name]) ?? "") : ""))),
      ]);
    return csvText(lines);
  }

  export() {
    saveCsv(["agents"], this.csvText());
  }
}
