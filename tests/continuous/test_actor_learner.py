"""An actor and its critics: what is learned, kept, explained, reweighted and refused."""

import json

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from point import Point

import multiadvisor as mad
from agents import in_pieces, remembered, same
from multiadvisor.analysis.episodes import record
from multiadvisor.cli import main
from multiadvisor.learners.sac.actor_critic import forward
from multiadvisor.learners.sac.sac_learner import ContinuousLearner
from refusal import refused

pytestmark = pytest.mark.slow

SMALL = {
    "hidden": (32, 32), "batch_size": 64, "learning_starts": 100, "buffer_size": 4_000, "learning_rate": 3e-3,
    "updates_at_once": 4,
}  # fmt: skip
PLAYS = {**SMALL, "learning_starts": 10_000}  # and updates nothing
SEEN = np.array([0.5])


def task(env="tests/Point-v0", advisors="info:reward_*", **how):
    return mad.Task.from_gymnasium(env, advisors, **how)


def agent(given=None, critics="separate", **how):
    own = {**SMALL, **how.pop("own", {}), "critics": critics}
    return mad.MultiAdvisor(given or task(), gamma=0.5, seed=how.pop("seed", 0), learner=mad.SAC(**own), **how)


@pytest.fixture(scope="module")
def trained():
    return {critics: agent(critics=critics).learn(1_200) for critics in ("separate", "shared", "one")}


# ---- what is learned -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("critics", ["separate", "shared", "one"])
def test_the_best_action_is_found(trained, critics):
    """It is x / 2: half way between what is near and what is cheap."""
    for x in (-0.8, -0.2, 0.5):
        assert trained[critics].act(np.array([x])) == pytest.approx(x / 2, abs=0.15)


