"""Atari's Ms. Pac-Man: what tabular advisors learn in 300 episodes, and what each part of the committee is worth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from multiadvisor.agent import MultiAdvisor, bank_of, load_with_record
from multiadvisor.envs.builtin import make
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.gvf_learner import BankLearner
from multiadvisor.runs.jobs import Job, Tell, kind

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
    "lure 2, doubt 5": _setting(lure=2, doubt=5.0),
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
def work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """The scores of the episodes while learning, and of those played afterwards; saved on the way."""
    return run(config, folder, tell)


def run(
    config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None,
    late: Callable[[float], bool] = lambda share: False,
) -> dict[str, Any]:  # fmt: skip
    """`work`, cut short where it is `late` for a share of the time there is: its result says how many episodes."""
    agent, before = _begun(config, folder)
    learner = bank_of(agent)
    start = emulator_frames(agent)
    frames = before
    while agent.episodes < config["episodes"] and frames < FRAMES - _LAST and not late(_LEARNING):
        last = agent.episodes
        learner.run(_PIECE)
        frames = before + emulator_frames(agent) - start
        if tell is not None:
            tell(agent.episodes / (config["episodes"] + config["evaluation"]))
        if folder is not None and agent.episodes // _SAVE > last // _SAVE:
            agent.save(folder, {"frames": frames})
    rooms, episodes, mazes = learner.rooms, list[dict[str, float]](), []
    for episode in range(config["evaluation"]):
        if late(1.0):
            break
        episodes.append(_played(learner, episode))
        mazes.append(last_maze(agent))
        if tell is not None:
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
    from multiadvisor.envs.worlds.atari.ms_pacman import earned

    total: dict[str, float] = {}
    for step in learner.play(0, seed):
        found = {"score": step.gain, **earned(step.state, step.next_state, step.gain)}
        total = {what: total.get(what, 0.0) + float(amount) for what, amount in found.items()}
    return total


def _begun(config: dict[str, Any], folder: Path | None) -> tuple[MultiAdvisor, int]:
    """The agent of a job, from its last checkpoint where there is one, and the frames until then."""
    own = {what: config[what] for what in ("weights", "gammas") if what in config}
    task = make("ms-pacman", **config["options"], **own)
    if folder is not None and (folder / "agent.json").exists():
        try:
            agent, record = load_with_record(folder, task)
            bank_of(agent).run(0)  # which plays the current stretch again
            return agent, int(record["frames"])
        except (BadInput, KeyError):
            pass  # what is left of a crash and cannot be used: the run begins again
    agent = MultiAdvisor(task, **config["settings"], seed=config["seed"])
    agent.prepare()
    return agent, 0


def emulator_frames(agent: MultiAdvisor) -> int:
    """Frames of the emulator so far."""
    assert agent.task.adapter is not None
    return int(agent.task.adapter.env.unwrapped.frames)


def last_maze(agent: MultiAdvisor) -> int:
    """The maze in which the last episode ended, counted from 1."""
    assert agent.task.adapter is not None
    return 1 + int(agent.task.adapter.env.unwrapped.maze)
