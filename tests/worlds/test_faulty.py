"""Environments that are not what Gymnasium asks for: refused in one sentence, or read as they were meant."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from faulty_rings import Lists, NoSeed, OldReset, Raising, Rich, Ring
from multiadvisor.errors import fault_of_environment
from refusal import refused

NETWORK = mad.DQN(hidden=(8,), learning_starts=32, batch_size=16, updates_at_once=1)


class OldResetOfATuple(Ring):
    def reset(self, *, seed=None, options=None):
        return tuple(super().reset(seed=seed)[0].tolist())


class Fractions(Ring):
    def look(self):
        return np.array([self.at + 0.5, 0.0])


class Texts(Ring):
    def look(self):
        return np.array(["a", "b"])


class Wide(Ring):
    """Numbers that its space's type cannot hold: 256 would become 0."""

    def __init__(self):
        super().__init__(spaces.Box(0, 255, (2,), np.uint8))

    def look(self):
        return np.array([256 * self.at, 0])


def task(env, **advisor):
    return mad.Task.from_gymnasium(env, [mad.Advisor("pay", **advisor)], name="ring")


def learned(env, learner=None, **advisor):
    alpha = 0.5 if learner is None else None
    return mad.MultiAdvisor(task(env, **advisor), alpha=alpha, gamma=0.5, learner=learner).learn(200)


@pytest.mark.parametrize("deep", [None, NETWORK], ids=["tables", "network"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (OldReset, "reset gave a value of type ndarray where an observation and a dict of info are expected"),
        (OldResetOfATuple, r"reset gave \(int, int\) where"),
        (NoSeed, "reset takes no seed: let it be"),
    ],
)
def test_a_reset_of_the_old_api_is_refused(kind, message, deep):
    refused(message, learned, kind(), deep)
    refused(message, learned, gymnasium.wrappers.TimeLimit(kind(), 10), deep)


def test_a_type_error_inside_a_reset_that_takes_a_seed_is_its_own():
    class Inside(Ring):
        def reset(self, *, seed=None, options=None):
            return len(seed)

    with pytest.raises(TypeError, match="has no len"):
        learned(Inside())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Lists, "is of the type list where Box.* has arrays"),
        (Fractions, "is not in its space"),
        (Texts, "is not in its space"),
        (Wide, "is not in its space"),
    ],
)
def test_observations_that_their_space_does_not_have_are_refused(kind, message):
    refused(message, learned, kind())


def test_lists_are_refused_where_components_are_picked_and_where_a_number_is_due():
    refused("no array that has them", learned, Lists(), state=0)
    refused("is not an integer, as Discrete", learned, Lists(spaces.Discrete(5)))


@pytest.mark.parametrize("types", [(np.int64, np.int32), (np.int16, np.int64), (np.uint8, np.float32)])
def test_the_same_numbers_are_the_same_state_whatever_their_type(types):
    class Mixed(Ring):
        def look(self):
            return np.array([self.at, 0], types[self.steps > 0])

    agent, plain = learned(Mixed()), learned(Ring())
    assert agent.values(0).shape == (5, 2)
    np.testing.assert_array_equal(agent.values(0), plain.values(0))
    for kind in types:
        assert agent.act(np.array([3, 0], kind)) == 1


@pytest.mark.parametrize("state", [float("nan"), (1, float("nan")), np.float32("nan"), ((2, np.float64("nan")), "a")])
def test_a_local_state_that_is_nan_is_refused(state):
    with pytest.raises(mad.BadInput, match=r"advisor 'pay' gave the local state .*nan.*: NaN is not even equal to"):
        learned(Ring(), state=lambda observation: state)


@pytest.mark.parametrize("seen", [[float("nan"), 0.0], [float("inf"), 0.0], [1.0], [None, 0.0], 3.0])
def test_bins_refuse_what_they_cannot_count(seen):
    refused("does not fit into bins of 2 components", lambda: mad.Bins([0, 0], [1, 1], [3, 3])(seen))


@pytest.mark.slow
@pytest.mark.parametrize("deep", [None, NETWORK], ids=["tables", "network"])
def test_rewards_too_large_to_add_up_are_refused_without_a_warning(deep):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused("no longer finite", learned, Rich(), deep)
        agent = mad.MultiAdvisor(task(Rich()), learner=deep)
        refused("add up to 1e\\+300 or more", agent.evaluate, episodes=2)


def test_what_an_environment_raises_stays_what_it_is_and_can_be_told_from_our_faults():
    with pytest.raises(RuntimeError) as caught:
        learned(Raising())
    assert fault_of_environment(caught.value).startswith("RuntimeError: the purse is empty (")
    assert "faulty_rings.py:" in fault_of_environment(caught.value)
    assert fault_of_environment(caught.value).endswith(", in pay)")
    with pytest.raises(mad.BadInput, match=r"the state of advisor '\w+' raised ZeroDivisionError: ") as caught:
        learned(Ring(), state=lambda observation: 1 // 0)
    assert fault_of_environment(caught.value) is None
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(mad.BadInput) as caught:
        learned(OldReset())
    assert fault_of_environment(caught.value) is None
