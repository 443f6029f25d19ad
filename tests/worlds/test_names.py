"""Actions and observations have names: those of the documentation, the environment's own, or one's own."""

import warnings

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed
from command_line import refused as one_line
from multiadvisor.envs.names import DOCUMENTED, action_names, documented, observation_names
from refusal import refused


def ours(name):
    if name[0].islower():
        pytest.importorskip("mo_gymnasium")
    # Atari has episodes of the same names
    known = [s for s in gymnasium.registry.values() if s.name == name and "ale_py" not in str(s.entry_point)]
    spec = max(known, key=lambda spec: spec.version)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what environments say of their own spaces
            return gymnasium.make(spec.id, disable_env_checker=True)
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        pytest.skip(str(error))


VARIANTS = [
    "CliffWalkingSlippery", "FrozenLake8x8", "deep-sea-treasure-concave", "deep-sea-treasure-mirrored",
    "minecart-deterministic", "minecart-rgb", "mo-highway-fast",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for name, names in DOCUMENTED.items() if names.actions), *VARIANTS])
def test_every_name_of_the_table_fits_its_environment(name):
    env = ours(name)
    names, said = action_names(env, int(env.action_space.n)), documented(env.spec)
    assert names == said.actions
    assert len(set(names)) == len(names)
    if said.observation and len(env.observation_space.shape or ()) < 2:
        assert observation_names(env) == said.observation


def test_what_the_names_say_is_what_the_actions_do():
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    names = action_names(lake, 4)
    for word, cell in (("right", 1), ("down", 4)):
        lake.reset(seed=0)
        assert lake.step(names.index(word))[0] == cell
    car = gymnasium.make("MountainCar-v0")
    car.reset(seed=0)
    speed = observation_names(car).index("velocity")
    assert car.step(action_names(car, 3).index("push right"))[0][speed] > 0
    cliff = gymnasium.make("CliffWalking-v1")
    cliff.reset(seed=0)
    assert cliff.step(action_names(cliff, 4).index("up"))[0] == 24
    taxi = gymnasium.make("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3")
    taxi.reset(seed=0)
    taxi.unwrapped.s = taxi.unwrapped.encode(2, 2, 0, 1)
    row, *_ = taxi.unwrapped.decode(taxi.step(action_names(taxi, 6).index("north"))[0])
    assert row == 1


class Turned(gymnasium.ActionWrapper):
    """Left is right."""

    def action(self, action):
        return 1 - action


class Named(gymnasium.Env):
    """An environment that names its own."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(3, start=1)
    action_names = ("brake", "roll", "push")
    observation_names = ("here", "there")


def test_whose_actions_are_changed_has_numbers_and_whoever_names_its_own_is_heard():
    assert action_names(Turned(gymnasium.make("CartPole-v1")), 2) == ("action 0", "action 1")
    assert action_names(Named(), 3, 1) == Named.action_names
    assert observation_names(Named()) == ("here", "there")
    stacked = gymnasium.wrappers.FrameStackObservation(gymnasium.make("CartPole-v1"), 2)
    assert observation_names(stacked) == ()
    assert action_names(gymnasium.make("multiadvisor/PacBoy-v0"), 4) == mad.make("pac-boy").actions


def test_names_of_ones_own_are_saved_and_change_nothing_else(tmp_path):
    lake = "FrozenLake-v1"
    task = mad.Task.from_gymnasium(lake, action_names=("W", "S", "O", "N"))
    assert task.actions == ("W", "S", "O", "N")
    assert task.identity == mad.Task.from_gymnasium(lake).identity
    agent = mad.MultiAdvisor(task, seed=0).learn(500)
    agent.save(tmp_path / "run")
    again = mad.load(tmp_path / "run")
    assert again.task.actions == task.actions
    assert again.explain(0, action="S").action == "S"
    assert np.array_equal(again.advice(0)[1], agent.advice(0)[1])


@pytest.mark.parametrize(("given", "way_out"), [
    (("a",), "has 4: name each"), (("a", "b", "a", "c"), "a different word"),
    (("a", "b", "", "c"), "a different word"),
    (("a", "1", "b", "c"), "a different word"), ("abcd", "give a list"), ((1, 2, 3, 4), "give a list"),
])  # fmt: skip
def test_names_that_cannot_be(given, way_out):
    refused(way_out, mad.Task.from_gymnasium, "FrozenLake-v1", action_names=given)


def test_the_command_takes_names(tmp_path, capsys):
    run = ["train", "FrozenLake-v1", "--steps", "50", "--eval-every", "50", "--eval-episodes", "1"]
    assert printed(capsys, *run, "--action-names", "a,b,c,d", "--out", tmp_path / "run")
    assert mad.load(tmp_path / "run").task.actions == ("a", "b", "c", "d")
    one_line(capsys, "name each", *run, "--action-names", "a,b")
    one_line(capsys, "", "check", "pac-boy", "--action-names", "a")


def test_an_id_of_gymnasium_is_enough_and_the_prefix_resolves_a_clash(monkeypatch):
    from multiadvisor.envs.registry import TASKS

    env = gymnasium.make("FrozenLake-v1")
    for task in (mad.make("FrozenLake-v1"), mad.make("gymnasium:FrozenLake-v1"), mad.MultiAdvisor("FrozenLake-v1").task,
                 mad.make(env), mad.MultiAdvisor(env).task):  # fmt: skip
        assert (task.name, task.maker) == ("FrozenLake-v1", "FrozenLake-v1")
    assert mad.make(env, advisors=[mad.Advisor("goal")], weights={"goal": 2.0}).weights.tolist() == [2.0]
    monkeypatch.setitem(TASKS, "FrozenLake-v1", TASKS["two-goal"])
    assert mad.make("FrozenLake-v1").n == 2
    assert mad.make("gymnasium:FrozenLake-v1").maker == "gymnasium:FrozenLake-v1"
