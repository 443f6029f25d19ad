// The clock: play, pause, step, loop, from a quarter of the speed to sixteen times.

import { el, icon, option, setText } from "./dom.js";
import { SPEEDS } from "./state.js";

const TURNS_A_SECOND = 4; // at speed 1

export class Player {
  constructor(store, frame) {
    this.store = store;
    this.frame = frame;
    this.field = "turn"; // which part of the state the clock moves
    this.playing = false;
    this.fraction = 0;
    this.last = 0;
    this.turns = 0;
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    const button = (label, text, onclick) =>
      el("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick }, text);
    this.toggle = button("Play", icon("play"), () => this.switch());
    this.toggle.classList.add("primary");
    this.loop = button("Loop", icon("loop"), () => store.set({ loop: !store.state.loop }));
    this.speed = el(
      "select",
      { "aria-label": "Speed", onchange: () => store.set({ speed: Number(this.speed.value) }) },
      SPEEDS.map((speed) => option(speed, `${speed}\u00d7`)),
    );
    this.label = el("span", { class: "number turn" });
    this.root = el(
      "div",
      { class: "player", role: "group", "aria-label": "Player" },
      button("First turn", icon("first"), () => this.go(0)),
      button("One turn back", icon("back"), () => this.step(-1)),
      this.toggle,
      button("One turn forward", icon("on"), () => this.step(1)),
      button("Last turn", icon("last"), () => this.go(this.turns)),
      this.loop,
      this.speed,
      this.label,
    );
  }

  get turn() {
    return this.store.state[this.field];
  }

  switch() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.turns === 0) return;
    if (this.turn >= this.turns) this.store.set({ [this.field]: 0 });
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
    this.fraction += (Math.min(now - this.last, 250) / 1000) * TURNS_A_SECOND * state.speed;
    this.last = now;
    const whole = Math.floor(this.fraction);
    if (whole > 0) {
      this.fraction -= whole;
      let turn = this.turn + whole;
      if (turn >= this.turns) {
        if (state.loop) turn = 0;
        else {
          turn = this.turns;
          this.playing = false;
          this.fraction = 0;
        }
      }
      this.store.set({ [this.field]: turn });
    } else if (!this.calm.matches) this.frame();
    if (this.playing) window.requestAnimationFrame((then) => this.tick(then));
  }

  // How far what moves is on its way to the next turn.
  get between() {
    return this.playing && !this.calm.matches && this.store.state.speed <= 4 ? Math.min(1, this.fraction) : 0;
  }

  step(by) {
    this.go(Math.min(this.turn, this.turns) + by);
  }

  go(turn) {
    this.playing = false;
    this.fraction = 0;
    this.store.set({ [this.field]: Math.max(0, Math.min(this.turns, turn)) });
  }

  faster(by) {
    const at = SPEEDS.indexOf(this.store.state.speed) + by;
    if (at >= 0 && at < SPEEDS.length) this.store.set({ speed: SPEEDS[at] });
  }

  render(turns) {
    this.turns = turns;
    const { state } = this.store;
    const label = this.playing ? "Pause" : "Play";
    if (this.toggle.title !== label) {
      this.toggle.title = label;
      this.toggle.replaceChildren(icon(this.playing ? "pause" : "play"));
      this.toggle.setAttribute("aria-label", label);
    }
    this.loop.setAttribute("aria-pressed", String(state.loop));
    this.speed.value = String(state.speed);
    setText(this.label, `Turn ${Math.min(this.turn, turns)} of ${turns}`);
  }
}
