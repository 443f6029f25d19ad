"""Traces: the very episodes of an evaluation, exact replays, and files that are whole or refused."""

import dataclasses
import hashlib
import json
import random
import tempfile
import zlib
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from forging import flipped
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import multiadvisor as mad
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.trace_file import FORMAT, read_trace
from multiadvisor.runs.trace import record_evaluation, replay
from multiadvisor.storage.sealed import with_checksum
from refusal import refused

TASKS = ["pac-boy", "fruit-grid", "three-fruits", "two-goal", "dollars-and-euros", "bridge", "resource-scheduling"]


def trained(task, steps=3000, **how):
    return mad.MultiAdvisor(task, seed=3, epsilon=0.3, **how).learn(steps, progress=False)


def lake():
    advisors = [
        mad.Advisor("goal", reward=lambda t: float(t.reward)),
        mad.Advisor("pace", reward=lambda t: -0.1, weight=-0.5, active=lambda o: o % 3 != 1),
        mad.Advisor(
            "edge", reward=lambda t: float(t.next_observation % 4 == 3), ended=lambda t: t.next_observation == 6
        ),
    ]
    return mad.Task.from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=30), advisors, name="my lake")


def assert_same_episodes(agent, trace, episodes, seed):
    played = agent.evaluate(episodes, seeds=(seed,)).played
    assert trace.score.tolist() == played.score.tolist()
    assert trace.length.tolist() == played.length.tolist()
    assert trace.terminated.tolist() == (played.terminated == 1).tolist()
    assert trace.played.returns.tolist() == played.returns.tolist()


def kept(trace, path):
    """As a file gives it back, which is the same."""
    trace.save(path)
    read = read_trace(path)
    for field in dataclasses.fields(trace):
        if field.name == "origin":
            continue
        one, other = getattr(trace, field.name), getattr(read, field.name)
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other, field.name
    return read


@pytest.mark.parametrize("planning", ["egocentric", "agnostic", "empathic"])
@pytest.mark.parametrize("name", TASKS)
def test_traced_episodes_are_those_of_the_compiled_evaluation(tmp_path, name, planning):
    agent = trained(mad.make(name), planning=planning, gamma=0.8)
    trace = record(agent, episodes=4, seed=6)
    assert_same_episodes(agent, trace, 4, 6)
    replay(kept(trace, tmp_path / "a"), mad.make(name))


def test_linear_learners_and_strange_weights():
    strange = mad.make("pac-boy").with_weights(ghosts=-0.3, fruits=0.1)
    for agent in (trained(mad.make("pac-boy"), learner="linear"), trained(strange)):
        assert_same_episodes(agent, record(agent, 3, 1), 3, 1)


def test_python_environments_keep_the_advice(tmp_path):
    agent = trained(lake())
    trace = record(agent, episodes=5, seed=2)
    assert_same_episodes(agent, trace, 5, 2)
    read = kept(trace, tmp_path / "a")
    replay(read, lake())
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=30)
    assert read.x is None
    first = read.step(0, 0)
    names, advice = agent.advice(env.reset()[0])
    assert first.names == names == ("goal", "pace", "edge")
    assert np.array_equal(first.advice, advice)
    muted = [read.step(g, t) for g in range(5) for t in range(read.length[g]) if not read.asked[read.span(g)][t][1]]
    assert muted
    assert all(step.names == ("goal", "edge") and step.advice.shape == (2, 4) for step in muted)


def test_a_trace_says_what_happened_at_each_step():
    agent = trained(mad.make("pac-boy"), 50_000)
    task, trace = agent.task, record(agent, episodes=2, seed=1)
    eaten = 0
    for episode in range(2):
        states = trace.states(episode)
        assert len(states) == trace.length[episode] + 1
        for step in range(trace.length[episode]):
            seen = trace.step(episode, step)
            assert np.array_equal(seen.state, states[step])
            assert seen.action == agent.act(seen.state, 0.0) or np.ptp(np.sort(agent.preferences(seen.state))[-2:]) == 0
            gone = np.flatnonzero(states[step][3:] > states[step + 1][3:])
            assert [r for name, r in seen.rewards.items() if name.startswith("fruit")] == [1.0] * len(gone)
            assert all(f"fruit {task.board.name(task.board.item_cells[k])}" in seen.rewards for k in gone)
            eaten += len(gone)
        assert trace.step(episode, int(trace.length[episode])).action is None
    assert eaten > 40
    for episode, step in ((0, -1), (0, int(trace.length[0]) + 1), (2, 0), (-1, 0)):
        refused("there is no", trace.step, episode, step)


