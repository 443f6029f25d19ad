// Runs and their episodes, asked for when they are first looked at; what failed is asked for again where that is wished.

import { Episode, Run } from "./data.js";
import { Answers } from "./source.js";

export class Loader extends Answers {
  constructor(source, redraw) {
    super(redraw);
    Object.assign(this, { source, runs: new Map() });
    this.old = new Map(); // episodes of an earlier checkpoint, shown until the new ones are there
    this.versionOf = () => 0;
  }

  // A run and one of its episodes, or null while they are on their way.
  get(entry, number) {
    if (!entry) return null;
    const key = `${entry.id} ${number}`;
    const found = this.of(key, () => this.episode(entry, number, key))?.found ?? this.old.get(key);
    return found ? { ...found, id: entry.id, number } : null;
  }

  async episode({ id }, number, key) {
    const version = this.versionOf(id);
    const pack = this.source.pack(`runs/${id}/episodes/${number}`);
    pack.catch(() => {});
    if (!this.runs.has(id)) this.runs.set(id, this.source.pack(`runs/${id}`).then((buffer) => new Run(buffer)));
    try {
      const run = await this.runs.get(id);
      const episode = new Episode(run, await pack);
      this.old.delete(key);
      // where it is stuck comes when the library has looked; if nobody answers, whatever is asked next says so
      const seen = this.source.json(`stuck/${id}/${number}`);
      seen.then(({ stuck }) => Object.assign(episode, { stuck }) && this.redraw()).catch(() => {});
      return { run, episode, version };
    } catch (error) {
      this.runs.delete(id);
      throw error;
    }
  }

  // A run was trained further: what is known of it is out of date.
  drop(id) {
    this.runs.delete(id);
    for (const [key, answer] of [...this.known])
      if (key.startsWith(`${id} `) && answer?.found) {
        this.old.set(key, answer.found);
        this.known.delete(key);
      }
  }

  // Why an episode did not come.
  problem(entry, number) {
    return this.known.get(`${entry.id} ${number}`)?.problem;
  }
}
