"""Mazes: exact local values, boards, thousands of random boards, and the learner against the solver."""

import dataclasses

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.analysis import theory
from multiadvisor.analysis.theory import boards, enumeration
from multiadvisor.analysis.theory.attractors import attractor_states, stable_states
from multiadvisor.envs.compiled_env import CompiledEnv
from refusal import refused


@pytest.fixture(scope="module")
def maze():
    return mad.make("pac-boy", ghosts=False)


@pytest.fixture(scope="module")
def random_boards(maze):
    return boards.Maze(maze).random_boards(2000)


def test_egocentric_values_are_powers_of_the_distance(maze):
    gamma = 0.7
    steps = boards.Maze(maze).distances
    neighbour = maze.world.constants.neighbour
    for j, (q, residual) in enumerate(boards.local_values(maze, "egocentric", gamma)):
        goal = maze.world.constants.fruit_cell[j]
        away = np.arange(len(q)) != goal
        assert residual < 1e-12
        assert q[away] == pytest.approx(gamma ** steps[j][neighbour][away])


def test_no_attractor_below_one_third_and_no_stable_one_below_one_half(maze, random_boards):
    for gamma in (0.1, 0.2, 0.3, 0.333):
        peak, _ = boards.peaks(boards.Maze(maze), random_boards, gamma)
        assert not peak.any()
    for gamma in (0.4, 0.45, 0.499):
        peak, stable = boards.peaks(boards.Maze(maze), random_boards, gamma)
        assert not stable.any()
        assert peak.any()


def test_boards_agree_with_the_general_definition(maze, random_boards):
    for gamma in (0.5, 0.6, 0.9):
        peak, stable = boards.peaks(boards.Maze(maze), random_boards[:25], gamma)
        for k, board in enumerate(random_boards[:25]):
            x = np.concatenate([maze.initial_state()[:1], board]).astype(np.int64)
            found = theory.board_solution(maze, x, gamma)
            attracting = attractor_states(found)
            assert np.array_equal(attracting, peak[k])
            assert np.array_equal(stable_states(found, attracting), stable[k])


def test_shares_of_traps_are_those_of_the_prototype(maze):
    """Within what 2,000 boards can tell from the figures of an independent program."""
    expected = {0.34: (0.0, 0.0, 0.0), 0.5: (0.10, 0.0, 0.0), 0.6: (0.41, 0.25, 0.13), 0.9: (0.75, 0.63, 1.0)}
    for row in theory.trap_shares(maze, expected, 2000):
        seen = (row["attractor"], row["stable"], row["stuck"])
        assert seen == pytest.approx(expected[row["gamma"]], abs=0.035)


