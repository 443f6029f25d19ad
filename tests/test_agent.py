"""What agents learn, against closed forms of the paper; and that a run depends on its seed alone."""

import dataclasses
import signal
import threading
import time

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.envs.worlds.gadgets import finite_task
from refusal import refused


def trained(task, steps=60_000, **how):
    return mad.MultiAdvisor(task, epsilon=how.pop("epsilon", 0.5), **how).learn(steps)


@pytest.mark.parametrize(("gamma", "r1", "r2"), [(0.4, 1.0, 1.0), (0.7, 1.0, 2.0), (0.9, 1.0, 1.0), (0.6, 1.0, 2.0)])
def test_two_goal_closed_form(gamma, r1, r2):
    agent = trained(mad.make("two-goal", r1=r1, r2=r2), planning="egocentric", gamma=gamma)
    assert agent.preferences([0]) == pytest.approx([gamma * (r1 + r2), r1, r2], abs=1e-9)
    waits = gamma > max(r1, r2) / (r1 + r2)
    assert (agent.act([0]) == 0) == waits
    assert agent.evaluate(5).length == (50 if waits else 1)


@pytest.mark.parametrize("gamma", [0.45, 0.55, 0.9])
def test_three_fruits_closed_form(gamma):
    task = mad.make("three-fruits")
    agent = trained(task, 200_000, planning="egocentric", gamma=gamma)
    towards, south = gamma + 2 * gamma**3, 3 * gamma**2
    assert agent.preferences(task.initial_state()) == pytest.approx([towards, towards, south, towards], abs=1e-6)
    assert (task.actions[agent.act(task.initial_state())] == "S") == (gamma > 0.5)


def test_empathic_advisors_leave_the_three_fruit_attractor():
    agent = trained(mad.make("three-fruits"), 200_000, planning="empathic", gamma=0.9, epsilon=0.1)
    assert agent.evaluate(20).terminated == 1.0


def test_four_fruits_closed_form():
    task = mad.make("four-fruits")
    agent = trained(task, 300_000, planning="egocentric", gamma=0.6)
    assert agent.preferences(task.initial_state()) == pytest.approx([0.6 + 3 * 0.6**3] * 4, abs=1e-6)


@pytest.mark.parametrize("gamma", [0.55, 0.75])
def test_dollars_and_euros_threshold(gamma):
    failure = 0.1
    task = mad.make("dollars-and-euros", failure=failure)
    agent = trained(task, 400_000, planning="egocentric", gamma=gamma, alpha=0.002)
    value = (1 - failure) / (1 - failure * gamma)
    up, noop = 2 * ((1 - failure) * 0.6 + failure * gamma * value), 2 * gamma * value
    assert agent.preferences([0])[2:] == pytest.approx([up, noop], abs=0.03)
    assert (noop > up) == (gamma * (1 - failure) / (1 - failure * gamma) > 0.6)


def chain(end):
    """Two states, one action: a reward of 1 on leaving the second, and then the end, or the limit."""
    return finite_task(
        "chain", ("on", "on too"), ("all",), np.array([1.0, 0.0]), np.ones((2, 2, 1)),
        np.array([[[1], [1]], [[0], [0]]]), np.array([[[[0.0]], [[0.0]]], [[[1.0]], [[1.0]]]]),
        np.array([[[0], [0]], [[end], [end]]]), limit=2,
    )  # fmt: skip


def test_an_end_stops_bootstrapping_and_a_cut_does_not():
    gamma = 0.8
    ended, cut = trained(chain(1), gamma=gamma), trained(chain(0), gamma=gamma)
    assert ended.values("all")[:, 0] == pytest.approx([gamma, 1.0], abs=1e-9)
    # without an end: V(1) = 1 + gamma V(0), V(0) = gamma V(1)
    assert cut.values("all")[:, 0] == pytest.approx([gamma / (1 - gamma**2), 1 / (1 - gamma**2)], abs=1e-6)


def test_values_die_out_and_leave_no_denormals():
    agent = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.0, epsilon=1.0)
    agent._learner.table[:] = 1.0
    agent.learn(20_000)
    assert agent.values("goal 1").tolist() == [[0.0, 1.0, 0.0]]


