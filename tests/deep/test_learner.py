"""The deep learner: exact values on small tasks, the same bytes for the same seed, and nothing lost on the way."""

import dataclasses
import math

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from mo_gymnasium.wrappers.vector import MOSyncVectorEnv
from toy_envs import Counter, Flaky, Spoiled

import multiadvisor as mad
from agents import bytes_of, remembered
from multiadvisor.agent import load_with_record
from multiadvisor.analysis.theory import enumerate_task, solve
from multiadvisor.errors import Diverged
from multiadvisor.learners.dqn.dqn_learner import Cohort
from multiadvisor.runs import training
from multiadvisor.runs.trace import record_evaluation, replay
from multiadvisor.settings import Schedule, Settings
from refusal import refused

pytestmark = pytest.mark.slow

# Without hidden layers a one-hot state is looked up in a table, so that the fixed point can be met exactly.
TABLE = mad.DQN(
    hidden=(), loss="squared", learning_rate=0.02, target_update_interval=25, train_freq=1, learning_starts=200,
    epsilon_start=1.0, n_envs=8, buffer_size=4000,
)  # fmt: skip


def farthest(task, planning, steps, gamma=0.8, **how):
    """The largest difference between the advice learned from random play and the exact values of the advisors."""
    deep = dataclasses.replace(TABLE, **how)
    agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, epsilon=1.0, learner=deep).learn(steps)
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


def bridge():
    """Advisors that disagree: with rewards of both signs, the three plannings differ in every state."""
    return mad.make("bridge", length=2)


def feared():
    """A negative weight turns an advisor against its own reward."""
    return mad.make("dollars-and-euros", failure=0.0, weights={"euros": -1.0})


SEVERAL = {"learning_rate": 0.002, "batch_size": 64, "buffer_size": 20_000, "n_step": 3}


@pytest.mark.parametrize(("make", "planning", "steps", "most", "how"), [
    (uneven, "egocentric", 3000, 1e-3, {}), (uneven, "egocentric", 3000, 1e-3, {"double": True}),
    (uneven, "empathic", 3000, 1e-3, {}), (uneven, "empathic", 3000, 1e-3, {"double": True}),
    (uneven, "agnostic", 3000, 1e-3, {}),  # who chooses nothing, so that `double` changes nothing
    (bridge, "egocentric", 2000, 0.01, {}), (bridge, "agnostic", 2000, 0.01, {}), (bridge, "empathic", 2000, 0.01, {}),
    (feared, "egocentric", 1500, 1e-3, {}), (feared, "empathic", 1500, 1e-3, {}),
    (bridge, "agnostic", 16_000, 0.06, SEVERAL),  # exact, as play is random and that is what is planned for
    (bridge, "empathic", 5000, 0.05, {"hidden": (32,), "learning_rate": 0.003}),
])  # fmt: skip
def test_values_meet_the_exact_fixed_point(make, planning, steps, most, how):
    assert farthest(make(), planning, steps, **how) < most


def test_one_advisor_for_all_learns_the_optimum():
    """Split none is DQN: its one advisor's values are those of the optimal policy of the weighted reward."""
    task = mad.make("resource-scheduling", jobs=2, work=2, weights={"job 1": 2.0})
    deep = dataclasses.replace(TABLE, split="none")
    agent = mad.MultiAdvisor(task, gamma=0.8, epsilon=1.0, learner=deep).learn(3000)
    best, _ = mad.theory.optimum(enumerate_task(task, full=True), 0.8)
    start = int(task.initial_state()[0])
    assert agent.advisors[0].name == "reward"
    np.testing.assert_allclose(agent.preferences(np.array([start])), best[start], atol=1e-3)


# ---- the same seed, the same bytes -----------------------------------------------------------------------------------
QUICK = mad.DQN(
    hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2, updates_at_once=4, n_envs=2,
    target_update_interval=10, epsilon_steps=300, n_step=2,
)  # fmt: skip


def own_counter():
    return mad.Task.from_gymnasium(Counter(), name="own counter")


