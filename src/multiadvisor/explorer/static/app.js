// The page: loads what is asked for, puts the views together, and draws one frame at a time.

import { byId, el, field, fill, onWidth, setText, tips } from "./dom.js";
import { Store, VIEWS } from "./state.js";
import { openSource } from "./source.js";
import { Loader } from "./loader.js";
import { Player } from "./player.js";
import { KEYS, listenToKeys } from "./keys.js";
import { EpisodeView } from "./episodeview.js";
import { CompareView, comparable, otherOf, titleOf } from "./compareview.js";
import { Gallery } from "./gallery.js";
import { Curves } from "./curves.js";
import { Maps } from "./maps.js";
import { isDark, paletteOf } from "./colours.js";
import { exportMenu, offersOf } from "./exporting.js";
import { OWN_WEIGHTS, weightsNow } from "./weights.js";
import { Answer } from "./answer.js";
import { Insights } from "./insight.js";
import { Agents } from "./agents.js";
import { Live, Watch } from "./live.js";

class App {
  constructor(source, listing) {
    Object.assign(this, { source, listing, waiting: false });
    this.measured = [];
    this.drawn = null; // the state that stands on the page
    this.store = new Store();
    this.redraw = () => this.schedule();
    this.loader = new Loader(source, this.redraw);
    Object.assign(tips, listing.tips);
    this.watch = new Watch(source, this.redraw, (id) => this.loader.drop(id));
    this.loader.versionOf = (id) => this.watch.versions[id] ?? 0;
    this.insights = new Insights(source, this.redraw);
    this.agents = new Agents(this.store, this.insights, this.redraw);
    this.training = new Live(this.store, this.watch, this.redraw, () => this.latest());
    this.fresh = el("button", { hidden: true, onclick: () => this.latest() }, "A newer checkpoint is available: show it");
    this.player = new Player(this.store, this.redraw);
    this.player.place = () => el("div", { class: "playerbox" });
    this.runPick = this.picker("run", "Run");
    this.firstPick = this.picker("run", "First run");
    this.otherPick = this.picker("other", "Second run");
    [this.episodePick, this.pairEpisodePick] = [0, 1].map(() =>
      el("select", { onchange: ({ target }) => this.store.set({ episode: Number(target.value), step: 0 }) }),
    );
    this.answer = new Answer(this.store, source, this.insights, this.redraw);
    this.episode = new EpisodeView(this);
    this.compare = new CompareView(this);
    this.gallery = new Gallery(this.store, source, this.player, listing.gallery, listing.plannings, this.redraw);
    this.curves = new Curves(this.store, source, this.redraw);
    this.maps = new Maps(source, this.redraw, (run, progress) => this.train({ do: "watch", run }, progress));
    this.bar = el(
      "div",
      { class: "toolbar" },
      field("Run", this.runPick),
      field("Episode", this.episodePick),
      this.fresh,
      this.episode.facts,
    );
    this.main = byId("view");
    this.message = byId("message");
    this.again = el("button", { hidden: true, onclick: () => this.forget() }, "Try again");
    this.message.after(this.again);
    this.live = byId("live");
    this.buildHeader();
    this.store.listen((state, before) => {
      if (["view", "run", "other", "episode"].some((name) => state[name] !== before[name])) {
        this.watch.adopt();
        this.forget();
      }
      this.schedule();
    });
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"])
      window.matchMedia(query).addEventListener("change", this.redraw);
    window.addEventListener("resize", this.redraw);
    onWidth(this.redraw);
    listenToKeys({
      player: this.player,
      view: (view) => this.store.set({ view }),
      help: () => this.dialog.showModal(),
      dialog: this.dialog,
    });
    this.schedule();
  }

  picker(name, label) {
    const onchange = ({ target }) =>
      this.store.set({ [name]: Number(target.value), step: 0, map: -1, cell: -1, against: -1, ...OWN_WEIGHTS });
    return el("select", { "aria-label": label, onchange });
  }

  fillPickers() {
    const { runs } = this.listing;
    const { state } = this.store;
    const named = (wanted) => () => runs.map((run, k) => [k, titleOf(run)]).filter(([k]) => wanted(k));
    fill(this.runPick, [runs], named(() => true), state.run);
    fill(this.firstPick, [runs, state.run], named((k) => !runs[k].diagnosis || k === state.run), state.run);
    fill(this.otherPick, [runs, state.run], named((k) => comparable(runs, state.run, k)), otherOf(runs, state));
    const episodes = runs[state.run]?.episodes;
    const numbered = () => (episodes ?? []).map((name, k) => [k, `episode ${k + 1} (${name})`]);
    for (const pick of [this.episodePick, this.pairEpisodePick]) fill(pick, [episodes], numbered, state.episode);
    for (const pick of [this.otherPick, this.episodePick, this.pairEpisodePick]) pick.parentNode.hidden = !pick.length;
  }

