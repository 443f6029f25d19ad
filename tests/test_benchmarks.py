"""Benchmarks measure what they say: single questions, the sweep, and other libraries by their greedy episodes."""

import io
import json

import gymnasium
import numpy as np
import pytest

import against_a_commit
from measures import act as benchmark_act
from measures import sweep as benchmark_sweep
from multiadvisor.cli import main
from multiadvisor.envs import step
from multiadvisor.errors import BadInput
from peers import missing
from studies.continuous_runs import peer_score


# ---- single questions ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_questions_are_measured(capsys, monkeypatch):
    monkeypatch.setattr(benchmark_act, "SIZES", (5, 50))
    monkeypatch.setattr(benchmark_act, "_BLOCK_SECONDS", 1e-4)
    assert main(["benchmark", "act", "--rounds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["advisors"] for row in found["rows"]] == [77, 5, 50]
    assert [row["active"] for row in found["rows"][1:]] == [5, 50]
    assert all(row[f"{name}_us"] > 0 for row in found["rows"] for name in ("act", "advice", "explain"))
    assert len(benchmark_act.describe("act", found).splitlines()) == 4


def test_a_call_is_timed_by_the_processor_clock(monkeypatch):
    """With a clock of our own, which every call moves on by 50 microseconds."""
    now = [0.0]
    monkeypatch.setattr(benchmark_act.time, "process_time", lambda: now[0])

    def work():
        now[0] += 50e-6

    assert round(benchmark_act._microseconds(work), 6) == 50.0


# ---- the sweep -------------------------------------------------------------------------------------------------------
def test_overhead_is_what_the_workers_did_not_work(monkeypatch):
    """With a clock and jobs of our own: 2 workers for 10 s, of which 12 s were work, lose 8 s."""
    walls = iter([(1.0, 0.0, 0.0), (10.0, 12.0, 3.0)])
    monkeypatch.setattr(benchmark_sweep, "_wall", lambda folder, engine, jobs: next(walls))
    found = benchmark_sweep.measure("local", 1000)
    assert found["overhead_ms"] == pytest.approx(8.0)
    assert found["overhead_ms_without_start"] == pytest.approx(6.0)
    assert found["work_ms"] == pytest.approx(12.0)
    assert found["driver_cpu_ms"] == pytest.approx(3.0)


@pytest.mark.slow
def test_a_sweep_is_measured():
    found = benchmark_sweep.measure("local", 30)
    assert found["work_ms"] >= 1.0
    assert found["wall_seconds"] > 0
    run = {"what": "a run", "seconds": 1.0, "result_bytes": 10.0}
    result = {"machine": "a machine", "engines": {"local": found}, "training_run": run}
    lines = benchmark_sweep.describe("sweep", result).splitlines()
    assert "30 runs" in lines[1]
    assert len(lines) == 3


# ---- an older commit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["sac-pendulum-nine", "dqn-cartpole", "tables-frozen-lake"])
def test_one_of_two_commits_answers_with_the_time_of_each_block_and_its_score(name, monkeypatch, capsys):
    case = against_a_commit.CASES[name]._replace(block=2)
    own = {**case.own, "learning_starts": 8} if case.own else {}
    monkeypatch.setattr(against_a_commit.sys, "stdin", io.StringIO("3\n3\n"))
    against_a_commit.serve(case._replace(own=own), {})
    *times, score = map(float, capsys.readouterr().out.split())
    assert len(times) == 2
    assert min(times) > 0
    assert np.isfinite(score)


def test_a_commit_that_there_is_not_is_told_in_a_line(capsys, monkeypatch):
    monkeypatch.setattr(against_a_commit.sys, "argv", ["against_a_commit.py", "no-such-commit"])
    with pytest.raises(SystemExit) as stop:
        against_a_commit.main()
    assert stop.value.code == 2
    assert "'no-such-commit' cannot be checked out" in capsys.readouterr().err.splitlines()[-1]


# ---- other libraries -------------------------------------------------------------------------------------------------
class Count(gymnasium.Env):
    """As many steps as the seed says, each of which pays the action, or the first number of it."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,))

    def __init__(self, actions):
        self.action_space = actions

    def reset(self, *, seed=None, options=None):
        self.left = 0 if seed is None else seed
        return np.array([self.left], np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), "actions are of the environment's own kind"
        self.left -= 1
        return np.array([self.left], np.float32), float(np.ravel(action)[0]), self.left == 0, False, {}


class Model:
    """A model as Stable-Baselines3 has them: it gives an array, also for a single action."""

    def __init__(self, action):
        self.action = action

    def predict(self, observation, deterministic):
        assert deterministic
        return self.action, None


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        (gymnasium.spaces.Discrete(3), np.array(2)),
        (gymnasium.spaces.Box(0, 5, (1,)), np.array([2.0], np.float32)),
    ],
)
def test_the_score_is_the_mean_return_of_episodes_with_these_seeds(actions, action):
    assert peer_score(Model(action), Count(actions), first=3, episodes=4) == 2.0 * np.mean([3, 4, 5, 6])


def test_an_episode_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(step, "LONGEST_EPISODE", 100)
    with pytest.raises(BadInput, match=r"did not end in 100 steps: give it a limit"):
        peer_score(Model(np.array(1)), Count(gymnasium.spaces.Discrete(3)), first=0, episodes=1)


def test_an_environment_that_cannot_be_made_says_why():
    assert missing("CartPole-v1") is None
    assert "NoSuchThing" in missing("NoSuchThing-v0")
