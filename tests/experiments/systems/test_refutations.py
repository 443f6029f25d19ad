"""The verdict on a system follows from its runs: made-up ones that show what it is known for, and some that do not."""

import itertools

import numpy as np
import pytest

from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.dyna_maze import LEARNERS
from multiadvisor.runs.jobs import perform
from multiadvisor.studies.study import Evidence, Plan, systems
from multiadvisor.studies.systems import (
    arbi_q,
    ensembles,
    esbas,
    gm_sarsa,
    hra,
    merging_system,
    q_decomposition,
    shaping,
    value_mapping,
    w_learning,
)

PLAN = Plan(seeds=2, first_seed=1000)


def each(job_of, result, cases=((),)):
    """The same result for every seed of each case."""
    return {job_of(*case, seed).id: result(*case) for case in cases for seed in PLAN.each}


def named(job_of, results):
    """These results by name, for every seed."""
    return each(job_of, results.get, [(name,) for name in results])


def of_runs(runs, results):
    """The same of runs that have names."""
    return named(lambda name, seed: runs[name](seed), results)


# ---- what each system's runs may say ---------------------------------------------------------------------------------
def merged(backups, same, components=10):
    run = {"merged": backups, "plain": 100, "components": components, "same": same, "inside": True}
    return each(merging_system.job, lambda: run)


def mapped(plain, log, errors):
    share = {"plain": plain, "logarithm": log}
    cases = [(scale, gamma) for scale in share for gamma in value_mapping.GAMMAS]
    chains = each(value_mapping.job, lambda scale, gamma: {"evaluations": [{"terminated": share[scale]}]}, cases)
    return chains | each(value_mapping.channels_job, lambda: {"errors": errors})


def regrets(found):
    return each(w_learning.job, lambda *case: {"regret": [0.0, found(*case)]}, w_learning.cases())


def known_regret(heard, minds, constant):
    return {"sum": 3.0, "max": 2.0 + constant, "w_learning": 1.0 if minds == "alike" else 3.0}[heard]


def scored(moves):
    """A run scores 2 where this one moves with the scales, else 1."""
    cases = [(heard, scale) for heard in arbi_q.COMPARED for scale in arbi_q.SCALES]
    level = {(heard, scale): 2.0 if heard == moves and scale != "as they are" else 1.0 for heard, scale in cases}
    return each(arbi_q.job, lambda *case: {"scores": [level[case]] * arbi_q.EVALUATIONS}, cases)


def dialogues(**found):
    """These returns early and late; others return 0."""
    members = tuple(esbas.MEMBERS)

    def result(who):
        early, late = found.get("portfolio" if who == members else who[0].replace(" ", "_"), (0.0, 0.0))
        curve = [early] * (esbas.EPOCHS - 1) + [late]
        return {"returns": curve, "chosen": [[1.0] * len(who)] * esbas.EPOCHS}

    return each(esbas.job, result, [(members,), *(((name,),) for name in members)])


STAGGERED = {"coarse_table": (0.5, 0.5), "network": (0.0, 0.9)}
REACHED = {hra.ONE: None, hra.WHOLE: None, hra.CELL: 28, hra.GVF: 8, hra.CELL_PLAYING: None, hra.GVF_PLAYING: 15}


def headed(final=0.92, **changes):
    """Each learner comes to `final` of the optimal steps at that place of EPISODES, or never."""
    places = REACHED | {getattr(hra, name): place for name, place in changes.items()}

    def result(name):
        start = len(hra.EPISODES) if places[name] is None else places[name]
        steps = np.where(np.arange(len(hra.EPISODES)) >= start, hra.optimum() / final, 300.0).tolist()
        return {"length": steps, "terminated": [1.0] * len(steps)}

    return each(hra.job, result, [(name,) for name in places])


def evaluated(count=10, **figures):
    return {"evaluations": [figures] * count}


def shapings(alone, majority, ranks):
    """Steps of each member alone, and of each vote."""
    votes = {"majority": majority, "ranks": ranks}
    return of_runs(shaping.ALONE, {name: evaluated(length=steps) for name, steps in alone.items()}) | of_runs(
        shaping.TOGETHER, {vote: evaluated(length=steps) for vote, steps in votes.items()}
    )


def voted(scores, exact=0.0):
    """Scores of the votes, where each learner alone has 80."""
    votes = dict(zip(ensembles.VOTES, scores, strict=True))
    runs = of_runs(ensembles.ALONE, {name: evaluated(300, score=80.0) for name in LEARNERS})
    runs |= of_runs(ensembles.TOGETHER, {name: evaluated(300, score=score) for name, score in votes.items()})
    return runs | named(ensembles.safe, {name: {"loss": exact, "off": exact} for name in (*votes, "sum")})


