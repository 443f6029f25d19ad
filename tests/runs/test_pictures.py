"""What episodes looked like: drawn in an environment of their own, within a limit, and never changing an episode."""

import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from explorer import drawn
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.core import plugins
from multiadvisor.explorer.insights import Albums
from multiadvisor.explorer.library import Library
from multiadvisor.runs import artists
from multiadvisor.runs.pictures import Painting, encode, pixels, with_pictures
from refusal import refused


@pytest.fixture(scope="module")
def agent():
    return drawn.walker()


def test_a_picture_keeps_its_colours_however_many():
    few = np.repeat(np.repeat(drawn.COLOURS.reshape(2, 3, 3), 7, axis=0), 5, axis=1)
    many = np.random.default_rng(0).integers(0, 256, (60, 60, 3), np.uint8)
    for image in (few, many):
        assert np.array_equal(pixels(encode(image)), image)
        assert np.array_equal(pixels(encode(np.repeat(np.repeat(image, 2, axis=0), 2, axis=1), 2)), image)
    assert len(encode(np.repeat(few, 9, axis=0))) < 200


def test_without_pillow_it_is_said_what_to_install(agent, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused("install the extra video", with_pictures, record(agent, episodes=1, seed=5), agent.task)


def test_pictures_belong_to_their_steps_and_change_no_episode(agent, tmp_path):
    drawn.drawn.clear()
    plain = record(agent, episodes=3, seed=5)
    assert not drawn.drawn
    trace = with_pictures(plain, agent.task)
    own = id(agent.task.adapter.env.unwrapped)
    assert drawn.drawn
    assert own not in drawn.drawn  # never the one that is trained in
    again = record(agent, episodes=3, seed=5)
    assert np.array_equal(again.action, plain.action)
    assert np.array_equal(again.reward, plain.reward)
    for at, cell in enumerate(trace.observed[:, 0].astype(int).tolist()):
        assert pixels(trace.pictures[at])[0, 0].tolist() == drawn.COLOURS[cell].tolist()
    trace.save(tmp_path / "a.trace")
    back = read_trace(tmp_path / "a.trace")
    assert back.pictures.content == trace.pictures.content
    assert np.array_equal(back.pictures.of, trace.pictures.of)
    assert np.array_equal(back.observed, trace.observed)
    trace.save(tmp_path / "b.trace")
    assert Path(tmp_path / "a.trace").read_bytes() == Path(tmp_path / "b.trace").read_bytes()


def test_one_picture_is_the_one_of_its_step(agent):
    trace = record(agent, episodes=1, seed=5)
    whole = Painting(trace, 0, agent.task)
    whole.advance(whole.count)
    assert whole.done
    for step in range(whole.count):
        assert Painting(trace, 0, agent.task).look_at(step) == whole.content[whole.of[step]]


@pytest.mark.parametrize(("limit", "fewer"), [(600_000, False), (30_000, True)])
def test_pictures_stay_below_the_limit(limit, fewer):
    agent = mad.MultiAdvisor(drawn.line(noise=200), gamma=0.9, seed=1)
    trace = with_pictures(record(agent, episodes=1, seed=0, longest=30), agent.task, limit)
    facts = trace.header["pictures"]
    assert sum(map(len, trace.pictures.content)) == facts["bytes"] <= limit
    assert facts["largest"][0] < 200
    assert (facts["repeated"] > 0) == fewer
    assert len(trace.pictures.of) == trace.length[0] + 1


def test_what_draws_itself_as_text_is_kept_as_text(monkeypatch):
    monkeypatch.setitem(drawn.Line.metadata, "render_modes", ["ansi"])
    agent = drawn.walker()
    trace = with_pictures(record(agent, episodes=1, seed=5), agent.task)
    assert trace.pictures[0].decode() == ".\x1b[41m1\x1b[0m...."
    assert trace.header["pictures"]["kind"] == "text"


def test_what_cannot_be_drawn_is_said_in_a_sentence(agent, monkeypatch):
    trace = record(agent, episodes=1, seed=5)
    monkeypatch.setattr(drawn.Line, "render", lambda self: 1 / 0)
    refused("cannot be drawn: division by zero", with_pictures, trace, agent.task)
    monkeypatch.setitem(drawn.Line.metadata, "render_modes", [])
    refused("no render mode", with_pictures, trace, agent.task)
    mine = mad.Task.from_gymnasium(drawn.Line(), advisors=agent.task.advisors)
    refused("no render mode", with_pictures, trace, mine)


def test_an_environment_that_goes_another_way_is_found_out():
    agent = mad.MultiAdvisor(drawn.line(slips=True), gamma=0.9, seed=1)
    trace = record(agent, episodes=1, seed=0)
    refused("is not reproducible from step", with_pictures, trace, agent.task)


FAULTY = """
import os, time
import gymnasium
import numpy as np

class Faulty(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None, fault=""):
        self.render_mode, self.fault = render_mode, fault
        self.observation_space, self.action_space = gymnasium.spaces.Discrete(9), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += 1
        if self.at == 3 and self.render_mode and self.fault == "step":
            raise OSError("no step")
        return self.at, 1.0, self.at == 8, False, {}

    def render(self):
        print("drawing")  # which is no answer
        if self.at == 3:
            match self.fault:
                case "raise": raise OSError("no more ink")
                case "exit": os._exit(7)
                case "hang": time.sleep(1e6)
        return np.full((4, 4, 3), 9 * self.at, np.uint8)

gymnasium.register("Faulty-v0", Faulty)
"""


@pytest.mark.slow
def test_what_goes_wrong_in_the_process_that_draws_is_said_and_the_next_episode_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "IMPORTED", [])
    monkeypatch.setattr(artists, "_away", away := [artists._Artist(away=True)])
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "faulty_drawing.py").write_text(FAULTY)
    plugins.import_own(str(tmp_path / "faulty_drawing.py"))

    def painted(fault):
        agent = mad.MultiAdvisor(mad.make("Faulty-v0", fault=fault))
        painting = Painting(record(agent, episodes=1), 0, agent.task)
        painting.advance(painting.count)
        return painting

    whole = painted("")
    first = away[0].child.process.pid
    assert (len(whole.of), whole.reason) == (9, "")
    for fault, said in (
        ("raise", "it stopped drawing itself: no more ink"),
        ("step", "the environment raised OSError"),
    ):
        broken = painted(fault)
        assert said in broken.reason
        assert broken.content == whole.content[:3]
    assert away[0].child.process.pid == first
    for fault, said in (("exit", "ended with exit code 7"), ("hang", "gave no picture for 2 seconds")):
        monkeypatch.setattr(artists, "_PATIENCE", 2 if fault == "hang" else 60)
        broken = painted(fault)
        assert said in broken.reason
        assert broken.content == whole.content[:3]
        monkeypatch.setattr(artists, "_PATIENCE", 60)
        assert painted("").content == whole.content
    artists.end_idle()
    assert away[0].child is None
    assert painted("").content == whole.content
    monkeypatch.setattr(artists._Artist, "_read", lambda self, task: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        painted("")
    monkeypatch.undo()
    assert away[0].child is None  # its answer would be taken for another


def test_what_is_drawn_here_closes_nothing_of_what_is_drawn_next():
    """Of a task that no other process can make; closing one environment ends pygame for all of them."""
    advisors = [mad.Advisor("treasure", reward=0), mad.Advisor("time", reward=1, active=lambda seen: True)]
    import mo_gymnasium

    def painting(seed):
        env = gymnasium.wrappers.TimeLimit(mo_gymnasium.make("deep-sea-treasure-v0"), 30)
        agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, advisors=advisors), seed=seed)
        assert not agent.task.maker
        return Painting(record(agent, episodes=1), 0, agent.task)

    one, other = painting(1), painting(2)
    assert one.count >= 6
    for step in range(3):
        one.advance(step)
        other.advance(step)
        assert one.look_at(step + 3)
    one.advance(one.count)
    other.advance(other.count)
    assert one.reason == other.reason == ""
    again = painting(1)
    again.advance(again.count)
    assert (again.content, again.of) == (one.content, one.of)


