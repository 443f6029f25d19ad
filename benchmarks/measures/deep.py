"""The deep learner with a single advisor, which is DQN, against SBX's and Stable-Baselines3's: speed and returns.

All of them learn with the same network, batch, update frequency and optimiser, on one thread each, in one process, and
make as many updates in a row.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from measures.tables import machine
from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.intervals import interval
from multiadvisor.core.progress import JobsBar
from multiadvisor.envs.registry import make
from multiadvisor.learners.dqn.dqn_settings import DQN
from peers import PEERS, bare, cpu_seconds, missing, peers
from studies.continuous_runs import peer_score

ENVIRONMENTS = ("CartPole-v1", "LunarLander-v3")
_BLOCK = 4_000  # transitions in a block
_GAMMA = 0.99


def _own(environment: str, seed: int, deep: DQN, epsilon: float = 0.05) -> MultiAdvisor:
    return MultiAdvisor(make(f"{environment}"), gamma=_GAMMA, epsilon=epsilon, seed=seed, learner=deep)


def _other(kind: Any, environment: str, seed: int, steps: int, deep: DQN, epsilon: float = 0.05) -> Any:
    """A peer with the same figures; its target network is copied after transitions, not updates.

    SBX does not clip gradients, which saves it some work.
    """
    clips = {"max_grad_norm": deep.clip_norm} if "max_grad_norm" in inspect.signature(kind).parameters else {}
    return kind(
        "MlpPolicy", bare(environment), learning_rate=deep.learning_rate, buffer_size=deep.buffer_size,
        learning_starts=deep.learning_starts, batch_size=deep.batch_size, gamma=_GAMMA,
        train_freq=deep.train_freq * deep.updates_at_once, gradient_steps=deep.updates_at_once,
        target_update_interval=deep.target_update_interval * deep.train_freq,
        exploration_fraction=min(deep.epsilon_steps / steps, 1.0), exploration_final_eps=epsilon,
        exploration_initial_eps=deep.epsilon_start, policy_kwargs={"net_arch": list(deep.hidden)}, seed=seed,
        device="cpu", verbose=0, **clips,
    )  # fmt: skip


# The peers have no double Q-learning, and take random actions until learning starts; everything else is the same.
_SPEED = DQN(
    hidden=(64, 64),
    batch_size=32,
    train_freq=4,
    updates_at_once=8,
    learning_starts=1_000,
    double=False,
    target_update_interval=250,
    learning_rate=1e-3,
    buffer_size=50_000,
    epsilon_steps=5_000,
)


def deep(rounds: int) -> dict[str, Any]:
    """Training speed, in blocks that take steps; the ratios of the medians of CPU time."""
    result: dict[str, Any] = {"machine": machine(), "rounds": rounds, "steps_per_second": {}, "notes": []}
    others = peers("DQN", result["notes"])
    result |= {f"{name}_steps_per_second": {} for name in PEERS} | {f"ratio_to_{name}": {} for name in PEERS}
    for environment in ENVIRONMENTS:
        if why := missing(environment):
            result["notes"].append(f"{environment} was left out: {why}")
            continue
        work = {"": partial(_own(environment, 0, _SPEED).learn, _BLOCK, progress=False)}
        for name, kind in others.items():
            peer = _other(kind, environment, 0, 10 * _BLOCK * (rounds + 1), _SPEED)
            work[name] = partial(peer.learn, _BLOCK, reset_num_timesteps=False)
        spent: dict[str, list[float]] = {name: [] for name in work}
        for block in range(rounds + 1):
            for name, learn in work.items():
                taken = cpu_seconds(learn)
                if block:  # the first one compiles
                    spent[name].append(taken)
        medians = {name: float(np.median(each)) for name, each in spent.items()}
        result["steps_per_second"][environment] = _BLOCK / medians[""]
        for name in others:
            result[f"{name}_steps_per_second"][environment] = _BLOCK / medians[name]
            result[f"ratio_to_{name}"][environment] = medians[name] / medians[""]
    return result


class Case(NamedTuple):
    """What a comparison of returns is made with."""

    steps: int
    epsilon: float
    deep: DQN


# What Stable-Baselines3's own collection of tuned settings has for its DQN, so that the peer is at its best. There the
# target network of CartPole is copied every 10 transitions, that is once before each round of 128 updates.
RETURNS = {
    "CartPole-v1": Case(
        50_000,
        0.04,
        DQN(
            hidden=(256, 256),
            learning_rate=2.3e-3,
            batch_size=64,
            buffer_size=100_000,
            learning_starts=1_000,
            train_freq=2,
            updates_at_once=128,
            target_update_interval=128,
            epsilon_steps=8_000,
            double=False,
        ),
    ),
    "LunarLander-v3": Case(
        100_000,
        0.1,
        DQN(
            hidden=(256, 256),
            learning_rate=6.3e-4,
            batch_size=128,
            buffer_size=50_000,
            learning_starts=0,
            train_freq=1,
            updates_at_once=4,
            target_update_interval=250,
            epsilon_steps=12_000,
            double=False,
        ),
    ),
}
_EPISODES = 20  # in an evaluation
_LOOKS = 10  # evaluations while it learns; the last one is the final return


def _own_curve(environment: str, seed: int, case: Case, double: bool) -> list[float]:
    agent = _own(environment, seed, replace(case.deep, double=double), case.epsilon)
    return [
        agent.learn(case.steps // _LOOKS, progress=False).evaluate(_EPISODES, seeds=(look,)).score
        for look in range(_LOOKS)
    ]


def _other_curve(kind: Any, environment: str, seed: int, case: Case) -> list[float]:
    from stable_baselines3.common.callbacks import BaseCallback

    env = bare(environment)
    scores: list[float] = []

    class Look(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps % (case.steps // _LOOKS) == 0:
                scores.append(peer_score(self.model, env, 10_000 * (1 + seed) + _EPISODES * len(scores), _EPISODES))
            return True

    _other(kind, environment, seed, case.steps, case.deep, case.epsilon).learn(case.steps, callback=Look())
    return scores


def _summary(curves: list[list[float]]) -> dict[str, Any]:
    """The final returns and the means over the second half of the curves, with intervals over seeds."""
    table = np.array(curves)  # [seeds, looks]
    final, half = table[:, -1], table[:, _LOOKS // 2 :].mean(axis=1)
    return {
        "mean": float(final.mean()), "interval": interval(final), "second_half": float(half.mean()),
        "second_half_interval": interval(half), "seeds": final.tolist(), "curves": curves,
    }  # fmt: skip


def deep_returns(rounds: int) -> dict[str, Any]:
    """Greedy episodes while it learns and at the end, over as many seeds as rounds; a quarter of an hour each."""
    result: dict[str, Any] = {"machine": machine(), "rounds": rounds, "environments": {}, "notes": []}
    learners = {
        "multiadvisor": partial(_own_curve, double=False), "multiadvisor_double": partial(_own_curve, double=True),
        **{name: partial(_other_curve, kind) for name, kind in peers("DQN", result["notes"]).items() if name == "sb3"},
    }  # fmt: skip
    with JobsBar(len(RETURNS) * len(learners) * rounds, 0, None, "deep-returns") as bar:
        for environment, case in RETURNS.items():
            if why := missing(environment):
                result["notes"].append(f"{environment} was left out: {why}")
                continue
            entry: dict[str, Any] = {"steps": case.steps}
            for name, curve in learners.items():
                curves = []
                for seed in range(rounds):
                    curves.append(curve(environment, seed, case))
                    bar.done(1)
                entry[name] = _summary(curves)
            result["environments"][environment] = entry
    return result


BENCHMARKS = {"deep": deep, "deep-returns": deep_returns}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}"]
    if what == "deep":
        for name, speed in result["steps_per_second"].items():
            line = f"  {name:15} {speed:8,.0f} steps/s"
            for peer, (_, _, title) in PEERS.items():
                if name in result[f"ratio_to_{peer}"]:
                    theirs, ratio = result[f"{peer}_steps_per_second"][name], result[f"ratio_to_{peer}"][name]
                    line += f", {ratio:.1f} times {title}'s {theirs:,.0f}"
            lines.append(line)
    else:
        for name, entry in result["environments"].items():
            lines.append(f"  {name}, {entry['steps']:,} steps, {result['rounds']} seeds")
            for who in ("multiadvisor", "multiadvisor_double", "sb3"):
                if who in entry:
                    (low, high), (least, most) = entry[who]["interval"], entry[who]["second_half_interval"]
                    lines.append(
                        f"    {who.replace('_', ', '):22} at the end {entry[who]['mean']:7.1f} [{low:.1f}, {high:.1f}]"
                        f", over the second half {entry[who]['second_half']:7.1f} [{least:.1f}, {most:.1f}]"
                    )
    return "\n".join([*lines, *(f"  {note}" for note in result["notes"])])
