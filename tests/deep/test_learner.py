"""The deep learner: exact values on small tasks, the same bytes for the same seed, and nothing lost on the way."""

import dataclasses
import math
import os
import signal
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from mo_gymnasium.wrappers.vector import MOSyncVectorEnv
from toy_envs import Counter, Flaky, Spoiled

import multiadvisor as mad
from multiadvisor.agent import load_with_record
from multiadvisor.analysis.theory import enumerate_task, solve
from multiadvisor.errors import BadInput, Diverged
from multiadvisor.learners.dqn import Cohort
from multiadvisor.learners.dqn.replay import LAST, STEP
from multiadvisor.runs import training
from multiadvisor.runs.trace import record_evaluation, replay
from multiadvisor.settings import Schedule, Settings

# Without hidden layers a one-hot state is looked up in a table, so that the fixed point can be met exactly.
TABLE = mad.DQN(
    hidden=(),
    loss="squared",
    learning_rate=0.02,
    target_update_interval=25,
    train_freq=1,
    learning_starts=200,
    epsilon_start=1.0,
    n_envs=8,
    buffer_size=4000,
)


def farthest(task, planning, steps, gamma=0.8, **how):
    """The largest difference between the advice learned from random play and the exact values of the advisors."""
    deep = dataclasses.replace(TABLE, **how)
    agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, epsilon=1.0, learner=deep).learn(
        steps, progress=False
    )
    exact = solve(enumerate_task(task, full=True), planning, gamma)
    assert exact.converged
    off = []
    for state in range(exact.mdp.states):
        names, advice = agent.advice(np.array([state]))
        for name, row in zip(names, advice, strict=True):
            off.append(np.abs(row - exact.values[task.names.index(name), state]).max())
    return max(off)


def uneven():
    """Two jobs: weights and gammas of their own, and advisors that fall silent when their job is done."""
    task = mad.make("resource-scheduling", jobs=2, work=2, weights={"job 1": 2.0})
    advisors = (
        dataclasses.replace(advisor, gamma=gamma) for advisor, gamma in zip(task.advisors, (0.5, 0.9), strict=True)
    )
    return dataclasses.replace(task, advisors=tuple(advisors))


@pytest.mark.slow
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("planning", ["egocentric", "agnostic", "empathic"])
def test_values_meet_the_exact_fixed_point(planning, double):
    assert farthest(uneven(), planning, 3000, double=double) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("planning", ["egocentric", "agnostic", "empathic"])
def test_values_meet_the_exact_fixed_point_over_a_bridge(planning):
    """Advisors that disagree: with rewards of both signs, the three plannings differ in every state."""
    assert farthest(mad.make("bridge", length=2), planning, 2000) < 0.01


@pytest.mark.slow
def test_negative_weights_turn_an_advisor_against_its_own_reward():
    task = mad.make("dollars-and-euros", failure=0.0, weights={"euros": -1.0})
    for planning in ("egocentric", "empathic"):
        assert farthest(task, planning, 1500) < 1e-3


@pytest.mark.slow
def test_several_steps_are_exact_where_play_is_what_is_planned_for():
    """Agnostic advisors expect random actions; under random play, rewards may be summed over any number of steps."""
    how = {"learning_rate": 0.002, "batch_size": 64, "buffer_size": 20_000}
    assert farthest(mad.make("bridge", length=2), "agnostic", 16_000, n_step=3, **how) < 0.06


@pytest.mark.slow
def test_hidden_layers_meet_them_as_well():
    assert farthest(mad.make("bridge", length=2), "empathic", 5000, hidden=(32,), learning_rate=0.003) < 0.05


@pytest.mark.slow
def test_one_advisor_for_all_learns_the_optimum():
    """Split none is DQN: its one advisor's values are those of the optimal policy of the weighted reward."""
    task = mad.make("resource-scheduling", jobs=2, work=2, weights={"job 1": 2.0})
    deep = dataclasses.replace(TABLE, split="none")
    agent = mad.MultiAdvisor(task, gamma=0.8, epsilon=1.0, learner=deep).learn(3000, progress=False)
    best, _ = mad.theory.optimum(enumerate_task(task, full=True), 0.8)
    start = int(task.initial_state()[0])
    assert agent.advisors[0].name == "reward"
    np.testing.assert_allclose(agent.preferences(np.array([start])), best[start], atol=1e-3)


