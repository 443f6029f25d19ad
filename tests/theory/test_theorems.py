"""Every statement of the paper's theory as a property of random MDPs: 500 of each kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import MANY, ending, sizes, sparse

import multiadvisor as mad
from multiadvisor.analysis import theory
from multiadvisor.analysis.theory import FiniteMDP
from multiadvisor.analysis.theory.attractors import attractor_states, margins, stuck_states
from multiadvisor.analysis.theory.solver import aggregate, best_actions, solve_local

gammas = st.floats(0.0, 0.95)


@st.composite
def mdps(draw, positive=False, agree=False, reward=None):
    """2 to 50 states, 2 to 6 actions, 1 to 8 advisors; random sparse transitions, some of which end the episode."""
    generator, states, actions, n = sizes(draw, 50, 6, 8)
    rewards = generator.normal(size=(n, states, actions)) if reward is None else reward(generator, (n, states, actions))
    weights = generator.normal(size=n)
    if positive or agree:
        weights = np.abs(weights)
    if agree:
        rewards = np.abs(generator.normal(size=n))[:, None, None] * rewards[:1]
    return ending(generator, states, actions, rewards, weights)


def close(mdp):
    return 1e-9 * (1 + np.abs(mdp.reward).max() * (1 + np.abs(mdp.weights).sum()))


@pytest.mark.slow
@MANY
@given(mdps(positive=True), gammas)
def test_egocentric_values_are_at_least_optimal(mdp, gamma):
    best, _ = theory.optimum(mdp, gamma)
    assert (theory.solve(mdp, "egocentric", gamma).preferences >= best - close(mdp)).all()


@pytest.mark.slow
@MANY
@given(mdps(agree=True), gammas)
def test_egocentric_values_are_optimal_where_all_agree(mdp, gamma):
    best, _ = theory.optimum(mdp, gamma)
    assert theory.solve(mdp, "egocentric", gamma).preferences == pytest.approx(best, abs=close(mdp))


@pytest.mark.slow
@MANY
@given(mdps(), gammas)
def test_what_holds_of_every_mdp(mdp, gamma):
    """Agnostic is local as global; a policy's worth is linear in the weights; theorem 5: empathic with full states is
    optimal; and the error bound holds, against the uniform policy's values by a linear solve."""
    agnostic = theory.solve(mdp, "agnostic", gamma)
    together, _, _ = solve_local(mdp.whole, gamma, "agnostic")
    assert agnostic.preferences == pytest.approx(together, abs=close(mdp))
    flow = np.zeros((mdp.states, mdp.states))
    chances = mdp.going_on / len(mdp.actions)
    np.add.at(flow, (np.arange(mdp.states)[:, None, None], mdp.successor), chances)
    for j in range(mdp.n):
        value = np.linalg.solve(np.eye(mdp.states) - gamma * flow, mdp.reward[:, :, j].mean(axis=1))
        exact = mdp.reward[:, :, j] + gamma * (mdp.going_on * value[mdp.successor]).sum(axis=-1)
        assert np.abs(exact - agnostic.values[j]).max() <= agnostic.bound + 1e-12 * (1 + np.abs(exact).max())
    policy = np.random.default_rng(1).dirichlet(np.ones(len(mdp.actions)), mdp.states)
    together, _, _ = solve_local(mdp.whole, gamma, policy=policy)
    assert theory.evaluate(mdp, policy, gamma).preferences == pytest.approx(together, abs=close(mdp))
    best, _ = theory.optimum(mdp, gamma)
    empathic = theory.solve(mdp, "empathic", gamma)
    assert empathic.converged
    assert empathic.preferences == pytest.approx(best, abs=close(mdp))


@pytest.mark.slow
@settings(MANY, max_examples=100)
@given(mdps(), st.floats(0.0, 0.8))
def test_empathic_value_iteration_agrees_with_policy_iteration(mdp, gamma):
    values = np.zeros((mdp.n, mdp.states, len(mdp.actions)))
    for _ in range(400):
        action = best_actions(aggregate(values, mdp.weights)).argmax(axis=-1)
        state = values[:, np.arange(mdp.states), action]  # [n, S]
        ahead = (mdp.going_on[None] * state[:, mdp.successor]).sum(axis=-1)
        values = np.moveaxis(mdp.reward, -1, 0) + gamma * ahead
    found = theory.solve(mdp, "empathic", gamma)
    assert found.preferences == pytest.approx(
        aggregate(values, mdp.weights), abs=1e-6 * (1 + np.abs(found.preferences).max())
    )


