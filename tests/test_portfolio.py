"""A portfolio chooses who plays and lets everybody learn at the end of an epoch; an ensemble hears everybody at
once."""

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.errors import BadInput, Caution
from multiadvisor.learners.ensembles.algorithm_selection import UCB1, Portfolio, fading
from multiadvisor.learners.ensembles.ensemble import Ensemble
from refusal import refused


class Lever(gymnasium.Env):
    """One step: pulling lever a pays a."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(action), True, False, {}


class Stubborn:
    """Always the same action; remembers what it was told, and when it was asked."""

    def __init__(self, action):
        self.action, self.told, self.asked_after = action, [], []

    def act(self, state):
        self.asked_after.append(len(self.told))
        return self.action

    def observe(self, *transition, next_action=None):
        self.told.append((transition[1], next_action))


def never(epoch):
    return 0.0


def test_the_better_one_is_chosen_and_all_learn_from_all_episodes():
    members = {"bad": Stubborn(0), "good": Stubborn(1)}
    portfolio = Portfolio(members, exploration=never)
    episodes = portfolio.play(Lever(), 8)
    assert [episode.epoch for episode in episodes] == [e for e in range(8) for _ in range(1 << e)]
    last = [episode.member for episode in episodes if episode.epoch == 7]
    assert np.mean(last) > 0.85
    assert members["bad"].told == members["good"].told
    assert len(members["bad"].told) == portfolio.steps == 255
    assert all(episode.value == episode.member for episode in episodes)


def test_a_reward_that_is_not_finite_is_refused():
    class Spoiled(Lever):
        def step(self, action):
            return 0, float("inf"), True, False, {}

    with pytest.raises(mad.BadInput, match="the reward of the environment is inf: let it be a finite number"):
        Portfolio({"one": Stubborn(1)}).play(Spoiled(), 1)


def test_a_return_that_the_bandit_does_not_count_on_is_told_once():
    with pytest.warns(
        Caution, match="an episode of the portfolio returned 1, and the bandit counts on 0 to 0.5"
    ) as told:
        Portfolio({"one": Stubborn(1)}, exploration=never, high=0.5).play(Lever(), 3)
    assert len(told) == 1


def test_policies_are_frozen_within_an_epoch_and_the_bandit_begins_anew():
    member = Stubborn(1)
    portfolio = Portfolio({"one": member}, exploration=never)
    portfolio.play(Lever(), 4)
    assert member.asked_after == [0] + [1] * 2 + [3] * 4 + [7] * 8
    both = Portfolio({"a": Stubborn(0), "b": Stubborn(1)}, exploration=never).play(Lever(), 5)
    firsts = [[episode.member for episode in both if episode.epoch == epoch][:2] for epoch in range(1, 5)]
    assert firsts == [[0, 1]] * 4, "in every epoch each is tried once before anything else"


def test_it_goes_on_in_pieces_as_in_one():
    def values(*pieces):
        portfolio = Portfolio({"a": Stubborn(0), "b": Stubborn(1)}, seed=3)
        return [episode for piece in pieces for episode in portfolio.play(Lever(), piece)]

    assert values(6) == values(2, 3, 1)


def test_exploration_passes_and_the_action_that_follows():
    member = Stubborn(1)
    episodes = Portfolio({"one": member}, passes=2, exploration=lambda epoch: 1.0).play(Lever(), 6)
    assert 0.3 < np.mean([episode.value for episode in episodes]) < 0.7
    assert len(member.told) == 2 * 63
    env, walker = gymnasium.make("FrozenLake-v1", is_slippery=False), Stubborn(2)
    Portfolio({"one": walker}, exploration=never).play(env, 1)
    assert walker.told == [(2, 2)] * (len(walker.told) - 1) + [(2, None)]
    assert fading(2) == pytest.approx(0.36)


def test_ucb_prefers_who_was_hardly_tried():
    bandit = UCB1(2, 2.0)
    bandit.times, bandit.totals = [1000, 1], [500.0, 0.4]
    assert bandit.choose() == 1
    bandit.confidence = 0.0
    assert bandit.choose() == 0


class Paying(gymnasium.Env):
    """Each action pays around a mean of its own, for some steps; writes down what was done and paid in each episode."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(5, start=3)

    def __init__(self, means, spread, length):
        self.means, self.spread, self.length, self.episodes = means, spread, length, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes.append([])
        self.left = int(self.np_random.integers(1, self.length + 1))
        return 0, {}

    def step(self, action):
        paid = float(self.means[action - 3] + self.spread * self.np_random.normal())
        self.left -= 1
        self.episodes[-1].append((action - 3, paid))
        return 0, paid, self.left == 0, False, {}


