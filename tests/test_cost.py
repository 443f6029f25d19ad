"""What a question to an agent costs, counted in calls and not in seconds."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multiadvisor as mad
from measures.tables import crowd
from multiadvisor.core.aggregations import weighted_sum


def calls(work):
    """How many calls, of functions in Python and in C, the work makes."""
    count = 0

    def counting(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    work()  # whatever is done once only
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture(scope="module")
def crowds():
    found = {n: mad.MultiAdvisor(crowd(n, n)) for n in (77, 770, 7700)}
    for agent in found.values():
        agent._learner.table[:] = np.random.default_rng(0).normal(size=agent._learner.table.shape)
    return found


def test_acting_takes_as_many_calls_whatever_the_number_of_advisors(crowds):
    found = [calls(lambda agent=agent: agent.act([3])) for agent in crowds.values()]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("asked", ["advice", "explain"])
def test_advice_and_explanations_are_linear_in_the_advisors(crowds, asked):
    few, more, many = (calls(lambda agent=agent: getattr(agent, asked)([3])) for agent in crowds.values())
    assert many - more <= 10 * (more - few) + 100


def test_inactive_advisors_cost_nothing_in_acting_or_advice():
    few, many = mad.MultiAdvisor(crowd(77, 77)), mad.MultiAdvisor(crowd(7700, 77))
    for asked in ("act", "advice"):
        assert calls(lambda a=asked: getattr(few, a)([3])) == calls(lambda a=asked: getattr(many, a)([3]))


PAC_BOY = mad.make("pac-boy")
AGENT = mad.MultiAdvisor(PAC_BOY.with_weights(ghosts=-0.3))
AGENT._learner.table[:] = np.random.default_rng(1).normal(size=AGENT._learner.table.shape)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_what_is_summed_up_by_compiled_code_is_the_weighted_sum_of_the_advice(data):
    x = np.array([data.draw(st.integers(0, size - 1)) for size in PAC_BOY.world.sizes])
    names, advice = AGENT.advice(x)
    weights = dict(zip(AGENT.task.names, AGENT.task.weights, strict=True))
    expected = weighted_sum(advice, np.array([weights[name] for name in names]))
    np.testing.assert_array_equal(AGENT.preferences(x), expected)
    assert AGENT.act(x) == int(np.argmax(expected))


def test_agents_of_one_task_share_their_machine_code():
    one, two = (mad.MultiAdvisor(mad.make("three-fruits"), seed=seed)._learner for seed in (0, 1))
    assert one._loop is two._loop
    assert one._ask is two._ask
    assert mad.MultiAdvisor(mad.make("two-goal"))._learner._loop is not one._loop