# ---- the same seed, the same bytes -----------------------------------------------------------------------------------
QUICK = mad.DQN(
    hidden=(8,),
    learning_starts=64,
    batch_size=16,
    buffer_size=600,
    train_freq=2,
    updates_at_once=4,
    n_envs=2,
    target_update_interval=10,
    epsilon_steps=300,
    n_step=2,
)


def bytes_of(agent):
    return {name: array.tobytes() for name, array in agent._learner.tensors().items()}


def own_counter():
    return mad.Task.from_gymnasium(Counter(), name="own counter")


MAKERS = {
    "world": (lambda: mad.make("three-fruits"), 2), "cart pole": (lambda: mad.make("CartPole-v1"), 2),
    "own environment": (own_counter, 1),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_twice_in_pieces_evaluated_and_taken_up_again(name, tmp_path):
    make, envs = MAKERS[name]
    deep = dataclasses.replace(QUICK, n_envs=envs)

    def agent(seed=3):
        return mad.MultiAdvisor(make(), noise=0.1, seed=seed, learner=deep)

    whole = agent()
    whole.learn(900, progress=False)
    pieces = agent()
    pieces.evaluate(2)  # before anything was learned
    for steps in (10, 290, 2, 298):
        pieces.learn(steps, progress=False)
        pieces.evaluate(2)
    pieces.save(tmp_path / "a")
    loaded = mad.load(tmp_path / "a", None if name != "own environment" else make())
    assert bytes_of(loaded) == bytes_of(pieces)
    assert loaded.evaluate(3).played.score.tolist() == pieces.evaluate(3).played.score.tolist()
    for one in (pieces, loaded):
        assert bytes_of(one.learn(300, progress=False)) == bytes_of(whole)
    assert bytes_of(agent(seed=4).learn(300, progress=False))["network 000"] != bytes_of(whole)["network 000"]


@pytest.mark.slow
def test_two_agents_in_one_environment_of_ones_own():
    task, deep = own_counter(), dataclasses.replace(QUICK, n_envs=1)
    alone = bytes_of(mad.MultiAdvisor(own_counter(), learner=deep).learn(300, progress=False))
    first, second = (mad.MultiAdvisor(task, learner=deep) for _ in range(2))
    for _ in range(3):
        first.learn(100, progress=False)
        second.learn(100, progress=False)
    assert bytes_of(first) == bytes_of(second) == alone


@pytest.mark.slow
@pytest.mark.parametrize("fails_in", [150, 151])
def test_a_step_that_failed_is_no_part_of_the_run(fails_in, tmp_path):
    """The first or the second of two episodes raises an exception: learning goes on as if it had not, saved or not."""
    task = mad.make("tests/Flaky-v0")
    whole = bytes_of(mad.MultiAdvisor(task, learner=QUICK).learn(300, progress=False))
    agent = mad.MultiAdvisor(task, learner=QUICK)
    Flaky.fails_in = fails_in
    with pytest.raises(RuntimeError, match="the line was down"):
        agent.learn(300, progress=False)
    assert agent.steps == 2 * ((fails_in - 1) // 2)
    agent.save(tmp_path / "a")
    for one in (agent, mad.load(tmp_path / "a")):
        assert bytes_of(one.learn(300 - one.steps, progress=False)) == whole


@pytest.mark.slow
def test_a_killed_training_goes_on_with_the_same_bytes(tmp_path):
    """Saved after every evaluation here, and killed while it learns on."""
    out = tmp_path / "a"
    program = f"""
import os
os.environ["MULTIADVISOR_SAVE_SECONDS"] = "0"
from pathlib import Path
import multiadvisor as mad
from multiadvisor.runs import training
from multiadvisor.settings import Schedule
deep = mad.DQN(hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2,
                        updates_at_once=4)
run = training.begin(
    mad.make("CartPole-v1"), mad.Settings(learner=deep), Schedule(900, 150, 2), Path({str(out)!r}), True
)
run.run(lambda steps, evaluation: print(evaluation, flush=True))
"""
    for lines in (5, 6, None):  # two of them for each evaluation
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        if lines is not None:
            for _ in range(lines):
                process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == 0
    deep = mad.DQN(hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2, updates_at_once=4)
    whole = training.begin(mad.make("CartPole-v1"), Settings(learner=deep), Schedule(900, 150, 2), None, False)
    whole.run()
    agent, record = load_with_record(out)
    assert bytes_of(agent) == bytes_of(whole.agent)
    assert record["evaluations"] == whole.evaluations


def test_evaluations_shorter_than_a_round_of_episodes():
    run = training.begin(
        mad.make("two-goal"), Settings(learner=dataclasses.replace(QUICK, n_envs=16)), Schedule(40, 10, 1), None, False
    ).run()
    assert [evaluation["steps"] for evaluation in run.evaluations] == [16, 32, 32, 48]
    assert run.agent.steps == 48


def test_exploration_falls_and_stays():
    """Nothing is learned here, so that the greedy action of the only state never changes."""
    deep = mad.DQN(hidden=(8,), learning_starts=10_000, epsilon_steps=1000, buffer_size=5000)
    agent = mad.MultiAdvisor(mad.make("two-goal"), epsilon=0.1, noise=0.5, learner=deep).learn(3000, progress=False)
    memory = agent._learner.replay
    steps = np.flatnonzero((memory.kind[0] == STEP) | (memory.kind[0] == LAST))
    other = memory.action[0, steps] != agent.act(np.array([0]))
    for start, stop, epsilon in ((0, 200, 0.91), (400, 600, 0.55), (1000, 3000, 0.1)):
        assert other[start:stop].mean() == pytest.approx(epsilon * 2 / 3, abs=0.1 if stop < 1000 else 0.02)
    noise = memory.reward[0, steps] - np.stack([memory.action[0, steps] == k for k in (1, 2)], axis=1)
    assert noise.mean() == pytest.approx(0.0, abs=0.03)
    assert noise.std() == pytest.approx(0.5, abs=0.02)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.06


def always(agent, action):
    """An agent that prefers one action everywhere."""
    learner = agent._learner
    last = learner.state.network.last
    bias = np.zeros(last.bias.shape, np.float32)
    bias[..., action] = 1.0
    constant = dataclasses.replace(last, weight=last.weight * 0, bias=bias)
    learner.state = learner.state._replace(network=dataclasses.replace(learner.state.network, last=constant))
    learner._see()
    return agent


def test_evaluations_are_greedy():
    deep = mad.DQN(hidden=(4,), split="none")
    advisors = [mad.Advisor("step", reward=0), mad.Advisor("cost", reward=1)]
    vector = MOSyncVectorEnv([lambda: Counter(vector=True)] * 2)
    for env in (Counter(vector=True), gymnasium.make("tests/Counter-v0", vector=True), vector):
        agent = always(mad.MultiAdvisor(mad.Task.from_gymnasium(env, advisors), epsilon=1.0, learner=deep), 1)
        played = agent.evaluate(8).played
        assert set(played.length) == {3, 5}
        assert played.returns[:, 1].tolist() == (-played.length).tolist()
    task = mad.make("two-goal", r1=2.0, r2=3.0)
    for action, score, steps in ((0, 0.0, 50), (1, 2.0, 1), (2, 3.0, 1)):
        played = always(mad.MultiAdvisor(task, epsilon=1.0, learner=deep), action).evaluate(5).played
        assert played.score.tolist() == [score] * 5
        assert played.length.tolist() == [steps] * 5
        assert played.terminated.tolist() == [int(steps == 1)] * 5


# ---- several runs in one program -------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", ["world", "cart pole"])
def test_a_cohort_is_its_runs_one_by_one(name):
    make, settings, seeds = MAKERS[name][0], Settings(learner=QUICK, noise=0.1), (5, 2)
    cohort = Cohort(make(), settings, seeds).learn(150)
    played = cohort.evaluate(3)
    for run, seed in enumerate(seeds):
        alone = mad.MultiAdvisor(make(), noise=0.1, seed=seed, learner=QUICK).learn(150, progress=False)
        own, parts = alone._learner.tensors(), cohort.tensors_of(run)
        assert own.keys() == parts.keys()
        for key, array in own.items():
            if array.dtype.kind == "f":
                np.testing.assert_allclose(parts[key], array, rtol=1e-3, atol=1e-4, err_msg=key)
            else:
                assert parts[key].tolist() == array.tolist(), key
        # what was taken out of the cohort is an agent by itself
        again = mad.MultiAdvisor(make(), noise=0.1, seed=seed, learner=QUICK)
        again._learner.restore(parts)
        assert again.steps == 150
        assert again.evaluate(3).played.score.tolist() == played[run].score.tolist()
        assert cohort.settings_of(run).seed == seed
        again.learn(20, progress=False)


def test_cohorts_that_cannot_be():
    task, settings = mad.make("two-goal"), Settings(learner=QUICK)
    for seeds in ((), (1, 1), (-1,)):
        with pytest.raises(BadInput, match="seed"):
            Cohort(task, settings, seeds)
    with pytest.raises(BadInput, match="learner=DQN"):
        Cohort(task, Settings(), (0, 1))


# ---- parts of the task, sharing, pictures ----------------------------------------------------------------------------
def test_groups_and_one_for_all_are_paid_the_weighted_sums():
    task = mad.make("pac-boy", weights={"ghosts": 0.5})
    for split, names in (("groups", ("ghosts", "fruits")), ("none", ("reward",))):
        deep = mad.DQN(split=split, hidden=(4,), learning_starts=10_000, n_envs=4)
        agent = mad.MultiAdvisor(task, learner=deep).learn(400, progress=False)
        memory = agent._learner.replay
        assert tuple(advisor.name for advisor in agent.advisors) == names
        values = memory.reward[memory.kind != 0].astype(float)
        assert set(values[:, 0]) <= ({0.0, -5.0, -10.0} if split == "groups" else {0.0, 1.0, -4.0, -5.0, -9.0, -10.0})
        assert -5.0 in values[:, 0]  # a touch, at half its weight
        assert values.max() == 1.0
        assert agent.advice(task.initial_state())[0] == names


@pytest.mark.slow
@pytest.mark.parametrize(("torso", "networks"), [("shared", 1), ("group", 2), ("advisor", 5)])
def test_who_shares_a_torso(torso, networks):
    names, groups = [f"advisor {k}" for k in range(5)], ["a", "b", "a", "b", "a"]
    advisors = [mad.Advisor(name, group=group) for name, group in zip(names, groups, strict=True)]
    deep = dataclasses.replace(QUICK, n_envs=1, torso=torso)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Counter(), advisors), learner=deep).learn(100, progress=False)
    assert agent._learner.state.network.last.weight.shape[1] == networks
    assert agent.advice(np.zeros(3))[1].shape == (5, 2)


