"""A step that fails is no part of a run: whoever catches the error and goes on learns from true transitions alone."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import multiadvisor as mad
from agents import remembered, same
from multiadvisor.learners.gvf.gvf_spec import FRONTIER, Aims, Goals

PLACES, LENGTH = 5, 6
NETWORK = {"hidden": (4,), "learning_starts": 500, "batch_size": 8, "buffer_size": 400}  # plays, and updates nothing


class Ring(gymnasium.Env):
    """Action a leads from place p to p + 1 + [a > 0], and pays 10 p + a. In one of its steps something goes wrong."""

    fails = (None, 0)  # how, and in which step of all

    def __init__(self, real=False):
        self.action_space = spaces.Box(-1, 1, (1,)) if real else spaces.Discrete(2)
        self.observation_space, self.steps, self.owed = spaces.Box(0, PLACES, (1,), np.int64), 0, False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.owed and self.fails[0]:
            self.owed = False
            raise RuntimeError("the line was down")
        self.at, self.elapsed = int(self.np_random.integers(PLACES)), 0
        return np.array([self.at]), {}

    def step(self, action):
        a = float(np.ravel(action)[0])
        pay, self.at = 10.0 * self.at + a, follower(self.at, a)
        self.steps, self.elapsed = self.steps + 1, self.elapsed + 1
        seen, info = np.array([self.at]), {"pay": pay}
        how = self.fails[0] if self.steps == self.fails[1] else None
        if how == "raises":
            raise RuntimeError("the line was down")
        if how == "lacks":
            info = {}
        if how == "nan":
            pay, info = np.nan, {"pay": np.nan}
        if how == "shape":
            seen = np.zeros(3)
        if how == "reset":
            self.owed = True
        return seen, pay, False, self.elapsed == LENGTH, info


def follower(place, a):
    return (place + 1 + int(a > 0)) % PLACES


ADVISORS = [mad.Advisor("pay", reward="info:pay")]


def single(real=False):
    return mad.Task.from_gymnasium(Ring(real), ADVISORS)


def vector(mode, real=False):
    return mad.Task.from_gymnasium(SyncVectorEnv([lambda: Ring(real)] * 2, autoreset_mode=mode), ADVISORS)


def bank():
    goals = Goals(
        PLACES, np.arange(PLACES), lambda x: int(x[0]) if x.shape == (1,) else -1,
        lambda x, look: Aims(np.array([FRONTIER]), np.ones(1)), lambda before, after, reward: np.array([reward]),
    )  # fmt: skip
    return mad.task.replace(mad.Task.from_gymnasium(Ring(), ADVISORS), goals=goals)


# where the step is no part of the run, so that an environment that is mended goes on as if nothing had been
SAID = {"raises": "the line was down", "lacks": "advisor 'pay' takes info:pay, which the info of a step lacks"}
ALONE = ("tables", "bank", "network", "actor")
HOWS, UNPAID = ("raises", "lacks", "nan", "shape", "reset"), ("bank", "lacks")  # it is paid the reward itself
NEXT, SAME = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
DEEP = mad.DQN(**NETWORK)
AGENTS = {
    "tables": lambda: mad.MultiAdvisor(single(), alpha=1.0, gamma=0.0, epsilon=1.0),
    "bank": lambda: mad.MultiAdvisor(bank(), epsilon=1.0),
    "network": lambda: mad.MultiAdvisor(single(), learner=DEEP),
    "network, next step": lambda: mad.MultiAdvisor(vector(NEXT), learner=DEEP),
    "network, same step": lambda: mad.MultiAdvisor(vector(SAME), learner=DEEP),
    "actor": lambda: mad.MultiAdvisor(single(True), learner=mad.SAC(**NETWORK)),
    "actor, next step": lambda: mad.MultiAdvisor(vector(NEXT, True), learner=mad.SAC(**NETWORK)),
    "actor, same step": lambda: mad.MultiAdvisor(vector(SAME, True), learner=mad.SAC(**NETWORK)),
}


def transitions(agent):
    """Where, what was done, what was paid, and where it led: all that the learner remembers; None: it does not know."""
    learner, found = agent._learner, []
    if hasattr(learner, "memory"):
        parts = remembered(agent)[:4]
        found = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1).tolist()
    elif hasattr(learner, "rooms"):
        room = learner.rooms[0]
        for state, action, k in np.argwhere(room.model.seen > 0).tolist():
            where, there = room.met[state], room.met[room.model.follower[state, action, k]]
            found += [(where, action, None, there)] * int(room.model.seen[state, action, k])
    else:
        seen = learner.adapter.views[0].seen
        for key, first in seen.items():
            where = int(np.frombuffer(key, np.int64)[0])
            found += [(where, a, pay, None) for a, pay in enumerate(learner.table[first]) if pay != 0]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "how"), [(kind, how) for kind in AGENTS for how in HOWS if (kind, how) != UNPAID])
def test_going_on_after_an_error(kind, how, monkeypatch, tmp_path):
    whole = AGENTS[kind]().learn(40)
    for when in (1, 2, LENGTH, LENGTH + 3):
        agent = AGENTS[kind]()
        env = agent.task.adapter.env
        for each in getattr(env, "envs", [env]):
            each.unwrapped.steps = 0
        monkeypatch.setattr(Ring, "fails", (how, when))
        with pytest.raises((mad.BadInput, RuntimeError, ValueError), match=SAID.get(how)):
            agent.learn(40)
        monkeypatch.setattr(Ring, "fails", (None, 0))
        agent.save(tmp_path)
        assert mad.load(tmp_path, agent.task).steps == agent.steps
        agent.learn(40 - agent.steps)
        assert agent.steps in (40, 41)
        if how in SAID and kind in ALONE:
            assert same(agent, whole)
        found = transitions(agent)
        assert len(found) >= (agent.steps if "network" in kind or "actor" in kind else 5)
        for place, a, pay, after in found:
            assert pay is None or pay == pytest.approx(10 * place + a), (when, place, a, pay)
            assert after is None or after == follower(place, a), (when, place, a, after)
        agent.save(tmp_path)
        assert mad.load(tmp_path, agent.task).learn(20).steps >= 60


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in AGENTS if kind != "bank"])
def test_somebody_else_in_the_same_environment(kind):
    """Another agent, a check, a task whose terms are looked for: none of them leads an episode elsewhere unnoticed."""
    agent = AGENTS[kind]().learn(9)
    env, task = agent.task.adapter.env, agent.task
    others = [lambda: mad.Task.from_gymnasium(env, "info:pay"), lambda: agent.evaluate(episodes=1)]
    others.append(lambda: mad.MultiAdvisor(task, agent.settings).learn(3))
    for other in others:
        other()
        agent.learn(10)
    for place, a, pay, after in transitions(agent):
        assert pay == pytest.approx(10 * place + a)
        assert after is None or after == follower(place, a)
