"""A diagnosis of anyone's policy: closed forms, planted faults, bad input."""

import json
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.diagnosis.diagnosis import _closing, diagnose
from multiadvisor.diagnosis.policies import checked, tried
from multiadvisor.diagnosis.sample import RewardTerms, Watch, gather
from multiadvisor.diagnosis.simulator import Simulator, simulator_of
from multiadvisor.diagnosis.term_values import Calibration, TermValues, calibrate, discounted, fit

LENGTH = 25


class Line(gymnasium.Env):
    """A point that is pushed along a line; what it is paid stands in info."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, finite=False):
        self.action_space = Discrete(3) if finite else Box(-1.0, 1.0, (1,), np.float64)
        self.finite = finite

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = float(self.np_random.uniform(-1, 1)), 0
        return self._seen(), {}

    def _seen(self):
        return np.array([self.place, self.time / LENGTH])

    def step(self, action):
        move = float(action - 1) if self.finite else float(action[0])
        self.place += 0.1 * move
        self.time += 1
        terms = {"move": move, "against": -2.0 * move, "alive": 1.0, "near": -abs(self.place), "never": 0.0}
        return self._seen(), sum(terms.values()), self.time >= LENGTH, False, {f"r_{k}": v for k, v in terms.items()}


class Forgetful(Line):
    """Draws from a generator that no seed reaches and no copy holds."""

    chance = np.random.default_rng(0)

    def step(self, action):
        self.place += 0.01 * type(self).chance.normal()
        return super().step(action)


def towards(seen):
    """Goes to the middle."""
    return np.clip(-2 * seen[:1], -1, 1)


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
    varies, constant = Calibration(0.9, 0.0, 100), Calibration(float("nan"), 0.0, 100)
    close = _closing(values, [varies, constant], Box(-9.0, 9.0, (1,), np.float64))
    assert close(np.array([3.0])).tolist() == [3.0, 7.0]
    assert _closing(values, [varies, Calibration(0.1, 0.0, 100)], None) is None


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


def test_an_environment_that_cannot_be_gone_back_in_gets_no_branches():
    found = diagnose(Forgetful(), towards, named("near", "alive"), steps=100, branches=10, progress=False)
    assert found.branches == 0
    assert found.terms[0].push is None
    assert any("no state can be gone back to" in note for note in found.notes)


def test_the_same_seed_gives_the_same_report():
    def asked(seed):
        found = diagnose(Line(), towards, named("near", "move"), steps=300, branches=10, seed=seed, progress=False)
        return json.dumps(found.as_dict())

    assert asked(3) == asked(3) != asked(4)


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


def test_terms_that_do_not_add_up_are_told():
    assert "does not add up" in {one[0] for one in kinds(diagnose(Line(), towards, named("near"), steps=100, branches=0,
                                                                  progress=False))}  # fmt: skip


def test_a_policy_that_is_stuck_is_told():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    goal = mad.Advisor("goal", reward=lambda t: float(t.reward))
    found = diagnose(env, lambda seen: 0, [goal], steps=300, branches=0, progress=False)
    assert [one.kind for one in found.findings] == ["stuck", "never paid"]


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
        ("nobody", "function of the observation"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(policy, message):
    with pytest.raises(mad.BadInput, match=message):
        diagnose(Line(), policy, named("near"), steps=50, progress=False)


def test_a_policy_with_a_state_of_its_own_is_refused():
    calls = []

    def counting(seen):
        calls.append(1)
        return np.array([(len(calls) % 5) / 10])

    with pytest.raises(mad.BadInput, match="state of its own"):
        diagnose(Line(), counting, named("near"), steps=50, progress=False)


def test_a_random_policy_is_known_as_one():
    act = checked(lambda seen: np.random.uniform(-1, 1, 1), Line().action_space)  # noqa: NPY002
    assert tried(act, [np.zeros(2)], 0).random
    assert not tried(towards, [np.zeros(2)], 0).random


def test_a_term_that_is_not_finite_is_named():
    class Broken(Line):
        def step(self, action):
            seen, reward, ended, cut, info = super().step(action)
            return seen, reward, ended, cut, {**info, "r_near": np.inf if self.time == 5 else 0.0}

    with pytest.raises(mad.BadInput, match="'near' paid inf"):
        diagnose(Broken(), towards, named("near"), steps=50, progress=False)


# ---- the command -----------------------------------------------------------------------------------------------------
def test_the_command_takes_a_function_of_a_file(tmp_path, capsys):
    file = tmp_path / "upright_policy.py"
    file.write_text("def act(seen):\n    return int(seen[2] > 0)\n")
    words = ["diagnose", "CartPole-v1", "--policy", f"{file}:act", "--steps", "200", "--branches", "3"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 200
    for wrong, message in ((f"{file}:nothing", "has no 'nothing'"), (str(file), "FILE.py:FUNCTION")):
        words[3] = wrong
        assert main(words) == 2
        assert message in capsys.readouterr().err


def test_an_agent_of_ours_is_diagnosed():
    task = mad.Task.from_gymnasium("FrozenLake-v1")
    agent = mad.MultiAdvisor(task, gamma=0.95).learn(2_000, progress=False)
    found = diagnose(task, agent, steps=300, branches=5, progress=False)
    assert found.branches == 5
    assert not found.random_policy
