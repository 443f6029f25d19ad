"""Runs that share launches are, to the last bit, what each would have been alone: on lanes that the processor emulates,
by the functions that a GPU compiles; a run is played by one thread, or by a group of them."""

import ast
import dataclasses
import inspect

import numpy as np
import pytest

import multiadvisor as mad
from agents import same
from emulated_device import Emulated
from multiadvisor.envs.registry import TASKS
from multiadvisor.learners.tabular import thread_groups
from multiadvisor.learners.tabular.lane_batch import LaneBatch, bytes_of_run, company, lane_learner
from multiadvisor.learners.tabular.switch import SHIPPED_AGGREGATIONS, SHIPPED_PLANNINGS
from multiadvisor.learners.tabular.thread_groups import threads_for

EPISODES = 3
WORLDS = [name for name in TASKS if mad.make(name).world is not None]
DIFFERENT = [
    {"seed": 0, "gamma": 0.9, "planning": "egocentric"},
    {"seed": 5, "gamma": 0.4, "alpha": 0.5, "alpha_half": 300, "planning": "agnostic", "noise": 0.3},
    {"seed": 1, "epsilon": 0.4, "epsilon_half": 100, "planning": "empathic"},
]


def learners(runs):
    return [lane_learner(mad.MultiAdvisor(task, **how)) for task, how in runs]


def side_by_side(runs, steps, threads=None, backwards=False):
    """Learn, play, learn and play: the learners, and the episodes of each."""
    batch = LaneBatch(learners(runs), EPISODES, Emulated(backwards=backwards), threads)
    assert threads in (None, batch.threads)
    assert len({company(one) for one in batch.learners}) == 1
    played = []
    for number in (1, 2):
        for _ in batch.run(steps):
            pass
        assert batch.infinite() == []
        for _ in batch.evaluate(number):
            pass
        played.append(batch.played())
    return [batch.take_back(lane) for lane in range(len(runs))], list(zip(*played, strict=True))


def assert_as_alone(runs, steps, threads=None, backwards=False):
    for one, found, (task, how) in zip(*side_by_side(runs, steps, threads, backwards), runs, strict=True):
        agent = mad.MultiAdvisor(task, **how)
        for number, episodes in zip((1, 2), found, strict=True):
            agent.learn(steps, progress=False)
            alone = agent.play(EPISODES, number)
            assert all(np.array_equal(mine, theirs) for mine, theirs in zip(episodes, alone, strict=True)), how
        assert one.progress["step"][0] == 2 * steps
        assert same(agent, one), how


def weighted(task, weight):
    """The task with another weight for its first advisor."""
    first, *others = task.advisors
    return dataclasses.replace(task, advisors=(dataclasses.replace(first, weight=weight), *others))


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("threads", [1, 4])
def test_runs_of_every_world_are_as_if_alone(name, threads):
    """Where threads that come in the opposite order change nothing, none waits for what another does beside it."""
    task = mad.make(name)
    if task.world.joins and threads > 1:
        pytest.skip("advisors join, which a group does not take")
    runs = [(weighted(task, 0.5 + k), how) for k, how in enumerate(DIFFERENT)]
    for backwards in (False, True)[:threads]:
        assert_as_alone(runs, 700, threads, backwards)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
def test_every_planning_and_aggregation_that_lanes_take(threads):
    """All that is shipped is known to one loop, so that runs which differ in these share a launch too."""
    task = mad.make("random-mdp")
    papers = ("egocentric", "agnostic", "empathic", "target")
    plannings = [one.name for one in SHIPPED_PLANNINGS if one.name not in papers]
    runs = [(task, {"planning": name, "seed": k, "epsilon": 0.2}) for k, name in enumerate(plannings)]
    refusals = []
    for name in (one.name for one in SHIPPED_AGGREGATIONS):
        how = {"aggregation": name, "planning": "sarsa"}
        try:
            learners([(task, how)])
        except mad.BadInput as error:
            refusals.append((name, str(error)))
        else:
            runs.append((task, how))
    together = {}
    for run, one in zip(runs, learners(runs), strict=True):
        together.setdefault(company(one), []).append(run)
    assert sorted(map(len, together.values())) == [1, 1, 12]  # one counts, and one has an advisor more
    for some in together.values():
        alone = threads == 1 or some[0][1].get("aggregation") == "correction"
        assert_as_alone(some, 400, 1 if alone else threads)
    assert [name for name, _ in refusals] == ["gpi", "w_learning", "arbi_q"]
    assert all("learns something besides the advisors' tables" in why for _, why in refusals)


def test_it_makes_no_difference_where_a_launch_is_cut_or_who_shares_it(monkeypatch):
    task = mad.make("three-fruits")
    runs = [(task, {"seed": seed}) for seed in range(4)]
    whole, episodes = side_by_side(runs, 500)
    monkeypatch.setattr("multiadvisor.learners.tabular.lane_batch._PIECE_SECONDS", 0.0)  # a hundred steps at a time
    [alone], [played] = side_by_side(runs[2:3], 500)
    assert same(whole[2], alone)
    assert all(
        np.array_equal(*pair) for both in zip(episodes[2], played, strict=True) for pair in zip(*both, strict=True)
    )


