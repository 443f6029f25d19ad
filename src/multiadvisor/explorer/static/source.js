// Where the data comes from: the local server, or, in an exported file, the page itself.

import { sentenceCase } from "./dom.js";
import { fragmentNow, ticketOf } from "./state.js";

const KEY = "multiadvisor-explorer";

function embedded() {
  const node = document.getElementById("embedded");
  return node ? JSON.parse(node.textContent) : null;
}

// Bytes that were packed with gzip and written as text.
async function bytesOf(text) {
  const raw = window.atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k += 1) bytes[k] = raw.charCodeAt(k);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// What a file holds, by path.
class EmbeddedSource {
  constructor(data) {
    this.data = data;
    this.live = false;
  }

  async json(path) {
    if (!Object.hasOwn(this.data.answers, path)) throw new Error("This is not in the file.");
    return this.data.answers[path];
  }

  async pack(path) {
    return bytesOf(await this.json(path));
  }

  // The attractors of the board that lay there in this step.
  layer(id, step) {
    const steps = Object.keys(this.data.layers[id]).map(Number);
    const last = Math.max(...steps.filter((at) => at <= step));
    return this.data.layers[id][last] ?? null;
  }
}

// What a server answers.
class ServerSource {
  constructor(token) {
    this.token = token;
    this.live = true;
    this.waiting = new Map();
    this.number = 0;
    this.socket = null;
  }

  async fetch(path) {
    let response;
    try {
      response = await window.fetch(`/api/${path}`, { headers: { authorization: `Bearer ${this.token}` } });
    } catch {
      throw new Error(SILENT);
    }
    if (response.status === 401) throw new Error(CLOSED);
    if (!response.ok) throw new Error(await problemOf(response));
    return response;
  }

  async pack(path) {
    return (await this.fetch(path)).arrayBuffer();
  }

  async json(path) {
    return (await this.fetch(path)).json();
  }

  async text(path) {
    return (await this.fetch(path)).text();
  }

  // A question to the library; `progress` hears how far it is.
  ask(question, progress = () => {}) {
    return new Promise((resolve, reject) => {
      this.number += 1;
      const message = JSON.stringify({ id: this.number, ...question });
      this.waiting.set(this.number, { resolve, reject, progress });
      const socket = this.open();
      if (socket.readyState === WebSocket.OPEN) socket.send(message);
      else socket.addEventListener("open", () => socket.send(message), { once: true });
    });
  }

  open() {
    if (this.socket && this.socket.readyState <= WebSocket.OPEN) return this.socket;
    this.socket = new WebSocket(`ws://${window.location.host}/api/socket`, ["multiadvisor", this.token]);
    this.socket.addEventListener("message", (event) => {
      const { id, result, error, share } = JSON.parse(event.data);
      const asked = this.waiting.get(id);
      if (!asked) return;
      if (share !== undefined) {
        asked.progress(share);
        return;
      }
      this.waiting.delete(id);
      if (error) asked.reject(new Error(sentence(error)));
      else asked.resolve(result);
    });
    this.socket.addEventListener("close", () => {
      for (const { reject } of this.waiting.values()) reject(new Error("The explorer in the terminal has ended."));
      this.waiting.clear();
    });
    return this.socket;
  }
}

// Answers by their keys, each asked for once: { found }, { problem }, or null while it is on its way.
export class Answers {
  constructor(redraw) {
    Object.assign(this, { redraw, known: new Map() });
  }

  of(key, ask) {
    if (!this.known.has(key)) this.load(key, ask);
    return this.known.get(key);
  }

  async load(key, ask) {
    if (!this.known.has(key)) this.known.set(key, null);
    this.known.set(key, await ask().then((found) => ({ found }), (error) => ({ problem: error.message })));
    this.redraw();
  }

  // What failed may be asked for again.
  forget() {
    for (const [key, answer] of this.known) if (answer?.problem) this.known.delete(key);
  }
}

// The same where only the latest question matters: one at a time.
export class Latest extends Answers {
  of(key, ask) {
    if (this.known.has(key)) return this.known.get(key);
    this.wish = { key, ask };
    this.work();
    return null;
  }

  async work() {
    if (this.busy) return;
    this.busy = true;
    while (this.wish) {
      const { key, ask } = this.wish;
      this.wish = null;
      if (this.known.size > 500) this.known.clear();
      await this.load(key, ask);
    }
    this.busy = false;
  }
}

const SILENT = "The explorer does not answer: is it still running in the terminal?";
const CLOSED = "This page needs the address that the terminal shows: open the newest one.";

async function problemOf(response) {
  try {
    return sentence((await response.json()).error);
  } catch {
    return "The explorer failed: the terminal says why.";
  }
}

function sentence(text) {
  return text ? sentenceCase(text) + (/[.?!]$/.test(text) ? "" : ".") : "Something went wrong.";
}

// A ticket in the fragment is exchanged for the token, once, and leaves the address before anything else happens; what
// was wrong with it, or "". Where the fragment holds nothing else, the page stays `where` it was.
async function enter(where = "") {
  const found = ticketOf(window.location.hash);
  if (!found) return "";
  const rest = found.rest || where;
  window.history.replaceState(null, "", `/${rest ? `#${rest}` : ""}`);
  let response;
  try {
    response = await window.fetch("/api/enter", { method: "POST", body: found.ticket });
  } catch {
    return SILENT;
  }
  if (!response.ok) return problemOf(response);
  window.localStorage.setItem(KEY, (await response.json()).token);
  return "";
}

export async function openSource() {
  const data = embedded();
  if (data) return new EmbeddedSource(data);
  // a server that was started anew has another address: pasted into this tab it changes the fragment, and nothing else
  window.addEventListener("hashchange", async (event) => {
    if (!ticketOf(window.location.hash)) return;
    const before = new URL(event.oldURL).hash;
    const last = fragmentNow() ?? ticketOf(before)?.rest ?? before.slice(1);
    const problem = await enter(last);
    if (!problem) window.location.reload();
  });
  const problem = await enter();
  if (problem && !window.localStorage.getItem(KEY)) throw new Error(problem);
  const token = window.localStorage.getItem(KEY);
  if (!token) throw new Error(CLOSED);
  return new ServerSource(token);
}
