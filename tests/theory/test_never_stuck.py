"""Other aggregations than the sum: no attractor under `max`, how soon it earns, and where that fails."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_mdps import MANY, sizes, sparse, transitions

import multiadvisor as mad
from agents import LEARNED
from command_line import printed
from multiadvisor.analysis import theory
from multiadvisor.analysis.theory import FiniteMDP, boards, counterexamples, solve_report, stuck_states
from multiadvisor.analysis.theory.attractors import attractor_states
from multiadvisor.analysis.theory.boards import Maze, peaks
from multiadvisor.analysis.theory.bounds import verdict
from multiadvisor.analysis.theory.earning import broken_premises, hope, rate
from multiadvisor.analysis.theory.learned_values import surroundings
from multiadvisor.analysis.theory.ways_out import least_exponent, ways_out, wishes
from multiadvisor.core.aggregations import AGGREGATIONS
from multiadvisor.studies.paper.tours import walk
from refusal import refused

gammas = st.sampled_from([0.3, 0.5, 0.9, 0.99])


@st.composite
def mdps(draw, chance=False, losses=False):
    """2 to 12 states, 2 to 5 actions, 1 to 5 advisors, few rewards; some actions end the episode."""
    generator, states, actions, n = sizes(draw, 12, 5, 5)
    transition = transitions(generator, states, actions, 3 if chance else 1)
    end = (generator.random((states, actions)) < 0.1).astype(float)
    reward = sparse(generator, (n, states, actions), 0.12)
    if losses:
        reward -= sparse(generator, (n, states, actions), 0.2)
    return FiniteMDP.from_arrays(transition, reward, end=end, weights=2 * generator.random(n))


# ---- the bound -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@MANY
@given(mdps() | mdps(losses=True), gammas)
def test_max_earns_within_the_bound_from_every_state_whatever_is_lost_on_the_way(mdp, gamma):
    solution = theory.solve(mdp, "egocentric", gamma, "max")
    wished = earns_within_its_bound(solution)
    assert np.isinf(theory.earning_bound(solution)[~wished]).all()
    assert not attractor_states(solution)[wished].any()


def test_rounding_is_no_wish():
    """0.1 is lost and what makes up for it gained, step by step: worth exactly 0, and in floating point 1e-17 or so."""
    transition = np.zeros((3, 1, 3))
    transition[[0, 1, 2], 0, [1, 2, 2]] = 1.0
    mdp = FiniteMDP.from_arrays(transition, np.array([[[-0.3], [0.3 / 0.9], [0.0]]]))
    solution = theory.solve(mdp, "egocentric", 0.9, "max")
    near = replace(solution, values=solution.values + np.array([1e-17, 0.0, 0.0])[None, :, None])
    assert hope(near).tolist() == [0.0, pytest.approx(1 / 3), 0.0]


@pytest.mark.slow
@MANY
@given(mdps(), gammas, st.floats(1.001, 3.0))
def test_a_p_norm_earns_within_its_bound_where_gamma_is_small_enough_for_p(mdp, gamma, more):
    p = max(1.0, more * math.log(max(mdp.n, 2)) / -math.log(gamma))
    solution = theory.solve(mdp, "egocentric", gamma, f"p_norm:{p}")
    assert rate(solution) < 1
    earns_within_its_bound(solution)


def earns_within_its_bound(solution):
    wished = hope(solution) > 0
    assert (theory.earning_steps(solution)[wished] <= theory.earning_bound(solution)[wished]).all()
    assert not stuck_states(solution)[wished].any()
    return wished


@pytest.mark.slow
@MANY
@given(mdps(chance=True), gammas)
def test_with_chance_the_bound_holds_in_expectation(mdp, gamma):
    solution = theory.solve(mdp, "egocentric", gamma, "max")
    wished = hope(solution) > 0
    assert (theory.discounted_earning(solution) >= theory.chance_bound(solution) * (1 - 1e-9) - 1e-12).all()
    assert not attractor_states(solution)[wished].any()
    assert not stuck_states(solution)[wished].any()


def random_mdps(count):
    """Without chance, from one seed: the same every time."""
    generator = np.random.default_rng(0)
    for _ in range(count):
        states, actions, n = generator.integers(2, 13), generator.integers(2, 6), generator.integers(2, 6)
        transition = transitions(generator, states, actions)
        yield FiniteMDP.from_arrays(transition, sparse(generator, (n, states, actions), 0.12))


@pytest.mark.slow
def test_the_bound_is_tight_and_the_sum_gets_stuck_where_max_does_not():
    starts = tight = stuck = 0
    for mdp in random_mdps(500):
        solution = theory.solve(mdp, "egocentric", 0.9, "max")
        wished = hope(solution) > 0
        steps, bound = theory.earning_steps(solution)[wished], theory.earning_bound(solution)[wished]
        assert (steps <= bound).all()
        starts, tight = starts + wished.sum(), tight + (steps == bound).sum()
        stuck += stuck_states(solution.aggregated_by("sum"))[wished].sum()
    assert starts > 2000
    assert tight > starts / 4
    assert stuck > 0


def test_the_bound_by_hand():
    """A corridor of five cells with a goal at its end: 1 step beside the goal, 5 at the far end; at gamma 0 one."""
    transition = np.zeros((5, 2, 5))
    for cell in range(5):
        transition[cell, 0, max(cell - 1, 0)] = transition[cell, 1, min(cell + 1, 4)] = 1.0
    reward, end = np.zeros((1, 5, 2)), np.zeros((5, 2))
    reward[0, 4, 1] = end[4, 1] = 1.0
    mdp = FiniteMDP.from_arrays(transition, reward, end=end)
    for gamma in (0.1, 0.5, 0.99):
        solution = theory.solve(mdp, "egocentric", gamma, "max")
        assert theory.earning_bound(solution).tolist() == theory.earning_steps(solution).tolist() == [5, 4, 3, 2, 1]
    assert theory.earning_bound(theory.solve(mdp, "egocentric", 0.0, "max")).tolist() == [*[np.inf] * 4, 1]


def test_a_bound_that_does_not_hold_is_refused():
    meal, gamble, gate = counterexamples.shared_meal(), counterexamples.gamble(), counterexamples.gate()
    for bound, mdp, how, said in (
        (theory.earning_bound, meal, ("egocentric", 0.9), r"gamma n\^\(1/p\) is 3\.6 in 'shared-meal'.*or max"),
        (theory.earning_bound, meal, ("agnostic", 0.9, "max"), "planning is agnostic"),
        (theory.earning_bound, meal, ("egocentric", 0.9, "majority"), "is no maximum"),
        (theory.earning_bound, gamble, ("egocentric", 0.9, "max"), "'jump' is random in 0"),
        (theory.earning_bound, gate, ("egocentric", 0.1, "p_norm:5"), "'go' pays 'toll' less than nothing in 0"),
        (theory.chance_bound, gamble, ("egocentric", 0.9), "with randomness only max is bounded"),
    ):
        refused(said, bound, theory.solve(mdp, *how))


# ---- where it fails --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("toll", [0.05, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("gamma", [0.15, 0.5, 0.8, 0.9, 0.99])
def test_a_fear_can_hold_a_wish_for_ever(toll, gamma):
    mdp = counterexamples.gate(toll)
    solution = theory.solve(mdp, "egocentric", gamma, "wishes=max")
    assert solution.preferences[0] == pytest.approx([gamma**2, gamma - toll])
    assert stuck_states(solution)[0] == (toll > gamma - gamma**2)
    assert broken_premises(solution)
    assert (theory.fear_margin(solution)[0] > 0) == (toll < gamma - gamma**2)  # what is left of the proof is exact here
    best, _ = theory.optimum(mdp, gamma)
    assert best[0, 1] == pytest.approx(gamma - toll)  # and so the wait is a loss wherever toll < gamma


def with_fears(generator, strength):
    """Two wishes and two fears of that strength, without chance or end."""
    states, actions = generator.integers(2, 13), generator.integers(2, 6)
    transition, reward = transitions(generator, states, actions), sparse(generator, (4, states, actions), 0.3)
    reward[:2] *= generator.random((2, states, actions)) < 0.4
    reward[2:] *= -strength
    return FiniteMDP.from_arrays(transition, reward, groups=("wishes", "wishes", "fears", "fears"))


@pytest.mark.slow
def test_fears_hold_many_random_worlds_in_which_the_optimum_earns():
    generator, held = np.random.default_rng(0), 0
    for _ in range(500):
        mdp = with_fears(generator, 1.0)
        best, _ = theory.optimum(mdp, 0.9)
        stuck = stuck_states(theory.solve(mdp, "egocentric", 0.9, "wishes=max"))
        held += bool((stuck & (best.max(axis=-1) > 1e-9)).any())
    assert held == 122  # as docs/never-stuck.md says


def test_weak_fears_hold_nobody():
    generator, weak = np.random.default_rng(0), 0
    for _ in range(500):
        mdp = with_fears(generator, 0.02)
        solution = theory.solve(mdp, "egocentric", 0.9, "wishes=max")
        wished = solution.values[:2].max(axis=(0, 2)) > 0
        if (theory.fear_margin(solution)[wished] > 0).all():
            weak += 1
            assert not stuck_states(solution)[wished].any()
            assert np.isfinite(theory.earning_steps(solution)[wished]).all()
    assert weak > 100
    refused("no maximum of wishes with a sum of fears", theory.fear_margin, theory.solve(mdp, "egocentric", 0.9, "max"))
    refused("planning is agnostic", theory.fear_margin, theory.solve(mdp, "agnostic", 0.9, "wishes=max"))


def test_chance_breaks_the_bound_on_steps():
    solution = theory.solve(counterexamples.slippery(0.1), "egocentric", 0.9, "max")
    assert np.isinf(theory.earning_steps(solution)[0])
    would_be = 1 + math.floor(math.log(1 / hope(solution)[0]) / math.log(1 / 0.9))
    assert would_be == 8 < 1 / 0.1 + 1  # the mean number of steps
    assert theory.discounted_earning(solution) == pytest.approx(
        theory.chance_bound(solution)
    )  # in expectation it is tight


def test_chance_breaks_always():
    solution = theory.solve(counterexamples.gamble(0.5), "egocentric", 0.9, "max")
    assert solution.preferences[0] == pytest.approx([0.9**10, 0.45])
    assert np.isinf(theory.earning_steps(solution)[0])
    assert (
        theory.discounted_earning(solution)[0] == pytest.approx(theory.chance_bound(solution)[0]) == pytest.approx(0.45)
    )
    refused(r"probability is 1\.5", counterexamples.gamble, 1.5)


def test_a_maximum_misses_a_synergy_that_the_sum_sees():
    mdp = counterexamples.shared_meal()
    best, _ = theory.optimum(mdp, 0.9)
    for name, worth in {"sum": 2.7, "max": 1.0}.items():
        assert (theory.solve(mdp, "egocentric", 0.9, name).policy * best).sum() == pytest.approx(worth)


# ---- the solver ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(set(AGGREGATIONS) - set(LEARNED)))
def test_preferences_are_the_aggregation_of_those_who_speak(name):
    mdp = theory.enumerate_task(mad.make("three-fruits"))
    solution = theory.solve(mdp, "egocentric", 0.7, name)
    for state in range(mdp.states):
        there = mdp.local[:, state] >= 0
        if there.any():
            expected = AGGREGATIONS[name](solution.values[there, state], mdp.weights[there])
            assert solution.preferences[state] == pytest.approx(expected, abs=1e-12)


def test_an_inactive_advisor_is_silent_in_a_maximum():
    """Where only losses are spoken of, the 0 of a silent advisor must not win."""
    mdp = FiniteMDP.from_arrays(np.full((2, 2, 2), 0.5), np.array([[[-1.0, -2.0]] * 2, [[0.0, 0.0]] * 2]))
    silent = replace(mdp, local=np.array([[0, 1], [-1, 0]]))
    assert theory.solve(mdp, "egocentric", 0.0, "max").preferences.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert theory.solve(silent, "egocentric", 0.0, "max").preferences.tolist() == [[-1.0, -2.0], [0.0, 0.0]]


def test_groups_are_heard_by_themselves():
    mdp = counterexamples.gate(0.5)
    heard = {name: theory.solve(mdp, "egocentric", 0.9, name).preferences[0] for name in ("sum", "max", "wishes=max")}
    assert heard["sum"] == pytest.approx(heard["wishes=max"])
    assert heard["max"] == pytest.approx([0.81, 0.9])
    named = "no such advisor or group: its groups are fears, wishes"
    refused(named, theory.solve, mdp, "egocentric", 0.9, "fruits=max")
    refused("2 advisors but 1 groups", FiniteMDP.from_arrays, np.ones((1, 1, 1)), np.zeros((2, 1, 1)), groups=("one",))


@pytest.mark.slow
def test_empathic_advisors_evaluate_the_policy_of_the_aggregation():
    mdp = counterexamples.shared_meal()
    assert theory.solve(mdp, "empathic", 0.9, "max").policy.tolist() == [[1.0, 0.0]]
    assert theory.solve(mdp, "empathic", 0.9).policy.tolist() == [[0.0, 1.0]]
    three = theory.enumerate_task(mad.make("three-fruits"))
    settled = theory.solve(three, "empathic", 0.9, "max")
    assert settled.converged
    assert not stuck_states(settled).any()
    assert not theory.solve(three, "empathic", 0.9).converged  # the sum goes round in a cycle of policies


@pytest.mark.parametrize(("name", "p"), [("three-fruits", 1), ("three-fruits", 3), ("two-goal", 2), ("two-goal", 5)])
def test_a_p_norm_of_single_goals_acts_as_the_sum_does_at_gamma_to_the_p(name, p):
    mdp = theory.enumerate_task(mad.make(name))
    assert theory.critical_gamma(mdp, aggregation=f"p_norm:{p}") == pytest.approx(0.5 ** (1 / p), abs=1e-6)
    assert theory.critical_gamma(mdp, aggregation="max") is None


def test_a_learned_solution_hears_as_its_agent_does():
    task = mad.make("three-fruits")
    agent = theory.exact_agent(task, "egocentric", 0.9, aggregation="fruit (0, 2)=max,sum")
    x = task.initial_state()
    x[1 : 1 + 3] = [0, 1, 1]  # the advisor that is named has no part in this board
    assert theory.board_solution(task, x, 0.9, agent).aggregation == "sum"
    agent = theory.exact_agent(task, "egocentric", 0.9, aggregation="max")
    assert theory.board_solution(task, task.initial_state(), 0.9, agent).aggregation == "max"
    stuck = {"sum": True, "max": False, "p_norm:3": True, "p_norm:12": False, "max_plus:9": True}
    for heard, caught in stuck.items():
        agent = theory.exact_agent(task, "egocentric", 0.9, aggregation=heard)
        here = surroundings(agent, task.initial_state())
        assert (here.attractor, here.stuck, here.margin > 0) == (caught, caught, caught), heard
        told = str(agent.explain(task.initial_state()))
        assert ("this state is a stable attractor" in told) == caught
        assert ("greedy play from here earns nothing more and never ends" in told) == caught


# ---- boards ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["max", "p_norm:3", "ranks", "fruits=max"])
def test_attractors_of_boards_are_those_of_the_solver(name):
    task = mad.make("fruit-grid", width=5, height=5, fruits=8)
    maze = Maze(task)
    boards = maze.random_boards(12)
    found, stable = peaks(maze, boards, 0.8, name)
    for k, board in enumerate(boards):
        x = np.array([int(np.flatnonzero(~board)[0]), *board.astype(int)])
        x[0] = next(c for c in range(25) if not board[task.world.constants.fruit_at[c]])
        solution = theory.board_solution(task, x, 0.8, aggregation=name)
        assert attractor_states(solution).tolist() == found[k].tolist()
    assert (stable <= found).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["max", "p_norm:3", "majority"]))
def test_episodes_and_agents_agree_under_any_aggregation(seed, name):
    task = mad.make("fruit-grid", width=4, height=4, fruits=4)
    x, maze = task.initial_state(seed), Maze(task)
    ending = boards.greedy_episode(maze, x, boards.fruit_advice(maze, 0.8), aggregation=name)
    if name == "max":
        assert ending.left == 0
    elif ending.left:
        board = np.array([ending.cell, *ending.fruit.astype(int)])
        assert stuck_states(theory.board_solution(task, board, 0.8, aggregation=name)).any()


@pytest.mark.slow
def test_no_attractor_and_no_stuck_episode_on_500_boards():
    task = mad.make("pac-boy", ghosts=False)
    for row in theory.trap_shares(task, (0.9, 0.99), 500, aggregation="max"):
        assert (row["attractor"], row["stable"], row["stuck"], row["boards"]) == (0.0, 0.0, 0.0, 500)
    assert theory.trap_shares(task, (0.9,), 100)[0]["stuck"] == 1.0  # the sum


# ---- what solve says -------------------------------------------------------------------------------------------------
def test_solve_under_max(capsys):
    found = printed(capsys, "solve", "three-fruits", "--aggregation", "max")
    kept = ("aggregation", "attractors", "stuck", "ways_out", "critical_gamma")
    assert [found[name] for name in kept] == ["max", [], [], [], None]
    assert max(found["earning_bound"].values()) == 6
    for said in ("never stuck while there is something to earn, at any gamma below 1", "within 6 steps"):
        assert said in found["verdict"]


@pytest.mark.slow
def test_the_ways_out_are_safe_where_they_say_so(capsys):
    found = printed(capsys, "solve", "three-fruits", "--gamma", "0.9")
    ways = {way["way"]: way for way in found["ways_out"]}
    assert found["earning_bound"] is None
    assert {name: (way["safe_gamma"], way["proved_gamma"]) for name, way in ways.items()} == {
        "--aggregation max": (1.0, 1.0), "--planning empathic": (None, None),
        "--aggregation p_norm:10.5": (pytest.approx(0.5 ** (1 / 10.5), abs=2e-3), 0.9),
    }  # fmt: skip
    for way, known in ways.items():
        assert way in found["verdict"]
        if "--aggregation" in way:
            for gamma in np.linspace(0.05, min(known["safe_gamma"], 0.999), 12):
                mdp = theory.enumerate_task(mad.make("three-fruits"))
                assert not stuck_states(theory.solve(mdp, "egocentric", gamma, way.split()[1])).any()


@pytest.mark.slow
def test_the_searched_gamma_of_a_way_out_is_where_it_ends():
    """Four fruits and Theorem 4's p: never stuck up to the gamma that is named, stuck a little above it."""
    mdp = theory.enumerate_task(mad.make("four-fruits"))
    way = next(one for one in verdict(mdp, 0.9).ways if "p_norm" in one.flag)
    name, safe = way.flag.split()[1], way.gamma
    assert 0.9 < safe < 1.0
    assert way.proved is None
    assert not stuck_states(theory.solve(mdp, "egocentric", safe, name)).any()
    assert stuck_states(theory.solve(mdp, "egocentric", safe + 0.005, name)).any()


