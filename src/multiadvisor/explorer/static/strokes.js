// What every chart on a canvas needs: a line through points, a text, and a pointer that picks a step.

// A line through points [[x, y]].
export function stroke(context, points, colour, width = 1, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  context.stroke();
  context.setLineDash([]);
}

export function write(context, text, x, y, colour, align = "left", baseline = "top", room = undefined) {
  context.fillStyle = colour;
  context.textAlign = align;
  context.textBaseline = baseline;
  context.fillText(text, x, y, room);
}

// While the pointer is pressed on the canvas, the step under it is shown; `stepAt` makes a step of a place from left.
export function scrubbing(canvas, store, stepAt) {
  const go = (event) => {
    if (event.buttons !== 1) return;
    const step = stepAt(event.clientX - canvas.getBoundingClientRect().left);
    if (step !== null) store.set({ step: Math.round(step) });
  };
  canvas.classList.add("scrubbed");
  canvas.addEventListener("pointerdown", go);
  canvas.addEventListener("pointermove", go);
}

// Where a place lies between two ends, 0 to 1.
export function shareOf(place, from, to) {
  return Math.max(0, Math.min(1, (place - from) / (to - from)));
}
