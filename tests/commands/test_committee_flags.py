"""Who plans how, is heard how, and with which numbers: the flags of `train` and `check`, sweeps, and bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest

import multiadvisor as mad
from command_line import refused, typed
from multiadvisor.errors import Caution
from multiadvisor.runs.sweep_grid import parse_grid
from multiadvisor.runs.training import RunConfig

pytestmark = pytest.mark.slow

SHORT = ["--steps", "300", "--eval-every", "300", "--eval-episodes", "2", "--json"]


def ran(capsys, *words):
    code, out, err = typed(capsys, *words)
    assert code == 0, err
    return json.loads(out), err


def test_planning_and_aggregation_by_group(capsys, tmp_path):
    run = str(tmp_path / "run")
    result, err = ran(
        capsys, "train", "pac-boy", "--planning", "fruits=egocentric,ghosts=empathic", "--aggregation", "fruits=max",
        "--gammas", "ghosts=0.5", "--alphas", "fruits=0.2", "--weights", "ghosts=2", *SHORT, "--out", run,
    )  # fmt: skip
    assert (result["planning"], result["aggregation"]) == ("fruits=egocentric,ghosts=empathic", "fruits=max")
    assert "meant for" not in err, "fears are summed"
    agent = mad.load(run)
    ghosts = np.array([advisor.group == "ghosts" for advisor in agent.task.advisors])
    assert set(agent.task.gammas(0.9)[ghosts]) == {0.5}
    assert set(agent.task.gammas(0.9)[~ghosts]) == {0.9}
    assert set(agent.task.alphas(0.1)[~ghosts]) == {0.2}
    assert set(agent.task.weights[ghosts]) == {2.0}
    same = mad.make("pac-boy", gammas={"ghosts": 0.5}, alphas={"fruits": 0.2}, weights={"ghosts": 2})
    assert agent.task.identity == same.identity
    assert agent.task.options["gammas"] == {"ghosts": 0.5}
    ran(capsys, "evaluate", run, "--episodes", "2", "--json")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("train pac-boy --planning egocentrik", "unknown planning 'egocentrik': did you mean 'egocentric'?"),
        ("train pac-boy --planning fruit=empathic,agnostic", "planning names 'fruit', and task 'pac-boy' has no such "
         "advisor or group: its groups are fruits, ghosts"),
        ("train pac-boy --planning fruits=empathic", "leaves advisor 'ghost 1' out: name one for all the others"),
        ("train pac-boy --planning fruits=", "write a value, or name=value for each advisor or group, with commas"),
        ("train pac-boy --planning fruits=sarsa,fruits=empathic,agnostic", "names 'fruits' twice: keep one"),
        ("train pac-boy --aggregation fruits=maximum", "unknown aggregation 'maximum': did you mean 'max'?"),
        ("train pac-boy --aggregation frogs=max", "aggregation names 'frogs', and task 'pac-boy' has no such"),
        ("train pac-boy --aggregation p_norm:0.9", "the exponent of 'p_norm' is '0.9': give a number of at least 1"),
        ("train pac-boy --aggregation max --learner linear", "aggregation is 'max', and linear Q-learning is a sum"),
        ("train pac-boy --planning sarsa --learner dqn", "the action taken next"),
        ("train pac-boy --alphas fruits=0.5 --learner dqn", "a network has one learning rate for all its advisors"),
        ("train pac-boy --gammas fruits=0.5 --learner linear", "linear Q-learning has one gamma for everything"),
        ("train pac-boy --gammas fruits=1.5", "gamma of advisor 'fruit (0, 0)' is 1.5: give a number between 0 and 1"),
        ("train pac-boy --gammas frogs=0.5", "no advisor or group is called 'frogs' in task 'pac-boy': choose ghosts, "
         "fruits, ghost 1, ghost 2, fruit (0, 0), "),
        ("train two-goal --weights reward_goal=0.5", "in task 'two-goal': choose goal 1 or goal 2"),
        ("train pac-boy --alphas fruits=0", "alpha of advisor 'fruit (0, 0)' is 0.0: choose it above 0 and at most 1"),
        ("train pac-boy --gammas fruits", "'fruits' is not of the form name=number,name=number"),
        ("check pac-boy --aggregation frogs=max", "aggregation names 'frogs', and task 'pac-boy' has no such"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(words, line, capsys):
    refused(capsys, line, *words.split())


def test_numbers_for_one_advisor_whose_name_has_a_comma(capsys):
    task = mad.make("pac-boy", gammas={"fruit (0, 10)": 0.25, "fruits": 0.75})
    assert {advisor.name: advisor.gamma for advisor in task.advisors}["fruit (0, 10)"] == 0.25
    assert sum(advisor.gamma == 0.75 for advisor in task.advisors) == 74
    result, _ = ran(capsys, "train", "pac-boy", "--gammas", "fruit (0, 10)=0.25,fruits=0.75", *SHORT)
    assert result["steps"] == 300


def test_a_run_as_data_has_them_too():
    config = {"task": "two-goal", "gammas": {"goal 1": 0.5}, "alphas": {"goal 2": 0.25}, "weights": {"goal 2": -1}}
    run = RunConfig.parse(config)
    assert {name: run.as_config()[name] for name in ("gammas", "alphas", "weights")} == {
        "gammas": {"goal 1": 0.5}, "alphas": {"goal 2": 0.25}, "weights": {"goal 2": -1.0},
    }  # fmt: skip
    task = run.make_task()
    assert (task.gammas(0.9).tolist(), task.alphas(0.1).tolist()) == ([0.5, 0.9], [0.1, 0.25])
    with pytest.raises(mad.BadInput, match="the gamma of 'goal 1' is 'x': give a finite number"):
        RunConfig.parse({"task": "two-goal", "gammas": {"goal 1": "x"}})


def test_a_sweep_has_them_as_axes_and_ranges():
    grid = parse_grid('task = "two-goal"\n[gammas]\n"goal 1" = [0.5, 0.9]\n[alphas]\n"goal 2" = 0.3')
    assert [run.labels for run in grid.runs()] == [{"gamma of goal 1": 0.5}, {"gamma of goal 1": 0.9}]
    assert grid.runs()[0].job.config["alphas"] == {"goal 2": 0.3}
    [span] = parse_grid('task = "two-goal"\n[gammas]\n"goal 1" = {low = 0.1, high = 0.9}').ranges
    assert span.label == "gamma of goal 1"
    with pytest.raises(mad.BadInput, match="no advisor or group is called 'goal 3'"):
        parse_grid('task = "two-goal"\n[gammas]\n"goal 3" = 0.5').check_tasks()


# ---- a maximum is for wishes -----------------------------------------------------------------------------------------
def test_a_maximum_over_fears_is_warned_of_once(capsys):
    _, err = ran(capsys, "train", "bridge", "--aggregation", "max", "--steps", "600", "--eval-every", "200", "--json",
                 "--epsilon", "1")  # fmt: skip
    assert err.count("aggregation 'max' is meant for rewards of at least 0, and advisor 'water' gets less") == 1


@pytest.mark.parametrize("aggregation", ["max", "water=p_norm:3"])
def test_python_is_warned_too(aggregation):
    """By a world that gives the bounds of its rewards, at once; by another, when the episodes have shown it."""
    task = mad.make("bridge").with_weights(goal=0.0)
    how = {"planning": "agnostic", "aggregation": aggregation, "epsilon": 1.0}
    with pytest.warns(Caution, match="and advisor 'water' gets less"):
        mad.MultiAdvisor(task, **how)
    agent = mad.MultiAdvisor(replace(task, world=replace(task.world, bounds=None)), **how)
    agent._learner.table[:] = np.array([1.0, 0, 0, 0])  # it walks into the water
    agent._learner.table[0] = np.array([0.0, 0, 0, 1])
    agent._learner.table[1] = np.array([0.0, 0, 0, 1])
    with pytest.warns(Caution, match="and advisor 'water' gets less"):
        agent.evaluate(1)
    agent.evaluate(1)  # said once; another warning would be an error here


def test_wishes_alone_are_not_warned_of(recwarn):
    for how in ({"aggregation": "goal=max"}, {"aggregation": "max", "planning": "egocentric"}):
        task = mad.make("bridge") if "planning" not in how else mad.make("two-goal")
        mad.MultiAdvisor(task, epsilon=1.0, **how).learn(300, progress=False).evaluate(5)
    turned = mad.make("bridge").with_weights(water=-1.0)  # who is paid for a fall
    mad.MultiAdvisor(turned, aggregation="max").learn(300, progress=False).evaluate(5)
    assert not [one for one in recwarn if issubclass(one.category, Caution)]


def test_a_check_names_it(capsys):
    task = mad.make("bridge")
    assert mad.check_task(task).ok
    report = mad.check_task(task, aggregation="p_norm")
    assert report.defects == ("fear-under-a-maximum",)
    [finding] = report.findings
    assert finding.advisor == "water"
    assert "the reward is -1" in finding.message
    assert mad.check_task(task, aggregation="goal=max").ok
    assert mad.check_task(task.with_weights(water=-1.0), aggregation="max").ok
    env = mad.Task.from_gymnasium("multiadvisor/mo-TwoGoal-v0")
    assert mad.check_task(env, aggregation="max", steps=200).ok
    turned = env.with_weights(**{env.names[0]: -1.0})
    assert "fear-under-a-maximum" in mad.check_task(turned, aggregation="max", steps=200).defects
    code, out, _ = typed(capsys, "check", "bridge", "--aggregation", "max")
    assert (code, "fear-under-a-maximum (water)" in out) == (1, True)
