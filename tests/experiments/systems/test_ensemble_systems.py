"""The ensembles of shapings and of learners: what is exact of them, and their tasks."""

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.solver import optimum, solve
from multiadvisor.envs.worlds import mountain_car
from multiadvisor.envs.worlds.dyna_maze import LEARNERS
from multiadvisor.studies.systems import ensembles


# ---- empathic planning is safe where everybody sees all --------------------------------------------------------------
@pytest.mark.parametrize("aggregation", ["sum", *ensembles.VOTES.values()])
def test_empathic_members_of_an_ensemble_learn_the_true_values(aggregation):
    found = ensembles.empathic({"aggregation": aggregation, "gamma": 0.95, "seed": 5})
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


def driven(world, x, action):
    """One step of the mountain car: what each advisor is paid, and whether the flag is reached."""
    paid = np.zeros(4)
    over = world.step(world.constants, x, action, np.uint64(0), np.arange(4), 4, paid, np.zeros(4, np.int64))
    return paid, bool(over)


@pytest.mark.slow
def test_the_mountain_car_is_gymnasiums():
    world, env = mad.make("mountain-car").world, gymnasium.make("MountainCar-v0").unwrapped
    generator = np.random.default_rng(0)
    for episode in range(3):
        env.reset(seed=episode)
        x, action = np.zeros(4, np.int64), 2
        mountain_car.put(x, float(env.state[0]), 0.0)
        for step in range(200):
            if step % 10 == 0:  # long pushes with the motion, so that all of the hill is seen
                action = int(generator.integers(3)) if generator.random() < 0.3 else (2 if env.state[1] >= 0 else 0)
            _, reward, terminated, _, _ = env.step(action)
            paid, over = driven(world, x, action)
            position, velocity = x[2] / mountain_car.FINE - 1.2, x[3] / mountain_car.FINE - 0.07
            assert (position, velocity) == pytest.approx(tuple(env.state), abs=1e-9)
            assert (over, paid[0]) == (terminated, reward)
            if over:
                break
    assert over, "the last episode reached the flag"


def test_potentials_add_up_to_nothing_around_an_episode():
    world, generator, x = mad.make("mountain-car", discount=1.0).world, np.random.default_rng(3), np.zeros(4, np.int64)
    mountain_car.put(x, -0.5, 0.0)  # the valley, at rest
    total = np.sum([driven(world, x, int(action))[0] for action in generator.integers(3, size=200)], axis=0)
    table = mountain_car.potentials(50.0)
    assert (table <= 0).all()
    assert table[1:].min() >= -50
    assert total[0] == -200
    assert (np.abs(total[1:] + 200) <= 50).all()
