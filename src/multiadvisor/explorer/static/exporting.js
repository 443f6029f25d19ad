// Taking something away: the board as PNG, the game as CSV, everything as one HTML file.

export function download(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName(run, ending) {
  return `${`${run.task}-${run.label}`.replace(/[^\w.-]+/g, "-")}.${ending}`;
}

export function exportPng(canvas, run, turn) {
  return new Promise((resolve) => {
    canvas.toBlob((blob) => {
      download(fileName(run, `turn-${turn}.png`), blob, "image/png");
      resolve();
    }, "image/png");
  });
}

// Quoted, and never a formula to a spreadsheet.
export function csvCell(value) {
  const text = String(value);
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvOf(game, weights) {
  const { run } = game;
  const heard = run.plain ? "" : ` (${run.aggregation})`;
  const lines = [
    ["turn", "place", "action", "explored", "earned", "speaking", ...run.actions.map((name) => `Q ${name}${heard}`)],
  ];
  for (let turn = 0; turn < game.turns; turn += 1) {
    const place = run.grid ? `(${run.grid.cells[game.place(turn)].join(", ")})` : game.place(turn);
    lines.push([
      turn,
      place,
      run.actions[game.action[turn]],
      game.explored[turn],
      game.earned[turn],
      game.speaking(turn).advisors.length,
      ...game.preferences(turn, weights),
    ]);
  }
  return `${lines.map((line) => line.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

export function exportCsv(game, weights) {
  download(fileName(game.run, "csv"), csvOf(game, weights), "text/csv");
}

export async function exportHtml(source, run, ids, game) {
  download(fileName(run, "html"), await source.text(`export?runs=${ids.join(",")}&game=${game}`), "text/html");
}
