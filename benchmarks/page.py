"""The explorer page in a real headless Chromium: how soon, how smoothly, and in how much memory it plays.

    python benchmarks/page.py [--json] [--hours 1] [--rounds 5]

Needs `pip install -e '.[explorer,mo,test]'` and Chromium (`make browser`). Prints a Markdown table:

- first picture: from opening the address to the first drawn step of an episode with its picture, medians of `--rounds`
  fresh browsers, each with its episodes recorded but nothing drawn yet;
- frames: intervals between animation frames while it plays, at each speed up to 4x;
- memory: `--hours` of playing at 1x, which is 4 steps a second, played at 16x with episodes in turn; the heap after a
  collection of garbage and the memory of the tab's process, at the end and its growth in the second half;
- a trace of 1,000 steps with frames: its size as a file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

import multiadvisor as mad
from measures.tables import machine
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.trace_file import write_trace
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, address, serving
from multiadvisor.runs.pictures import with_pictures

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--js-flags=--expose-gc"]
SPEEDS = (1, 2, 4)
STEPS_A_SECOND = 4  # at speed 1
SECONDS = 6  # of frames at each speed
EPISODES = 3
DRAWN = """() => window.explorer && document.documentElement.dataset.drawn
  && [...document.querySelectorAll(".picturebox canvas, .boardbox canvas")].some((one) =>
    one.offsetParent && one.width > 1 && (one.closest(".boardbox") || one.dataset.step !== undefined))"""
FRAMES = """async ([speed, seconds]) => {
  explorer.store.set({ step: 0, speed, loop: true });
  explorer.player.play();
  await new Promise((done) => setTimeout(done, 500));
  const seen = [];
  await new Promise((done) => {
    const tick = (now) => {
      seen.push(now);
      if (now - seen[0] < 1000 * seconds) requestAnimationFrame(tick);
      else done();
    };
    requestAnimationFrame(tick);
  });
  explorer.player.pause();
  return seen.slice(1).map((now, k) => now - seen[k]);
}"""
PLAY = """async ([steps, episodes]) => {
  explorer.store.set({ step: 0, speed: 16, loop: false, episode: (explorer.store.state.episode + 1) % episodes });
  await new Promise((done) => setTimeout(done, 300));
  explorer.player.play();
  let before = explorer.player.step, played = 0;
  while (played < steps && explorer.player.playing) {
    await new Promise((done) => setTimeout(done, 50));
    played += Math.max(0, explorer.player.step - before);
    before = explorer.player.step;
  }
  explorer.player.pause();
  return played;
}"""


def agents() -> dict[str, mad.MultiAdvisor]:
    """A lander that draws itself, and Pac-Boy with 77 advisors on a board."""
    lander = mad.MultiAdvisor(mad.make("mo-lunar-lander-v3"), gamma=0.99, learner=mad.DQN(), seed=0)
    return {
        "LunarLander, network": lander.learn(4_000, progress=False),
        "Pac-Boy, 77 advisors": mad.MultiAdvisor(mad.make("pac-boy"), gamma=0.9).learn(400_000, progress=False),
    }


def chromium() -> str | None:
    """The browser that is there."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next((found for name in names if (found := shutil.which(name))), None)


def resident(process: int) -> float:
    """Megabytes that the largest renderer below a process holds by itself (Linux)."""
    found = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"--type=renderer" not in (folder / "cmdline").read_bytes() or not _below(folder, process):
                continue
            lines = (folder / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        private = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
        found = max(found, private / 1024)
    return found


def _below(folder: Path, process: int) -> bool:
    number = int(folder.name)
    while number > 1:
        if number == process:
            return True
        text = Path(f"/proc/{number}/stat").read_text()
        number = int(text[text.rindex(")") + 2 :].split()[1])
    return False


def wait(page: Any, seconds: float = 60.0) -> None:
    """Until a picture of an episode is there; asked from outside, as the page evaluates no strings."""
    end = time.monotonic() + seconds
    while not page.evaluate(DRAWN):
        if time.monotonic() > end:
            raise TimeoutError(f"no picture in {seconds:.0f} s: {page.inner_text('main')[:200]}")
        page.wait_for_timeout(10)


def first_pictures(browser: Any, explorer: Explorer, port: int, run: int, rounds: int) -> list[float]:
    """Seconds from opening the page to the first picture of an episode, in fresh browsers."""
    taken = []
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1366, "height": 768})
        page = context.new_page()
        page.goto(f"{address(port, explorer.keys.ticket())}&run={run}", wait_until="commit")
        wait(page)
        taken.append(page.evaluate("performance.now()") / 1000)
        context.close()
    return taken


