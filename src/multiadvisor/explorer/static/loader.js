// Runs and their episodes, asked for when they are first looked at; what failed is asked for again where that is wished.

import { Episode, Run } from "./data.js";

export class Loader {
  constructor(source, redraw) {
    Object.assign(this, { source, redraw, runs: new Map(), episodes: new Map(), problems: new Map() });
    this.old = new Map(); // episodes of an earlier checkpoint, shown until the new ones are there
    this.versionOf = () => 0;
  }

  // A run and one of its episodes, or null while they are on their way.
  get(entry, number) {
    if (!entry) return null;
    const key = `${entry.id} ${number}`;
    const known = this.episodes.get(key);
    if (known === undefined) {
      this.episodes.set(key, null);
      this.load(entry, number, key);
    }
    const found = known || this.old.get(key);
    return found ? { ...found, id: entry.id, number } : null;
  }

  async load(entry, number, key) {
    try {
      const version = this.versionOf(entry.id);
      const episode = this.source.pack(`runs/${entry.id}/episodes/${number}`);
      episode.catch(() => {});
      if (!this.runs.has(entry.id))
        this.runs.set(entry.id, this.source.pack(`runs/${entry.id}`).then((buffer) => new Run(buffer)));
      const run = await this.runs.get(entry.id);
      const found = new Episode(run, await episode);
      this.episodes.set(key, { run, episode: found, version });
      this.old.delete(key);
      // where it is stuck comes when the library has looked; if nobody answers, whatever is asked next says so
      const seen = this.source.json(`stuck/${entry.id}/${number}`);
      seen.then(({ stuck }) => Object.assign(found, { stuck }) && this.redraw()).catch(() => {});
    } catch (error) {
      this.runs.delete(entry.id);
      this.problems.set(key, error.message);
    }
    this.redraw();
  }

  // A run was trained further: what is known of it is out of date.
  drop(id) {
    this.runs.delete(id);
    for (const key of [...this.episodes.keys()])
      if (key.startsWith(`${id} `) && this.episodes.get(key)) {
        this.old.set(key, this.episodes.get(key));
        this.episodes.delete(key);
      }
  }

  // Why an episode did not come.
  problem(entry, number) {
    return this.problems.get(`${entry.id} ${number}`);
  }

  forget() {
    for (const key of this.problems.keys()) this.episodes.delete(key);
    this.problems.clear();
  }
}
