"""The grid of a sweep: data only, closed names, one line for whatever is wrong."""

import itertools
import json
from dataclasses import asdict

import pytest

import multiadvisor as mad
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.sweep_grid import SweepGrid, parse_grid, read_grid
from multiadvisor.runs.training import RunConfig
from refusal import refused

GRID = """
title = "a grid"
task = ["pac-boy", "fruit-grid"]
seeds = [3, 5]
[options]
limit = [100, 300]
[settings]
planning = ["egocentric", "empathic"]
gamma = [0.4, 0.9, 1]
alpha = 0.2
[weights]
fruits = [1.0, 2.0]
[schedule]
steps = 200
eval_every = 100
eval_episodes = 0
"""


def test_the_grid_is_the_product_of_its_axes():
    runs = parse_grid(GRID).runs()
    assert len(runs) == 2 * 2 * 2 * 3 * 2 * 2
    found = [
        (run.job.config["task"], run.job.config["options"]["limit"], run.job.config["settings"]["planning"],
         run.job.config["settings"]["gamma"], run.job.config["weights"]["fruits"], run.seed)
        for run in runs
    ]  # fmt: skip
    expected = itertools.product(
        ("pac-boy", "fruit-grid"), (100, 300), ("egocentric", "empathic"), (0.4, 0.9, 1.0), (1.0, 2.0), (3, 5)
    )
    assert found == list(expected)
    assert {run.job.config["settings"]["alpha"] for run in runs} == {0.2}
    first = runs[0]
    assert first.labels == {
        "task": "pac-boy", "limit": 100, "planning": "egocentric", "gamma": 0.4, "weight of fruits": 1.0,
    }  # fmt: skip
    assert first.job.config["settings"]["seed"] == first.seed == 3
    assert len({run.job.id for run in runs}) == len(runs)


def test_the_frozen_copy_is_the_grid():
    grid = parse_grid(GRID)
    again = SweepGrid.from_data(grid.as_data())
    assert again == grid
    assert [run.job.id for run in again.runs()] == [run.job.id for run in grid.runs()]


NETWORK = '[learner]\nname = "dqn"\n'
DEEP = """
task = "bridge"
seeds = 2
[settings]
gamma = 0.9
[learner]
name = "dqn"
hidden = [[8], [16, 16]]
learning_rate = [0.001, 0.01]
batch_size = 8
strides = []
"""


def test_the_section_of_networks():
    grid = parse_grid(DEEP)
    runs = grid.runs()
    assert len(runs) == 2 * 2 * 2
    found = [(run.job.config["settings"]["learner"]["hidden"], run.job.config["settings"]["learner"]["learning_rate"])
             for run in runs if run.seed == 0]  # fmt: skip
    assert [(list(hidden), rate) for hidden, rate in found] == [
        ([8], 0.001), ([8], 0.01), ([16, 16], 0.001), ([16, 16], 0.01),
    ]  # fmt: skip
    assert {run.job.config["settings"]["learner"]["batch_size"] for run in runs} == {8}
    assert runs[-1].labels == {"hidden": "16,16", "learning_rate": 0.01}
    assert SweepGrid.from_data(json.loads(json.dumps(grid.as_data()))) == grid
    by_hand = {"task": "bridge", "settings": {"gamma": 0.9, "learner": {
        "name": "dqn", "hidden": [16, 16], "learning_rate": 0.01, "batch_size": 8}, "seed": 1}}  # fmt: skip
    assert runs[-1].job.id == Job("train", RunConfig.parse(by_hand).as_config()).id
    [plain] = parse_grid('task = "bridge"').runs()
    [empty] = parse_grid('task = "bridge"\n' + NETWORK).runs()
    assert plain.job.config["settings"]["learner"] == {"name": "auto"}
    assert empty.job.config["settings"]["learner"] == json.loads(json.dumps(asdict(mad.DQN())))
    [one] = parse_grid('task = "bridge"\n' + NETWORK + "hidden = [32, 32]").runs()
    assert list(one.job.config["settings"]["learner"]["hidden"]) == [32, 32], "a flat list is one network"


def test_what_cannot_be_learned_is_refused_before_anything_starts():
    for text, words in [
        ('task = ["two-goal", "CartPole-v1"]\n[settings]\nlearner = "tabular"', "discretise"),
        ('task = "fishwood-v0"\n' + NETWORK, "without names"),
        ('task = "fishwood-v0"\n[options]\ncomponents = "ab"\n' + NETWORK, "give a list"),
        ('task = "LunarLander-v3"\n[options]\ngravity = 5.0\n' + NETWORK, "cannot be made: AssertionError"),
        ('task = "LunarLander-v3"\n[options]\nname = "CartPole-v1"\n' + NETWORK, "does not take these"),
        ('task = "CartPole-v1"\n' + NETWORK + 'convolutions = [8]', "need images"),
        ('task = "fruit-grid"\n[options]\nfruits = [3, 400]', "400 fruits do not fit"),
    ]:  # fmt: skip
        refused(words, lambda text=text: parse_grid(text).check_tasks())


