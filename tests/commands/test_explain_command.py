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
    plain = json.loads(run(capsys, "evaluate", trained, "--games", 4, "--seed", 3, "--json")[1])
    code, out, _ = run(capsys, "evaluate", trained, "--games", 4, "--seed", 3, "--trace", tmp_path / "t", "--json")
    traced = json.loads(out)
    assert code == 0
    assert traced.pop("trace") == str(tmp_path / "t")
    assert traced == plain
    kept = read_trace(tmp_path / "t")
    assert kept.score.mean() == pytest.approx(plain["score"], abs=1e-12)
    assert kept.turns.mean() == plain["turns"]
    assert f"trace in {tmp_path / 't'}" in run(capsys, "evaluate", trained, "--trace", tmp_path / "t")[1]


def test_explain_json_is_about_the_turn_asked_for(capsys, trained, tmp_path):
    agent = mad.load(trained)
    run(capsys, "evaluate", trained, "--games", 3, "--seed", 3, "--trace", tmp_path / "t")
    kept = read_trace(tmp_path / "t")
    for game, turn in ((0, 0), (0, 11), (2, 5)):
        code, out, _ = run(
            capsys, "explain", trained, "--seed", 3, "--game", game, "--turn", turn, "--json", "--against", "west"
            if kept.turn(game, turn).action != 1
            else "East",
        )  # fmt: skip
        result = json.loads(out)
        assert code == 0
        seen = kept.turn(game, turn)
        assert (result["seed"], result["game"], result["turn"]) == (3, game, turn)
        assert result["turns"] == kept.turns[game]
        assert result["action"] == agent.task.actions[seen.action]
        assert list(result["preferences"].values()) == pytest.approx(agent.preferences(seen.state).tolist())
        assert sum(result["differences"].values()) == pytest.approx(result["advantage"])
        assert set(result["differences"]) == set(agent.advice(seen.state)[0])
        flags = ["--trace", tmp_path / "t", "--game", game, "--turn", turn, "--against", result["against"], "--json"]
        assert json.loads(run(capsys, "explain", trained, *flags)[1]) == result


def test_explain_text(capsys, trained):
    code, out, _ = run(capsys, "explain", trained, "--seed", 3, "--turn", 2)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("pac-boy, seed 3, game 0, turn 2 of ")
    assert lines[1].startswith("goes ")
    assert any(line.startswith("disagreement: ") for line in lines)
    assert any("MSX+" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--turn", "100000"], "there is no turn 100000: game 0 ended after"),
        (["--turn", "-1"], "turn is -1"),
        (["--turn", "1", "--game", "-1"], "game is -1"),
        (["--turn", "1", "--game", "999999999999"], "game is 999999999999"),
        (["--turn", "1", "--seed", "-1"], "seed is -1"),
        (["--turn", "1", "--against", "Up"], "unknown action 'Up': choose one of E, N, S, W"),
        (["--turn", "one"], "invalid int value"),
        ([], "required: --turn"),
        (["--turn", "1", "--trace", "nothing"], "cannot read the trace 'nothing'"),
        (["--turn", "1", "--trace", "torn"], "the trace 'torn' is damaged or was changed"),
        (["--turn", "1", "--trace", "torn header"], "the trace 'torn header' is damaged or was changed"),
        (["--turn", "1", "--trace", "/dev/zero"], "'/dev/zero' is not a trace"),
        (["--turn", "1", "--trace", "foreign"], "'foreign' is not a trace"),
        (["--turn", "1", "--trace", "whole", "--seed", "1"], "leave --seed out"),
        (["--turn", "1", "--trace", "whole", "--game", "9"], "there is no game 9: 1 game in the trace"),
        (["--turn", "1", "--trace", "others"], "the trace is of another agent, of task 'two-goal'"),
    ],
)
def test_bad_input_is_one_line(capsys, trained, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    run(capsys, "evaluate", trained, "--games", 1, "--trace", "whole")
    (tmp_path / "torn").write_bytes((tmp_path / "whole").read_bytes()[:-7])
    (tmp_path / "torn header").write_bytes((tmp_path / "whole").read_bytes()[:99])
    (tmp_path / "foreign").write_text("{}\n")
    mad.MultiAdvisor(mad.make("two-goal")).learn(50, progress=False).save("other")
    run(capsys, "evaluate", "other", "--games", 1, "--trace", "others")
    code, out, error = run(capsys, "explain", trained, *arguments)
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert error.startswith("multiadvisor explain: ")
    assert message in error


def test_runs_that_cannot_be_explained(capsys, tmp_path):
    code, _, error = run(capsys, "explain", tmp_path / "nothing", "--turn", 1)
    assert (code, len(error.splitlines())) == (2, 1)
    assert "no run in" in error
    import gymnasium

    gymnasium.register("Passing-v0", entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv")
    task = mad.make("gymnasium:Passing-v0")
    mad.MultiAdvisor(task).learn(50, progress=False).save(tmp_path / "passing")
    own = mad.Task.from_gymnasium("FrozenLake-v1", [mad.Focus("goal", reward=lambda t: t.reward)], name="my lake")
    mad.MultiAdvisor(own).learn(50, progress=False).save(tmp_path / "own")
    del gymnasium.registry["Passing-v0"]
    for name, message in (("passing", "no environment 'Passing-v0' can be made"), ("own", "is a function: give task=")):
        code, _, error = run(capsys, "explain", tmp_path / name, "--turn", 0)
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
@pytest.mark.parametrize("name", ["three-fruits", "gymnasium:CartPole-v1"])
def test_a_network_is_explained_from_its_trace(capsys, tmp_path, name):
    deep = mad.DeepSettings(hidden=(8,), starts=64, batch=16, replay=600, update_every=2, updates_at_once=4)
    mad.MultiAdvisor(mad.make(name), deep=deep).learn(200, progress=False).save(tmp_path / "a")
    assert run(capsys, "evaluate", tmp_path / "a", "--games", 2, "--trace", tmp_path / "t")[0] == 0
    code, out, error = run(capsys, "explain", tmp_path / "a", "--trace", tmp_path / "t", "--turn", 1, "--json")
    assert (code, error) == (0, "")
    plain = json.loads(run(capsys, "explain", tmp_path / "a", "--turn", 1, "--json")[1])
    assert json.loads(out) == plain


def test_a_gymnasium_run_is_explained_from_the_advice_kept(capsys, tmp_path):
    agent = mad.MultiAdvisor(mad.make("gymnasium:multiadvisor/mo-ThreeFruits-v0"), gamma=0.8).learn(
        3000, progress=False
    )
    agent.save(tmp_path / "a")
    code, out, _ = run(capsys, "explain", tmp_path / "a", "--turn", 0, "--json")
    result = json.loads(out)
    assert code == 0
    assert len(result["differences"]) == 3
    assert result["attractor"] is None
    x = np.array([12, 1, 1, 1])
    assert list(result["preferences"].values()) == pytest.approx(agent.preferences(x).tolist())


def test_the_figure_shows_the_differences(capsys, trained, tmp_path):
    from multiadvisor import plots

    code, out, _ = run(capsys, "explain", trained, "--turn", 3, "--out", tmp_path / "why.png")
    assert code == 0
    assert f"figure in {tmp_path / 'why.png'}" in out
    assert {path.name for path in tmp_path.iterdir()} == {"why.png", "why.svg"}
    agent = mad.load(trained)
    found = agent.explain(agent.task.deal(1))
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