@pytest.mark.parametrize(
    ("arms", "means", "spread", "length", "how"),
    [
        (1, (1, 0, 0, 0, 0), 0.3, 3, {}),
        (2, (0.2, 0.8, 0, 0, 0), 0.1, 1, {"confidence": 2.0}),
        (3, (0.5, 0.5, 0.5, 0, 0), 0.0, 1, {}),  # ties only
        (5, (0, 1, 0.5, 0.5, 1), 0.0, 1, {"confidence": 0.0}),  # greedy, and ties among the best
        (5, (-60, 10, -20, 40, 0), 5.0, 4, {"low": -200.0, "high": 100.0, "gamma": 0.5}),
        (4, (0.5, 0.6, 0.55, 0.3, 0), 0.05, 2, {"low": 0.0, "high": 4.0, "gamma": 1.0, "confidence": 0.5}),
        (3, (0.1, 0.1, 0.9, 0, 0), 0.2, 2, {"low": -1.0, "high": 3.0, "gamma": 0.0}),
    ],
)
@pytest.mark.filterwarnings("ignore:an episode of the portfolio returned")
def test_who_plays_is_what_a_plain_loop_of_ucb_chooses(arms, means, spread, length, how):
    env, epochs = Paying(means, spread, length), 7
    members = {str(k): Stubborn(3 + k) for k in range(arms)}
    episodes = Portfolio(members, seed=4, exploration=never, **how).play(env, epochs)
    low, high, gamma = how.get("low", 0.0), how.get("high", 1.0), how.get("gamma", 0.9)
    place = 0
    for epoch in range(epochs):
        seen = {k: [] for k in range(arms)}  # the bandit of an epoch knows nothing of those before
        for episode in range(2**epoch):
            untried = [k for k in range(arms) if not seen[k]]
            bound = {
                k: sum(seen[k]) / len(seen[k])
                + (how.get("confidence", 0.25) * np.log(episode) / len(seen[k])) ** 0.5
                for k in range(arms) if seen[k]
            }  # fmt: skip
            chosen = untried[0] if untried else next(k for k in bound if bound[k] == max(bound.values()))
            steps = env.episodes[place]
            value = sum(gamma**t * paid for t, (_, paid) in enumerate(steps))
            assert {member for member, _ in steps} == {chosen}
            assert (episodes[place].epoch, episodes[place].member) == (epoch, chosen)
            assert episodes[place].value == pytest.approx(value, rel=1e-12)
            seen[chosen].append((value - low) / (high - low))
            place += 1
    assert place == len(episodes) == len(env.episodes)
    assert {episode.member for episode in episodes} == set(range(arms))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"low": 1.0, "high": 1.0}, "smaller one"),
        ({"low": -1e308, "high": 1e308}, "the range finite"),
        ({"confidence": 1e308}, "confidence is 1e.308: give a number between 0 and"),
        ({"passes": 0}, "passes is 0"),
        ({"gamma": 2}, "gamma is 2: give a number between 0 and 1"),
        ({"confidence": -1}, "confidence is -1: give a number between 0 and"),
        ({"exploration": lambda epoch: 5}, "exploration is 5: give a number between 0 and 1"),
        ({"exploration": never}, r"member 'one' gave the action 7: let it be in Discrete\(2\)"),
    ],
)
def test_what_is_refused(how, message):
    refused(message, lambda: Portfolio({"one": Stubborn(7)}, **how).play(Lever(), 1))
    refused("needs members", Portfolio, {})


# ---- an ensemble -----------------------------------------------------------------------------------------------------
def alone(j, **how):
    env = gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0)
    task = mad.Task.from_gymnasium(env, [mad.Advisor(f"goal {j + 1}", reward=j)])
    return mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, alpha=0.5, **how)