def test_the_critic_beside_costs_nothing_in_control(trained):
    """Bit for bit the actor of plain soft actor-critic."""
    beside, one = trained["separate"]._learner, trained["one"]._learner
    for mine, theirs in zip(beside.actor, one.actor, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("critics", ["separate", "shared"])
def test_advisors_value_what_is_paid_to_them(trained, critics):
    """At x = .5 the action .9 is paid -.16 and -.81, the action 0 -.25 and 0; what follows does not depend on it."""
    names, advice = trained[critics].advice(SEEN, [[0.9], [0.0]])
    assert names == ("near", "cheap")
    near, cheap = advice[:, 0] - advice[:, 1]
    assert near == pytest.approx(0.09, abs=0.2)
    assert cheap == pytest.approx(-0.81, abs=0.2)
    told = trained[critics].explain(SEEN, against=[2.0])
    assert abs(told.push.gap) < 0.4
    assert trained[critics].preferences(SEEN)[0] == pytest.approx(told.push.control)


@pytest.mark.parametrize("critics", ["separate", "shared", "one"])
@pytest.mark.parametrize("weight", [-3.0, 2.0])
def test_the_advice_of_a_single_advisor_is_before_its_weight(critics, weight):
    given = task(advisors=[mad.Advisor("near", reward="info:reward_near", weight=weight)])
    mine = agent(given, critics, own={"learning_rate": 1e-3})
    learner, action = mine._learner, np.array([[1.0]])
    names, advice = mine.advice(SEEN, action)
    weighted = learner.judge(SEEN, learner.actions.from_environment(action[0], "")[None])
    assert names == ("near",)
    if critics != "shared":  # where the critic says it of the entropy, too
        assert weight * advice[0, 0] == pytest.approx(weighted.control[0], rel=1e-5)
    assert weighted.weights.tolist() == [weight]
    told = mine.explain(SEEN, action[0])
    assert told.values["near"] == pytest.approx(weight * advice[0, 0])
    entropy = [1.0] * learner.tells_entropy
    assert (record(mine, 1).applied == [weight, *entropy]).all(), "it is heard with its own weight"


def test_a_single_advisor_with_a_negative_weight_values_its_own_reward():
    """Far from x is best: -(2 + x)^2 at x > 0, and never above 0 whatever the weight."""
    given = task(advisors=[mad.Advisor("near", reward="info:reward_near", weight=-3.0)])
    mine = mad.MultiAdvisor(given, gamma=0.0, learner=mad.SAC(**SMALL)).learn(1_200)
    assert mine.advice(SEEN, [[-2.0], [0.5]])[1][0] == pytest.approx([-6.25, 0.0], abs=0.5)


def test_the_only_advisor_needs_a_weight():
    given = task(advisors=[mad.Advisor("near", reward="info:reward_near")])
    refused("advisor 'near' is the only one, and its weight is 0", agent, given.with_weights(near=0.0))
    mine = agent(given)
    refused("its weight is 0: give it another weight", mine.reweight, near=0.0)
    assert mine.task.weights.tolist() == mine._learner.task.weights.tolist() == [1.0]


def test_an_explanation_adds_up_and_says_it_in_words(trained):
    told = trained["shared"].explain(SEEN, against=[2.0])
    assert sum(told.differences.values()) == pytest.approx(told.advantage)
    assert told.advantage > 0
    rather = f"chooses ({told.numbers[0][0]:.2f}) rather than (2.00), as its networks expect: cheap"
    assert told.sentence.startswith(rather)
    assert sum(told.push.shares.values()) == pytest.approx(1.0)
    assert told.push.gap == pytest.approx(0.0, abs=1e-5)
    worse = trained["shared"].explain(SEEN, action=[2.0], against=[0.25])
    assert worse.sentence.startswith("(2.00) would be worse than (0.25), as its networks expect: cheap")
    assert json.loads(json.dumps(told.as_dict()))["msx_plus"][0] == "cheap"
    assert "of all pushing is left" in str(told)
    # near at the optimum pushes to the right and cheap to the left, so that hardly anything is left
    near, cheap = trained["shared"].explain(SEEN).push.slopes[:, 0]
    assert near > 0 > cheap


def test_where_the_actor_follows_one_critic_nobody_is_told_apart(trained):
    assert trained["one"].advice(SEEN)[0] == ("reward",)
    assert [advisor.name for advisor in trained["one"].advisors] == ["reward"]
    single = agent(task(advisors=None), own=PLAYS).learn(20)
    assert single.advice(SEEN)[0] == ("reward",)
    assert single._learner.critics == "one"


# ---- the run ---------------------------------------------------------------------------------------------------------
def test_a_run_is_the_same_however_it_is_cut_and_goes_on_from_a_checkpoint(trained, tmp_path):
    cut = in_pieces(agent(), None, tmp_path, 351, 250, 599, evaluated=True)
    assert same(cut, trained["separate"])
    assert cut.episodes == trained["separate"].episodes > 100
    assert cut.evaluate(3).score == trained["separate"].evaluate(3).score


def test_several_runs_in_one_program_are_the_single_ones():
    single = agent(critics="one", own={"hidden": (8,)}).learn(300)
    learner, alone = ContinuousLearner(task(), single.settings, seeds=(7, 0)), single._learner
    learner.run(300)
    for mine, theirs in zip(learner.actor, alone.actor, strict=True):
        assert all(np.allclose(a[1], b[0], atol=1e-4) for a, b in zip(mine, theirs, strict=True))
    assert len(learner.evaluate_all(2, 0)) == 2


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environments_bring_their_last_steps(mode):
    env = SyncVectorEnv([Point for _ in range(3)], autoreset_mode=mode)
    mine = agent(task(env), own=PLAYS).learn(200)
    rows = remembered(mine)
    action, x = 2.0 * rows.action[:, 0], rows.observation[:, 0]
    assert np.allclose(rows.reward[:, 0], -((action - x) ** 2), atol=1e-5)
    assert np.allclose(rows.reward[:, 1], -(action**2), atol=1e-5)
    assert 0 < rows.terminated.sum() < mine.episodes
    assert set(mine.play(6).length.tolist()) <= {5, 8}


def test_episodes_side_by_side_and_the_next_observation_from_before_the_reset():
    mine = agent(own={**PLAYS, "n_envs": 2}).learn(101)
    assert mine.steps == 102
    rows = remembered(mine)  # every other one is the first episode's
    follows = np.isclose(rows.next_observation[:-2:2, 0], rows.observation[2::2, 0])
    assert (~follows).sum() == mine._learner.tally[0, 1]  # only where an episode was over does something else follow


def test_transitions_of_others_are_learned_from_and_actions_are_the_environments_own():
    mine, env = agent(), Point()
    seen, _ = env.reset(seed=0)
    for _ in range(110):
        action = mine.act(seen, explore=True)
        assert env.action_space.contains(action)
        after, reward, terminated, truncated, info = env.step(action)
        mine.observe(seen, action, reward, after, terminated, truncated, info)
        seen = env.reset()[0] if terminated or truncated else after
    assert (mine.steps, mine._learner.updates) == (110, 8)
    rows = remembered(mine)
    assert np.allclose(rows.reward[:, 1], -((2.0 * rows.action[:, 0]) ** 2), atol=1e-5)


def test_per_advisor_gamma_activity_and_end_are_for_the_advisors_critic():
    advisors = [
        mad.Advisor("near", reward="info:reward_near", gamma=0.0, active=lambda seen: seen[0] > 0),
        mad.Advisor("cheap", reward="info:reward_cheap", ended=lambda t: t.next_observation[0] > 0),
    ]
    refused("advisor 'near' has its own gamma or end", agent, task(Point(), advisors))
    shared = agent(task(Point(), advisors), critics="shared", own=PLAYS).learn(50)
    rows = remembered(shared)
    assert (rows.active[:, 0] == (rows.observation[:, 0] > 0)).all()
    ended = (rows.next_observation[:, 0] > 0) | (rows.terminated > 0)
    assert (rows.ended[:, 1] == ended).all()
    assert shared.advice(np.array([-0.5]))[0] == ("cheap",)


# ---- other weights ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["sum", "kept"])
def test_other_weights_are_taken_up_from_the_same_memory(way):
    """With cheap nine times as dear the best action is x / 10."""
    mine = agent().learn(600)
    before = float(mine.act(np.array([0.8]))[0])
    mine.reweight(way, cheap=9.0)
    if way == "sum":  # the critic that the actor follows is now what the advisors' values add up to
        judged = mine._learner.judge(SEEN, np.array([[0.3]], np.float32))
        total = float(judged.weights @ judged.values[:, 0] + judged.entropy[0])
        twins = mine._learner._own(mine._learner.state.control.critic.learned.networks)
        first, second = (float(forward(twin, np.array([[0.5, 0.3]], np.float32))[0, 0]) for twin in twins)
        assert first == pytest.approx(total, rel=1e-4)
        assert first != second
    mine.learn(600)
    assert mine.task.weights.tolist() == [1.0, 9.0]
    assert abs(mine.act(np.array([0.8]))[0]) < before - 0.1
    refused("no advisor or group is called 'dear'", mine.reweight, dear=1.0)
    refused("unknown way to reweight", mine.reweight, "otherwise", cheap=1.0)


# ---- what is refused -------------------------------------------------------------------------------------------------
class Odd(Point):
    """A point with another action space."""

    def __init__(self, space):
        super().__init__()
        self.action_space = space


@pytest.mark.parametrize(
    ("space", "line"),
    [
        (spaces.Box(-np.inf, np.inf, (1,)), "has no bounds"),
        (spaces.Box(-1.7e308, 1.7e308, (1,), np.float64), "has no bounds"),
        (spaces.Box(np.zeros(2), np.array([1.0, 0.0])), "nothing to choose"),
        (spaces.Box(0, 9, (1,), np.int64), "no real numbers"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1)]), "those that can be learned are"),
        (spaces.Dict({"a": spaces.Discrete(2)}), "those that can be learned are"),
    ],
)
def test_action_spaces_that_cannot_be_used(space, line):
    refused(line, mad.Task.from_gymnasium, Odd(space))


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"learner": mad.DQN()}, "'dqn' cannot learn .* for a finite choice of actions"),
        ({"learner": "linear"}, "for a finite choice of actions"),
        ({"planning": "egocentric"}, "leave it empathic"),
        ({"aggregation": "max"}, "actors follow the weighted sum"),
        ({"noise": 1.0}, "noise on rewards"),
        ({"learner": {"name": "sac", "critics": "two"}}, "unknown critics"),
        ({"learner": {"name": "sac", "hiden": (3,)}}, "unknown setting of sac 'hiden': did you mean"),
        ({"learner": {"name": "sac", "tau": 0.0}}, "tau is 0"),
        ({"learner": {"name": "sac", "batch_size": 9, "buffer_size": 8}}, "holds no batch"),
        ({"learner": 3}, "give its name, or settings"),
        ({"learner": {"name": "tabular", "tau": 0.1}}, "has no settings of its own"),
        ({"continuous": {"tau": 0.1}}, "unknown setting 'continuous': it is called 'learner' now"),
    ],
)
def test_settings_that_mean_nothing_here(how, line):
    refused(line, mad.MultiAdvisor, task(), **how)


