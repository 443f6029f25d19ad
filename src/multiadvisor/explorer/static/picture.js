// What an environment looks like: its own picture of every step, its own text, or else its observation over time.

import { el, fitCanvas, plural, sameParts, setText, widthOf } from "./dom.js";
import { unpack } from "./data.js";
import { axisText } from "./lines.js";
import { scrubbing, shareOf, stroke, write } from "./strokes.js";

const HELD = 4; // episodes whose pictures are kept
const READY = 40; // decoded pictures that are kept

// The pictures of episodes, asked for piece by piece from the first step on.
export class Album {
  constructor(source, redraw) {
    Object.assign(this, { source, redraw, episodes: new Map() });
  }

  of(id, number, version) {
    const key = `${id} ${number} ${version}`;
    let album = this.episodes.get(key);
    if (!album) {
      album = { blobs: [], of: [], facts: null, done: false, reason: "", ready: new Map() };
      this.episodes.set(key, album);
      for (const old of [...this.episodes.keys()].slice(0, -HELD)) {
        this.episodes.get(old).left = true;
        this.episodes.delete(old);
      }
      this.load(album, `${id}/${number}`);
    }
    return album;
  }

  async load(album, path) {
    while (!album.done && !album.left) {
      try {
        const buffer = await this.source.pack(`pictures/${path}/${album.of.length}`);
        const { header, arrays } = unpack(buffer);
        const base = album.blobs.length;
        let start = 0;
        for (const end of arrays.ends) {
          const bytes = arrays.content.slice(start, end);
          const drawn = bytes[0] === 0x89;
          album.blobs.push(drawn ? new Blob([bytes], { type: "image/png" }) : new TextDecoder().decode(bytes));
          start = end;
        }
        for (const k of arrays.of) album.of.push(base + k);
        album.facts = header;
        album.reason = header.reason;
        album.done = header.done || !arrays.of.length;
      } catch (error) {
        album.done = true;
        album.reason = error.message;
      }
      this.redraw();
    }
  }

  // The picture of a step if it is decoded, and some of the next ones are made ready.
  picture(album, step) {
    for (let ahead = 0; ahead < 10; ahead += 1) {
      const k = album.of[step + ahead];
      if (k === undefined || album.ready.has(k) || typeof album.blobs[k] === "string") continue;
      album.ready.set(k, null);
      window.createImageBitmap(album.blobs[k]).then((bitmap) => {
        album.ready.set(k, bitmap);
        for (const old of [...album.ready.keys()].slice(0, -READY)) {
          album.ready.get(old)?.close();
          album.ready.delete(old);
        }
        this.redraw();
      });
    }
    return album.ready.get(album.of[step]) ?? null;
  }
}

// Text of a terminal: what it would mark is marked.
function terminalText(node, text) {
  const parts = text.split(/\u001b\[(\d*(?:;\d+)*)m/);
  node.replaceChildren(
    ...parts.flatMap((part, k) => {
      if (k % 2) return [];
      const marked = k > 0 && parts[k - 1] !== "" && parts[k - 1] !== "0";
      return part ? [marked ? el("mark", {}, part) : part] : [];
    }),
  );
}

function sizeText(facts) {
  if (!facts || facts.kind !== "picture" || !facts.largest) return "";
  const [width, height] = facts.largest;
  const small = facts.smallest[0] < width ? `, later ${facts.smallest.join(" \u00d7 ")}` : "";
  const kept = facts.repeated ? `; ${plural(facts.repeated, "step")} without a picture` : "";
  const limit = small || kept ? ` to stay below ${facts.limit / 1e6} MB` : "";
  return `Pictures of ${width} \u00d7 ${height}${small}${kept}${limit}.`;
}

export class PictureView {
  constructor(source, redraw) {
    this.album = new Album(source, redraw);
    this.canvas = el("canvas", { role: "img", "aria-label": "The picture is being drawn", hidden: true });
    this.text = el("pre", { class: "terminal", hidden: true, tabIndex: 0 });
    this.box = el("div", { class: "picturebox" }, this.canvas, this.text);
    this.note = el("p", { class: "hint" });
    this.root = el("div", { class: "picture" }, this.box, this.note);
    this.shown = null;
  }

  // Whether there is, or will be, a picture.
  render({ run, episode, id, number, version = 0 }, step) {
    if (run.grid || run.compiled) {
      this.root.hidden = true;
      return run.grid !== null;
    }
    this.root.hidden = false;
    const album = this.album.of(id, number, version);
    const what = album.blobs[album.of[step]];
    const none = album.done && !album.blobs.length;
    this.box.hidden = none;
    this.text.hidden = typeof what !== "string";
    this.canvas.hidden = typeof what === "string";
    if (typeof what === "string" && this.shown !== what) {
      this.shown = what;
      terminalText(this.text, what);
    } else if (what) this.draw(album, step, run, episode);
    else if (!album.done) {
      // the place is kept, so that nothing moves when the picture comes
      const [wide, high] = album.facts?.largest ?? [600, 400];
      this.size(wide, high);
    }
    setText(this.note, none ? album.reason : what || album.done ? sizeText(album.facts) : "Drawing \u2026");
    return !none;
  }

  size(wide, high) {
    const width = Math.min(widthOf(this.box, 160), 600, (window.innerHeight * 0.5 * wide) / high);
    const height = Math.round((width * high) / wide);
    return { context: fitCanvas(this.canvas, Math.round(width), height), width: Math.round(width), height };
  }

  draw(album, step, run, episode) {
    const bitmap = this.album.picture(album, step);
    if (!bitmap) return;
    const { context, width, height } = this.size(bitmap.width, bitmap.height);
    context.imageSmoothingEnabled = width < 1.5 * bitmap.width; // large points stay points
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, 0, 0, width, height);
    this.canvas.dataset.step = step;
    const act = step < episode.steps ? `, before ${episode.did(step)}` : ", the end";
    const label = `${run.task} in step ${step}${act}`;
    if (this.canvas.getAttribute("aria-label") !== label) this.canvas.setAttribute("aria-label", label);
  }
}

