"""The learner of continuous actions against SBX's and Stable-Baselines3's soft actor-critic: speed.

All of them learn with the same networks, batches and number of updates, on one thread each, in one process and in
blocks that take steps. And what nine advisors cost beside one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from measures.tables import machine
from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.optional_dependencies import require
from multiadvisor.core.progress import JobsBar
from multiadvisor.envs.registry import make
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.task import Advisor, Task
from peers import PEERS, bare, cpu_seconds, missing, peers

_GAMMA = 0.99
_STARTS = 300
_ADVISORS = 9


class Size(NamedTuple):
    """A network, its batch, how many updates are made in a row, and the transitions of a block."""

    units: int
    batch: int
    at_once: int
    block: int

    def __str__(self) -> str:
        return f"{self.units}x{self.units}" + (f", {self.at_once} at once" if self.at_once > 1 else "")

    @property
    def settings(self) -> SAC:
        """For one advisor, or for many: which critics there are follows from the task."""
        return SAC(
            hidden=(self.units, self.units), batch_size=self.batch, learning_starts=_STARTS, buffer_size=100_000,
            updates_at_once=self.at_once,
        )  # fmt: skip


LARGE, MIDDLE, SMALL = Size(256, 256, 1, 200), Size(128, 128, 8, 600), Size(64, 64, 1, 1_200)
CASES = {
    "Hopper-v5": (LARGE, MIDDLE, SMALL), "HalfCheetah-v5": (LARGE,), "LunarLanderContinuous-v3": (LARGE,),
    "Pendulum-v1": (LARGE, SMALL),
}  # fmt: skip


def _own(environment: str, size: Size, task: Task | None = None) -> MultiAdvisor:
    task = task or make(f"{environment}")
    return MultiAdvisor(task, gamma=_GAMMA, seed=0, learner=size.settings)


def _other(kind: Any, environment: str, size: Size) -> Any:
    """The same figures."""
    own = size.settings
    return kind(
        "MlpPolicy",
        bare(environment),
        learning_rate=own.learning_rate,
        buffer_size=own.buffer_size,
        learning_starts=own.learning_starts,
        batch_size=own.batch_size,
        tau=own.tau,
        gamma=_GAMMA,
        train_freq=size.at_once,
        gradient_steps=size.at_once,
        policy_kwargs={"net_arch": list(own.hidden)},
        seed=0,
        device="cpu",
        verbose=0,
    )


def _nine(environment: str) -> Task:
    """The same reward, cut into nine equal parts."""
    advisors = [Advisor(f"part {k}", reward=_part) for k in range(_ADVISORS)]
    task = make(f"{environment}")
    assert task.adapter is not None
    return Task.from_gymnasium(task.adapter.env, advisors)


def _part(transition: Any) -> float:
    return float(transition.reward) / _ADVISORS


def continuous(rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU for a transition with its update; ratios of the medians."""
    require("deep")
    result: dict[str, Any] = {"machine": machine(), "rounds": rounds, "milliseconds": {}, "ratio_to_sbx": {},
                              "ratio_to_sb3": {}, "nine_advisors_to_one": {}, "notes": []}  # fmt: skip
    others = peers("SAC", result["notes"])
    made = {name: sizes for name, sizes in CASES.items() if not (why := missing(name)) or _left_out(result, name, why)}
    with JobsBar(sum(map(len, made.values())), 0, None, "continuous") as bar:
        for environment, sizes in made.items():
            for size in sizes:
                _measure(result, environment, size, others, rounds)
                bar.done(1)
    return result


def _left_out(result: dict[str, Any], name: str, why: str) -> bool:
    result["notes"].append(f"{name} was left out: {why}")
    return False


def _measure(result: dict[str, Any], environment: str, size: Size, others: dict[str, Any], rounds: int) -> None:
    agents: dict[str, Any] = {"multiadvisor": _own(environment, size), "nine advisors": None}
    agents["nine advisors"] = _own(environment, size, _nine(environment))
    agents |= {name: _other(kind, environment, size) for name, kind in others.items()}
    spent: dict[str, list[float]] = {name: [] for name in agents}
    for block in range(rounds + 1):
        for name, agent in agents.items():
            more = {"reset_num_timesteps": block == 0} if name in others else {"progress": False}
            steps = size.block if block else _STARTS + 2 * size.at_once  # the first block compiles
            taken = cpu_seconds(agent.learn, steps, **more)
            if block:
                spent[name].append(1000.0 * taken / steps)
    medians = {name: float(np.median(values)) for name, values in spent.items()}
    own = medians["multiadvisor"]
    result["milliseconds"].setdefault(environment, {})[str(size)] = medians
    result["nine_advisors_to_one"].setdefault(environment, {})[str(size)] = medians["nine advisors"] / own
    for name in others:
        result[f"ratio_to_{name}"].setdefault(environment, {})[str(size)] = medians[name] / own


BENCHMARKS = {"continuous": continuous}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}", "milliseconds of CPU for a transition with its update:"]
    for environment, sizes in result["milliseconds"].items():
        for size, medians in sizes.items():
            line = f"  {environment:24} {size:18} {medians['multiadvisor']:6.2f}"
            for name, (_, _, title) in PEERS.items():
                if name in medians:
                    ratio = result[f"ratio_to_{name}"][environment][size]
                    line += f", {title} {medians[name]:.2f} ({ratio:.2f} times)"
            lines.append(f"{line}; nine advisors {result['nine_advisors_to_one'][environment][size]:.2f} times")
    return "\n".join([*lines, *(f"  {note}" for note in result["notes"])])
