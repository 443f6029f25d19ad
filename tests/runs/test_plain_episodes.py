"""Traces, their pictures and videos against the episode they are of, played again in a plain loop elsewhere."""

import subprocess

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.cli import main
from multiadvisor.core.rng import EVALUATION, environment_seed
from multiadvisor.envs.render import picture
from multiadvisor.runs.pictures import pixels, with_pictures

pytestmark = pytest.mark.slow
SIZE = 24  # pixels


class Ledge(gymnasium.Env):
    """Along a ledge of seven places: three terms pay, an episode ends at the seventh, and is cut off after twelve
    steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012
    reward_names = ("place", "effort", "luck")

    def __init__(self, real=False, render_mode=None):
        self.observation_space, self.render_mode, self.real = gymnasium.spaces.Discrete(7), render_mode, real
        self.reward_space = gymnasium.spaces.Box(-9, 9, (3,))
        box = gymnasium.spaces.Box(np.array([-1, 0], np.float32), np.array([1.5, 4], np.float32))
        self.action_space = box if real else gymnasium.spaces.Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.elapsed, self.last = int(self.np_random.integers(4)), 0, 0
        return self.at, {}

    def step(self, action):
        self.last = round(float(action[0])) if self.real else int(action)
        self.elapsed += 1
        self.at = int(np.clip(self.at + self.last + self.np_random.integers(-1, 2), 0, 6))
        paid = np.array([self.at / 7, -abs(self.last) * 0.5, self.np_random.normal()])
        return self.at, paid, self.at == 6, self.elapsed == 12, {}

    def render(self):
        return np.full((SIZE, SIZE, 3), (16 * self.elapsed, 32 * self.at, 64 * (self.last + 1)), np.uint8)


for name, real in (("tests/Ledge-v0", False), ("tests/RealLedge-v0", True)):
    gymnasium.register(name, Ledge, kwargs={"real": real})


def wakes(observation):
    return int(observation) != 2


ADVISORS = [
    mad.Advisor("place", reward=0, weight=2.0),
    mad.Advisor("effort", reward=1, active=wakes),
    mad.Advisor("luck", reward=2, weight=-0.5),
]
SMALL = {"hidden": (8,), "learning_starts": 1_000, "batch_size": 16, "buffer_size": 1_000}
KINDS = {
    "tables": ("tests/Ledge-v0", {"planning": "empathic"}, 0.0),
    "tables, exploring": ("tests/Ledge-v0", {"planning": "egocentric"}, 0.4),
    "networks": ("tests/Ledge-v0", {"learner": {"name": "dqn", **SMALL}}, 0.0),
    "continuous": ("tests/RealLedge-v0", {"learner": {"name": "sac", **SMALL}}, 0.0),
}


@pytest.fixture(scope="module", params=KINDS)
def told(request, tmp_path_factory):
    """An agent, and episodes of it as a file gave them back, with pictures."""
    env, how, epsilon = KINDS[request.param]
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, ADVISORS), gamma=0.8, seed=5, **how).learn(
        300, progress=False
    )
    file = tmp_path_factory.mktemp("ledge") / "episodes.trace"
    with_pictures(record(agent, episodes=6, seed=3, epsilon=epsilon), agent.task).save(file)
    return agent, read_trace(file), epsilon


def test_a_trace_is_what_a_fresh_environment_does(told):
    agent, trace, epsilon = told
    env = gymnasium.make(agent.task.adapter.env.spec, render_mode="rgb_array")
    space, scores, cut, silent, picture_at = env.action_space, [], 0, 0, 0
    for episode in range(6):
        seen, _ = env.reset(seed=environment_seed(5, EVALUATION, ((1 + 3) << 32) + episode))
        returns, terminated, truncated = dict.fromkeys(("place", "effort", "luck"), 0.0), False, False
        score, length = 0.0, int(trace.length[episode])
        for step in range(length):
            assert not terminated
            assert not truncated
            now, heard = (
                trace.step(episode, step),
                [advisor for advisor in ADVISORS if advisor.name != "effort" or wakes(seen)],
            )
            assert trace.observed[picture_at].tolist() == [seen]
            assert (pixels(trace.pictures[picture_at]) == env.render()).all()
            assert space.contains(np.asarray(now.action, np.float32) if agent.task.continuous else now.action)
            names, advice = agent.advice(seen, now.action[None]) if agent.task.continuous else agent.advice(seen)
            count = len(heard)
            assert now.names[:count] == names == tuple(advisor.name for advisor in heard)
            np.testing.assert_allclose(now.advice[:count, : advice.shape[1]], advice, rtol=1e-6)
            assert now.weights[:count].tolist() == [advisor.weight for advisor in heard]
            if agent.task.continuous:
                np.testing.assert_allclose(now.action, agent.act(seen), rtol=1e-6)
            elif not now.explored:
                preferences = now.weights @ now.advice
                assert preferences[now.action + 1] >= preferences.max() - 1e-6
            seen, paid, terminated, truncated, _ = env.step(now.action)
            paid = dict(zip(returns, paid.tolist(), strict=True))
            rewards = {advisor.name: paid[advisor.name] for advisor in heard if paid[advisor.name] != 0}
            assert now.rewards == rewards
            for name, value in rewards.items():
                returns[name] += value
                score += next(advisor.weight for advisor in ADVISORS if advisor.name == name) * value
            assert now.returns == pytest.approx({name: value for name, value in returns.items() if value})
            silent += count < 3
            picture_at += 1
        assert trace.observed[picture_at].tolist() == [seen]
        assert (pixels(trace.pictures[picture_at]) == env.render()).all(), "the picture of the end"
        picture_at += 1
        assert (terminated or truncated, terminated) == (True, bool(trace.terminated[episode]))
        assert trace.played.returns[episode].tolist() == pytest.approx(list(returns.values()))
        scores.append(score)
        cut += not terminated
    assert trace.score.tolist() == pytest.approx(scores)
    assert picture_at == len(trace.observed) == len(trace.pictures.of)
    assert silent, "everybody was always active"
    assert trace.explored.any() == (epsilon > 0)
    if not epsilon:
        assert agent.evaluate(6, seeds=(3,)).played.score.tolist() == pytest.approx(scores)


def test_a_compiled_world_is_played_again_by_hand(tmp_path):
    """Three by five cells, three fruits of 1 each: the rules are simple enough to write them down once more."""
    task = mad.make("three-fruits")
    for number, how in enumerate(({}, {"planning": "egocentric"}, {"learner": {"name": "dqn", **SMALL}})):
        agent = mad.MultiAdvisor(task, gamma=0.9, seed=2, **how).learn(3_000 if number < 2 else 50, progress=False)
        with_pictures(record(agent, episodes=3, seed=1, epsilon=0.3), task).save(tmp_path / "t")
        trace, at = read_trace(tmp_path / "t"), 0
        for episode in range(3):
            cell, lying = (2, 2), dict.fromkeys(task.names, True)
            length, ended = int(trace.length[episode]), False
            for step in range(length + 1):
                x = [5 * cell[0] + cell[1], *lying.values()]
                now = trace.step(episode, step)
                assert now.state.tolist() == x
                assert trace.states(episode)[step].tolist() == x
                drawn = picture(task, np.array(x)).astype(int)
                assert np.abs(pixels(trace.pictures[at]) - drawn).max() < 8  # colours nearer than that are one
                at += 1
                if step == length:
                    break
                assert not ended
                move = {"N": (-1, 0), "W": (0, -1), "S": (1, 0), "E": (0, 1)}[task.actions[now.action]]
                cell = tuple(min(max(c + d, 0), most) for c, d, most in zip(cell, move, (2, 4), strict=True))
                name = f"fruit ({cell[0]}, {cell[1]})"
                assert now.rewards == ({name: 1.0} if lying.get(name) else {})
                lying = {other: there and other != name for other, there in lying.items()}
                ended = not any(lying.values())
            assert bool(trace.terminated[episode]) == ended
            assert trace.score[episode] == 3 - sum(lying.values())
            assert ended or length == task.limit
        assert at == len(trace.pictures.of)


def test_a_video_shows_every_step_and_the_end(told, tmp_path):
    video = pytest.importorskip("multiadvisor.viz.video")
    from PIL import Image, ImageSequence

    trace = told[1]
    frames = list(video.trace_frames(trace, 1))
    shown = [pixels(trace.pictures[int(trace.length[0]) + 1 + step])[0, 0] for step in range(int(trace.length[1]) + 1)]
    assert len(frames) == len(shown)
    for file in (tmp_path / "a.mp4", tmp_path / "a.gif"):
        video.save_video(frames, file)
    filmed, pause = film(tmp_path / "a.mp4", frames[0].shape), 10 * round(100 / video.SPEED)
    assert len(filmed) == len(shown) + video.HOLD
    with Image.open(tmp_path / "a.gif") as images:
        moving = [(np.asarray(one.convert("RGB")), one.info["duration"]) for one in ImageSequence.Iterator(images)]
    assert [pauses for _, pauses in moving] == [pause] * (len(shown) - 1) + [pause * video.HOLD]
    for k, colour in enumerate(shown):
        assert (frames[k][:200, :200] == colour).all()
        assert np.abs(filmed[k][20:200, 20:200].astype(int) - colour).max() <= 16, k
        assert np.abs(moving[k][0][:200, :200].astype(int) - colour).max() <= 16, k
    assert all(np.abs(one.astype(int) - filmed[len(shown) - 1]).mean() <= 1 for one in filmed[len(shown) :])


def film(file, shape):
    """The frames of a video."""
    import imageio_ffmpeg

    read = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(file), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    content = subprocess.run(read, capture_output=True, check=True).stdout
    return np.frombuffer(content, np.uint8).reshape(-1, *shape)


def test_the_command_films_the_first_episode(tmp_path):
    video = pytest.importorskip("multiadvisor.viz.video")
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium("tests/Ledge-v0"), gamma=0.8).learn(300, progress=False)
    agent.save(tmp_path / "run")
    words = ["evaluate", str(tmp_path / "run"), "--episodes", "2", "--seed", "3", "--video", str(tmp_path / "b.mp4")]
    assert main(words) == 0
    frames = list(video.trace_frames(with_pictures(record(agent, 1, 3), agent.task), 0))
    assert len(film(tmp_path / "b.mp4", frames[0].shape)) == len(frames) + video.HOLD


class Text(Ledge):
    """Draws itself as a text that is longer in some steps."""

    metadata = {"render_modes": ["ansi"], "render_fps": 8}  # noqa: RUF012

    def render(self):
        return "\n".join(["#" * (3 + 40 * (self.elapsed % 3))] * (1 + self.elapsed % 4))


gymnasium.register("tests/Text-v0", Text)


def test_pictures_of_several_sizes_make_one_video(tmp_path):
    video = pytest.importorskip("multiadvisor.viz.video")
    from PIL import Image, ImageSequence

    agent = mad.MultiAdvisor(mad.Task.from_gymnasium("tests/Text-v0"), gamma=0.8).learn(30, progress=False)
    frames = list(video.trace_frames(with_pictures(record(agent, 1, 3), agent.task), 0))
    assert len({one.shape for one in frames}) > 2
    shape = (*(max(one.shape[side] for one in frames) for side in (0, 1)), 3)
    for file in (tmp_path / "a.mp4", tmp_path / "a.gif"):
        video.save_video(iter(frames), file)
    filmed = film(tmp_path / "a.mp4", shape)
    with Image.open(tmp_path / "a.gif") as images:
        moving = [np.asarray(one.convert("RGB")) for one in ImageSequence.Iterator(images)]
    assert (len(filmed), len(moving)) == (len(frames) + video.HOLD, len(frames))
    for shown in (filmed, moving):
        for frame, one in zip(frames, shown, strict=False):
            high, wide, _ = frame.shape
            assert np.abs(one[:high, :wide].astype(int) - frame).mean() < 5  # as much as the codec changes paper
            for rest in (one[high:], one[:, wide:]):
                assert not rest.size or np.abs(rest.astype(int) - video.PAPER).mean() < 5


class Namesakes(Ledge):
    reward_names = ("fuel", "main", "side")


gymnasium.register("tests/Namesakes-v0", Namesakes)


@pytest.mark.parametrize("many", [0, 4])
def test_the_caption_of_a_term_is_of_that_term(monkeypatch, many):
    """An advisor may be called as the group of others is."""
    video = pytest.importorskip("multiadvisor.viz.video")
    advisors = [mad.Advisor("fuel", reward=0, group="all"), mad.Advisor("main", reward=1, group="fuel"),
            mad.Advisor("side", reward=2, group="fuel"),
            *(mad.Advisor(f"more {k}", reward=0, group="more") for k in range(many))]  # fmt: skip
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium("tests/Namesakes-v0", advisors), gamma=0.8).learn(
        30, progress=False
    )
    trace = with_pictures(record(agent, 1, 3), agent.task)
    told = []
    monkeypatch.setattr(video, "_captioned", lambda image, head, lines, most: told.append(lines))
    list(video.trace_frames(trace, 0))
    paid = trace.reward
    columns = [[0], [1, 2], [3, 4, 5, 6]] if many else [[0], [1], [2]]
    names = ["all", "fuel", "more"] if many else ["fuel", "main", "side"]
    for step, lines in enumerate(told):
        assert [name for name, _, _ in lines] == names
        for (_, total, now), part in zip(lines, columns, strict=True):
            assert total == pytest.approx(paid[:step, part].sum())
            assert now == pytest.approx(paid[step, part].sum() if step < len(paid) else 0.0)
