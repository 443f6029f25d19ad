// The board on a canvas: walls, values as colours, greedy arrows, who is where. It draws what it is given.

import { bestActions, heights } from "./maths.js";
import { heatColour, scaleOf } from "./colours.js";
import { stroke } from "./strokes.js";

const ROUNDED = 24; // pixels: the corners of smaller cells are not seen

function roundedCell(context, x, y, size, radius) {
  context.beginPath();
  context.roundRect(x, y, size, size, radius);
}

function drawTiles(context, run, size, palette) {
  for (const tile of run.grid.tiles) {
    const x = tile.column * size;
    const y = tile.row * size;
    if (tile.kind === "wall") {
      context.fillStyle = palette.wall;
      roundedCell(context, x + 1, y + 1, size - 2, size * 0.18);
      context.fill();
    } else if (tile.kind === "water") {
      context.fillStyle = palette.water;
      roundedCell(context, x + 1, y + 1, size - 2, size * 0.18);
      context.fill();
      context.strokeStyle = palette.page;
      context.lineWidth = Math.max(1, size / 30);
      for (const down of [0.38, 0.62]) {
        context.beginPath();
        context.moveTo(x + size * 0.25, y + size * down);
        context.quadraticCurveTo(x + size * 0.375, y + size * (down - 0.12), x + size * 0.5, y + size * down);
        context.quadraticCurveTo(x + size * 0.625, y + size * (down + 0.12), x + size * 0.75, y + size * down);
        context.stroke();
      }
    } else {
      context.strokeStyle = palette.ink;
      context.lineWidth = 2;
      context.setLineDash([4, 4]);
      roundedCell(context, x + 4, y + 4, size - 8, size * 0.18);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = palette.ink;
      context.font = `600 ${Math.round(size * 0.28)}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(tile.label, x + size / 2, y + size / 2);
    }
  }
}

// A cell of which nobody knows what it is worth: hatched, so that it is no value of the scale.
function drawUnknown(context, x, y, size, palette) {
  context.save();
  roundedCell(context, x, y, size, size * 0.1);
  context.clip();
  context.strokeStyle = palette.line;
  context.lineWidth = Math.max(1, size * 0.04);
  context.beginPath();
  for (let k = 1; k < 8; k += 2) {
    context.moveTo(x + (size * k) / 4 - size, y + size);
    context.lineTo(x + (size * k) / 4, y);
  }
  context.stroke();
  context.restore();
}

// Adds an arrow to the path: a chevron towards where the action leads, a ring where it leads nowhere.
function addChevron(path, x, y, [down, right], size, reach) {
  const long = Math.hypot(down, right);
  if (long === 0) {
    path.moveTo(x + size * 0.3, y);
    path.arc(x, y, size * 0.3, 0, 2 * Math.PI);
    return;
  }
  const [sin, cos] = [down / long, right / long];
  const [tip, wing] = [size * reach, size * 0.1];
  const put = (how, along, across) => path[how](x + along * cos - across * sin, y + along * sin + across * cos);
  put("moveTo", tip - wing, -wing);
  put("lineTo", tip, 0);
  put("lineTo", tip - wing, wing);
}

function drawChevrons(context, path, size, palette, strong) {
  context.save();
  context.strokeStyle = palette.ink;
  context.globalAlpha = strong ? 0.95 : 0.62;
  context.lineWidth = Math.max(1.25, size * (strong ? 0.075 : 0.05));
  context.lineCap = "round";
  context.lineJoin = "round";
  context.stroke(path);
  context.restore();
}

// All fruit at once, as there may be a thousand.
function drawFruits(context, centres, size, palette) {
  const radius = Math.max(1.6, size * 0.13);
  context.beginPath();
  for (const [x, y] of centres) {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  }
  context.fillStyle = palette.fruit;
  context.fill();
  context.lineWidth = Math.max(1, size * 0.035);
  context.strokeStyle = palette.ring;
  context.stroke();
}

function drawPlayer(context, x, y, size, palette, angle) {
  context.save();
  context.translate(x, y);
  if (angle !== null) context.rotate(angle);
  const mouth = angle === null ? 0 : 0.58;
  context.beginPath();
  if (mouth) context.moveTo(-size * 0.04, 0);
  context.arc(0, 0, size * 0.34, mouth, 2 * Math.PI - mouth);
  context.closePath();
  context.fillStyle = palette.player;
  context.fill();
  context.lineWidth = Math.max(1.25, size * 0.045);
  context.lineJoin = "round";
  context.strokeStyle = palette.edge;
  context.stroke();
  context.restore();
}

function drawGhost(context, x, y, size, palette, number, seeThrough) {
  context.save();
  context.translate(x, y);
  context.globalAlpha = seeThrough ? 0.7 : 1;
  const half = size * 0.29;
  context.beginPath();
  context.arc(0, -size * 0.03, half, Math.PI, 0);
  context.lineTo(half, size * 0.29);
  for (let k = 0; k < 3; k += 1) {
    const right = half - (2 * half * (k + 0.5)) / 3;
    const left = half - (2 * half * (k + 1)) / 3;
    context.lineTo(right, size * 0.2);
    context.lineTo(left, size * 0.29);
  }
  context.closePath();
  context.fillStyle = palette.ghost;
  context.fill();
  context.lineWidth = Math.max(1, size * 0.03);
  context.strokeStyle = palette.ring;
  context.stroke();
  context.fillStyle = palette.eye;
  context.font = `700 ${Math.round(size * 0.32)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(String(number), 0, size * 0.01);
  context.restore();
}

function drawRing(context, x, y, size, palette, stable) {
  context.save();
  context.strokeStyle = palette.ink;
  context.lineWidth = Math.max(1.5, size * 0.05);
  if (!stable) context.setLineDash([size * 0.1, size * 0.09]);
  context.beginPath();
  context.arc(x, y, size * 0.44, 0, 2 * Math.PI);
  context.stroke();
  if (stable) {
    context.lineWidth = Math.max(1, size * 0.03);
    context.beginPath();
    context.arc(x, y, size * 0.37, 0, 2 * Math.PI);
    context.stroke();
  }
  context.restore();
}

// Whose wish is strongest, and whose is next.
function drawFrame(context, x, y, size, palette, leads) {
  context.save();
  context.strokeStyle = palette.accent;
  context.lineWidth = Math.max(1.5, size * 0.07);
  if (!leads) context.setLineDash([size * 0.12, size * 0.1]);
  roundedCell(context, x - size * 0.36, y - size * 0.36, size * 0.72, size * 0.16);
  context.stroke();
  context.restore();
}

function drawWays(context, centre, ways, size, palette) {
  context.save();
  context.lineJoin = "round";
  context.globalAlpha = 0.4;
  ways.forEach((way, k) => {
    const aside = ((k + 0.5) / ways.length - 0.5) * size * 0.5;
    const points = way.map((cell) => centre(cell).map((place) => place + aside));
    stroke(context, points, palette.accent, Math.max(1, size * 0.035));
  });
  context.restore();
}

function angleOf(vector) {
  return vector && (vector[0] || vector[1]) ? Math.atan2(vector[0], vector[1]) : null;
}

// What is drawn of a step, unless it is changed: a landscape of values, and nothing that is pointed at.
export function boardOf(run, episode, step, landscape, palette) {
  const tops = landscape ? heights(landscape, run.A) : new Float64Array(run.grid.cells.length);
  const values = { landscape, heights: tops, heat: landscape !== null, arrows: landscape !== null };
  return { run, episode, step, ...values, fraction: 0, attractors: [], led: [], ways: null, cell: -1, pinned: -1, palette };
}

// All of it that stays as it is during a step; the scale of its colours.
export function drawStill(context, size, what) {
  const { run, episode, step, palette } = what;
  const { grid, A } = run;
  context.fillStyle = palette.page;
  context.fillRect(0, 0, grid.columns * size, grid.rows * size);
  const centre = centreOf(grid, size);
  const scale = scaleOf(what.heights);
  grid.cells.forEach(([row, column], cell) => {
    const unknown = Number.isNaN(what.heights[cell]);
    context.fillStyle = what.heat && !unknown ? heatColour(what.heights[cell], scale, palette) : palette.floor;
    if (size < ROUNDED) context.fillRect(column * size + 0.75, row * size + 0.75, size - 1.5, size - 1.5);
    else {
      roundedCell(context, column * size + 0.75, row * size + 0.75, size - 1.5, size * 0.1);
      context.fill();
    }
    if (what.heat && unknown) drawUnknown(context, column * size + 0.75, row * size + 0.75, size - 1.5, palette);
  });
  drawTiles(context, run, size, palette);
  if (what.heat && size >= 18) {
    context.fillStyle = palette.ink;
    context.font = `600 ${Math.round(size * 0.24)}px system-ui, sans-serif`;
    context.textAlign = "left";
    context.textBaseline = "top";
    grid.cells.forEach(([row, column], cell) => {
      if (what.heights[cell] < 0 || (palette.plain && what.heights[cell] >= 0))
        context.fillText(
          what.heights[cell] < 0 ? "\u2212" : "+",
          column * size + size * 0.08,
          row * size + size * 0.04,
        );
    });
  }
  if (what.ways) drawWays(context, centre, what.ways, size, palette);
  if (what.arrows) {
    const [strong, tied] = [new Path2D(), new Path2D()];
    grid.cells.forEach((_, cell) => {
      if (Number.isNaN(what.heights[cell])) return;
      const best = bestActions(what.landscape, cell * A, A);
      if (best.length === A && A > 1 && what.heights[cell] === 0) return; // nobody has anything to say here
      const [x, y] = centre(cell);
      for (const a of best) addChevron(best.length === 1 ? strong : tied, x, y, grid.vectors[a], size, 0.42);
    });
    drawChevrons(context, strong, size, palette, true);
    drawChevrons(context, tied, size, palette, false);
  }
  const there = grid.items.filter((_, k) => episode.hasItem(step, k));
  drawFruits(context, there.map((item) => centre(item.cell)), size, palette);
  for (const [cell, leads] of what.led || []) drawFrame(context, ...centre(cell), size, palette, leads);
  for (const one of what.attractors || []) drawRing(context, ...centre(one.cell), size, palette, one.stable);
  return scale;
}

function centreOf(grid, size) {
  return (cell) => [(grid.cells[cell][1] + 0.5) * size, (grid.cells[cell][0] + 0.5) * size];
}

// What moves, and the cell that is looked at.
export function drawMoving(context, size, what) {
  const { run, episode, step, palette } = what;
  const { grid } = run;
  const centre = centreOf(grid, size);
  const cells = episode.cells(step);
  const next = what.fraction > 0 && step < episode.steps ? episode.cells(step + 1) : null;
  const between = (k) => {
    const [x, y] = centre(cells[k]);
    if (!next) return [x, y];
    const [toX, toY] = centre(next[k]);
    return [x + (toX - x) * what.fraction, y + (toY - y) * what.fraction];
  };
  const last = step < episode.steps ? episode.action[step] : episode.action[step - 1];
  const seen = Math.max(size, 12); // on a large board what moves must still be found
  drawPlayer(context, ...between(0), seen, palette, angleOf(grid.vectors[last]));
  for (let k = 1; k < cells.length; k += 1) drawGhost(context, ...between(k), seen, palette, k, cells[k] === cells[0]);
  for (const [cell, strong] of [[what.pinned, true], [what.cell, false]]) {
    if (cell === null || cell === undefined || cell < 0 || cell >= grid.cells.length) continue;
    const [row, column] = grid.cells[cell];
    context.strokeStyle = palette.accent;
    context.lineWidth = strong ? 3 : 2;
    roundedCell(context, column * size + 1.5, row * size + 1.5, size - 3, size * 0.12);
    context.stroke();
  }
}
