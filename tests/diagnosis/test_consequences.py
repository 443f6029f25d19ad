"""What follows from an action rather than another: closed forms, what is withheld, and bad input."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import multiadvisor as mad
from multiadvisor.diagnosis.branches import agreement, correlations
from multiadvisor.diagnosis.consequences import Consequence, Precision, consequences
from multiadvisor.diagnosis.taught import read_taught, teach
from refusal import refused

GAMMA, END = 0.9, 60


class Walk(gymnasium.Env):
    """A place on a line; 'near' pays its distance, 'alive' one a step, 'noise' what no action changes."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, finite=False):
        self.action_space = Discrete(3, start=-1) if finite else Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = float(self.np_random.uniform(5, 6)), 0
        return np.array([self.place, self.time / END]), {}

    def step(self, action):
        self.place += 0.1 * float(np.ravel(action)[0])
        self.time += 1
        info = {"r_near": -self.place, "r_alive": 1.0, "r_noise": float(self.np_random.normal()),
                "r_shake": float(self.np_random.normal() * np.ravel(action)[0])}  # fmt: skip
        return np.array([self.place, self.time / END]), sum(info.values()), False, self.time >= END, info


NEAR = [mad.Advisor(name, reward=f"info:r_{name}") for name in ("near", "alive", "noise")]


def rests(seen):
    return np.zeros(1)


def asked(env, policy=rests, advisors=NEAR, **options):
    chosen = {"gamma": GAMMA, "steps": 600, "trials": 12, "progress": False, **options}
    return consequences(env, policy, advisors, **chosen)


def brings(found):
    return dict(zip(found.names, found.difference, strict=True))


@pytest.mark.parametrize("length", [1, 5, 44])
def test_the_difference_of_a_place_that_stays_is_its_discounted_sum(length):
    prepared = asked(Walk(), length=length, steps=3_000)
    found = prepared.compare(prepared.at(3), [1.0], [0.0])
    exact = -0.1 * (1 - GAMMA**44) / (1 - GAMMA)  # the policy rests, so that the place stays changed
    assert brings(found)["near"] == pytest.approx(exact, rel=0.1)  # clipped noise, and what values add
    assert brings(found)["alive"] == pytest.approx(0)
    assert abs(brings(found)["noise"]) < 0.2


def test_without_values_a_short_branch_is_cut_and_a_whole_one_is_exact():
    prepared = asked(Walk(finite=True), lambda seen: 0, length=44, draws=2)
    found = prepared.compare(prepared.at(3), 1, -1)
    assert brings(found)["near"] == pytest.approx(-0.2 * (1 - GAMMA**44) / (1 - GAMMA))
    assert found.error[0] == pytest.approx(0)
    assert found.names[found.told[0]] == "near"
    assert "near -1.98" in found.sentence
    assert found.steps == 2 * 2 * 44


def test_weights_and_the_later_states_count():
    prepared = asked(Walk(finite=True), lambda seen: 0, [mad.Advisor("near", reward="info:r_near", weight=3.0)],
                     length=60, draws=2, gamma=1.0)  # fmt: skip
    late = prepared.at(3, [0] * 50)
    assert brings(prepared.compare(late, 1, -1))["near"] == pytest.approx(3 * -0.2 * 10)


def test_what_halves_of_the_draws_disagree_on_is_withheld():
    shake = [*NEAR[:1], mad.Advisor("shake", reward="info:r_shake")]

    class Independent(Walk):
        def step(self, action):  # what is drawn depends on the action, so that pairs share nothing
            self.np_random.random(2 + int(np.ravel(action)[0]))
            return super().step(action)

    prepared = asked(Independent(finite=True), lambda seen: 0, shake, length=60)
    near, shaken = prepared.precision
    assert near.holds
    assert not shaken.holds
    found = prepared.compare(prepared.at(3), 1, -1)
    assert [found.names[k] for k in found.told] == ["near"]
    assert found.sentence.endswith("shake: too weak or uncertain to tell")
    assert "shake" in str(prepared)
    assert "withheld" in str(prepared)


def test_only_strong_differences_are_told():
    precision = (Precision(0.9, 0.9, 0.9, 1.0), Precision(0.9, 0.2, None, 0.1), Precision(0.4, 0.9, None, 0.1))
    found = Consequence(("a", "b", "c"), 0, 1, np.array([0.9, -0.5, 0.5]), np.full(3, 0.1), precision, 25, 8, 0.0)
    assert found.told == (1,)
    data = found.as_dict()
    assert data["terms"]["b"]["told"]
    assert data["terms"]["b"]["ranks"] == 0.2
    unsure = Consequence(("a",), 0, 1, np.array([5.0]), np.array([3.0]), precision[:1], 25, 8, 0.0)
    assert unsure.told == ()
    assert unsure.sentence.startswith("whether it was better cannot be told")