  buildHeader() {
    this.nav = byId("views");
    this.nav.replaceChildren(
      ...Object.entries(VIEWS).map(([view, text]) =>
        el("button", { "data-view": view, onclick: () => this.store.set({ view }) }, text),
      ),
    );
    const themes = { auto: "\u25d0", light: "\u2600", dark: "\u263e" };
    const next = { auto: "light", light: "dark", dark: "auto" };
    this.theme = el("button", {
      class: "icon",
      onclick: () => this.store.set({ theme: next[this.store.state.theme] }),
    });
    this.themeText = () => {
      const { theme } = this.store.state;
      setText(this.theme, themes[theme]);
      this.theme.setAttribute("aria-label", `Colours: ${theme}`);
      this.theme.title = `Colours: ${theme}`;
    };
    this.dialog = el(
      "dialog",
      { "aria-labelledby": "help-title" },
      el("h2", { id: "help-title" }, "Keys"),
      el("dl", {}, KEYS.flatMap(([key, text]) => [el("dt", {}, key), el("dd", {}, text)])),
      el("button", { onclick: () => this.dialog.close() }, "Close"),
    );
    document.body.append(this.dialog);
    const onclick = () => this.dialog.showModal();
    const help = el("button", { class: "icon", "aria-label": "Help: keys", title: "Keys", onclick }, "?");
    this.menu = exportMenu(() => offersOf(this), (text) => this.say(text));
    byId("tools").replaceChildren(this.menu, this.theme, help);
  }

  async retrain() {
    const { state } = this.store;
    const entry = this.listing.runs[state.run];
    const { progress } = this.episode.weights;
    progress.hidden = false;
    progress.value = 0;
    this.episode.weights.problem = null;
    this.schedule();
    try {
      const weights = Array.from(weightsNow(this.shown.run, state));
      await this.train({ do: "retrain", run: entry.id, weights }, (share) => (progress.value = share));
      progress.hidden = true;
    } catch (error) {
      progress.hidden = true;
      this.episode.weights.problem = { text: error.message, weights: state.weights };
    }
    this.schedule();
  }

  // Let the library train an agent, and show it.
  async train(question, progress) {
    const { id } = await this.source.ask(question, progress);
    this.listing = await this.source.json("runs");
    const run = this.listing.runs.findIndex((one) => one.id === id);
    this.store.set({ view: "episode", run, other: this.store.state.run, step: 0, ...OWN_WEIGHTS });
  }

  // The first episode of the newest checkpoint.
  latest() {
    this.watch.adopt();
    this.store.set({ view: "episode", episode: 0, step: 0 });
  }

  // What failed may be asked for again.
  forget() {
    const { gallery, curves, compare, episode } = this;
    const asked = [gallery, curves, compare, episode.moments].map(({ answers }) => answers);
    for (const part of [this.loader, this.insights, episode.attractors, ...asked]) part.forget();
    this.schedule();
  }

  say(text, failed = false) {
    this.message.hidden = !text;
    setText(this.message, text);
    this.again.hidden = !failed || !this.source.live;
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    window.requestAnimationFrame(() => {
      this.waiting = false;
      const start = performance.now();
      try {
        this.draw();
      } catch (error) {
        this.main.hidden = true;
        this.say(`This cannot be shown: ${error.message}`);
        throw error;
      }
      this.measured.push(performance.now() - start);
      if (this.measured.length > 5000) this.measured.splice(0, 2500);
    });
  }