def test_exploring_episodes_are_marked():
    agent = trained(mad.make("pac-boy"))
    trace = record(agent, episodes=3, seed=1, epsilon=0.25)
    assert 0.15 < trace.explored.mean() < 0.35
    assert not record(agent, episodes=3, seed=1).explored.any()
    replay(trace, agent.task)


@pytest.mark.parametrize("task", [lambda: mad.make("pac-boy"), lake])
def test_two_agents_play_the_same_episode_with_the_same_draws(tmp_path, task):
    one = mad.MultiAdvisor(task(), gamma=0.4, seed=1).learn(2000, progress=False)
    other = mad.MultiAdvisor(task(), gamma=0.9, seed=2).learn(2000, progress=False)
    first, second, own = record(one, seed=5, draws=1), record(other, seed=5, draws=1), record(other, seed=5)
    assert_same_episodes(one, first, 1, 5)
    replay(second, task())
    refused("differs from", replay, dataclasses.replace(second, header=own.header), task())
    if first.x is not None:
        assert np.array_equal(first.states(0)[0], second.states(0)[0])
        assert not np.array_equal(first.states(0)[0], own.states(0)[0])
        shared = min(first.length[0], second.length[0])
        assert np.array_equal(first.states(0)[:shared, 1:3], second.states(0)[:shared, 1:3])  # the ghosts move alike


def test_advice_can_be_kept_of_a_table_as_well():
    agent = trained(mad.make("three-fruits"))
    trace = record(agent, episodes=1, advice=True)
    for step in range(trace.length[0]):
        seen = trace.step(0, step)
        names, advice = agent.advice(seen.state)
        assert seen.names == names
        assert np.array_equal(seen.advice, advice)


def test_a_small_file_and_the_same_bytes_again(tmp_path):
    for name in "ab":
        trace = record(trained(mad.make("pac-boy")), episodes=10)
        trace.save(tmp_path / name)
    content = (tmp_path / "a").read_bytes()
    assert content == (tmp_path / "b").read_bytes()
    size = len(content) - content.index(b"\n")
    assert size < 20 * trace.length.sum() + 2000  # 3 positions, 75 fruits in 10 bytes, 1 action, and rewards


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "a"
    record(trained(mad.make("three-fruits")), episodes=3).save(path)
    return path


def test_every_flipped_bit_is_refused(saved, tmp_path):
    content, generator, path = saved.read_bytes(), random.Random(0), tmp_path / "b"
    for _ in range(600):
        path.write_bytes(flipped(content, generator.randrange(8 * len(content))))
        refused("damaged|changed|upgrade|is not a trace|what made it", read_trace, path)


