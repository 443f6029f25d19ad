"""What the heads of an advisors' critic do to one another while it learns: a line of JSON every so many transitions.

    python benchmarks/critic_conflict.py Ant-v5 shared --steps 24000

`values` are the means of what each head says, `predicted` the same along episodes of the policy, `followed` what then
came in them, `errors` the root mean square of how far each head, and their sum, is from its target, `pull` the share
that each head has in the gradient on the hidden layers, `alike` the cosines between these gradients, and `towards the
sum` the cosine between all of them together and the gradient that the error of the sum would have. Needs the extras
deep and mujoco.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

import critic_variants
from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.sac import sac_update
from multiadvisor.learners.sac.actor_critic import critic_input, forward, sampled
from studies.continuous_runs import Run, _learner, _scores, task_of
from studies.critic_calibration import calibrate

SAMPLE = 2_048  # transitions that are looked at


def _flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-30))


def look(learner: Any) -> dict[str, Any]:
    """What the first of the twins, or the critic beside, is like now."""
    draw, columns, state = np.random.default_rng(0), learner.columns, learner.state.control
    rows = learner.memory.table[0][draw.integers(0, learner.memory.filled, SAMPLE)]
    noise = draw.standard_normal((2, SAMPLE, columns.dimensions)).astype(np.float32)[1]
    learned, target = learner.state.beside or state.critic
    critic = learned.networks
    batch = columns.split(jnp.asarray(rows))
    heads, following = sac_update.decomposed(batch, learner.weighed), batch.next_observation
    action, density = sampled(state.actor.networks, following, noise)
    warmth = float(np.exp(np.asarray(state.temperature.networks)))
    wanted = sac_update.targets(target, heads, following, action, -warmth * density)
    seen = critic_input(batch.observation, batch.action)
    last = critic[0][-1]

    def errors(hidden: Any) -> Any:  # [B, H]
        return forward((*hidden, last), seen) - wanted

    def of_head(hidden: Any, head: int) -> Any:
        return 0.5 * jnp.square(errors(hidden)[:, head]).mean()

    def of_sum(hidden: Any) -> Any:
        return 0.5 * jnp.square((errors(hidden) * heads.mix).sum(axis=1)).mean()

    names = (*learner.task.names, "entropy")
    pulls = [_flat(jax.grad(of_head)(critic[0][:-1], head)) for head in range(len(names))]
    lengths = np.array([np.linalg.norm(pull) for pull in pulls])
    far = np.asarray(errors(critic[0][:-1]))
    fit = calibrate(learner, 3)
    return {
        "steps": learner.steps, "temperature": warmth,
        "values": dict(zip(names, np.asarray(forward(critic[0], seen)).mean(axis=0).tolist(), strict=True)),
        "followed": {name: one.followed for name, one in fit.items()},
        "predicted": {name: one.predicted for name, one in fit.items()},
        "errors": {**dict(zip(names, np.sqrt((far**2).mean(axis=0)).tolist(), strict=True)),
                   "sum": float(np.sqrt(((far * np.asarray(heads.mix)).sum(axis=1) ** 2).mean()))},
        "pull": dict(zip(names, (lengths / lengths.sum()).tolist(), strict=True)),
        "alike": [[round(_cosine(one, other), 2) for other in pulls] for one in pulls],
        "towards the sum": _cosine(np.sum(pulls, axis=0), _flat(jax.grad(of_sum)(critic[0][:-1]))),
        "return": _scores(learner, 3, 0, learner.task.weights)[0],
    }  # fmt: skip


def main() -> None:
    """Learn, and look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("kind", choices=["shared", "summed", "separate"])
    for name, value in (("steps", 24_000), ("every", 4_500), ("seed", 300), ("units", 256), ("batch", 256),
                        ("starts", 5_000)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    run = Run(given.environment, given.kind, (given.seed,), given.steps, units=given.units, batch=given.batch,
              starts=given.starts)  # fmt: skip
    if given.kind == "summed":
        sac_update.critic_loss = critic_variants.summed_loss
    kind = "separate" if given.kind == "separate" else "shared"
    learner = _learner(run, task_of(given.environment), kind)
    while learner.steps < given.steps:
        learner.run(min(given.every, given.steps - learner.steps))
        if learner.updates:
            print(json.dumps(look(learner)), flush=True)


if __name__ == "__main__":
    main()