  draw() {
    const { state } = this.store;
    document.documentElement.dataset.theme = isDark(state.theme) ? "dark" : "light";
    const palette = paletteOf(state.theme);
    this.themeText();
    for (const button of this.nav.children) {
      if (button.dataset.view === state.view) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    if (this.view !== state.view) {
      this.view = state.view;
      if (this.player.playing) this.player.pause();
      this.player.field = state.view === "gallery" ? "at" : "step";
      const roots = {
        episode: [this.bar, this.answer.root, this.episode.root],
        compare: [this.compare.root],
        gallery: [this.gallery.root],
        agents: [this.agents.root],
        learning: [this.training.root, this.maps.root, this.curves.root],
      };
      this.main.replaceChildren(...roots[state.view]);
    }
    this.fillPickers();
    this.main.hidden = false;
    if (state.view !== "episode") this.say("");
    const sentence = {
      episode: () => this.drawEpisode(state, palette),
      compare: () => this.drawCompare(state, palette),
      gallery: () => this.drawGallery(state, palette),
      agents: () => this.agents.render(this.listing.runs.filter((run) => !run.diagnosis), this.watch.versions),
      learning: () => this.drawLearning(state, palette),
    }[state.view]();
    if (!this.player.playing) setText(this.live, sentence ?? "");
    // what stands on the page now, for tests and for anyone who watches it
    const waiting =
      (["episode", "compare"].includes(state.view) && !this.shown) ||
      (state.view === "gallery" && this.gallery.busy) ||
      (state.view === "learning" && !this.curves.curves);
    document.documentElement.dataset.drawn = waiting ? "" : `${state.view} ${state.run} ${state.episode} ${state.step}`;
    this.drawn = state;
  }

  adopt(view) {
    const box = view.root.querySelector(".playerbox");
    if (this.player.root.parentNode !== box) box.append(this.player.root);
  }

  drawEpisode(state, palette) {
    this.adopt(this.episode);
    if (!this.listing.runs.length) {
      this.main.hidden = true;
      this.say("No run was given: `multiadvisor explore RUN` shows one. The gallery is available without one.");
      return "";
    }
    const entry = this.listing.runs[state.run];
    // a newer checkpoint is taken up by itself only where nobody is in the middle of an episode
    if (state.step === 0 && !this.player.playing) this.watch.adopt();
    this.fresh.hidden = !entry || !this.watch.stale(entry.id);
    if (entry?.diagnosis) return this.drawDiagnosis(entry);
    const shown = this.loader.get(entry, state.episode);
    const none = `There are ${this.listing.runs.length} runs here, and so no run ${state.run + 1}.`;
    const problem = entry ? this.loader.problem(entry, state.episode) : none;
    this.episode.root.hidden = !shown;
    this.shown = shown;
    this.answer.root.hidden = !shown;
    if (!shown) {
      setText(this.episode.facts, "");
      this.say(problem || "Loading \u2026", Boolean(problem && entry)); // read aloud by itself
      return "";
    }
    this.say("");
    const sentence = this.episode.render(shown, state, palette);
    if (!this.first) this.first = performance.now();
    return sentence;
  }

  // Of anybody's policy there is a diagnosis, and no episode to look at.
  drawDiagnosis(entry) {
    [this.episode.root.hidden, this.answer.root.hidden] = [true, false];
    setText(this.episode.facts, `A diagnosis of a policy in ${entry.task}.`);
    this.shown = this.insights.of(entry.id, 0);
    this.answer.render(this.shown, entry.id, null);
    this.say("");
    return this.episode.facts.textContent;
  }

  drawCompare(state, palette) {
    this.adopt(this.compare);
    this.shown = null;
    const { runs } = this.listing;
    const [one, two] = [runs[state.run], runs[otherOf(runs, state)]];
    const needed = "Two runs are needed to compare, of one task: `multiadvisor explore RUN RUN`.";
    if (!one || !two) return this.compare.say(needed);
    // the same episode has another number where one of them has episodes of a trace before it
    const name = one.episodes[state.episode];
    const numbers = [state.episode, name === undefined ? state.episode : two.episodes.indexOf(name)];
    if (numbers[1] < 0) return this.compare.say(`${two.name} has not played ${name}: choose another episode.`);
    const pair = [one, two].map((entry, k) => this.loader.get(entry, numbers[k]));
    if (!pair[0] || !pair[1]) {
      const problem = [one, two].map((entry, k) => this.loader.problem(entry, numbers[k])).find(Boolean);
      this.again.hidden = !problem || !this.source.live;
      return this.compare.say(problem || "Loading \u2026");
    }
    this.compare.say("");
    [this.shown] = pair;
    this.pair = pair;
    return this.compare.render(pair, state, palette);
  }

  drawGallery(state, palette) {
    if (this.listing.gallery.length) this.adopt(this.gallery);
    return this.gallery.render(state, palette);
  }

  drawLearning(state, palette) {
    this.training.render(this.listing.runs[state.run], palette);
    this.curves.load(`${this.listing.runs.length} ${this.watch.checkpoints}`);
    this.curves.training = this.watch.busy;
    this.curves.render(state.measure, palette);
    this.maps.load();
    this.maps.render(this.curves.measure);
  }
}

async function start() {
  try {
    const source = await openSource();
    window.explorer = new App(source, await source.json("runs"));
  } catch (error) {
    byId("message").hidden = false;
    setText(byId("message"), error.message || "The page could not be opened.");
  }
}

start();
