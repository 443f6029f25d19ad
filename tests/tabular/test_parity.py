"""The readable reference and the compiled kernel: the same actions and the same bytes, transition by transition."""

import dataclasses
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import AdapterSource, CompiledSource, reference

import multiadvisor as mad
from multiadvisor.core import rng
from multiadvisor.core.plannings import TARGET
from multiadvisor.envs.worlds.gadgets import finite_task
from multiadvisor.learners.tabular import switch
from multiadvisor.learners.tabular.rules.update_rules import extra_table

# what values a policy that is given with the advisor is tried where there is one (`test_goals`)
PLANNINGS = [planning.name for planning in switch.SHIPPED_PLANNINGS if TARGET not in planning.needs]


def reference_of(agent, source, table):
    key = rng.stream_key(agent.settings.seed, rng.TRAINING)
    return reference(agent._learner.task, agent.settings, source, table, key)


def assert_parity(agent, told, steps, rounds, rtol=0.0):
    """The agent and its reference learn in turn, and have the same tables, by default to the last bit."""
    learner = agent._learner
    for _ in range(rounds):
        told.learn(steps // rounds)
        learner.run(steps // rounds)
        pairs = [(learner.table, told.table)]
        if (besides := extra_table(learner.extra)) is not None:
            pairs.append((besides, getattr(told, "claims", told.plans)))
        rows = min(len(learner.table), len(told.table))
        for mine, theirs in pairs:
            np.testing.assert_allclose(mine[:rows], theirs[:rows], rtol=rtol, atol=rtol)
            assert not mine[rows:].any()
            assert not theirs[rows:].any()
    assert agent.steps == told.step


def assert_compiled_parity(task, steps, rounds=10, rtol=0.0, **how):
    agent = mad.MultiAdvisor(task, **how)
    source = CompiledSource(agent._learner.task, rng.stream_key(agent.settings.seed, rng.TRAINING))
    told = reference_of(agent, source, np.zeros_like(agent._learner.table))
    assert_parity(agent, told, steps, rounds, rtol)
    assert np.count_nonzero(told.table) > 3
    return agent


def assert_adapter_parity(make, steps, rounds, **how):
    """Of a task that `make` makes, once for each of both."""
    agent, twin = mad.MultiAdvisor(make(), **how), mad.MultiAdvisor(make(), **how)._learner.task
    told = reference_of(agent, AdapterSource(twin, agent.settings.seed), np.zeros((4000, len(twin.actions))))
    assert_parity(agent, told, steps, rounds)
    assert twin.adapter.rows == agent._learner.adapter.rows
    return agent


def varied(task):
    """The same task with weights of both signs and discounts of their own."""
    advisors = [
        dataclasses.replace(f, weight=(-0.5, 1.0, 2.25)[j % 3], gamma=(None, 0.5, 0.97)[j % 3])
        for j, f in enumerate(task.advisors)
    ]
    return dataclasses.replace(task, advisors=tuple(advisors))


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("name", ["pac-boy", "fruit-grid", "two-goal"])
def test_linear_q_learning(name, noise):
    assert_compiled_parity(mad.make(name), 1500, learner="linear", noise=noise, epsilon=0.2, alpha_half=5000, seed=2)


@pytest.mark.slow
def test_a_corner_where_ghosts_meet(tmp_path):
    """Three ghosts in a corridor: they stand on each other's rows of the shared table all the time."""
    maze = tmp_path / "maze.txt"
    maze.write_text("GGG.P\n####.\n")
    for planning in PLANNINGS:
        assert_compiled_parity(mad.make("pac-boy", maze=str(maze)), 1500, planning=planning, epsilon=0.5, seed=3)


def ring(n):
    """Places in a ring; advisor j looks j places ahead in one table: it arrives where its neighbour just learned."""
    places = 11
    successor = np.stack([(np.arange(places) + by) % places for by in (1, 2, 0)], axis=1)[:, :, None]
    reward = np.random.default_rng(0).normal(size=(places, 3, 1, n))
    task = finite_task(
        "ring", ("on", "leap", "stay"), tuple(f"j{j}" for j in range(n)), np.full(places, 1 / places),
        np.ones((places, 3, 1)), successor, reward, np.zeros((places, 3, 1)), limit=30,
    )  # fmt: skip
    local = (np.arange(places) + np.arange(n)[:, None]) % places
    world = dataclasses.replace(task.world, constants=task.world.constants._replace(local=local))
    advisors = tuple(dataclasses.replace(f, table="ring" if j < n - 1 else None) for j, f in enumerate(task.advisors))
    return dataclasses.replace(task, world=world, advisors=advisors)


OTHERS = ("fruit-grid", "three-fruits", "four-fruits", "two-goal", "dollars-and-euros")
TASKS = [
    (partial(mad.make, "pac-boy"), {"seed": 7}), (partial(mad.make, "pac-boy", rules="hra"), {"seed": 7, "noise": 0.1}),
    (lambda: varied(mad.make("pac-boy")), {"epsilon": 0.3, "alpha_half": 300, "epsilon_half": 400, "seed": 1}),
    *((lambda name=name: varied(mad.make(name)), {"epsilon": 0.3, "noise": 0.01, "gamma": 0.8}) for name in OTHERS),
    *((partial(ring, advisors), {"epsilon": 0.3}) for advisors in (3, 12)),
]  # fmt: skip


@pytest.mark.parametrize("planning", PLANNINGS)
@pytest.mark.parametrize(("make", "how"), TASKS)
def test_every_planning(make, how, planning):
    assert_compiled_parity(make(), 1000, planning=planning, **how)


def random_mdp(states, actions, advisors, seed):
    generator = np.random.default_rng(seed)
    outcomes = 3
    probability = generator.dirichlet(np.ones(outcomes), (states, actions))
    final = generator.random((states, actions, outcomes)) < 0.1
    final[0, 0, 0] = True
    return finite_task(
        "random", tuple(f"a{a}" for a in range(actions)), tuple(f"j{j}" for j in range(advisors)),
        generator.dirichlet(np.ones(states)), probability, generator.integers(states, size=probability.shape),
        generator.normal(size=(*probability.shape, advisors)), final, limit=40,
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 8), st.integers(1, 7), st.integers(1, 9), st.integers(0, 10_000), st.sampled_from(list(PLANNINGS)),
    st.sampled_from([0.0, 0.2]),
)  # fmt: skip
def test_random_finite_mdps(states, actions, advisors, seed, planning, noise):
    how = {"planning": planning, "noise": noise, "epsilon": 0.2, "seed": seed}
    agent = mad.MultiAdvisor(random_mdp(states, actions, advisors, seed), **how)
    source = CompiledSource(agent.task, rng.stream_key(seed, rng.TRAINING))
    assert_parity(agent, reference_of(agent, source, np.zeros_like(agent._learner.table)), 200, 1, rtol=1e-6)


class Errands(gymnasium.Env):
    """A ring of 12 places with errands that come and go; observation (place, errand A open, errand B open)."""

    def __init__(self):
        self.observation_space = spaces.MultiDiscrete([12, 2, 2])
        self.action_space = spaces.Discrete(3, start=1)

    def _look(self):
        return np.array([self.place, *self.open], np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.open, self.elapsed = int(self.np_random.integers(12)), [1, 1], 0
        return self._look(), {}

    def step(self, action):
        self.elapsed += 1
        self.place = (self.place + action - 2) % 12
        paid = [0.0, 0.0]
        for k, goal in enumerate((3, 8)):
            if self.open[k] and self.place == goal:
                self.open[k], paid[k] = 0, 1.0
            elif not self.open[k] and self.np_random.random() < 0.1:
                self.open[k] = 1  # an errand comes back: its advisor joins in mid-episode
        over = self.np_random.random() < 0.02
        return self._look(), sum(paid) - 0.1, bool(over), self.elapsed >= 60, {"paid": paid}


def errand_advisors():
    def near(observation):
        return int(observation[0])

    return [
        mad.Advisor("here A", reward=lambda t: t.info["paid"][0], state=near, states=12, table="errands",
                  active=lambda o: bool(o[1]), ended=lambda t: t.info["paid"][0] > 0),
        mad.Advisor("here B", reward=lambda t: t.info["paid"][1], state=lambda o: (int(o[0]) + 1) % 12, states=12,
                  table="errands", active=lambda o: bool(o[2]), ended=lambda t: t.info["paid"][1] > 0),
        mad.Advisor("time", reward=lambda t: -0.1, state=0, weight=0.5, gamma=0.6),
        mad.Advisor("whole", weight=-0.25),
        mad.Advisor("even", reward=lambda t: 0.2, weight=0.25, active=lambda o: o[0] % 2 == 0),
    ]  # fmt: skip


def errands(advisors=errand_advisors):
    return mad.Task.from_gymnasium(Errands(), advisors(), name="errands")


@pytest.mark.slow
@pytest.mark.parametrize("planning", PLANNINGS)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_adapter(planning, noise):
    how = {"planning": planning, "noise": noise, "epsilon": 0.2, "alpha_half": 1000, "epsilon_half": 900,
           "seed": 5}  # fmt: skip
    agent = assert_adapter_parity(errands, 3200, 8, **how)
    assert np.count_nonzero(agent._learner.table) > 100


@pytest.mark.slow
@pytest.mark.parametrize("planning", PLANNINGS)
def test_adapter_on_a_vector_reward(planning):
    make = lambda: mad.Task.from_gymnasium(gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0))  # noqa: E731
    assert assert_adapter_parity(make, 3000, 1, planning=planning).task.n == 2
