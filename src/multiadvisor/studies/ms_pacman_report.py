"""`multiadvisor reproduce ms-pacman`: runs in, a table, a figure beside the published results, and a page out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.intervals import Estimate, stratified
from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job
from multiadvisor.storage.files import check_writable, write_atomically
from multiadvisor.studies.ms_pacman_study import BASE, EVERY, FRAMES, PLAIN, SETTINGS, job
from multiadvisor.studies.parts import many
from multiadvisor.version import VERSION

SEEDS = 3
BAR = 15_000  # a mean that each seed should reach
CAVEAT = (
    "Positions come from the machine's memory and the weights are set by hand, so that a comparison with agents that "
    "learn from pixels is not like for like; sticky actions .25, 4 frames a step, at most 27,000 steps an episode."
)


class PublishedResult(NamedTuple):
    """A result of somebody else, and how it came about."""

    who: str
    score: float
    protocol: str


HUMAN = PublishedResult("human", 15_693, "49-episode table of the Nature DQN paper, 5 minutes at most")
HRA = PublishedResult(
    "HRA", 25_304, "fixed start, object channels; some 150 million frames, a figure not verified here"
)
PUBLISHED = (
    PublishedResult("DQN", 3_340, "pixels, sticky .25, 200 million frames"),
    PublishedResult("BBF, 1M steps", 2_800, "pixels, sticky, 4 million frames"),
    PublishedResult("Rainbow", 3_930, "pixels, sticky .25, 200 million frames"),
    PublishedResult("IQN", 5_168, "pixels, sticky .25, 200 million frames"),
    PublishedResult("human", 6_951.6, "of the human-normalised tables: up to 30 no-ops, 30 minutes at most"),
    HUMAN,
    HRA,
    PublishedResult("Agent57", 63_994, "pixels, no sticky actions, 10^10 to 10^11 frames"),
    PublishedResult("MuZero", 243_401, "pixels, no sticky actions, 10^10 to 10^11 frames"),
)

Runs = dict[str, list[dict[str, Any]]]
"""By setting, a result for each seed."""


def kept(path: Path) -> dict[str, dict[str, Any]]:
    """The results in a file of `benchmarks/ms_pacman_study.py`, by the id of their job."""
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return {line["id"]: line["result"] for line in lines}
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(
            f"{str(path)!r} holds no runs of Ms. Pac-Man: give a file that ms_pacman_study.py wrote"
        ) from None


def mean_score(runs: list[dict[str, Any]]) -> Estimate:
    """The mean over all episodes of all seeds; episodes are drawn again within each seed."""
    scores = [np.array(run["scores"], float) for run in runs]
    return Estimate(float(np.mean([part.mean() for part in scores])), *stratified(scores))


def judged(runs: Runs) -> dict[str, Any]:
    """What the runs show, as data; claims that need runs which are not there are left out."""
    table = {}
    for name, results in runs.items():
        seen = mean_score(results)
        table[name] = {
            "score": seen.value, "interval": list(seen.interval),
            "seeds": [float(np.mean(run["scores"])) for run in results],
            "best": max(max(run["scores"]) for run in results),
            "mazes": [sum(run["mazes"].count(maze) for run in results) for maze in (1, 2, 3, 4)],
            "episodes": sum(len(run["scores"]) for run in results),
            "learned": [len(run["learning"]) for run in results], "frames": [run["frames"] for run in results],
            "sources": _sources(results),
        }  # fmt: skip
    claims = []
    if BASE in table:
        seen, seeds = mean_score(runs[BASE]), table[BASE]["seeds"]
        claims += [
            {"claim": f"Every seed has a mean of at least {BAR:,}.", "seen": f"the lowest has {min(seeds):,.0f}",
             "holds": min(seeds) >= BAR},
            *({"claim": f"The 95% interval lies above {one.score:,.0f} ({one.who}: {one.protocol}).",
               "seen": f"{seen.value:,.0f} [{seen.low:,.0f}, {seen.high:,.0f}]", "holds": seen.low > one.score}
              for one in (HUMAN, HRA)),
            {"claim": f"No seed learned from more than {FRAMES / 1e6:g} million frames.",
             "seen": f"the most is {max(table[BASE]['frames']) / 1e6:.2f} million",
             "holds": max(table[BASE]["frames"]) <= FRAMES},
        ]  # fmt: skip
    summed = {name: f"{PLAIN}: {name}, gamma 0.99, sum" for name in ("agnostic", "egocentric")}
    if all(name in table for name in summed.values()):
        first, second = (table[name]["score"] for name in summed.values())
        claims.append({"claim": "At gamma .99 with the sum, agnostic play has at least twice the score of egocentric.",
                       "seen": f"{first:,.0f} and {second:,.0f}", "holds": first >= 2 * second})  # fmt: skip
    return {"version": VERSION, "table": table, "claims": claims, "published": [one._asdict() for one in PUBLISHED]}


def _sources(results: list[dict[str, Any]]) -> dict[str, float] | None:
    """What an episode brings in the mean: points by where they came from, and what was eaten and lost; None: not
    known."""
    if not all(run.get("sources") for run in results):
        return None
    mean = {
        what: float(np.mean([amount for run in results for amount in run["sources"][what]]))
        for what in results[0]["sources"]
    }
    pills = mean["pills"] / 50
    return {**mean, "a pill": mean["eaten"] / pills if pills else 0.0}


def draw(runs: Runs) -> Any:
    """Score against episodes while learning, beside what others have published; and every setting's evaluation."""
    from multiadvisor.viz import plots

    def curve(axis: Any) -> Any:
        length = min(len(run["learning"]) for run in runs[BASE]) // EVERY * EVERY
        shown = np.array([run["learning"][:length] for run in runs[BASE]], float)  # [seeds, episodes]
        points = shown.reshape(len(shown), -1, EVERY).mean(axis=2)
        across = EVERY * np.arange(1, points.shape[1] + 1)
        plots.bands({"advisors, while learning": points}, across, ("episodes", "score"), axis)
        for one in PUBLISHED:
            if one.score <= 1.2 * HRA.score:
                axis.axhline(one.score, color="0.6", linewidth=0.8, linestyle="--")
                axis.text(across[-1], one.score, f"{one.who}, {one.protocol}", fontsize=5, ha="right", va="bottom")
        return axis

    seen = {name: mean_score(results) for name, results in runs.items()}
    size = (13, max(4.5, 0.28 * len(seen) + 1.5))
    return plots.several(curve, lambda axis: plots.intervals(seen, "score after learning", axis), size=size)


