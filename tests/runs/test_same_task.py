"""A checkpoint is of one task: made again from data it is the same one, and another one is refused."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from hypothesis import given
from hypothesis import strategies as st

import multiadvisor as mad
from command_line import printed
from command_line import refused as one_line
from multiadvisor import cli
from multiadvisor.analysis.episodes import record
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.gadgets import finite_task
from multiadvisor.runs.trace import replay
from multiadvisor.storage.checkpoint import read_checkpoint, write_checkpoint

LAKE = "FrozenLake-v1"


def saved(task, folder, steps=50, **settings):
    agent = mad.MultiAdvisor(task, **settings).learn(steps, progress=False)
    agent.save(folder)
    return agent


def refused(folder, words, *given, **more):
    with pytest.raises(mad.BadInput, match=words) as caught:
        mad.load(folder, *given, **more)
    assert "\n" not in str(caught.value)


# ---- environments ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", ["environment", "name", "make"])
def test_options_of_an_environment_are_kept(tmp_path, how, capsys):
    """On the slippery lake the same values score next to nothing."""
    task = {
        "environment": lambda: mad.Task.from_gymnasium(gymnasium.make(LAKE, is_slippery=False)),
        "name": lambda: mad.Task.from_gymnasium(LAKE, is_slippery=False),
        "make": lambda: mad.make(LAKE, is_slippery=False),
    }[how]()
    agent = saved(task, tmp_path / "a", 20_000, gamma=0.9, epsilon=0.5)
    assert agent.evaluate(20).score == 1.0
    assert mad.load(tmp_path / "a").evaluate(20).score == 1.0
    assert printed(capsys, "evaluate", tmp_path / "a", "--episodes", 20)["score"] == 1.0
    assert mad.load(tmp_path / "a", mad.make(LAKE, is_slippery=False)).steps == 20_000
    refused(tmp_path / "a", "is_slippery was False, and is not given", mad.make(LAKE))


def test_what_is_the_same_may_be_said_in_other_words(tmp_path):
    saved(mad.make(LAKE), tmp_path / "a")
    limited = wrappers.TimeLimit(gymnasium.make(LAKE, max_episode_steps=-1, render_mode="rgb_array"), 100)
    for env in (gymnasium.make(LAKE, is_slippery=True, map_name="4x4"), limited):
        assert mad.load(tmp_path / "a", mad.Task.from_gymnasium(env)).steps == 50


@pytest.mark.parametrize("steps", [20, -1, None])
def test_the_limit_is_kept(tmp_path, steps):
    more = {} if steps is None else {"max_episode_steps": steps}
    env = gymnasium.make("CliffWalking-v1", **more)
    saved(mad.Task.from_gymnasium(env), tmp_path / "a")
    again = mad.load(tmp_path / "a").task.adapter.env
    assert again.spec.max_episode_steps == (20 if steps == 20 else None)
    refused(tmp_path / "a", "max_episode_steps was", mad.Task.from_gymnasium("CliffWalking-v1", max_episode_steps=21))


def test_wrappers_of_plain_data_are_put_on_again(tmp_path):
    env = wrappers.TimeLimit(wrappers.ClipReward(gymnasium.make("CliffWalking-v1"), -1, 1), 30)
    saved(mad.Task.from_gymnasium(env, name="clipped"), tmp_path / "a")
    again = mad.load(tmp_path / "a")
    assert str(again.task.adapter.env) == "<TimeLimit<ClipReward<OrderEnforcing<CliffWalkingEnv<CliffWalking-v1>>>>>"
    assert again.task.name == "clipped"
    other = wrappers.TimeLimit(wrappers.ClipReward(gymnasium.make("CliffWalking-v1"), -1, 2), 30)
    refused(tmp_path / "a", "wrappers 0 1, max_reward was 1, and is 2", mad.Task.from_gymnasium(other, name="clipped"))


ADVISORS = st.lists(
    st.builds(
        lambda k, reward, state, weight, gamma: mad.Advisor(f"f{k}", reward, state, weight=weight, gamma=gamma),
        st.integers(0, 1000), st.integers(0, 1), st.sampled_from([None, 0, (1,), (0, 1)]),
        st.floats(-10, 10), st.none() | st.floats(0, 0.9),
    ),
    min_size=1, max_size=3, unique_by=lambda advisor: advisor.name,
)  # fmt: skip


@given(st.none() | ADVISORS, st.sampled_from([None, -1, 7]), st.booleans(), st.none() | st.floats(-3, 3))
def test_data_makes_the_same_task_again(advisors, limit, concave, weight):
    import mo_gymnasium

    more = {} if limit is None else {"max_episode_steps": limit}
    name = "deep-sea-treasure-concave-v0" if concave else "deep-sea-treasure-v0"
    task = mad.Task.from_gymnasium(mo_gymnasium.make(name, **more), advisors)
    if weight is not None:
        task = task.with_weights(**{task.names[-1]: weight})
    again = make(task.maker, **json.loads(json.dumps(task.options)))
    assert again.identity == task.identity
    assert again.advisors == task.advisors
    assert again.options == task.options


def test_a_trace_is_of_its_environment():
    task = mad.make(LAKE, is_slippery=False)
    trace = record(mad.MultiAdvisor(task).learn(50, progress=False))
    replay(trace, mad.make(LAKE, is_slippery=False))
    with pytest.raises(mad.BadInput, match="other advisors or options"):
        replay(trace, mad.make(LAKE))


TRAIN = (
    "train", "pac-boy", "--maze", "maze.txt", "--steps", "400", "--eval-every", "200", "--eval-episodes", "3", "--out",
    "run",
)  # fmt: skip


# ---- mazes -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def maze(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("maze.txt").write_text("P..\n.G.\n")
    return Path("maze.txt")


def test_a_maze_is_kept_with_the_run(maze, monkeypatch, capsys):
    assert cli.main(TRAIN) == 0
    texts = {}
    for where in ("here", "elsewhere"):
        capsys.readouterr()
        texts[where] = printed(capsys, "evaluate", "run" if where == "here" else "../run") | {"run": ""}
        if where == "here":
            Path("elsewhere").mkdir()
            monkeypatch.chdir("elsewhere")
    assert texts["here"] == texts["elsewhere"]
    moved = {"maze.txt": "../maze.txt", "run": "../run"}
    assert cli.main([*(moved.get(word, word) for word in TRAIN), "--resume"]) == 0


def test_an_edited_maze_is_another_task(maze, capsys):
    assert cli.main(TRAIN) == 0
    before = mad.load("run").evaluate(5).as_dict()
    maze.write_text("..P\n.G.\n")
    capsys.readouterr()
    one_line(capsys, "other advisors, weights or options", *TRAIN, "--resume")
    assert mad.load("run").evaluate(5).as_dict() == before, "the run has its own maze"
    maze.unlink()
    assert mad.load("run").evaluate(5).as_dict() == before


def test_a_maze_inside_an_environment_counts_as_well(maze):
    def task(**more):
        return mad.make("multiadvisor/mo-PacBoy-v0", maze="maze.txt", **more)

    saved(task(), "a")
    assert mad.load("a", task()).steps == 50
    maze.write_text("P..\n..G\n")
    assert mad.load("a").task.options["maze"] == "P..\n.G.\n"
    refused("a", "maze was", task())


def test_no_file_is_read_because_a_checkpoint_names_it(maze):
    saved(mad.make("pac-boy", maze="maze.txt"), "a")
    header, tensors = read_checkpoint(Path("a"))
    header["task"]["options"]["maze"] = "maze.txt"
    write_checkpoint(Path("a"), header, tensors)
    refused("a", "'maze.txt', the name of a file: give its text")


# ---- weights ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("planning", ["egocentric", "agnostic"])
def test_other_weights_are_taken_where_values_do_not_depend_on_them(tmp_path, planning):
    task = mad.make("two-goal")
    agent = saved(task, tmp_path / "a", 500, planning=planning, epsilon=1.0)
    other = task.with_weights(**{"goal 2": 5.0})
    again = mad.load(tmp_path / "a", other)
    state = task.initial_state()
    assert again.values("goal 1").tobytes() == agent.values("goal 1").tobytes()
    assert again.preferences(state) == pytest.approx(np.array([1.0, 5.0]) @ agent.advice(state)[1], rel=1e-12)
    refused(tmp_path / "a", "other advisors, weights or options", other, reweight=False)
    again.save(tmp_path / "b")
    assert mad.load(tmp_path / "b").task.weights.tolist() == [1.0, 5.0]
    saved(task, tmp_path / "c", planning=planning, learner="linear")
    refused(tmp_path / "c", "whose weights are in the values it learned, and the given task has others: give", other)


PAIR = ("egocentric", "empathic")


def test_values_that_depend_on_the_weights_ask_for_a_word(tmp_path):
    task = mad.make("two-goal")
    saved(task, tmp_path / "a", 500)
    other = task.with_weights(**{"goal 2": 5.0})
    refused(tmp_path / "a", "whose empathic values depend on the weights, and the given task has others: give", other)
    assert mad.load(tmp_path / "a", other, reweight=True).task.weights.tolist() == [1.0, 5.0]
    assert mad.load(tmp_path / "a", task.with_weights(**{"goal 2": 1.0})).steps == 500, "the same weights, said again"
    refused(tmp_path / "a", "other advisors", mad.make("two-goal", r1=2.0), reweight=True)


def test_a_run_goes_on_with_other_weights_only_where_it_can_and_where_it_is_told_to(tmp_path, capsys):
    line = ["train", "two-goal", "--steps", "50", "--eval-every", "50", "--eval-episodes", "1"]
    own, asks = ([*line, "--planning", planning, "--out", str(tmp_path / planning)] for planning in PAIR)
    for each in (own, asks):
        assert cli.main(each) == 0
    capsys.readouterr()
    one_line(capsys, "whose empathic values depend on the weights", *asks, "--resume", "--weights", "goal 1=3")
    result = printed(capsys, *own, "--resume", "--weights", "goal 1=3")
    assert result["reweighted"] == [{"steps": 50, "weights": {"goal 1": 3.0, "goal 2": 1.0}}]
    one_line(capsys, "with other advisors, weights or options", *own, "--resume")


# ---- what a task consists of -----------------------------------------------------------------------------------------
class Spaces(gymnasium.Env):
    """Whatever is done, the first observation of its space is seen."""

    def __init__(self, actions, observations):
        self.action_space, self.observation_space = actions, observations

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.observation_space.seed(0)
        return self.observation_space.sample(), 1.0, bool(self.np_random.random() < 0.1), False, {}


class Doubled(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2 * reward


class Case(NamedTuple):
    """A task, made anew each time; another one, and how it is told from that; why it cannot be made from data."""

    own: Callable[[], mad.Task]
    other: Callable[[], mad.Task]
    told: str
    reason: str = ""
    settings: dict[str, Any] = {}  # noqa: RUF012
    steps: int = 20


def of(env, *advisors, **more):
    """How a task is made of an environment that is made each time."""
    return lambda: mad.Task.from_gymnasium(env(), *advisors, **more)


def lake(*advisors, **more):
    return of(lambda: LAKE, *advisors, **more)


def wrapped(wrapper):
    return of(lambda: wrapper(gymnasium.make(LAKE)))


def observed(space):
    return of(lambda: Spaces(TWO, space))


def acted(space):
    return of(lambda: Spaces(space, TWO))


def boxes(low, high, seen=1.0):
    return of(lambda: Spaces(spaces.Box(low, high, (2,)), spaces.Box(-seen, seen, (3,))), name="box")


def hills(advisors=None, **more):
    return of(lambda: "MountainCar-v0", advisors, **more)


def coin(pay=1.0, **more):
    one = np.ones((1, 2, 1))
    reward = np.array([[[[0.0]], [[pay]]]])
    task = finite_task("coin", ("wait", "take"), ("money",), np.ones(1), one, one * 0, reward, np.array([[[0], [1]]]))
    return dataclasses.replace(task, advisors=tuple(dataclasses.replace(each, **more) for each in task.advisors))


def unsized():
    return dataclasses.replace(coin(), world=dataclasses.replace(coin().world, sizes=None))


def beside(what, **more):
    return lake(**{"extra_advisor": mad.Advisor(what, **{"gamma": 0.9, "alpha": 0.1, **more})})


TWO = spaces.Discrete(2)
PARTS = spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(3)})
BINS = mad.Bins([-1.2, -0.07], [0.6, 0.07], [18, 14])
ANOTHER = "with other advisors, weights or options"
UNREGISTERED = "its environment is not registered with Gymnasium"
CASES = {
    **{f"wrapped, {name}": Case(wrapped(wrapper), lake(), ANOTHER, f"its environment is wrapped in {name}") for
       name, wrapper in (("Doubled", Doubled), ("NormalizeReward", wrappers.NormalizeReward),
                         ("TransformReward", lambda env: wrappers.TransformReward(env, lambda r: r)))},
    "not registered": Case(observed(TWO), of(lambda: wrappers.TimeLimit(Spaces(TWO, TWO), 5)), ANOTHER, UNREGISTERED),
    **{f"{name} of an advisor": Case(lake([mad.Advisor("x", **{name: given})]), lake([mad.Advisor("x")]), ANOTHER,
                                     f"the {name} of its advisor 'x' is a function") for name, given in
       (("reward", lambda t: 0.0), ("state", lambda o: o), ("active", lambda o: True), ("ended", lambda t: False))},
    "bins": Case(hills(discretise=BINS), hills(discretise=mad.Bins([-1.2, -0.07], [0.6, 0.07], [14, 18])), "bins was"),
    "bins of an advisor": Case(hills([mad.Advisor("t", state=BINS)]), hills([mad.Advisor("t", state=0)]), "state was"),
    "discretised by a function": Case(hills(discretise=lambda o: int(o[0] > 0)), hills(discretise=BINS), ANOTHER,
                                      "its discretise= is a function"),
    "a world by hand": Case(coin, lambda: coin(2.0), ANOTHER, "it was put together by hand"),
    "a group": Case(coin, lambda: coin(group="x"), "group was not given, and is 'x'", "it was put together by hand"),
    "sizes": Case(coin, unsized, "world, sizes was", "it was put together by hand"),
    "a target": Case(lambda: coin(planning="target", target=lambda state: 0),
                     lambda: coin(planning="target", target=lambda state: 1), "targets was"),
    "actions": Case(acted(spaces.MultiDiscrete([2, 3])), acted(spaces.MultiDiscrete([3, 2])),
                    "action space, nvec 0 was 2, and is 3", UNREGISTERED),
    "a kind of actions": Case(acted(spaces.MultiDiscrete([2, 2])), acted(spaces.MultiBinary(2)),
                              "action space, kind was 'MultiDiscrete', and is 'Multi", UNREGISTERED),
    "a start of several": Case(acted(spaces.MultiDiscrete([2])), acted(spaces.MultiDiscrete([2], start=[1])),
                               "action space, start 0 was 0, and is 1", UNREGISTERED),
    "a start": Case(acted(spaces.Discrete(3)), acted(spaces.Discrete(3, start=1)),
                    "action space, start was 0, and is 1", UNREGISTERED),
    **{f"observations, {told}": Case(observed(own), observed(other), told, UNREGISTERED) for own, other, told in (
        (TWO, spaces.Discrete(2, start=1), "observation space, start was 0, and is 1"),
        (PARTS, spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Discrete(2)}),
         "observation space, parts 0 1, n was 2, and is 3"),
        (PARTS, spaces.Dict({"a": spaces.Discrete(2), "c": spaces.Discrete(3)}),
         "observation space, parts 1 0 was 'b', and is 'c'"),
        (spaces.Tuple([TWO, TWO]), spaces.Tuple([TWO, spaces.MultiBinary(1)]), "parts 1, kind was 'Discrete'"),
        (spaces.Box(0, 3, (2,), np.int64), spaces.Box(0, 4, (2,), np.int64), "observation space, high was '3'"),
        (spaces.Box(0, 3, (2,), np.int64), spaces.Box(0, 3, (2,), np.int32), "observation space, dtype was 'int64'"),
        (spaces.Text(2, charset="ab"), spaces.Text(2, charset="ac"), "observation space, characters was 'ab'"))},
    "a box of actions": Case(boxes(-1.0, 1.0), boxes(-2.0, 5.0), "action space, high was '1.0', and is '5.0'", steps=0),
    "a box of observations": Case(boxes(-1.0, 1.0), boxes(-1.0, 1.0, 2.0),
                                  "observation space, high was '1.0', and is '2.0'", steps=0),
    **{f"{field} of the {what}": Case(beside(what), beside(what, **{field: value}), f"extra advisor, {field} {told}",
                                      settings={"aggregation": aggregation})
       for what, aggregation in (("arbitrator", "arbi_q"), ("correction", "correction")) for field, value, told in (
           ("gamma", 0.0, "was 0.9, and is 0.0"), ("alpha", 0.5, "was 0.1, and is 0.5"),
           ("states", 17, "was not given, and is 17"),
           ("reward", lambda t: 1.0, "was not given, and is {'kind': 'function'}"),
           ("state", lambda o: 0, "was not given, and is {'kind': 'function'}"))},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_same_task_is_taken_and_another_is_refused_by_name(tmp_path, case):
    saved(case.own(), tmp_path / "a", case.steps, **case.settings)
    if case.reason:
        refused(tmp_path / "a", f"cannot be recreated from data, as {case.reason}: give task=")
    assert mad.load(tmp_path / "a", case.own()).steps == case.steps
    refused(tmp_path / "a", case.told, case.other())


def test_bins_are_made_again(tmp_path):
    saved(hills(discretise=BINS)(), tmp_path / "a")
    assert mad.load(tmp_path / "a").task.adapter.discretise.states == 252
    saved(hills([mad.Advisor("t", state=BINS)])(), tmp_path / "b")
    assert mad.load(tmp_path / "b").task.advisors[0].state(np.array([9.0, 9.0])) == 251


def test_spaces_are_kept_in_full(tmp_path):
    saved(mad.Task.from_gymnasium(Spaces(spaces.MultiDiscrete([2, 3]), PARTS)), tmp_path / "a", 0)
    kept = json.loads((tmp_path / "a/agent.json").read_text())["task"]["identity"]
    assert kept["action space"] == {
        "kind": "MultiDiscrete", "nvec": [2, 3], "start": [0, 0], "shape": [2], "dtype": "int64"
    }  # fmt: skip
    assert [name for name, _ in kept["observation space"]["parts"]] == ["a", "b"]
