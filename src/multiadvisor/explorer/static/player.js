// The clock: play, pause, step, loop, from a quarter of the speed to sixteen times.

import { el, icon, option, setText } from "./dom.js";
import { SPEEDS } from "./state.js";

const STEPS_A_SECOND = 4; // at speed 1

export class Player {
  constructor(store, frame) {
    this.store = store;
    this.frame = frame;
    this.field = "step"; // which part of the state the clock moves
    this.playing = false;
    this.fraction = 0;
    this.last = 0;
    this.steps = 0;
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    const button = (label, text, onclick) =>
      el("button", { class: "icon", "aria-label": label, title: label, onclick }, text);
    this.toggle = button("Play", icon("play"), () => this.switch());
    this.toggle.classList.add("primary");
    this.loop = button("Loop", icon("loop"), () => store.set({ loop: !store.state.loop }));
    this.speed = el(
      "select",
      { "aria-label": "Speed", onchange: () => store.set({ speed: Number(this.speed.value) }) },
      SPEEDS.map((speed) => option(speed, `${speed}\u00d7`)),
    );
    this.label = el("span", { class: "number step" });
    this.root = el(
      "div",
      { class: "player", role: "group", "aria-label": "Player" },
      button("First step", icon("first"), () => this.go(0)),
      button("One step back", icon("back"), () => this.move(-1)),
      this.toggle,
      button("One step forward", icon("on"), () => this.move(1)),
      button("Last step", icon("last"), () => this.go(this.steps)),
      this.loop,
      this.speed,
      this.label,
    );
  }

  get step() {
    return this.store.state[this.field];
  }

  switch() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.steps === 0) return;
    if (this.step >= this.steps) this.store.set({ [this.field]: 0 });
    this.playing = true;
    this.last = performance.now();
    this.fraction = 0;
    window.requestAnimationFrame((now) => this.tick(now));
    this.frame();
  }

  pause() {
    this.playing = false;
    this.fraction = 0;
    this.frame();
  }

  tick(now) {
    if (!this.playing) return;
    const { state } = this.store;
    this.fraction += (Math.min(now - this.last, 250) / 1000) * STEPS_A_SECOND * state.speed;
    this.last = now;
    const whole = Math.floor(this.fraction);
    if (whole > 0) {
      this.fraction -= whole;
      let step = this.step + whole;
      if (step >= this.steps) {
        if (state.loop) step = 0;
        else {
          step = this.steps;
          this.playing = false;
          this.fraction = 0;
        }
      }
      this.store.set({ [this.field]: step });
    } else if (!this.calm.matches) this.frame();
    if (this.playing) window.requestAnimationFrame((then) => this.tick(then));
  }

  // How far what moves is on its way to the next step.
  get between() {
    return this.playing && !this.calm.matches && this.store.state.speed <= 4 ? Math.min(1, this.fraction) : 0;
  }

  move(by) {
    this.go(Math.min(this.step, this.steps) + by);
  }

  go(step) {
    this.playing = false;
    this.fraction = 0;
    this.store.set({ [this.field]: Math.max(0, Math.min(this.steps, step)) });
  }

  faster(by) {
    const at = SPEEDS.indexOf(this.store.state.speed) + by;
    if (at >= 0 && at < SPEEDS.length) this.store.set({ speed: SPEEDS[at] });
  }

  render(steps) {
    this.steps = steps;
    const { state } = this.store;
    const label = this.playing ? "Pause" : "Play";
    if (this.toggle.title !== label) {
      this.toggle.title = label;
      this.toggle.replaceChildren(icon(this.playing ? "pause" : "play"));
      this.toggle.setAttribute("aria-label", label);
    }
    this.loop.setAttribute("aria-pressed", String(state.loop));
    this.speed.value = String(state.speed);
    setText(this.label, `Step ${Math.min(this.step, steps)} of ${steps}`);
  }
}