@pytest.mark.slow
def test_convolutions_on_a_board():
    deep = dataclasses.replace(QUICK, convolutions=(4,), split="none", clip_rewards=True)
    agent = mad.MultiAdvisor(mad.make("three-fruits"), learner=deep).learn(300, progress=False)
    assert agent._learner.plan.shape == (4, 3, 5)
    state = agent.task.initial_state()
    np.testing.assert_allclose(agent.preferences(state), agent.advice(state)[1][0])
    assert 0 <= agent.act(state) < 4
    assert agent.evaluate(3).episodes == 3


# ---- explanations and traces -----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_trace_holds_the_evaluated_episodes():
    for make, envs in MAKERS.values():
        agent = mad.MultiAdvisor(make(), learner=dataclasses.replace(QUICK, n_envs=envs)).learn(200, progress=False)
        before = bytes_of(agent)
        evaluation, trace = record_evaluation(agent, 3, 5)
        again = agent.evaluate(3, seeds=(5,))
        assert evaluation.played.score.tolist() == again.played.score.tolist()
        assert evaluation.played.length.tolist() == again.played.length.tolist()
        replay(trace, agent.task)
        assert bytes_of(agent) == before


def test_an_explanation_sums_up_to_the_difference_of_the_preferences():
    agent = mad.MultiAdvisor(mad.make("three-fruits"), learner=QUICK).learn(200, progress=False)
    state = agent.task.initial_state()
    told, preferences = agent.explain(state), np.sort(agent.preferences(state))
    assert told.action == agent.task.actions[agent.act(state)]
    np.testing.assert_allclose(told.advantage, preferences[-1] - preferences[-2], rtol=1e-6)
    assert told.names == agent.advice(state)[0]
    np.testing.assert_array_equal(told.advice, agent.advice(state)[1])


