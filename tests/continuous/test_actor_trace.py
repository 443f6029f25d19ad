"""Episodes of an actor kept step by step: replayed bit for bit, explained, drawn, reported, and sent to the page."""

from __future__ import annotations

import csv
import dataclasses
import json
import threading
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from point import Point

import multiadvisor as mad
from multiadvisor.analysis.episode_report import report_on, table_of
from multiadvisor.analysis.episodes import play, record
from multiadvisor.analysis.moments import moments
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.cli import main
from multiadvisor.envs.names import action_names, joints, motors, observation_names
from multiadvisor.explorer.bundle import episode_pack, run_pack
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.onefile import html
from multiadvisor.runs.artists import in_one_thread
from multiadvisor.runs.pictures import pixels, with_pictures
from multiadvisor.runs.trace import explain_step, replay
from refusal import refused


class Pair(Point):
    """A point with a second number that nobody is paid for; its picture has the colour of the last action."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    action_names = ("push", "idle")

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode, self.last = render_mode, np.zeros(2, np.float32)
        self.action_space = gymnasium.spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))

    def reset(self, seed=None, options=None):
        self.last = np.zeros(2, np.float32)
        return super().reset(seed=seed)

    def step(self, action):
        self.last = action
        return super().step(action)

    def render(self):
        return np.full((8, 8, 3), colour(self.last), np.uint8)


gymnasium.register("tests/Pair-v0", Pair)
SMALL = {"hidden": (16, 16), "batch_size": 32, "learning_starts": 1_000, "buffer_size": 1_000}


def colour(action):
    return [int(10 + 50 * (action[0] + 2)), int(25 * action[1]), 90]


def actor(**own):
    task = mad.Task.from_gymnasium("tests/Pair-v0", "info:reward_*").with_weights(cheap=2.0)
    return mad.MultiAdvisor(task, gamma=0.5, seed=own.pop("seed", 4), learner=mad.SAC(**{**SMALL, **own}))


@pytest.fixture(scope="module")
def agent():
    return actor().learn(20)  # which changes no network: any values do


@pytest.fixture(scope="module")
def trace(agent):
    return record(agent, episodes=2, seed=1)


def unpacked(content):
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    kinds = {"f8": np.float64, "i4": np.int32, "u1": np.uint8}
    arrays = {
        one["name"]: np.frombuffer(
            content, kinds[one["type"]], int(np.prod(one["shape"])), 8 + size + one["offset"]
        ).reshape(one["shape"])
        for one in header["arrays"]
    }
    return header, arrays


def test_the_same_actions_are_read_and_played_again_bit_for_bit(agent, trace, tmp_path):
    trace.save(tmp_path / "episodes.trace")
    read = read_trace(tmp_path / "episodes.trace")
    assert read.taken.tobytes() == trace.taken.tobytes()
    assert read.action.tobytes() == trace.action.tobytes()
    assert read.header == trace.header
    replay(read, agent.task)
    episode, step = 1, 2
    at = trace.span(episode).start + step
    seen = trace.observed[at + episode].astype(float)
    assert read.step(episode, step).action.tolist() == agent.act(seen).tolist()
    assert (read.action[:, 1] >= 0).all()  # the environment's own numbers, and not those from -1 to 1
    wrong = trace.taken.copy()
    wrong[at, 0] = np.nextafter(wrong[at, 0], np.float32(9))
    line = f"episode {episode} of the trace differs from .* from step {step} on"
    refused(line, replay, dataclasses.replace(trace, taken=wrong), agent.task)


def test_forged_bounds_are_refused(trace, tmp_path):
    for wrong in ({"low": [0.0, 0.0], "high": [0.0, 1.0]}, {"type": "object"}, {"names": ["push"]}):
        header = {**trace.header, "box": {**trace.header["box"], **wrong}}
        dataclasses.replace(trace, header=header).save(tmp_path / "forged.trace")
        refused(r"damaged or was changed", read_trace, tmp_path / "forged.trace")


def test_what_is_kept_adds_up_to_what_explain_says(agent, trace):
    for step in (0, 3):
        seen, told = trace.step(0, step), explain_step(agent, trace, 0, step)
        asked = agent.explain(trace.observed[step].astype(float))
        assert told.sentence == asked.sentence
        assert told.values == pytest.approx(asked.values)
        assert told.push.shares == pytest.approx(asked.push.shares)
        assert seen.names == ("near", "cheap", "entropy")
        weighted = seen.weights[:, None] * seen.advice
        assert (weighted[:, 0] - weighted[:, 1]).sum() == pytest.approx(asked.advantage)
        assert weighted[:, 0].sum() - asked.push.control == pytest.approx(asked.push.gap)
        assert seen.push[:2].sum() == pytest.approx(1.0)
        assert str(told).startswith(told.sentence)
    refused("leave against out", explain_step, agent, trace, 0, 0, against=[0.0, 0.0])
    refused("epsilon is for a finite choice", record, agent, epsilon=0.1)


@pytest.mark.parametrize("critics", ["shared", "one"])
def test_other_critics_tell_what_they_know(critics):
    other = actor(critics=critics)
    seen = record(other, seed=1).step(0, 1)
    assert seen.names == (("reward",) if critics == "one" else ("near", "cheap", "entropy"))
    found = report_on(play(other, 1, 1)).as_dict()
    assert (found["note"] == "") == (critics == "shared")
    assert all((one["calibration"] is None) == (critics == "one") for one in found["advisors"].values())


def test_the_report_has_shares_of_the_push(agent):
    episodes = play(agent, 3, 1)
    found = report_on(episodes)
    told = found.as_dict()["advisors"]
    shares = [told[name]["influence"]["push"] for name in ("near", "cheap")]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(np.mean([episodes.push[step, 0] for step in range(len(episodes.push))]))
    assert told["near"]["influence"]["changed"] is None
    assert list(told) == ["near", "cheap"], "the entropy is no advisor"
    assert found.as_dict()["entropy"] == pytest.approx(episodes.advice[:, 2, 0].mean())
    assert "share of the push" in str(found)
    assert f"entropy, no advisor: {found.entropy:.2f} is expected" in str(found)
    assert not any(line.startswith("entropy ") for line in str(found).splitlines())
    unused = dict.fromkeys(("run", "task", "planning", "aggregation"), "")
    unused |= dict.fromkeys(("gamma", "score", "reward", "length", "terminated"), 0)
    row = {**unused, "episodes": 3, "report": found.as_dict()}
    head, line = csv.reader(table_of([row]).splitlines())
    assert float(line[head.index("push/near")]) == pytest.approx(shares[0])
    picked = moments(episodes, 2)
    assert picked
    at = episodes.first[picked[0].episode] + picked[0].step
    assert picked[0].stake == pytest.approx(abs(episodes.preferences[at, 0] - episodes.preferences[at, 1]))
    assert picked[0].action in picked[0].reason


def test_the_page_gets_the_numbers_of_every_action(agent, trace):
    run, _ = unpacked(run_pack(agent, "actor"))
    assert run["numbers"] == {"low": [-2.0, 0.0], "high": [2.0, 10.0], "type": "float32", "names": ["push", "idle"]}
    assert run["actions"] == ["action taken", "centre of the box"]
    assert run["method"] == "sac", "no planning is chosen for it"
    assert [one["name"] for one in run["advisors"]] == ["near", "cheap"]
    assert run["aggregator"]["of"] == [0, 0]
    episode, arrays = unpacked(episode_pack(trace, 1, agent))
    span = trace.span(1)
    assert np.array_equal(arrays["numbers"], trace.action[span].astype(float))
    assert not arrays["action"].any()
    said = trace.advice[span]
    assert np.array_equal(arrays["table"], said[:, :2].reshape(-1, 2))
    assert np.array_equal(arrays["entropy"], said[:, 2]), "told beside the advisors"
    assert np.array_equal(arrays["rows"], np.arange(2 * len(said)).reshape(-1, 2))
    assert np.isfinite(arrays["push"]).all()
    assert episode["reasons"][2]["sentence"] == explain_step(agent, trace, 1, 2).sentence
    library = Library(episodes=1)
    entry = library.add_agent(agent, "actor")
    assert f"runs/{0}/episodes/0" in html(library, [entry.id], 0)


def test_pictures_come_from_the_actions_that_were_taken(agent, trace):
    drawn = with_pictures(trace, agent.task)
    for step in range(int(trace.length[0])):
        done = trace.action[step - 1] if step else np.zeros(2)
        assert pixels(drawn.pictures[step])[0, 0].tolist() == colour(done)


def test_everything_is_drawn_in_one_thread():
    threads = []

    def ask():
        threads.append(in_one_thread(threading.get_ident))

    for _ in range(2):
        one = threading.Thread(target=ask)
        one.start()
        one.join()
    assert threads[0] == threads[1] == in_one_thread(threading.get_ident)


def test_the_commands(agent, tmp_path, capsys):
    agent.save(tmp_path / "run")
    file, names = str(tmp_path / "episodes.trace"), ["--episodes", "2", "--seed", "1", "--json"]
    assert main(["evaluate", str(tmp_path / "run"), *names, "--trace", file, "--report", "--moments", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"]["advisors"]["near"]["influence"]["push"] > 0
    assert found["moments"][0]["reason"].endswith(("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"))
    assert main(["explain", str(tmp_path / "run"), "--trace", file, "--step", "1", "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert main(["explain", str(tmp_path / "run"), "--seed", "1", "--step", "1", "--json"]) == 0
    assert kept["values"] == pytest.approx(json.loads(capsys.readouterr().out)["values"])
    again = [str(tmp_path / "run"), "--trace", file, "--step", "1", "--against", "0,0"]
    assert main(["explain", *again]) == 2
    assert "leave against out" in capsys.readouterr().err


# ---- names -----------------------------------------------------------------------------------------------------------
def model(**parts):
    """What MuJoCo says of a hopper on a free joint: two motors, one without a name of its own."""
    named = [SimpleNamespace(name=name) for name in ("torso", "knee_joint")]
    moved = [SimpleNamespace(name=name) for name in ("", "knee motor")]
    made = SimpleNamespace(
        nu=2, njnt=2, actuator=lambda k: moved[k], joint=lambda k: named[k], jnt_type=[0, 3],
        actuator_trnid=np.array([[1, -1], [1, -1]]),
    )  # fmt: skip
    return SimpleNamespace(model=made, observation_structure={"skipped_qpos": 2, "qpos": 6, "qvel": 7, **parts})


def test_the_motors_and_joints_of_mujoco_have_names():
    assert motors(model()) == ("knee", "knee motor")
    assert joints(model())[:5] == ("torso z", "torso w", "torso i", "torso j", "torso k")
    assert joints(model())[5:8] == ("knee", "torso speed x", "torso speed y")
    assert len(joints(model())) == 13
    assert joints(model(cfrc_ext=78)) == ()
    assert joints(model(qpos=7)) == ()
    assert motors(SimpleNamespace()) == joints(SimpleNamespace(model=None)) == ()


def test_continuous_environments_of_gymnasium_have_names():
    env = gymnasium.make("Pendulum-v1")
    assert action_names(env, 1, box=True) == ("torque",)
    assert observation_names(env) == ("cos theta", "sin theta", "angular velocity")


def test_observations_in_parts_are_reported_as_well():
    class Parts(Pair):
        def see(self):
            seen = super().see()
            return {"place": seen, "twice": np.array([[1.0, 2.0]]) * seen}

        def reset(self, seed=None, options=None):
            gymnasium.Env.reset(self, seed=seed)
            self.elapsed, self.short = 0, False
            return self.see(), {}

    env = Parts()
    shape = {"place": gymnasium.spaces.Box(-1, 1, (1,)), "twice": gymnasium.spaces.Box(-2, 2, (1, 2))}
    env.observation_space = gymnasium.spaces.Dict(shape)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, "info:reward_*"), learner=mad.SAC(**SMALL))
    episodes = play(agent, 1, 1)
    assert episodes.places.shape == (len(episodes.positions), 1)
    x = float(episodes.positions[2]["place"][0])
    assert episodes.label(0, 2) == f"({x:.3g}, {x:.3g}, {2 * x:.3g})"
