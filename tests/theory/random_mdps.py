"""Random finite MDPs, for statements that must hold of all."""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from multiadvisor.analysis.theory import FiniteMDP

MANY = settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))


def transitions(generator, states, actions, outcomes=1):
    """[S, A, S]: each action leads to so many states, by chance where there are several."""
    found = np.zeros((states, actions, states))
    for _ in range(outcomes):
        to = generator.integers(states, size=(states, actions))
        weight = generator.random((states, actions)) + 0.01 if outcomes > 1 else 1.0
        np.add.at(found, (np.arange(states)[:, None], np.arange(actions), to), weight)
    return found / found.sum(axis=-1, keepdims=True)


def sparse(generator, shape, share):
    """Rewards from 0 to 1, most of which are 0."""
    return generator.random(shape) * (generator.random(shape) < share)


def sizes(draw, most_states, most_actions, most_advisors):
    """A generator, and how many states, actions and advisors."""
    return (
        np.random.default_rng(draw(st.integers(0, 2**32))),
        draw(st.integers(2, most_states)), draw(st.integers(2, most_actions)), draw(st.integers(1, most_advisors)),
    )  # fmt: skip


def ending(generator, states, actions, rewards, weights):
    """Sparse transitions, some of which end the episode."""
    transition = transitions(generator, states, actions, int(generator.integers(1, 5)))
    end = generator.random((states, actions)) * (generator.random((states, actions)) < 0.3)
    return FiniteMDP.from_arrays(transition * (1 - end)[:, :, None], rewards, end=end, weights=weights)