def test_agnostic_sums_to_the_global_agnostic_values():
    task = mad.make("two-goal", r2=3.0)
    agent = trained(task, planning="agnostic", gamma=0.9)
    # V = (0.9 V + 1 + 3) / 3 for the sum of both advisors
    assert agent.preferences([0]) == pytest.approx([0.9 * 4 / 2.1, 1.0, 3.0], abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("make", "how"),
    [*((lambda: mad.make("pac-boy"), {"planning": one}) for one in ("egocentric", "agnostic", "empathic")),
     (lambda: mad.make("FrozenLake-v1"), {"gamma": 0.95})],
)  # fmt: skip
def test_a_run_depends_on_its_seed_alone(make, how, seed):
    """However it is cut, and whatever is asked of the agent between the pieces."""
    whole, cut = mad.MultiAdvisor(make(), seed=seed, **how).learn(5000), mad.MultiAdvisor(make(), seed=seed, **how)
    state = cut.task.initial_state() if cut.task.adapter is None else 3
    for piece in (1, 7, 992, 3000, 1000):
        cut.learn(piece)
        cut.evaluate(2)
        cut.act(state)
    assert whole._learner.table.tobytes() == cut._learner.table.tobytes()
    assert whole.evaluate(3).played.score.tobytes() == cut.evaluate(3).played.score.tobytes()


def test_seeds_differ():
    tables = {mad.MultiAdvisor(mad.make("pac-boy"), seed=s).learn(500)._learner.table.tobytes() for s in range(4)}
    assert len(tables) == 4


def test_two_agents_may_share_an_environment():
    task = mad.Task.from_gymnasium(gymnasium.make("FrozenLake-v1"))
    alone = mad.MultiAdvisor(task, seed=1).learn(3000)
    one, other = mad.MultiAdvisor(task, seed=1), mad.MultiAdvisor(task, seed=2, planning="agnostic")
    for _ in range(6):
        one.learn(500)
        other.learn(77)
    assert one._learner.table.tobytes() == alone._learner.table.tobytes()


def test_learns_frozen_lake():
    task = mad.Task.from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False))
    agent = mad.MultiAdvisor(task, gamma=0.95, epsilon=0.3, seed=0).learn(40_000)
    seen = agent.evaluate(5)
    assert (seen.score, seen.length, seen.terminated) == (1.0, 6.0, 1.0)


def test_evaluation_figures_agree_with_its_episodes():
    task = mad.make("pac-boy").with_weights(ghosts=0.5)
    seen = mad.MultiAdvisor(task).learn(20_000).evaluate(50, seeds=(1, 2))
    assert seen.episodes == 100
    assert seen.played.score == pytest.approx(seen.played.returns @ task.weights)
    assert seen.score_interval[0] < seen.score < seen.score_interval[1]
    assert seen.advisors["ghost 1"] == pytest.approx(seen.played.returns[:, 0].mean())
    assert seen.metrics["touches"] == pytest.approx(-seen.played.returns[:, :2].sum(axis=1).mean() / 10)
    assert "touches" in str(seen)


@pytest.mark.slow
def test_noise_changes_learning_and_not_the_episodes_played():
    """The values of two advisors wander about the truth by sigma * sqrt(alpha / (2 - alpha)), independently."""
    seeds, sigma, alpha = 400, 0.5, 0.1
    how = {"gamma": 0.0, "alpha": alpha, "noise": sigma, "epsilon": 1.0}
    agents = [mad.MultiAdvisor(mad.make("two-goal"), seed=s, **how).learn(600) for s in range(seeds)]
    first, second = (np.array([agent.values(j)[0] for agent in agents]) for j in (0, 1))  # [seeds, A]
    assert first.mean(axis=0) == pytest.approx([0.0, 1.0, 0.0], abs=5 * 0.115 / np.sqrt(seeds))
    assert first.std(axis=0) == pytest.approx(sigma * np.sqrt(alpha / (2 - alpha)), rel=0.2)
    assert abs(np.corrcoef(first[:, 0], second[:, 0])[0, 1]) < 5 / np.sqrt(seeds)
    assert set(agents[0].evaluate(50).played.score) <= {0.0, 1.0}


def test_linear_q_learning_has_the_papers_features_and_learns():
    agent = mad.MultiAdvisor(mad.make("pac-boy"), learner="linear", gamma=0.9)
    assert agent._learner.table.shape == (17_252, 4)
    before = agent.evaluate(40).score
    assert agent.learn(1_000_000).evaluate(40).score > before


def test_linear_q_learning_is_q_learning_where_there_is_one_feature():
    """One advisor with the whole state: the closed form of the optimum."""
    agent = trained(chain(0), gamma=0.8, learner="linear")
    assert agent.values("all")[:, 0] == pytest.approx([0.8 / (1 - 0.64), 1 / (1 - 0.64)], abs=1e-6)
    refused("unknown learner", mad.MultiAdvisor, chain(0), learner="quadratic")
    with pytest.raises(mad.BadInput, match="needs a compiled world"):
        mad.MultiAdvisor(mad.Task.from_gymnasium(gymnasium.make("FrozenLake-v1")), learner="linear")


