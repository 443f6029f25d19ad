"""Spaces that are seldom met: numbers by themselves, of the shape (), and texts beside numbers."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import multiadvisor as mad
from multiadvisor.analysis.episode_report import report
from multiadvisor.analysis.episodes import play, record
from multiadvisor.runs.trace import replay
from refusal import refused

PLACES, WORDS = 4, ("one", "two", "three")
NETWORK = {"hidden": (8,), "learning_starts": 16, "batch_size": 8, "buffer_size": 200}
REAL, FEW = spaces.Box(-1, 1, (), np.float32), spaces.Discrete(2)
TEXT = spaces.Dict({"word": spaces.Text(8), "at": spaces.Box(0, PLACES, (2,))})


class Walk(gymnasium.Env):
    """From place to place in a ring; the action is paid what it is."""

    def __init__(self, actions, seen):
        self.action_space, self.observation_space = actions, seen

    def look(self):
        space = self.observation_space
        if space is TEXT:
            return {"at": np.full(2, 0.5, np.float32), "word": WORDS[self.steps % len(WORDS)]}
        return np.full(space.shape, self.at, space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return self.look(), {}

    def step(self, action):
        assert np.shape(action) == self.action_space.shape
        self.at, self.steps = (self.at + 1) % PLACES, self.steps + 1
        return self.look(), float(action), False, self.steps == 9, {}


DEEP, BINS = {"learner": mad.DQN(**NETWORK)}, mad.Bins([0.0], [float(PLACES)], [PLACES])
CASES = {
    "an action by itself": (REAL, spaces.Box(0, PLACES, (1,)), None, {"learner": mad.SAC(**NETWORK)}),
    "both by themselves": (REAL, spaces.Box(0, PLACES, ()), None, {"learner": mad.SAC(**NETWORK)}),
    "seen by itself, network": (FEW, spaces.Box(0, PLACES, ()), None, DEEP),
    "bytes by themselves, network": (FEW, spaces.Box(0, 255, (), np.uint8), None, DEEP),
    "seen by itself, table": (FEW, spaces.Box(0, PLACES, (), np.int64), None, {}),
    "seen by itself, bins": (FEW, spaces.Box(0, PLACES, ()), BINS, {}),
    "text, network": (FEW, TEXT, None, DEEP),
    "text, actor": (REAL, TEXT, None, {"learner": mad.SAC(**NETWORK)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_everything_works(case):
    actions, seen, bins, how = CASES[case]
    env = Walk(actions, seen)
    task = mad.Task.from_gymnasium(env, discretise=bins)
    agent = mad.MultiAdvisor(task, **how).learn(40)
    first = Walk(actions, seen).reset()[0]
    for explore in (False, True):
        assert agent.act(first, explore=explore) in actions
    agent.observe(first, agent.act(first), 1.0, first, terminated=False)
    assert agent.evaluate(episodes=1).length == 9
    assert agent.explain(first).sentence
    trace = record(agent, 1)
    replay(trace, task)
    assert len(trace.action) == 9
    episodes = play(agent, 1)
    period = len(WORDS) if seen is TEXT else PLACES
    assert episodes.places.ravel().tolist() == [step % period for step in range(10)] or seen is TEXT
    assert len(set(episodes.places.ravel().tolist())) == period
    assert len({episodes.label(0, step) for step in range(9)}) == period
    assert str(report(agent, episodes=1))
    if how:
        vector = SyncVectorEnv([lambda: Walk(actions, seen)] * 2)
        mad.MultiAdvisor(mad.Task.from_gymnasium(vector), **how).learn(40)
    assert not mad.check_task(task, steps=20).findings


def test_a_text_is_shown_as_it_is_and_numbers_beside_it_are_short():
    env = Walk(FEW, TEXT)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env), **DEEP)
    assert play(agent, 1).label(0, 1) == "(0.5, 0.5, two)"


def test_bins_take_a_number_by_itself_and_no_range_without_end():
    for number in (2.0, 2, np.float32(2), np.array(2.0)):
        assert BINS(number) == 2
    for wrong in ("x", None, np.str_("x"), [[1.0], [2.0, 3.0]]):
        refused("does not fit into bins of 1 components", BINS, wrong)
    refused("give a finite range", mad.Bins, [-1e308], [1e308], [4])