@pytest.mark.parametrize("split", ["groups", "none"])
@pytest.mark.parametrize("planning", ["egocentric", "empathic"])
@pytest.mark.parametrize("name", ["pac-boy", "two-goal"])
def test_explanations_where_the_network_has_other_advisors_than_the_task(split, planning, name):
    """Whether a state is an attractor cannot be known then, and is not told."""
    deep = mad.DQN(split=split, hidden=(8,))
    agent = mad.MultiAdvisor(mad.make(name), planning=planning, learner=deep)
    state = agent.task.initial_state()
    told = agent.explain(state)
    assert told.attractor is None
    assert told.names == agent.advice(state)[0]
    evaluation, trace = record_evaluation(agent, 2, 0)
    assert evaluation.played.score.tolist() == agent.evaluate(2).played.score.tolist()
    replay(trace, agent.task)


# ---- what goes wrong -------------------------------------------------------------------------------------------------
def spoiled(what, registered=True):
    advisors = [mad.Advisor("steady", reward=0), mad.Advisor("shaky", reward=1)]
    env = gymnasium.make("tests/Spoiled-v0", what=what, step=100) if registered else Spoiled(what, 100)
    return mad.Task.from_gymnasium(env, advisors, name="spoiled")


def mended(what, registered):
    """The same environment, whose code was corrected since."""
    task = spoiled(what, registered)
    task.adapter.env.unwrapped.what = "nothing"
    return task


