"""Several agents in one environment: whoever plays is alone, and nobody's episodes or values are touched by
another's."""

import threading
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from agents import same as alike
from multiadvisor.analysis.episodes import record
from multiadvisor.envs.env_lock import EnvironmentLock, lock_of
from multiadvisor.explorer.library import Library

SMALL = mad.DQN(hidden=(8,), learning_starts=20, batch_size=8, buffer_size=500, train_freq=4, updates_at_once=2)


class Meeting(gymnasium.Env):
    """Episodes of 12 steps with a random walk in them; some step waits a while for `meet`, if that is set."""

    observation_space = spaces.Box(-100, 100, (2,), np.int64)
    action_space = spaces.Discrete(2)
    meet = None

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.elapsed, self.place = 0, int(self.np_random.integers(5))
        return self.see(), {}

    def see(self):
        return np.array([self.elapsed, self.place])

    def step(self, action):
        if self.meet is not None:
            self.meet()
        self.elapsed += 1
        self.place += int(self.np_random.integers(-2, 3)) + int(action)
        return self.see(), float(self.place), self.elapsed >= 12, False, {}


def task():
    return mad.Task.from_gymnasium(Meeting(), [mad.Advisor("place", states=None)], name="meeting")


def together(*works):
    """All of them at once, each in a thread of its own; what they return."""
    found = [None] * len(works)

    def work(k):
        found[k] = works[k]()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("length", "action", "reward"))


@pytest.mark.slow
@pytest.mark.parametrize("deep", [None, SMALL], ids=["tables", "network"])
def test_two_agents_of_one_task_are_looked_at_at_once(deep):
    shared = task()
    agents = [mad.MultiAdvisor(shared, seed=seed, learner=deep).learn(60) for seed in range(2)]
    alone = [record(agent, 1, 4, draws=0) for agent in agents]
    library = Library(episodes=1, seed=4)
    names = [library.add_agent(agent, "a").id for agent in agents]
    barrier = threading.Barrier(2)

    def meet():
        try:
            barrier.wait(0.5)  # both in the middle of an episode, unless one of them has to wait outside
        except threading.BrokenBarrierError:
            return

    shared.adapter.env.unwrapped.meet = meet
    found = together(*(lambda name=name: library.recorded(name, 0)[0] for name in names))
    assert barrier.broken
    assert all(same(one, other) for one, other in zip(found, alone, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("deep", [None, SMALL], ids=["tables", "network"])
def test_an_episode_looked_at_during_training_changes_neither(deep):
    alone = mad.MultiAdvisor(task(), seed=1, learner=deep).learn(300)
    shared = task()
    player = mad.MultiAdvisor(shared, learner=deep).learn(60)
    episode = record(player, 1, 0)
    training = mad.MultiAdvisor(shared, seed=1, learner=deep).learn(37)
    asked, looked, main = threading.Event(), threading.Event(), threading.current_thread()

    def meet():
        if threading.current_thread() is main:  # in the middle of the training, and of an episode
            asked.set()
            looked.wait(0.5)
            env.meet = None

    def look():
        asked.wait()
        try:
            return record(player, 1, 0)
        finally:
            looked.set()

    env = shared.adapter.env.unwrapped
    env.meet = meet
    found = []
    thread = threading.Thread(target=lambda: found.append(look()))
    thread.start()
    training.learn(263)
    thread.join()
    assert same(found[0], episode)
    assert alike(training, alone)


def test_two_tasks_on_one_environment_find_back():
    """The stage is the environment's, not the task's."""
    env = Meeting()
    agents = [
        mad.MultiAdvisor(mad.Task.from_gymnasium(env, [mad.Advisor("place")], name="meeting"), seed=seed)
        for seed in range(2)
    ]
    for _ in range(4):
        for agent in agents:
            agent.learn(25)
    for seed, agent in enumerate(agents):
        alone = mad.MultiAdvisor(task(), seed=seed).learn(100)
        assert np.array_equal(agent._learner.table, alone._learner.table)


def test_preparing_a_network_is_noticed_by_whoever_was_in_the_environment():
    shared = task()
    first = mad.MultiAdvisor(shared, seed=1, learner=SMALL).learn(37)
    mad.MultiAdvisor(shared, seed=2, learner=SMALL)._prepare()
    first.learn(40)
    alone = mad.MultiAdvisor(task(), seed=1, learner=SMALL).learn(77)
    assert alike(first, alone)


def test_a_stage_is_handed_on_in_the_order_of_asking_and_may_be_taken_twice():
    stage, order = EnvironmentLock(), []

    def ask(name):
        with stage, stage:
            order.append(name)

    with stage:
        threads = []
        for name in range(5):
            threads.append(threading.Thread(target=ask, args=(name,)))
            threads[-1].start()
            while len(stage._waiting) <= name:
                time.sleep(0.001)
        stage.__exit__(None, None, None)
        with stage:  # asked for last
            order.append("again")
        stage.__enter__()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4, "again"]


def test_whoever_gives_up_waiting_does_not_block_the_others(monkeypatch):
    stage = EnvironmentLock()
    with stage:
        with monkeypatch.context() as patch:
            patch.setattr(threading, "get_ident", lambda: -1)
            patch.setattr(stage._changed, "wait_for", lambda condition: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                stage.__enter__()
        assert not stage._waiting
    with stage:
        pass


def test_a_wrapped_environment_has_the_stage_of_the_bare_one():
    env = Meeting()
    assert lock_of(gymnasium.wrappers.TimeLimit(env, 5)) is lock_of(env)
    assert lock_of(Meeting()) is not lock_of(env)
