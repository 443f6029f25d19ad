"""`multiadvisor diagnose`."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from multiadvisor.agent import load
from multiadvisor.commands.parsing import (
    Parser,
    add_environment_flags,
    parse,
    refuse_beside,
    say,
    show,
    task_from_flags,
)
from multiadvisor.core.plugins import own_object
from multiadvisor.diagnosis.checkpoints import diagnose_checkpoints, hacked, told
from multiadvisor.diagnosis.consequences import consequences
from multiadvisor.diagnosis.diagnosis import diagnose
from multiadvisor.diagnosis.kept import TAUGHT, saved
from multiadvisor.diagnosis.playground import playground
from multiadvisor.diagnosis.sample import Unfinished
from multiadvisor.diagnosis.step_pictures import with_pictures
from multiadvisor.diagnosis.taught import PAIRS, Taught, check_place, teach
from multiadvisor.errors import BadInput
from multiadvisor.settings import whole_number
from multiadvisor.storage.files import check_writable


def parser() -> Parser:
    """The flags."""
    flags = Parser(
        "diagnose",
        "What does each term of the reward do to a policy, and what should change? The policy plays: returns are\n"
        "counted, values are fitted, and from some of the states that it visits other actions are tried, which\n"
        "shows what depends on them, term by term. The policy is your own function, FILE.py:FUNCTION, from\n"
        "observation to action (load your model there: nothing is unpickled here), or a saved run.",
        "multiadvisor diagnose Hopper-v5 --advisors 'info:reward_*' --policy mine.py:act\n"
        "  multiadvisor diagnose --run runs/a --teach\n"
        "  multiadvisor diagnose Hopper-v5 --policy mine.py:load --checkpoints models",
    )
    flags.add_argument("task", metavar="ENV", nargs="?", help="the id of a Gymnasium environment")
    flags.flag("--policy", str, "a function from observation to action", metavar="FILE.py:FUNCTION")
    flags.flag("--run", Path, "a saved run instead of ENV and --policy", metavar="FOLDER")
    flags.flag("--checkpoints", Path, "diagnose each in it, in order: --policy takes a path, returns a policy; "
               "without, each is a saved run", metavar="FOLDER")  # fmt: skip
    flags.flag("--gamma", float, "discount factor; not given: 0.99, or the run's")
    flags.flag("--steps", int, "steps to play", 20_000)
    flags.flag("--branches", int, "states in which other actions are tried", 200)
    flags.flag("--seed", int, "first seed", 0)
    flags.flag("--workers", int, "processes that branch", 1)
    flags.add_argument(
        "--teach", type=Path, nargs="?", const=Path(), metavar="FILE",
        help="teach answers on single actions, for where the environment is slow or not at hand, and keep them there; "
        "without a FILE in taught.json, of a run in its folder, where explain and explore find them",
    )  # fmt: skip
    flags.flag("--pairs", int, "of short branches that --teach plays", PAIRS)
    flags.flag("--pictures", Path, "draw the decisive steps into it, and into --json", metavar="FOLDER")
    add_environment_flags(flags)
    return flags


def run(arguments: Sequence[str]) -> int:
    """Say what each term of a reward does to a policy."""
    given = parse(parser(), arguments)

    if given.pictures is not None:
        check_writable(given.pictures)
    if given.checkpoints is not None:
        refuse_beside(given, "checkpoints", "compares several policies", ["teach"])
        return _series(given)
    if given.teach == Path():
        given.teach = (given.run or Path()) / TAUGHT
    if given.teach is not None:
        check_place(given.teach)
        whole_number("pairs", given.pairs, 1)
    task, policy, gamma = _subject(given)
    given.gamma = gamma if given.gamma is None else given.gamma
    try:
        found = diagnose(
            task, policy, gamma=given.gamma, steps=given.steps, branches=given.branches, seed=given.seed,
            workers=given.workers,
        )  # fmt: skip
    except Unfinished as error:
        show(error.gathered.as_dict(), given.json, str(error.gathered))
        raise
    if given.pictures is not None:
        found = with_pictures(found, playground(task).env)
        _write_pictures(found.decisive, given.pictures)
    more, said = {}, ""
    try:
        if given.teach is not None and not found.interrupted:
            answers = _taught(given, task, policy)
            more = {"taught": {"file": str(given.teach), **answers.as_dict()}}
            said = f"\n{answers}\nkept in {given.teach}"
    finally:  # what was diagnosed is told, whatever became of the teaching
        show({**found.as_dict(), **more}, given.json, f"{found}{said}")
    if found.interrupted:
        print("multiadvisor diagnose: interrupted; this is what was gathered until then", file=sys.stderr)
        return 130
    if given.branches and not found.branches:
        raise BadInput(f"{found.method}; the rest stands; --branches 0 asks for no more")
    return 0


def _taught(given: Any, task: Any, policy: Any) -> Taught:
    """Answers on this policy, taught and kept."""
    asked = consequences(task, policy, gamma=given.gamma, steps=given.steps, seed=given.seed)
    answers = teach(asked, given.pairs, steps=given.steps, seed=given.seed)
    if given.run is not None:
        answers = replace(answers, agent=saved(given.run, policy))
    answers.save(given.teach)
    return answers


def _write_pictures(decisive: Sequence[Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for one in decisive:
        if one.picture:
            content = base64.b64decode(one.picture.partition(",")[2])
            (folder / f"episode-{one.episode}-step-{one.step}.png").write_bytes(content)


def _subject(given: Any) -> tuple[Any, Any, float]:
    """The task, who plays in it, and the discount."""
    if given.run is not None:
        if given.task is not None or given.policy is not None:
            raise BadInput(f"the run in {str(given.run)!r} has its own environment and policy: leave the others out")
        return _agent(given.run)
    if given.task is None or given.policy is None:
        raise BadInput("there is nothing to diagnose: name an environment and --policy FILE.py:FUNCTION, or --run")
    task = task_from_flags(given)
    say(task.note)
    return task, own_object(given.policy, "--policy"), 0.99


def _agent(folder: Path) -> tuple[Any, Any, float]:
    agent = load(folder)
    return agent.task, agent, agent.settings.gamma


def _series(given: Any) -> int:
    """Several policies of one training: which term rose while the whole fell?"""
    places = sorted(given.checkpoints.glob("[!.]*"), key=_in_order)
    if len(places) < 2:
        raise BadInput(f"{str(given.checkpoints)!r} has {len(places)} checkpoints: there is nothing to compare")
    if given.policy is None:
        agents = [_agent(place) for place in places]
        (task, _, gamma), policies = agents[0], [agent for _, agent, _ in agents]
    else:
        task, load_one, gamma = _subject(given)
        policies = [load_one(str(place)) for place in places]
    series = diagnose_checkpoints(
        task, dict(zip([place.name for place in places], policies, strict=True)), steps=given.steps, seed=given.seed,
        gamma=gamma if given.gamma is None else given.gamma,
    )  # fmt: skip
    found = hacked(series)
    data = {
        "checkpoints": {name: one.as_dict() for name, one in series.items()},
        "findings": [one.as_dict() for one in found],
    }
    show(data, given.json, told(series, found))
    return 0


def _in_order(place: Path) -> list[Any]:
    """By the numbers in its name: 9 before 10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", place.name)]