SINGLE = dataclasses.replace(QUICK, n_envs=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "message"),
    [("observation", "the loss of advisor 'steady' is no longer finite"), ("reward", "advisor 'shaky' is not finite"),
     ("shape", r"the shape \(3,\) was given where \(2,\) is expected")],
)  # fmt: skip
@pytest.mark.parametrize("registered", [True, False])
def test_training_stops_and_the_last_good_checkpoint_stays(what, message, registered, tmp_path):
    out = tmp_path / "a"
    task, settings = spoiled(what, registered), Settings(learner=SINGLE)
    training.begin(task, settings, Schedule(90, 45, 0), out, False).run()
    good = bytes_of(mad.load(out, mended(what, registered)))
    run = training.begin(task, settings, Schedule(900, 45, 0), out, True)
    with pytest.raises(BadInput, match=message) as caught:
        run.run()
    assert len(str(caught.value).splitlines()) == 1
    agent = mad.load(out, mended(what, registered))
    if what == "shape":
        # nothing had diverged: the run is saved as it was before the step that failed
        assert agent.steps == 99
    else:
        assert bytes_of(agent) == good
    agent.learn(300, progress=False)  # in an environment that was mended
    rows = agent._learner.replay
    for row in np.flatnonzero(rows.kind[0] == 1):
        assert rows.observations[0, row + 1, 0] - rows.observations[0, row, 0] == pytest.approx(1 / 20, abs=1e-6)


