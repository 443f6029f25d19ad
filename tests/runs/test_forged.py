"""Checkpoints with checksums that are right and contents that are not: refused before compiled code sees them."""

import json
import os
import shutil

import gymnasium
import numpy as np
import pytest
from forging import reseal

import forks
import multiadvisor as mad
from multiadvisor.core.compiling import compiled
from multiadvisor.storage.checkpoint import seal_header
from refusal import refused

pytestmark = pytest.mark.slow

QUICK = mad.DQN(
    hidden=(8,), learning_starts=32, batch_size=16, buffer_size=300, train_freq=2, updates_at_once=4, n_envs=2
)


def put(name, place, value):
    def change(tensors):
        tensors[name][place] = value

    return change


def test_a_cell_far_outside_of_the_maze_does_not_corrupt_memory(tmp_path):
    flags = ["--eval-every", 30, "--eval-episodes", 1, "--out", "a", "--steps"]
    train = ["-m", "multiadvisor", "train", "three-fruits", *flags]
    assert forks.run([*train, 30], tmp_path).returncode == 0
    reseal(tmp_path / "a", put("x", 0, 10**9))
    done = forks.run([*train, 60, "--resume"], tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("number 0 of the state of 'three-fruits' is 1000000000: it must be "
                                                 "below 15")  # fmt: skip


def cards():
    return mad.Task.from_gymnasium(gymnasium.make("Blackjack-v1"), name="cards")


def counted(change):
    def changed(tensors):
        lines = [json.loads(line) for line in tensors["counted"].tobytes().split(b"\n")]
        change(lines)
        tensors["counted"] = np.frombuffer("\n".join(json.dumps(line) for line in lines).encode(), np.uint8)

    return changed


def line(place, entry, value):
    return counted(lambda lines: lines[place].__setitem__(entry, value))


def less(name):
    return lambda tensors: tensors.update({name: tensors[name][:-1]})


def other_type(name):
    return lambda tensors: tensors.update({name: tensors[name].astype(np.float64)})


ACTOR = mad.SAC(hidden=(8,), learning_starts=32, batch_size=16, buffer_size=300)
VICTIMS = {  # task, settings, steps
    "maze": (lambda: mad.make("three-fruits"), {"planning": "estimate"}, 30),
    "finite": (lambda: mad.make("resource-scheduling"), {}, 30),
    "cards": (cards, {}, 200),
    "network": (lambda: mad.make("three-fruits"), {"learner": QUICK}, 90),
    "actor": (lambda: mad.make("Pendulum-v1"), {"learner": ACTOR}, 20),
}
ARRAYS = {
    "maze": [
        lambda tensors: tensors["x"].__setitem__(slice(1, None), 0), put("x", 0, -1), put("x", 1, 2),
        put("counters", 0, -1), put("counters", 0, 1 << 63 - 1), put("counters", 1, 10**6),
        put("counters", 2, 50),  # the episode's limit
        put("counters", 3, 2), put("table", (0, 0), np.nan), put("scores", 0, np.inf), put("counts", (0, 0), -1.0),
        less("x"), other_type("counters"), lambda tensors: tensors.pop("scores"),
    ],
    "finite": [put("x", 0, -1), put("x", 0, 27), put("x", 0, 10**9)],
    "cards": [
        put("trail", 3, 2), put("trail", 3, -1), put("seeded_at", 0, 1), put("seeded_at", 0, -5),
        put("counters", 5, 99),  # the action
        put("counters", 6, 99),  # the active advisors
        line(3, 2, 10**9), line(3, 2, -1), line(3, 0, 5), line(3, 0, -1), line(3, 1, [1]), line(3, 1, {"bytes": "zz"}),
        counted(lambda lines: lines.append(lines[-1])), counted(lambda lines: lines.pop()), less("table"),
        lambda tensors: tensors.update(counted=np.frombuffer(b"[" * 100_000, np.uint8)),
    ],
    "network": [
        put("episodes x", (0, 0), 10**9), put("episodes episode_step", (0, 1), 50),
        put("episodes episode_step", (0, 0), 1), put("replay replay_clock", (0, 0), 299),
        put("replay replay_clock", (0, 1), 1), put("replay replay_clock", (0, 2), 10**9),
        put("replay kind", slice(None), 3),  # nothing to draw from
        put("replay kind", slice(None), 1),  # no end in sight
        put("replay action", (0, 0), 4), put("replay reward", (0, 0, 0), np.nan), put("updates", 0, -(10**9)),
        put("updates", 0, 0), put("network 000", (0, 0, 0, 0), np.inf), less("replay kind"),
        put("replay replay_clock", (0, 1), -1), other_type("replay replay_clock"), other_type("replay reward"),
        lambda tensors: tensors.pop("replay reward"),
    ],
}  # fmt: skip
GREEDY = [  # what would take terabytes
    *(("network", {name: value}) for name, value in (
        ("hidden", [1 << 40]), ("n_envs", 100_000), ("buffer_size", 1 << 50), ("updates_at_once", 1 << 30))),
    *(("actor", {name: value}) for name, value in (
        ("hidden", [10**6, 10**6]), ("hidden", [1] * 20_000), ("n_envs", 100_000), ("buffer_size", 1 << 50),
        ("batch_size", 1 << 40))),
]  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Of each kind of learner a checkpoint that is loaded."""
    places = {}

    def of(kind):
        if kind not in places:
            task, settings, steps = VICTIMS[kind]
            places[kind] = tmp_path_factory.mktemp("sound") / kind
            mad.MultiAdvisor(task(), **settings).learn(steps, progress=False).save(places[kind])
            reseal(places[kind], put("counters", 3, 0) if kind == "finite" else lambda tensors: None)
            assert loaded(places[kind], kind).steps == steps
        return places[kind]

    return of


def loaded(folder, kind):
    return mad.load(folder, cards() if kind == "cards" else None)


@pytest.mark.parametrize(("kind", "change"), [(kind, change) for kind, many in ARRAYS.items() for change in many])
def test_arrays_that_no_run_has_are_refused(sound, tmp_path, kind, change):
    shutil.copytree(sound(kind), tmp_path / "a")
    reseal(tmp_path / "a", change)
    refused(r"restore it from a copy|made for another|it must be below", loaded, tmp_path / "a", kind)


@pytest.mark.parametrize(("kind", "greedy"), GREEDY)
def test_networks_that_would_take_terabytes_are_refused(sound, tmp_path, kind, greedy):
    shutil.copytree(sound(kind), tmp_path / "a")
    reseal(tmp_path / "a", change_header=lambda header: header["settings"]["learner"].update(greedy))
    refused(r"restore it from a copy|at most", loaded, tmp_path / "a", kind)


def test_a_trail_that_its_environment_did_not_play(tmp_path):
    task = mad.Task.from_gymnasium(gymnasium.make("CartPole-v1"), name="pole", discretise=lambda o: 0)
    mad.MultiAdvisor(task).learn(30, progress=False).save(tmp_path / "a")

    def longer(tensors):
        tensors["trail"] = np.zeros(2000, np.int64)
        tensors["counters"][0] = 2000

    reseal(tmp_path / "a", longer, lambda header: header.update(steps=2000))
    refused("is not reproducible", lambda: mad.load(tmp_path / "a", task).learn(1, progress=False))


# ---- worlds of one's own ---------------------------------------------------------------------------------------------
@compiled
def reset(world, x, key):
    x[0] = 0


@compiled
def begin(world, x, advisors):
    advisors[0] = 0
    return 1


@compiled
def local_states(world, x, advisors, m, local):
    local[0] = x[0]


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    x[0] = (x[0] + action) % 5
    reward[0] = 1.0 if x[0] == 4 else 0.0
    return False


def ring(sizes):
    world = mad.World((1,), 1, reset, begin, local_states, step, sizes)
    return mad.Task("ring", ("stay", "on"), (mad.Advisor("four", state="place", states=5),), world, limit=20)


def test_a_world_that_gives_no_sizes_begins_a_new_episode(tmp_path):
    mad.MultiAdvisor(ring(None)).learn(30, progress=False).save(tmp_path / "a")
    reseal(tmp_path / "a", put("x", 0, 10**15))
    agent = mad.load(tmp_path / "a", ring(None)).learn(100, progress=False)
    assert agent.steps == 130
    refused(r"world, sizes was None, and is \[5\]", mad.load, tmp_path / "a", ring((5,)))
    mad.MultiAdvisor(ring((5,))).learn(30, progress=False).save(tmp_path / "b")
    reseal(tmp_path / "b", put("x", 0, 10**15))
    refused("it must be below 5", mad.load, tmp_path / "b", ring((5,)))


# ---- what is quoted --------------------------------------------------------------------------------------------------
LONG = ("x" * 5000, "x\n" * 3000, ["x" * 300] * 300, {"x" * 5000: 1}, [1] * 3000)


def changed_everywhere(data, value):
    """The same data with each of its parts replaced by a value, or renamed to it, in turn."""
    yield value
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, part in list(parts)[:20]:
        for other in changed_everywhere(part, value):
            yield {**data, name: other} if isinstance(data, dict) else [*data[:name], other, *data[name + 1 :]]
        if isinstance(data, dict):
            yield {**{k: v for k, v in data.items() if k != name}, str(value): part}


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        (lambda: mad.make("three-fruits").with_weights(fruits=2.0), {"planning": "fruits=egocentric,empathic"}),
        (lambda: mad.make("two-goal"), {"learner": "linear"}),
        (lambda: mad.Task.from_gymnasium("MountainCar-v0", [mad.Advisor("t", state=mad.Bins([-1, -1], [1, 1], [2, 2]))],
                                         max_episode_steps=30, action_names=["a", "b", "c"]), {}),
        (lambda: mad.make("FrozenLake-v1", advisors=[{"name": "goal", "group": "g"}], is_slippery=False), {}),
        (lambda: mad.make("random-mdp", states=4), {"learner": QUICK}),
    ],
)  # fmt: skip
def test_no_answer_quotes_at_length(tmp_path, task, settings):
    """Whatever text stands wherever in the header: one line, and a short one, or nothing is amiss."""
    mad.MultiAdvisor(task(), **settings).learn(20, progress=False).save(tmp_path / "a", {"evaluations": []})
    whole = json.loads((tmp_path / "a/agent.json").read_text())
    whole.pop("sha256")
    said = []
    for header in (each for value in LONG for each in changed_everywhere(whole, value) if isinstance(each, dict)):
        (tmp_path / "a/agent.json").write_bytes(seal_header(header))
        try:
            mad.load(tmp_path / "a")
        except mad.BadInput as error:
            said.append(str(error))
    assert len(said) > 100
    assert [each for each in said if "\n" in each or len(each) > 600] == []


# ---- tasks and files that are no end ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("fruit-grid", {"width": 1000, "height": 1000}),
        ("random-mdp", {"states": 5000, "actions": 100, "advisors": 500, "outcomes": 100}),
        ("pac-boy", {"maze": "/dev/zero"}),
        ("pac-boy", {"limit": 1 << 70}),
    ],
)
def test_tasks_that_would_take_terabytes(tmp_path, task, options):
    mad.MultiAdvisor(mad.make("three-fruits")).save(tmp_path / "a")
    reseal(tmp_path / "a", change_header=lambda header: header["task"].update(name=task, maker=task, options=options))
    refused(r"at most|give its text|give a value", mad.load, tmp_path / "a")


@pytest.mark.parametrize("name", ["agent.json", "values"])
def test_pipes_and_devices_are_no_files(tmp_path, name):
    mad.MultiAdvisor(mad.make("three-fruits")).save(tmp_path / "a")
    path = next((tmp_path / "a").glob(f"{name}*"))
    path.unlink()
    os.mkfifo(path)
    refused("it is not a file", mad.load, tmp_path / "a")
    path.unlink()
    path.symlink_to("/dev/zero")
    refused("it is not a file", mad.load, tmp_path / "a")
