"""A network that observes episodes of others: the same memory, the same updates, nothing lost on the way."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from toy_envs import Counter

import multiadvisor as mad
from multiadvisor.core import rng
from multiadvisor.envs.segment import LENGTH
from multiadvisor.learners.dqn.replay import LAST, STEP

QUICK = mad.DQN(
    hidden=(8,),
    learning_starts=64,
    batch_size=16,
    buffer_size=300,
    train_freq=2,
    updates_at_once=4,
    n_envs=1,
    target_update_interval=10,
    epsilon_steps=300,
    n_step=2,
)


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


def own_loop(agent, env, steps):
    """A training loop as anybody would write it, in episodes seeded as `learn` does."""
    since, over = LENGTH, True
    for _ in range(steps):
        if over:
            anew = since >= LENGTH
            since = 0 if anew else since
            number = rng.environment_seed(agent.settings.seed, rng.ENVIRONMENT, agent.steps) if anew else None
            observation, _ = env.reset(seed=number)
        action = agent.act(observation, explore=True)
        seen, reward, terminated, truncated, info = env.step(action)
        agent.observe(observation, action, reward, seen, terminated, truncated, info)
        observation, over, since = seen, terminated or truncated, since + 1
    return agent


def rows_of(agent):
    """What was remembered, and what the network has become of it; not where the episodes stand."""
    tensors = agent._learner.tensors()
    kept = {name: part.tobytes() for name, part in tensors.items() if name.partition(" ")[0] != "episodes"}
    head = agent._learner.replay.clock[0, 0]
    observations = tensors["replay observations"].copy()
    observations[0, head] = 0  # the first observation of an episode that nobody has played in yet
    kept["replay observations"] = observations.tobytes()
    active = tensors["replay active"].copy()
    active[0, head] = 0
    kept["replay active"] = active.tobytes()
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("split", ["advisors", "none"])
def test_a_loop_of_ones_own_remembers_and_learns_what_learn_does(split):
    own, loop = agent_of(counter_task(), split=split), agent_of(counter_task(), split=split)
    for steps in (20, 400, 1):  # the memory has gone round once
        own.learn(steps, progress=False)
    own_loop(loop, Counter(vector=True, start=5), 421)
    assert rows_of(loop) == rows_of(own)
    assert (loop.steps, loop.episodes) == (own.steps, own.episodes)
    assert loop._learner.updates == own._learner.updates > 100


@pytest.mark.slow
def test_saved_evaluated_and_taken_up_again(tmp_path):
    whole, pieces = agent_of(counter_task()), agent_of(counter_task())
    log = []

    class Log:
        def __getattr__(self, name):
            return getattr(whole, name)

        def observe(self, *transition):
            log.append(transition)
            whole.observe(*transition)

    own_loop(Log(), Counter(vector=True, start=5), 200)
    for k, transition in enumerate(log):
        if k % 41 == 0:
            pieces.evaluate(episodes=2)
            pieces.save(tmp_path / "a")
            pieces = mad.load(tmp_path / "a", counter_task())
        pieces.observe(*transition)
    whole._learner.exploration = pieces._learner.exploration  # the one chose, the other was told
    assert rows_of(pieces) == rows_of(whole)
    pieces.learn(60, progress=False)
    assert pieces.steps == 260
    pieces.save(tmp_path / "a")
    loaded = mad.load(tmp_path / "a", counter_task())
    for one in (pieces, loaded):
        one.learn(100, progress=False)
    assert rows_of(pieces) == rows_of(loaded)


@pytest.mark.slow
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
    replay = agent._learner.replay
    at = np.flatnonzero((replay.kind[0] == STEP) | (replay.kind[0] == LAST))
    assert replay.observations[0, at, :2].tolist() == [[k, episode] for k in range(3) for episode in (0, 1)]
    assert replay.observations[0, at + 1, :2].tolist() == [[k + 1, episode] for k in range(3) for episode in (0, 1)]
    assert (replay.kind[0, at] == LAST).sum() >= 5  # the newest one may still go on
    assert (agent.steps, agent.episodes) == (6, 2)


@pytest.mark.slow
def test_whoever_only_observes_leaves_the_environment_alone(tmp_path):
    env = Counter(vector=True, start=5)
    agent = agent_of(mad.Task.from_gymnasium(env, advisors(), name="counter"))
    own_loop(agent, env, 150)
    agent.save(tmp_path / "a")
    assert rows_of(agent) == rows_of(own_loop(agent_of(counter_task()), Counter(vector=True, start=5), 150))


# ---- what cannot be observed -----------------------------------------------------------------------------------------
def refused(agent, *transition):
    before = {name: part.tobytes() for name, part in agent._learner.replay.tensors().items()}
    with pytest.raises(mad.BadInput) as error:
        agent.observe(*transition)
    assert {name: part.tobytes() for name, part in agent._learner.replay.tensors().items()} == before
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_does_not_fit_is_refused_in_one_line_and_nothing_is_remembered():
    seen, paid = np.zeros(3), np.array([1.0, 2.0])
    agent = agent_of(counter_task())
    agent.observe(seen, 5, paid, seen, False)
    assert "shape (2,)" in refused(agent, np.zeros(2), 5, paid, seen, False)
    assert "shape (4,)" in refused(agent, seen, 5, paid, np.zeros(4), False)
    assert "pays a number" in refused(agent, seen, 5, 1.0, seen, False)
    assert "'ones' is not finite" in refused(agent, seen, 5, np.array([1.0, np.inf]), seen, False)
    assert "5 to 6" in refused(agent, seen, 0, paid, seen, False)
    agent.observe(seen, 6, paid, seen, True)
    assert agent.steps == 2


def test_many_episodes_and_worlds_are_refused():
    seen = np.zeros(3)
    many = mad.Task.from_gymnasium(SyncVectorEnv([Counter] * 2), [mad.Advisor("steps")])
    assert "vector environment" in refused(agent_of(many), seen, 0, 1.0, seen, False)
    cart = mad.make("CartPole-v1")
    assert "envs is 2" in refused(agent_of(cart, n_envs=2), np.zeros(4), 0, 1.0, np.zeros(4), False)
    world = mad.make("two-goal")
    assert "compiled world" in refused(agent_of(world), world.initial_state(), 0, 1.0, world.initial_state(), False)


def test_a_checkpoint_of_an_observer_is_refused_where_nothing_can_be_observed():
    agent = agent_of(mad.make("two-goal"))
    tensors = agent._learner.tensors()
    with pytest.raises(mad.BadInput, match="is a compiled world"):
        agent._learner.restore({**tensors, "episodes watching": np.ones(1, np.int64)})


@pytest.mark.slow
def test_cart_pole_in_the_loop_that_everybody_writes():
    """The pole's own environment, its own seeds: it is learned from, and the agent's environment was never touched."""
    env = gymnasium.make("CartPole-v1")
    agent = mad.MultiAdvisor(mad.make("CartPole-v1"), gamma=0.99, learner=dataclasses.replace(QUICK, buffer_size=2000))
    observation, _ = env.reset(seed=0)
    for _ in range(600):
        action = agent.act(observation, explore=True)
        following, reward, terminated, truncated, info = env.step(action)
        agent.observe(observation, action, reward, following, terminated, truncated, info)
        observation = env.reset()[0] if terminated or truncated else following
    assert agent.steps == 600
    assert agent.episodes > 5
    assert agent._learner.updates == 268
    assert agent.evaluate(episodes=1).length > 1
