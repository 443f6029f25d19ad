"""A diagnosis of anyone's policy: closed forms, planted faults, bad input."""

import json
import re
import tracemalloc
import warnings
from weakref import WeakSet

import gymnasium
import numpy as np
import pushed_point
import pytest
from gymnasium.spaces import Box, Discrete
from pushed_point import LENGTH, Line, towards

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.diagnosis.branches import Brancher, Branches, branch
from multiadvisor.diagnosis.consequences import consequences
from multiadvisor.diagnosis.diagnosis import _closing, diagnose
from multiadvisor.diagnosis.policies import Policy, checked, tried
from multiadvisor.diagnosis.processes import rows_of
from multiadvisor.diagnosis.sample import KEPT, RewardTerms, Sample, SampledEpisode, Unfinished, Watch, gather
from multiadvisor.diagnosis.simulator import Copies, Simulator, beside, simulator_of
from multiadvisor.diagnosis.term_values import TermCalibration, TermValues, calibrate, discounted, fit
from refusal import refused


def named(*names, **weights):
    return [mad.Advisor(name, reward=f"info:r_{name}", weight=weights.get(name, 1.0)) for name in names]


def kinds(found):
    return {(one.kind, frozenset(one.terms)) for one in found.findings}


# ---- closed forms ----------------------------------------------------------------------------------------------------
def test_effects_of_one_step_are_exact():
    found = diagnose(Line(), lambda seen: np.zeros(1), named("move", "against", "alive"), gamma=0.0, steps=200,
                     branches=30, progress=False)  # fmt: skip
    push = {one.name: one.push.value for one in found.terms}
    assert push["move"] == pytest.approx(1 / 3)
    assert push["against"] == pytest.approx(2 / 3)
    assert push["alive"] == 0
    assert found.effects.conflict(0, 1).value == pytest.approx(-1)
    assert {abs(one) for one in np.round(found.effects.effects[..., 0].ravel(), 12)} == {0.2}


def test_intervals_from_few_episodes_hold_what_they_should():
    chance, inside = np.random.default_rng(0), 0
    for _ in range(300):
        effects = chance.gamma(1.0, size=(8, 1, 2)) * [2.0, 1.0]  # of one state in each of eight episodes
        push = Branches(np.arange(8), np.zeros(8, int), effects, np.ones(2), 1, 1).push()[0]
        inside += push.low <= 2 / 3 <= push.high
    assert inside >= 270  # plain quantiles hold 253


def test_effects_over_time_are_those_of_the_plain_sum():
    found = diagnose(Line(), lambda seen: np.zeros(1), named("near"), gamma=0.9, steps=100, branches=8, progress=False)
    effects = found.effects
    for number, place, draws in zip(effects.episode, effects.place, effects.effects, strict=True):
        episode = found.sample.episodes[number]
        left = LENGTH - place
        at = episode.observations[place][0]
        bound = 0.1 * 0.2 * sum(0.9**t for t in range(left))  # every later place is moved by as much
        assert np.abs(draws).max() <= bound + 1e-9
        if abs(at) > 0.1:
            assert np.abs(draws).max() == pytest.approx(bound)


def test_a_finite_choice_is_compared_with_another_action():
    found = diagnose(Line(finite=True), lambda seen: 2, named("move", "against"), gamma=0.0, steps=60, branches=20,
                     progress=False)  # fmt: skip
    assert {float(one) for one in found.effects.effects[..., 0].ravel()} <= {0.5, 1.0}
    assert found.effects.conflict(0, 1).value == pytest.approx(-1)


def test_values_are_those_of_the_policy():
    env, terms = Line(), RewardTerms(tuple(named("alive", "near")))
    sample = gather(Simulator(env), towards, terms, 3_000, 0, Watch())
    observed = [np.array(one.observations) for one in sample.episodes]
    values = fit(observed, sample.episodes, 0.9, 0)
    for one, seen in zip(sample.episodes[:5], observed, strict=False):
        wanted = discounted(one.terms, 0.9)
        assert np.abs(values(seen[:-1]) - wanted).max() < 0.1 * np.abs(wanted).max()
    assert all(one.holds for one in calibrate(sample, observed, 0.9, 0))


