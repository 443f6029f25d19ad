"""Recorded episodes as pictures: the same bytes every time, and what they show is what happened."""

import io

import numpy as np
import pytest
from PIL import Image

import multiadvisor as mad
from multiadvisor.studies.paper.episode_study import influence, recorded, watch
from multiadvisor.viz import video
from refusal import refused


@pytest.fixture(scope="module")
def agent():
    return mad.MultiAdvisor(mad.make("pac-boy"), planning="empathic", seed=1).learn(60_000, progress=False)


@pytest.fixture(scope="module")
def trace(agent):
    return recorded(agent, 7, influence)


def test_the_episodes_watched_are_those_of_the_evaluation(agent):
    seen = agent.evaluate(3, seeds=(7,)).played
    for episode, steps in enumerate(watch(agent, 7, 3)):
        assert len(steps) == seen.length[episode]
        assert sum(step.gain for step in steps) == seen.score[episode]


def test_states_are_those_of_the_episode(agent, trace):
    shown = list(video.states(agent.task, trace))
    (steps,) = watch(agent, 7)
    assert len(shown) == len(steps) + 1
    for state, step in zip(shown, steps, strict=False):
        assert np.array_equal(state, step.state)
    assert np.array_equal(shown[-1], steps[-1].next_state)


def test_the_strongest_advisors_decided(agent, trace):
    names, advice = agent.advice(next(video.states(agent.task, trace)))
    action = trace["actions"][0]
    wish = dict(zip(names, advice[:, action] - advice.mean(axis=1), strict=True))
    said = dict(trace["advisors"][0])
    assert said == pytest.approx({name: wish[name] for name in said})
    assert min(abs(value) for value in said.values()) >= max(abs(v) for n, v in wish.items() if n not in said)


def test_same_episode_same_bytes(agent, trace):
    short = {**trace, **{key: trace[key][:12] for key in ("actions", "rewards", "advisors")}}
    short["movers"] = trace["movers"][:13]
    one, other = ([*video.frames(agent.task, short, "empathic 0.9", cell=16)] for _ in range(2))
    assert len(one) == 13
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert not np.array_equal(one[0], one[5])
    assert video.gif(one) == video.gif(other)
    assert video.mp4(one) == video.mp4(other)
    assert video.poster([one, one]) == video.poster([other, other])


def test_a_gif_plays_all_frames(agent, trace):
    frames = list(video.frames(agent.task, trace, "empathic 0.9", cell=16))
    content = video.gif(frames)
    assert len(content) < 1_000_000
    image = Image.open(io.BytesIO(content))
    shown, duration = 0, 0
    for k in range(image.n_frames):
        image.seek(k)
        duration += image.info["duration"]
        shown += 1
    assert shown >= 0.9 * len(frames)  # frames that are alike may be joined
    assert duration == 120 * (len(frames) - 1 + video.HOLD)  # eight steps a second, in hundredths


def test_a_gif_tells_for_from_against(agent, trace):
    """Orange must not turn into Pac-Boy's yellow, nor blue into grey, however seldom they are seen."""
    frames = list(video.frames(agent.task, trace, "x", cell=16))
    image = Image.open(io.BytesIO(video.gif(frames)))
    for colour, wanted in ((video.FOR, lambda value: value > 0), (video.AGAINST, lambda value: value < 0)):
        step = next(k for k, say in enumerate(trace["advisors"]) if say and wanted(say[0][1]))
        assert (frames[step] == colour).all(axis=-1).sum() > 20
        shown = []
        for k in range(max(0, step - 2), min(image.n_frames, step + 3)):  # frames that are alike may be joined
            image.seek(k)
            shown.append(np.abs(np.asarray(image.convert("RGB")).astype(int) - colour).sum(axis=-1).min())
        assert min(shown) < 25


def test_the_footer_counts_score_and_touches(agent, trace, monkeypatch):
    said = []
    monkeypatch.setattr(video, "_frame", lambda task, x, facing, title, lines, *rest: said.append(lines[0]))
    rewards = [1.0, -10.0, 0.0, -9.0, -20.0, -19.0]
    episode = {**trace, "rewards": rewards, "actions": trace["actions"][:6], "advisors": [[]] * 6,
            "movers": trace["movers"][:7]}  # fmt: skip
    list(video.frames(agent.task, episode, "x"))
    assert said[-1] == "step 6   score -57   touches 6"


def test_nothing_to_show():
    refused("at least one picture", video.gif, [])
    refused("at least one picture", video.mp4, [])
