"""A deep network on the 17,252 features of linear Q-learning, which the paper tried "with no success".

    python benchmarks/deep_features.py --seeds 2 --epochs 50 --out deep-features.jsonl

Two hidden layers; all else is as in DQN-clipped. A feature says that advisor j is active in local state s, so that at
most 77 of them are 1 at once: the first layer adds up their rows of weights. Writes a file that `reproduce` judges by,
and says at the end how far the scores are from the shipped ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import platform
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dqn_clipped import Trained, from_shipped, write
from multiadvisor.core.rng import EVALUATION, stream_key, training_keys
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.registry import make
from multiadvisor.envs.rollout import vector_rollout
from multiadvisor.learners.dqn.backend import jax, jnp, optax
from multiadvisor.studies.paper.dqn_clipped import MEASURES, NETWORK, ON_FEATURES, SETTINGS
from multiadvisor.studies.paper.pac_boy_study import played
from multiadvisor.task import Task

HIDDEN = (64, 64)
EPOCH, EPISODES = 20_000, 80
Layers = tuple[tuple[Any, Any], ...]
optimiser = optax.adam(NETWORK.learning_rate)


class Features:
    """Which features are 1 in a state: of each fruit Pac-Boy's cell, of each ghost both cells."""

    def __init__(self, task: Task) -> None:
        self.task, self.cells = task, len(task.grid.cells)
        self.fruits, self.ghosts = len(task.grid.items), len(task.grid.sprites) - 1
        self.count = self.fruits * self.cells + self.ghosts * self.cells**2

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """[N, advisors] the numbers of those that are 1; `count` where an advisor is not active."""
        cell, *ghosts = self.task.grid.movers(x).T
        fruit = np.arange(self.fruits) * self.cells + cell[:, None]
        first = self.fruits * self.cells
        pairs = [first + k * self.cells**2 + cell * self.cells + there for k, there in enumerate(ghosts)]
        return np.column_stack([np.where(self.task.grid.lying(x), fruit, self.count), *pairs]).astype(np.int32)


def forward(layers: Layers, rows: Any, xp: Any) -> Any:
    """The values of the actions [N, A] where these features are 1."""
    (table, bias), *others = layers
    hidden = (table[rows] * (rows < len(table) - 1)[..., None]).sum(axis=1) + bias
    for weights, bias in others:
        hidden = xp.maximum(hidden, 0.0) @ weights + bias
    return hidden


class Batch(NamedTuple):
    """Transitions, K batches of them."""

    rows: Any
    action: Any
    reward: Any
    going_on: Any
    next_rows: Any


def loss(layers: Layers, target: Layers, batch: Batch) -> Any:
    """Huber, against the target network."""
    wanted = batch.reward + SETTINGS.gamma * batch.going_on * forward(target, batch.next_rows, jnp).max(axis=1)
    chosen = jnp.take_along_axis(forward(layers, batch.rows, jnp), batch.action[:, None], axis=1)[:, 0]
    return optax.huber_loss(chosen - jax.lax.stop_gradient(wanted)).mean()


@partial(jax.jit, donate_argnums=(0, 1))
def update(layers: Layers, state: Any, target: Layers, batches: Batch) -> tuple[Layers, Any]:
    """One update after the other."""

    def one(carry: Any, batch: Batch) -> tuple[Any, None]:
        layers, state = carry
        change, state = optimiser.update(jax.grad(loss)(layers, target, batch), state)
        return (optax.apply_updates(layers, change), state), None

    return jax.lax.scan(one, (layers, state), batches)[0]


def initial(generator: np.random.Generator, features: int, actions: int) -> Layers:
    """Weights as large as for so many features as are 1 at once; the last row of the first layer is never used."""
    sizes = (features + 1, *HIDDEN, actions)
    inputs = (77, *HIDDEN)
    return tuple(
        (generator.normal(0, np.sqrt(2 / n), (into, out)).astype(np.float32), np.zeros(out, np.float32))
        for n, into, out in zip(inputs, sizes, sizes[1:], strict=False)
    )


