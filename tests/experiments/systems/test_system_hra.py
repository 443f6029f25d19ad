"""The verdict on HRA follows from the runs; the optimum is that of the shortest tours."""

import itertools

import numpy as np
import pytest

from multiadvisor.envs.builtin import make
from multiadvisor.studies.study import Evidence, Plan
from multiadvisor.studies.systems import hra

PLAN = Plan(seeds=2, first_seed=1000)


def made_up(reached, final=0.92):
    """Runs in which each learner comes to `final` of the optimal steps at that place of EPISODES, or never (None)."""
    runs = {}
    for name, place in reached.items():
        at = np.arange(len(hra.EPISODES)) >= (len(hra.EPISODES) if place is None else place)
        steps = np.where(at, hra.optimum() / final, 300.0).tolist()
        runs |= {hra.job(name, seed).id: {"length": steps, "terminated": [1.0] * len(steps)} for seed in PLAN.each}
    return runs


def holds(results):
    return {one.claim.id: one.holds for one in hra.findings(Evidence(PLAN, results))}


GOOD = {hra.ONE: None, hra.WHOLE: None, hra.CELL: 28, hra.GVF: 8, hra.CELL_PLAYING: None, hra.GVF_PLAYING: 15}


def test_runs_that_refute_it():
    assert all(holds(made_up(GOOD, 0.96)).values())
    assert not holds(made_up(GOOD))["optimum"], "92% of the optimal number of steps are not 95%"
    assert not holds(made_up(GOOD | {hra.CELL: 12}))["episodes-cell"]
    assert not holds(made_up(GOOD | {hra.WHOLE: 8}))["episodes-whole"]
    assert not holds(made_up(GOOD | {hra.CELL_PLAYING: 16}))["episodes-playing"]
    assert not holds(made_up(GOOD | {hra.ONE: 8}))["heads-beat-one"]


@pytest.mark.slow
def test_the_optimum_is_the_shortest_tour():
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
