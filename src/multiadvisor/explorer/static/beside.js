// What stands beside the bars in the episode's view: the picture, the rewards, the decisive moments and who drives.

import { setText } from "./dom.js";
import { Observed, PictureView } from "./picture.js";
import { Rewards } from "./rewards.js";
import { Drives, Moments } from "./moments.js";

export class Beside {
  constructor({ store, source, redraw, loader, insights }) {
    Object.assign(this, { loader, insights });
    this.picture = new PictureView(source, redraw);
    this.observed = new Observed(store);
    this.rewards = new Rewards(store, redraw);
    this.moments = new Moments(store, loader, redraw);
    this.drives = new Drives(store);
    this.pictures = [this.picture.root, this.observed.root];
    this.observed.root.addEventListener("toggle", redraw);
  }

  render(shown, step, palette, title) {
    const { run, episode, id, number, version } = shown;
    const drawn = this.picture.render(shown, step);
    this.observed.render(shown, step, palette, !drawn);
    if (!run.grid) setText(title, drawn ? "Picture" : "State");
    const answer = this.insights.of(id, version, this.moments.seen);
    this.moments.board = run.grid !== null;
    this.moments.render(answer, { id }, palette);
    this.drives.render(answer, this.moments.seen);
    this.rewards.render(episode, step, palette, answer?.found ?? null, number);
  }
}
