"""What `consequences` measured of a saved run, and what was taught of it, kept in its folder.

Asked again, it answers at once; the environment is asked again each time whether an unchanged branch reproduces an
episode.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.diagnosis.branches import Brancher
from multiadvisor.diagnosis.consequences import Consequence, Consequences, Precision, consequences, rival_of
from multiadvisor.diagnosis.playground import Playground, playground
from multiadvisor.diagnosis.simulator import Simulator, simulator_of
from multiadvisor.diagnosis.taught import Taught, read_taught
from multiadvisor.diagnosis.term_values import Closing, RandomFeatures, TermValues
from multiadvisor.errors import BadInput
from multiadvisor.storage.checkpoint import read_header
from multiadvisor.storage.files import write_atomically
from multiadvisor.storage.sealed import canonical, digest, read_sealed, seal
from multiadvisor.task import Task
from multiadvisor.version import VERSION

FILE, KIND, FORMAT = "branches.json", "multiadvisor branches", 1
TAUGHT = "taught.json"


def answers_for(folder: Path, agent: MultiAdvisor, *, slow: bool = True) -> Consequences | Taught:
    """Who says what follows from an action of the agent that was saved in a folder: its environment, or where that
    cannot be asked or is slow, what was taught of it and is kept there."""
    try:
        return consequences_of(folder, agent, slow=slow)
    except BadInput:
        if (taught := taught_in(folder, agent)) is None:
            raise
        return taught


def consequences_of(
    folder: Path, agent: MultiAdvisor, task: Task | None = None, *, slow: bool = True, progress: bool | None = None
) -> Consequences:
    """Answers for the agent that was saved in a folder: prepared once, and kept there until it is saved again.

    `task` is where it plays, by default its own. Where an episode is replayed for every branch, it is refused unless
    `slow`.
    """
    place = playground(agent.task if task is None else task)
    if place.task.own_score:
        raise BadInput(f"the advisors of {place.task.name!r} point at goals, and are not terms of its reward")
    method = _simulator(place, agent)[0].name
    if not slow and method != "restored":
        raise BadInput(f"an episode is {method} for every branch, which takes minutes: ask for it by --branches")
    found = recalled(folder, agent, place.task)
    if found is None:
        found = consequences(place.task, agent, progress=progress)
        with suppress(BadInput):  # a folder that is not ours to write
            write_atomically(folder / FILE, seal(KIND, FORMAT, {"agent": _made(folder, agent), **_written(found)}))
    return found


def taught_in(folder: Path, agent: MultiAdvisor) -> Taught | None:
    """What was taught of this agent and is kept in its folder, where anything is; refused where it is of another."""
    if not (folder / TAUGHT).exists():
        return None
    found = read_taught(folder / TAUGHT)
    if found.agent != saved(folder, agent):
        raise BadInput(
            f"{str(folder / TAUGHT)!r} was taught of another agent, or before this one was saved again: teach it again"
        )
    return found


def recalled(folder: Path, agent: MultiAdvisor, task: Task) -> Consequences | None:
    """What is kept for this agent, and nothing where it was changed since."""
    try:
        known = read_sealed(folder / FILE, KIND, FORMAT, "remove it")
        if known["agent"] != _made(folder, agent):
            return None
        place = playground(task)
        return _read(known, agent, place, *_simulator(place, agent))
    except (BadInput, KeyError, TypeError, ValueError):
        return None


def _simulator(place: Playground, agent: MultiAdvisor) -> tuple[Simulator, str]:
    """What goes back to a state there, and how."""
    with place.held():
        simulator, method = simulator_of(place.env, place.policy(agent).act, 0)
    if simulator is None:
        raise BadInput(method)
    return simulator, method


def saved(folder: Path, agent: MultiAdvisor) -> str:
    """What names an agent as it was saved; refused where it has learned since."""
    header = read_header(folder)
    if header.get("steps") != agent.steps:
        raise BadInput("the agent has learned since it was saved")
    return digest(canonical(header))


def _made(folder: Path, agent: MultiAdvisor) -> str:
    """What names an agent as it was saved, and who measured it."""
    return f"{saved(folder, agent)} {VERSION}"


def answered(
    asked: Consequences | Taught, agent: MultiAdvisor, seed: int, actions: Any, state: Any, against: Any = None
) -> Consequence:
    """What the last of these actions of the episode that this seed began brings that another one, by default the usual
    one, would not.

    Actions are as learners count them, but the other one, which is the environment's own; the state, or observation,
    is the one in which the last was taken.
    """
    task = agent.task
    *before, taken = map(task.played, actions)
    if isinstance(asked, Taught):
        if state is None:
            raise BadInput("the trace did not keep this step's observation, of which was taught: leave --trace out")
        if against is None:
            against = rival_of(agent, playground(task))(state, taken, np.random.default_rng(0))
        return asked.compare(state, taken, against)
    moment = asked.at(0, x=state) if task.adapter is None else asked.at(seed, before)
    return asked.compare(moment, taken, against)


# ---- as plain data ---------------------------------------------------------------------------------------------------
def _written(made: Consequences) -> dict[str, Any]:
    brancher, closing = made.brancher, made.brancher.close
    return {
        "gamma": brancher.gamma, "length": brancher.horizon, "draws": brancher.draws, "longest": made.longest,
        "precision": [one.written() for one in made.precision], "steps": made.steps, "seconds": made.seconds,
        "closing": None if closing is None else _closing_written(closing),
    }  # fmt: skip


def _read(
    known: dict[str, Any], agent: MultiAdvisor, place: Playground, simulator: Simulator, method: str
) -> Consequences:
    closing = None if known["closing"] is None else _closing_read(known["closing"], place.env.observation_space)
    brancher = Brancher(
        (simulator,), place.policy(agent), place.terms, known["gamma"], known["length"], closing, known["draws"]
    )
    precision = tuple(map(Precision.read, known["precision"]))
    place = replace(place, env=simulator.env)
    counts = known["longest"], known["steps"], known["seconds"]
    return Consequences(place, brancher, precision, method, *counts, rival_of(agent, place))


def _closing_written(closing: Closing) -> dict[str, Any]:
    values = closing.values
    arrays = {"varies": closing.varies, "known": closing.known, "level": values.level,
              "coefficients": values.coefficients, **vars(values.features)}  # fmt: skip
    return {name: array.tolist() for name, array in arrays.items()}


def _closing_read(given: dict[str, Any], space: Any) -> Closing:
    own = {name: np.array(array) for name, array in given.items()}
    varies, known, level, coefficients = (own.pop(name) for name in ("varies", "known", "level", "coefficients"))
    return Closing(TermValues(RandomFeatures(**own), coefficients, level), space, varies, known)
