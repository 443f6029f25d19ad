// One chart of learning curves, drawn into a canvas: an axis of its own, transitions from left to right.

const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [4, 2], [1, 2]];
const COLOURS = {
  light: ["#c2570a", "#1d5cc4", "#4f46e5", "#0f766e", "#9d174d", "#57534e"],
  dark: ["#f59a44", "#6ea6ff", "#a5a0ff", "#4fd1c0", "#f9a8d4", "#d6d3d1"],
};

// How the k-th curve is drawn: no two of the first 36 look the same.
export function lineStyle(k, dark) {
  const colours = COLOURS[dark ? "dark" : "light"];
  return { colour: colours[k % colours.length], dash: DASHES[(k + Math.floor(k / DASHES.length)) % DASHES.length] };
}

// Round numbers between two ends.
function steps(low, high, most) {
  const raw = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step)
    found.push(Number(value.toPrecision(12)));
  return found;
}

// 20000 as "20k", 1500000 as "1.5M".
export function countText(value) {
  const [size, unit] = value >= 1e6 ? [1e6, "M"] : value >= 1e4 ? [1e3, "k"] : [1, ""];
  return `${Number((value / size).toPrecision(6))}${unit}`;
}

// Where the points of a curve lie from left to right: by transitions where all curves know them, else by epoch.
export function placesOf(curves) {
  const known = curves.every((curve) => curve.transitions);
  return { unit: known ? "transitions" : "epoch", of: (curve) => (known ? curve.transitions : curve.epochs) };
}

export function drawChart(context, { curves, measure, palette, dark, width, height }) {
  context.fillStyle = palette.page;
  context.fillRect(0, 0, width, height);
  const places = placesOf(curves);
  let low = Infinity;
  let high = -Infinity;
  let most = 1;
  for (const curve of curves) {
    low = Math.min(low, ...curve[measure].low);
    high = Math.max(high, ...curve[measure].high);
    most = Math.max(most, places.of(curve).at(-1));
  }
  if (high - low < 1e-9) {
    high += 1;
    low -= 1;
  }
  const first = places.unit === "epoch" ? 1 : 0;
  const left = 52;
  const bottom = height - 36;
  const x = (place) => left + ((width - left - 18) * (place - first)) / Math.max(1, most - first);
  const y = (value) => 12 + (bottom - 12) * (1 - (value - low) / (high - low));
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const value of steps(low, high, height / 45)) {
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(left, y(value));
    context.lineTo(width - 18, y(value));
    context.stroke();
    context.fillStyle = palette.soft;
    context.textAlign = "right";
    context.fillText(String(Number(value.toPrecision(6))).replace("-", "\u2212"), left - 8, y(value));
  }
  context.fillStyle = palette.soft;
  context.textAlign = "center";
  context.textBaseline = "top";
  const marks = [first, ...steps(first, most, width / 90)].filter(Number.isInteger);
  for (const place of new Set(marks)) context.fillText(countText(place), x(place), bottom + 6);
  context.textAlign = "right";
  context.fillText(places.unit, width - 18, bottom + 21);
  curves.forEach((curve, k) => {
    const { mean, low: lows, high: highs } = curve[measure];
    const at = places.of(curve);
    const { colour, dash } = lineStyle(k, dark);
    context.fillStyle = colour;
    context.strokeStyle = colour;
    if (curve.runs > 1) {
      context.globalAlpha = 0.18;
      context.beginPath();
      at.forEach((place, e) => context.lineTo(x(place), y(highs[e])));
      for (let e = at.length - 1; e >= 0; e -= 1) context.lineTo(x(at[e]), y(lows[e]));
      context.fill();
      context.globalAlpha = 1;
    }
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    at.forEach((place, e) => context.lineTo(x(place), y(mean[e])));
    context.stroke();
    context.setLineDash([]);
    if (at.length === 1) context.fillRect(x(at[0]) - 3, y(mean[0]) - 3, 6, 6);
  });
}