def test_components_of_a_reward_are_named_in_a_grid():
    grid = parse_grid('task = "fishwood-v0"\n[options]\ncomponents = ["fish", "wood"]\n' + NETWORK)
    grid.check_tasks()
    [run] = SweepGrid.from_data(json.loads(json.dumps(grid.as_data()))).runs()
    assert RunConfig.parse(run.job.config).make_task().names == ("fish", "wood")


def test_runs_keep_their_names_when_a_grid_grows():
    few = {run.job.id for run in parse_grid('task = "bridge"\nseeds = 2\n[settings]\ngamma = 0.5').runs()}
    many = {run.job.id for run in parse_grid('task = "bridge"\nseeds = 5\n[settings]\ngamma = [0.1, 0.5]').runs()}
    assert few < many


def test_a_maze_is_known_by_its_content(tmp_path):
    maze = tmp_path / "small.txt"
    maze.write_text("P..\n..G\n")
    (tmp_path / "grid.toml").write_text('task = "pac-boy"\n[options]\nmaze = "small.txt"\n')
    grid = read_grid(tmp_path / "grid.toml")
    [run] = grid.runs()
    assert run.job.config["options"]["maze"] == "P..\n..G\n"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "same.txt").write_bytes(b"P..\r\n..G")
    (tmp_path / "other.toml").write_text('task = "pac-boy"\n[options]\nmaze = "elsewhere/same.txt"\n')
    [same] = read_grid(tmp_path / "other.toml").runs()
    assert same.job.id == run.job.id, "neither where it lies nor how lines end matters"
    maze.write_text("P...\n...G\n")
    [other] = read_grid(tmp_path / "grid.toml").runs()
    assert other.job.id != run.job.id
    maze.unlink()
    [frozen] = SweepGrid.from_data(json.loads(json.dumps(grid.as_data()))).runs()
    assert frozen.job == run.job, "what was frozen needs no file any more"
    assert RunConfig.parse(frozen.job.config).make_task().options["maze"] == "P..\n..G\n"