const STRIP = 24; // pixels of each number
const NOW = 64; // on the right, for the values in this step

// The observation: a line for each of its numbers, with its name and its value now.
export class Observed {
  constructor(store) {
    this.canvas = el("canvas", { role: "img", "aria-label": "Observation" });
    this.plot = el("div", { class: "plot" }, this.canvas);
    this.title = el("summary", {}, "Observation");
    this.root = el("details", { class: "more" }, this.title, this.plot);
    scrubbing(this.canvas, store, (x) =>
      this.episode ? shareOf(x, this.gutter, this.canvas.clientWidth - NOW) * this.episode.steps : null,
    );
  }

  // `alone`: nothing else shows where the episode is, so that it stands open.
  render({ run, episode }, step, palette, alone) {
    const seen = episode.arrays.observed;
    this.root.hidden = !seen || run.grid !== null;
    if (this.root.hidden) return;
    if (this.episode !== episode || this.alone !== alone) {
      this.root.open = alone || this.root.open;
      Object.assign(this, { episode, alone });
    }
    if (!this.root.open) return;
    const size = seen.length / (episode.steps + 1);
    const single = run.compiled ? "state" : "observation";
    const names =
      run.observation.length >= size
        ? run.observation
        : Array.from({ length: size }, (_, k) => (size === 1 ? single : `${single}[${k}]`));
    const width = widthOf(this.plot, 220);
    const key = [width, palette, step, episode];
    if (sameParts(this.drawn, key)) return;
    this.drawn = key;
    const context = fitCanvas(this.canvas, width, size * STRIP + 4);
    context.clearRect(0, 0, width, size * STRIP + 4);
    context.font = "12px system-ui, sans-serif";
    this.gutter = Math.min(width * 0.36, 12 + Math.max(...names.slice(0, size).map((name) => context.measureText(name).width)));
    const x = (at) => this.gutter + ((width - this.gutter - NOW) * at) / Math.max(1, episode.steps);
    const told = [];
    for (let k = 0; k < size; k += 1) {
      let [low, high] = [Infinity, -Infinity];
      for (let at = 0; at <= episode.steps; at += 1) {
        low = Math.min(low, seen[at * size + k]);
        high = Math.max(high, seen[at * size + k]);
      }
      const top = 2 + k * STRIP;
      const y = (value) => top + STRIP - 6 - ((STRIP - 10) * (value - low)) / (high - low || 1);
      const now = axisText(seen[step * size + k]);
      write(context, names[k], 0, top + STRIP / 2, palette.soft, "left", "middle", this.gutter - 6);
      stroke(context, [[0, top + STRIP - 1.5], [width, top + STRIP - 1.5]], palette.line);
      const points = Array.from({ length: episode.steps + 1 }, (_, at) => [x(at), y(seen[at * size + k])]);
      stroke(context, points, palette.series[1], 1.5);
      write(context, now, width - 2, top + STRIP / 2, palette.ink, "right", "middle");
      told.push(`${names[k]} ${now}`);
    }
    stroke(context, [[x(step), 0], [x(step), size * STRIP + 4]], palette.accent, 2);
    this.canvas.setAttribute("aria-label", `Observation in step ${step}: ${told.join(", ")}`);
  }
}
