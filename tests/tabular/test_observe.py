"""Transitions that somebody else played: what is observed is learned as in an episode of the agent's own, bit for
bit."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from reference import AdapterSource, reference
from test_parity import Errands, errand_advisors

import multiadvisor as mad
from agents import Saved, bytes_of, own_loop
from multiadvisor.core import rng
from multiadvisor.core.plannings import PLANNINGS, TARGET
from refusal import refused


class Recorder(gymnasium.Wrapper):
    """Writes down every transition, with the action that followed it in the same episode."""

    def __init__(self, env):
        super().__init__(env)
        self.log, self.at = [], None

    def reset(self, **how):
        self.at, info = self.env.reset(**how)
        return self.at, info

    def step(self, action):
        before, result = self.at, self.env.step(action)
        self.at = result[0]
        if self.log and self.log[-1][3] is before:
            self.log[-1][7] = action
        self.log.append([before, action, result[1], result[0], *result[2:], None])
        return result


def errands(advisors=None):
    return mad.Task.from_gymnasium(Errands(), advisors or errand_advisors(), name="errands")


def told(agent, log):
    """The agent, after it has observed what was written down."""
    for *transition, following in log:
        agent.observe(*transition, next_action=following)
    return agent


# a policy that is given with the advisor is valued in compiled worlds only
LEARNED_HERE = [name for name, planning in PLANNINGS.items() if TARGET not in planning.needs]
POSITION = ("counters", "trail", "seeded_at", "scores", "explored")  # of its own episode, which an observer has not


@pytest.mark.parametrize("planning", LEARNED_HERE)
def test_a_loop_of_ones_own_learns_what_learn_learns(planning):
    how = {"planning": planning, "epsilon": 0.2, "noise": 0.1, "alpha_half": 1000, "seed": 5}
    ahead = "taken" in PLANNINGS[planning].needs
    advisors = errand_advisors()
    if ahead:  # then the action is chosen before anybody learns; `learn` lets those whose part has ended learn first
        advisors = [advisor for advisor in advisors if advisor.active is None]
    own = mad.MultiAdvisor(errands(advisors), **how).learn(1500)
    loop = own_loop(mad.MultiAdvisor(errands(advisors), **how), 1500, Errands(), ahead)
    assert bytes_of(loop, POSITION) == bytes_of(own, POSITION)
    assert (loop.steps, loop.episodes) == (own.steps, own.episodes)
    assert loop._learner.score_sum == pytest.approx(own._learner.score_sum, rel=1e-12)
    assert own.episodes > 20


@pytest.mark.parametrize("planning", LEARNED_HERE)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_log_of_random_actions_gives_the_tables_of_the_reference(planning, noise):
    """Actions that the observer did not choose; the reference plays them, as with epsilon = 1 its own draws do."""
    how = {"planning": planning, "noise": noise, "epsilon": 1.0, "gamma": 0.9, "seed": 3}
    env = Recorder(Errands())
    twin, table = mad.Task.from_gymnasium(env, errand_advisors()), np.zeros((4000, 3))
    key = rng.stream_key(3, rng.TRAINING)
    player = reference(twin, mad.Settings(**how), AdapterSource(twin, 3), table, key)
    player.learn(900)
    if player.held is not None:
        env.log[-1][7] = player.held + 1  # it was chosen, and the log ends before it is taken
    observer = told(mad.MultiAdvisor(errands(), **how), env.log)
    rows = twin.adapter.rows
    assert observer._learner.adapter.rows == rows
    assert np.array_equal(observer._learner.table[:rows], table[:rows])
    assert np.count_nonzero(table) > 50


def test_episodes_may_be_mixed():
    """Transitions of episodes on different states, in any order: whose turn it was does not matter."""
    one, two = ([(s + k, 0, 1.0, s + k + 1, k == 3) for k in range(4)] for s in (0, 8))
    task = lambda: mad.Task.from_gymnasium("FrozenLake-v1")  # noqa: E731
    apart, mixed = (mad.MultiAdvisor(task(), gamma=0.5, alpha_half=0) for _ in range(2))
    for each in one + two:
        apart.observe(*each)
    for pair in zip(one, two, strict=True):
        for each in pair:
            mixed.observe(*each)
    assert np.array_equal(apart.values(0), mixed.values(0))
    assert apart.episodes == mixed.episodes == 2


def test_exploring_for_many_episodes_draws_for_each():
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium("FrozenLake-v1"), epsilon=1.0)
    drawn = [agent.act(0, explore=True) for _ in range(400)]
    assert min(np.bincount(drawn, minlength=4)) > 60
    again = mad.MultiAdvisor(mad.Task.from_gymnasium("FrozenLake-v1"), epsilon=1.0)
    assert drawn == [again.act(0, explore=True) for _ in range(400)]
    assert {agent.act(0) for _ in range(20)} == {0}
    pac_boy = mad.MultiAdvisor(mad.make("two-goal"), epsilon=1.0)
    assert len({pac_boy.act(pac_boy.task.initial_state(), explore=True) for _ in range(50)}) == 3


# ---- keeping ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("planning", ["empathic", "sarsa"])
def test_saved_in_mid_episode_it_goes_on_bit_for_bit(planning, tmp_path):
    how, ahead = {"planning": planning, "epsilon": 0.3, "seed": 2}, planning == "sarsa"
    whole = own_loop(mad.MultiAdvisor(errands(), **how), 500, Errands(), ahead)
    pieces = Saved(mad.MultiAdvisor(errands(), **how), 77, tmp_path, errands)
    assert bytes_of(own_loop(pieces, 500, Errands(), ahead).agent) == bytes_of(whole)


def test_learning_observing_and_learning_again(tmp_path):
    agent = mad.MultiAdvisor(errands(), epsilon=0.2).learn(500)
    own_loop(agent, 100, Errands())
    agent.learn(250)
    assert agent.steps == 850
    agent.save(tmp_path / "a")
    loaded = mad.load(tmp_path / "a", errands())
    for one in (agent, loaded):
        one.learn(400)
    assert bytes_of(loaded) == bytes_of(agent)


def test_whoever_only_observes_leaves_the_environment_alone():
    """The loop may be in the very environment that the task was made from."""
    env = Errands()
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, errand_advisors()), epsilon=0.2, seed=4)
    other = own_loop(mad.MultiAdvisor(errands(), epsilon=0.2, seed=4), 300, Errands())
    assert bytes_of(own_loop(agent, 300, env)) == bytes_of(other)


def test_a_forged_count_of_draws_is_refused():
    agent = mad.MultiAdvisor(errands())
    for _ in range(3):
        agent.act(np.array([0, 1, 1]), explore=True)
    tensors = agent._learner.tensors()
    assert tensors["explored"].tolist() == [2]
    for wrong in (-1, 1 << 62):
        refused("'explored' is out of range", agent._learner.restore, {**tensors, "explored": np.array([wrong])})


# ---- what cannot be observed -----------------------------------------------------------------------------------------
class Numbered(gymnasium.Env):
    """Nothing but spaces."""

    def __init__(self, paid=0):
        self.observation_space, self.action_space = spaces.Discrete(5), spaces.Discrete(2, start=7)
        if paid:
            self.reward_space = spaces.Box(-1, 1, (paid,))


@pytest.mark.parametrize(("changes", "message"), [
    ({"action": 9}, "action is 9: give one of the environment's, 7 to 8"),
    ({"action": 0}, "action is 0: give one of the environment's, 7 to 8"),
    ({"action": "left"}, "action is 'left'"),
    ({"action": 7.0}, "action is 7.0"),
    ({"next_action": 6}, "next_action is 6"),
    ({"observation": 5}, "the observation 5 is not in Discrete"),
    ({"next_observation": "x"}, "not an integer"),
    ({"reward": float("nan")}, "the reward of advisor 'reward' is not finite"),
    ({"reward": [1.0, 2.0]}, "pays a vector of 2"),
    ({"reward": None}, "the reward of advisor 'reward' is not finite"),
    ({"reward": "much"}, "the reward of the environment is 'much'"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line_and_nothing_is_learned(changes, message):
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Numbered()))
    good = {"observation": 0, "action": 8, "reward": 1.0, "next_observation": 1, "terminated": False}
    agent.observe(**good)
    before = bytes_of(agent, ("counters",)), agent.steps
    refused(message, agent.observe, **{**good, **changes})
    assert (bytes_of(agent, ("counters",)), agent.steps) == before
    agent.observe(**good)
    assert agent.act(0) == 8


def test_a_reward_that_is_a_vector():
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Numbered(paid=2)), alpha=1.0)
    agent.observe(0, 7, np.array([1.0, -0.5]), 1, True)
    assert [agent.values(j)[0, 0] for j in (0, 1)] == [1.0, -0.5]
    refused("is of a vector of 2, but it pays a number", agent.observe, 0, 7, 1.0, 1, True)


def test_sarsa_asks_for_the_next_action_and_takes_it():
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Numbered()), planning="sarsa", alpha=1.0, gamma=0.5)
    agent.observe(1, 8, 4.0, 2, True)
    refused("'sarsa' learns from the action taken next: give next_action", agent.observe, 0, 7, 1.0, 1, False)
    agent.observe(0, 7, 1.0, 1, False, next_action=8)
    agent.observe(0, 8, 1.0, 1, False, next_action=7)
    assert agent.preferences(0).tolist() == [3.0, 1.0]


def test_values_that_grow_beyond_all_bounds_are_told():
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Numbered()), gamma=1.0, alpha=1.0)
    agent.observe(1, 7, 1.7e308, 2, True)
    refused(r"no longer finite \(table row 0\)", agent.observe, 0, 7, 1.7e308, 1, False)


def test_values_whose_weighted_sum_would_overflow_are_told():
    """Of two advisors with large values and weights NaN was preferred, and an action taken."""
    advisors = [mad.Advisor("a", weight=1e30), mad.Advisor("b", weight=-1e30)]
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Numbered(), advisors), alpha=1.0)
    agent.observe(0, 7, 1e270, 1, True)
    assert np.isfinite(agent.preferences(0)).all()
    kept = {**agent._learner.tensors(), "table": np.full_like(agent._learner.tensors()["table"], 1e300)}
    refused("or not so times the weights", lambda: mad.MultiAdvisor(agent.task, alpha=1.0)._learner.restore(kept))
    refused(r"no longer finite \(table row 0\), or not so times the weights", agent.observe, 0, 7, 1e290, 1, True)
