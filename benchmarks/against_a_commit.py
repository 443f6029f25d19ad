"""How fast learning is beside an older commit of this repository: `python benchmarks/against_a_commit.py COMMIT`.

Both learn the same with the same seed, each in a process of its own on the same core, in short blocks by turns. Of each
fifth of the rounds: the CPU time of a block that a tenth of them stays below (others are disturbed by whatever else the
machine does), this commit's over the older one's. The median of these five ratios is given with the lowest and the
highest.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Case(NamedTuple):
    """What is learned, and how many steps a block has."""

    environment: str
    block: int
    learner: str = "tabular"
    own: dict[str, Any] = {}  # noqa: RUF012
    """The learner's settings."""
    advisors: int = 1
    """The reward is cut into so many equal parts."""


_SAC = {"learning_starts": 300, "buffer_size": 100_000}
_DQN = {"hidden": (64, 64), "batch_size": 32, "train_freq": 4, "updates_at_once": 8, "learning_starts": 1_000,
        "target_update_interval": 250}  # fmt: skip
_SMALL = {**_SAC, "hidden": (64, 64), "batch_size": 64}
CASES = {
    "sac-pendulum": Case("Pendulum-v1", 4, "sac", {**_SAC, "hidden": (256, 256), "batch_size": 256}),
    "sac-pendulum-small": Case("Pendulum-v1", 20, "sac", _SMALL),
    "sac-pendulum-nine": Case("Pendulum-v1", 20, "sac", _SMALL, 9),
    "dqn-cartpole": Case("CartPole-v1", 128, "dqn", _DQN),
    "dqn-cartpole-nine": Case("CartPole-v1", 128, "dqn", _DQN, 9),
    "tables-frozen-lake": Case("FrozenLake-v1", 400),
    **{f"tables-{name}": Case(name, 400) for name in (
        "deep-sea-treasure-v0", "resource-gathering-v0", "four-room-v0",
    )},
}  # fmt: skip


# ---- one of the two, in a process of its own -------------------------------------------------------------------------
def _part(transition: Any, parts: int) -> float:
    return float(transition.reward) / parts


def _agent(case: Case, old: dict[str, str]) -> Any:
    """An agent of the commit that is imported; `old`: what has another name in older ones."""
    import multiadvisor as mad

    try:
        import mo_gymnasium as library
    except ImportError:
        import gymnasium as library
    new = "Advisor" in mad.__all__
    advisor = mad.Advisor if new else getattr(mad, old["Advisor"])
    parts = [advisor(f"part {k}", reward=partial(_part, parts=case.advisors)) for k in range(case.advisors)]
    env = library.make(case.environment)
    task = mad.Task.from_gymnasium(env, parts) if case.advisors > 1 else mad.Task.from_gymnasium(env)
    given: dict[str, Any] = {}
    if case.learner != "tabular":
        keyword = "deep" if case.learner == "dqn" else "continuous"
        renamed = {keyword: {old.get(name, name): value for name, value in case.own.items()}}
        given = {"learner": {"name": case.learner, **case.own}} if new else renamed
    return mad.MultiAdvisor(task, gamma=0.95, seed=0, **given)


def serve(case: Case, old: dict[str, str]) -> None:
    """Learn for as many steps as each line says, and answer with the CPU seconds that it took."""
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # where libraries greet
        agent = _agent(case, old)
        agent.learn(case.own.get("learning_starts", 0) + 4 * case.block, progress=False)  # compiles
        for line in sys.stdin:
            start = time.process_time()
            agent._learner.run(int(line))
            print(time.process_time() - start, file=answers, flush=True)
        print(agent.evaluate(2).score, file=answers, flush=True)


# ---- both of them ----------------------------------------------------------------------------------------------------
def _start(tree: Path, name: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(tree / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--serve", name], text=True, cwd=tree,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": path, "OLD_NAMES": json.dumps(_old_names())},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def _old_names() -> dict[str, str]:
    from multiadvisor.errors import RENAMED

    return {new: old for old, new in RENAMED.items()}


def _answer(process: subprocess.Popen[str], steps: int | None) -> float:
    """What a process says of so many steps more, or of its greedy episodes at the end."""
    assert process.stdin is not None
    assert process.stdout is not None
    if steps is None:
        process.stdin.close()
    else:
        process.stdin.write(f"{steps}\n")
        process.stdin.flush()
    return float(process.stdout.readline())


def compare(tree: Path, name: str, rounds: int) -> str:
    """One case against the commit that is checked out in `tree`, as a line."""
    import numpy as np

    both = [_start(ROOT, name), _start(tree, name)]
    case, spent = CASES[name], np.zeros((rounds, 2))
    for block in range(rounds):
        for which in (0, 1) if block % 2 else (1, 0):
            spent[block, which] = _answer(both[which], case.block)
    scores = [_answer(process, None) for process in both]
    fifths = np.stack([np.quantile(fifth, 0.1, axis=0) for fifth in np.array_split(spent, 5)])
    low, _, middle, _, high = np.sort(fifths[:, 0] / fifths[:, 1])
    each = np.quantile(spent, 0.1, axis=0) / case.block * 1e6
    same = "the same score" if scores[0] == scores[1] else f"scores {scores[0]:.6g} and {scores[1]:.6g}"
    return f"{name:28} {middle:.3f} [{low:.3f}, {high:.3f}]   {each[0]:.1f} and {each[1]:.1f} us a step, {same}"


def main() -> None:
    """Compare with a commit, case by case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", help="the older commit")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # both on one core, with the same neighbours
        serve(CASES[given.serve], json.loads(os.environ["OLD_NAMES"]))
        return
    if not given.commit:
        parser.error("give a commit to compare with")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "commit"
        git = ["git", "-C", str(ROOT), "worktree"]
        made = subprocess.run([*git, "add", "--detach", str(tree), given.commit], capture_output=True, text=True)
        if made.returncode:
            parser.error(f"{given.commit!r} cannot be checked out: {made.stderr.strip().splitlines()[-1]}")
        try:
            for name in given.cases:
                print(compare(tree, name, given.rounds), flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


if __name__ == "__main__":
    main()
