// All that the page shows, in the URL's fragment: a link to exactly this view. The secret of the server never is in it.

const DEFAULTS = {
  view: "episode",
  run: 0,
  other: 1,
  episode: 0,
  step: 0,
  speed: 1,
  loop: false,
  heat: true,
  arrows: true,
  attractors: "off",
  map: -1,
  cell: -1,
  against: -1,
  all: false,
  weights: {},
  muted: [],
  solo: [],
  exhibit: "three-fruits",
  planning: "",
  gamma: -1,
  noise: -1,
  at: 0,
  measure: "score",
  theme: "auto",
};
// The views and what they are called, in the order in which they stand at the top and on the number keys.
export const VIEWS = { episode: "Episode", compare: "Compare", agents: "Agents", gallery: "Gallery", learning: "Learning" };
const CHOICES = {
  view: Object.keys(VIEWS),
  attractors: ["off", "exact", "learned"],
  theme: ["auto", "light", "dark"],
};
export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];

// 1, 2, 3, 7 as "1-3.7"
export function rangesOf(numbers) {
  const sorted = [...new Set(numbers)].sort((p, q) => p - q);
  const parts = [];
  for (let k = 0; k < sorted.length; k += 1) {
    const first = sorted[k];
    while (k + 1 < sorted.length && sorted[k + 1] === sorted[k] + 1) k += 1;
    parts.push(first === sorted[k] ? `${first}` : `${first}-${sorted[k]}`);
  }
  return parts.join(".");
}

function numbersOf(text) {
  const found = [];
  for (const part of text.split(".")) {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part);
    if (!match) continue;
    const last = Math.min(Number(match[2] ?? match[1]), Number(match[1]) + 100000);
    for (let j = Number(match[1]); j <= last; j += 1) found.push(j);
  }
  return found;
}

function weightsOf(text) {
  const found = {};
  for (const part of text.split("_")) {
    const match = /^(\d{1,6})~(-?\d+(?:\.\d+)?(?:e-?\d+)?)$/.exec(part);
    if (match && Number.isFinite(Number(match[2]))) found[match[1]] = Number(match[2]);
  }
  return found;
}

// How a value of each kind is written, and read again; a text that says nothing is undefined.
const KINDS = {
  boolean: { write: (value) => (value ? "1" : "0"), read: (text) => text === "1" },
  number: { write: String, read: (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined) },
  string: { write: String, read: (text) => text.slice(0, 40) },
  list: { write: rangesOf, read: numbersOf },
  object: { write: (weights) => Object.entries(weights).map((pair) => pair.join("~")).join("_"), read: weightsOf },
};
const kindOf = (value) => KINDS[Array.isArray(value) ? "list" : typeof value];

export function encodeState(state) {
  const parts = [];
  for (const [name, standard] of Object.entries(DEFAULTS)) {
    const { write } = kindOf(standard);
    const text = write(state[name]);
    if (text !== write(standard)) parts.push(`${name}=${encodeURIComponent(text)}`);
  }
  return parts.join("&");
}

// A ticket of the server in a fragment, and the fragment without it.
export function ticketOf(fragment) {
  const parts = fragment.replace(/^#/, "").split("&");
  const ticket = parts.find((part) => part.startsWith("ticket="));
  const rest = parts.filter((part) => part !== ticket).join("&");
  return ticket ? { ticket: ticket.slice("ticket=".length), rest } : null;
}

export function decodeState(fragment) {
  const state = { ...DEFAULTS };
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const [name, ...rest] = part.split("=");
    if (!Object.hasOwn(DEFAULTS, name)) continue;
    let text;
    try {
      text = decodeURIComponent(rest.join("="));
    } catch {
      continue;
    }
    if (!CHOICES[name] || CHOICES[name].includes(text)) state[name] = kindOf(DEFAULTS[name]).read(text) ?? state[name];
  }
  for (const name of ["run", "other", "episode", "step", "at"]) state[name] = Math.max(0, Math.floor(state[name]));
  if (!SPEEDS.includes(state.speed)) state.speed = 1;
  return state;
}

// The state of the page as a fragment, whether it stands in the address yet or not; null before there is one.
let current = null;
export const fragmentNow = () => (current ? encodeState(current.state) : null);

// The state of the page: read it, change it, hear of changes.
export class Store {
  constructor() {
    current = this;
    this.state = decodeState(window.location.hash);
    this.listeners = [];
    this.writing = 0;
    window.addEventListener("hashchange", () => {
      if (ticketOf(window.location.hash)) return; // not a state: the source deals with it
      window.clearTimeout(this.writing); // what was about to be written is the past
      this.writing = 0;
      const found = decodeState(window.location.hash);
      if (encodeState(found) !== encodeState(this.state)) {
        const before = this.state;
        this.state = found;
        this.tell(before);
      }
    });
  }

  // Another view is a new entry in the browser's history, so that Back leads to the last one.
  set(changes) {
    const before = this.state;
    const turned = Boolean(changes.view) && changes.view !== before.view;
    if (turned) this.write();
    this.state = { ...before, ...changes };
    this.tell(before);
    if (turned) this.write("pushState");
    else if (!this.writing) this.writing = window.setTimeout(() => this.write(), 150);
  }

  // Written at most a few times a second: browsers refuse more.
  write(how = "replaceState") {
    window.clearTimeout(this.writing);
    this.writing = 0;
    const fragment = encodeState(this.state);
    const address = `${window.location.pathname}${window.location.search}${fragment ? `#${fragment}` : ""}`;
    try {
      window.history[how](null, "", address);
    } catch {
      // a page from a file may not be allowed to; then its address stays as it is
    }
  }

  tell(before) {
    for (const listener of this.listeners) listener(this.state, before);
  }

  listen(listener) {
    this.listeners.push(listener);
  }
}
