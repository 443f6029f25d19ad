"""Finite MDPs given as arrays, the command, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed, typed
from command_line import refused as one_line
from multiadvisor.analysis import theory
from multiadvisor.analysis.theory import FiniteMDP
from refusal import refused


def test_solve_json(capsys):
    result = printed(capsys, "solve", "three-fruits", "--planning", "egocentric", "--gamma", "0.6")
    assert {
        "task", "planning", "gamma", "residual", "values", "policy", "attractors", "critical_gamma", "progressive",
        "gamma_bound", "verdict",
    } <= set(result)  # fmt: skip
    assert [set(one) for one in result["attractors"]] == [{"state", "margin", "stable", "advisors", "action"}]
    assert result["critical_gamma"] == pytest.approx(0.5, abs=1e-6)
    assert result["gamma_bound"] == pytest.approx(1 / 3)
    assert result["progressive"] is False
    assert result["residual"] < 1e-12
    assert result["attractors"][0]["margin"] == pytest.approx(3 * 0.36 - 0.6 - 2 * 0.216)


@pytest.mark.slow
def test_solve_figures(capsys, tmp_path):
    for name, flags in {
        "board": "pac-boy --no-ghosts --board 3 --gamma 0.6", "sweep": "three-fruits --sweep-gamma",
        "bars": "bridge --planning agnostic", "traps": "pac-boy --no-ghosts --boards 50", "first-0.6": "three-fruits",
        "whole": "three-fruits --planning empathic --full-states",
    }.items():  # fmt: skip
        code, out, _ = typed(capsys, "solve", *flags.split(), "--out", f"{tmp_path / name}.png")
        assert (code, "figure in" in out) == (0, True)
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
        assert (tmp_path / f"{name}.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_sweep_turns_south_just_above_one_half(capsys):
    result = printed(capsys, "solve", "three-fruits", "--sweep-gamma")
    south = [gamma for gamma, winner in zip(result["gammas"], result["winner"], strict=True) if winner == "S"]
    assert min(south) == pytest.approx(0.505)
    assert result["paper"] == 0.5


def test_solve_a_trained_run(capsys, tmp_path):
    flags = ["--planning", "egocentric", "--gamma", "0.9", "--steps", "400000", "--eval-episodes", "0", "--no-ghosts"]
    assert typed(capsys, "train", "pac-boy", *flags, "--out", tmp_path / "a")[0] == 0
    result = printed(capsys, "solve", "pac-boy", "--no-ghosts", "--board", "2", "--run", tmp_path / "a")
    assert "learned egocentric values" in result["verdict"]
    assert result["gamma"] == 0.9
    assert result["residual"] is result["error_bound"] is None
    assert result["progressive"] is None


def test_a_linear_run_has_no_advisors_values(capsys, tmp_path):
    mad.MultiAdvisor(mad.make("pac-boy"), learner="linear").save(tmp_path / "a")
    one_line(capsys, "linear Q-learning", "solve", "pac-boy", "--board", "2", "--run", tmp_path / "a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("pacboy", "did you mean 'pac-boy'"),
        ("two-goal --planning selfish", "unknown planning"),
        ("two-goal --gamma 2", "gamma is 2"),
        ("two-goal --gamma nan", "gamma is nan"),
        ("pac-boy", "--board SEED"),
        ("fruit-grid --fruits 24", "--board SEED"),
        ("pac-boy --board 1", "add --no-ghosts"),
        ("pac-boy --no-ghosts --board -1", "board is -1"),
        ("pac-boy --no-ghosts --board 1 --planning agnostic", "leave --planning out"),
        ("three-fruits --sweep-gamma --planning agnostic", "leave --planning out"),
        ("pac-boy --no-ghosts --boards 5 --gamma 0.3", "leave --gamma out"),
        ("pac-boy --no-ghosts --board 1 --run nowhere --gamma 0.3", "leave --gamma out"),
        ("pac-boy --boards 5", "add --no-ghosts"),
        ("pac-boy --no-ghosts --boards 0", "boards is 0"),
        ("two-goal --boards 10", "is not a maze"),
        ("two-goal --board 1", "is not a maze"),
        ("pac-boy --run nowhere", "add --board SEED"),
        ("pac-boy --no-ghosts --board 1 --run nowhere", "no run in 'nowhere'"),
        ("three-fruits --aggregation mex", "unknown aggregation 'mex': did you mean 'max'?"),
        ("three-fruits --aggregation p_norm:0.5", "the exponent of 'p_norm' is '0.5': give a number of at least 1"),
        ("three-fruits --aggregation ghosts=max", "no such advisor or group: its groups are fruits"),
        ("pac-boy --board 1 --run x --aggregation max", "leave --aggregation out"),
        ("three-fruits --noise -1", "noise is -1: give a number of at least 0"),
        ("three-fruits --noise 0.1 --sweep-gamma", "leave --sweep-gamma out"),
        ("Pendulum-v1", "the actions of 'Pendulum-v1' cannot be listed"),
        ("CartPole-v1", "looks at the whole observation"),
        ("three-fruits --sample 9", "is known exactly: leave --sample out"),
        ("CartPole-v1 --bins=-2:2:2,-3:3:2,-1:1:2,-3:3:2 --sample 0", "sample is 0: give an integer of at least 1"),
        ("three-fruits --env-kwarg a=1", "is for Gymnasium environments"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message):
    one_line(capsys, message, "solve", *arguments.split())


ONE = np.ones((1, 2, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transition": ONE * 0.9, "reward": np.zeros((1, 1, 2))}, "sum to 0.9"),
        ({"transition": np.array([[[1.5, -0.5]] * 2] * 2), "reward": np.zeros((1, 2, 2))}, "must not be negative"),
        ({"transition": ONE, "reward": np.full((1, 1, 2), np.nan)}, "give a finite number"),
        ({"transition": ONE, "reward": np.zeros((2, 1, 2)), "weights": np.ones(3)}, "2 advisors but 3 weights"),
        ({"transition": ONE, "reward": np.zeros((1, 1, 2)), "weights": np.array([np.inf])}, "weight that is not fin"),
        ({"transition": np.ones((2, 2)), "reward": np.zeros((1, 1, 2))}, r"give \[S, A, S\]"),
        ({"transition": ONE, "reward": np.zeros((1, 2, 1))}, r"give \[n, 1, 2\]"),
        ({"transition": ONE, "reward": np.zeros((1, 1, 2)), "end": np.zeros(3)}, "end has the shape"),
    ],
)
def test_bad_arrays(arguments, message):
    refused(message, FiniteMDP.from_arrays, **arguments)


def test_gamma_one_needs_an_end():
    endless = FiniteMDP.from_arrays(ONE, np.ones((1, 1, 2)))
    refused("ever ends", theory.solve, endless, "egocentric", 1.0)
    ending = FiniteMDP.from_arrays(ONE * 0.5, np.ones((1, 1, 2)), end=np.full((1, 2), 0.5))
    assert theory.solve(ending, "egocentric", 1.0).values[0, 0, 0] == pytest.approx(2.0)
    refused("rows that sum to 1", theory.evaluate, ending, np.ones((1, 2)))


def test_premises_of_theorem_4_are_named():
    premises = {"two-goal": "cannot be cancelled", "dollars-and-euros": "is random", "bridge": "less than nothing"}
    tasks = [(mad.make(name), premise) for name, premise in premises.items()]
    for task, premise in [*tasks, (mad.make("three-fruits").with_weights(fruits=-1.0), "a weight is negative")]:
        found = theory.gamma_bound(theory.enumerate_task(task))
        assert found.gamma is None
        assert any(premise in text for text in found.broken)


def test_local_states_that_are_not_markov_are_said_so():
    """Two states look alike to the advisor and lead to different places."""
    mdp = FiniteMDP.from_arrays(
        np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]]]), np.array([[[0.0], [0.0], [1.0]]])
    )
    blind = replace(mdp, local=np.array([[0, 0, 1]]))
    assert theory.solve(mdp, "egocentric", 0.9).markov
    assert not theory.solve(blind, "egocentric", 0.9).markov
    assert "foresee" in theory.gamma_bound(blind).broken[0]


def test_a_board_without_fruit_is_refused():
    task = mad.make("pac-boy", ghosts=False)
    refused("has no fruit", theory.board_solution, task, np.zeros(76, np.int64))


@pytest.mark.slow
def test_empathic_with_local_states_says_whether_it_settled(capsys):
    _, out, _ = typed(capsys, "solve", "three-fruits", "--planning", "empathic")
    assert "empathic planning did not converge" in out
    assert "not converged" in out
    found = theory.solve(theory.enumerate_task(mad.make("three-fruits"), full=True), "empathic", 0.9)
    assert (found.converged, found.cycle) == (True, 0)
