// Tables of numbers: a box that scrolls, a head, and rows that are filled again without being made again.

import { el, setText } from "./dom.js";

export function heads(texts) {
  return texts.map((text) => el("th", { scope: "col" }, text));
}

// `head`: a row, or the texts of one.
export function tableOf(label, head, bodies, kind = "") {
  const line = head instanceof Node ? head : el("tr", {}, heads(head));
  const table = el("table", { class: `numbers ${kind}`.trim() }, el("thead", {}, line), bodies);
  return el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": label }, table);
}

// A row: its name, and its cells or their texts.
export function rowOf(name, cells, kind = "") {
  const cellOf = (one) => (one?.tagName === "TD" ? one : el("td", {}, one));
  return el("tr", { class: kind }, el("th", { scope: "row" }, name), cells.map(cellOf));
}

// As many rows as there are; `make` builds a new one.
export function countRows(body, count, make) {
  while (body.children.length < count) body.append(make());
  while (body.children.length > count) body.lastChild.remove();
}

// Rows of texts, of which the first is the row's name.
export function fillRows(body, rows) {
  countRows(body, rows.length, () => el("tr"));
  rows.forEach((texts, k) => {
    const line = body.children[k];
    if (line.children.length !== texts.length)
      line.replaceChildren(...texts.map((_, c) => (c === 0 ? el("th", { scope: "row" }) : el("td"))));
    texts.forEach((text, c) => setText(line.children[c], text));
  });
}