def decomposed(sarsa, selfish, stocks, catch):
    """Scores on both tasks; what is left by local Sarsa, by local Q at its fixed point, and by boats alone."""
    runs = {}
    for task in q_decomposition.SCHEDULES:
        for k, seed in enumerate(PLAN.each):
            for planning, score in (("sarsa", sarsa), ("egocentric", selfish + 0.1 * k)):
                runs[q_decomposition.job(planning, task, seed).id] = evaluated(score=score)
    fates = dict(zip(("local Sarsa", "local Q", "each boat for itself"), stocks, strict=True))
    runs |= named(q_decomposition.fleet, {name: {"catch": catch, "stock": stock} for name, stock in fates.items()})
    for name, caught in (("local Sarsa", 100.0), ("local Q", 10.0)):
        runs[q_decomposition.exact(name).id] = {"catch": caught, "stock": fates[name]}
    return runs


def modules(sarsa, selfish):
    """What both plannings lose."""
    runs = {}
    for planning, loss in (("sarsa", sarsa), ("egocentric", selfish)):
        for seed in PLAN.each:
            runs[gm_sarsa.module(planning, seed).id] = {"off": loss, "loss": loss}
            for task in gm_sarsa.SCHEDULES:
                runs[gm_sarsa.job(planning, task, seed).id] = evaluated(score=1.0 - loss, terminated=1.0 - loss)
    return runs


STEPS = {"none": 300, "position": 250, "height": 210, "speed": 200}
ALL = "all of them"


CASES = [
    (shaping, lambda: shapings(STEPS, 190, 200), ()),
    (shaping, lambda: shapings(STEPS, 205, 320), ("majority-best", "ranks-best", "ranks-plain")),
    (shaping, lambda: shapings(dict.fromkeys(STEPS, 200), 200, 200), ("majority-plain", "ranks-plain", "members")),
    (ensembles, lambda: voted((95.0, 94.0, 93.0, 92.0)), ()),
    (ensembles, lambda: voted((70.0,) * 4, 0.1), ALL),
    (q_decomposition, lambda: decomposed(1.2, 0.0, (1e5, 1e3, 5e3), 95.0), ()),
    (q_decomposition, lambda: decomposed(1.0, 1.0, (1e3, 1e5, 1e5), 5.0), ALL),
    (gm_sarsa, lambda: modules(0.0, 0.5), ()),
    (gm_sarsa, lambda: modules(0.5, 0.0), ALL),
    (merging_system, lambda: merged(50, 1.0), ()),
    (merging_system, lambda: merged(100, 1.0), ("fewer-backups", "with-components")),
    (merging_system, lambda: merged(50, 0.99), ("same-policy",)),
    (merging_system, lambda: merged(50, 1.0, 60), ("with-components",)),
    (value_mapping, lambda: mapped(0.2, 1.0, [0.3, 0.1, 0.01]), ()),
    (value_mapping, lambda: mapped(1.0, 1.0, [0.3, 0.1, 0.01]), ("small-gamma",)),
    (value_mapping, lambda: mapped(0.2, 0.9, [0.3, 0.1, 0.01]), ("any-gamma",)),
    (value_mapping, lambda: mapped(0.2, 1.0, [0.3, 0.1, 0.06]), ("converges",)),
    (value_mapping, lambda: mapped(0.2, 1.0, [0.3, 0.01, 0.02]), ("settles",)),
    (w_learning, lambda: regrets(known_regret), ()),
    (w_learning, lambda: regrets(lambda *case: 1.0), ("worst-regret", "strongest-wish")),
    (w_learning, lambda: regrets(lambda heard, minds, constant: constant), ("worst-regret", "constants")),
    (w_learning, lambda: regrets(lambda *case: 0.5 if case[:2] == ("w_learning", "apart") else known_regret(*case)),
     ("independent",)),
    (arbi_q, lambda: scored("sum"), ()),
    (arbi_q, lambda: scored("arbi_q"), ("arbi-q-food-100", "sum-food-100", "arbi-q-wolf-100", "sum-wolf-100")),
    (arbi_q, lambda: scored("nobody"), ("sum-food-100", "sum-wolf-100")),
    (esbas, lambda: dialogues(portfolio=(0.5, 0.9), **STAGGERED), ()),
    (esbas, lambda: dialogues(portfolio=(0.3, 0.5), **STAGGERED), ("regret", "last-half")),
    (esbas, lambda: dialogues(coarse_table=(0.5, 0.5)), ("late", "regret", "last-half", "blind")),
    (esbas, lambda: dialogues(portfolio=(0.5, 0.9), network=(0.6, 0.9)), ("early",)),
    (hra, lambda: headed(0.96), ()),
    (hra, lambda: headed(), ("optimum",)),  # 92% of the optimal number of steps are not 95%
    (hra, lambda: headed(0.96, CELL=12), ("episodes-cell",)),
    (hra, lambda: headed(0.96, WHOLE=8), ("episodes-whole",)),
    (hra, lambda: headed(0.96, CELL_PLAYING=16), ("episodes-playing",)),
    (hra, lambda: headed(0.96, ONE=8), ("heads-beat-one",)),
]  # fmt: skip