def test_a_table_or_a_finite_choice_cannot_have_an_actor():
    refused("these are continuous: leave bins and discretise out", task, bins="5")
    goals, line = mad.make("two-goal"), "'sac' cannot learn task 'two-goal': it is for actions that are real numbers"
    refused(line, mad.MultiAdvisor, goals, learner="sac")
    mine = agent(own=PLAYS)
    for wrong, line in (
        ([np.nan], "not finite"),
        ([3.0], "outside of"),
        ([1.0, 1.0], "give 1 numbers"),
        ("x", "give 1"),
    ):
        refused(line, mine.explain, SEEN, action=wrong)
        refused(line, mine.observe, SEEN, wrong, 0.0, SEEN, False)
    refused("no table of values", mine.values, 0)
    refused("a finite choice: leave actions out", mad.MultiAdvisor(goals).advice, goals.initial_state(), [[0.0]])


def test_an_actor_that_is_no_longer_finite_is_told_in_one_line():
    mine = agent(task(Point()), own={"learning_rate": 1.0, "learning_starts": 64})
    mine._learner.actor = tuple((weight * np.nan, bias) for weight, bias in mine._learner.actor)
    mine._learner.times[:] = 64
    refused("the actor's action is no longer finite", mine._learner._exploring, np.zeros((1, 1, 1), np.float32), 0)