@pytest.mark.slow
def test_an_overflow_names_the_advisor_and_is_never_saved(tmp_path):
    deep = mad.DQN(
        hidden=(8,), learning_starts=16, batch_size=16, learning_rate=1.0, loss="squared", clip_norm=0.0, train_freq=1,
        double=False, target_update_interval=1,
    )  # fmt: skip
    agent = mad.MultiAdvisor(spoiled("nothing"), gamma=1.0, learner=deep).learn(8, progress=False)
    network = agent._learner.state.network
    huge = dataclasses.replace(network.last, weight=network.last.weight * 1e30)
    agent._learner.state = agent._learner.state._replace(network=dataclasses.replace(network, last=huge))
    with pytest.raises(Diverged, match=r"the loss of advisor 'steady' is no longer finite \(seed 0, \d+ steps\)"):
        agent.learn(400, progress=False)
    with pytest.raises(Diverged, match="the networks are no longer finite: they were not saved"):
        agent.save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
@pytest.mark.parametrize("convolutions", [(), (4,)])
def test_after_an_overflow_the_agent_can_still_be_asked(convolutions):
    deep = dataclasses.replace(QUICK, convolutions=convolutions, split="none")
    agent = mad.MultiAdvisor(mad.make("three-fruits"), learner=deep).learn(100, progress=False)
    leaves = agent._learner.state.network
    spoiled_network = dataclasses.replace(leaves, last=dataclasses.replace(leaves.last, bias=leaves.last.bias * np.inf))
    agent._learner.state = agent._learner.state._replace(network=spoiled_network)
    with pytest.raises(Diverged):
        agent.learn(100, progress=False)
    assert not np.isfinite(agent.preferences(agent.task.initial_state())).all()


def test_wrong_questions():
    agent = mad.MultiAdvisor(mad.make("CartPole-v1"), learner=SINGLE)
    for wrong in (np.zeros(3), np.zeros((1, 4)), 0.5):
        with pytest.raises(BadInput, match="is expected"):
            agent.act(wrong)
    with pytest.raises(BadInput, match="no table of values"):
        agent.values(0)
    board = mad.MultiAdvisor(mad.make("three-fruits"), learner=SINGLE)
    for wrong in (np.zeros(4), np.array([0, 1]), np.array([99, 1, 1, 1])):
        with pytest.raises(BadInput, match="state of 'three-fruits'"):
            board.act(wrong)
    with pytest.raises(BadInput, match="cannot be made 2 times"):
        mad.MultiAdvisor(own_counter(), learner=QUICK)
    with pytest.raises(BadInput, match="convolutions need images"):
        mad.MultiAdvisor(mad.make("two-goal"), learner=dataclasses.replace(SINGLE, convolutions=(4,)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"split": "all"}, "unknown split"),
        ({"torso": "own"}, "unknown torso"),
        ({"loss": "l1"}, "unknown loss"),
        ({"hidden": 64}, "hidden is 64"),
        ({"hidden": (0,)}, "hidden is 0"),
        ({"hidden": (2.5,)}, "hidden is 2.5"),
        ({"strides": (1,)}, "1 strides for 0 convolutions"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"n_step": 0}, "n_step is 0"),
        ({"batch_size": 100, "buffer_size": 99}, "holds no batch"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"learning_rate": 1.5}, "between 0 and 1"),
        ({"clip_norm": -1.0}, "clip_norm is -1"),
        ({"epsilon_start": 2}, "epsilon_start is 2"),
        ({"target_update_interval": 0}, "target_update_interval is 0"),
        ({"n_envs": 0}, "envs is 0"),
        ({"learning_starts": -1}, "starts is -1"),
        ({"double": 1}, "double is 1"),
    ],
)
def test_settings_that_cannot_be(wrong, message):
    with pytest.raises(BadInput, match=message):
        mad.DQN(**wrong)


def test_deep_settings_take_their_place():
    assert Settings(learner=dataclasses.asdict(QUICK)) == Settings(learner=QUICK)