def played(browser: Any, explorer: Explorer, port: int, run: int, steps: int) -> dict[str, Any]:
    """Frames at each speed, and memory over so many steps."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    page = context.new_page()
    page.goto(f"{address(port, explorer.keys.ticket())}&run={run}")
    wait(page)
    intervals = {speed: page.evaluate(FRAMES, [speed, SECONDS]) for speed in SPEEDS}
    tab = context.new_cdp_session(page)
    tab.send("Performance.enable")
    done, heaps = 0, []
    while done < steps:
        done += page.evaluate(PLAY, [steps - done, EPISODES])
        tab.send("HeapProfiler.collectGarbage")
        metrics = {one["name"]: one["value"] for one in tab.send("Performance.getMetrics")["metrics"]}
        heaps.append((done, metrics["JSHeapUsedSize"] / 1e6, metrics["Nodes"], resident(os.getpid())))
    context.close()
    table = np.array(heaps)  # [episodes, steps so far, heap, nodes, resident]
    late = table[len(table) // 2 :]
    growth = np.polyfit(np.arange(len(late)), late[:, 1:], 1)[0] if len(late) > 1 else np.zeros(3)
    frames = {
        str(speed): {
            "median_ms": float(np.median(found)), "p95_ms": float(np.quantile(found, 0.95)),
            "a_second": 1000 / float(np.mean(found)),
        }
        for speed, found in intervals.items()
    }  # fmt: skip
    return {
        "frames": frames, "steps": done, "episodes": len(table), "heap_mb": float(table[-1, 1]),
        "process_mb": float(table[-1, 3]), "heap_mb_an_episode": float(growth[0]), "nodes_an_episode": float(growth[1]),
        "process_mb_an_episode": float(growth[2]),
    }  # fmt: skip


def trace_size(agent: mad.MultiAdvisor, steps: int = 1_000) -> dict[str, Any]:
    """The file of so many steps with a picture of each."""
    episodes, seen = 0, 0
    while seen < steps:
        episodes += 1
        trace = record(agent, episodes)
        seen = int(trace.length.sum())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        write_trace(path, with_pictures(trace, agent.task))
        return {"steps": seen, "mb": path.stat().st_size / 1e6}


def measure(rounds: int, hours: float) -> dict[str, Any]:
    """Everything, for each agent."""
    made = agents()
    library = Library(episodes=EPISODES)
    for name, agent in made.items():
        library.add_agent(agent, name)
    explorer = Explorer(library)
    for name in library.entries:
        for episode in range(EPISODES):
            library.recorded(name, episode)  # played, as a server that has been asked before
    found: dict[str, Any] = {"machine": machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0], "rows": {}}
    with serving(explorer) as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for run, (name, agent) in enumerate(made.items()):
            row = {"first_picture_s": first_pictures(browser, explorer, port, run, rounds)}
            row |= played(browser, explorer, port, run, round(hours * 3600 * STEPS_A_SECOND))
            found["rows"][name] = row | {"trace": trace_size(agent)}
        browser.close()
    return found


def markdown(found: dict[str, Any]) -> str:
    """The figures as a table."""
    rows = found["rows"]
    lines = [
        f"{found['machine']}, {found['cores']} cores, load {found['load']:.1f}", "",
        "| | bar | " + " | ".join(rows) + " |", "|---|---|" + "---:|" * len(rows),
    ]  # fmt: skip

    def line(what: str, bar: str, tell: Any) -> None:
        lines.append(f"| {what} | {bar} | " + " | ".join(tell(row) for row in rows.values()) + " |")

    line("first picture, median", "1.5 s", lambda row: f"{np.median(row['first_picture_s']):.2f} s")
    for speed in map(str, SPEEDS):
        line(f"frames at {speed}x", "60 a second",
             lambda row, at=speed: "{a_second:.0f}, p95 {p95_ms:.0f} ms".format(**row["frames"][at]))  # fmt: skip
    line("steps played, episodes", "", lambda row: f"{row['steps']:,}, {row['episodes']}")
    line("memory of the tab's process after them", "300 MB", lambda row: f"{row['process_mb']:.0f} MB")
    line("heap after them", "", lambda row: f"{row['heap_mb']:.1f} MB")
    line("growth of the heap, of nodes", "none",
         lambda row: f"{row['heap_mb_an_episode']:+.3f} MB, {row['nodes_an_episode']:+.1f} an episode")  # fmt: skip
    line("trace of 1,000 steps with frames", "10 MB",
         lambda row: f"{row['trace']['mb']:.1f} MB ({row['trace']['steps']:,} steps)")  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="fresh browsers for the first picture")
    parser.add_argument("--hours", type=float, default=1.0, help="hours of playing at 1x (played at 16x)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    found = measure(given.rounds, given.hours)
    print(json.dumps(found) if given.json else markdown(found))


if __name__ == "__main__":
    main()
