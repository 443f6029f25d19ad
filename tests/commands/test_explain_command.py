"""`multiadvisor explain` and `evaluate --trace`: their JSON, their text, and bad input in one line."""

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed, refused, typed
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.cli import main
from multiadvisor.diagnosis.kept import FILE


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained") / "a"
    mad.MultiAdvisor(mad.make("pac-boy"), gamma=0.9, seed=2).learn(60_000, progress=False).save(folder)
    return folder


@pytest.mark.slow
def test_a_traced_evaluation_is_the_same_evaluation(capsys, trained, tmp_path):
    line = ("evaluate", trained, "--episodes", 4, "--seed", 3)
    plain, traced = printed(capsys, *line), printed(capsys, *line, "--trace", tmp_path / "t")
    assert traced.pop("trace") == str(tmp_path / "t")
    assert traced == plain
    kept = read_trace(tmp_path / "t")
    assert kept.score.mean() == pytest.approx(plain["score"], abs=1e-12)
    assert kept.length.mean() == plain["length"]
    assert f"trace in {tmp_path / 't'}" in typed(capsys, "evaluate", trained, "--trace", tmp_path / "t")[1]


def test_explain_json_is_about_the_step_asked_for(capsys, trained, tmp_path):
    agent = mad.load(trained)
    typed(capsys, "evaluate", trained, "--episodes", 3, "--seed", 3, "--trace", tmp_path / "t")
    kept = read_trace(tmp_path / "t")
    for episode, step in ((0, 0), (0, 11), (2, 5)):
        seen = kept.step(episode, step)
        line = ("explain", trained, "--episode", episode, "--step", step)
        result = printed(capsys, *line, "--seed", 3, "--against", "East" if seen.action == 1 else "west")
        assert (result["seed"], result["episode"], result["step"]) == (3, episode, step)
        assert result["steps"] == kept.length[episode]
        assert result["action"] == agent.task.actions[seen.action]
        assert list(result["preferences"].values()) == pytest.approx(agent.preferences(seen.state).tolist())
        assert sum(result["differences"].values()) == pytest.approx(result["advantage"])
        assert set(result["differences"]) == set(agent.advice(seen.state)[0])
        assert printed(capsys, *line, "--trace", tmp_path / "t", "--against", result["against"]) == result


def test_explain_text(capsys, trained):
    code, out, _ = typed(capsys, "explain", trained, "--seed", 3, "--step", 2)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("pac-boy, seed 3, episode 0, step 2 of ")
    assert lines[1].startswith("goes ")
    assert any(line.startswith("disagreement: ") for line in lines)
    assert any("MSX+" in line for line in lines)


@pytest.fixture(scope="module")
def traces(trained, tmp_path_factory):
    """A folder with a trace, and with what only looks like one."""
    folder = tmp_path_factory.mktemp("traces")
    assert main(["evaluate", str(trained), "--episodes", "1", "--trace", str(folder / "whole")]) == 0
    (folder / "torn").write_bytes((folder / "whole").read_bytes()[:-7])
    (folder / "torn header").write_bytes((folder / "whole").read_bytes()[:99])
    (folder / "foreign").write_text("{}\n")
    mad.MultiAdvisor(mad.make("two-goal")).learn(50, progress=False).save(folder / "other")
    assert main(["evaluate", str(folder / "other"), "--episodes", "1", "--trace", str(folder / "others")]) == 0
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--step", "100000"], "there is no step 100000: episode 0 ended after"),
        (["--step", "-1"], "step is -1"),
        (["--step", "1", "--episode", "-1"], "episode is -1"),
        (["--step", "1", "--episode", "999999999999"], "episode is 999999999999"),
        (["--step", "1", "--seed", "-1"], "seed is -1"),
        (["--step", "1", "--against", "Up"], "unknown action 'Up': choose one of E, N, S, W"),
        (["--step", "one"], "'one' is not an integer"),
        ([], "required: --step"),
        (["--step", "1", "--trace", "nothing"], "cannot read the trace 'nothing'"),
        (["--step", "1", "--trace", "torn"], "the trace 'torn' is damaged or was changed"),
        (["--step", "1", "--trace", "torn header"], "'torn header' is damaged or was changed: it is not valid JSON"),
        (["--step", "1", "--trace", "/dev/zero"], "'/dev/zero' is not a trace"),
        (["--step", "1", "--trace", "foreign"], "'foreign' is not a trace"),
        (["--step", "1", "--trace", "whole", "--seed", "1"], "leave --seed out"),
        (["--step", "1", "--trace", "whole", "--episode", "9"], "there is no episode 9: 1 episode in the trace"),
        (["--step", "1", "--trace", "others"], "the trace is of another agent, of task 'two-goal'"),
    ],
)
def test_bad_input_is_one_line(capsys, trained, traces, monkeypatch, arguments, message):
    monkeypatch.chdir(traces)
    assert refused(capsys, message, "explain", trained, *arguments).startswith("multiadvisor explain: ")


