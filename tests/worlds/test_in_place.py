"""Environments that reuse all they give, and write over what they are given: the same is learned, kept and drawn.

Whatever is kept of a step beyond the step is a copy. Each case is played twice: in an environment that gives fresh
objects, and in one that changes observation, info, reward, pictures and actions in place.
"""

import copy

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

import multiadvisor as mad
from agents import same
from multiadvisor.analysis.episodes import record
from multiadvisor.envs.step import copied, one_episode
from multiadvisor.learners.ensembles.algorithm_selection import Portfolio
from multiadvisor.learners.ensembles.ensemble import Ensemble
from multiadvisor.learners.gvf.gvf_spec import Aims, Goals
from multiadvisor.runs.pictures import with_pictures

PLACES = 5
CHOICES = {"one": spaces.Discrete(3), "several": spaces.MultiDiscrete([3, 2]), "real": spaces.Box(-1, 2, (1,))}
NETWORK = mad.DQN(hidden=(8,), learning_starts=16, batch_size=8, buffer_size=200, updates_at_once=1)
ACTOR = {"hidden": (8,), "learning_starts": 16, "batch_size": 8, "buffer_size": 200, "train_freq": 4}


class Ring(gymnasium.Env):
    """Places in a ring; an action leads on by its first number, rounded. The place arrived in is what `info` pays."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(self, choice="one"):
        self.action_space, self.observation_space = CHOICES[choice], spaces.Box(0, 12, (2,), np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = int(self.np_random.integers(PLACES)), 0
        return np.array([self.at, 0]), {}

    def step(self, action):
        self.at, self.steps = (self.at + round(float(np.ravel(action)[0]))) % PLACES, self.steps + 1
        terms = np.array([self.at, -float(np.ravel(action)[-1])])
        info = {"place": float(self.at), "terms": {"pair": terms}}
        return np.array([self.at, self.steps % 2]), float(terms.sum()), False, self.steps == 12, info

    def render(self):
        return np.full((4, 4, 3), 40 * self.at, np.uint8)


def laid(room, name, value):
    """The value in the one place that a name has; what was given before is written over."""
    if isinstance(value, dict):
        whole = room.setdefault(name, {})
        whole.clear()
        whole.update({key: laid(room, (name, key), part) for key, part in value.items()})
        return whole
    if isinstance(value, np.ndarray):
        room.setdefault(name, value)
        if room[name].shape == value.shape:
            room[name][...] = value
            return room[name]
    return value


def spoil(action):
    """As an environment does that scales or clips its action in place."""
    if isinstance(action, np.ndarray):
        action[...] = 0


class Reusing(gymnasium.Wrapper):
    """The same objects in every step."""

    def __init__(self, env):
        super().__init__(env)
        self.room = {}

    def reset(self, **how):
        return tuple(laid(self.room, k, part) for k, part in enumerate(self.env.reset(**how)))

    def step(self, action):
        result = self.env.step(copy.copy(action))
        spoil(action)
        return tuple(laid(self.room, k if k < 1 else f"step {k}", part) for k, part in enumerate(result))

    def render(self):
        return laid(self.room, "picture", self.env.render())


class Parts(gymnasium.ObservationWrapper):
    """What is seen is a part of a dictionary."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Dict({"at": env.observation_space})

    def observation(self, observation):
        return {"at": observation}


class ReusingVector(VectorWrapper):
    """The same objects in every step of many episodes."""

    def __init__(self, env):
        super().__init__(env)
        self.room = {}

    reset, step = Reusing.reset, Reusing.step


def ring(reusing, choice="one"):
    return Reusing(Ring(choice)) if reusing else Ring(choice)


def told(transition):
    """A reward that looks at everything in a transition."""
    before, after = int(transition.observation[0]), int(transition.next_observation[0])
    own = float(np.ravel(transition.action)[0])
    assert after == (before + round(own)) % PLACES, (before, own, after)
    return before + 10.0 * own + 0.1 * after + transition.info["terms"]["pair"][1]


ADVISORS = [mad.Advisor("place", reward="info:place"), mad.Advisor("cost", reward="info:terms.pair.1")]
ALL = [*ADVISORS, mad.Advisor("told", reward=told)]


def task_of(reusing, choice="one", advisors=ALL):
    return mad.Task.from_gymnasium(ring(reusing, choice), advisors, name="ring")


def parts_task(reusing):
    env = Reusing(Parts(Ring())) if reusing else Parts(Ring())
    return mad.Task.from_gymnasium(env, ADVISORS, name="ring")


def goals_task(reusing):
    """A bank: two advisors that point at places."""
    goals = Goals(
        PLACES, np.arange(PLACES), lambda x: int(x[0]), lambda x, look: Aims(np.array([0, 3]), np.array([1.0, 0.5])),
        lambda before, after, reward: np.array([float(before[0] == 4), float(after[0])]), sweeps=5,
    )  # fmt: skip
    made = mad.Task.from_gymnasium(ring(reusing), [mad.Advisor("a"), mad.Advisor("b")], name="ring")
    return mad.task.replace(made, goals=goals)


def vector(reusing, choice, mode):
    episodes = SyncVectorEnv([lambda: Ring(choice)] * 3, copy=not reusing, autoreset_mode=mode)
    return mad.Task.from_gymnasium(ReusingVector(episodes) if reusing else episodes, ADVISORS, name="rings")