def as_the_page_reads(packed, run, episode):
    """Piece by piece, until the answer says that it was the last."""
    shown, header = [], {"done": False}
    while not header["done"]:
        body = packed.pictures(run, episode, len(shown))
        size = int.from_bytes(body[:8], "little")
        header = json.loads(body[8 : 8 + size])
        parts = {one["name"]: body[8 + size + one["offset"] :] for one in header["arrays"]}
        counts = {one["name"]: one["shape"][0] for one in header["arrays"]}
        ends = np.frombuffer(parts["ends"], "<i4", counts["ends"]).tolist()
        for k in np.frombuffer(parts["of"], "<i4", counts["of"]).tolist():
            shown.append(parts["content"][ends[k - 1] if k else 0 : ends[k]])
    return shown


def test_pictures_of_a_trace_file_are_those_that_the_page_gets(agent):
    trace = with_pictures(record(agent, episodes=2, seed=5), agent.task)
    library = Library(episodes=1)
    run = library.add_agent(agent, "walker")
    library.add_trace(trace, "a trace")
    drawn.drawn.clear()
    first = int(trace.length[0]) + 1
    shown = [trace.pictures[first + step] for step in range(int(trace.length[1]) + 1)]
    assert as_the_page_reads(Albums(library), run.id, 1) == shown
    assert not drawn.drawn


def test_whoever_comes_later_gets_every_picture_too(agent):
    library = Library(episodes=1)
    run = library.add_agent(agent, "walker")
    packed = Albums(library, at_once=2)
    first = as_the_page_reads(packed, run.id, 0)
    trace, episode = library.recorded(run.id, 0)
    assert len(first) == trace.length[episode] + 1 > 2
    assert as_the_page_reads(packed, run.id, 0) == first


def test_a_board_is_drawn_as_well():
    agent = mad.MultiAdvisor(mad.make("three-fruits"), gamma=0.9).learn(2_000, progress=False)
    trace = with_pictures(record(agent, episodes=1, seed=0), agent.task)
    assert len(trace.pictures.of) == trace.length[0] + 1
    assert trace.observed is None
