// What many episodes tell of a run, asked for when somebody looks.

export class Insights {
  constructor(source, redraw) {
    Object.assign(this, { source, redraw, known: new Map() });
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

  asked(id, version) {
    return this.known.has(`${id} ${version}`);
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

  forget() {
    for (const [key, value] of this.known) if (value && value.problem) this.known.delete(key);
  }
}

// An element says when it first comes into view.
export function whenSeen(node, tell) {
  const watcher = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      tell();
    },
    { rootMargin: "120px" },
  );
  watcher.observe(node);
}

// Whether actions are real numbers: then each advisor has a share of what pushes them.
export function isPushed(found) {
  return Object.values(found.advisors).some(({ influence }) => "push" in influence);
}

// How often, and by how much; or which share of the push.
export function changesText({ changed, margin, push }) {
  if (push !== undefined) return push === null ? "" : `${(100 * push).toFixed(push < 0.0995 ? 1 : 0)}%`;
  if (!changed) return "never";
  const size = margin > 0 && margin < 0.0005 ? "less than 0.001" : String(Number(margin.toPrecision(3)));
  return `${(100 * changed).toFixed(changed < 0.0995 ? 1 : 0)}%, by ${size}`;
}