class Odd(gymnasium.Env):
    """Pays what it is told to, from some step on."""

    observation_space, action_space = spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(2)

    def __init__(self, pay, at):
        self.pay, self.left, self.elapsed = pay, at, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.elapsed = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.left, self.elapsed = self.left - 1, self.elapsed + 1
        reward = 1.0 if self.left > 0 else self.pay
        whole = np.zeros(3, np.float32), reward, self.elapsed == 5, False, {}
        return whole[:4] if isinstance(reward, str) and reward == "four" else whole


def small(env, **settings):
    deep = mad.DQN(hidden=(4,), learning_starts=20, batch_size=8, buffer_size=100)
    return mad.MultiAdvisor(mad.Task.from_gymnasium(env, **settings), learner=deep)


@pytest.mark.parametrize(
    ("pay", "words"),
    [
        ("x", "reward of the environment is 'x'"),
        (None, r"is None|not finite"),
        (np.ones(2), "is array"),
        ("four", "gave 4 values"),
    ],
)
def test_a_reward_that_is_no_number_is_told_in_one_line(pay, words):
    with pytest.raises(mad.BadInput, match=words):
        small(Odd(pay, 30)).learn(60, progress=False)
    tables = mad.Task.from_gymnasium(Odd(pay, 30), discretise=lambda observation: 0)
    with pytest.raises(mad.BadInput, match=words):
        mad.MultiAdvisor(tables).learn(60, progress=False)


def test_the_reward_function_of_an_advisor_is_named():
    advisors = [mad.Advisor("good"), mad.Advisor("odd", reward=lambda step: "x")]
    with pytest.raises(mad.BadInput, match="reward of advisor 'odd' is 'x'"):
        small(Odd(1.0, 30), advisors=advisors).learn(10, progress=False)


@pytest.mark.slow
def test_a_reward_that_is_not_finite_in_an_evaluation_keeps_the_evaluations_before(tmp_path):
    env = Odd(math.nan, 1_000)
    task = mad.Task.from_gymnasium(env)
    deep = mad.DQN(hidden=(4,), learning_starts=20, batch_size=8, buffer_size=100)
    run = training.begin(task, mad.Settings(learner=deep), Schedule(150, 50, 4), tmp_path / "a", False)
    with pytest.raises(mad.BadInput, match="reward of advisor 'reward' is not finite"):
        run.run(lambda steps, evaluation: setattr(env, "left", 110) if evaluation else None)
    with pytest.raises(mad.BadInput, match="reward of advisor 'reward' is not finite"):
        run.agent.evaluate(2)
    agent, record = load_with_record(tmp_path / "a", task)
    assert len(record["evaluations"]) == 1
    assert agent.steps == 100


def test_a_network_that_diverges_has_saved_its_first_evaluation(tmp_path):
    env = Odd(math.nan, 1_000)
    task = mad.Task.from_gymnasium(env)
    deep = mad.DQN(hidden=(4,), learning_starts=20, batch_size=8, buffer_size=100)
    run = training.begin(task, mad.Settings(learner=deep), Schedule(150, 50, 4), tmp_path / "a", False)
    with pytest.raises(Diverged):
        run.run(lambda steps, evaluation: setattr(env, "left", 10) if evaluation else None)
    assert load_with_record(tmp_path / "a", task)[0].steps == 50


def test_observations_that_are_no_numbers_are_told():
    agent = small(Odd(1.0, 30))
    for odd in (["a", "b", "c"], [[1], [2, 3]], None):
        with pytest.raises(mad.BadInput, match="observation"):
            agent.act(odd)


def test_an_evaluation_of_a_vector_environment_that_fails_leaves_episodes_that_go_on():
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    deep = mad.DQN(hidden=(4,), learning_starts=20, batch_size=8, buffer_size=200)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(envs), learner=deep).learn(40, progress=False)
    learner = agent._learner
    step, learner.env.env = envs.step, envs
    envs.step = lambda actions: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        agent.evaluate(2)
    envs.step = step
    assert np.array_equal(learner.current, np.stack([env.unwrapped.state for env in envs.envs]).astype(np.float32))
    memory = learner.replay
    heads = memory.clock[:, 0]
    assert np.array_equal(memory.observations[np.arange(2), heads], learner.current)