def even_pay(generator, shape):
    """Rewards so alike that losing a step is never the best choice of any advisor."""
    return 1.0 + 0.2 * generator.random(shape)


@pytest.mark.slow
@MANY
@given(mdps(positive=True, reward=even_pay), st.floats(0.0, 0.7))
def test_theorem_3_progressive_advisors_have_no_attractor(mdp, gamma):
    found = theory.solve(mdp, "egocentric", gamma)
    if not theory.progressive(found):
        assert not attractor_states(found).any()


def test_theorem_3_is_not_empty():
    generator = np.random.default_rng(0)
    mdp = FiniteMDP.from_arrays(
        generator.dirichlet(np.ones(5), (5, 3)), even_pay(generator, (4, 5, 3)), weights=np.ones(4)
    )
    assert theory.progressive(theory.solve(mdp, "egocentric", 0.5)) == []


@st.composite
def cancellable(draw):
    """Each action is an involution of the states, so that doing it twice cancels it; rewards of at least 0."""
    generator, states, actions, n = sizes(draw, 50, 6, 8)
    transition = np.zeros((states, actions, states))
    for action in range(actions):
        order, to = generator.permutation(states), np.arange(states)
        half = states // 2
        to[order[:half]], to[order[half : 2 * half]] = order[half : 2 * half], order[:half]
        transition[np.arange(states), action, to] = 1.0
    return FiniteMDP.from_arrays(transition, sparse(generator, (n, states, actions), 0.3), weights=generator.random(n))


@pytest.mark.slow
@MANY
@given(cancellable(), st.floats(0.01, 1.0))
def test_theorem_4_no_attractor_up_to_the_bound(mdp, part):
    bound = theory.gamma_bound(mdp)
    assert bound.broken == ()
    assert bound.gamma == pytest.approx(1 / (len(mdp.actions) - 1))
    assert (margins(theory.solve(mdp, "egocentric", min(part * bound.gamma, 0.99))) < 1e-9).all()


# ---- the gadgets ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("r1", "r2"), [(1.0, 1.0), (1.0, 2.0), (3.0, 0.5), (10.0, 9.0)])
def test_two_goal_threshold(r1, r2):
    mdp = theory.enumerate_task(mad.make("two-goal", r1=r1, r2=r2))
    threshold = max(r1, r2) / (r1 + r2)
    assert theory.critical_gamma(mdp) == pytest.approx(threshold, abs=1e-6)
    for gamma in (threshold - 0.01, min(threshold + 0.01, 0.999)):
        found = theory.solve(mdp, "egocentric", gamma)
        assert found.preferences[0] == pytest.approx([gamma * (r1 + r2), r1, r2])
        assert bool(found.policy[0, 0] == 1.0) == (gamma > threshold) == bool(stuck_states(found)[0])


def test_three_fruits_threshold():
    mdp = theory.enumerate_task(mad.make("three-fruits"))
    assert theory.critical_gamma(mdp) == pytest.approx(0.5, abs=1e-6)
    for gamma in (0.3, 0.7):
        q = theory.solve(mdp, "egocentric", gamma).preferences[0]
        assert q == pytest.approx([gamma + 2 * gamma**3] * 2 + [3 * gamma**2, gamma + 2 * gamma**3])
    (found,) = theory.attractors(mdp, 0.6)
    assert (found.action, found.stable) == ("S", True)


