"""Values on mapped scales: as the reference has them, exact where a step is worked by hand, and plain by default."""

import dataclasses
import math

import pytest
from test_parity import assert_compiled_parity

import multiadvisor as mad
from multiadvisor.core.mappings import Mapping, mapped, mapping_named, plain
from multiadvisor.studies.systems.value_mapping import channels
from refusal import refused

pytestmark = pytest.mark.slow


def test_kernel_and_reference_move_alike():
    """Logarithms of two libraries may differ in the last bit."""
    how = {"rounds": 1, "rtol": 1e-9}
    assert_compiled_parity(channels(["log:50", None, "log:20"], 1), 500, **how, epsilon=0.5, alpha=0.3)
    chain = mad.make("tile-chain", length=6, mapping="log:20", mapped_alpha=0.3)
    assert_compiled_parity(chain, 500, **how, learner="linear", gamma=0.5, alpha=0.7, epsilon=1.0)


def test_a_step_by_hand():
    task = mad.make("tile-chain", length=2, width=1, mapping="log:3", mapped_alpha=0.5)
    agent = mad.MultiAdvisor(task, gamma=0.5, alpha=0.25, epsilon=1.0)
    while agent.values(0)[1, 1] == 0.0:
        agent.learn(1)
    # f(q) = ln(8 q + 1); the average of 0 and 1 is 1/4, and half of f(1/4) is stored
    assert agent.values(0)[1, 1] == pytest.approx((math.sqrt(3.0) - 1.0) / 8.0, rel=1e-12)


def test_the_scale():
    scale = mapping_named("log:10", 0.5, 0.1)
    for value in (0.0, 1e-9, 0.3, 40.0):
        assert plain(scale, mapped(scale, value)) == pytest.approx(value, rel=1e-12)
    assert mapped(scale, -1.0) == 0.0
    assert mapped(Mapping(), -1.0) == -1.0
    for text, gamma in (("lag", 0.5), ("log:x", 0.5), ("log:-1", 0.5), ("log", 0.0), ("log:900", 0.1)):
        refused("mapping", mapping_named, text, gamma, 1.0)


def test_where_it_cannot_be():
    task = mad.make("random-mdp")
    losing = dataclasses.replace(task, advisors=tuple(dataclasses.replace(f, mapping="log") for f in task.advisors))
    refused("may lose", mad.MultiAdvisor, losing)
    two = channels(["log:50", None, "log:20"], 1)
    refused("one mapping", mad.MultiAdvisor, two, learner="linear")
    refused("plain values", mad.MultiAdvisor, two, aggregation="gpi")
    env = mad.Task.from_gymnasium("FrozenLake-v1", [mad.Advisor("goal", mapping="log:50")])
    refused("compiled worlds", mad.MultiAdvisor, env)
    refused("mapped_alpha", mad.make, "tile-chain", mapped_alpha=0.0)
    assert not mad.check_task(mad.make("tile-chain")).defects
    assert two.identity != channels(["log:50", None, None], 1).identity
