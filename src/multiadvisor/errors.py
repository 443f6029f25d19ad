"""The one exception that users meet: a sentence that names the culprit and the way out."""

from __future__ import annotations

import difflib
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

_PACKAGE = Path(__file__).parent


class BadInput(ValueError):
    """Invalid input; the message says what is wrong and what to do instead.

    The command line prints it as one line and exits with code 2.

    >>> import multiadvisor as mad
    >>> try:
    ...     mad.make("pac-man")
    ... except mad.BadInput as error:
    ...     print(str(error).partition(":")[0])
    unknown task 'pac-man'
    """


class Caution(UserWarning):
    """Something can be done as the caller asks, and is hardly what was meant; the command prints it as one line."""


class Diverged(BadInput):
    """Learning has gone astray: what was saved before it is better than what there is now."""


RENAMED = {
    "Focus": "Advisor", "foci": "advisors", "rest": "remainder", "speaks": "advises", "turn": "step", "turns": "steps",
    "game": "episode", "games": "episodes", "finished": "terminated", "option": "env_kwarg", "beside": "separate",
    "batch": "batch_size", "replay": "buffer_size", "starts": "learning_starts", "envs": "n_envs",
    "update_every": "train_freq", "target_every": "target_update_interval", "beside_every": "advisors_train_freq",
    "lr_turns": "lr_steps", "epsilon_turns": "epsilon_steps", "planning": "register_planning",
    "aggregation": "register_aggregation", "deal": "initial_state", "epochs": "steps", "transitions": "eval_every",
    "episodes": "eval_episodes", "transitions_per_second": "steps_per_second", "usual": "defaults",
    "measures": "metrics", "touches": "metrics", "looked": "steps_checked", "holds": "held_by", "by": "margin",
    "deep": "learner", "continuous": "learner",
    "DeepSettings": "DQN", "ContinuousSettings": "SAC", "advisors": "tabular",
}  # fmt: skip
"""What was called otherwise before: nothing answers to the old names, but errors know them."""


MEANINGS = {"epochs": ", and it is the total: epochs times transitions"}
"""What else changed with the name."""


def renamed(name: str, known: Iterable[str]) -> str:
    """The new name of a setting, a flag or a class, spelled the same way; empty where it is not among the known.

    >>> renamed("foci", ["advisors"]), renamed("--games", ["--eval-episodes"]), renamed("gamma", ["alpha"])
    ('advisors', '--eval-episodes', '')
    """
    names, bare = set(known), name.lstrip("-")
    dashes, found = name[: len(name) - len(bare)], bare.replace("-", "_")
    while found := RENAMED.get(found, ""):  # some were renamed twice
        new = dashes + (found.replace("_", "-") if dashes else found)
        if new in names:
            return new
    return ""


def unknown(kind: str, name: object, known: Iterable[str], otherwise: str = "") -> BadInput:
    """An unknown name, with the closest known one, or all of them, and what else can be done."""
    names = sorted(known)
    if new := renamed(str(name), names):
        more = MEANINGS.get(str(name).lstrip("-"), "")
        return BadInput(f"unknown {kind} {short(str(name))!r}: it is called {new!r} now{more}")
    close = difflib.get_close_matches(str(name)[:100], names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}{otherwise}"
    return BadInput(f"unknown {kind} {short(str(name))!r}: {hint}")


def short(text: str, most: int = 60) -> str:
    """A text of others for one line of ours."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def told(error: BaseException) -> str:
    """An exception in one line: its type and what it says."""
    text = short(str(error), 160)
    return f"{type(error).__name__}{': ' if text else ''}{text}"


def fault_of_environment(error: BaseException) -> str | None:
    """What an environment raised and where, in one line; None where the fault is not an environment's.

    The place is the last one in a file of the user's own, or, where there is none, in whatever is installed.
    """
    import gymnasium  # lazily: who makes no mistake need not wait for it

    walked = list(traceback.walk_tb(error.__traceback__))
    own = [k for k, (frame, _) in enumerate(walked) if Path(frame.f_code.co_filename).is_relative_to(_PACKAGE)]
    beyond = walked[own[-1] + 1 :] if own else []
    kinds = (gymnasium.Env, gymnasium.vector.VectorEnv)
    if not beyond or not isinstance(beyond[0][0].f_locals.get("self"), kinds):
        return None
    installed = tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "platlib", "purelib"))
    users = [place for place in beyond if not place[0].f_code.co_filename.startswith(installed)]
    frame, line = (users or beyond)[-1]
    return f"{told(error)} ({frame.f_code.co_filename}:{line}, in {frame.f_code.co_name})"