def test_weights_decide():
    task = mad.make("two-goal").with_weights(**{"goal 2": -1.0})
    assert trained(task, 5000, gamma=0.3).act([0]) == 1
    refused("no advisor or group", task.with_weights, goal3=1.0)


def test_interrupting_loses_nothing():
    agent = mad.MultiAdvisor(mad.make("pac-boy"), seed=9)._prepare()
    threading.Timer(0.4, signal.raise_signal, [signal.SIGINT]).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        agent.learn(2_000_000_000)
    assert time.monotonic() - begun < 10
    done = agent.steps
    twin = mad.MultiAdvisor(mad.make("pac-boy"), seed=9).learn(done)
    assert twin._learner.table.tobytes() == agent._learner.table.tobytes()
    agent.learn(10)
    assert agent.steps == done + 10


def test_gamma_one_needs_an_end():
    mad.MultiAdvisor(chain(1), gamma=1.0)
    refused("no episode of 'chain' ever ends", mad.MultiAdvisor, chain(0), gamma=1.0)
    advisors = (dataclasses.replace(chain(0).advisors[0], gamma=1.0),)
    refused("choose it below 1", mad.MultiAdvisor, dataclasses.replace(chain(0), advisors=advisors), gamma=0.5)


def test_numpy_numbers_and_planning_functions_are_welcome():
    agent = mad.MultiAdvisor(mad.make("two-goal"), planning=mad.agnostic, gamma=np.float32(0.5), seed=np.int64(3))
    assert (agent.settings.planning, agent.settings.gamma, agent.settings.seed) == ("agnostic", 0.5, 3)
    assert "two-goal" in repr(agent)
    agent.learn(np.int64(5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda task, how=how: mad.MultiAdvisor(task, **how), message) for how, message in (
            ({"planning": "selfish"}, "unknown planning 'selfish'"), ({"gamma": 1.5}, "gamma is 1.5"),
            ({"gamma": float("nan")}, "gamma is nan"), ({"alpha": 0.0}, "alpha is 0"),
            ({"epsilon": -0.1}, "epsilon is -0.1"), ({"noise": -1.0}, "noise is -1.0"), ({"seed": -1}, "seed is -1"),
            ({"seed": 0.5}, "seed is 0.5"),
        )),
        *((lambda task, ask=ask: ask(mad.MultiAdvisor(task)), message) for ask, message in (
            (lambda agent: agent.learn(-1), "steps is -1"), (lambda agent: agent.learn(1.5), "steps is 1.5"),
            (lambda agent: agent.evaluate(0), "episodes is 0"), (lambda agent: agent.act([0, 0]), "is 1 integers"),
            (lambda agent: agent.evaluate(10.5), "episodes is 10.5"), (lambda agent: agent.act([0.5]), "not float64"),
            (lambda agent: agent.evaluate(1, seeds=()), "no seed"), (lambda agent: agent.act([5]), "must be below 1"),
            (lambda agent: agent.values(7), "advisor 7 is not among the 2"),
            (lambda agent: agent.values("goal 9"), "no advisor is called 'goal 9'"),
        )),
    ],
)  # fmt: skip
def test_wrong_settings_and_calls(call, message):
    refused(message, call, mad.make("two-goal"))


def test_what_advisors_have_counted_of_the_aggregator_is_part_of_an_estimating_agent():
    whole, real = (mad.MultiAdvisor(mad.make("pac-boy"), planning=one).learn(3000) for one in ("estimate", "empathic"))
    assert whole.tensors()["counts"].sum() > 3000
    assert "counts" not in real.tensors()
    assert not np.array_equal(real._learner.table, whole._learner.table)


def test_with_full_states_the_estimate_is_the_aggregator():
    """Where an advisor sees everything, its estimate settles on what the aggregator does, and so do its values."""
    found = []
    for planning in ("empathic", "estimate"):
        task = mad.make("two-goal", r1=1.0, r2=2.0)
        agent = mad.MultiAdvisor(task, planning=planning, gamma=0.9, epsilon=0.2, seed=0)
        agent.learn(50_000)
        found.append(agent.preferences([0]))
    assert found[1] == pytest.approx(found[0], abs=0.05)
    assert found[0].argmax() == found[1].argmax() == 2