MAKERS = {
    "world": (lambda: mad.make("three-fruits"), 2), "cart pole": (lambda: mad.make("CartPole-v1"), 2),
    "own environment": (own_counter, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_twice_in_pieces_evaluated_and_taken_up_again(name, tmp_path):
    make, envs = MAKERS[name]
    deep = dataclasses.replace(QUICK, n_envs=envs)

    def agent(seed=3):
        return mad.MultiAdvisor(make(), noise=0.1, seed=seed, learner=deep)

    whole = agent()
    whole.learn(900)
    pieces = agent()
    pieces.evaluate(2)  # before anything was learned
    for steps in (10, 290, 2, 298):
        pieces.learn(steps)
        pieces.evaluate(2)
    pieces.save(tmp_path / "a")
    loaded = mad.load(tmp_path / "a", None if name != "own environment" else make())
    assert bytes_of(loaded) == bytes_of(pieces)
    assert loaded.evaluate(3).played.score.tolist() == pieces.evaluate(3).played.score.tolist()
    for one in (pieces, loaded):
        assert bytes_of(one.learn(300)) == bytes_of(whole)
    assert bytes_of(agent(seed=4).learn(300))["network 000"] != bytes_of(whole)["network 000"]


@pytest.mark.parametrize("fails_in", [150, 151])
def test_a_step_that_failed_is_no_part_of_the_run(fails_in, tmp_path):
    """The first or the second of two episodes raises an exception: learning goes on as if it had not, saved or not."""
    task = mad.make("tests/Flaky-v0")
    whole = bytes_of(mad.MultiAdvisor(task, learner=QUICK).learn(300))
    agent = mad.MultiAdvisor(task, learner=QUICK)
    Flaky.fails_in = fails_in
    with pytest.raises(RuntimeError, match="the line was down"):
        agent.learn(300)
    assert agent.steps == 2 * ((fails_in - 1) // 2)
    agent.save(tmp_path / "a")
    for one in (agent, mad.load(tmp_path / "a")):
        assert bytes_of(one.learn(300 - one.steps)) == whole


def test_evaluations_shorter_than_a_round_of_episodes():
    run = training.begin(
        mad.make("two-goal"), Settings(learner=dataclasses.replace(QUICK, n_envs=16)), Schedule(40, 10, 1), None, False
    ).run()
    assert [evaluation["steps"] for evaluation in run.evaluations] == [16, 32, 32, 48]
    assert run.agent.steps == 48


def test_exploration_falls_and_stays():
    """Nothing is learned here, so that the greedy action of the only state never changes."""
    deep = mad.DQN(hidden=(8,), learning_starts=10_000, epsilon_steps=1000, buffer_size=5000)
    agent = mad.MultiAdvisor(mad.make("two-goal"), epsilon=0.1, noise=0.5, learner=deep).learn(3000)
    seen = remembered(agent)
    other = seen.action != agent.act(np.array([0]))
    for start, stop, epsilon in ((0, 200, 0.91), (400, 600, 0.55), (1000, 3000, 0.1)):
        assert other[start:stop].mean() == pytest.approx(epsilon * 2 / 3, abs=0.1 if stop < 1000 else 0.02)
    noise = seen.reward - np.stack([seen.action == k for k in (1, 2)], axis=1)
    assert noise.mean() == pytest.approx(0.0, abs=0.03)
    assert noise.std() == pytest.approx(0.5, abs=0.02)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.06


def with_network(state, network):
    return state._replace(learned=state.learned._replace(networks=network))


def always(agent, action):
    """An agent that prefers one action everywhere."""
    learner = agent._learner
    last = learner.state.network.last
    bias = np.zeros(last.bias.shape, np.float32)
    bias[..., action] = 1.0
    constant = last._replace(weight=last.weight * 0, bias=bias)
    learner.state = with_network(learner.state, dataclasses.replace(learner.state.network, last=constant))
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
@pytest.mark.parametrize("name", ["world", "cart pole"])
def test_a_cohort_is_its_runs_one_by_one(name):
    make, settings, seeds = MAKERS[name][0], Settings(learner=QUICK, noise=0.1), (5, 2)
    cohort = Cohort(make(), settings, seeds).learn(110)
    played = cohort.evaluate(3)
    for run, seed in enumerate(seeds):
        alone = mad.MultiAdvisor(make(), noise=0.1, seed=seed, learner=QUICK).learn(110)
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
        assert again.steps == 110
        assert again.evaluate(3).played.score.tolist() == played[run].score.tolist()
        assert cohort.settings_of(run).seed == seed
        again.learn(20)


def test_cohorts_that_cannot_be():
    task, settings = mad.make("two-goal"), Settings(learner=QUICK)
    for seeds in ((), (1, 1), (-1,)):
        refused("seed", Cohort, task, settings, seeds)
    refused("learner=DQN", Cohort, task, Settings(), (0, 1))


# ---- parts of the task, sharing, pictures ----------------------------------------------------------------------------
def test_groups_and_one_for_all_are_paid_the_weighted_sums():
    task = mad.make("pac-boy", weights={"ghosts": 0.5})
    for split, names in (("groups", ("ghosts", "fruits")), ("none", ("reward",))):
        deep = mad.DQN(split=split, hidden=(4,), learning_starts=10_000, n_envs=4)
        agent = mad.MultiAdvisor(task, learner=deep).learn(400)
        assert tuple(advisor.name for advisor in agent.advisors) == names
        values = remembered(agent).reward.astype(float)
        assert set(values[:, 0]) <= ({0.0, -5.0, -10.0} if split == "groups" else {0.0, 1.0, -4.0, -5.0, -9.0, -10.0})
        assert -5.0 in values[:, 0]  # a touch, at half its weight
        assert values.max() == 1.0
        assert agent.advice(task.initial_state())[0] == names


@pytest.mark.parametrize(("torso", "networks"), [("shared", 1), ("group", 2), ("advisor", 5)])
def test_who_shares_a_torso(torso, networks):
    names, groups = [f"advisor {k}" for k in range(5)], ["a", "b", "a", "b", "a"]
    advisors = [mad.Advisor(name, group=group) for name, group in zip(names, groups, strict=True)]
    deep = dataclasses.replace(QUICK, n_envs=1, torso=torso)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Counter(), advisors), learner=deep).learn(100)
    assert agent._learner.state.network.last.weight.shape[1] == networks
    assert agent.advice(np.zeros(3))[1].shape == (5, 2)


def test_convolutions_on_a_board():
    deep = dataclasses.replace(QUICK, convolutions=(4,), split="none", clip_rewards=True)
    agent = mad.MultiAdvisor(mad.make("three-fruits"), learner=deep).learn(300)
    assert agent._learner.plan.shape == (4, 3, 5)
    state = agent.task.initial_state()
    np.testing.assert_allclose(agent.preferences(state), agent.advice(state)[1][0])
    assert 0 <= agent.act(state) < 4
    assert agent.evaluate(3).episodes == 3


# ---- explanations and traces -----------------------------------------------------------------------------------------
def test_an_explanation_sums_up_to_the_difference_of_the_preferences():
    agent = mad.MultiAdvisor(mad.make("three-fruits"), learner=QUICK).learn(200)
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
def spoiled(what):
    """In an environment of one's own; those that are registered are in `test_deep_command`."""
    advisors = [mad.Advisor("steady", reward=0), mad.Advisor("shaky", reward=1)]
    return mad.Task.from_gymnasium(Spoiled(what, 100), advisors, name="spoiled")


def mended(what):
    """The same environment, whose code was corrected since."""
    task = spoiled(what)
    task.adapter.env.what = "nothing"
    return task


SINGLE = dataclasses.replace(QUICK, n_envs=1)


@pytest.mark.parametrize(
    ("what", "message"),
    [("observation", "has a number that is not finite"), ("reward", "advisor 'shaky' is not finite"),
     ("shape", r"the shape \(3,\) was given where \(2,\) is expected")],
)  # fmt: skip
def test_training_stops_and_the_last_good_checkpoint_stays(what, message, tmp_path):
    out = tmp_path / "a"
    task, settings = spoiled(what), Settings(learner=SINGLE)
    training.begin(task, settings, Schedule(90, 45, 0), out, False).run()
    good = bytes_of(mad.load(out, mended(what)))
    run = training.begin(task, settings, Schedule(900, 45, 0), out, True)
    refused(message, run.run)
    agent = mad.load(out, mended(what))
    if what != "reward":
        # nothing had diverged: the run is saved as it was before the step that failed
        assert agent.steps == 99
    else:
        assert bytes_of(agent) == good
    agent.learn(300)  # in an environment that was mended
    seen = remembered(agent)
    np.testing.assert_allclose(seen.next_observation[:, 0] - seen.observation[:, 0], 1 / 20, atol=1e-6)


def test_an_overflow_names_the_advisor_and_is_never_saved(tmp_path):
    deep = mad.DQN(
        hidden=(8,), learning_starts=16, batch_size=16, learning_rate=1.0, loss="squared", clip_norm=0.0, train_freq=1,
        double=False, target_update_interval=1,
    )  # fmt: skip
    agent = mad.MultiAdvisor(spoiled("nothing"), gamma=1.0, learner=deep).learn(8)
    network = agent._learner.state.network
    huge = network.last._replace(weight=network.last.weight * 1e30)
    agent._learner.state = with_network(agent._learner.state, dataclasses.replace(network, last=huge))
    with pytest.raises(Diverged, match=r"the loss of advisor 'steady' is no longer finite \(seed 0, \d+ steps\)"):
        agent.learn(400)
    with pytest.raises(Diverged, match="the networks are no longer finite: they were not saved"):
        agent.save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("convolutions", [(), (4,)])
def test_after_an_overflow_the_agent_can_still_be_asked(convolutions):
    deep = dataclasses.replace(QUICK, convolutions=convolutions, split="none")
    agent = mad.MultiAdvisor(mad.make("three-fruits"), learner=deep).learn(100)
    leaves = agent._learner.state.network
    spoiled_network = dataclasses.replace(leaves, last=leaves.last._replace(bias=leaves.last.bias * np.inf))
    agent._learner.state = with_network(agent._learner.state, spoiled_network)
    with pytest.raises(Diverged):
        agent.learn(100)
    assert not np.isfinite(agent.preferences(agent.task.initial_state())).all()


def test_wrong_questions():
    agent = mad.MultiAdvisor(mad.make("CartPole-v1"), learner=SINGLE)
    for wrong in (np.zeros(3), np.zeros((1, 4)), 0.5):
        refused("is expected", agent.act, wrong)
    refused("no table of values", agent.values, 0)
    board = mad.MultiAdvisor(mad.make("three-fruits"), learner=SINGLE)
    for wrong in (np.zeros(4), np.array([0, 1]), np.array([99, 1, 1, 1])):
        refused("state of 'three-fruits'", board.act, wrong)
    refused("cannot be made 2 times", mad.MultiAdvisor, own_counter(), learner=QUICK)
    images = dataclasses.replace(SINGLE, convolutions=(4,))
    refused("convolutions need images", mad.MultiAdvisor, mad.make("two-goal"), learner=images)


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
        ({"random_start": 1}, "give true or false"),
        ({"lr_schedule": "lineer"}, "linear"),
        ({"lr_schedule": "exponential"}, "lr_end is 0"),
        ({"lr_steps": -1}, "lr_steps is -1"),
        ({"epsilon_schedule": "exponential", "epsilon_start": 0.0}, "epsilon_start is 0"),
    ],
)
def test_settings_that_cannot_be(wrong, message):
    refused(message, mad.DQN, **wrong)


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
    refused(words, lambda: small(Odd(pay, 30)).learn(60))
    tables = mad.Task.from_gymnasium(Odd(pay, 30), discretise=lambda observation: 0)
    refused(words, lambda: mad.MultiAdvisor(tables).learn(60))