def test_torn_longer_missing_and_foreign_files_are_refused(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "b"
    head = content.index(b"\n")
    for torn in (content[: head // 2], content[:head], content[: head + 9], content[:-1], content + b"x"):
        path.write_bytes(torn)
        refused("damaged or was changed", read_trace, path)
    others = (b"", b"{", b'{"actions": ["N"]}', b"[1]\n", b"\x80\x04K\x01.", b"[" * 100_000)
    for foreign in (*others, b'{"kind": "multiadvisor agent"}\n'):
        path.write_bytes(foreign)
        refused("is not a trace", read_trace, path)
    with path.open("wb") as file:
        file.write(content)
        file.truncate(1 << 40)
    for file, words in ((tmp_path / "nothing", "cannot read the trace"), (path, "damaged or was changed"),
                        ("/dev/zero", "is not a trace but a folder or a device")):  # fmt: skip
        refused(words, read_trace, file)


def test_only_a_trace_is_replaced(saved, tmp_path):
    trace, content = read_trace(saved), saved.read_bytes()
    for mine in (b"", content, content[:40], content[:-3]):
        (tmp_path / "b").write_bytes(mine)
        trace.save(tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == content
    for other in (b"notes", b"\n", b'{"actions": []}', b'{"kind": "multiadvisor agent"}\n'):
        (tmp_path / "b").write_bytes(other)
        refused("already exists and is not a trace", trace.save, tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == other


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: (text + "\n").encode()))
def test_any_bytes_in_the_place_of_a_trace(content):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "any").write_bytes(content)
        with pytest.raises(mad.BadInput):
            read_trace(Path(folder) / "any")


def sealed(header):
    """The first line of a file with this header, whatever it says."""
    return with_checksum({key: value for key, value in header.items() if key != "sha256"}) + b"\n"


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["length", "choice", "reward", "gain", "x", "terminated"]),
    st.integers(0, 2**32),
)
def test_arrays_that_contradict_each_other_are_refused_or_differ(saved, name, seed):
    """Another array under right checksums: refused, or at least no replay goes through unless it is the same
    episode."""
    from safetensors.numpy import load, save

    generator = np.random.default_rng(seed)
    line, _, rest = saved.read_bytes().partition(b"\n")
    header, tensors = json.loads(line), dict(load(zlib.decompress(rest)))
    shape = [max(0, side + int(generator.integers(-1, 2))) for side in tensors[name].shape]
    other = generator.integers(0, 5, shape).astype(tensors[name].dtype)
    assume(not np.array_equal(other, tensors[name]))
    tensors[name] = other
    content = zlib.compress(save(tensors))
    header["values"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "b").write_bytes(sealed(header) + content)
        try:
            trace = read_trace(Path(folder) / "b")
        except mad.BadInput:
            return
        refused("differs from", replay, trace, mad.make("three-fruits"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": FORMAT + 1, "version": "9.0"}, "made by multiadvisor 9.0: upgrade"),
        *(({name: value}, "damaged or was changed") for name, value in (
            ("advisors", []), ("advisors", 3), ("actions", ["N"]), ("asked", [1]), ("task", {}),
            ("settings", None))),
    ],
)  # fmt: skip
def test_a_header_that_was_changed_and_sealed_again(saved, tmp_path, change, message):
    line, _, rest = saved.read_bytes().partition(b"\n")
    header = {**json.loads(line), **change}
    (tmp_path / "b").write_bytes(sealed(header) + rest)
    refused(message, read_trace, tmp_path / "b")


@pytest.mark.parametrize("what", ["x", "choice", "reward", "terminated"])
def test_a_replay_that_goes_another_way_is_noticed(what):
    agent = trained(mad.make("pac-boy"), 20_000)
    trace = record(agent, episodes=2)
    array = getattr(trace, what).copy()
    if what == "x":
        array[7, 0] += 1
    elif what == "choice":
        array[5] = next(a for a in range(4) if agent.task.board.neighbour[trace.x[5, 0], a] != trace.x[6, 0])
    elif what == "reward":
        array[np.flatnonzero(array.any(axis=1))[3]] *= 2
    else:
        array[0] = not array[0]
    refused("differs from", replay, dataclasses.replace(trace, **{what: array}), agent.task)
    refused("other advisors or options", replay, trace, mad.make("pac-boy", rules="hra"))


def test_a_task_that_does_not_repeat_itself_is_not_traced():
    class Restless(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
        count = 0

        def reset(self, *, seed=None, options=None):
            Restless.count += 1
            self.left = 2 + Restless.count % 5
            return 0, {}

        def step(self, action):
            self.left -= 1
            return 0, 1.0, self.left == 0, False, {}

    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Restless(), name="restless")).learn(50, progress=False)
    refused("is not reproducible", record_evaluation, agent, 3, 0)