def test_the_check_plays_with_real_numbers():
    assert not mad.check_task(task(), steps=100).findings
    found = mad.check_task(task(advisors="info:reward_near"), steps=100).findings
    assert {finding.defect for finding in found} == {"rewards-do-not-sum"}


# ---- the command line ------------------------------------------------------------------------------------------------
def test_the_command_resumes_explains_and_takes_other_weights(capsys, tmp_path):
    out = str(tmp_path / "a")
    line = ["train", "tests/Point-v0", "--advisors", "info:reward_*", "--gamma", "0.5", "--hidden", "32,32"]
    line += ["--batch-size", "64", "--learning-starts", "100", "--buffer-size", "4000", "--learning-rate", "0.003"]
    line += ["--updates-at-once", "4", "--eval-every", "150", "--eval-episodes", "2", "--json"]
    assert main([*line, "--steps", "150", "--out", out]) == 0
    assert json.loads(capsys.readouterr().out)["learner"]["critics"] == "separate"
    assert main([*line, "--steps", "300", "--out", out, "--resume"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert len(resumed["evaluations"]) == 2
    assert main(["explain", out, "--step", "2", "--against", "1.5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["against"], told["numbers"][1], told["step"]) == ("(1.50)", [1.5], 2)
    # other weights, on the same memory: recorded, and from then on the run's own
    heavy = [*line, "--weights", "cheap=9", "--out", out, "--resume"]
    assert main([*heavy, "--steps", "450"]) == 0
    changed = json.loads(capsys.readouterr().out)
    assert changed["reweighted"] == [{"steps": 300, "weights": {"near": 1.0, "cheap": 9.0}}]
    assert changed["evaluations"][:2] == resumed["evaluations"]
    assert main([*heavy, "--steps", "600"]) == 0
    assert json.loads(capsys.readouterr().out)["reweighted"] == changed["reweighted"]
    for wrong, said in (
        ([*line, "--out", out, "--resume", "--steps", "750"], "with other advisors, weights or options"),
        ([*heavy, "--steps", "750", "--tau", "0.1"], "has another tau"),
        (["explain", out, "--step", "99"], "nothing is done at step 99"),
        (["explain", out, "--step", "1", "--against", "east"], "give numbers with commas"),
        (["train", "CartPole-v1", "--learner", "dqn", "--tau", "0.1"], "--tau is for sac"),
        (["train", "tests/Point-v0", "--bins", "9"], "these are continuous"),
        (["train", "tests/Point-v0", "--learner", "linear"], "for a finite choice of actions"),
    ):
        assert main(wrong) == 2, wrong
        error = capsys.readouterr().err
        assert said in error
        assert len(error.splitlines()) == 1
