"""check_task on the terms of a reward, and on a trained agent: remarks are no defects, being stuck is a finding."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from multiadvisor import Advisor, check_task
from multiadvisor.analysis.checks.term_check import REMARKS, TermTotals
from multiadvisor.cli import main


class Paid(gymnasium.Env):
    """Pays what it is told to, in a vector; episodes of 20 steps."""

    observation_space, action_space = spaces.Discrete(4), spaces.Discrete(2)

    def __init__(self, pay, dimension=3, original=None):
        self.pay, self.original = pay, original
        self.reward_space = spaces.Box(-np.inf, np.inf, (dimension,))
        self.reward_names = tuple("abcdef"[:dimension])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.elapsed = 0
        return 0, {}

    def step(self, action):
        self.elapsed += 1
        paid = np.array(self.pay(self.elapsed, action), np.float32)
        info = {} if self.original is None else {"original_reward": self.original(paid, self.elapsed)}
        return self.elapsed % 4, paid, self.elapsed == 20, False, info


def remarks(pay, steps=1000, **more):
    report = check_task(mad.Task.from_gymnasium(Paid(pay, **more), name="paid"), steps=steps)
    assert report.ok, str(report)  # a remark is no defect
    assert all(one.defect in REMARKS for one in report.remarks)
    return {(one.defect, one.advisor): one.message for one in report.remarks}


def test_a_term_that_never_pays():
    found = remarks(lambda step, action: [1.0, float(action), 0.0])
    assert list(found) == [("never-paid", "c")]
    assert "1000 steps" in found["never-paid", "c"]
    assert not remarks(lambda step, action: [1.0, float(action), 0.0], steps=100)  # too few to say so
    assert not remarks(lambda step, action: [1.0, float(action), float(step == 19)])


def test_who_is_one_of_a_group_or_never_to_be_paid_is_no_term_by_itself():
    advisors = [Advisor("a", 0), Advisor("b", 1, group="pair"), Advisor("c", 2, group="pair"),
            Advisor("d", mad.task.nothing)]  # fmt: skip
    task = mad.Task.from_gymnasium(Paid(lambda step, action: [1.0, 1.0, 0.0]), advisors, name="grouped")
    assert check_task(task, steps=1000).remarks == ()


def test_a_term_that_dominates_by_its_scale():
    found = remarks(lambda step, action: [100.0, 0.1, float(action)])
    assert list(found) == [("dominates-by-scale", "a")]
    assert "b, c is hardly noticed" in found["dominates-by-scale", "a"]
    assert not remarks(lambda step, action: [10.0, 1.0, 1.0])
    task = mad.Task.from_gymnasium(Paid(lambda step, action: [100.0, 1.0, 1.0]), name="weighted")
    assert check_task(task.with_weights(a=0.01), steps=1000).remarks == ()


@pytest.mark.slow
def test_terms_that_do_not_add_up_to_the_original_reward():
    def pay(step, action):
        return [1.0, float(action), -float(step % 3)]

    assert not remarks(pay, original=lambda paid, step: float(paid.sum()))
    weighted = remarks(pay, original=lambda paid, step: paid @ np.array([1.0, 0.5, 0.25]))
    assert "with --weights 'a=1,b=0.5,c=0.25' they would" in weighted["original-reward-differs", None]
    last = remarks(pay, original=lambda paid, step: -50.0 if step == 20 else paid @ np.array([1.0, 0.5, 0.25]))
    assert "b=0.5,c=0.25' they would, in 95.0% of the steps" in last["original-reward-differs", None]
    product = remarks(pay, original=lambda paid, step: step * float(paid.prod()) + step)
    assert "it is not their sum" in product["original-reward-differs", None]


def test_the_healthy_reward_of_mo_gymnasium_counts_several_times():
    class Hopper(Paid):
        _healthy_reward = 1.0
        spec = gymnasium.envs.registration.EnvSpec("mo-hopper-v5", entry_point="mo_gymnasium.envs.mujoco:MOHopperEnv")

    env = Hopper(lambda step, action: [1.0 + action, 1.0 + step, 1.0])
    task = mad.Task.from_gymnasium(
        env, [Advisor("forward", 0), Advisor("height", 1), Advisor("control", 2)], name="hopper"
    )
    (found,) = TermTotals(task).remarks()
    assert found[0] == "healthy-in-every-component"
    assert "counts it 3 times" in found[2]
    env._healthy_reward = 0.0
    assert TermTotals(task).remarks() == []


# ---- with a trained agent --------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_stuck_agent_is_a_finding(tmp_path, capsys):
    task = mad.make("three-fruits")
    mad.theory.exact_agent(task, "egocentric", 0.6).save(tmp_path / "stuck")
    mad.MultiAdvisor(task).learn(20_000).save(tmp_path / "free")
    assert main(["check", "--run", str(tmp_path / "stuck"), "--steps", "100", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [one["defect"] for one in report["findings"]] == ["stuck"]
    message = report["findings"][0]["message"]
    assert "in 8 of 8 episodes of the agent, the first is episode 0: stands still since step 0" in message
    assert main(["check", "--run", str(tmp_path / "free"), "--steps", "100"]) == 0
    assert main(["check"]) == 2
    assert main(["check", "pac-boy", "--run", str(tmp_path / "free")]) == 2
    assert "leave the other one out" in capsys.readouterr().err


def test_what_pays_a_trained_agent_is_no_longer_said_never_to_pay():
    class Locked(Paid):
        """Only who presses 1 ten times in a row is paid."""

        def reset(self, *, seed=None, options=None):
            self.run = 0
            return super().reset(seed=seed)

        def step(self, action):
            self.run = self.run + 1 if action == 1 else 0
            return super().step(action)

    env = Locked(lambda step, action: [0.0])
    env.pay = lambda step, action: [0.1 * action, float(env.run >= 19)]
    env.reward_space, env.reward_names = spaces.Box(-np.inf, np.inf, (2,)), ("press", "lock")
    task = mad.Task.from_gymnasium(env, name="locked")
    agent = mad.MultiAdvisor(task)
    assert [one.advisor for one in check_task(task, steps=1000).remarks] == ["lock"]
    for state in range(4):
        agent.observe(state, 1, np.array([1.0, 0.0]), (state + 1) % 4, terminated=False)
    assert check_task(task, steps=1000, agent=agent).remarks[:0] == ()
    assert "never-paid" not in {one.defect for one in check_task(task, steps=1000, agent=agent).remarks}


@pytest.mark.parametrize("name", sorted(REMARKS))
def test_the_documentation_names_every_remark(name):
    page = Path(__file__).parents[1] / "docs" / "which-term-drives-it.md"
    assert f"`{name}`" in page.read_text("utf-8")
