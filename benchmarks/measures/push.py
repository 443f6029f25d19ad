"""Is the push true, and are answers on one state? Policies of Stable-Baselines3's PPO in tasks nothing was chosen on.

The push of a diagnosis is compared with finite differences that are made without it: another way back to a state
(MuJoCo's own), other states, one draw, the whole discounted return. Answers on demand are compared with whole branches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from measures.faithfulness import DRAWS, asked, judged, several, summary, table_of_answers
from measures.tables import machine
from multiadvisor.core.optional_dependencies import require
from multiadvisor.diagnosis.branches import CHANGE
from multiadvisor.diagnosis.consequences import consequences
from multiadvisor.diagnosis.diagnosis import diagnose
from multiadvisor.diagnosis.taught import teach

TASKS = {
    "Swimmer-v5": ("reward_forward", "reward_ctrl"),
    "Reacher-v5": ("reward_dist", "reward_ctrl"),
    "InvertedDoublePendulum-v5": ("reward_survive", "distance_penalty", "velocity_penalty"),
}
GAMMA, STATES, TRAINED = 0.99, 600, 20_000
FOLDER = Path("runs/push")


def policy(name: str, seed: int) -> Callable[[Any], np.ndarray]:
    """What PPO has learned in a few steps, as the file of a CleanRL user has it: a function in NumPy."""
    place = FOLDER / f"{name}-{seed}.npz"
    if not place.exists():
        import torch
        from stable_baselines3 import PPO

        torch.set_num_threads(1)
        model: Any = PPO("MlpPolicy", name, seed=seed, device="cpu").learn(TRAINED)
        layers = [*(model.policy.mlp_extractor.policy_net[k] for k in (0, 2)), model.policy.action_net]
        place.parent.mkdir(parents=True, exist_ok=True)
        arrays = {f"{kind}{k}": getattr(one, kind).detach().numpy().astype(float)
                  for k, one in enumerate(layers) for kind in ("weight", "bias")}  # fmt: skip
        np.savez(place, **arrays, low=model.action_space.low, high=model.action_space.high)
    with np.load(place) as kept:
        parts = dict(kept)

    def act(seen: Any) -> np.ndarray:
        hidden = np.asarray(seen, float)
        for k in (0, 1):
            hidden = np.tanh(parts[f"weight{k}"] @ hidden + parts[f"bias{k}"])
        return np.clip(parts["weight2"] @ hidden + parts["bias2"], parts["low"], parts["high"])

    return act


def differences(name: str, act: Callable[[Any], np.ndarray], seed: int) -> np.ndarray:
    """Half the difference of the return by term [B, K] after a change of the action, by MuJoCo's own state."""
    import gymnasium
    import mujoco

    env: Any = gymnasium.make(name, disable_env_checker=True)
    inner, limit = env.unwrapped, env.spec.max_episode_steps
    low, high = env.action_space.low, env.action_space.high
    size = mujoco.mj_stateSize(inner.model, mujoco.mjtState.mjSTATE_INTEGRATION)
    draw, found = np.random.default_rng(seed), list[np.ndarray]()
    horizon = int(np.log(0.01) / np.log(GAMMA))
    seen, elapsed = inner.reset(seed=seed)[0], 0
    every = 20_000 // STATES  # few of one episode: these are alike
    number = 0
    while len(found) < STATES:
        number += 1
        if number % every == 0:
            state = np.empty(size)
            mujoco.mj_getState(inner.model, inner.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
            way = draw.normal(size=low.shape)
            way *= CHANGE * (high - low) / 2 / np.linalg.norm(way)
            ends = []
            for sign in (1, -1):
                mujoco.mj_setState(inner.model, inner.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
                mujoco.mj_forward(inner.model, inner.data)
                total, action = np.zeros(len(TASKS[name])), np.clip(act(seen) + sign * way, low, high)
                for t in range(min(horizon, limit - elapsed)):
                    after, _, over, _, info = inner.step(action)
                    total += GAMMA**t * np.array([info[term] for term in TASKS[name]])
                    if over:
                        break
                    action = act(after)
                ends.append(total)
            found.append((ends[0] - ends[1]) / 2)
            mujoco.mj_setState(inner.model, inner.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
            mujoco.mj_forward(inner.model, inner.data)
        seen, _, over, _, _ = inner.step(act(seen))
        elapsed += 1
        if over or elapsed >= limit:
            seen, elapsed = inner.reset(seed=seed + number)[0], 0
    return np.array(found)


def measured_push(name: str, seed: int) -> dict[str, Any]:
    """The push of one policy, and finite differences."""
    act, start = policy(name, seed), time.process_time()
    found = diagnose(name, act, _terms(name), gamma=GAMMA, seed=seed, progress=False)
    seconds = time.process_time() - start
    sizes = np.abs(differences(name, act, 10_000 + seed)).mean(axis=0)
    return {
        "case": name, "seed": seed, "terms": [one.name for one in found.terms], "seconds": seconds,
        "push": [None if one.push is None else [one.push.value, *one.push.interval] for one in found.terms],
        "halves of push": [one.agreement for one in found.terms], "true": (sizes / sizes.sum()).tolist(),
    }  # fmt: skip


def measured_answers(name: str, seed: int) -> dict[str, Any]:
    """Answers on demand for one policy, against whole branches."""
    prepared = consequences(name, policy(name, seed), _terms(name), gamma=GAMMA, seed=seed, progress=False)
    terms, length = prepared.brancher.terms.names, prepared.brancher.horizon
    found = judged(asked(prepared, seed, 40, DRAWS))
    return {"case": name, "seed": seed, "terms": list(terms), "length": length, **found}


def measured_taught(name: str, seed: int) -> dict[str, Any]:
    """How far answers that were taught agree with whole branches in other episodes."""
    prepared = consequences(name, policy(name, seed), _terms(name), gamma=GAMMA, seed=seed, progress=False)
    found = teach(prepared, seed=seed, progress=False)
    return {
        "case": name, "seed": seed, "terms": list(found.names), "length": found.length, "seconds": found.seconds,
        "precision": [vars(one) for one in found.precision], "on demand": [one.truth for one in prepared.precision],
    }  # fmt: skip


def _terms(name: str) -> str:
    return ",".join(f"info:{term}" for term in TASKS[name])


_MEASURES = {"push": (measured_push, 321), "answers": (measured_answers, 300), "taught": (measured_taught, 321)}
"""What is measured of a policy, and the first seed of those reported."""


def _benchmark(what: str, rounds: int = 9) -> dict[str, Any]:
    """Every task with at most 3 seeds."""
    require("benchmarks")
    measure, first = _MEASURES[what]
    rows = [measure(name, seed) for name in TASKS for seed in range(first, first + min(rounds, 3))]
    return {"machine": machine(), "rows": rows}


BENCHMARKS = {what: partial(_benchmark, what) for what in _MEASURES}


def inside(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """How many terms' finite differences lie in the interval of the push, of how many that have one."""
    pairs = [
        (low <= true <= high)
        for row in rows
        for one, true in zip(row["push"], row["true"], strict=True)
        if one is not None
        for _, low, high in [one]
    ]
    return sum(pairs), len(pairs)


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    rows, text = result["rows"], {"push": _pushes, "answers": _answers, "taught": _taught}[what]
    return f"machine: {result['machine']}\n\n" + "\n".join(text(rows))


def _pushes(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| task, seed | terms | push | finite differences |", "|---|---|---|---|"]
    for row in rows:
        push = ", ".join("withheld" if one is None else "{:.1%} [{:.1%}, {:.1%}]".format(*one) for one in row["push"])
        true = ", ".join(f"{one:.1%}" for one in row["true"])
        lines.append(f"| {row['case']}, {row['seed']} | {', '.join(row['terms'])} | {push} | {true} |")
    return [*lines, "", "{} of {} inside the interval".format(*inside(rows))]


def _answers(rows: list[dict[str, Any]]) -> list[str]:
    return [table_of_answers(rows), "", summary(rows)]


def _taught(rows: list[dict[str, Any]]) -> list[str]:
    head = ("task, seed", "terms", "r", "r of what can be reached", "ranks", "asked of the environment", "steps")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        cells = [[one[key] for one in row["precision"]] for key in ("agreement", "truth", "ranks")]
        figures = [several(one) for one in (*cells, row["on demand"])]
        lines.append(
            f"| {row['case']}, {row['seed']} | {', '.join(row['terms'])} | {' | '.join(figures)} | {row['length']} |"
        )
    return lines