@pytest.mark.parametrize("rules", ["paper", "hra"])
def test_the_ghost_mdp_is_the_world(rules):
    """Probabilities and expected touches of every (cell, ghost, action) against the compiled world, sampled."""
    task = mad.make("pac-boy", maze="G.P\n.#.\n", rules=rules)
    local = boards.Maze(task).ghost_mdp
    cells, batch = 5, 4000
    for state, action in np.ndindex(cells * cells, 4):
        env = CompiledEnv(task, np.arange(batch, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        env.reset()
        env.x[:, :2] = divmod(state, cells)  # Pac-Boy's cell, and the ghost's
        step = env.step(np.full(batch, action))
        seen = np.bincount(env.x[:, 0] * cells + env.x[:, 1], minlength=cells * cells) / batch
        expected = np.zeros(cells * cells)
        np.add.at(expected, local.successor[state, action], local.weight[state, action])
        assert seen == pytest.approx(expected, abs=0.04)
        assert step.reward[:, 0].mean() == pytest.approx(local.reward[state, action], abs=0.4)


def test_enumeration_agrees_with_the_ghost_mdp():
    task = mad.make("pac-boy", maze="GF\n_P\n")
    mdp = theory.enumerate_task(task)
    local, markov = mdp.local_mdps[0]
    assert mdp.probability.sum(axis=-1) == pytest.approx(1.0)
    whole = boards.Maze(task).ghost_mdp
    seen = np.unique(mdp.local[0])
    assert local.reward[seen] == pytest.approx(whole.reward[seen])
    assert markov  # with a single fruit; of more the ghost's advisor would not know when the episode ends


# ---- Theorem 1: learning reaches the solver's values -----------------------------------------------------------------
GADGETS = ["two-goal", "three-fruits", "four-fruits", "dollars-and-euros", "bridge", "resource-scheduling"]
STOCHASTIC = ["dollars-and-euros"]  # the more chance there is, the faster the step size has to fall


@pytest.mark.slow
@pytest.mark.parametrize("planning", ["egocentric", "agnostic", "empathic"])
@pytest.mark.parametrize("name", GADGETS)
def test_learning_reaches_the_solution_on_the_gadgets(name, planning):
    task = mad.make(name)
    gamma = 0.8
    mdp = theory.enumerate_task(task)
    if planning == "empathic":
        task, mdp = with_full_states(task)
    found = theory.solve(mdp, planning, gamma)
    how = {"alpha": 0.5, "alpha_half": 2000 if name in STOCHASTIC else 1_000_000, "epsilon": 0.9, "seed": 1}
    agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, **how).learn(3_000_000, progress=False)
    pairs = zip(mdp.advisors, mdp.local, strict=True)
    learned = [np.where((row >= 0)[:, None], agent.values(name)[np.maximum(row, 0)], 0.0) for name, row in pairs]
    learned = np.array(learned)  # [n, S, A]
    visited = learned.any(axis=(0, 2))
    assert visited.any()
    if planning == "empathic":  # where actions tie, who gets how much depends on the one taken; the sum does not
        assert learned.sum(axis=0)[visited] == pytest.approx(found.preferences[visited], abs=0.02)
    else:
        assert learned[:, visited] == pytest.approx(found.values[:, visited], abs=0.02)


def with_full_states(task):
    """The same task as a finite MDP in which every advisor sees everything."""
    from multiadvisor.envs.worlds.gadgets import finite_task

    mdp = theory.enumerate_task(task, full=True)
    return finite_task(
        task.name, mdp.actions, mdp.advisors, mdp.start, mdp.probability, mdp.successor,
        np.repeat(mdp.reward[:, :, None, :], mdp.probability.shape[-1], axis=2), mdp.final.astype(int), limit=60,
    ), mdp  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("planning", ["egocentric", "agnostic"])
def test_learning_reaches_the_solution_on_pac_boy_without_ghosts(maze, planning):
    gamma = 0.6
    how = {"alpha": 0.5, "alpha_half": 10_000_000, "epsilon": 1.0, "seed": 0}
    agent = mad.MultiAdvisor(maze, planning=planning, gamma=gamma, **how).learn(10_000_000, progress=False)
    total = 0
    for j, (exact, _) in enumerate(boards.local_values(maze, planning, gamma)):
        learned = agent.values(j)
        visited = learned.any(axis=1)  # what lies behind a fruit in a corridor is seen only once it is eaten
        assert learned[visited] == pytest.approx(exact[visited], abs=0.02)
        total += visited.sum()
    assert total > 0.8 * 75 * 76


def test_the_trained_agent_rests_where_the_solver_says():
    """Egocentric 0.9 without ghosts: after training, every greedy episode ends in an attractor set of the exact
    values."""
    task = mad.make("fruit-grid", width=6, height=6, fruits=6)
    agent = mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, epsilon=0.5).learn(3_000_000, progress=False)
    agreeing = 0
    for seed in range(20):
        x = task.initial_state(seed)
        learned = attractor_states(theory.board_solution(task, x, 0.9, agent))
        exact = attractor_states(theory.board_solution(task, x, 0.9))
        agreeing += np.array_equal(learned, exact)
    assert agreeing >= 19


def test_bad_input(maze, monkeypatch):
    monkeypatch.setattr(enumeration, "MOST_STATES", 200)
    for call, message in (
        (lambda: list(boards.local_values(maze, "empathic", 0.9)), "not defined in a local state alone"),
        (lambda: boards.Maze(mad.make("two-goal")), "is not a maze"),
        (lambda: theory.board_solution(maze, np.full(76, 99), 0.9), "it must be below"),
        (lambda: theory.enumerate_task(maze), "--boards"),
        (lambda: theory.enumerate_task(mad.make("pac-boy"), mad.make("pac-boy").initial_state()), "too many to list"),
    ):
        refused(message, call)


def test_weights_and_gammas_of_their_own():
    task = mad.make("two-goal").with_weights(**{"goal 2": 3.0})
    mdp = theory.enumerate_task(task)
    assert theory.critical_gamma(mdp) == pytest.approx(3 / 4, abs=1e-6)
    advisors = tuple(dataclasses.replace(advisor, gamma=0.5) for advisor in task.advisors)
    own = theory.enumerate_task(dataclasses.replace(task, advisors=advisors))
    assert theory.solve(own, "egocentric", 0.9).preferences[0] == pytest.approx([2.0, 1.0, 3.0])
    refused("their own gammas", theory.critical_gamma, own)
    assert theory.verdict(own).text.startswith("does not get stuck with the advisors' own gammas")