def test_an_ensemble_of_tables_is_a_committee_of_them():
    """The same tables as one agent with both advisors, from the same transitions."""
    ensemble = Ensemble({"goal 1": alone(0), "goal 2": alone(1)}, weights={"goal 1": 3.0})
    task = mad.Task.from_gymnasium(gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0))
    agent = mad.MultiAdvisor(task.with_weights(**{"goal 1": 3.0}), planning="egocentric", gamma=0.9, alpha=0.5)
    for who in (ensemble, agent):
        for action, following in ((0, 1), (1, None), (0, 2), (2, None)) * 3:
            reward = np.eye(3)[action][1:] * [1.0, 2.0]
            who.observe(0, action, reward, 0, terminated=action > 0, next_action=following)
    assert np.array_equal(ensemble.preferences(0), agent.preferences(0))
    assert ensemble.act(0) == agent.act(0)
    votes = Ensemble({"goal 1": alone(0), "goal 2": alone(1)}, aggregation="majority")
    assert votes.preferences(0) == pytest.approx([2 / 3] * 3), "both are undecided"


def test_an_ensemble_explores_as_its_seed_has_it():
    first, second = (Ensemble({"goal 1": alone(0)}, epsilon=1.0, seed=seed) for seed in (1, 1))
    actions = [[ensemble.act(0, explore=True) for _ in range(20)] for ensemble in (first, second)]
    assert actions[0] == actions[1]
    assert len(set(actions[0])) == 3


class Slider(gymnasium.Env):
    """One step: the action is paid what it is."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, high=4.0):
        self.action_space = gymnasium.spaces.Box(-2.0, high, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(action[0]), True, False, {}


def actor(high=4.0, **how):
    return mad.MultiAdvisor(
        mad.Task.from_gymnasium(Slider(high)), learner=mad.SAC(hidden=(8,), learning_starts=5), **how
    )


def test_an_ensemble_of_actors_plays_the_mean_of_their_actions():
    members, twins = ([actor(seed=seed) for seed in (1, 2)] for _ in range(2))
    ensemble = Ensemble(dict(zip("ab", members, strict=True)), weights={"a": 3.0})
    for seen in (np.zeros(1), np.ones(1)):
        first, second = (twin.act(seen) for twin in twins)
        assert not np.allclose(first, 1.0), "the middle of the box"
        assert ensemble.act(seen) == pytest.approx((3 * first + second) / 4)
        assert ensemble.act(seen) in members[0].task.adapter.env.action_space
        assert np.array_equal(ensemble.advice(seen)[1], [first, second])
        first, second = (twin.act(seen, explore=True) for twin in twins)
        assert ensemble.act(seen, explore=True) == pytest.approx((3 * first + second) / 4)
    ensemble.observe(np.zeros(1), ensemble.act(np.zeros(1)), 1.0, np.zeros(1), terminated=True)
    assert [member.steps for member in members] == [1, 1]
    refused("prefers none: ask for act", ensemble.preferences, np.zeros(1))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"aggregation": "max"}, "takes their mean: leave aggregation"),
        ({"epsilon": 0.1}, "leave aggregation and epsilon out"),
        ({"weights": {"a": 0.0, "b": 0.0}}, "a weight above 0"),
        ({"weights": {"a": -1.0}}, "the weight of 'a' is -1.0: give a number between 0 and"),
    ],
)
def test_ensembles_of_actors_that_cannot_be(how, message):
    refused(message, Ensemble, {"a": actor(), "b": actor()}, **how)
    refused("other actions", Ensemble, {"a": actor(), "b": actor(high=9.0)})


@pytest.mark.parametrize("epsilon", [5, -3, np.nan])
def test_epsilon_of_an_ensemble_is_a_probability(epsilon):
    refused(r"epsilon is \S+: give a number between 0 and 1", Ensemble, {"goal 1": alone(0)}, epsilon=epsilon)


def test_weights_of_an_ensemble_whose_sum_overflows_are_refused():
    with pytest.raises(BadInput, match=r"the weight of 'goal 1' is 1e.308: give a number between"):
        Ensemble({"goal 1": alone(0)}, weights={"goal 1": 1e308})
    ensemble = Ensemble({"goal 1": alone(0), "goal 2": alone(1)}, weights={"goal 1": 1e30, "goal 2": -1e30})
    ensemble.observe(0, 1, np.array([1e300, 1e300]), 0, terminated=True)
    with np.errstate(all="ignore"), pytest.raises(BadInput, match="too large for a number: lower the weights"):
        ensemble.act(0)


def test_ensembles_that_cannot_be():
    refused("needs members", Ensemble, {})
    refused("no member of the ensemble is called 'x'", Ensemble, {"goal 1": alone(0)}, weights={"x": 1.0})
    other = mad.MultiAdvisor(mad.Task.from_gymnasium("FrozenLake-v1"))
    refused("other actions", Ensemble, {"goal 1": alone(0), "lake": other})