def test_runs_that_cannot_be_explained(capsys, tmp_path):
    refused(capsys, "no run in", "explain", tmp_path / "nothing", "--step", 1)
    gymnasium.register("Passing-v0", entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv")
    task = mad.make("Passing-v0")
    mad.MultiAdvisor(task).learn(50, progress=False).save(tmp_path / "passing")
    own = mad.Task.from_gymnasium("FrozenLake-v1", [mad.Advisor("goal", reward=lambda t: t.reward)], name="my lake")
    mad.MultiAdvisor(own).learn(50, progress=False).save(tmp_path / "own")
    del gymnasium.registry["Passing-v0"]
    for name, message in (("passing", "no environment 'Passing-v0' can be made"), ("own", "is a function: give task=")):
        refused(capsys, message, "explain", tmp_path / name, "--step", 0)


def test_a_trace_that_cannot_be_written_there_is_refused_first(capsys, trained, tmp_path):
    for place, message in ((tmp_path, "it is a folder"), (tmp_path / "file" / "t", "is a file")):
        (tmp_path / "file").write_text("of somebody's")
        refused(capsys, message, "evaluate", trained, "--trace", place)
    before = (trained / "agent.json").read_bytes()
    refused(capsys, "already exists and is not a trace", "evaluate", trained, "--trace", trained / "agent.json")
    assert (trained / "agent.json").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three-fruits", "CartPole-v1"])
def test_a_network_is_explained_from_its_trace(capsys, tmp_path, name):
    deep = mad.DQN(hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2, updates_at_once=4)
    mad.MultiAdvisor(mad.make(name), learner=deep).learn(200, progress=False).save(tmp_path / "a")
    assert typed(capsys, "evaluate", tmp_path / "a", "--episodes", 2, "--trace", tmp_path / "t")[0] == 0
    line = ("explain", tmp_path / "a", "--step", 1)
    assert printed(capsys, *line, "--trace", tmp_path / "t") == printed(capsys, *line)


def test_a_gymnasium_run_is_explained_from_the_advice_kept(capsys, tmp_path):
    agent = mad.MultiAdvisor(mad.make("multiadvisor/mo-ThreeFruits-v0"), gamma=0.8).learn(3000, progress=False)
    agent.save(tmp_path / "a")
    result = printed(capsys, "explain", tmp_path / "a", "--step", 0)
    assert len(result["differences"]) == 3
    assert result["attractor"] is None
    x = np.array([12, 1, 1, 1])
    assert list(result["preferences"].values()) == pytest.approx(agent.preferences(x).tolist())


def test_the_figure_shows_the_differences(capsys, trained, tmp_path):
    from multiadvisor.viz import plots

    code, out, _ = typed(capsys, "explain", trained, "--step", 3, "--out", tmp_path / "why.png")
    assert code == 0
    assert f"figure in {tmp_path / 'why.png'}" in out
    assert {path.name for path in tmp_path.iterdir()} == {"why.png", "why.svg"}
    agent = mad.load(trained)
    found = agent.explain(agent.task.initial_state(1))
    figure = plots.one_axis(plots.explanation_bars, found)
    axis = figure.axes[0]
    names = [label.get_text() for label in axis.get_yticklabels()]
    bars = dict(zip(names, (bar.get_width() for bar in axis.patches), strict=True))
    assert names[:14] == list(found.differences)[:14]
    assert sum(bars.values()) == pytest.approx(found.advantage)
    marked = {name for name, bar in zip(names, axis.patches, strict=True) if bar.get_hatch()}
    assert marked == set(names) & {*found.msx_plus, *found.msx_minus}
    plots.plt.close(figure)


def test_the_benchmark_counts_ten_thousand_advisors(capsys):
    rows = printed(capsys, "benchmark", "explain", "--rounds", 1)["rows"]
    large = [row for row in rows if row["what"].startswith("MSX") and row["advisors"] >= 10_000]
    assert len(large) == 3
    assert all(row["ms"] > 0 for row in rows)
    assert max(row["plus"] for row in large) == 5001  # of the near tie: all that gain
    assert "10000 advisors, MSX, normal" in typed(capsys, "benchmark", "explain", "--rounds", 1)[1]


@pytest.mark.slow
def test_branches_say_what_the_other_action_would_have_brought(capsys, trained, tmp_path):
    """In a compiled world, and in an environment of Gymnasium from the state that the episode was in."""
    _, out, _ = typed(capsys, "explain", trained, "--step", 1, "--branches")
    assert "states are restored: an unchanged branch reproduces the episode" in out
    env = "CliffWalking-v1"
    mad.MultiAdvisor(mad.make(env, max_episode_steps=30), alpha=0.5).learn(3_000, progress=False).save(tmp_path / "c")
    found = printed(capsys, "explain", tmp_path / "c", "--step", 0, "--against", "right", "--branches")
    assert found["branches"]["terms"]["reward"]["difference"] > 90  # to the right of the start is the cliff
    assert typed(capsys, "explain", trained, "--step", 1)[1].count("branch") == 0


def small_network(folder, steps):
    deep = mad.DQN(hidden=(8,), learning_starts=20, batch_size=16, buffer_size=600)
    mad.MultiAdvisor(mad.make("CartPole-v1"), learner=deep, seed=1).learn(steps, progress=False).save(folder)


@pytest.mark.slow
def test_what_networks_expect_is_tried_out_by_itself_and_kept_until_the_run_is_saved_again(capsys, tmp_path):
    run, line = tmp_path / "a", ("explain", tmp_path / "a", "--step", 2)
    small_network(run, 60)
    first = printed(capsys, *line)
    assert first["branches"]["terms"]["reward"]["agreement"] == 1
    kept = (run / FILE).read_bytes()
    assert printed(capsys, *line) == first
    assert (run / FILE).read_bytes() == kept
    assert "branches" not in printed(capsys, *line, "--no-branches")
    moments = printed(capsys, "evaluate", run, "--episodes", 1, "--moments", 1)["moments"]
    assert moments[0]["branches"]["length"] == first["branches"]["length"]
    small_network(run, 90)
    printed(capsys, *line)
    assert (run / FILE).read_bytes() != kept
    (run / FILE).write_text("torn")
    printed(capsys, *line)
    assert (run / FILE).read_bytes() != kept


@pytest.mark.slow
def test_where_every_branch_replays_its_episode_it_is_tried_out_only_if_asked_for(capsys, tmp_path):
    deep = mad.DQN(hidden=(8,), learning_starts=20, batch_size=16, buffer_size=600)
    task = mad.make("LunarLander-v3", max_episode_steps=30)
    mad.MultiAdvisor(task, learner=deep).learn(40, progress=False).save(tmp_path / "a")
    code, out, _ = typed(capsys, "explain", tmp_path / "a", "--step", 2)
    assert code == 0
    assert "(not tried out: an episode is replayed for every branch, which takes minutes" in out
    assert printed(capsys, "explain", tmp_path / "a", "--step", 2)["branches"] is None
