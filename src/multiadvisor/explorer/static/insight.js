// What many episodes tell of a run, asked for when somebody looks.

import { Answers } from "./source.js";

export class Insights extends Answers {
  constructor(source, redraw) {
    super(redraw);
    Object.assign(this, { source, diagnosed: 0 });
  }

  // { found } or { problem }, or null while it is on its way; `wanted`: whether to ask for it now.
  of(id, version, wanted = true) {
    const key = `${id} ${version}`;
    return (wanted ? super.of(key, () => this.ask(id)) : this.known.get(key)) ?? null;
  }

  async ask(id) {
    const found = await this.source.json(`insight/${id}`);
    if (found.problem) throw new Error(found.problem);
    return found;
  }

  // More is known of a run now.
  async again(id) {
    this.diagnosed += 1;
    for (const key of this.known.keys()) if (key.startsWith(`${id} `)) await this.load(key, () => this.ask(id));
  }

  // What is known of a run has changed.
  change(id, make) {
    for (const [key, value] of this.known) if (value && key.startsWith(`${id} `)) this.known.set(key, make(value));
  }
}

// Whether actions are real numbers: then each advisor has a share of what pushes them.
export function isPushed(found) {
  return Object.values(found.advisors).some(({ influence }) => "push" in influence);
}