def test_the_same_question_has_the_same_answer():
    prepared = asked(Walk())
    place = prepared.at(3, [np.ones(1)])
    one, two = (prepared.compare(place, [1.0], [0.0]) for _ in range(2))
    assert one.difference.tolist() == two.difference.tolist()
    assert prepared.compare(place, [1.0], [0.0], seed=1).difference.tolist() != one.difference.tolist()


def test_a_compiled_world_is_asked_in_any_of_its_states():
    task = mad.make("two-goal", r1=1.0, r2=0.5)
    agent = mad.MultiAdvisor(task, planning="empathic", gamma=0.9, seed=0).learn(2_000, progress=False)
    prepared = consequences(task, agent, steps=100, trials=4, progress=False)
    start = prepared.at(0, x=task.initial_state())
    waits = prepared.compare(start, 1, 0)
    assert brings(waits) == pytest.approx({"goal 1": 1 - 0.9, "goal 2": 0})
    assert brings(prepared.compare(start, 1, 2)) == pytest.approx({"goal 1": 1, "goal 2": -0.5})
    usual = prepared.compare(start)
    assert (usual.action, usual.against) == (1, int(agent.preferences(task.initial_state()).argsort()[-2]))


def test_an_agent_goes_on_learning_as_if_nobody_had_asked():
    def trained(between):
        env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env), gamma=0.95, seed=1).learn(500, progress=False)
        if between:
            consequences(agent.task, agent, steps=100, trials=4, progress=False)
            mad.diagnose(agent.task, agent, steps=100, branches=2, progress=False)
        return agent.learn(500, progress=False).values(0)

    assert (trained(True) == trained(False)).all()


def test_ranks_of_ties_are_shared_and_equal_halves_agree():
    tied = np.array([[0.0], [0.0], [1.0], [2.0]])
    assert correlations(tied, tied[[1, 0, 2, 3]])[1][0] == pytest.approx(1)
    assert agreement(np.zeros((3, 4, 1)))[0].tolist() == [1.0]


@pytest.mark.parametrize(("options", "message"), [
    ({"draws": 1}, "draws is 1"), ({"length": 0}, "length is 0"), ({"trials": 1}, "trials is 1"),
])  # fmt: skip
def test_settings_that_answer_nothing_are_refused(options, message):
    refused(message, asked, Walk(), **options)


def test_an_environment_that_cannot_be_gone_back_in_is_refused():
    class Forgetful(Walk):
        chance = np.random.default_rng(0)

        def step(self, action):
            self.place += 0.01 * type(self).chance.normal()
            return super().step(action)

    refused("no state can be gone back to", asked, Forgetful())


def test_nothing_follows_after_the_end():
    refused("over after 60 steps", lambda: asked(Walk()).at(3, [np.ones(1)] * 60))


# ---- without the environment -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("finite", [False, True])
def test_what_branches_taught_is_answered_without_the_environment(finite, tmp_path):
    effort = mad.Advisor("effort", reward=lambda t: -(float(np.ravel(t.action)[0]) ** 2))
    terms = [*NEAR[:2], mad.Advisor("noise", reward="info:r_shake"), effort]
    prepared = asked(Walk(finite), (lambda seen: 0) if finite else rests, terms, length=44)
    answers = teach(prepared, pairs=500, trials=20, progress=False)
    answers.save(tmp_path / "taught.json")
    again = read_taught(tmp_path / "taught.json")
    assert str(again) == str(answers)
    found = again.compare([5.5, 0.0], 1 if finite else [1.0], 0 if finite else [0.5])
    step = 0.1 * (1 if finite else 0.5)
    assert brings(found)["near"] == pytest.approx(-step * (1 - GAMMA**44) / (1 - GAMMA), rel=0.15)
    assert brings(found)["effort"] == pytest.approx(-1 if finite else -0.75, rel=0.1)
    assert [one.holds for one in answers.precision] == [True, True, False, not finite]  # noise, and a constant
    assert "noise: agrees" in str(answers)
    far = again.compare([5.5, 0.0], *((1, -1) if finite else ([1.0], [-1.0])))
    assert far.sentence.startswith("as taught by 500 pairs of 44 steps, it brings near -")
    assert 2 not in far.told


def test_what_cannot_be_taught_or_read_is_refused(tmp_path):
    class Pictured(Walk):
        observation_space = gymnasium.spaces.Dict({"place": Walk.observation_space})

        def reset(self, **options):
            seen, info = super().reset(**options)
            return {"place": seen}, info

        def step(self, action):
            seen, *rest = super().step(action)
            return {"place": seen}, *rest

    refused("cannot be taught", teach, asked(Pictured()))
    place = tmp_path / "taught.json"
    teach(asked(Walk()), pairs=5, trials=4, progress=False).save(place)
    place.write_text(place.read_text().replace('"pairs":5', '"pairs":6'))
    refused("checksum differs", read_taught, place)