def test_mazes_as_an_axis_have_short_names(tmp_path):
    for name, text in (("a", "P..\n..G\n"), ("b", "P.\n.G\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "grid.toml").write_text('task = "pac-boy"\n[options]\nmaze = ["a", "b"]\n')
    labels = [run.labels["maze"] for run in read_grid(tmp_path / "grid.toml").runs()]
    assert [label.partition(" #")[0] for label in labels] == ["2 x 3", "2 x 2"]


def test_options_of_an_environment_are_those_of_the_command_line():
    text = 'task = "MountainCar-v0"\n[options]\nbins = ["18,14", "9,7"]\nmax_episode_steps = 50'
    grid = parse_grid(text)
    assert grid.check_tasks() == []
    tasks = [RunConfig.parse(run.job.config).make_task() for run in grid.runs()]
    assert [task.adapter.rows for task in tasks] == [252, 63]
    assert [task.options["max_episode_steps"] for task in tasks] == [50, 50]
    lakes = parse_grid('task = "FrozenLake-v1"\n[options]\ndesc = [["SF", "FG"], ["SFG"]]').runs()
    assert [RunConfig.parse(run.job.config).make_task().adapter.rows for run in lakes] == [4, 3]
    [note] = parse_grid('task = "CliffWalking-v1"').check_tasks()
    assert "no step limit of its own" in note


BAD = [
    ("", "has no task"),
    ("task = 1", "task of a run is 1"),
    ('task = "pac-boi"', "unknown task 'pac-boi': did you mean 'pac-boy'"),
    ('task = "gymnasium:os:system"', "names a module"),
    ("task = []", "empty list"),
    ('task = ["bridge", "bridge"]', "appears twice"),
    ('task = "bridge"\ntusk = 1', "unknown key of a sweep 'tusk'"),
    ('task = "bridge"\nformat = 99', "newer multiadvisor: upgrade"),
    ('task = "bridge"\nformat = "x"', "format is 'x'"),
    ('task = "bridge"\nseeds = 0', "seeds is 0"),
    ('task = "bridge"\nseeds = 1.5', "seeds is 1.5"),
    ('task = "bridge"\nseeds = -3', "seeds is -3"),
    ('task = "bridge"\nseeds = []', "empty list"),
    ('task = "bridge"\nseeds = [1, 1]', "seed 1 appears twice"),
    ('task = "bridge"\nseeds = [1, -1]', "a seed is -1"),
    ('task = "bridge"\nseeds = 100000000', "at most 1,000,000"),
    ('task = "bridge"\ntitle = "a\\nb"', "title is no short text"),
    ('task = "bridge"\nsettings = 3', "write it as a table"),
    ('task = "bridge"\n[settings]\ngama = 1', "unknown setting 'gama': did you mean 'gamma'"),
    ('task = "bridge"\n[settings]\ngamma = 1.5', "gamma is 1.5"),
    ('task = "bridge"\n[settings]\ngamma = nan', "gamma is nan"),
    ('task = "bridge"\n[settings]\ngamma = 1e999', "gamma is inf"),
    ('task = "bridge"\n[settings]\ngamma = [0.5, 0.5]', "the run with gamma 0.5, seed 0 appears twice"),
    ('task = "bridge"\n[settings]\ngamma = [1, 1.0]', "appears twice"),
    ('task = "bridge"\n[settings]\ngamma = [[0.5]]', r"gamma is \[0.5\]: give a number"),
    ('task = "bridge"\n[settings]\ngamma = 1979-05-27', "gamma is datetime"),
    ('task = "bridge"\n[settings]\nseed = 1', "at the top"),
    ('task = "bridge"\n[settings]\nplanning = "os.system"', "unknown planning"),
    (
        'task = "bridge"\n' + NETWORK + "hiden = [8]",
        "unknown setting of dqn 'hiden': did you mean",
    ),
    ('task = "bridge"\n' + NETWORK + "hidden = 8", "give a list, or a list of lists"),
    ('task = "bridge"\n' + NETWORK + "hidden = [[8], 9]", "give a list, or a list of lists"),
    ('task = "bridge"\n' + NETWORK + "hidden = [0.5]", "hidden is 0.5"),
    ('task = "bridge"\n' + NETWORK + "learning_rate = 0", "learning_rate is 0"),
    ('task = "bridge"\n' + NETWORK + "learning_rate = {low = 0.0001, high = 0.1, log = true}", None),
    ('task = "bridge"\n' + NETWORK + "learning_rate = {low = 0.1, high = 7}", "learning_rate is 7"),
    ('task = "bridge"\n' + NETWORK + "batch_size = {low = 1, high = 9}", "cannot be searched"),
    ('task = "bridge"\n[settings]\ndeep = true', "it is called 'learner' now"),
    ('task = "bridge"\n[settings]\nlearner = "linear"\n' + NETWORK, "leave one out"),
    ('task = "bridge"\n[options]\nlength = 0.5', "option length of task 'bridge' is 0.5"),
    ('task = "bridge"\n[weights]\nwater = true', "weight of 'water'"),
    ('task = "bridge"\n[schedule]\nsteps = 0', "steps is 0"),
    ('task = "bridge"\n[settings]\ngamma = {low = 0.1, high = 0.9}', None),
    ('task = "bridge"\n[settings]\ngamma = {low = 0.9, high = 0.1}', "low must be below high"),
    ('task = "bridge"\n[settings]\ngamma = {low = 0.1, high = 1.9}', "gamma is 1.9"),
    ('task = "bridge"\n[settings]\ngamma = {low = 0.1}', "give it low and high"),
    ('task = "bridge"\n[settings]\ngamma = {low = 0, high = 1, log = true}', "above 0 where log"),
    ('task = "bridge"\n[settings]\ngamma = {low = 0.1, hihg = 1}', "unknown key of the range"),
    ('task = "bridge"\n[settings]\nplanning = {low = 0.1, high = 1}', "cannot be searched"),
    ('task = "bridge"\ntask = "bridge"', "this is not TOML"),
    ("task = " + "[" * 5000, "this is not TOML"),
    ("task = " + "1" * 5000, "this is not TOML"),
    ('task = "bridge"\n[settings]\ngamma = [' + "0.1," * 1001 + "]\nalpha = [" + "0.1," * 1001 + "]", "1,002,001 runs"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "words"), BAD)
def test_what_cannot_be_run_is_refused_by_name(tmp_path, text, words):
    path = tmp_path / "grid.toml"
    path.write_text(text)
    if words is None:
        refused(r"(gamma|learning_rate) is a range: add --search optuna", lambda: read_grid(path).runs())
        return
    with pytest.raises(mad.BadInput, match=words) as caught:
        read_grid(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_grid(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"#" * (2 << 20))
    for name, words in (
        ("binary", "not UTF-8 text"),
        ("large", "too large"),
        ("missing", "No such file"),
        (".", "is a folder"),
    ):
        refused(words, read_grid, tmp_path / name)
