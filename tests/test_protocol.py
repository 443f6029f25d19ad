"""Every learner offers what the protocol says, under the same names."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.learners.gvf.gvf_spec import Aims, Goals
from multiadvisor.learners.protocol import Decider, Learner

PARTS = {**vars(Decider), **vars(Learner)}
OFFERED = {name: part for name, part in PARTS.items() if part.__doc__ and not name.startswith("_")}


def environment(**how):
    return mad.MultiAdvisor(mad.Task.from_gymnasium("FrozenLake-v1"), **how)


def lake():
    """The frozen lake with a general value function for each of its cells, and an advisor that points at the second."""
    goals = Goals(
        16, np.arange(16), int, lambda x, look: Aims(np.array([1]), np.ones(1)), lambda x, y, r: np.array([r])
    )
    return replace(mad.Task.from_gymnasium("FrozenLake-v1", is_slippery=False), goals=goals)


AGENTS = {
    "a compiled world": lambda: mad.MultiAdvisor(mad.make("two-goal")),
    "linear": lambda: mad.MultiAdvisor(mad.make("two-goal"), learner="linear"),
    "an environment": environment,
    "a bank": lambda: mad.MultiAdvisor(lake()),
    "a network": lambda: environment(learner=mad.DQN(hidden=(4,), buffer_size=50, batch_size=16)),
}


def actor():
    small = {"hidden": (4,), "buffer_size": 50, "batch_size": 16}
    return mad.MultiAdvisor(mad.Task.from_gymnasium("Pendulum-v1"), learner=mad.SAC(**small))


@pytest.mark.parametrize("name", [*AGENTS, "an actor"])
def test_learners_offer_what_the_protocol_says(name):
    agent = {**AGENTS, "an actor": actor}[name]()
    assert set(OFFERED) > {"steps", "consult", "run", "evaluate", "explore", "observe", "tensors", "restore"}
    for name, promised in OFFERED.items():
        own = getattr(agent._learner, name)
        assert callable(own) != isinstance(promised, property), name
        if callable(own):
            assert ["self", *inspect.signature(own).parameters] == [*inspect.signature(promised).parameters], name


@pytest.mark.parametrize("name", AGENTS)
def test_the_agent_runs_on_nothing_else(name):
    """A learner behind a fence that lets only the protocol through is as good as the learner itself."""
    agent = AGENTS[name]()

    class Fence:
        def __init__(self, learner):
            self._behind = learner

        def __getattr__(self, part):
            assert part in OFFERED, f"the agent asks its learner for {part!r}"
            return getattr(self._behind, part)

    agent._learner = Fence(agent._learner)
    state = agent.task.initial_state() if agent.task.world is not None else 0
    agent._prepare().learn(40, progress=False).evaluate(episodes=1)
    assert agent.act(state) in range(len(agent.task.actions))
    assert agent.act(state, explore=True) in range(len(agent.task.actions))
    assert agent.steps == 40
    assert agent.advice(state)[0]
    agent.explain(state)
