"""Atari's Ms. Pac-Man: what tabular advisors learn in 300 episodes, and what each part of the committee is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor, load_with_record
from multiadvisor.core.intervals import Estimate, stratified
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.atari import ms_pacman as world
from multiadvisor.envs.worlds.atari import ram
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.gvf_learner import BankLearner
from multiadvisor.runs.jobs import Job, Tell, kind, silent
from multiadvisor.studies.claims import JudgedClaim, seen
from multiadvisor.studies.study import Evidence, Figure, Plan, Study, Table, panel
from studies.given import given_results

EPISODES, EVALUATION = 300, 30
FRAMES = 4_500_000  # and at most so many, while learning: 3% of what HRA is said to have had
EVERY = 10  # episodes between two points of a curve
_PIECE, _LAST = 500, 20_000  # steps between two looks at the clock, and more frames than these can take
_SAVE = 20  # episodes between two checkpoints
_LEARNING = 0.8  # of the time, where there is a limit
BASE = "as shipped"


def _setting(settings: dict[str, Any] | None = None, **options: Any) -> Any:
    return {"settings": settings or {}, "options": options}


def _plain(settings: dict[str, Any] | None = None, without: str = "", **options: Any) -> Any:
    """Of the committee that does not look ahead: nobody looks for a refuge, and the fears are louder instead."""
    silent = f"{REFUGE},{without}" if without else REFUGE
    own = _setting(settings, **{"without": silent, "spare": False, **options})
    return {**own, "weights": {"ghosts": -10.0}}


REFUGE = "refuge"
PLAIN = "no refuge"
SETTINGS: dict[str, dict[str, Any]] = {
    BASE: _setting(),
    **{
        f"without {group}": _setting(without=group)
        for group in (REFUGE, "ghosts", "edible", "pills", "fruit", "pellets", "frontier")
    },
    "pills at any time": _setting(spare=False),
    "egocentric, gamma 0.95, max": _setting({"planning": "egocentric", "gamma": 0.95, "aggregation": "max"}),
    "no replay": _setting(sweeps=0),
    PLAIN: _plain(),
    **{
        f"{PLAIN}: {planning}, gamma {gamma}, {aggregation}": _plain(
            {"planning": planning, "gamma": gamma, "aggregation": aggregation}
        )
        for planning, gamma, aggregation in (
            ("agnostic", 0.99, "sum"), ("egocentric", 0.99, "sum"), ("egocentric", 0.99, "normalised"),
            ("egocentric", 0.99, "max"), ("egocentric", 0.95, "max"), ("agnostic", 0.99, "max"),
            ("egocentric", 0.95, "p_norm:5"), ("agnostic", 0.99, "p_norm:5"), ("agnostic", 0.95, "normalised"),
            ("egocentric", 0.95, "normalised"), ("egocentric", 0.9, "normalised"), ("empathic", 0.99, "normalised"),
            ("empathic", 0.95, "normalised"),
        )
    },
    **{
        f"{PLAIN}: without {group}": _plain(without=group)
        for group in ("ghosts", "edible", "pills", "fruit", "pellets", "frontier")
    },
    f"{PLAIN}: no replay": _plain(sweeps=0),
}  # fmt: skip


def job(name: str, seed: int, episodes: int = EPISODES, evaluation: int = EVALUATION) -> Job:
    """A run of one setting."""
    return Job("ms-pacman", {**SETTINGS[name], "seed": seed, "episodes": episodes, "evaluation": evaluation})


@kind("ms-pacman", lease=900.0)
def run(
    config: dict[str, Any], folder: Path | None = None, tell: Tell = silent,
    late: Callable[[float], bool] = lambda share: False, steps: float = math.inf,
) -> dict[str, Any]:  # fmt: skip
    """The scores of the episodes while learning, and of those played afterwards; saved on the way.

    Cut short after so many `steps`, or where it is `late` for a share of the time there is: the result says how many
    episodes.
    """
    agent, before = _begun(config, folder)
    learner = agent.decider
    assert isinstance(learner, BankLearner)
    assert agent.task.adapter is not None
    emulator, frames = agent.task.adapter.env.unwrapped, before
    start = emulator.frames
    while agent.episodes < config["episodes"] and frames < FRAMES - _LAST and agent.steps < steps:
        if late(_LEARNING):
            break
        last = agent.episodes
        learner.run(_PIECE)
        frames = before + emulator.frames - start
        tell(agent.episodes / (config["episodes"] + config["evaluation"]))
        if folder is not None and agent.episodes // _SAVE > last // _SAVE:
            agent.save(folder, {"frames": frames})
    rooms, episodes, mazes = learner.rooms, list[dict[str, float]](), []
    for episode in range(config["evaluation"]):
        if late(1.0):
            break
        episodes.append(_played(learner, episode))
        mazes.append(1 + int(emulator.maze))  # in which it ended
        tell((config["episodes"] + episode) / (config["episodes"] + config["evaluation"]))
    return {
        "learning": learner.scores[: config["episodes"]],
        "scores": [episode.pop("score") for episode in episodes],
        "mazes": mazes,
        "frames": int(frames),
        "steps": agent.steps,
        "goals": sum(room.goals for room in rooms if room is not None),
        "sources": {what: [episode[what] for episode in episodes] for what in (episodes[0] if episodes else ())},
    }


def _played(learner: BankLearner, seed: int) -> dict[str, float]:
    """One episode without learning: its score, and where that came from."""
    total: dict[str, float] = {}
    for step in learner.play(0, seed):
        found = {"score": step.gain, **points_of(step.state, step.next_state, step.gain)}
        total = {what: total.get(what, 0.0) + float(amount) for what, amount in found.items()}
    return total


def points_of(before: np.ndarray, after: np.ndarray, reward: float) -> dict[str, float]:
    """What was eaten in a step, by group: its points; and how many "lives" were lost and "levels" won."""
    counts, lost = world.paid(before, after, reward), before[ram.LIVES] > after[ram.LIVES]
    at = world.AT
    points = {
        world.PELLETS: 10.0 * counts[at[world.PELLETS]].sum(), world.PILLS: 50.0 * counts[at[world.PILLS]].sum(),
        world.FRUIT: float(before[ram.FRUIT_POINTS]) * counts[at[world.FRUIT]].sum(),
    }  # fmt: skip
    level = not lost and bool((after[ram.PELLET] > before[ram.PELLET]).any())
    if level:  # the last pellet, or the last pill: the board is full again, and nothing tells what was eaten
        points[world.PELLETS] = float(reward)
    rest = float(reward) - sum(points.values())
    return {
        **points, world.EDIBLE: max(rest, 0.0), "eaten": counts[at[world.EDIBLE]].sum(), "lives": float(lost),
        "levels": float(level),
    }  # fmt: skip


def _begun(config: dict[str, Any], folder: Path | None) -> tuple[MultiAdvisor, int]:
    """The agent of a job, from its last checkpoint where there is one, and the frames until then."""
    own = {what: config[what] for what in ("weights", "gammas") if what in config}
    task = make("ms-pacman", **config["options"], **own)
    if folder is not None and (folder / "agent.json").exists():
        try:
            agent, record = load_with_record(folder, task)
            agent.learn(0, progress=False)  # which plays the current stretch again
            return agent, int(record["frames"])
        except (BadInput, KeyError):
            pass  # what is left of a crash and cannot be used: the run begins again
    agent = MultiAdvisor(task, **config["settings"], seed=config["seed"])
    agent._prepare()
    return agent, 0


# ---- the results of others -------------------------------------------------------------------------------------------
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


# ---- what the runs show ----------------------------------------------------------------------------------------------
Runs = dict[str, list[dict[str, Any]]]
"""By setting, a result for each seed."""


def jobs(plan: Plan) -> list[Job]:
    """The agent as shipped, at full length every other setting too."""
    return [job(name, seed) for name in SETTINGS if plan.full or name == BASE for seed in plan.each]


def runs_of(evidence: Evidence) -> Runs:
    """Of every setting that was run, or that a file has brought along."""
    found = {
        name: [evidence.results[one.id] for seed in evidence.plan.each if (one := job(name, seed)).id in
               evidence.results]
        for name in SETTINGS
    }  # fmt: skip
    return {name: results for name, results in found.items() if results}


def mean_score(runs: list[dict[str, Any]]) -> Estimate:
    """The mean over all episodes of all seeds; episodes are drawn again within each seed."""
    scores = [np.array(run["scores"], float) for run in runs]
    return Estimate(float(np.mean([part.mean() for part in scores])), *stratified(scores))


def _row(results: list[dict[str, Any]]) -> dict[str, Any]:
    """A setting in figures."""
    score = mean_score(results)
    return {
        "score": score.value, "interval": list(score.interval),
        "seeds": [float(np.mean(run["scores"])) for run in results],
        "best": max(max(run["scores"]) for run in results),
        "mazes": [sum(run["mazes"].count(maze) for run in results) for maze in (1, 2, 3, 4)],
        "episodes": sum(len(run["scores"]) for run in results),
        "learned": [len(run["learning"]) for run in results], "frames": [run["frames"] for run in results],
        "sources": _sources(results),
    }  # fmt: skip


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


def data(evidence: Evidence) -> dict[str, Any]:
    """Every setting in figures, and what others have published."""
    table = {name: _row(results) for name, results in runs_of(evidence).items()}
    return {"table": table, "published": [one._asdict() for one in PUBLISHED]}


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """What the runs show; claims that need runs which are not there are left out."""
    runs, found = runs_of(evidence), []
    if BASE in runs:
        row, score = _row(runs[BASE]), mean_score(runs[BASE])
        worst, most = min(row["seeds"]), max(row["frames"])
        found.append(seen("every-seed", f"Every seed has a mean of at least {BAR:,}: the lowest.", worst, worst >= BAR))
        for one in (HUMAN, HRA):
            text = f"The 95% interval lies above {one.score:,.0f} ({one.who}: {one.protocol})."
            found.append(seen(f"above-{one.who.lower()}", text, score, score.low > one.score))
        text = f"No seed learned from more than {FRAMES / 1e6:g} million frames: the most, in millions."
        found.append(seen("frames", text, most / 1e6, most <= FRAMES))
    both = [f"{PLAIN}: {name}, gamma 0.99, sum" for name in ("agnostic", "egocentric")]
    if all(name in runs for name in both):
        first, second = (mean_score(runs[name]).value for name in both)
        text = "At gamma .99 with the sum, agnostic play has at least twice the score of egocentric: the ratio."
        found.append(seen("agnostic", text, first / second, first >= 2 * second))
    return found


# ---- the study -------------------------------------------------------------------------------------------------------
def _learning(runs: list[dict[str, Any]], axis: Any) -> Any:
    """Score against episodes while learning, beside what others have published."""
    from multiadvisor.viz import plots

    length = min(len(run["learning"]) for run in runs) // EVERY * EVERY
    shown = np.array([run["learning"][:length] for run in runs], float)  # [seeds, episodes]
    points = shown.reshape(len(shown), -1, EVERY).mean(axis=2)
    across = EVERY * np.arange(1, points.shape[1] + 1)
    plots.bands({"advisors, while learning": points}, across, ("episodes", "score"), axis)
    for one in PUBLISHED:
        if one.score <= 1.2 * HRA.score:
            axis.axhline(one.score, color="0.6", linewidth=0.8, linestyle="--")
            axis.text(across[-1], one.score, f"{one.who}, {one.protocol}", fontsize=5, ha="right", va="bottom")
    return axis


def _tables(evidence: Evidence) -> dict[str, Table]:
    """Every setting, where its points come from, and what others have published."""
    settings: list[tuple[str, ...]] = []
    sources: list[tuple[str, ...]] = []
    for name, row in data(evidence)["table"].items():
        low, high = row["interval"]
        settings.append((
            name, f"{row['score']:,.0f} [{low:,.0f}, {high:,.0f}]", ", ".join(f"{one:,.0f}" for one in row["seeds"]),
            ", ".join(map(str, row["learned"])), ", ".join(f"{count / 1e6:.2f}" for count in row["frames"]),
            ", ".join(map(str, row["mazes"])),
        ))  # fmt: skip
        if of := row["sources"]:
            points = (f"{of[what]:,.0f}" for what in ("pellets", "pills", "edible", "fruit"))
            sources.append((name, *points, *(f"{of[what]:.2f}" for what in ("a pill", "levels", "lives"))))
    published: list[tuple[str, ...]] = [(one.who, f"{one.score:,.0f}", one.protocol) for one in PUBLISHED]
    heads = {
        "Scores": ("setting", "score [95%]", "seeds", "episodes learned", "million frames", "last maze 1, 2, 3, 4"),
        "Where the points come from": ("points an episode from", "pellets", "pills", "ghosts", "fruit",
                                       "ghosts eaten a pill", "levels won", "lives lost"),
        "What others have published": ("published", "score", "protocol"),
    }  # fmt: skip
    bodies = (settings, sources, published)
    return {title: (head, *rows) for (title, head), rows in zip(heads.items(), bodies, strict=True) if rows}


def figures(evidence: Evidence) -> list[Figure]:
    """The figure and the tables."""
    runs = runs_of(evidence)
    scores = {name: mean_score(results) for name, results in runs.items()}
    panels = (partial(_learning, runs[BASE]), panel("intervals", scores, "score after learning"))
    size = (13, max(4.5, 0.28 * len(scores) + 1.5))
    return [
        Figure("ms-pacman", "Ms. Pac-Man", panels=panels, size=size),
        *(Figure(f"ms-pacman-{k}", title, table=rows) for k, (title, rows) in enumerate(_tables(evidence).items())),
    ]


def results_of(text: str) -> dict[str, dict[str, Any]]:
    """The results in a file, a line for each, by the id of their job."""
    return {line["id"]: line["result"] for line in map(json.loads, text.splitlines())}


def summary(evidence: Evidence) -> list[str]:
    """What to keep in mind."""
    return [CAVEAT, "Intervals are by bootstrap over episodes within each seed, so that they say nothing of other "
            "seeds."]  # fmt: skip


STUDY = Study(
    "ms-pacman", "Ms. Pac-Man", 90, jobs, figures, findings, summary=summary, data=data,
    given=given_results(results_of, "benchmarks/ms_pacman_study.py"),
    about="Atari's Ms. Pac-Man, 3 seeds of 300 episodes; with --full every setting, hours on two cores",
    seeds=(3, 3), least_seeds=1, flags=("full", "given"), runs_need=("atari",),
)  # fmt: skip
