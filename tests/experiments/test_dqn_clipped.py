"""DQN-clipped: one advisor, clipped rewards, an image; all seeds in one program."""

import dataclasses

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.settings import Schedule
from multiadvisor.studies.paper.dqn_clipped import SETTINGS, train

pytestmark = pytest.mark.slow

SMALL = dataclasses.replace(SETTINGS, learner=dataclasses.replace(
    SETTINGS.learner, convolutions=(4,), strides=(2,), hidden=(8,), learning_starts=64, buffer_size=2000,
))  # fmt: skip


def test_what_it_sees_and_is_paid():
    deep = dataclasses.replace(SMALL.learner, learning_starts=10_000, buffer_size=10_000)
    agent = mad.MultiAdvisor(mad.make("pac-boy"), gamma=0.85, learner=deep).learn(4800, progress=False)
    learner = agent._learner
    assert learner.plan.shape == (4, 11, 11)
    assert learner.plan.n == 1
    assert set(np.unique(learner.replay.reward)) == {-1.0, 0.0, 1.0}
    assert agent.evaluate(2).advisors.keys() == set(
        agent.task.names
    )  # scores are the episode's own, not the clipped ones


def test_curves_by_seed_also_in_short_epochs():
    told = []
    curves = train((3, 1), Schedule(80, 20, 2), SMALL, tell=lambda steps, epoch, score: told.append((steps, epoch)))
    assert told == [(32, 1), (32, 2), (0, 3), (32, 4)]  # 32 episodes side by side
    assert [len(curve) for curve in curves] == [4, 4]
    alone = train((1,), Schedule(80, 20, 2), SMALL)
    assert alone[0][0] == curves[1][0]
    for epoch in curves[0]:
        assert epoch.keys() == {"steps", "score", "length", "terminated", "metrics"}
        assert epoch["metrics"]["touches"] >= 0