def test_a_run_that_is_no_longer_finite_is_found_and_harms_nobody():
    task = mad.make("three-fruits")
    batch = LaneBatch(learners([(task, {"seed": seed}) for seed in range(3)]), 0, Emulated())
    for _ in batch.run(300):
        pass
    batch._runs.table[1, 0, 0] = np.inf
    assert batch.infinite() == [1]
    assert batch.take_back(2).progress["step"] == 300
    with pytest.raises(mad.BadInput, match="a value of task 'three-fruits' is no longer finite"):
        batch.take_back(1)


def test_what_lanes_cannot_take_is_refused_by_name():
    with pytest.raises(mad.BadInput, match="'linear' learns something besides the advisors' tables"):
        learners([("three-fruits", {"learner": "linear"})])
    with pytest.raises(mad.BadInput, match="is a Python environment, and lanes are for compiled worlds"):
        learners([("Taxi-v4", {})])


def test_the_memory_of_a_run_is_known_beforehand():
    [one] = learners([(mad.make("pac-boy"), {})])
    known = bytes_of_run(one, 80)
    made = LaneBatch([one], 80, Emulated())
    arrays = [part for each in (made._runs, made._learning, made._evaluation) for part in each]
    assert 0 < known - sum(array.nbytes for array in arrays) < 1000


def test_an_evaluation_that_does_not_end_is_an_error_of_its_run():
    task = dataclasses.replace(mad.make("three-fruits"), limit=None)
    runs = [(task, {"planning": planning, "gamma": 0.9}) for planning in ("empathic", "egocentric")]
    batch = LaneBatch(learners(runs), 1, Emulated())
    for part in (batch.run(20_000), batch.evaluate(1)):
        for _ in part:
            pass
    fine, endless = batch.played()
    assert fine.terminated.tolist() == [1]
    assert "did not end 1 episodes of 'three-fruits'" in str(endless)


# ---- groups of threads -----------------------------------------------------------------------------------------------
def variant(name, **changes):
    """A task whose advisors differ from the registered one's."""
    task = mad.make(name)
    advisors = [dataclasses.replace(one, **{key: value[j % len(value)] for key, value in changes.items()})
                for j, one in enumerate(task.advisors)]  # fmt: skip
    return dataclasses.replace(task, advisors=tuple(advisors))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "threads"),
    [
        (variant("fruit-grid", table=["all"]), 4),  # any two may learn in one row, and arrive there
        (variant("fruit-grid", planning=["egocentric", "empathic", None]), 4),
        (variant("fruit-grid", aggregation=["sum", "max"], weight=[1.0, 0.0, 0.5]), 32),  # mixed up, and silence
        (mad.make("fishery", heard="boat"), 2),
    ],
)  # fmt: skip
def test_groups_take_what_advisors_have_of_their_own(task, threads):
    for backwards in (False, True):
        assert_as_alone([(task, how) for how in DIFFERENT], 700, threads, backwards)


def test_groups_with_tables_of_32_bits_differ_by_rounding_alone():
    runs = [("three-fruits", how) for how in DIFFERENT]
    found = []
    for threads, dtype in ((1, np.float32), (4, np.float32), (4, np.float64)):
        batch = LaneBatch(learners(runs), 0, Emulated(), threads, dtype)
        for _ in batch.run(60):
            pass
        found.append([batch.take_back(lane).table for lane in range(len(runs))])
    for one, several, exact in zip(*found, strict=True):
        assert np.array_equal(one, several)
        assert 0 < np.abs(several - exact).max() < 1e-6


def test_one_thread_plays_what_groups_do_not_take():
    for task, how in (("hra-fruits", {}), ("three-fruits", {"aggregation": "correction"})):
        assert LaneBatch(learners([(task, how)]), 0, Emulated(), 4).threads == 1


def test_threads_are_as_many_as_fill_a_gpu_and_have_work():
    [pac_boy], [two_goal] = learners([("pac-boy", {})]), learners([("two-goal", {})])
    assert [threads_for(runs, pac_boy) for runs in (1, 2112, 8448, 33_792, 135_168)] == [32, 32, 16, 8, 8]
    assert threads_for(2112, two_goal) == 4


def test_all_threads_of_a_warp_come_by_wherever_they_wait():
    """A run that waits where another one of its warp does not would stop the GPU."""
    waits = {"sync", "anybody"}

    def calls(node, conditions):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in waits:
            yield conditions
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.If) and child is not node.test:
                yield from calls(child, [*conditions, ast.unparse(node.test)])
            else:
                yield from calls(child, [*conditions, "a loop"] if isinstance(node, ast.For) else conditions)

    functions = [node for node in ast.parse(inspect.getsource(thread_groups)).body if isinstance(node, ast.FunctionDef)]
    found = {one.name: list(calls(one, [])) for one in functions}
    assert [name for name, conditions in found.items() if conditions] == ["play_group"]
    assert len(found["play_group"]) > 9
    assert {condition for conditions in found["play_group"] for condition in conditions} == {"ADVISES", "COUNTS"}