@pytest.mark.slow
def test_four_fruits_threshold():
    mdp = theory.enumerate_task(mad.make("four-fruits"))
    assert theory.critical_gamma(mdp) == pytest.approx(1 / 3, abs=1e-6)
    assert theory.critical_gamma(mdp, "stable") is None
    assert theory.critical_gamma(mdp, "stuck") == pytest.approx(1 / np.sqrt(3), abs=1e-6)
    first = theory.attractors(mdp, 0.4)[0]
    assert not first.stable
    assert first.margin == pytest.approx(4 * 0.4**2 - 0.4 - 3 * 0.4**3)
    assert len(first.advisors) == 4  # the four ways out are equally good, and each suits one of them only


@pytest.mark.parametrize("failure", [0.0, 0.1, 0.5])
def test_dollars_and_euros_threshold(failure):
    mdp = theory.enumerate_task(mad.make("dollars-and-euros", failure=failure))
    for gamma in np.linspace(0.3, 0.95, 14):
        q = theory.solve(mdp, "egocentric", float(gamma)).preferences[0]
        assert (q[3] > q[2] + 1e-12) == (gamma * (1 - failure) / (1 - failure * gamma) > 0.6 + 1e-12)


def test_bridge():
    mdp = theory.enumerate_task(mad.make("bridge"))
    crossing = {planning: theory.solve(mdp, planning, 0.9).policy[:, 3] for planning in ("egocentric", "empathic")}
    assert all((policy == 1.0).all() for policy in crossing.values())
    agnostic = theory.solve(mdp, "agnostic", 0.9)
    assert agnostic.policy[0, 3] == 0.0
    assert stuck_states(agnostic)[0]


@pytest.mark.parametrize(("jobs", "work"), [(1, 3), (2, 2), (3, 2), (4, 1)])
def test_resource_scheduling_is_progressive(jobs, work):
    mdp = theory.enumerate_task(mad.make("resource-scheduling", jobs=jobs, work=work))
    for gamma in (0.1, 0.5, 0.9, 0.99):
        found = theory.solve(mdp, "egocentric", gamma)
        assert found.markov
        assert theory.progressive(found) == []
        assert theory.attractors(found) == []
    assert theory.verdict(mdp).text.startswith("safe for any gamma")


def test_definition_1_taken_literally_never_holds_where_one_can_stay():
    """The trap: the free no-op is worth exactly the right-hand side, so the test must be on actions that leave."""
    found = theory.solve(theory.enumerate_task(mad.make("two-goal")), "egocentric", 0.9)
    right = 0.9 * found.values.max(axis=-1).sum(axis=0)
    assert found.preferences.max(axis=-1) == pytest.approx(right)
    assert len(theory.attractors(found)) == 1


def test_an_attractor_set_in_which_the_system_keeps_moving():
    """The paper's remark: a_0 leads at random to some state of the set, a_1 and a_2 to the goals.

    Moving inside the set is worth just as much as staying, so that no single state is an attractor in the strict sense;
    the set is found as what it is, a greedy walk that never earns.
    """
    states = 4
    transition = np.zeros((states, 3, states))
    transition[:, 0] = 1 / states
    reward = np.zeros((2, states, 3))
    reward[0, :, 1] = reward[1, :, 2] = 1.0
    end = np.tile([0.0, 1.0, 1.0], (states, 1))
    mdp = FiniteMDP.from_arrays(transition, reward, end=end)
    assert theory.attractors(mdp, 0.9) == []
    assert stuck_states(theory.solve(mdp, "egocentric", 0.9)).all()
    assert not stuck_states(theory.solve(mdp, "egocentric", 0.49)).any()
    found = theory.verdict(mdp)
    assert found.critical is None
    assert found.stuck == pytest.approx(0.5, abs=1e-6)
    assert found.text.startswith("gets stuck at gamma = 0.9: greedy play never earns from 4 states")
    assert "the smallest gamma where it is stuck is 1/2" in found.text.splitlines()[0]
    assert theory.verdict(mdp, 0.3).text.startswith("does not get stuck at gamma = 0.3: greedy play goes on to earn")
    assert "keep gamma at or below 1/2" in found.text
    # without a_0 the state remains an attractor, but one that is left at once
    only = FiniteMDP.from_arrays(transition[:1, 1:, :1] * 0, reward[:, :1, 1:], end=end[:1, 1:])
    (one,) = theory.attractors(only, 0.9)
    assert not one.stable
