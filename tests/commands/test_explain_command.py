"""`multiadvisor explain` and `evaluate --trace`: their JSON, their text, and bad input in one line."""

import json

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.runs.trace import read_trace


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, error = capsys.readouterr()
    return code, out, error


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained") / "a"
    mad.MultiAdvisor(mad.make("pac-boy"), gamma=0.9, seed=2).learn(60_000, progress=False).save(folder)
    return folder


@pytest.mark.slow
def test_a_traced_evaluation_is_the_same_evaluation(capsys, trained, tmp_path):
    plain = json.loads(run(capsys, "evaluate", trained, "--episodes", 4, "--seed", 3, "--json")[1])
    code, out, _ = run(capsys, "evaluate", trained, "--episodes", 4, "--seed", 3, "--trace", tmp_path / "t", "--json")
    traced = json.loads(out)
    assert code == 0
    assert traced.pop("trace") == str(tmp_path / "t")
    assert traced == plain
    kept = read_trace(tmp_path / "t")
    assert kept.score.mean() == pytest.approx(plain["score"], abs=1e-12)
    assert kept.length.mean() == plain["length"]
    assert f"trace in {tmp_path / 't'}" in run(capsys, "evaluate", trained, "--trace", tmp_path / "t")[1]


def test_explain_json_is_about_the_step_asked_for(capsys, trained, tmp_path):
    agent = mad.load(trained)
    run(capsys, "evaluate", trained, "--episodes", 3, "--seed", 3, "--trace", tmp_path / "t")
    kept = read_trace(tmp_path / "t")
    for episode, step in ((0, 0), (0, 11), (2, 5)):
        code, out, _ = run(
            capsys, "explain", trained, "--seed", 3, "--episode", episode, "--step", step, "--json", "--against", "west"
            if kept.step(episode, step).action != 1
            else "East",
        )  # fmt: skip
        result = json.loads(out)
        assert code == 0
        seen = kept.step(episode, step)
        assert (result["seed"], result["episode"], result["step"]) == (3, episode, step)
        assert result["steps"] == kept.length[episode]
        assert result["action"] == agent.task.actions[seen.action]
        assert list(result["preferences"].values()) == pytest.approx(agent.preferences(seen.state).tolist())
        assert sum(result["differences"].values()) == pytest.approx(result["advantage"])
        assert set(result["differences"]) == set(agent.advice(seen.state)[0])
        flags = [
            "--trace",
            tmp_path / "t",
            "--episode",
            episode,
            "--step",
            step,
            "--against",
            result["against"],
            "--json",
        ]
        assert json.loads(run(capsys, "explain", trained, *flags)[1]) == result