def evaluated(task: Task, features: Features, layers: Layers, seed: int, epoch: int) -> dict[str, float]:
    """The means of greedy episodes."""
    env = CompiledEnv(task, [stream_key(seed, EVALUATION, epoch * EPISODES + k) for k in range(EPISODES)])
    found = played(env, lambda: forward(layers, features(env.x), np).argmax(axis=1))
    return {name: float(found[name].mean()) for name in MEASURES}


def train(seed: int, epochs: int) -> Iterator[dict[str, float]]:
    """One seed: after every epoch, its evaluation."""
    of, task, generator = NETWORK, make("pac-boy"), np.random.default_rng(seed)
    features, actions = Features(task), len(task.actions)
    seen = target = initial(generator, features.count, actions)
    layers, updates = jax.tree.map(jnp.array, seen), 0
    state = optimiser.init(layers)
    env = CompiledEnv(task, training_keys([seed], of.n_envs).reshape(-1))
    env.reset()
    size = of.buffer_size // of.n_envs * of.n_envs
    rows, number = ((task.n,), np.uint16), ((), np.float32)
    kinds = (rows, ((), np.int32), number, number, rows)
    memory, steps = Batch(*(np.zeros((size, *shape), kind) for shape, kind in kinds)), 0

    def act() -> np.ndarray:
        epsilon = max(SETTINGS.epsilon, 1 - (1 - SETTINGS.epsilon) * steps / of.epsilon_steps)
        best = forward(seen, features(env.x), np).argmax(axis=1)
        blind = generator.random(of.n_envs) < epsilon
        return np.where(blind, generator.integers(actions, size=of.n_envs), best)

    for step, _ in vector_rollout(env, act, each=1 << 60, longest=-(-epochs * EPOCH // of.n_envs)):
        place = slice(steps % size, steps % size + of.n_envs)
        paid = np.clip(step.reward @ task.weights, -1, 1)
        new = (features(step.state), step.action, paid, ~step.terminated, features(step.next_state))
        for kept, values in zip(memory, new, strict=True):
            kept[place] = values
        steps += of.n_envs
        if steps > of.learning_starts:
            chosen = generator.integers(min(steps, size), size=(of.updates_at_once, of.batch_size))
            batches = Batch(*(kept[chosen] for kept in memory))
            batches = batches._replace(rows=batches.rows.astype(np.int32), next_rows=batches.next_rows.astype(np.int32))
            layers, state = update(layers, state, target, batches)
            seen = jax.tree.map(np.asarray, layers)
            updates += of.updates_at_once
            if updates % of.target_update_interval < of.updates_at_once:
                target = jax.tree.map(np.copy, seen)
        if steps // EPOCH > (steps - of.n_envs) // EPOCH:
            yield evaluated(task, features, seen, seed, steps // EPOCH)


def main() -> None:
    """Train one seed after the other, and write; all that are written have the same number of epochs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    start = time.perf_counter()
    network = {**dataclasses.asdict(SETTINGS), "features": Features(make("pac-boy")).count, "hidden": HIDDEN}
    about: dict[str, Any] = {
        "command": f"python benchmarks/deep_features.py --seeds {given.seeds} --epochs {given.epochs}",
        "device": jax.devices()[0].device_kind, "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(), "jax": jax.__version__, "date": f"{datetime.date.today()}",
        "settings": network,
    }  # fmt: skip
    curves = [{name: list[float]() for name in MEASURES} for _ in range(given.seeds)]
    for epoch, rows in enumerate(zip(*(train(seed, given.epochs) for seed in range(given.seeds)), strict=True), 1):
        for curve, row in zip(curves, rows, strict=True):
            for name in MEASURES:
                curve[name].append(row[name])
        about |= {"epochs": epoch, "seconds": round(time.perf_counter() - start, 1)}
        print(f"epoch {epoch}: mean score {np.mean([row['score'] for row in rows]):.2f} after "
              f"{about['seconds']:.0f} s", file=sys.stderr, flush=True)  # fmt: skip
        if given.out is not None:
            write(given.out, about, Trained(curves, [], None))
    told = {key: value for key, value in about.items() if key != "settings"}
    print(json.dumps({**told, "from_shipped": from_shipped(curves, ON_FEATURES)}))


if __name__ == "__main__":
    main()