def test_what_is_a_wish_and_what_is_a_fear():
    assert wishes(counterexamples.shared_meal()) == "max"
    assert wishes(counterexamples.gate()) == "wishes=max"
    both = FiniteMDP.from_arrays(np.ones((1, 2, 1)), np.array([[[-1.0, 1.0]], [[1.0, 0.0]]]))
    assert wishes(both) is None
    assert least_exponent(4, 0.9) == 10.5
    assert least_exponent(4, 0.2) == least_exponent(2, 0.9) == 1.0


def test_the_gate_has_no_promise_but_empathy():
    ways = {one.flag: one.gamma for one in verdict(counterexamples.gate(), 0.9).ways}
    assert ways == {"--aggregation wishes=max": None, "--planning empathic": 1.0}
    for gamma, held in ((0.04, True), (0.9, False), (0.96, True)):  # a toll of 0.05 holds at both ends
        way = next(one for one in ways_out(counterexamples.gate(0.05), gamma) if one.flag == "--aggregation wishes=max")
        assert (way.gamma, way.proved) == (None, None)
        assert (f"(not stuck at gamma = {gamma:g}, proved)" in str(way)) == (not held)


@pytest.mark.slow
def test_a_board_under_max_and_the_ways_out_of_one_under_the_sum(tmp_path, capsys):
    maze = tmp_path / "maze.txt"
    maze.write_text("...P....\n.#.##.#.\n........\n")
    task = ["solve", "pac-boy", "--no-ghosts", "--maze", maze, "--board", "3"]
    found = printed(capsys, *task, "--aggregation", "max")
    assert found["episodes"]["left"] == 0
    assert found["episodes"]["keep_gamma"] is None
    assert "from every cell (proved)" in found["verdict"]
    summed = printed(capsys, *task)
    assert summed["episodes"]["keep_gamma"] is not None
    assert summed["ways_out"][0]["way"] == "--aggregation max"