def learned(agent):
    return [agent.learn(60)]


def observed(agent, choice="one"):
    """In a loop of one's own, in which what comes next is not copied."""
    env = agent.task.adapter.env
    before = copied(env.reset(seed=3)[0])
    env.action_space.seed(3)
    for _ in range(60):
        action = env.action_space.sample()
        given = copy.copy(action)
        after, reward, terminated, truncated, info = env.step(given)
        agent.observe(before, action, reward, after, terminated, truncated, info)
        before = copied(env.reset()[0] if truncated else after)
    return [agent]


def in_an_ensemble(agent):
    ensemble = Ensemble({"one": agent})
    ensemble.task = agent.task
    observed(ensemble)
    return [agent]


def in_a_portfolio(agent):
    other = mad.MultiAdvisor(agent.task, alpha=0.3)
    portfolio = Portfolio({"one": agent, "other": other}, low=-1e3, high=1e3, exploration=lambda evaluation: 0.5)
    portfolio.play(agent.task.adapter.env, 3)
    return [agent, other]


NEXT, SAME = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
slow = pytest.mark.slow
CASES = {
    "tables": (lambda r: mad.MultiAdvisor(task_of(r)), learned),
    "tables, several": (lambda r: mad.MultiAdvisor(task_of(r, "several")), learned),
    "tables, parts": (lambda r: mad.MultiAdvisor(parts_task(r)), learned),
    "tables observe": (lambda r: mad.MultiAdvisor(task_of(r)), observed),
    "tables observe, several": (lambda r: mad.MultiAdvisor(task_of(r, "several")), observed),
    "bank": (lambda r: mad.MultiAdvisor(goals_task(r), epsilon=0.5), learned),
    "bank observes": (lambda r: mad.MultiAdvisor(goals_task(r), epsilon=0.5), observed),
    "ensemble": (lambda r: mad.MultiAdvisor(task_of(r)), in_an_ensemble),
    "portfolio": (lambda r: mad.MultiAdvisor(task_of(r)), in_a_portfolio),
    "network": (lambda r: mad.MultiAdvisor(task_of(r, "several"), learner=NETWORK), learned),
    "network, parts": (lambda r: mad.MultiAdvisor(parts_task(r), learner=NETWORK), learned),
    "network observes": (lambda r: mad.MultiAdvisor(task_of(r, "several"), learner=NETWORK), observed),
    "network in a portfolio": (lambda r: mad.MultiAdvisor(task_of(r), learner=NETWORK), in_a_portfolio),
    "network, vector": (lambda r: mad.MultiAdvisor(vector(r, "several", NEXT), learner=NETWORK), learned),
    "network, vector, same step": (lambda r: mad.MultiAdvisor(vector(r, "one", SAME), learner=NETWORK), learned),
    "actor": (lambda r: mad.MultiAdvisor(task_of(r, "real"), learner=mad.SAC(**ACTOR)), learned),
    "actor observes": (lambda r: mad.MultiAdvisor(task_of(r, "real"), learner=mad.SAC(**ACTOR)), observed),
    "actor, vector": (lambda r: mad.MultiAdvisor(vector(r, "real", NEXT), learner=mad.SAC(**ACTOR)), learned),
}


@slow
@pytest.mark.parametrize("case", CASES)
def test_the_same_is_learned(case):
    make, how = CASES[case]
    fresh, reused = (how(make(reusing)) for reusing in (False, True))
    assert all(same(one, other) for one, other in zip(fresh, reused, strict=True))
    assert fresh[0].steps >= 60


@slow
@pytest.mark.parametrize("case", ["tables, several", "tables, parts", "bank", "network", "actor"])
def test_the_same_is_evaluated_recorded_and_drawn(case):
    agents = [CASES[case][0](reusing).learn(30) for reusing in (False, True)]
    seen = [agent.evaluate(episodes=2).as_dict() for agent in agents]
    assert seen[0] == seen[1]
    traces = [with_pictures(record(agent, 2), agent.task) for agent in agents]
    for name in ("action", "reward", "observed", "advice", "taken", "gain"):
        one, other = (getattr(trace, name) for trace in traces)
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other), name
    assert traces[0].pictures.content == traces[1].pictures.content
    assert np.array_equal(traces[0].pictures.of, traces[1].pictures.of)


@pytest.mark.parametrize("choice", CHOICES)
def test_an_episode_is_kept_whole(choice):
    def steps(env):
        env.action_space.seed(1)
        return list(one_episode(env, 1, lambda seen: env.action_space.sample()))

    fresh, reused = steps(ring(False, choice)), steps(ring(True, choice))
    assert repr(fresh) == repr(reused)
    assert len({repr(step) for step in fresh}) > 6


@pytest.mark.parametrize("choice", CHOICES)
def test_the_check_finds_nothing_but_what_is_reused(choice):
    found = mad.check_task(task_of(True, choice), steps=50).findings
    assert {finding.defect for finding in found} <= {"reused-observation", "rewards-do-not-sum"}


def test_what_cannot_be_copied_does_not_keep_the_rest_from_it():
    whole = {"terms": np.zeros(1), "engine": (part for part in ())}
    kept = copied(whole)
    whole["terms"][0] = 5.0
    assert kept["terms"] == [0.0]
    assert kept["engine"] is whole["engine"]
