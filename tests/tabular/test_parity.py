"""The readable reference and the compiled kernel: the same actions and the same bytes, transition by transition."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import AdapterSource, ArbitratedReference, CompiledSource, reference

import multiadvisor as mad
from multiadvisor.core import rng
from multiadvisor.core.plannings import TARGET
from multiadvisor.envs.worlds.gadgets import finite_task
from multiadvisor.learners.tabular import switch

# what values a policy that is given with the advisor is tried where there is one (`test_goals`)
PLANNINGS = [planning.name for planning in switch.SHIPPED_PLANNINGS if TARGET not in planning.needs]


def reference_of(agent, source, table):
    key = rng.stream_key(agent.settings.seed, rng.TRAINING)
    return reference(agent._learner.task, agent.settings, source, table, key)


def assert_compiled_parity(task, steps, **how):
    agent = mad.MultiAdvisor(task, **how)
    source = CompiledSource(agent._learner.task, rng.stream_key(agent.settings.seed, rng.TRAINING))
    told = reference_of(agent, source, np.zeros_like(agent._learner.table))
    for _ in range(10):
        told.learn(steps // 10)
        agent._learner.run(steps // 10)
        assert np.array_equal(agent._learner.table, told.table)
        if isinstance(told, ArbitratedReference):
            assert np.array_equal(agent._learner.extra.table, told.claims)
    assert agent.steps == told.step
    assert np.count_nonzero(told.table) > 3


def varied(task):
    """The same task with weights of both signs and discounts of their own."""
    advisors = [
        dataclasses.replace(f, weight=(-0.5, 1.0, 2.25)[j % 3], gamma=(None, 0.5, 0.97)[j % 3])
        for j, f in enumerate(task.advisors)
    ]
    return dataclasses.replace(task, advisors=tuple(advisors))


@pytest.mark.parametrize("planning", PLANNINGS)
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("rules", ["paper", "hra"])
def test_pac_boy(planning, noise, rules):
    assert_compiled_parity(mad.make("pac-boy", rules=rules), 1500, planning=planning, noise=noise, seed=7)


@pytest.mark.parametrize("planning", PLANNINGS)
def test_pac_boy_with_weights_and_gammas_of_their_own(planning):
    how = {"planning": planning, "epsilon": 0.3, "alpha_half": 300, "epsilon_half": 400, "seed": 1}
    assert_compiled_parity(varied(mad.make("pac-boy")), 1000, **how)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("name", ["pac-boy", "fruit-grid", "three-fruits", "four-fruits"])
def test_an_estimate_of_the_aggregator(name, noise):
    how = {"planning": "estimate", "noise": noise, "epsilon": 0.2}
    assert_compiled_parity(varied(mad.make(name)), 1500, **how, seed=2)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("name", ["pac-boy", "fruit-grid", "two-goal"])
def test_linear_q_learning(name, noise):
    assert_compiled_parity(mad.make(name), 1500, learner="linear", noise=noise, epsilon=0.2, alpha_half=5000, seed=2)


@pytest.mark.parametrize("planning", PLANNINGS)
@pytest.mark.parametrize("name", ["fruit-grid", "three-fruits", "four-fruits", "two-goal", "dollars-and-euros"])
def test_other_tasks(planning, name):
    assert_compiled_parity(varied(mad.make(name)), 1000, planning=planning, epsilon=0.3, noise=0.01, gamma=0.8)


@pytest.mark.slow
def test_a_corner_where_ghosts_meet(tmp_path):
    """Three ghosts in a corridor: they stand on each other's rows of the shared table all the time."""
    maze = tmp_path / "maze.txt"
    maze.write_text("GGG.P\n####.\n")
    for planning in PLANNINGS:
        assert_compiled_parity(mad.make("pac-boy", maze=str(maze)), 1500, planning=planning, epsilon=0.5, seed=3)
    estimate = {"planning": "estimate"}
    assert_compiled_parity(mad.make("pac-boy", maze=str(maze)), 1500, **estimate, epsilon=0.5, seed=3)


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


@pytest.mark.parametrize("planning", PLANNINGS)
@pytest.mark.parametrize("advisors", [3, 12])
def test_shared_tables_in_which_advisors_cross(planning, advisors):
    assert_compiled_parity(ring(advisors), 600, planning=planning, epsilon=0.3)


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
    task = random_mdp(states, actions, advisors, seed)
    agent = mad.MultiAdvisor(task, planning=planning, noise=noise, epsilon=0.2, seed=seed)
    source = CompiledSource(task, rng.stream_key(seed, rng.TRAINING))
    told = reference_of(agent, source, np.zeros_like(agent._learner.table))
    told.learn(200)
    agent._learner.run(200)
    assert agent._learner.table == pytest.approx(told.table, abs=1e-6, rel=0)


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


@pytest.mark.slow
@pytest.mark.parametrize("planning", PLANNINGS)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_adapter(planning, noise):
    how = {"planning": planning, "noise": noise, "epsilon": 0.2, "alpha_half": 1000, "epsilon_half": 900,
           "seed": 5}  # fmt: skip
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Errands(), errand_advisors()), **how)
    twin = mad.Task.from_gymnasium(Errands(), errand_advisors())
    table = np.zeros((4000, 3))
    told = reference_of(agent, AdapterSource(twin, 5), table)
    for _ in range(8):
        agent._learner.run(400)
        told.learn(400)
        rows = twin.adapter.rows
        assert rows == agent._learner.adapter.rows
        assert np.array_equal(agent._learner.table[:rows], table[:rows])
    assert np.count_nonzero(table) > 100


@pytest.mark.slow
@pytest.mark.parametrize("planning", PLANNINGS)
def test_adapter_on_a_vector_reward(planning):
    make = lambda: mad.Task.from_gymnasium(gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0))  # noqa: E731
    agent, twin, table = mad.MultiAdvisor(make(), planning=planning), make(), np.zeros((64, 3))
    told = reference_of(agent, AdapterSource(twin, 0), table)
    agent._learner.run(3000)
    told.learn(3000)
    assert np.array_equal(agent._learner.table, table[: len(agent._learner.table)])
    assert agent.task.n == 2