def test_the_reward_function_of_an_advisor_is_named():
    advisors = [mad.Advisor("good"), mad.Advisor("odd", reward=lambda step: "x")]
    refused("reward of advisor 'odd' is 'x'", lambda: small(Odd(1.0, 30), advisors=advisors).learn(10))


@pytest.mark.parametrize(
    ("left", "error", "learned"),
    [(110, mad.BadInput, 100), (10, Diverged, 50)],
    ids=["in an evaluation", "while learning"],
)
def test_a_reward_that_is_not_finite_keeps_the_evaluations_before(left, error, learned, tmp_path):
    env = Odd(math.nan, 1_000)
    task = mad.Task.from_gymnasium(env)
    deep = mad.DQN(hidden=(4,), learning_starts=20, batch_size=8, buffer_size=100)
    run = training.begin(task, mad.Settings(learner=deep), Schedule(150, 50, 4), tmp_path / "a", False)
    with pytest.raises(error, match="reward of advisor 'reward' is not finite"):
        run.run(lambda now: setattr(env, "left", left) if now.evaluation else None)
    refused("reward of advisor 'reward' is not finite", run.agent.evaluate, 2)
    agent, record = load_with_record(tmp_path / "a", task)
    assert (agent.steps, len(record["evaluations"])) == (learned, 1)


def test_observations_that_are_no_numbers_are_told():
    agent = small(Odd(1.0, 30))
    for odd in (["a", "b", "c"], [[1], [2, 3]], None):
        refused("observation", agent.act, odd)


def test_an_evaluation_of_a_vector_environment_that_fails_leaves_episodes_that_go_on():
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    deep = mad.DQN(hidden=(4,), learning_starts=20, batch_size=8, buffer_size=200)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(envs), learner=deep).learn(40)
    learner = agent._learner
    step, learner.env.env = envs.step, envs
    envs.step = lambda actions: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        agent.evaluate(2)
    envs.step = step
    assert np.array_equal(learner.current, np.stack([env.unwrapped.state for env in envs.envs]).astype(np.float32))
    memory = learner.memory
    heads = memory.clock[:, 0]
    assert np.array_equal(memory.observations[np.arange(2), heads], learner.current)
