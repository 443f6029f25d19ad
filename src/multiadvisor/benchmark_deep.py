"""The deep learner with a single advisor, which is DQN, against Stable-Baselines3's: speed and returns.

Both learn with the same network, batch, update frequency and optimiser, on one thread each, in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.benchmark import machine
from multiadvisor.settings import DeepSettings
from multiadvisor.statistics import interval
from multiadvisor.worlds.builtin import make

ENVIRONMENTS = ("CartPole-v1", "LunarLander-v3")
_BLOCK = 4_000  # transitions in a block
_GAMMA = 0.99


def _baselines() -> Any:
    """Stable-Baselines3's DQN on one thread, or None where it is not installed."""
    try:
        import torch
        from stable_baselines3 import DQN
    except ImportError:
        return None
    torch.set_num_threads(1)
    return DQN


def _missing(environment: str) -> str | None:
    """Why the environment cannot be made, or None."""
    import gymnasium

    try:
        gymnasium.make(environment).close()
    except Exception as error:  # whatever a missing engine raises
        return str(error).splitlines()[0]
    return None


def _own(environment: str, seed: int, **changes: Any) -> MultiAdvisor:
    deep = DeepSettings(**{**_SPEED, **changes})
    return MultiAdvisor(make(f"gymnasium:{environment}"), gamma=_GAMMA, epsilon=0.05, seed=seed, deep=deep)


def _other(kind: Any, environment: str, seed: int, turns: int, deep: DeepSettings) -> Any:
    """Stable-Baselines3 with the same figures; its target network is copied after transitions, not updates."""
    return kind(
        "MlpPolicy", environment, learning_rate=deep.learning_rate, buffer_size=deep.replay,
        learning_starts=deep.starts, batch_size=deep.batch, gamma=_GAMMA, train_freq=deep.update_every,
        gradient_steps=1, target_update_interval=deep.target_every * deep.update_every,
        exploration_fraction=min(deep.epsilon_turns / turns, 1.0), exploration_final_eps=0.05,
        exploration_initial_eps=deep.epsilon_start, max_grad_norm=deep.clip_norm,
        policy_kwargs={"net_arch": list(deep.hidden)}, seed=seed, device="cpu", verbose=0,
    )  # fmt: skip


# Stable-Baselines3 has no double Q-learning; everything else is the same in both.
_SPEED = {
    "hidden": (64, 64), "batch": 32, "update_every": 4, "starts": 1_000, "double": False, "target_every": 250,
    "learning_rate": 1e-3, "replay": 50_000, "epsilon_turns": 5_000,
}  # fmt: skip


def _cpu(work: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    start = time.process_time()
    work(*arguments, **options)
    return time.process_time() - start


def deep(rounds: int) -> dict[str, Any]:
    """Training speed, in blocks that take turns; the ratio of the medians of CPU time."""
    other = _baselines()
    result: dict[str, Any] = {"machine": machine(), "rounds": rounds, "transitions_per_second": {}}
    result |= {"sb3_transitions_per_second": {}, "ratio_to_sb3": {}, "notes": []}
    if other is None:
        result["notes"].append(
            "stable-baselines3 is not installed, so there is nothing to compare with: pip install "
            "'multiadvisor[benchmarks]'"
        )
    for environment in ENVIRONMENTS:
        if why := _missing(environment):
            result["notes"].append(f"{environment} was left out: {why}")
            continue
        agent = _own(environment, 0).learn(_BLOCK, progress=False)
        peer = None
        if other is not None:
            peer = _other(other, environment, 0, 10 * _BLOCK * (rounds + 1), agent.settings.deep)  # type: ignore[arg-type]
            peer.learn(_BLOCK)
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(_cpu(agent.learn, _BLOCK, progress=False))
            if peer is not None:
                theirs.append(_cpu(peer.learn, _BLOCK, reset_num_timesteps=False))
        result["transitions_per_second"][environment] = _BLOCK / float(np.median(ours))
        if peer is not None:
            result["sb3_transitions_per_second"][environment] = _BLOCK / float(np.median(theirs))
            result["ratio_to_sb3"][environment] = float(np.median(theirs) / np.median(ours))
    return result


_RETURNS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"turns": 50_000, "deep": {"learning_rate": 1e-3, "batch": 64, "update_every": 2,
                                              "target_every": 100}},
    "LunarLander-v3": {"turns": 100_000, "deep": {"learning_rate": 6e-4, "batch": 64, "hidden": (128, 128),
                                                  "update_every": 2, "target_every": 250, "epsilon_turns": 12_000}},
}  # fmt: skip
_GAMES = 20


def _peer_returns(peer: Any, environment: str, seed: int) -> float:
    import gymnasium

    env, scores = gymnasium.make(environment), []
    for game in range(_GAMES):
        seen, _ = env.reset(seed=10_000 * (1 + seed) + game)
        total, over = 0.0, False
        while not over:
            action, _ = peer.predict(seen, deterministic=True)
            seen, reward, terminated, truncated, _ = env.step(int(action))
            total, over = total + float(reward), terminated or truncated
        scores.append(total)
    return float(np.mean(scores))


def deep_returns(rounds: int) -> dict[str, Any]:
    """The return of greedy games at the end of training, over as many seeds as rounds; some minutes each."""
    other = _baselines()
    result: dict[str, Any] = {"machine": machine(), "rounds": rounds, "environments": {}, "notes": []}
    if other is None:
        result["notes"].append("stable-baselines3 is not installed: pip install 'multiadvisor[benchmarks]'")
    for environment, case in _RETURNS.items():
        if why := _missing(environment):
            result["notes"].append(f"{environment} was left out: {why}")
            continue
        entry: dict[str, Any] = {"transitions": case["turns"]}
        for double in (False, True):
            scores = []
            for seed in range(rounds):
                agent = _own(environment, seed, **case["deep"], double=double).learn(case["turns"], progress=False)
                scores.append(agent.evaluate(_GAMES).score)
            name = "multiadvisor_double" if double else "multiadvisor"
            entry[name] = {"mean": float(np.mean(scores)), "interval": interval(np.array(scores)), "seeds": scores}
        if other is not None:
            scores = []
            for seed in range(rounds):
                settings = DeepSettings(**{**_SPEED, **case["deep"]})
                peer = _other(other, environment, seed, case["turns"], settings).learn(case["turns"])
                scores.append(_peer_returns(peer, environment, seed))
            entry["sb3"] = {"mean": float(np.mean(scores)), "interval": interval(np.array(scores)), "seeds": scores}
        result["environments"][environment] = entry
    return result


BENCHMARKS = {"deep": deep, "deep-returns": deep_returns}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}"]
    if what == "deep":
        for name, speed in result["transitions_per_second"].items():
            line = f"  {name:15} {speed:8,.0f} transitions/s"
            if name in result["ratio_to_sb3"]:
                peer, ratio = result["sb3_transitions_per_second"][name], result["ratio_to_sb3"][name]
                line += f", {ratio:.1f} times Stable-Baselines3's {peer:,.0f}"
            lines.append(line)
    else:
        for name, entry in result["environments"].items():
            lines.append(f"  {name}, {entry['transitions']:,} transitions, {result['rounds']} seeds")
            for who in ("multiadvisor", "multiadvisor_double", "sb3"):
                if who in entry:
                    low, high = entry[who]["interval"]
                    lines.append(f"    {who.replace('_', ', '):22} {entry[who]['mean']:8.1f} [{low:.1f}, {high:.1f}]")
    return "\n".join([*lines, *(f"  {note}" for note in result["notes"])])
