// What many episodes tell of a run, asked for when somebody looks.

export class Insights {
  constructor(source, redraw) {
    Object.assign(this, { source, redraw, known: new Map(), diagnosed: 0 });
  }

  // { found } or { problem }, or null while it is on its way; `wanted`: whether to ask for it now.
  of(id, version, wanted = true) {
    const key = `${id} ${version}`;
    if (!this.known.has(key) && wanted) {
      this.known.set(key, null);
      this.load(id, key);
    }
    return this.known.get(key) ?? null;
  }

  async load(id, key) {
    try {
      const found = await this.source.json(`insight/${id}`);
      this.known.set(key, found.problem ? { problem: found.problem } : { found });
    } catch (error) {
      this.known.set(key, { problem: error.message });
    }
    this.redraw();
  }

  // More is known of a run now.
  async again(id) {
    this.diagnosed += 1;
    for (const key of this.known.keys()) if (key.startsWith(`${id} `)) await this.load(id, key);
  }

  // What is known of a run has changed.
  change(id, make) {
    for (const [key, value] of this.known) if (value && key.startsWith(`${id} `)) this.known.set(key, make(value));
  }

  forget() {
    for (const [key, value] of this.known) if (value && value.problem) this.known.delete(key);
  }
}

// Whether actions are real numbers: then each advisor has a share of what pushes them.
export function isPushed(found) {
  return Object.values(found.advisors).some(({ influence }) => "push" in influence);
}
