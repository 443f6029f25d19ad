"""Environments that are not what Gymnasium asks for: refused in one sentence, or read as they were meant."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.envs.stepping import one_episode
from multiadvisor.errors import fault_of_environment

NETWORK = mad.DQN(hidden=(8,), learning_starts=32, batch_size=16, updates_at_once=1)


class Ring(gymnasium.Env):
    """Five places in a ring, seen as [place, 0]; action 1 leads on, and the last place pays."""

    def __init__(self, space=None):
        self.action_space = spaces.Discrete(2)
        self.observation_space = space or spaces.Box(0, 4, (2,), np.int64)

    def look(self):
        return np.array([self.at, 0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return self.look(), {}

    def step(self, action):
        self.at, self.steps = (self.at + int(action)) % 5, self.steps + 1
        return self.look(), self.pay(), False, self.steps == 12, {}

    def pay(self):
        return float(self.at == 4)


class OldReset(Ring):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]  # an array of two, which could be taken for (observation, info)


class OldResetOfATuple(Ring):
    def reset(self, *, seed=None, options=None):
        return tuple(super().reset(seed=seed)[0].tolist())


class NoSeed(Ring):
    def reset(self):
        return super().reset()


class Lists(Ring):
    def look(self):
        return [self.at, 0]


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


class Rich(Ring):
    def pay(self):
        return 1e308


class Raising(Ring):
    def step(self, action):
        raise KeyError("the door is shut")


def task(env, **advisor):
    return mad.Task.from_gymnasium(env, [mad.Advisor("pay", **advisor)], name="ring")


def learned(env, learner=None, **advisor):
    return mad.MultiAdvisor(task(env, **advisor), alpha=0.5, gamma=0.5, learner=learner).learn(200, progress=False)


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
    with pytest.raises(mad.BadInput, match=message):
        learned(kind(), deep)
    with pytest.raises(mad.BadInput, match=message):
        learned(gymnasium.wrappers.TimeLimit(kind(), 10), deep)


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
    with pytest.raises(mad.BadInput, match=message):
        learned(kind())


def test_lists_are_refused_where_components_are_picked_and_where_a_number_is_due():
    with pytest.raises(mad.BadInput, match="no array that has them"):
        learned(Lists(), state=0)
    with pytest.raises(mad.BadInput, match="is not an integer, as Discrete"):
        learned(Lists(spaces.Discrete(5)))


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
    with pytest.raises(mad.BadInput, match="does not fit into bins of 2 components"):
        mad.Bins([0, 0], [1, 1], [3, 3])(seen)


class InPlace(Ring):
    """The same array each time, changed in place."""

    def __init__(self):
        super().__init__()
        self.shown = np.zeros(2, np.int64)

    def look(self):
        self.shown[0] = self.at
        return self.shown


class Nested(InPlace):
    """The same dictionary with the same array in it."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Dict({"at": spaces.Box(0, 4, (2,), np.int64)})
        self.whole = {"at": self.shown}

    def look(self):
        super().look()
        return self.whole


@pytest.mark.slow
@pytest.mark.parametrize("deep", [None, NETWORK], ids=["tables", "network"])
@pytest.mark.parametrize("kind", [InPlace, Nested])
def test_an_observation_changed_in_place_is_still_the_one_before(kind, deep):
    met = []

    def place(observation):
        return int((observation["at"] if isinstance(observation, dict) else observation)[0])

    def reward(transition):
        before, after = place(transition.observation), place(transition.next_observation)
        met.append((before, transition.action, after))
        return float(after != before)

    agent = learned(kind(), deep, reward=reward, state=place)
    agent.evaluate(episodes=1)
    assert len(met) > 200
    assert all(after == (before + action) % 5 for before, action, after in met)
    assert {before for before, *_ in met} == set(range(5))


def test_what_was_seen_in_an_episode_is_kept_though_the_environment_changes_it_in_place():
    episodes = EvaluationEpisodes(task(InPlace()), 0, 0)
    ways = [
        [(now.state, now.next_state) for now in rollout(episodes, 0, lambda seen, bits: 1)],
        [(step.observation, step.next_observation) for step in one_episode(InPlace(), 0, lambda seen: 1)],
    ]
    for way in ways:
        assert [(int(before[0]), int(after[0])) for before, after in way] == [(k % 5, (k + 1) % 5) for k in range(12)]


@pytest.mark.slow
@pytest.mark.parametrize("deep", [None, NETWORK], ids=["tables", "network"])
def test_rewards_too_large_to_add_up_are_refused_without_a_warning(deep):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mad.BadInput, match="no longer finite"):
            learned(Rich(), deep)
        agent = mad.MultiAdvisor(task(Rich()), learner=deep)
        with pytest.raises(mad.BadInput, match="add up to 1e\\+300 or more"):
            agent.evaluate(episodes=2)


def test_what_an_environment_raises_stays_what_it_is_and_can_be_told_from_our_faults():
    with pytest.raises(KeyError) as caught:
        learned(Raising())
    assert fault_of_environment(caught.value).startswith("KeyError: 'the door is shut' (")
    assert "test_faulty.py:" in fault_of_environment(caught.value)
    assert fault_of_environment(caught.value).endswith(", in step)")
    with pytest.raises(ZeroDivisionError) as caught:
        learned(Ring(), state=lambda observation: 1 // 0)
    assert fault_of_environment(caught.value) is None
    with pytest.raises(mad.BadInput) as caught:
        learned(OldReset())
    assert fault_of_environment(caught.value) is None