def test_explain_text(capsys, trained):
    code, out, _ = run(capsys, "explain", trained, "--seed", 3, "--step", 2)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("pac-boy, seed 3, episode 0, step 2 of ")
    assert lines[1].startswith("goes ")
    assert any(line.startswith("disagreement: ") for line in lines)
    assert any("MSX+" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--step", "100000"], "there is no step 100000: episode 0 ended after"),
        (["--step", "-1"], "step is -1"),
        (["--step", "1", "--episode", "-1"], "episode is -1"),
        (["--step", "1", "--episode", "999999999999"], "episode is 999999999999"),
        (["--step", "1", "--seed", "-1"], "seed is -1"),
        (["--step", "1", "--against", "Up"], "unknown action 'Up': choose one of E, N, S, W"),
        (["--step", "one"], "invalid int value"),
        ([], "required: --step"),
        (["--step", "1", "--trace", "nothing"], "cannot read the trace 'nothing'"),
        (["--step", "1", "--trace", "torn"], "the trace 'torn' is damaged or was changed"),
        (["--step", "1", "--trace", "torn header"], "the trace 'torn header' is damaged or was changed"),
        (["--step", "1", "--trace", "/dev/zero"], "'/dev/zero' is not a trace"),
        (["--step", "1", "--trace", "foreign"], "'foreign' is not a trace"),
        (["--step", "1", "--trace", "whole", "--seed", "1"], "leave --seed out"),
        (["--step", "1", "--trace", "whole", "--episode", "9"], "there is no episode 9: 1 episode in the trace"),
        (["--step", "1", "--trace", "others"], "the trace is of another agent, of task 'two-goal'"),
    ],
)
def test_bad_input_is_one_line(capsys, trained, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    run(capsys, "evaluate", trained, "--episodes", 1, "--trace", "whole")
    (tmp_path / "torn").write_bytes((tmp_path / "whole").read_bytes()[:-7])
    (tmp_path / "torn header").write_bytes((tmp_path / "whole").read_bytes()[:99])
    (tmp_path / "foreign").write_text("{}\n")
    mad.MultiAdvisor(mad.make("two-goal")).learn(50, progress=False).save("other")
    run(capsys, "evaluate", "other", "--episodes", 1, "--trace", "others")
    code, out, error = run(capsys, "explain", trained, *arguments)
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert error.startswith("multiadvisor explain: ")
    assert message in error


def test_runs_that_cannot_be_explained(capsys, tmp_path):
    code, _, error = run(capsys, "explain", tmp_path / "nothing", "--step", 1)
    assert (code, len(error.splitlines())) == (2, 1)
    assert "no run in" in error
    import gymnasium

    gymnasium.register("Passing-v0", entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv")
    task = mad.make("Passing-v0")
    mad.MultiAdvisor(task).learn(50, progress=False).save(tmp_path / "passing")
    own = mad.Task.from_gymnasium("FrozenLake-v1", [mad.Advisor("goal", reward=lambda t: t.reward)], name="my lake")
    mad.MultiAdvisor(own).learn(50, progress=False).save(tmp_path / "own")
    del gymnasium.registry["Passing-v0"]
    for name, message in (("passing", "no environment 'Passing-v0' can be made"), ("own", "is a function: give task=")):
        code, _, error = run(capsys, "explain", tmp_path / name, "--step", 0)
        assert (code, len(error.splitlines())) == (2, 1)
        assert message in error


def test_a_trace_that_cannot_be_written_is_refused_first(capsys, trained, tmp_path):
    for place, message in ((tmp_path, "it is a folder"), (tmp_path / "file" / "t", "is a file")):
        (tmp_path / "file").write_text("of somebody's")
        code, out, error = run(capsys, "evaluate", trained, "--trace", place)
        assert (code, out, len(error.splitlines())) == (2, "", 1)
        assert message in error


def test_a_trace_does_not_replace_the_run_it_is_of(capsys, trained, tmp_path):
    before = (trained / "agent.json").read_bytes()
    code, out, error = run(capsys, "evaluate", trained, "--trace", trained / "agent.json")
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert "already exists and is not a trace" in error
    assert (trained / "agent.json").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three-fruits", "CartPole-v1"])
def test_a_network_is_explained_from_its_trace(capsys, tmp_path, name):
    deep = mad.DQN(hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2, updates_at_once=4)
    mad.MultiAdvisor(mad.make(name), learner=deep).learn(200, progress=False).save(tmp_path / "a")
    assert run(capsys, "evaluate", tmp_path / "a", "--episodes", 2, "--trace", tmp_path / "t")[0] == 0
    code, out, error = run(capsys, "explain", tmp_path / "a", "--trace", tmp_path / "t", "--step", 1, "--json")
    assert (code, error) == (0, "")
    plain = json.loads(run(capsys, "explain", tmp_path / "a", "--step", 1, "--json")[1])
    assert json.loads(out) == plain


def test_a_gymnasium_run_is_explained_from_the_advice_kept(capsys, tmp_path):
    agent = mad.MultiAdvisor(mad.make("multiadvisor/mo-ThreeFruits-v0"), gamma=0.8).learn(3000, progress=False)
    agent.save(tmp_path / "a")
    code, out, _ = run(capsys, "explain", tmp_path / "a", "--step", 0, "--json")
    result = json.loads(out)
    assert code == 0
    assert len(result["differences"]) == 3
    assert result["attractor"] is None
    x = np.array([12, 1, 1, 1])
    assert list(result["preferences"].values()) == pytest.approx(agent.preferences(x).tolist())


def test_the_figure_shows_the_differences(capsys, trained, tmp_path):
    from multiadvisor.viz import plots

    code, out, _ = run(capsys, "explain", trained, "--step", 3, "--out", tmp_path / "why.png")
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
    code, out, _ = run(capsys, "benchmark", "explain", "--rounds", 1, "--json")
    rows = json.loads(out)["rows"]
    assert code == 0
    large = [row for row in rows if row["what"].startswith("MSX") and row["advisors"] >= 10_000]
    assert len(large) == 3
    assert all(row["ms"] > 0 for row in rows)
    assert max(row["plus"] for row in large) == 5001  # of the near tie: all that gain
    assert "10000 advisors, MSX, normal" in run(capsys, "benchmark", "explain", "--rounds", 1)[1]
