"""Tasks and advisors: mazes that are refused, layouts, and environments of one's own."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

import multiadvisor as mad
from multiadvisor.envs.registry import ENVIRONMENTS, TASKS
from multiadvisor.envs.worlds.board import parse_maze
from multiadvisor.envs.worlds.pac_boy import PAC_BOY
from refusal import refused


def test_pac_boy_has_the_papers_counts():
    task = mad.make("pac-boy")
    board = parse_maze(PAC_BOY)
    assert board.shape == (11, 11)
    assert (int(board.walls.sum()), len(board.place), len(board.fruit), len(board.ghosts)) == (45, 76, 75, 2)
    assert sum(advisor.states for advisor in task.advisors) == 17_252
    assert task.layout().rows * len(task.actions) == 45_904  # the two ghosts share a table
    assert task.actions == ("N", "W", "S", "E")


@pytest.mark.parametrize("name", [name for name in TASKS if name not in ENVIRONMENTS])
def test_layouts_give_every_local_state_a_row_of_its_own(name):
    task = mad.make(name)
    layout = task.layout()
    rows = {}
    for j, advisor in enumerate(task.advisors):
        mine = layout.offset[j] + layout.stride[j] * np.arange(advisor.states)
        rows.setdefault(advisor.table or j, set()).update(mine.tolist())
    taken = [row for group in rows.values() for row in group]
    assert sorted(taken) == list(range(layout.rows))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("..P\n..", "not rectangular: line 2 has 2 characters"),
        ("...\n...", "has no start"),
        ("P.P", "2 starts"),
        ("P_#", "no place for fruit"),
        ("P.#.", r"out of reach at \(0, 3\)"),
        ("P.x", "'x' in line 1"),
        ("P" + "." * 5000, "at most 4096"),
    ],
)
def test_bad_mazes(text, message, tmp_path):
    path = tmp_path / "maze.txt"
    path.write_text(text)
    refused(message, mad.make, "pac-boy", maze=str(path))


def test_unreadable_mazes(tmp_path):
    refused("No such file", mad.make, "pac-boy", maze=str(tmp_path / "none.txt"))
    binary = tmp_path / "maze.bin"
    binary.write_bytes(bytes(range(256)))
    refused("not a text file", mad.make, "pac-boy", maze=str(binary))


@given(st.text(alphabet="#.PGF_x\n", max_size=60))
def test_any_text_is_a_maze_or_one_sentence(text):
    try:
        board = parse_maze(text)
    except mad.BadInput as error:
        refusal = str(error)
    else:
        refusal = "" if board.start >= 0 and len(board.fruit) > 0 else "neither\nnor"
    assert "\n" not in refusal


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pacboy", {}, "did you mean 'pac-boy'"),
        ("pac-boy", {"rule": "hra"}, "did you mean 'rules'"),
        ("pac-boy", {"rules": "chess"}, "choose one of hra, paper"),
        ("pac-boy", {"limit": 0}, "limit is 0"),
        ("three-fruits", {"limit": 5}, "takes no option"),
        ("fruit-grid", {"fruits": 25}, "25 fruits do not fit"),
        ("fruit-grid", {"width": 0}, "option width of task .fruit-grid. is 0: give an integer of at least 1"),
        ("two-goal", {"r1": "much"}, "give a value of the kind float"),
        ("two-goal", {"r1": -1.0}, "finite numbers above 0"),
        ("dollars-and-euros", {"failure": 1.0}, "failure is 1.0"),
        ("NoSuch-v0", {}, "no environment 'NoSuch-v0'"),
        ("Pendulum-v1", {"bins": "5,5,5"}, "leave bins and discretise out"),
        ("Pendulum-v1", {"bins": "3"}, "leave bins and discretise out"),
    ],
)
def test_bad_tasks(name, options, message):
    refused(message, mad.make, name, **options)


class Walk(gymnasium.Env):
    """A walk on 5 places; observation chosen by the test."""

    def __init__(self, space, look, reward=None):
        self.observation_space, self.look, self.reward = space, look, reward
        self.action_space = spaces.Discrete(2)
        if reward is not None:
            self.reward_space = spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 2
        return self.look(self.place), {}

    def step(self, action):
        self.place = min(max(self.place + 2 * action - 1, 0), 4)
        pay = float(self.place == 4)
        return self.look(self.place), pay if self.reward is None else self.reward(pay), self.place == 4, False, {}


LOOKS = {
    "discrete": (spaces.Discrete(5, start=3), lambda p: p + 3),
    "multi-discrete": (spaces.MultiDiscrete([5, 2]), lambda p: np.array([p, 1])),
    "multi-binary": (spaces.MultiBinary(5), lambda p: np.eye(5, dtype=np.int8)[p]),
    "whole box": (spaces.Box(0, 9, (2, 2), np.int32), lambda p: np.full((2, 2), p, np.int32)),
    "tuple": (spaces.Tuple((spaces.Discrete(5), spaces.Discrete(2))), lambda p: (p, 0)),
    "dict": (spaces.Dict({"place": spaces.Discrete(5), "lamp": spaces.Discrete(2)}), lambda p: {"lamp": 1, "place": p}),
    "nested": (
        spaces.Dict({"at": spaces.Tuple((spaces.MultiDiscrete([5, 2]), spaces.Text(9))), "on": spaces.MultiBinary(2)}),
        lambda p: {"on": np.array([0, 1], np.int8), "at": (np.array([p, 1]), "here")},
    ),
}


@pytest.mark.parametrize("kind", LOOKS)
def test_whole_observations(kind):
    task = mad.Task.from_gymnasium(Walk(*LOOKS[kind]))
    agent = mad.MultiAdvisor(task, gamma=0.5, epsilon=0.5).learn(3000)
    # a reward of 1 at the right end, two steps away
    assert agent.preferences(LOOKS[kind][1](2))[1] == pytest.approx(0.5, abs=1e-6)
    assert agent.evaluate(2).length == 2


def test_parts_of_an_observation_are_told_apart_and_kept(tmp_path):
    space, look = LOOKS["nested"]
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Walk(space, look)), epsilon=0.5).learn(500)
    assert len(agent.values(0)) == 5
    agent.save(tmp_path / "a")
    again = mad.load(tmp_path / "a", mad.Task.from_gymnasium(Walk(space, look)))
    assert np.array_equal(again.preferences(look(2)), agent.preferences(look(2)))


def test_a_dictionary_with_real_numbers_is_no_local_state():
    space = spaces.Dict({"place": spaces.Discrete(5), "speed": spaces.Box(0.0, 1.0)})
    task = mad.Task.from_gymnasium(Walk(space, lambda p: {"place": p, "speed": np.zeros(1, np.float32)}))
    refused("looks at the whole observation", mad.MultiAdvisor, task, learner="tabular")
    assert mad.MultiAdvisor(task).settings.learner == mad.DQN()


def test_an_environment_by_its_name():
    task = mad.Task.from_gymnasium("FrozenLake-v1", [mad.Advisor("goal")], is_slippery=False, max_episode_steps=7)
    assert task.name == "FrozenLake-v1"
    assert task.adapter.env.spec.max_episode_steps == 7
    assert not task.adapter.env.unwrapped.spec.kwargs["is_slippery"]
    assert mad.Task.from_gymnasium("MountainCar-v0", bins="4,5", name="car").adapter.rows == 20
    with pytest.raises(mad.BadInput, match="option 'is_slippery' is for an environment given by its name"):
        mad.Task.from_gymnasium(gymnasium.make("FrozenLake-v1"), is_slippery=False)
    refused("no environment 'FrozenLag-v1'", mad.Task.from_gymnasium, "FrozenLag-v1")
    with pytest.raises(mad.BadInput, match="advisors and components as well"):
        mad.Task.from_gymnasium("FrozenLake-v1", [mad.Advisor("goal")], components=["a"])
    refused("bins and discretise= as well", mad.Task.from_gymnasium, "MountainCar-v0", bins="4,5", discretise=len)


def test_a_table_cannot_hold_real_numbers():
    task = mad.make("CartPole-v1")
    refused(r"discretise= .*learner='dqn'", mad.MultiAdvisor, task, learner="tabular")
    assert mad.MultiAdvisor(task).settings.learner == mad.DQN(**task.defaults["dqn"])


def test_discretisers():
    env = Walk(spaces.Box(0.0, 4.0, (1,)), lambda p: np.array([p + 0.3], np.float32))
    task = mad.Task.from_gymnasium(env, discretise=mad.Bins([0], [5], [5]))
    assert task.adapter.rows == 5
    agent = mad.MultiAdvisor(task, gamma=0.5, epsilon=0.5).learn(2000)
    assert agent.values(0)[2, 1] == pytest.approx(0.5, abs=1e-6)
    refused("finite range", mad.Bins, [0], [float("inf")], [3])


def test_components_functions_and_shared_tables():
    env = Walk(*LOOKS["multi-discrete"], reward=lambda pay: np.array([pay, -0.1], np.float32))
    task = mad.Task.from_gymnasium(env, [
        mad.Advisor("place", reward=0, state=0),
        mad.Advisor("cost", reward=1, state=[0, 1]),
        mad.Advisor("mirror", reward=lambda t: 1.0 - t.action, state=lambda o: 4 - int(o[0]), states=5, table="t"),
        mad.Advisor("plain", reward=lambda t: 0.0, state=lambda o: int(o[0]), states=5, table="t"),
    ])  # fmt: skip
    agent = mad.MultiAdvisor(task, gamma=0.5, epsilon=0.5).learn(4000)
    assert agent.values("place").shape == (5, 2)  # counted as they were met
    assert np.array_equal(agent.values("mirror"), agent.values("plain"))
    names, advice = agent.advice(np.array([2, 1]))
    assert names == task.names
    assert advice.shape == (4, 2)


def box():
    return Walk(*LOOKS["multi-discrete"])


@pytest.mark.parametrize(
    ("advisors", "message"),
    [
        ([], "at least one advisor"),
        ([mad.Advisor("a"), mad.Advisor("a")], "two advisors are called 'a'"),
        ([mad.Advisor("a", weight=float("inf"))], "weight of advisor 'a'"),
        ([mad.Advisor("a", gamma=2.0)], "gamma of advisor 'a'"),
        ([mad.Advisor("a", states=0, state=len)], "the states of advisor 'a' is 0: give at least 1"),
        ([mad.Advisor("a", states=1.5, state=len)], "the states of advisor 'a' is 1.5"),
        ([mad.Advisor("a", weight=1e308)], "weight of advisor 'a' is 1e.308: give a number between -1e.30"),
        ([mad.Advisor("a", weight="much")], "weight of advisor 'a' is 'much': give a number"),
        ([mad.Advisor(5)], "the name of advisor 5 is 5: give a text"),
        ([mad.Advisor("a", table=5)], "the table of advisor 'a' is 5: give a text"),
        ([mad.Advisor("a", group=None)], "the group of advisor 'a' is None: give a text"),
        ([mad.Advisor("a", ended=5)], "the ended of advisor 'a' is 5: give a function"),
        ([mad.Advisor("a", advises="no")], "the advises of advisor 'a' is 'no': give a function"),
        ([mad.Advisor("a", reward=0)], "pays a scalar"),
        ([mad.Advisor("a", reward="x")], "write info:KEY for a term in info"),
        ([mad.Advisor("a", state="place")], "has the state 'place', a name"),
        ([mad.Advisor("a", state=7)], "picks components 7"),
        ([mad.Advisor("a", table="t", state=len, states=3), mad.Advisor("b", table="t", state=len, states=4)], "share"),
    ],
)
def test_bad_advisors(advisors, message):
    refused(message, mad.Task.from_gymnasium, box(), advisors)


def test_a_vector_reward_needs_an_index():
    env = Walk(*LOOKS["discrete"], reward=lambda pay: np.array([pay, 0.0]))
    assert mad.Task.from_gymnasium(env).names == ("reward 0", "reward 1")
    for advisor in (mad.Advisor("a"), mad.Advisor("a", reward=2)):
        refused("vector of 2", mad.Task.from_gymnasium, env, [advisor])


def test_a_reward_that_is_not_what_was_promised():
    promised = Walk(*LOOKS["discrete"], reward=lambda pay: pay)
    undeclared = Walk(*LOOKS["discrete"], reward=lambda pay: np.array([pay, 0.0]))
    del undeclared.reward_space
    for env, message in ((promised, "is of a vector of 2, but it pays a number"), (undeclared, "pays a vector of 2")):
        refused(message, mad.MultiAdvisor(mad.Task.from_gymnasium(env)).learn, 10)


@pytest.mark.parametrize(
    ("advisor", "message"),
    [
        (mad.Advisor("far", state=lambda o: int(o[0]), states=3), "'far' gave the local state 3"),
        (mad.Advisor("below", state=lambda o: -1, states=3), "'below' gave the local state -1"),
        (mad.Advisor("nan", reward=lambda t: float("nan")), "reward of advisor 'nan' is not finite"),
        (mad.Advisor("half", state=lambda o: 1.5, states=3), "'half' gave a local state of type float"),
        (mad.Advisor("set", state=lambda o: frozenset([1])), "type frozenset cannot be saved"),
        (mad.Advisor("list", state=lambda o: [1]), "'list' gave a local state of type list"),
    ],
)
def test_defects_are_named_while_learning(advisor, message):
    task = mad.Task.from_gymnasium(box(), [mad.Advisor("honest"), advisor])
    refused(message, lambda: mad.MultiAdvisor(task, epsilon=1.0).learn(100))


@pytest.mark.parametrize(
    ("name", "options", "names"),
    [
        ("mo-mountaincar-v0", {}, ("time", "reverse", "forward")),
        ("mo-mountaincar-3d-v0", {}, ("time", "move", "speed")),
        ("mo-mountaincar-timemove-v0", {}, ("time", "move")),
        ("mo-mountaincar-timespeed-v0", {}, ("time", "speed")),
        ("mo-mountaincar-v0", {"merge_move_penalty": True}, ("reward 0", "reward 1")),
        ("mo-mountaincar-v0", {"merge_move_penalty": True, "add_speed_objective": True},
         ("reward 0", "reward 1", "reward 2")),
        ("deep-sea-treasure-concave-v0", {}, ("treasure", "time")),
        ("mo-lunar-lander-v3", {"render_mode": "rgb_array"}, ("landing", "shaping", "main engine", "side engine")),
    ],
)  # fmt: skip
def test_names_of_components_are_those_of_this_very_environment(name, options, names):
    """An option may change what the reward consists of: better no name than a wrong one."""
    assert mad.make(f"{name}", **options).names == names


def test_a_weight_may_have_any_name_but_none():
    refused("no advisor or group is called 'self'", lambda: mad.make("two-goal").with_weights(self=1.0))
    refused("no advisor or group is called ''", mad.make, "two-goal", weights={"": 0.0})
    refused("empty name", mad.Task.from_gymnasium, gymnasium.make("FrozenLake-v1"), [mad.Advisor("")])
