"""The correction as a network: against the exact identity, saved and taken up again, and what is refused."""

import dataclasses
import json

import numpy as np
import pytest
from test_learner import TABLE, uneven

import multiadvisor as mad
from multiadvisor import cli
from multiadvisor.analysis import theory
from multiadvisor.errors import BadInput

CORRECTED = {"planning": "egocentric", "aggregation": "correction", "epsilon": 1.0}


def exact(task, gamma):
    return theory.correct(theory.solve(theory.enumerate_task(task, full=True), "egocentric", gamma))


@pytest.mark.slow
@pytest.mark.parametrize("double", [False, True])
def test_the_sum_less_what_it_learned_is_the_optimum(double):
    task = mad.make("two-goal")
    deep = dataclasses.replace(TABLE, double=double)
    agent = mad.MultiAdvisor(task, learner=deep, gamma=0.9, **CORRECTED).learn(2_000, progress=False)
    names, advice = agent.advice(task.initial_state())
    assert names == ("goal 1", "goal 2", "correction")
    assert advice[-1] == pytest.approx([0.9, 0.0, 0.0], abs=0.01)
    best, _ = theory.optimum(theory.enumerate_task(task), 0.9)
    assert agent.preferences(task.initial_state()) == pytest.approx(best[0], abs=0.01)
    assert agent.evaluate(episodes=5).score == 1.0
    found = agent.explain(task.initial_state())
    assert (found.attractor, found.stuck) == (None, False)
    told = mad.MultiAdvisor(task, planning="egocentric", learner=deep, gamma=0.9, epsilon=1.0).learn(
        2_000, progress=False
    )
    assert told.evaluate(episodes=5).score == 0.0  # the sum rests


@pytest.mark.slow
def test_advisors_that_fall_silent_and_have_gammas_of_their_own():
    task, gamma = uneven(), 0.8
    agent = mad.MultiAdvisor(task, learner=TABLE, gamma=gamma, **CORRECTED).learn(4_000, progress=False)
    found = exact(task, gamma)
    silent = 0
    for state in range(found.solution.mdp.states):
        names, advice = agent.advice(np.array([state]))
        if len(names) == 1:
            continue  # the episode is over: nobody has ever learned of it
        silent += len(names) < 3
        assert advice[-1] == pytest.approx(found.values[state], abs=5e-3)
        assert agent.preferences(np.array([state])) == pytest.approx(found.preferences[state], abs=1e-2)
    assert silent


@pytest.mark.slow
def test_groups_and_noise():
    """What advisors are merged into is corrected as well; its own reward has no noise, though what it corrects has."""
    task = mad.make("two-goal")
    for how, given in (({}, {"noise": 0.5}), ({"split": "groups"}, {})):
        deep = dataclasses.replace(TABLE, **how)
        agent = mad.MultiAdvisor(task, learner=deep, gamma=0.9, **CORRECTED, **given).learn(2_000, progress=False)
        assert agent.advice(task.initial_state())[1][-1] == pytest.approx([0.9, 0.0, 0.0], abs=0.5 if given else 0.02)
        assert agent.advisors[-1].weight == -1.0
        assert len(agent.advice(task.initial_state())[0]) == 3


@pytest.mark.slow
def test_a_run_that_was_saved_goes_on_bit_for_bit(tmp_path):
    deep = dataclasses.replace(TABLE, hidden=(8,), n_envs=2)
    how = {**CORRECTED, "epsilon": 0.2, "learner": deep, "gamma": 0.9, "noise": 0.1, "seed": 3}
    straight = mad.MultiAdvisor(uneven(), **how).learn(600, progress=False)
    mad.MultiAdvisor(uneven(), **how).learn(330, progress=False).save(tmp_path / "run")
    again = mad.load(tmp_path / "run", uneven())
    again.learn(600 - again.steps, progress=False)
    mine, its = straight._learner.tensors(), again._learner.tensors()
    assert mine.keys() == its.keys()
    assert all(np.array_equal(mine[name], its[name]) for name in mine)


def test_refused_in_one_line():
    named = dataclasses.replace(uneven(), correction=mad.Advisor("correction", state=lambda c, x: 0, states=1))
    with pytest.raises(BadInput, match="names features, which are for tables"):
        mad.MultiAdvisor(named, learner=TABLE, **CORRECTED)
    with pytest.raises(BadInput, match="is learned beside tables, and there are none here"):
        mad.MultiAdvisor(mad.make("three-fruits"), aggregation="fruits=gpi", learner=TABLE)
    with pytest.raises(BadInput, match="is of all advisors: give it alone"):
        mad.MultiAdvisor(mad.make("three-fruits"), aggregation="fruits=correction", learner=TABLE)


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    given = "train two-goal --learner dqn --hidden 8 --aggregation correction --planning egocentric --steps 100"
    assert (
        cli.main(
            [
                *given.split(),
                "--learning-starts=50",
                "--eval-every=100",
                "--eval-episodes=2",
                f"--out={tmp_path / 'run'}",
                "--json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)
    assert mad.load(tmp_path / "run").advice(np.zeros(1, np.int64))[0][-1] == "correction"
