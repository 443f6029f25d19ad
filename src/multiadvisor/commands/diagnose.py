"""`multiadvisor diagnose`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.commands.parsing import Parser, add_environment_flags, parse, say, show, task_from_flags
from multiadvisor.errors import BadInput


def run(arguments: Sequence[str]) -> int:
    """Say what each term of a reward does to a policy."""
    parser = Parser(
        "diagnose",
        "What does each term of the reward do to a policy, and what should change? The policy plays; returns and\n"
        "shares are counted, values are fitted and quoted where they forecast other episodes, and from some of the\n"
        "states that it met, other actions are tried: that shows which terms depend on what it does, and which\n"
        "want different things. The policy is a function of yours, FILE.py:FUNCTION, from observation to action (load\n"
        "your model there; no foreign file is ever unpickled here), or a run of ours.",
        "multiadvisor diagnose Hopper-v5 --advisors 'info:reward_*' --policy mine.py:act\n"
        "  multiadvisor diagnose --run runs/a",
    )
    parser.add_argument("task", metavar="ENV", nargs="?", help="the id of a Gymnasium environment")
    parser.flag("--policy", str, "a function from observation to action", metavar="FILE.py:FUNCTION")
    parser.flag("--run", Path, "a saved run instead of ENV and --policy", metavar="FOLDER")
    parser.flag("--gamma", float, "discount factor; not given: 0.99, or the run's")
    parser.flag("--steps", int, "steps to play", 20_000)
    parser.flag("--branches", int, "states in which other actions are tried", 200)
    parser.flag("--seed", int, "first seed", 0)
    add_environment_flags(parser)
    given = parse(parser, arguments)
    from multiadvisor.diagnosis.diagnosis import diagnose

    task, policy, gamma = _subject(given)
    found = diagnose(
        task, policy, gamma=gamma if given.gamma is None else given.gamma, steps=given.steps, branches=given.branches,
        seed=given.seed,
    )  # fmt: skip
    show(found.as_dict(), given.json, str(found))
    if found.interrupted:
        print("multiadvisor diagnose: interrupted; this is what was gathered until then", file=sys.stderr)
    return 130 if found.interrupted else 0


def _subject(given: Any) -> tuple[Any, Any, float]:
    """The task, who plays in it, and the discount."""
    if given.run is not None:
        if given.task is not None or given.policy is not None:
            raise BadInput(f"the run in {str(given.run)!r} has its own environment and policy: leave the others out")
        from multiadvisor.agent import load

        agent = load(given.run)
        return agent.task, agent, agent.settings.gamma
    if given.task is None or given.policy is None:
        raise BadInput("there is nothing to diagnose: name an environment and --policy FILE.py:FUNCTION, or --run")
    task = task_from_flags(given)
    say(task.note)
    return task, _function(given.policy), 0.99


def _function(named: str) -> Any:
    """The policy that FILE.py:FUNCTION names: the user's own code, imported as he asks for it."""
    from multiadvisor.core.plugins import import_own

    file, colon, name = named.rpartition(":")
    if not colon or not file or not name:
        raise BadInput(f"--policy is {named!r}: write FILE.py:FUNCTION")
    module = import_own(file)
    if not hasattr(module, name):
        raise BadInput(f"{file!r} has no {name!r}: --policy names a function in it")
    return getattr(module, name)
