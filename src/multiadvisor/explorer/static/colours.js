// Blue for negative, orange for positive, grey for nothing: told apart by everyone, in light and in dark.

const LIGHT = {
  page: "#ffffff",
  floor: "#f3f4f7",
  line: "#e3e6eb",
  wall: "#b9c0cc",
  ink: "#1a202c",
  soft: "#5a6575",
  fruit: "#1a202c",
  ring: "#ffffff",
  player: "#f6c915",
  edge: "#7a5c00",
  ghost: "#7c3aed",
  eye: "#ffffff",
  water: "#9cc4ee",
  positive: [217, 104, 10],
  negative: [29, 92, 196],
  neutral: [243, 244, 247],
  accent: "#4f46e5",
  stuck: "rgba(29, 92, 196, 0.16)",
  series: ["#c2570a", "#1d5cc4", "#4f46e5", "#0f766e"],
};
const DARK = {
  page: "#171a21",
  floor: "#1d212a",
  line: "#2b303b",
  wall: "#4a5363",
  ink: "#eef1f6",
  soft: "#a3adbd",
  fruit: "#ffffff",
  ring: "#14161c",
  player: "#ffd83d",
  edge: "#fff3b8",
  ghost: "#b79bff",
  eye: "#171a21",
  water: "#27507d",
  positive: [245, 140, 44],
  negative: [88, 150, 255],
  neutral: [29, 33, 42],
  accent: "#a5a0ff",
  stuck: "rgba(88, 150, 255, 0.2)",
  series: ["#f59a44", "#6ea6ff", "#a5a0ff", "#4fd1c0"],
};
const FORCED = {
  ...LIGHT,
  page: "Canvas",
  floor: "Canvas",
  line: "GrayText",
  wall: "GrayText",
  ink: "CanvasText",
  soft: "CanvasText",
  fruit: "CanvasText",
  ring: "Canvas",
  player: "Highlight",
  edge: "CanvasText",
  ghost: "CanvasText",
  eye: "Canvas",
  accent: "Highlight",
  stuck: "Canvas",
  water: "GrayText",
  series: ["CanvasText", "Highlight", "LinkText", "GrayText"],
  plain: true,
};

export function isDark(theme) {
  if (theme !== "auto") return theme === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

export function paletteOf(theme) {
  if (window.matchMedia("(forced-colors: active)").matches) return FORCED;
  return isDark(theme) ? DARK : LIGHT;
}

// The scale of a set of values: symmetric where both signs occur, else from the least to the most.
export function scaleOf(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return { low: 0, high: 0, mixed: false };
  return { low, high, mixed: low < 0 && high > 0 };
}

// A colour for a value: its sign by the hue, its size by how far it is from grey.
export function heatColour(value, scale, palette) {
  if (palette.plain) return palette.floor;
  const towards = value < 0 ? palette.negative : palette.positive;
  let share;
  if (scale.mixed) share = Math.abs(value) / Math.max(-scale.low, scale.high);
  else {
    const width = scale.high - scale.low;
    const along = width > 0 ? (value - scale.low) / width : 0.5;
    share = 0.08 + 0.92 * (value < 0 ? 1 - along : along);
    if (value === 0) share = 0; // nothing, also where it is the most that there is
  }
  const amount = 0.86 * share ** 0.8;
  const mixed = palette.neutral.map((from, k) => Math.round(from + amount * (towards[k] - from)));
  return `rgb(${mixed[0]}, ${mixed[1]}, ${mixed[2]})`;
}
