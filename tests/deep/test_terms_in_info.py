"""Reward terms in `info` as advisors: in tables, networks and vector environments of both kinds; what is refused."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import multiadvisor as mad
from agents import remembered
from multiadvisor.cli import main
from multiadvisor.envs.info_terms import found_advisors, key_of, term
from refusal import refused

LENGTH = 4


class Corridor(gymnasium.Env):
    """Four cells; East earns 1, every step costs 0.25, and the last cell pays 3 more, which no term says."""

    def __init__(self, dictionary=False, spoils=False):
        self.action_space, self.dictionary, self.spoils = spaces.Discrete(2), dictionary, spoils
        self.observation_space = spaces.Discrete(LENGTH)
        if dictionary:
            self.observation_space = spaces.Dict(
                {"where": spaces.Discrete(LENGTH), "how": spaces.Tuple([spaces.Box(-1, 1, (2,)), spaces.Discrete(2)])}
            )

    def see(self):
        if not self.dictionary:
            return self.cell
        pair = np.full(3 if self.spoils and self.elapsed == 3 else 2, self.elapsed / 10, np.float32)
        return {"where": self.cell, "how": (pair, self.elapsed % 2)}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.elapsed = 0, 0
        return self.see(), {"reward_of_reset": 1.0}

    def step(self, action):
        self.elapsed += 1
        east = int(action)
        self.cell = max(self.cell + (1 if east else -1), 0)
        over = self.cell == LENGTH - 1
        terms = {"reward_east": float(east), "reward_time": np.float32(-0.25), "pair": np.array([east, -0.25])}
        info = {**terms, "rewards": {"east": float(east), "deep": {"time": -0.25}}, "reward_note": "none", "cell": [0]}
        return self.see(), east - 0.25 + 3.0 * over, over, self.elapsed >= 8, info


gymnasium.register("tests/Corridor-v0", Corridor)
SMALL = mad.DQN(hidden=(8,), learning_starts=16, batch_size=16, buffer_size=200)
PLAYS = mad.DQN(hidden=(8,), learning_starts=1_000, batch_size=16, buffer_size=200)  # and updates nothing


# ---- which advisors there are ----------------------------------------------------------------------------------------
def test_advisors_are_found_and_named():
    task = mad.Task.from_gymnasium("tests/Corridor-v0", "info:reward_*", remainder=True)
    assert [(f.name, f.reward) for f in task.advisors] == [
        ("east", "info:reward_east"), ("time", "info:reward_time"), ("remainder", "remainder")]  # fmt: skip
    nested = mad.Task.from_gymnasium(Corridor(), "info:rewards.east, info:rewards.deep.*")
    assert [(f.name, f.reward) for f in nested.advisors] == [
        ("east", "info:rewards.east"), ("time", "info:rewards.deep.time")]  # fmt: skip
    array = mad.Task.from_gymnasium(Corridor(), ["info:pair", mad.Advisor("own", reward=lambda t: 0.0)])
    assert array.names == ("pair 0", "pair 1", "own")
    assert found_advisors("info:a.b", {"a.b": 1})[0].name == "b"


def test_a_task_of_terms_is_made_again_from_a_checkpoint(tmp_path):
    task = mad.make("tests/Corridor-v0", advisors="info:reward_*", remainder=True, weights={"time": 2.0})
    agent = mad.MultiAdvisor(task).learn(50)
    agent.save(tmp_path / "a")
    again = mad.load(tmp_path / "a")
    assert again.task.advisors == task.advisors
    assert again.task.identity == task.identity
    other = mad.make("tests/Corridor-v0", advisors="info:reward_east", remainder=True)
    refused("other advisors", mad.load, tmp_path / "a", other)


# ---- what they are paid ----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"learner": SMALL}], ids=["table", "network"])
@pytest.mark.parametrize("advisors", ["info:reward_*", "info:pair", "info:rewards.east,info:rewards.deep.time"])
def test_tables_and_networks_are_paid_what_info_says(how, advisors):
    agent = mad.MultiAdvisor(
        mad.Task.from_gymnasium(Corridor(), advisors, remainder=True), gamma=0.9, epsilon=0.3, **how
    )
    played = agent.learn(200).evaluate(2).played
    east, time, rest = played.returns.T
    assert (time == -0.25 * played.length).all()
    assert (rest == 3.0 * played.terminated).all()
    assert np.allclose(played.score, east + time + rest)
    assert (east >= 3 * played.terminated).all()


def test_transitions_that_others_play_have_their_info():
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Corridor(), "info:reward_*"), alpha=0.5)
    agent.observe(0, 1, 0.75, 1, False, info={"reward_east": 1.0, "reward_time": -0.25})
    assert agent.advice(0)[1].tolist() == [[0.0, 0.5], [0.0, -0.125]]
    refused("'east' takes info:reward_east, which the info of a step lacks", agent.observe, 0, 1, 0.75, 1, False)


def test_the_check_reads_terms_and_misses_what_they_leave():
    assert not mad.check_task(mad.Task.from_gymnasium(Corridor(), "info:reward_*", remainder=True), steps=100).findings
    found = mad.check_task(mad.Task.from_gymnasium(Corridor(), "info:reward_*"), steps=100).findings
    assert {finding.defect for finding in found} == {"rewards-do-not-sum"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("advisors", ["info:reward_*", "info:pair", "info:rewards.east,info:rewards.deep.time"])
def test_vector_environments_of_both_kinds_pay_the_last_step_too(mode, advisors):
    env = SyncVectorEnv([Corridor for _ in range(3)], autoreset_mode=mode)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, advisors, remainder=True), epsilon=0.5, learner=SMALL)
    agent.learn(120)
    _, action, reward, _, ended, *_ = remembered(agent)
    assert len(reward) == agent.steps
    assert (reward[:, 0] == action).all()
    assert (reward[:, 1] == -0.25).all()
    assert (reward[:, 2] == 3.0 * ended[:, 2]).all()
    assert ended[:, 2].any()
    played = agent.evaluate(4).played
    assert (played.returns[:, 1] == -0.25 * played.length).all()


def test_dictionaries_and_tuples_are_seen_flat():
    task = mad.Task.from_gymnasium(Corridor(dictionary=True), "info:reward_*", remainder=True)
    agent = mad.MultiAdvisor(task, learner=PLAYS, epsilon=0.5).learn(60)
    seen = agent._learner.encoder
    assert seen.shape == (8,)
    state = {"where": 2, "how": (np.array([0.5, -0.5], np.float32), 1)}
    assert seen.convert(state).tolist() == [0.5, -0.5, 0, 1, 0, 0, 1, 0]
    assert agent.advice(state)[0] == ("east", "time", "remainder")
    vector = SyncVectorEnv([lambda: Corridor(dictionary=True)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    task = mad.Task.from_gymnasium(vector, "info:reward_*")
    assert mad.MultiAdvisor(task, learner=PLAYS).learn(40).steps == 40
    task = mad.Task.from_gymnasium(Corridor(dictionary=True, spoils=True), "info:reward_*")
    refused("does not fit its space", lambda: mad.MultiAdvisor(task, learner=PLAYS).learn(40))


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("advisors", "line"),
    [
        ("info:reward_nothing", "no number in info fits info:reward_nothing .it has reward_east"),
        ("info:reward_note", "no number in info fits"),
        ("reward_east", "write info:KEY"),
        ("info:", "write info:KEY"),
        ([mad.Advisor("a", reward="info:reward_nothing")], "advisor 'a' takes info:reward_nothing, which the info"),
        ([mad.Advisor("a", reward="info:pair")], r"an array of the shape \(2,\): name one of its numbers"),
        ([mad.Advisor("a", reward="info:pair.2")], "lacks"),
        ([mad.Advisor("a", reward="info:reward_note")], "name a number"),
        ([mad.Advisor("a", reward="reward_east")], "write info:KEY for a term in info"),
        ([mad.Advisor("a", reward="remainder"), mad.Advisor("b", reward="remainder")], "take the remainder"),
        (7, "give rewards by name, a list of advisors"),
    ],
)
def test_what_info_does_not_have_is_refused_before_anything_is_learned(advisors, line):
    refused(line, mad.make, "tests/Corridor-v0", advisors=advisors)


@pytest.mark.parametrize(
    ("advisors", "by"),
    [
        ("info:reward_*,info:*_east", "info:reward_. and by info:._east"),
        (
            ["info:reward_east", mad.Advisor("mine", reward="info:reward_east")],
            "info:reward_east and by advisor 'mine'",
        ),
        ([mad.Advisor("mine", reward="info:pair.0"), "info:pair"], "advisor 'mine' and by info:pair"),
    ],
)
def test_a_term_that_two_patterns_take_is_not_paid_twice(advisors, by):
    line = rf"the term info:\S+ would be paid twice, by {by}: let one of them take it"
    refused(line, mad.Task.from_gymnasium, Corridor(), advisors)
    own = [mad.Advisor(name, reward="info:reward_east", weight=0.5) for name in ("mine", "yours")]
    assert mad.Task.from_gymnasium(Corridor(), own).n == 2, "whoever names the advisors himself has said what he wants"


INFO = {
    "rewards": {0: 1.0, 1: 2.0, "a.b": 3.0, "deep": {(1, 2): 4.0}, "pair": np.array([5.0, 6.0])},
    7: 8.0, "x.y": {"z": 9.0}, "_hidden": 10.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "paid"),
    [("info:rewards.*", [1, 2, 5, 6]), ("info:rewards.*.*", [3, 4]), ("info:7", [8]), ("info:x.y.*", [9]),
     ("info:_hid*", [10])],
)  # fmt: skip
@pytest.mark.parametrize("vector", [False, True])
def test_whatever_a_pattern_finds_is_paid(pattern, paid, vector):
    class Odd(Corridor):
        def step(self, action):
            return *super().step(action)[:4], INFO

    assert [term(advisor, key_of(advisor.reward), INFO) for advisor in found_advisors(pattern, INFO)] == paid
    env = SyncVectorEnv([Odd]) if vector else Odd()
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, pattern), learner=PLAYS).learn(5)
    assert remembered(agent).reward[0].tolist() == paid


def test_keys_that_lead_nowhere_are_lacking():
    for key in ("rewards.2", "rewards.0.1", "rewards.pair.x", "rewards.pair.0.1", "7.1", "rewards."):
        refused("lacks", term, mad.Advisor("a", reward=f"info:{key}"), key, INFO)


def test_rest_needs_advisors_and_a_reward_of_one_number():
    refused("none are given", mad.Task.from_gymnasium, Corridor(), remainder=True)
    env = Corridor()
    env.reward_space = spaces.Box(-1, 1, (2,))
    refused("a vector of 2", mad.Task.from_gymnasium, env, [mad.Advisor("a", reward=0)], remainder=True)


# ---- the command line ------------------------------------------------------------------------------------------------
def test_the_command_takes_advisors_and_rest(capsys, tmp_path):
    line = ["train", "tests/Corridor-v0", "--advisors", "info:reward_*", "--remainder", "--steps", "50"]
    line += f"--eval-every 50 --eval-episodes 1 --weights time=2 --out {tmp_path / 'a'} --json".split()
    assert main(line) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "a"), "--episodes", "1", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["advisors"]) == {"east", "time", "remainder"}
    for wrong, told in (
        (["--advisors", "info:nothing_*"], "no number in info fits info:nothing_*"),
        (["--remainder"], "none are given"),
        (["--advisors", "info:reward_*", "--components", "a,b"], "give one of them"),
    ):
        assert main(["train", "tests/Corridor-v0", *wrong]) == 2
        said = capsys.readouterr().err
        assert told in said
        assert len(said.splitlines()) == 1
    assert main(["train", "two-goal", "--advisors", "info:reward_*"]) == 2
    assert "is for Gymnasium environments" in capsys.readouterr().err
