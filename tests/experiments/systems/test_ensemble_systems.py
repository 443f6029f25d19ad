"""The ensembles of shapings and of learners, on made-up runs for and against them; and their tasks."""

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.solver import optimum, solve
from multiadvisor.envs.worlds import mountain_car
from multiadvisor.envs.worlds.dyna_maze import LEARNERS
from multiadvisor.studies.study import Evidence, Plan
from multiadvisor.studies.systems import ensembles, shaping

PLAN = Plan(seeds=3, first_seed=1000)


def judged(system, results):
    return {one.claim.id: one.holds for one in system.findings(Evidence(PLAN, results))}


def shaping_results(alone, together):
    """Steps of each member and of each vote."""
    results = {}
    for seed in PLAN.each:
        for name, steps in alone.items():
            results[shaping.member(name, seed).id] = {"evaluations": [{"length": steps}] * 10}
        for vote, steps in together.items():
            results[shaping.ensemble(vote, seed).id] = {"evaluations": [{"length": steps}] * 10}
    return results


def test_an_ensemble_of_shapings_is_judged_by_its_runs():
    alone = {"none": 300, "position": 250, "height": 210, "speed": 200}
    assert set(judged(shaping, shaping_results(alone, {"majority": 190, "ranks": 200})).values()) == {True}
    found = judged(shaping, shaping_results(alone, {"majority": 205, "ranks": 320}))
    assert found == {"majority-best": False, "majority-plain": True, "ranks-best": False, "ranks-plain": False,
                     "members": True}  # fmt: skip
    same = dict.fromkeys(alone, 200)
    assert not judged(shaping, shaping_results(same, {"majority": 200, "ranks": 200}))["members"]


def ensemble_results(alone, together, exact=0.0):
    results = {}
    for seed in PLAN.each:
        for made, told in ((ensembles.single, alone), (ensembles.ensemble, together)):
            for name, score in told.items():
                results[made(name, seed).id] = {"evaluations": [{"score": score}] * 300}
        for name in (*ensembles.VOTES, "sum"):
            results[ensembles.safe(name, seed).id] = {"loss": exact, "off": exact}
    return results


def test_an_ensemble_of_learners_is_judged_by_its_runs():
    alone = dict.fromkeys(LEARNERS, 80.0)
    good = {"Boltzmann product": 95.0, "majority": 94.0, "ranks": 93.0, "Boltzmann sum": 92.0}
    assert set(judged(ensembles, ensemble_results(alone, good)).values()) == {True}
    assert set(judged(ensembles, ensemble_results(alone, dict.fromkeys(good, 70.0), 0.1)).values()) == {False}


# ---- empathic planning is safe where everybody sees all --------------------------------------------------------------
@pytest.mark.parametrize("aggregation", ["sum", *ensembles.VOTES.values()])
def test_empathic_members_of_an_ensemble_learn_the_true_values(aggregation):
    found = ensembles.empathic({"aggregation": aggregation, "gamma": 0.95, "seed": 5}, None, lambda part: None)
    assert found["loss"] < 1e-9
    assert found["off"] < 1e-9


def test_a_shaping_with_another_discount_than_the_learners_would_be_noticed():
    mdp = enumerate_task(mad.make("random-mdp", advisors=1, instance=5))
    best, _ = optimum(mdp, 0.95)
    potentials = np.random.default_rng(5).normal(size=(3, mdp.states))
    whole = ensembles.shaped(mdp, potentials, 0.95)
    wrong = ensembles.shaped(mdp, potentials, 0.5)  # another discount than the learners'
    off = [
        np.abs(solve(made, "empathic", 0.95).values + potentials[:, :, None] - best).max() for made in (whole, wrong)
    ]
    assert off[0] < 1e-9 < 0.01 < off[1]


def test_empathic_learners_on_the_maze_agree_with_the_solver():
    task = mad.make("dyna-maze", slip=0.0)
    planning = ",".join(f"{name}=empathic" for name in LEARNERS)
    settings = {"aggregation": "majority", "gamma": 0.95, "alpha": 0.5, "epsilon": 0.5, "seed": 0}
    agent = mad.MultiAdvisor(task, planning=planning, **settings).learn(300_000, progress=False)
    best, _ = optimum(enumerate_task(task), 0.95)  # of four equal rewards, added
    goal = task.labels.index("(0, 8)")
    for name in LEARNERS:
        off = np.abs(agent.values(name) - best / len(LEARNERS))
        assert np.delete(off, goal, axis=0).max() < 1e-6, "no episode ever stands on the goal"


# ---- the tasks -------------------------------------------------------------------------------------------------------
def test_the_maze_is_suttons():
    task = mad.make("dyna-maze")
    assert len(task.labels) == 47
    assert task.labels[int(task.initial_state()[0])] == "(2, 0)"
    shortest = mad.MultiAdvisor(mad.make("dyna-maze", slip=0.0), seed=0).learn(60_000, progress=False)
    assert shortest.evaluate(episodes=1).length == 14


@pytest.mark.slow
def test_the_mountain_car_is_gymnasiums():
    task, env = mad.make("mountain-car"), gymnasium.make("MountainCar-v0").unwrapped
    world = task.world
    generator = np.random.default_rng(0)
    for episode in range(3):
        env.reset(seed=episode)
        x, action = np.zeros(4, np.int64), 2
        mountain_car.put(x, float(env.state[0]), 0.0)
        for step in range(200):
            if step % 10 == 0:  # long pushes with the motion, so that all of the hill is seen
                action = int(generator.integers(3)) if generator.random() < 0.3 else (2 if env.state[1] >= 0 else 0)
            _, reward, terminated, _, _ = env.step(action)
            paid, ended = np.zeros(4), np.zeros(4, np.int64)
            over = world.step(world.constants, x, action, np.uint64(0), np.arange(4), 4, paid, ended)
            position, velocity = x[2] / mountain_car.FINE - 1.2, x[3] / mountain_car.FINE - 0.07
            assert (position, velocity) == pytest.approx(tuple(env.state), abs=1e-9)
            assert (bool(over), paid[0]) == (terminated, reward)
            if over:
                break
    assert over, "the last episode reached the flag"


@pytest.mark.slow
def test_potentials_add_up_to_nothing_around_an_episode():
    task = mad.make("mountain-car", discount=1.0)
    agent = mad.MultiAdvisor(task, gamma=1.0, epsilon=1.0, seed=3)
    played = agent.evaluate(episodes=3)  # from the valley at rest, cut off at 200
    table = mountain_car.potentials(50.0)
    assert (table <= 0).all()
    assert table[1:].min() >= -50
    assert played.advisors["none"] == -200
    assert all(abs(played.advisors[name] + 200) <= 50 for name in ("position", "height", "speed"))
