// The keyboard: the same everywhere on the page, except where a control needs the key itself.

import { VIEWS } from "./state.js";

const NUMBERED = Object.keys(VIEWS);

export const KEYS = [
  ["Space", "play or pause"],
  ["\u2190 \u2192", "one step back or forward"],
  [", .", "one step back or forward, on the board as well"],
  ["\u2191 \u2193", "faster or slower"],
  ["Home End", "first or last step"],
  ["Tab, arrows, Enter", "on the board: go from cell to cell, pin one"],
  [NUMBERED.map((_, k) => k + 1).join(" "), NUMBERED.map((view) => VIEWS[view].toLowerCase()).join(", ")],
  ["?", "this list"],
];

function taken(target, key) {
  const tag = target.tagName;
  if (tag === "SELECT" || tag === "TEXTAREA") return true;
  if (tag === "INPUT" && target.type === "checkbox") return key === " ";
  if (tag === "INPUT") return target.type !== "range" || /^(Arrow|Home|End)/.test(key);
  if (tag === "BUTTON" || tag === "SUMMARY" || tag === "A") return key === " " || key === "Enter";
  if (target.getAttribute("role") === "gridcell") return /^(Arrow|Enter)/.test(key);
  if (target.getAttribute("role") === "region") return /^(Arrow|Home|End| )/.test(key);
  return false;
}

export function listenToKeys({ player, view, help, dialog }) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || taken(event.target, event.key)) return;
    const wanted = NUMBERED[Number(event.key) - 1];
    const actions = {
      " ": () => player.switch(),
      ArrowLeft: () => player.move(-1),
      ArrowRight: () => player.move(1),
      ",": () => player.move(-1),
      ".": () => player.move(1),
      ArrowUp: () => player.faster(1),
      ArrowDown: () => player.faster(-1),
      Home: () => player.go(0),
      End: () => player.go(player.steps),
      "?": help,
    };
    if (wanted) view(wanted);
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  });
}
