"""A network that observes episodes of others: the same memory, the same updates, nothing lost on the way."""

import dataclasses

import numpy as np
import pytest
import test_learner
from gymnasium.vector import SyncVectorEnv
from toy_envs import Counter

import multiadvisor as mad
from agents import Saved, own_loop, remembered
from refusal import refused

pytestmark = pytest.mark.slow

QUICK = dataclasses.replace(test_learner.QUICK, buffer_size=300, n_envs=1)


def advisors():
    return [
        mad.Advisor("steps", reward=0),
        mad.Advisor("ones", reward=1, active=lambda o: o[0] != 1, weight=0.5),
        mad.Advisor(
            "odd", reward=lambda t: float(t.next_observation[0] - t.observation[0]), ended=lambda t: t.action > 5
        ),
    ]


def counter_task():
    return mad.Task.from_gymnasium(Counter(vector=True, start=5), advisors(), name="counter")


def agent_of(task, **changes):
    return mad.MultiAdvisor(task, noise=0.1, seed=3, learner=dataclasses.replace(QUICK, **changes))


def rows_of(agent):
    """What was remembered, and what the network has become of it; not where the episodes stand."""
    tensors = agent._learner.tensors()
    kept = {name: part.tobytes() for name, part in tensors.items() if name.partition(" ")[0] != "episodes"}
    head = agent._learner.memory.clock[0, 0]
    observations = tensors["replay observations"].copy()
    observations[0, head] = 0  # the first observation of an episode that nobody has played in yet
    kept["replay observations"] = observations.tobytes()
    active = tensors["replay active"].copy()
    active[0, head] = 0
    kept["replay active"] = active.tobytes()
    return kept


@pytest.mark.parametrize("split", ["advisors", "none"])
def test_a_loop_of_ones_own_remembers_and_learns_what_learn_does(split):
    own, loop = agent_of(counter_task(), split=split), agent_of(counter_task(), split=split)
    for steps in (20, 400, 1):  # the memory has gone round once
        own.learn(steps)
    own_loop(loop, 421, Counter(vector=True, start=5))
    assert rows_of(loop) == rows_of(own)
    assert (loop.steps, loop.episodes) == (own.steps, own.episodes)
    assert loop._learner.updates == own._learner.updates > 100


def test_saved_evaluated_and_taken_up_again(tmp_path):
    whole = own_loop(agent_of(counter_task()), 200, Counter(vector=True, start=5))
    pieces = Saved(agent_of(counter_task()), 41, tmp_path, counter_task, evaluated=True)
    pieces = own_loop(pieces, 200, Counter(vector=True, start=5)).agent
    assert rows_of(pieces) == rows_of(whole)
    pieces.learn(60)
    assert pieces.steps == 260
    pieces.save(tmp_path / "a")
    loaded = mad.load(tmp_path / "a", counter_task())
    for one in (pieces, loaded):
        one.learn(100)
    assert rows_of(pieces) == rows_of(loaded)


def test_it_learns_to_win_in_a_loop_of_ones_own():
    """Two arms in one state: the network's advice is what each arm pays."""
    deep = dataclasses.replace(QUICK, hidden=(), learning_rate=0.05, n_step=1, batch_size=32, epsilon_steps=100)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium("FrozenLake-v1"), epsilon=1.0, learner=deep)
    for _ in range(400):
        arm = agent.act(0, explore=True)
        agent.observe(0, arm, float(arm), 1, terminated=True)
    assert agent.preferences(0) == pytest.approx([0.0, 1.0, 2.0, 3.0], abs=0.05)
    assert agent.act(0) == 3


def test_transitions_in_any_order_are_remembered_one_by_one():
    """Three steps of each of two episodes, step about: nothing is summed across, nothing is lost."""
    agent = agent_of(counter_task(), learning_starts=10**6, n_step=3)
    for k in range(3):
        for episode in (0, 1):
            before, after = (np.array([step, episode, 0.0]) for step in (k, k + 1))
            agent.observe(before, 5 + episode, np.array([10.0 * episode + k, 0.0]), after, k == 2)
    seen = remembered(agent)
    assert seen.observation[:, :2].tolist() == [[k, episode] for k in range(3) for episode in (0, 1)]
    assert seen.next_observation[:, :2].tolist() == [[k + 1, episode] for k in range(3) for episode in (0, 1)]
    assert seen.over.sum() >= 5  # the newest one may still go on
    assert (agent.steps, agent.episodes) == (6, 2)


def test_whoever_only_observes_leaves_the_environment_alone(tmp_path):
    env = Counter(vector=True, start=5)
    agent = agent_of(mad.Task.from_gymnasium(env, advisors(), name="counter"))
    own_loop(agent, 150, env)
    agent.save(tmp_path / "a")
    assert rows_of(agent) == rows_of(own_loop(agent_of(counter_task()), 150, Counter(vector=True, start=5)))


# ---- what cannot be observed -----------------------------------------------------------------------------------------
def unseen(message, agent, *transition):
    """It is refused, and nothing is remembered."""
    before = {name: part.tobytes() for name, part in agent._learner.memory.tensors().items()}
    refused(message, agent.observe, *transition)
    assert {name: part.tobytes() for name, part in agent._learner.memory.tensors().items()} == before


def test_what_does_not_fit_is_refused_in_one_line_and_nothing_is_remembered():
    seen, paid = np.zeros(3), np.array([1.0, 2.0])
    agent = agent_of(counter_task())
    agent.observe(seen, 5, paid, seen, False)
    unseen(r"shape \(2,\)", agent, np.zeros(2), 5, paid, seen, False)
    unseen(r"shape \(4,\)", agent, seen, 5, paid, np.zeros(4), False)
    unseen("pays a number", agent, seen, 5, 1.0, seen, False)
    unseen("'ones' is not finite", agent, seen, 5, np.array([1.0, np.inf]), seen, False)
    unseen("5 to 6", agent, seen, 0, paid, seen, False)
    agent.observe(seen, 6, paid, seen, True)
    assert agent.steps == 2


def test_many_episodes_and_worlds_are_refused():
    seen, world = np.zeros(3), mad.make("two-goal")
    many = mad.Task.from_gymnasium(SyncVectorEnv([Counter] * 2), [mad.Advisor("steps")])
    unseen("vector environment", agent_of(many), seen, 0, 1.0, seen, False)
    unseen("envs is 2", agent_of(mad.make("CartPole-v1"), n_envs=2), np.zeros(4), 0, 1.0, np.zeros(4), False)
    unseen("compiled world", agent_of(world), world.initial_state(), 0, 1.0, world.initial_state(), False)


def test_a_checkpoint_of_an_observer_is_refused_where_nothing_can_be_observed():
    agent = agent_of(mad.make("two-goal"))
    watching = {**agent._learner.tensors(), "episodes watching": np.ones(1, np.int64)}
    refused("is a compiled world", agent._learner.restore, watching)
