// Several agents in one table: runs by row, and by column what each term was paid, how it drives, and whether it is right.

import { el, plural, scoreText, setText, signed } from "./dom.js";
import { csvCell, download } from "./exporting.js";

const WIDE = 8; // terms with columns of their own
const PLAIN = [
  ["score", "score", (value) => scoreText(value) || "0"],
  ["turns", "length", (value) => value.toFixed(1)],
  ["finished", "finished", (value) => `${Math.round(100 * value)}%`],
  ["stuck", "stuck", (value) => `${Math.round(100 * value)}%`],
];
const OF_TERM = [
  ["return", (one) => one.return, (value) => scoreText(value) || "0"],
  ["drives", (one) => one.influence.changed, (value) => `${(100 * value).toFixed(1)}%`],
  ["bias", (one) => one.calibration?.bias ?? null, (value) => signed(value)],
];
const CSV_OF_TERM = [
  ["return", (one) => one.return],
  ["changed", (one) => one.influence.changed],
  ["by", (one) => one.influence.by],
  ["predicted", (one) => one.calibration?.predicted],
  ["bias", (one) => one.calibration?.bias],
  ["correlation", (one) => one.calibration?.correlation],
];

// What a run's games tell, term by term: its advisors or, of many, what is known of their groups.
function byTerm(found) {
  const names = Object.keys(found.advisors);
  if (names.length <= WIDE) return found.advisors;
  const terms = {};
  for (const [group, { influence }] of Object.entries(found.groups)) {
    const members = Object.values(found.advisors).filter((one) => one.group === group);
    const sum = members.some((one) => one.return === null) ? null : members.reduce((so, one) => so + one.return, 0);
    terms[group] = { return: sum, influence, calibration: null };
  }
  return terms;
}

function figuresOf(found) {
  return { ...found, stuck: found.stuck.length / found.games.length };
}

export class Agents {
  constructor(store, insights, redraw) {
    Object.assign(this, { store, insights, redraw, order: { key: "", down: true } });
    this.head = el("tr");
    this.groups = el("tr");
    this.body = el("tbody");
    this.csv = el("button", { type: "button", onclick: () => this.export() }, "Table as CSV");
    this.hint = el("p", { class: "hint" });
    this.table = el(
      "div",
      { class: "scroll wide-table", tabIndex: 0, role: "region", "aria-label": "Agents" },
      el("table", { class: "numbers" }, el("thead", {}, this.groups, this.head), this.body),
    );
    this.root = el(
      "section",
      { class: "card wide", id: "agents" },
      el("div", { class: "line" }, el("h2", {}, "Agents"), this.csv),
      this.hint,
      this.table,
    );
  }

  // One run after the other is asked for, so that the others can be looked at meanwhile.
  render(runs, versions) {
    const rows = [];
    let waiting = false;
    for (const run of runs) {
      const version = versions[run.id] ?? 0;
      const answer = this.insights.of(run.id, version, !waiting);
      if (!answer) waiting = true;
      rows.push({ run, answer, found: answer?.found ? figuresOf(answer.found) : null });
    }
    this.rows = rows;
    const games = rows.find(({ found }) => found)?.found.games.length;
    setText(
      this.hint,
      runs.length
        ? `${waiting ? "Playing \u2026 " : ""}${games ? `The same ${plural(games, "game")} for each. ` : ""}drives: in how many turns another action would be taken without it. bias: what it expects less what follows. Click on a heading to sort.`
        : "No run was given: `multiadvisor explore RUN RUN` shows several.",
    );
    this.csv.disabled = !rows.some(({ found }) => found);
    const key = [this.order, ...rows.map(({ answer }) => answer), ...runs];
    if (this.drawn && key.length === this.drawn.length && key.every((part, k) => part === this.drawn[k])) return;
    this.drawn = key;
    this.fill(rows);
  }

  fill(rows) {
    const terms = [...new Set(rows.flatMap(({ found }) => (found ? Object.keys(byTerm(found)) : [])))];
    const columns = [
      ...PLAIN.map(([name, field, text]) => ({ key: name, name, text, value: (found) => found[field] })),
      ...terms.flatMap((term) =>
        OF_TERM.map(([name, of, text]) => ({
          key: `${name}/${term}`,
          name,
          term,
          text,
          value: (found) => {
            const one = byTerm(found)[term];
            return one ? of(one) : null;
          },
        })),
      ),
    ];
    this.groups.hidden = !terms.length;
    this.groups.replaceChildren(
      el("td", { colSpan: 2 + PLAIN.length }),
      ...terms.map((term) => el("th", { scope: "colgroup", colSpan: OF_TERM.length, class: "term" }, term)),
    );
    const sorter = (key, name, term) => {
      const { order } = this;
      const button = el(
        "button",
        {
          type: "button",
          class: "sorter",
          onclick: () => {
            this.order = { key, down: order.key === key ? !order.down : true };
            this.redraw();
          },
        },
        `${name}${order.key === key ? (order.down ? " \u25be" : " \u25b4") : ""}`,
      );
      const sort = order.key === key ? (order.down ? "descending" : "ascending") : "none";
      return el("th", { scope: "col", "aria-sort": sort, "data-key": key, title: term ? `${name} of ${term}` : name }, button);
    };
    this.head.replaceChildren(
      sorter("", "run", ""),
      el("th", { scope: "col" }, "setting"),
      ...columns.map(({ key, name, term }) => sorter(key, name, term)),
    );
    this.body.replaceChildren(
      ...this.sorted(rows, columns).map(({ run, answer, found }) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, run.name),
          el("td", { class: "words" }, `${run.task}: ${run.label}`),
          ...(found
            ? columns.map(({ value, text, term }, k) => {
                const number = value(found);
                const first = term && k > 0 && columns[k - 1].term !== term;
                return el("td", { class: first ? "first" : "" }, number === null || number === undefined ? "" : text(number));
              })
            : [el("td", { class: "words", colSpan: Math.max(1, columns.length) }, answer ? answer.problem : "\u2026")]),
        ),
      ),
    );
  }

  sorted(rows, columns) {
    const { key, down } = this.order;
    const column = columns.find((one) => one.key === key);
    if (!column) return key === "" && !down ? [...rows].reverse() : rows;
    const known = rows.filter(({ found }) => found && Number.isFinite(column.value(found)));
    const sorted = [...known].sort((p, q) => (column.value(q.found) - column.value(p.found)) * (down ? 1 : -1));
    return [...sorted, ...rows.filter((row) => !known.includes(row))];
  }

  // The columns of `multiadvisor evaluate --report --csv`, every advisor by itself.
  csvText() {
    const rows = this.rows.filter(({ found }) => found);
    const names = [...new Set(rows.flatMap(({ found }) => Object.keys(found.advisors)))];
    const head = ["run", "task", "setting", "games", "score", "turns", "finished", "stuck"];
    const lines = [[...head, ...names.flatMap((name) => CSV_OF_TERM.map(([what]) => `${what}/${name}`))]];
    for (const { run, found } of rows)
      lines.push([
        run.name,
        run.task,
        run.label,
        found.games.length,
        found.score,
        found.length,
        found.finished,
        found.stuck,
        ...names.flatMap((name) => CSV_OF_TERM.map(([, of]) => (found.advisors[name] ? (of(found.advisors[name]) ?? "") : ""))),
      ]);
    return `${lines.map((line) => line.map(csvCell).join(",")).join("\r\n")}\r\n`;
  }

  export() {
    download("agents.csv", this.csvText(), "text/csv");
  }
}
