// What was added to the page around the episode: runs that are followed, what many episodes tell, and the table of agents.

import { el, tips } from "./dom.js";
import { Insights } from "./insight.js";
import { Agents } from "./agents.js";
import { Live, Watch } from "./live.js";

export class Extras {
  constructor(app) {
    this.app = app;
    Object.assign(tips, app.listing.tips);
    const { source, store, loader, redraw } = app;
    this.watch = new Watch(source, redraw, (id) => loader.drop(id));
    loader.versionOf = (id) => this.watch.versions[id] ?? 0;
    this.insights = new Insights(source, redraw);
    this.agents = new Agents(store, this.insights, redraw);
    this.training = new Live(store, this.watch, redraw, () => this.latest());
    this.given = { loader, insights: this.insights }; // to the episode's view
    const text = "A newer checkpoint is available: show it";
    this.fresh = el("button", { type: "button", hidden: true, onclick: () => this.latest() }, text);
    store.listen((state, before) => {
      if (["view", "run", "other", "episode"].some((name) => state[name] !== before[name])) this.watch.adopt();
    });
  }

  // The first episode of the newest checkpoint.
  latest() {
    this.watch.adopt();
    this.app.store.set({ view: "episode", episode: 0, step: 0 });
  }

  // A run and an episode; a newer checkpoint is taken up by itself only where nobody is in the middle of an episode.
  get(entry, state) {
    if (state.step === 0 && !this.app.player.playing) this.watch.adopt();
    this.fresh.hidden = !entry || !this.watch.stale(entry.id);
    return this.app.loader.get(entry, state.episode);
  }

  drawAgents() {
    this.app.main.hidden = false;
    this.app.say("");
    this.agents.render(this.app.listing.runs, this.watch.versions);
    return "";
  }

  forget() {
    this.insights.forget();
  }
}
