// One colour for one advisor, wherever it is drawn: in the bars, in the lines of its rewards and in a training.

export const MOST_TERMS = 12;
export const HUES = 8; // the parts of the bars have as many in the style sheet, in the same order
const LINES = {
  light: ["#c2570a", "#1d5cc4", "#0f766e", "#a8288a", "#806600", "#6546d2", "#4d7c0f", "#7a5c3c"],
  dark: ["#f2a55f", "#8fb8f6", "#7fd1b9", "#e6a9d8", "#d9c94f", "#b9a6f5", "#a9c76f", "#c9b8a4"],
};
const STROKES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

// Colour and dashes of line k: the dashes tell apart what has the same colour, and what colours do not tell to everyone.
export function termStyle(k) {
  const hues = LINES[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];
  return { colour: hues[k % HUES], dash: STROKES[Math.floor(k / HUES) % STROKES.length] };
}

// The same of curve k, of which every one has dashes of its own.
export function curveStyle(k) {
  return { ...termStyle(k), dash: STROKES[(k + Math.floor(k / HUES)) % STROKES.length] };
}

// How some of many terms are drawn, from the numbers of their colours: dashes tell apart those of one colour.
export function stylesOf(hues) {
  const times = new Map();
  return hues.map((hue) => {
    times.set(hue % HUES, (times.get(hue % HUES) ?? -1) + 1);
    return termStyle((hue % HUES) + HUES * times.get(hue % HUES));
  });
}

// The terms of a run: its advisors as the task pays them or, of many, their groups; [{ name, members }].
export function termsOf(run) {
  const own = run.paid.map(({ name }, j) => ({ name, members: [j] }));
  if (own.length <= MOST_TERMS) return own;
  const groups = new Map();
  run.paid.forEach(({ name, group }, j) => {
    const key = group || name;
    if (!groups.has(key)) groups.set(key, { name: key, members: [] });
    groups.get(key).members.push(j);
  });
  return [...groups.values()];
}

// The number of the colour of each of these labels: that of the term of this name, else the next free one.
export function huesOf(run, labels) {
  const terms = new Map(termsOf(run).map(({ name }, k) => [name, k]));
  let free = labels.some((label) => terms.has(label)) ? terms.size : 0;
  return labels.map((label) => (terms.has(label) ? terms.get(label) : free++) % HUES);
}