@pytest.mark.slow
def test_the_figure_is_drawn_as_the_advisors_are_heard():
    from multiadvisor.viz import plots

    rings = {}
    for name in ("sum", "max"):
        answer = solve_report.answer(mad.make("three-fruits"), "egocentric", 0.6, aggregation=name)
        axis = plots.solution(answer).axes[0]
        rings[axis.get_title()] = sum(isinstance(patch, plots.plt.Circle) for patch in axis.patches)
    assert rings == {"gamma = 0.6": 1, "gamma = 0.6, max": 0}


# ---- away from crowds ------------------------------------------------------------------------------------------------
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(mdps(losses=True), gammas, st.sampled_from([-0.95, -0.1, 0.1, 0.95]))
def test_a_small_share_of_the_sum_of_either_sign_keeps_the_bound(mdp, gamma, part):
    most = max(int((mdp.state_weights > 0).sum(axis=1).max()), 1)
    solution = theory.solve(mdp, "egocentric", gamma, f"max_plus:{part * (1 - gamma) / most}")
    earns_within_its_bound(solution)
    larger = solution.aggregated_by(f"max_plus:{-1.01 * (1 - gamma) / most}")
    refused(r"gamma / \(1 - \|c\| n\) is", theory.earning_bound, larger)


def test_away_from_crowds_boards_are_finished_in_fewer_steps():
    task = mad.make("pac-boy", ghosts=False)
    maze = Maze(task)
    boards, steps = maze.random_boards(300, 700), maze.distances
    near, away, crowd = (walk(task, boards, steps, name, 0.9) for name in ("max", "max_plus:-0.001", "max_plus:0.001"))
    assert max(near.max(), away.max(), crowd.max()) < task.limit
    assert away.mean() + 2 < near.mean() < crowd.mean() - 2
    assert away.mean() < 80