@pytest.mark.parametrize(("system", "results", "fails"), CASES)
def test_what_the_runs_do_not_show_does_not_hold(system, results, fails):
    found = system.findings(Evidence(PLAN, results()))
    names = {one.claim.id for one in found}
    assert len(names) == len(found)
    assert {one.claim.id for one in found if not one.holds} == (names if fails is ALL else set(fails))


@pytest.mark.parametrize("name", systems())
def test_each_claim_of_a_system_has_results_that_show_it_and_some_that_refute_it(name):
    found = [system.findings(Evidence(PLAN, results())) for system, results, _ in CASES if system.STUDY.name == name]
    held = {one.claim.id: set() for one in found[0]}
    for one in itertools.chain(*found):
        held[one.claim.id].add(one.holds)
    assert all(each == {True, False} for each in held.values())


# ---- what they run is what they say ----------------------------------------------------------------------------------
def test_the_work_of_merging():
    found = merging_system.work({"components": 2, "states": 3, "own": 3, "busy": 1, "gamma": 0.8, "seed": 0})
    assert found["same"] == 1.0
    assert found["inside"]
    assert found["decided"][0][-1] == found["decided"][1][-1] == 1.0


@pytest.mark.slow
def test_the_work_of_value_mapping():
    found = value_mapping.work({"mappings": ["log:50", None, None], "looks": [1000, 100_000], "seed": 0})
    assert found["errors"][1] < 0.2 * found["errors"][0]


def test_the_work_of_a_portfolio_is_the_same_again():
    config = {"members": ["coarse table", "fine table"], "epochs": 5, "seed": 1}
    first, second = (perform("portfolio", config, None, lambda share: None) for _ in range(2))
    assert first == second
    assert len(first["returns"]) == 5
    assert np.allclose(np.sum(first["chosen"], axis=1), 1.0)


def test_a_dialogue_counts_once_however_long_its_epoch_is():
    curve = np.zeros((1, esbas.EPOCHS))
    curve[0, -1] = 1.0
    assert esbas.an_episode(curve)[0] == 2 ** (esbas.EPOCHS - 1) / (2**esbas.EPOCHS - 1)


def test_five_of_one_mind():
    task = w_learning.crowd(0, "alike", 5.0)
    reward = task.world.constants.reward
    assert np.array_equal(reward[..., 1], reward[..., 4])
    assert np.allclose(reward[..., 0] - 5.0, reward[..., 1])
    assert not np.array_equal(w_learning.crowd(0, "apart").world.constants.reward[..., 1], reward[..., 1])
    assert task.endless


def test_the_arbitrator_is_paid_as_the_task_pays_and_the_advisors_as_told():
    task = arbi_q.scaled(100.0, 1.0)
    step = type("Step", (), {"reward": np.array([1.0, -1.0])})
    assert [advisor.reward(step) for advisor in task.advisors] == [100.0, -1.0]
    assert task.extra_advisor.reward(step) == 0.0


@pytest.mark.slow
def test_the_optimum_of_hra_is_the_shortest_tour():
    task, lengths = make("hra-fruits"), []
    cells = [(r, c) for r in range(10) for c in range(10)]
    places = [cells[cell] for cell in task.grid.item_cells]
    assert places == [(0, 0), (0, 9), (1, 2), (3, 6), (4, 4), (5, 7), (6, 2), (7, 7), (8, 8), (9, 0)]
    for seed in range(40):
        x = task.initial_state(seed)
        fruits = [place for place, lies in zip(places, x[1:], strict=True) if lies]
        assert len(fruits) == 5
        tours = (
            sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in itertools.pairwise((cells[x[0]], *order)))
            for order in itertools.permutations(fruits)
        )
        lengths.append(min(tours))
    assert np.mean(lengths) == pytest.approx(hra.optimum(), abs=3 * np.std(lengths) / 40**0.5)
