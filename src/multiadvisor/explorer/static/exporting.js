// Taking something away: boards and charts as PNG, episodes and curves as CSV, everything as one HTML file.

import { paletteOf } from "./colours.js";
import { otherOf, titleOf } from "./compareview.js";
import { el } from "./dom.js";
import { termsOf } from "./hues.js";
import { rewardsOf } from "./rewards.js";
import { weightsNow } from "./weights.js";

export function download(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName(parts, ending) {
  return `${parts.join("-").replace(/[^\w.-]+/g, "-")}.${ending}`;
}

// ---- pictures --------------------------------------------------------------------------------------------------------
const GAP = 16;
const TITLE = 28;

// Canvases as one picture, beside each other or one below the other, each under its title; at the screen's resolution.
function onePicture(canvases, titles, palette, below) {
  const ratio = canvases[0].width / (canvases[0].clientWidth || canvases[0].width);
  const [gap, title] = [GAP * ratio, titles.some(Boolean) ? TITLE * ratio : 0];
  const [wide, high] = [canvases.map((one) => one.width), canvases.map((one) => one.height + title)];
  const sum = (sizes) => sizes.reduce((total, size) => total + size + gap, -gap);
  const picture = document.createElement("canvas");
  picture.width = Math.round(below ? Math.max(...wide) : sum(wide));
  picture.height = Math.round(below ? sum(high) : Math.max(...high));
  const context = picture.getContext("2d");
  context.fillStyle = palette.page;
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = palette.ink;
  context.font = `600 ${14 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  let at = 0;
  canvases.forEach((one, k) => {
    const [x, y] = below ? [0, at] : [at, 0];
    context.fillText(titles[k], x, y + title / 2, one.width);
    context.drawImage(one, x, y + title);
    at += (below ? one.height + title : one.width) + gap;
  });
  return picture;
}

function savePng(canvas, name) {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (!blob) return reject(new Error("This picture is too large for the browser."));
      download(name, blob, "image/png");
      return resolve();
    }, "image/png");
  });
}

// The boards of one or two runs in a step.
function exportBoards(boards, runs, step, palette) {
  const canvases = boards.map((board) => board.canvas);
  const name = fileName([runs[0].task, ...runs.map((run) => run.label), "step", step], "png");
  if (canvases.length === 1) return savePng(canvases[0], name);
  return savePng(onePicture(canvases, runs.map(titleOf), palette, false), name);
}

function exportCharts(charts, measure, palette) {
  const [canvases, titles] = [charts.map((chart) => chart.canvas), charts.map((chart) => chart.task)];
  return savePng(onePicture(canvases, titles, palette, true), fileName(["learning", measure], "png"));
}

// ---- tables ----------------------------------------------------------------------------------------------------------
// Quoted, and never a formula to a spreadsheet.
export function csvCell(value) {
  const text = String(value);
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvText(lines) {
  return `${lines.map((line) => line.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

function headOf(run) {
  const aggregated = run.plain ? "" : ` (${run.aggregation})`;
  const worth = run.actions.map((name) => `Q ${name}${aggregated}`);
  const done = run.continuous ? run.numbers.names : ["action"];
  const paid = termsOf(run).map(({ name }) => `paid ${name}`);
  return ["step", "place", ...done, "explored", "earned", "active", ...worth, ...paid];
}

function linesOf(episode, weights, earned = episode.earned) {
  const { run } = episode;
  const { rewards } = rewardsOf(episode, Infinity);
  return Array.from({ length: episode.steps }, (_, step) => [
    step,
    run.grid ? `(${run.grid.cells[episode.place(step)].join(", ")})` : episode.place(step),
    ...(run.continuous ? episode.numbersOf(step) : [run.actions[episode.action[step]]]),
    episode.explored[step],
    earned[step],
    episode.speaking(step).advisors.length,
    ...episode.preferences(step, weights),
    ...rewards.map((own) => own[step]),
  ]);
}

export function csvOf(episode, weights) {
  return csvText([headOf(episode.run), ...linesOf(episode, weights)]);
}

export function saveCsv(parts, text) {
  download(fileName(parts, "csv"), text, "text/csv");
}

function exportCsv(episode, weights) {
  saveCsv([episode.run.task, episode.run.label], csvOf(episode, weights));
}

// Two episodes in one table: the first column says whose it is.
function exportPair(pair) {
  const lines = pair.flatMap(({ run, episode }, k) =>
    linesOf(episode, run.weights, episode.measured).map((line) => [`${k + 1} ${run.name}`, ...line]),
  );
  const [{ run }] = pair;
  saveCsv([run.task, ...pair.map((one) => one.run.label)], csvText([["run", ...headOf(run)], ...lines]));
}

export function curvesCsv(curves, measure) {
  const lines = curves
    .filter((curve) => curve.figures[measure])
    .flatMap((curve) =>
      curve.steps.map((steps, e) => [
        curve.task,
        curve.label,
        curve.runs,
        steps,
        ...["mean", "low", "high"].map((part) => curve.figures[measure][part][e]),
      ]),
    );
  return csvText([["task", "setting", "runs", "steps", measure, "low", "high"], ...lines]);
}

async function exportHtml(source, runs, episode) {
  const ids = runs.map((run) => run.id).join(",");
  const text = await source.text(`export?runs=${ids}&episode=${episode}`);
  download(fileName([runs[0].task, runs[0].label], "html"), text, "text/html");
}

// ---- the menu --------------------------------------------------------------------------------------------------------
// What can be taken away is asked for when the menu opens: [text, what to do] for each; where nothing can, it says so.
export function exportMenu(offers, failed) {
  const list = el("div");
  const menu = el("details", { class: "menu" }, el("summary", {}, "Export"), list);
  const button = ([text, act]) => {
    const take = async () => {
      menu.open = false;
      try {
        await act();
      } catch (error) {
        failed(error.message);
      }
    };
    return el("button", { onclick: take }, text);
  };
  menu.addEventListener("toggle", () => {
    if (!menu.open) return;
    const found = offers().map(button);
    if (!found.length) found.push(el("p", { class: "hint" }, "There is nothing to save yet."));
    list.replaceChildren(...found);
  });
  return menu;
}

// What can be taken away from the view as it stands there.
export function offersOf(app) {
  const { state } = app.store;
  const palette = paletteOf(state.theme);
  const found = [];
  const boards = (shown, views, step) => {
    const runs = shown.map((one) => one.run);
    const text = views.length > 1 ? "Boards as PNG" : "Board as PNG";
    if (runs.every((run) => run.grid)) found.push([text, () => exportBoards(views, runs, step, palette)]);
  };
  if (state.view === "episode" && app.shown?.run) {
    boards([app.shown], [app.episode.board], state.step);
    found.push(["Episode as CSV", () => exportCsv(app.shown.episode, weightsNow(app.shown.run, state))]);
  }
  if (state.view === "compare" && app.shown) {
    boards(app.pair, app.compare.boards, state.step);
    found.push(["Episodes as CSV", () => exportPair(app.pair)]);
  }
  if (state.view === "gallery" && app.gallery.shown) {
    const { shown } = app.gallery;
    boards([shown], [app.gallery.board], state.at);
    found.push(["Episode as CSV", () => exportCsv(shown.episode, shown.run.weights)]);
  }
  if (state.view === "learning" && app.curves.drawn.length) {
    const { curves, drawn, measure } = app.curves;
    found.push(["Curves as PNG", () => exportCharts(drawn, measure, palette)]);
    found.push(["Curves as CSV", () => saveCsv(["learning", measure], curvesCsv(curves, measure))]);
  }
  const { runs } = app.listing;
  const pair = [runs[state.run], runs[otherOf(runs, state)]].filter(Boolean);
  if (app.source.live && pair.length && !pair[0].diagnosis && state.view !== "gallery")
    found.push(["Page as HTML", () => exportHtml(app.source, pair, state.episode)]);
  return found;
}
