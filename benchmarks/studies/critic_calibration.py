"""How well a critic's values fit the returns that follow: with the noise of learning, as it is the policy it values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.analysis.calibration import compared
from multiadvisor.analysis.episodes import parts_of
from multiadvisor.core.rng import EVALUATION, stream_key
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.errors import BadInput
from multiadvisor.learners.sac.actor_critic import explored
from multiadvisor.learners.sac.sac_learner import ContinuousLearner


class Fit(NamedTuple):
    """How well one advisor's values fit the discounted returns that followed."""

    predicted: float  # the mean value
    followed: float  # the mean return
    correlation: float  # of the two
    bias: float  # predicted less followed, in standard deviations of the returns
    share: float  # the size of what followed, of all advisors' sizes together


_EPISODES = 511  # episodes of this evaluation and of those behind it, which nobody else plays


def calibrate(learner: ContinuousLearner, episodes: int, seed: int = 0, run: int = 0) -> dict[str, Fit]:
    """Of each advisor, in episodes with the noise of learning: that is the policy which the critics value.

    The last steps of an episode that was cut off are left out, as nobody knows what would have followed.
    """
    task, adapter = learner.task, learner.task.adapter
    assert adapter is not None
    if learner.advisors != task.advisors:
        raise BadInput(f"the advisors of task {task.name!r} have no values of their own: choose other critics")
    actor = tuple((weight[run], bias[run]) for weight, bias in learner.actor)
    noise = np.random.default_rng(int(stream_key(learner.seeds[run], EVALUATION, (1 << 40) + seed)))
    critics: list[np.ndarray] = []  # [n] each, NaN of who was not asked

    def act(state: Any, draw: int) -> np.ndarray:
        push = noise.standard_normal((1, learner.actions.size)).astype(np.float32)
        action = explored(actor, learner._row(state)[None], push)
        decision = learner.judge(state, action, run)
        critics.append(np.full(task.n, np.nan))
        critics[-1][decision.advisors] = decision.values[:, 0]
        return np.asarray(action[0])

    with adapter.lock:
        source = EvaluationEpisodes(task, learner.seeds[run], _EPISODES + seed)
        each = [list(rollout(source, episode, act)) for episode in range(episodes)]
    parts, values = parts_of(each), np.array(critics)
    first = np.concatenate([[0], np.cumsum([len(one) for one in each])])
    finished = np.array([one[-1].terminated for one in each], bool)
    pairs = []
    for j, gamma in enumerate(task.gammas(learner.settings.gamma).tolist()):
        mine = values[:, j], parts.paid[:, j], ~np.isnan(values[:, j]), parts.ended[:, j]
        found, completed = compared(*mine, first, finished, gamma)
        pairs.append(np.concatenate([np.stack(pair) for pair in found], axis=1) if found else np.zeros((2, 0)))
        if completed or pairs[-1].shape[1] < 2:
            raise BadInput("the episodes are too short to look ahead: play more of them, or with a lower gamma")
    sizes = np.array([np.abs(came).mean() for _, came in pairs])
    shares = sizes / max(sizes.sum(), 1e-30)
    return {name: _fit(pair, float(share)) for name, pair, share in zip(task.names, pairs, shares, strict=True)}


def _fit(pair: np.ndarray, share: float) -> Fit:
    """From values and returns [2, T]."""
    guess, came = pair
    spread = float(came.std())
    correlation = float(np.corrcoef(guess, came)[0, 1]) if spread > 0 and guess.std() > 0 else 0.0
    bias = float((guess - came).mean()) / spread if spread > 0 else 0.0
    return Fit(float(guess.mean()), float(came.mean()), correlation, bias, share)