def test_values_of_noise_are_not_quoted():
    class Noisy(Line):
        def step(self, action):
            seen, reward, ended, cut, info = super().step(action)
            return seen, reward, ended, cut, {**info, "r_noise": self.np_random.normal()}

    found = diagnose(Noisy(), towards, named("noise", "near"), steps=1_500, branches=0, gamma=0.9, progress=False)
    assert [one.calibration.holds for one in found.terms] == [False, True]


def test_a_term_that_does_not_vary_closes_a_branch_with_a_constant():
    values = TermValues(lambda seen: seen, np.array([[1.0, 1.0]]), np.array([7.0, 7.0]))
    varies, constant = TermCalibration(0.9, 0.0, 100), TermCalibration(float("nan"), 0.0, 100)
    close = _closing(values, [varies, constant], Box(-9.0, 9.0, (1,), np.float64))
    assert close(np.array([3.0])).tolist() == [3.0, 7.0]
    assert _closing(values, [varies, TermCalibration(0.1, 0.0, 100)], None) is None


# ---- going back ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "method"),
    [("CartPole-v1", "restored"), ("Pendulum-v1", "restored"), ("FrozenLake-v1", "restored"),
     ("Taxi-v4", "restored"), ("LunarLander-v3", "replayed"), ("BipedalWalker-v3", "replayed in a new environment")],
)  # fmt: skip
def test_states_are_gone_back_to(name, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Box2D's import warns of ends the process where it is an error
        env = gymnasium.make(name)
        env.action_space.seed(0)
        simulator, told = simulator_of(env, lambda seen: env.action_space.sample(), 0)
    assert simulator.name == method
    assert "reproduces" in told


class Model:
    """Has `predict`, as models of Stable-Baselines3 have it; of many observations it may say something else."""

    def __init__(self, wrong=0.0):
        self.wrong, self.calls = wrong, []

    def predict(self, seen, deterministic):
        self.calls.append(np.shape(seen))
        several = seen.ndim > 1
        return np.clip(-2 * seen[..., :1] + several * self.wrong, -1, 1), None


def test_branches_of_a_model_go_on_side_by_side_and_are_the_same():
    def asked(policy):
        found = diagnose(Line(), policy, named("near", "move"), steps=300, branches=10, progress=False)
        return found.effects.effects.tolist()

    together, alone = Model(), Model(wrong=0.5)
    assert asked(together) == asked(alone) == asked(towards)
    assert (4, 2) in together.calls  # two draws of two actions
    assert set(alone.calls) == {(2,), (KEPT, 2)}


def test_environments_that_share_what_changes_are_not_played_side_by_side():
    class Shared(Line):
        moves = [0]  # noqa: RUF012

        def reset(self, **options):
            self.moves[0] = 0
            return super().reset(**options)

        def step(self, action):
            self.moves[0] += 1
            seen, *rest = super().step(action)
            return np.array([seen[0], self.moves[0]]), *rest

    shared, own = Copies(Shared()), Copies(Line())
    assert beside(shared, towards, 0, 4) == (shared,)
    assert len(beside(own, towards, 0, 4)) == 4


def test_an_environment_that_cannot_be_gone_back_in_gets_no_branches():
    found = diagnose(Line(fault="forgets"), towards, named("near", "alive"), steps=100, branches=10, progress=False)
    assert found.branches == 0
    assert found.terms[0].push is None
    assert any("no state can be gone back to" in note for note in found.notes)


def test_the_same_seed_gives_the_same_report():
    def asked(seed, workers=1):
        found = diagnose(Line(), towards, named("near", "move"), steps=300, branches=10, seed=seed, workers=workers,
                         progress=False)  # fmt: skip
        return found.as_dict()

    assert asked(3) == asked(3) != asked(4)
    several = asked(3, workers=3)
    several["notes"] = [note for note in several["notes"] if "JAX" not in note]
    assert several == asked(3)


@pytest.mark.filterwarnings("ignore:os.fork")  # of JAX, where a test before this one has used it
def test_rows_of_several_processes_come_back_and_failures_are_told():
    def work(asked):
        for one in asked:
            if one == 7:
                raise mad.BadInput("seven")
            yield np.array([one, one**2])

    rows = sorted(rows_of(work, [0, 1, 2, 3, 4], 3, lambda: False), key=lambda row: row[0])
    assert [row.tolist() for row in rows] == [[k, k**2] for k in range(5)]
    refused("seven", list, rows_of(work, [1, 7, 2], 2, lambda: False))
    assert list(rows_of(work, [1, 2], 2, lambda: True)) == []


def test_pictures_are_not_kept_of_every_step():
    class Seen(Line):
        observation_space = Box(0, 255, (40, 40), np.uint8)

        def _seen(self):
            return np.full((40, 40), int(100 + 10 * self.place), np.uint8)

    found = diagnose(Seen(), lambda seen: np.zeros(1), named("near", "move"), steps=200, branches=6, progress=False)
    assert max(len(one.observations) for one in found.sample.episodes) == KEPT + 1
    assert found.branches == 6


# ---- large ones ------------------------------------------------------------------------------------------------------
def test_forty_terms_are_told_apart():
    class Many(Line):
        def step(self, action):
            seen, _, ended, cut, _ = super().step(action)
            terms = {f"r_{k}": float(np.cos((k + 1) * self.place + k)) for k in range(40)}
            return seen, sum(terms.values()), ended, cut, terms

    tracemalloc.start()
    found = diagnose(Many(), towards, "info:r_*", gamma=0.9, steps=300, branches=12, progress=False)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20e6
    assert len(found.terms) == 40
    assert sum(one.push.value for one in found.terms) == pytest.approx(1)
    assert all(one.with_the_rest is not None for one in found.terms)
    assert len(str(found).splitlines()) >= 42
    json.dumps(found.as_dict())
    asked = consequences(Many(), towards, "info:r_*", gamma=0.9, steps=300, trials=6, progress=False)
    answer = asked.compare(asked.at(0))
    assert len(answer.told) > 0
    assert len(answer.as_dict()["terms"]) == 40


@pytest.mark.slow
def test_values_of_a_long_episode_are_fitted_piece_by_piece():
    length = 20_000
    place = np.sin(np.arange(length + 1) / 7)[:, None]
    episode = SampledEpisode(0, list(place), [0] * length, place[:-1], place[:-1, 0], True, True)
    tracemalloc.start()
    values = fit([place], [episode], 0.9, 0)
    forecast = values(place[:-1])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 80e6  # all its features at once are 64 MB, and four such tables are needed
    assert np.abs(forecast.mean(axis=0) - values.level).max() < 1e-3
    assert np.corrcoef(forecast[:-99, 0], discounted(episode.terms, 0.9)[:-99, 0])[0, 1] > 0.4


def test_few_states_of_a_long_episode_are_held_at_a_time():
    class State:
        """What a weak reference can point to."""

    class Counted(Simulator):
        held, most = WeakSet(), 0

        def save(self):
            state = State()
            self.held.add(state)
            type(self).most = max(self.most, len(self.held))
            return state

    terms, rests = RewardTerms(tuple(named("near"))), Policy(lambda seen: np.zeros(1))
    actions = [np.zeros(1)] * (LENGTH - 1)
    episode = SampledEpisode(0, [], actions, np.zeros((LENGTH - 1, 1)), np.zeros(LENGTH - 1), False, True)
    simulator = Counted(Line())
    found = branch(Brancher((simulator,), rests, terms, 0.9, 2), Sample(terms, (episode,)), 99, 0, Watch())
    assert len(found.episode) == LENGTH - 1
    assert 0 < simulator.most <= 21


# ---- planted faults --------------------------------------------------------------------------------------------------
def shaken(seen):
    return np.clip(-2 * seen[:1] + 0.5 * np.sin(40 * seen[1:]), -1, 1)


@pytest.mark.parametrize(
    ("advisors", "wanted"),
    [
        (named("move", "near", "alive"), None),
        (named("move", "near", "never"), ("never paid", {"never"})),
        (named("move", "near", "alive", near=1e-4), ("hardly matters", {"near"})),
        (named("move", "near", "alive", alive=100.0), ("dominates", {"alive"})),
        (named("move", "against", "alive", against=0.5), ("cancel", {"move", "against"})),
        ([*named("move", "near"), mad.Advisor("again", reward=lambda t: 3 * t.info["r_move"])],
         ("counted twice", {"move", "again"})),
    ],
)  # fmt: skip
def test_planted_faults_are_found_and_nothing_else(advisors, wanted):
    found = kinds(diagnose(Line(), shaken, advisors, steps=500, branches=20, gamma=0.9, progress=False))
    found = {one for one in found if one[0] not in ("does not add up", "opposed", "paid whatever is done")}
    assert found == (set() if wanted is None else {(wanted[0], frozenset(wanted[1]))})


@pytest.mark.parametrize(("weight", "told"), [(0.5, True), (1e-3, False)])
def test_terms_pull_apart_only_where_both_matter(weight, told):
    found = kinds(diagnose(Line(), shaken, named("move", "against", "alive", against=weight), steps=500, branches=20,
                           gamma=0.9, progress=False))  # fmt: skip
    assert (("opposed", frozenset({"move", "against"})) in found) == told


@pytest.mark.slow
def test_what_is_paid_seldom_and_much_is_not_said_to_hardly_matter_by_counting():
    class Crashing(Line):
        def step(self, action):
            seen, reward, ended, cut, info = super().step(action)
            often, seldom = (size * (self.np_random.random() < share) for size, share in ((0.001, 1), (-3, 0.001)))
            return seen, reward, ended, cut, {**info, "r_often": often, "r_crash": seldom}

    found = diagnose(Crashing(), shaken, named("alive", "often", "crash"), steps=9_000, branches=0, progress=False)
    assert {one.name: one.share < 0.005 for one in found.terms} == {"alive": False, "often": True, "crash": True}
    assert {one[1] for one in kinds(found) if one[0] == "hardly matters"} == {frozenset({"often"})}


def test_terms_that_do_not_add_up_are_told():
    assert "does not add up" in {one[0] for one in kinds(diagnose(Line(), towards, named("near"), steps=100, branches=0,
                                                                  progress=False))}  # fmt: skip


class Landing(gymnasium.Env):
    """Ends where it comes down, and pays for that; in half of its episodes the wind blows, and it stays up."""

    observation_space, action_space = Box(-np.inf, np.inf, (2,), np.float64), Discrete(2)

    def __init__(self, lands=100.0):
        self.lands = lands

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.height, self.time, self.wind = 1.0, 0, float(seed % 2)
        return np.array([self.height, self.wind]), {}

    def step(self, action):
        self.time += 1
        drift = self.np_random.normal(0, 0.3)
        self.height = drift + 1 + self.time / 40 if self.wind else self.height - 0.05
        over = self.height <= 0 and not self.wind
        paid = {"r_landed": self.lands * over, "r_fuel": -0.1}
        return np.array([self.height, self.wind]), sum(paid.values()), over, self.time >= 200, paid


@pytest.mark.parametrize(("lands", "told"), [(100.0, True), (-100.0, False)])
def test_a_policy_that_goes_on_without_earning_is_told_where_ending_brings_more(lands, told):
    found = diagnose(Landing(lands), lambda seen: 0, named("landed", "fuel"), steps=2_000, branches=0, progress=False)
    lingering = [one for one in found.findings if one.kind == "lingers"]
    assert bool(lingering) == told
    if told:
        assert "earns -0.1 [-0.1, -0.1] a step in their second half (fuel -0.1)" in lingering[0].sentence
        assert lingering[0].evidence["share"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("name", "policy", "stuck"), [
    ("Pendulum-v1", lambda seen: np.clip([-10 * np.arctan2(seen[1], seen[0]) - 2 * seen[2] if seen[0] > 0.9 else
                                          2 * np.sign((5 - seen[2] ** 2 / 6 - 5 * seen[0]) * seen[2])], -2, 2), False),
    ("CliffWalking-v1", lambda seen: 0, True),
])  # fmt: skip
def test_where_there_are_only_costs_the_cheapest_place_is_not_stuck(name, policy, stuck):
    found = diagnose(name, policy, [mad.Advisor("cost")], steps=1_000, branches=0, progress=False)
    assert ("stuck" in {one.kind for one in found.findings}) == stuck


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda seen: np.array([np.nan]), "finite"),
        (lambda seen: np.zeros(3), "shape"),
        (lambda seen: np.array([7.0]), "outside"),
        (lambda seen: seen["left"], "the policy raised IndexError"),
        ("nobody", "function of the observation"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(policy, message):
    refused(message, diagnose, Line(), policy, named("near"), steps=50, progress=False)


def test_a_random_policy_is_known_as_one():
    act = checked(lambda seen: np.random.uniform(-1, 1, 1), Line().action_space)  # noqa: NPY002
    assert tried(Policy(act), [np.zeros(2)], 0).random
    assert not tried(Policy(towards), [np.zeros(2)], 0).random


def test_a_term_that_fails_is_named():
    broken = mad.Advisor("far", reward=lambda t: t.info["nothing"])
    refused("the term 'far' raised KeyError", diagnose, Line(), towards, [broken], steps=50, progress=False)


def test_a_step_that_no_action_changed_is_not_decisive():
    found = diagnose(Line(), towards, named("alive"), steps=300, branches=9, progress=False)
    assert found.decisive == ()
    assert "no branch changed anything" in str(found)


def test_a_failure_in_a_branch_keeps_the_branches_until_then():
    asked = []
    fails = RewardTerms(
        (mad.Advisor("near", reward=lambda t: asked.append(1) or (np.inf if len(asked) > 99 else 0.0)),)
    )
    sample = gather(Simulator(Line()), lambda seen: np.zeros(1), RewardTerms(tuple(named("near"))), 500, 0, Watch())
    simulator, _ = simulator_of(Line(), towards, 0)
    brancher = Brancher((simulator,), Policy(lambda seen: np.zeros(1)), fails, 0.9, 5)
    with pytest.raises(Unfinished, match="'near' paid inf") as failed:
        branch(brancher, sample, 100, 0, Watch())
    assert 0 < len(failed.value.gathered.episode) < 100


# ---- the command -----------------------------------------------------------------------------------------------------
def test_the_command_takes_a_function_of_a_file(tmp_path, capsys):
    file = tmp_path / "upright_policy.py"
    file.write_text("def act(seen):\n    return int(seen[2] > 0)\n")
    words = ["diagnose", "CartPole-v1", "--policy", f"{file}:act", "--steps", "200", "--branches", "3"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 200
    assert main([*words, "--pictures", str(tmp_path / "drawn"), "--json"]) == 0
    decisive = json.loads(capsys.readouterr().out)["decisive"]
    assert len(list((tmp_path / "drawn").glob("episode-*.png"))) == len([one for one in decisive if one["picture"]]) > 0
    for wrong, message in ((f"{file}:nothing", "has no 'nothing'"), (str(file), "FILE.py:NAME")):
        words[3] = wrong
        assert main(words) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(("policy", "fault", "message"), [
    ("nan", "", "let every number be finite"), ("shape", "", "an action of shape (3,)"), ("outside", "", "clip it"),
    ("keeps", "", "keeps a state of its own"), ("towards", "infinite", "'near' paid inf"),
    ("towards", "missing", "takes info:r_move"), ("towards", "forgets", "no state can be gone back to"),
])  # fmt: skip
def test_the_command_says_what_is_wrong_and_keeps_what_it_gathered(policy, fault, message, capsys):
    words = ["diagnose", f"{pushed_point.__file__}:Line", "--env-kwarg", f"fault={fault}", "--advisors", "info:r_*"]
    words += ["--policy", f"{pushed_point.__file__}:{policy}", "--steps", "900", "--branches", "4", "--json"]
    assert main(words) == 2
    told = capsys.readouterr()
    found, last = json.loads(told.out), told.err.splitlines()[-1]
    assert found["steps"] > 50
    assert message in last
    assert last.startswith("multiadvisor diagnose: ")
    if fault != "forgets":
        assert found["problem"] in last
        with pytest.raises(Unfinished, match=re.escape(found["problem"])) as failed:
            diagnose(
                Line(fault=fault), getattr(pushed_point, policy), "info:r_*", steps=900, branches=4, progress=False
            )
        assert found["problem"] in str(failed.value.gathered)


def test_the_command_takes_checkpoints_in_the_order_of_their_numbers(tmp_path, capsys):
    file, folder = tmp_path / "leaning_policy.py", tmp_path / "models"
    file.write_text("def load(path):\n    return lambda seen: int(seen[2] + seen[3] > 1 - int(path[-1]))\n")
    folder.mkdir()
    words = ["diagnose", "CartPole-v1", "--policy", f"{file}:load", "--checkpoints", str(folder), "--steps", "100"]
    assert main(words) == 2
    assert "0 checkpoints" in capsys.readouterr().err
    for name in ("step-10", "step-9", "step-1"):
        (folder / name).touch()
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (list(told["checkpoints"]), told["findings"]) == (["step-1", "step-9", "step-10"], [])


def test_an_agent_of_ours_is_diagnosed():
    task = mad.Task.from_gymnasium("FrozenLake-v1")
    agent = mad.MultiAdvisor(task, gamma=0.95).learn(2_000, progress=False)
    found = diagnose(task, agent, steps=300, branches=5, progress=False)
    assert found.branches == 5
    assert not found.random_policy
