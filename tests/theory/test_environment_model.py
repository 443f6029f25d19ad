"""Users' own environments as finite MDPs: listed, explored and estimated, against closed forms and each other."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed, typed
from multiadvisor.analysis.checks.task_check import check_task
from multiadvisor.analysis.theory import environment_model
from multiadvisor.analysis.theory.environment_model import played
from refusal import refused


class Teas(gymnasium.Env):
    """Five cells, a cup of tea at either end, and an action that waits; what is hidden or random may be added."""

    observation_space, action_space = gymnasium.spaces.Discrete(5), gymnasium.spaces.Discrete(3)

    def __init__(self, slips=0.0, sleeps=0, copies=True):
        self.slips, self.sleeps, self.copies = slips, sleeps, copies

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 2, 0
        return self.at, {}

    def step(self, action):
        self.steps += 1
        asleep = self.sleeps and self.steps % self.sleeps == 0
        if not asleep and self.np_random.random() >= self.slips:
            self.at += int(action) - 1
        return self.at, float(self.at in (0, 4)), self.at in (0, 4), False, {}

    def __deepcopy__(self, memo):
        if not self.copies:
            raise TypeError("this environment is a robot")
        new = Teas(self.slips, self.sleeps)
        new.__dict__ |= self.__dict__
        return new


def paid_at(**ends):
    """An advisor for each of these states, paid for arriving there."""
    return [mad.Advisor(name, reward=lambda t, end=end: float(t.next_observation == end)) for name, end in ends.items()]


def teas(**how):
    return mad.make(gymnasium.wrappers.TimeLimit(Teas(**how), 50), advisors=paid_at(west=0, east=4))


def enumerated(task, monkeypatch, *, table):
    """By its table, or as if it had none."""
    if not table:
        monkeypatch.setattr(environment_model, "transition_table", hidden)
    mdp = mad.theory.enumerate_task(task)
    monkeypatch.undo()
    return mdp


def hidden(env):
    raise environment_model._Unknown("it shows no table")


def test_closed_forms():
    lake = mad.theory.enumerate_task(mad.make("FrozenLake-v1", is_slippery=False))
    assert lake.known.startswith("11 states, from the environment's own table of transitions")
    values, _ = mad.theory.optimum(lake, 0.9)
    assert values[int(lake.start.argmax())].max() == pytest.approx(0.9**5)  # six steps, the last of which is paid
    cliff = mad.theory.enumerate_task(mad.make("CliffWalking-v1"))
    values, _ = mad.theory.optimum(cliff, 1.0)
    assert values[int(cliff.start.argmax())].max() == pytest.approx(-13.0)
    taxi = mad.theory.enumerate_task(mad.make("Taxi-v4"))
    assert (taxi.states, int((taxi.start > 0).sum())) == (400, 300)
    assert mad.theory.optimum(taxi, 0.99)[0].max() == pytest.approx(20.0)  # the passenger is in the taxi, at the hotel


@pytest.mark.parametrize(("name", "options"), [("FrozenLake-v1", {"is_slippery": False}), ("CliffWalking-v1", {})])
def test_what_is_explored_is_what_is_listed(name, options, monkeypatch):
    task = mad.make(name, **options)
    listed, explored = (enumerated(task, monkeypatch, table=table) for table in (True, False))
    assert "explored breadth first" in explored.known
    order = [listed.labels.index(label) for label in explored.labels]
    assert sorted(order) == list(range(listed.states))
    values = [mad.theory.solve(mdp, "egocentric", 0.9).values for mdp in (listed, explored)]
    assert np.array_equal(values[0][:, order], values[1])


def test_two_teas_have_the_gamma_of_the_closed_form():
    """Beside a tea (the other is three steps away) staying is worth gamma (1 + gamma^2), drinking 1."""
    mdp = mad.theory.enumerate_task(teas())
    assert mdp.known == "3 states, explored breadth first by copying the environment, where nothing is random"
    critical = float(np.real(next(root for root in np.roots([1, 0, 1, -1]) if abs(root.imag) < 1e-12)))
    assert mad.theory.critical_gamma(mdp) == pytest.approx(critical, abs=1e-6)
    assert mad.theory.critical_gamma(mdp, "stuck") == pytest.approx(critical, abs=1e-6)
    assert {found.label for found in mad.theory.attractors(teas(), gamma=0.9)} == {"1", "3"}


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"slips": 0.1}, "does not always do the same"),
        ({"sleeps": 7}, "does not always do the same"),  # which no observation shows
        ({"copies": False}, "it cannot be copied (TypeError: this environment is a robot)"),
    ],
)
def test_where_nothing_else_is_left_it_is_estimated_and_said(how, why):
    task = teas(**how)
    mdp = mad.theory.enumerate_task(task, sample=4_000)
    assert mdp.estimated
    assert mdp.known.startswith("estimated from 4,000 steps, as they happened: 3 states, 100.0% of their actions tried")
    assert why in mdp.known
    if "sleeps" not in how:
        stays = mdp.probability[0, 0, mdp.successor[0, 0] == 0].sum()  # in the middle, going west
        assert stays == pytest.approx(how.get("slips", 0.0), abs=0.03)
    refused("cannot be listed", mad.theory.enumerate_task, task, sample=0)


def test_a_recorded_sample_and_how_much_of_it_was_seen():
    task = teas()
    west = [step for step in played(task, 3_000) if step.action != 2]  # who never went east
    mdp = mad.theory.enumerate_task(task, sample=west)
    assert mdp.estimated
    assert "66.7% of their actions tried" in mdp.known
    east, tried = mdp.successor[:, 2], mdp.probability[:, 2] > 0
    for state in range(mdp.states):  # what was never tried is the mean of what was
        mean = np.zeros(mdp.states)
        for action in range(2):
            inside = ~mdp.final[state, action]
            np.add.at(mean, mdp.successor[state, action][inside], mdp.probability[state, action][inside] / 2)
        inside = tried[state] & ~mdp.final[state, 2]
        seen = np.zeros(mdp.states)
        np.add.at(seen, east[state][inside], mdp.probability[state, 2][inside])
        assert np.allclose(seen, mean)
    refused("has no step", mad.theory.enumerate_task, task, sample=[])


def test_local_states_activity_and_terms_are_those_of_training():
    advisors = [
        mad.Advisor("right", reward=lambda t: float(t.next_observation % 4 == 3), state=lambda seen: seen % 4, states=4,
                    active=lambda seen: seen < 12),
        mad.Advisor("goal", weight=2.0),
    ]  # fmt: skip
    mdp = mad.theory.enumerate_task(mad.make("FrozenLake-v1", advisors=advisors, is_slippery=False))
    row, names = mdp.local[0], [int(label.split()[-1]) for label in mdp.labels]
    assert [(value < 0) for value in row] == [name >= 12 for name in names]
    assert len(set(row[row >= 0].tolist())) == 4
    assert mdp.weights.tolist() == [1.0, 2.0]
    assert mdp.reward[names.index(2), 2, 0] == 1.0


def test_the_command_says_how_it_knows(capsys):
    result = printed(capsys, "solve", "FrozenLake-v1")
    assert (result["estimated"], result["attractors"], result["stuck"]) == (False, [], [])
    assert result["model"].startswith("11 states, from the environment's own table of transitions")
    bins = ["--bins=-2.4:2.4:2,-3:3:2,-.2:.2:2,-3:3:2", "--sample", "600"]
    code, text, _ = typed(capsys, "solve", "CartPole-v1", *bins)
    assert code == 0
    assert "estimated from 600 steps, as they happened" in text
    assert "of the estimate, not of the environment itself" in text


def test_advisors_that_the_solver_does_not_know_are_refused():
    west = teas().advisors[0]
    for changes, said in (
        ({"advises": lambda seen: True}, "'west' has `advises`"),
        ({"ended": lambda t: t.next_observation == 1}, "ends where it is still active"),
        ({"reward": lambda t: float("nan")}, "paid what is not finite"),
    ):
        refused(said, mad.theory.enumerate_task, mad.make(Teas(), advisors=[replace(west, **changes)]))
    refused("leave x out", mad.theory.enumerate_task, teas(), np.array([2]))


def test_a_table_that_a_wrapper_contradicts_is_not_believed():
    class Slower(gymnasium.Wrapper):
        def step(self, action):
            seen, reward, *rest = self.env.step(action)
            return seen, reward - 0.01, *rest

    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    mdp = mad.theory.enumerate_task(mad.make(Slower(lake)))
    assert "explored breadth first" in mdp.known
    assert mdp.reward.min() == pytest.approx(-0.01)


def test_a_function_that_wants_more_than_the_table_has_is_given_steps(monkeypatch):
    masks = mad.Advisor("moves", reward=lambda t: float(t.info["action_mask"].sum()))
    monkeypatch.setattr(environment_model, "MOST_EXPLORED", 5)
    mdp = mad.theory.enumerate_task(mad.make("Taxi-v4", advisors=[masks]), sample=50)
    assert mdp.estimated


def test_an_agent_can_learn_on_where_it_was():
    task = teas()
    agents = [mad.MultiAdvisor(task if copy else teas(), seed=1) for copy in (True, False)]
    for k, agent in enumerate(agents):
        agent.learn(30, progress=False)
        if k == 0:
            mad.theory.enumerate_task(task)
        agent.learn(100, progress=False)
    assert np.array_equal(*(agent.preferences(2) for agent in agents))


def test_check_says_where_egocentric_advisors_would_be_stuck():
    lake = {"is_slippery": False, "desc": ["FFFFG", "FFSFF", "GFFFF"]}
    task = mad.make("FrozenLake-v1", advisors=paid_at(north=4, south=10), **lake)
    (remark,) = check_task(task, steps=200).remarks
    assert remark.defect == "may-get-stuck"
    assert "at gamma = 0.9 greedy play never earns from" in remark.message
    assert not check_task(mad.make("FrozenLake-v1"), steps=200).remarks
