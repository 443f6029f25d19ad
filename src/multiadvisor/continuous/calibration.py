"""Do the advisors get what they expect? Their values beside the returns that followed, in games of the same policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiadvisor.continuous.learner import ContinuousLearner
from multiadvisor.continuous.networks import explored
from multiadvisor.draws import EVALUATION, environment_seed, stream_key
from multiadvisor.errors import BadInput

_AHEAD = 0.01  # what follows a game that was cut off may matter so much, and no more


class Calibration(NamedTuple):
    """How well one advisor's values fit the discounted returns that followed."""

    predicted: float  # the mean value
    followed: float  # the mean return
    correlation: float  # of the two
    bias: float  # predicted less followed, in standard deviations of the returns
    share: float  # the size of what followed, of all advisors' sizes together


def followed(rewards: np.ndarray, gammas: np.ndarray) -> np.ndarray:
    """Discounted returns [T, n] from rewards [T, n] of a game.

    >>> followed(np.array([[1.0], [2.0]]), np.array([0.5])).tolist()
    [[2.0], [2.0]]
    """
    returns, total = np.zeros_like(rewards), np.zeros(rewards.shape[1])
    for turn in range(len(rewards) - 1, -1, -1):
        total = rewards[turn] + gammas * total
        returns[turn] = total
    return returns


def calibrate(learner: ContinuousLearner, games: int, seed: int = 0, run: int = 0) -> dict[str, Calibration]:
    """Of each advisor, in games with the noise of learning: that is the policy which the critics value.

    The last turns of a game that was cut off are left out, as nobody knows what would have followed.
    """
    task, adapter = learner.task, learner.task.adapter
    assert adapter is not None
    if adapter.vector:
        raise BadInput(f"task {task.name!r} is a vector environment: calibration is of single games")
    gammas = task.gammas(learner.settings.gamma)
    ahead = 0 if gammas.max() == 0 else int(np.ceil(np.log(_AHEAD) / np.log(min(gammas.max(), 0.9999))))
    actor = tuple((weight[run], bias[run]) for weight, bias in learner.actor)
    noise = np.random.default_rng(int(stream_key(learner.seeds[run], EVALUATION, (1 << 40) + seed)))
    said: list[np.ndarray] = []
    came: list[np.ndarray] = []
    with adapter.stage as stage:
        stage.user = None
        reader = adapter.fresh(table=False)
        for game in range(games):
            reader.reset(environment_seed(learner.seeds[run], EVALUATION, (1 << 41) + (seed << 20) + game))
            values, rewards, over = [], [], (False, False)
            while not any(over):
                row = learner._row(reader.observation)[None]
                action = explored(actor, row, noise.standard_normal((1, learner.actions.size)).astype(np.float32))
                values.append(learner.judge(reader.observation, action, run).values[:, 0])
                over = reader.step(action[0])
                rewards.append(reader.paid.copy())
            keep = len(rewards) if over[0] else max(len(rewards) - ahead, 0)
            said += values[:keep]
            came += list(followed(np.array(rewards), gammas)[:keep])
    if len(said) < 2:
        raise BadInput("the games are too short to look ahead: play more of them, or with a lower gamma")
    return dict(zip(task.names, _judged(np.array(said), np.array(came)), strict=True))


def _judged(said: np.ndarray, came: np.ndarray) -> list[Calibration]:
    """Of each advisor, from values and returns [T, n]."""
    sizes = np.abs(came).mean(axis=0)
    found = []
    for value, followed, size in zip(said.T, came.T, sizes, strict=True):
        spread = float(followed.std())
        both = spread > 0 and value.std() > 0
        correlation = float(np.corrcoef(value, followed)[0, 1]) if both else 0.0
        means = float(value.mean()), float(followed.mean())
        bias = (means[0] - means[1]) / spread if spread > 0 else 0.0
        found.append(Calibration(*means, correlation, bias, float(size / max(sizes.sum(), 1e-30))))
    return found