def page(found: dict[str, Any], seeds: int) -> str:
    """The results on a page."""
    lines = ["# Ms. Pac-Man", "", CAVEAT, "", "![Ms. Pac-Man](ms-pacman.png)", "",
             "| setting | score [95%] | seeds | episodes learned | million frames | last maze 1, 2, 3, 4 |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for name, row in found["table"].items():
        low, high = row["interval"]
        each = ", ".join(f"{score:,.0f}" for score in row["seeds"])
        mazes = ", ".join(map(str, row["mazes"]))
        learned = ", ".join(map(str, row["learned"]))
        frames = ", ".join(f"{count / 1e6:.2f}" for count in row["frames"])
        score = f"{row['score']:,.0f} [{low:,.0f}, {high:,.0f}]"
        lines.append(f"| {name} | {score} | {each} | {learned} | {frames} | {mazes} |")
    told = {name: row["sources"] for name, row in found["table"].items() if row["sources"]}
    if told:
        lines += ["", "| points an episode from | pellets | pills | ghosts | fruit | ghosts eaten a pill | levels won "
                      "| "
                  "lives lost |", "|---|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
        for name, of in told.items():
            points = " | ".join(f"{of[what]:,.0f}" for what in ("pellets", "pills", "edible", "fruit"))
            lines.append(f"| {name} | {points} | {of['a pill']:.2f} | {of['levels']:.2f} | {of['lives']:.2f} |")
    lines += ["", f"{many(seeds, 'seed')}; intervals by bootstrap over episodes within each seed, so that they say "
              "nothing of other seeds.", "",
              "| what should be seen | seen | holds |", "|---|---|---|"]  # fmt: skip
    lines += [f"| {one['claim']} | {one['seen']} | {'yes' if one['holds'] else 'no'} |" for one in found["claims"]]
    lines += ["", "| published | score | protocol |", "|---|---:|---|"]
    lines += [f"| {one['who']} | {one['score']:,.0f} | {one['protocol']} |" for one in found["published"]]
    return "\n".join(lines)


def reproduce(
    out: Path, seeds: int | None = None, full: bool = False, workers: int | None = None, given: Path | None = None
) -> dict[str, Any]:
    """Run what is missing: the agent as shipped, with `full` every other setting too; and write what it shows."""
    require("plots")
    from multiadvisor.viz import plots

    count = SEEDS if seeds is None else seeds
    there = {} if given is None else kept(given)
    wanted: dict[str, list[Job]] = {
        name: [job(name, seed) for seed in range(count)] for name in SETTINGS if full or name == BASE
    }
    for name in SETTINGS:  # what a file has comes along
        jobs = [one for seed in range(count) if (one := job(name, seed)).id in there]
        if name not in wanted and jobs:
            wanted[name] = jobs
    missing = [one for jobs in wanted.values() for one in jobs if one.id not in there]
    if missing:
        require("atari")
    check_writable(out)
    results = run_jobs(out / "ms-pacman-runs", missing, workers=workers, title="ms-pacman") if missing else {}
    held = {**there, **{one.id: results[one.id] for one in missing}}
    runs = {name: [held[one.id] for one in jobs] for name, jobs in wanted.items()}
    found = judged(runs)
    svg, png = plots.both(draw(runs), "ms-pacman")
    write_atomically(out / "ms-pacman.svg", svg)
    write_atomically(out / "ms-pacman.png", png)
    write_atomically(out / "ms-pacman.json", (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())
    write_atomically(out / "ms-pacman.md", (page(found, count) + "\n").encode())
    return found


def told(found: dict[str, Any], out: Path) -> str:
    """For a terminal."""
    lines = [
        f"{name}: {row['score']:,.0f} [{row['interval'][0]:,.0f}, {row['interval'][1]:,.0f}]"
        for name, row in found["table"].items()
    ]
    lines += [f"{'holds' if one['holds'] else 'does not hold'}: {one['claim']} ({one['seen']})"
              for one in found["claims"]]  # fmt: skip
    return "\n".join([*lines, CAVEAT, f"figure and page are in {out}"])
