"""Episodes of a bank of general value functions kept step by step: whose weights and goals change from one to the
next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_bank import LENGTH, aim, corridor

import multiadvisor as mad
from multiadvisor.analysis.episode_report import drives, report_on
from multiadvisor.analysis.episodes import play, record
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.explain.ablation import without_each
from multiadvisor.explain.decisions import decider_of
from multiadvisor.explorer.bundle import episode_pack
from multiadvisor.runs.pictures import FEARS, WISHES, draw_wishes
from multiadvisor.runs.trace import explain_step, replay
from multiadvisor.runs.training import RunConfig
from refusal import refused


def loud(x, look):
    """The coin on the right speaks three times as loudly, and the louder the farther it is."""
    aims = aim(x, look)
    return aims._replace(factor=np.array([1.0, 3.0 + (LENGTH - int(x[0])), 1.0]))


@pytest.fixture(scope="module")
def agent():
    task = corridor()
    task = replace(task, goals=replace(task.goals, aim=loud, restless=0.2, label=lambda x: f"cell {x[0]}"))
    made = mad.MultiAdvisor(task, planning="agnostic", gamma=0.9, epsilon=1.0, seed=3, aggregation="normalised")
    return made.learn(400)


@pytest.fixture(scope="module")
def trace(agent):
    return record(agent, episodes=4, seed=2)


def test_a_trace_has_the_episodes_of_the_evaluation_and_repeats_them(agent, trace, tmp_path):
    played = agent.evaluate(4, seeds=(2,)).played
    assert trace.length.tolist() == played.length.tolist()
    assert trace.score.tolist() == played.score.tolist()
    assert trace.played.returns.tolist() == played.returns.tolist()
    trace.save(tmp_path / "episodes.trace")
    read = read_trace(tmp_path / "episodes.trace")
    assert all(np.array_equal(getattr(read, name), getattr(trace, name)) for name in ("applied", "goals", "gain"))
    replay(read, agent.task)
    refused("differs from task", replay, replace(read, gain=read.gain + 1.0), agent.task)


def test_a_step_says_who_points_where_and_how_loudly(agent, trace):
    seen = trace.step(0, 0)
    assert seen.names == ("left", "right")
    assert seen.goals.tolist() == [0, LENGTH - 1]
    x = np.array([trace.observed[0, 0], 1, 1], np.int64)
    assert seen.weights.tolist() == [1.0, 3.0 + LENGTH - x[0]]
    told = agent._learner.consult(x)
    assert np.array_equal(told.advice, seen.advice)
    assert np.array_equal(told.weights, seen.weights)
    assert explain_step(agent, trace, 0, 0).preferences == agent.explain(x).preferences
    assert agent.explain(x).preferences["action 1"] == agent.preferences(x)[1]
    by_chance = [(agent._learner._choose(x, word << 32, 0.2, False)) for word in (0, (1 << 32) - 1)]
    assert by_chance[1][0] == by_chance[1][1]
    assert trace.explored.any()


def test_the_page_gets_weights_and_the_score_of_the_environment(trace, agent):
    header = episode_pack(trace, 1, agent)
    for name in (b'"factor"', b'"earned"'):
        assert name in header


def test_the_report_and_the_groups(agent):
    episodes = play(agent, 4, 2)
    assert episodes.label(0, 0) == f"cell {int(episodes.positions[0][0])}"
    found = report_on(episodes).as_dict()
    assert set(found["groups"]) == {"coins"}
    assert found["advisors"]["left"]["return"] == 1.0
    assert found["advisors"]["left"]["calibration"]["expects"].endswith("stays where it is")
    at = int(episodes.first[1])
    who = np.flatnonzero(episodes.applied[at])
    silent = without_each(episodes.advice[at, who], episodes.applied[at, who], decider_of(agent).combined._replace(
        of=decider_of(agent).combined.of[who]))  # fmt: skip
    others = episodes.applied[at].copy()
    others[who[0]] = 0.0
    assert silent[0] == pytest.approx(episodes.aggregator.prefer(episodes.advice[at], others))
    assert set(drives(episodes, 40)) == {"left", "right", "frontier"}
    assert set(drives(episodes, 2)) == {"coins"}


def test_only_the_strongest_wishes_and_fears_are_drawn():
    marked = []
    goals, said = np.arange(-1, 14), np.linspace(-1.0, 1.0, 15)
    draw_wishes(lambda picture, place, strength: marked.append((place, strength)), np.zeros((1, 1, 3)), goals, said)
    wishes, fears = ([one for one in marked if sign * one[1] > 0] for sign in (1, -1))
    assert (len(wishes), len(fears)) == (WISHES, FEARS)
    assert wishes[-1] == (13, 1.0)  # the strongest last, on top
    assert fears[-1][0] == 0
    assert all(0.25 <= abs(strength) <= 1.0 for _, strength in marked)


def test_a_sweep_knows_what_is_usual_for_a_task():
    run = RunConfig.parse({"task": "ms-pacman", "settings": {"gamma": 0.9}, "schedule": {"steps": 40_000}})
    assert (run.settings.planning, run.settings.aggregation, run.settings.gamma) == ("agnostic", "normalised", 0.9)
    assert (run.schedule.evaluations, run.schedule.eval_every) == (2, 20_000)
    assert RunConfig.parse(run.as_config()) == run
