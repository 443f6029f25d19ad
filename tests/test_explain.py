"""Explanations: against brute force, closed forms and hand-worked sentences."""

import dataclasses
import json
from fractions import Fraction

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multiadvisor as mad
from multiadvisor.analysis import theory
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.theory.learned_values import Surroundings, learned_solution, surroundings
from multiadvisor.explain.ablation import disagreement
from multiadvisor.explain.explanation import explain, explain_advice
from multiadvisor.explain.msx import msx
from multiadvisor.explain.sentences import who
from multiadvisor.runs.trace import explain_step
from refusal import refused


# ---- the shortest explanation ----------------------------------------------------------------------------------------
def whole(values):
    """Doubles as whole numbers of one common unit: sums of them are exact."""
    parts = [Fraction(float(value)) for value in values]
    unit = max((part.denominator for part in parts), default=1)
    return [int(part * unit) for part in parts]


def brute_force(values):
    """By their definitions, over all subsets: the smallest size of MSX+ and its largest sum; the same of MSX-.

    None where no subset will do.
    """
    values = whole(values)
    sums, sizes = [0], [0]
    for value in values:
        sums += [s + value for s in sums]
        sizes += [k + 1 for k in sizes]
    loss = -sum(value for value in values if value < 0)
    plus = min(((size, -s) for size, s in zip(sizes, sums, strict=True) if s > loss), default=None)
    if plus is None:
        return None, None
    gain = -plus[1]
    needed = sorted(values, reverse=True)[: plus[0]]
    assert sum(needed) == gain
    bar = gain - min(needed)
    return plus, min(((size, s) for size, s in zip(sizes, sums, strict=True) if -s > bar), default=None)


def random_case(generator):
    m = int(generator.integers(0, 13))
    kind = generator.integers(4)
    if kind == 0:
        return generator.normal(size=m)
    if kind == 1:
        return generator.integers(-3, 4, size=m).astype(float)  # many ties and zeros
    if kind == 2:
        return generator.integers(-9, 10, size=m) / 10  # ties that only exact sums can tell
    return generator.normal(size=m) * 10.0 ** generator.integers(-12, 4, size=m)


def test_shortest_explanations_equal_brute_force_on_1000_random_cases():
    generator = np.random.default_rng(0)
    found = {"better": 0, "not better": 0, "only equal": 0, "nobody objects": 0, "several": 0}
    for _ in range(1000):
        values = random_case(generator)
        exact = whole(values)
        plus, minus = brute_force(values)
        got = msx(values)
        if plus is None:
            found["not better"] += 1
            assert len(got.plus) == len(got.minus) == 0
            continue
        found["better"] += 1
        assert (len(got.plus), -sum(exact[j] for j in got.plus)) == plus
        found["several"] += plus[0] > 1
        if minus is None:  # losses cannot exceed the bar: they are all named
            found["only equal" if (values < 0).any() else "nobody objects"] += 1
            assert sorted(got.minus) == np.flatnonzero(values < 0).tolist()
        else:
            assert (len(got.minus), sum(exact[j] for j in got.minus)) == minus
    assert all(count >= 20 for count in found.values()), found


def test_equal_advisors_come_in_their_own_order():
    got = msx(np.array([0.5, -1.0, 0.5, 0.5, -0.25, 0.5, -0.25, 0.5]))
    assert got.plus.tolist() == [0, 2, 3, 5]  # three of them only equal the losses
    assert got.minus.tolist() == [1, 4, 6]


def test_thousands_of_advisors_are_minimal_too():
    values = np.random.default_rng(1).normal(0.05, 1.0, 10_000)
    exact, got = whole(values), msx(values)
    loss = -sum(v for v in exact if v < 0)
    gains = [exact[j] for j in got.plus]
    assert sum(gains) > loss >= sum(gains[:-1])
    assert min(gains) >= max(exact[j] for j in set(range(10_000)) - set(got.plus.tolist()))
    losses = [-exact[j] for j in got.minus]
    assert sum(losses) > sum(gains[:-1]) >= sum(losses[:-1])
    assert len(got.plus) > 1000


def test_many_that_weigh_next_to_nothing():
    """Sums within rounding of each other: decided exactly, and without walking through them one by one."""
    values = np.concatenate([[1.0], np.full(5000, 2.0**-60), [-1.0], np.full(4999, -(2.0**-60))])
    assert len(msx(values).plus) == 5001
    assert len(msx(-values).plus) == 0


# ---- the other numbers -----------------------------------------------------------------------------------------------
def dyadic(generator, m, actions):
    return generator.integers(-8, 9, size=(m, actions)) / 8, generator.integers(-4, 5, size=m) / 4


def test_disagreement():
    generator = np.random.default_rng(3)
    for _ in range(200):
        advice, weights = dyadic(generator, int(generator.integers(0, 7)), 3)
        wished = weights[:, None] * advice
        gap = sum(row.max() for row in wished) - max(wished[:, a].sum() for a in range(3))
        assert disagreement(advice, weights) == gap >= 0
    assert disagreement(advice[:1], weights[:1]) == 0  # nobody disagrees with themselves
    alike = np.tile(advice[:1], (5, 1))
    assert disagreement(alike, np.ones(5)) == 0


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 8), st.integers(1, 4))
def test_an_explanation_agrees_with_itself(seed, m, actions):
    advice, weights = dyadic(np.random.default_rng(seed), m, actions)
    names = [f"advisor {j}" for j in range(m)]
    found = explain_advice(names, advice, weights, [f"a{k}" for k in range(actions)])
    json.dumps(found.as_dict(), allow_nan=False)
    assert str(found).startswith(found.sentence)
    assert found.action in found.greedy
    assert found.preferences[found.action] == max(found.preferences.values())
    if actions == 1:
        assert "no other action" in found.sentence
        return
    assert sum(found.differences.values()) == found.advantage >= 0
    assert found.tie == (found.advantage == 0) == (len(found.greedy) > 1) == ("tie" in found.sentence)
    assert bool(found.msx_plus) == (not found.tie)
    assert set(found.msx_minus) <= {name for name, value in found.differences.items() if value < 0}
    turned = explain_advice(names, advice, weights, found.actions, action=found.against, against=found.action)
    assert turned.advantage == -found.advantage
    assert found.tie or (turned.msx_plus == () and "would be worse than" in turned.sentence)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=9),
    st.sampled_from([np.float64, np.float32]),
)
def test_a_choice_that_is_no_tie_has_a_sufficient_explanation(rows, kind):
    """Whatever the rounding: a winner beyond it wins exactly, and within it a tie is called."""
    advice = np.array(rows, kind)
    names = [f"advisor {j}" for j in range(len(rows))]
    found = explain_advice(names, advice, np.ones(len(rows)), ["a", "b", "c"])
    assert bool(found.msx_plus) != found.tie
    exact = sum(Fraction(float(v)) for v in advice[:, found.actions.index(found.action)])
    other = sum(Fraction(float(v)) for v in advice[:, found.actions.index(found.against)])
    assert found.tie or exact > other


# ---- words -----------------------------------------------------------------------------------------------------------
ACTIONS = ("N", "W", "S", "E")
FRUITS = ["fruit (2, 3)", "fruit (2, 5)", "ghost 1", "ghost 2"]
GROUPS = ["fruits", "fruits", "ghosts", "ghosts"]


def told(differences, **how):
    """The sentence where W differs from E by these, and N and S are far worse."""
    names = how.pop("names", FRUITS)
    advice = np.zeros((len(names), 4))
    advice[:, 1], advice[:, [0, 2]] = differences, -10.0
    groups = how.pop("groups", GROUPS)
    return explain_advice(names, advice, np.ones(len(names)), ACTIONS, groups=groups, **how).sentence


@pytest.mark.parametrize(
    ("differences", "sentence"),
    [
        ([0.75, 0.56, 0.0, -0.62], "goes West rather than East: fruit at (2, 3), 0.75, outweighs ghost 2, -0.62"),
        ([0.45, 0.86, 0.0, -1.02],
         "goes West rather than East: fruits at (2, 5) and (2, 3), 1.31, outweigh ghost 2, -1.02"),
        ([0.5, 0.25, 0.0, 0.0], "goes West rather than East: fruit at (2, 3), 0.50, and nobody objects"),
        ([0.5, -0.25, 0.25, 0.0],
         "goes West rather than East: fruit at (2, 3), 0.50, outweighs fruit at (2, 5), -0.25"),
        ([1.0, 0.0, -0.25, -0.5], "goes West rather than East: fruit at (2, 3), 1.00, outweighs ghosts 2 and 1, -0.75"),
        ([1.0, -0.1, -0.25, -0.5],
         "goes West rather than East: fruit at (2, 3), 1.00, outweighs ghosts 2 and 1, and fruit at (2, 5), -0.85"),
        ([1.001, 0.0, 0.0, -1.0], "goes West rather than East: fruit at (2, 3), 1.001, outweighs ghost 2, -1.000"),
        ([2e-9, 0.0, 0.0, -1e-9], "goes West rather than East: fruit at (2, 3), 2e-09, outweighs ghost 2, -1e-09"),
        ([0.5, 0.25, 0.0, -0.75],
         "tie between West and East: fruits at (2, 3) and (2, 5), 0.75, balance ghost 2, -0.75"),
        ([0.0] * 4, "tie between West and East: they are the same to everybody"),
        ([0.5, 0.25, 0.0, -1.0],
         "West would be worse than East: ghost 2, -1.00, outweighs fruits at (2, 3) and (2, 5), 0.75"),
    ],
)  # fmt: skip
def test_sentences(differences, sentence):
    assert told(differences, action="West", against="E") == sentence
    if "would be worse" not in sentence:
        assert told(differences) == sentence


def test_nobody_has_a_say_in_words():
    assert told([], names=[], groups=[]) == "goes North: no advisor has a say, so all actions tie"


NINE = [f"fruit (0, {k})" for k in range(9)]


@pytest.mark.parametrize(
    ("names", "groups", "words"),
    [
        (NINE, ["fruits"] * 9, "fruits at (0, 0), (0, 1), (0, 2) and 6 more"),
        (NINE[:4], ["fruits"] * 4, "fruits at (0, 0), (0, 1), (0, 2) and (0, 3)"),
        (["a", "b", "c", *NINE[:2], "d"], ["", "", "", "fruits", "fruits", ""], "a, and b, and c, and 3 more"),
        (["speed", "fuel"], ["", ""], "speed and fuel"),
        (["a", "b", "c", "d", "e"], [""] * 5, "a, b, c and 2 more"),
        (["reward 1"], [""], "reward 1"),
        (["reward 1", "reward 0"], ["costs", "costs"], "costs 1 and 0"),
    ],
)
def test_a_crowd_is_counted(names, groups, words):
    assert who(names, groups) == words


def test_a_negative_weight_turns_a_wish_round():
    advice = np.array([[1.0, 0.0], [0.0, 0.4]])
    plain = explain_advice(["thief", "guard"], advice, np.ones(2), ["in", "out"])
    turned = explain_advice(["thief", "guard"], advice, np.array([-1.0, 1.0]), ["in", "out"])
    assert plain.sentence == "chooses in rather than out: thief, 1.00, outweighs guard, -0.40"
    assert turned.sentence == "chooses out rather than in: thief, 1.00, and nobody objects"
    assert turned.differences == {"thief": 1.0, "guard": 0.4}
    assert turned.influence == {}
    assert plain.influence == {"thief": ("out",)}


@pytest.mark.parametrize(
    ("advice", "action", "sentence"),
    [
        ([[1.0, 0.0], [0.0, 1e-10]], None, "chooses in rather than out: thief, 1.00, and nobody objects"),
        ([[1.0, 0.0], [0.0, 1e-10]], "out", "out would be worse than in: thief, -1.00, and nobody objects"),
        ([[1.0, 0.0], [0.0, 1e-10], [0.0, 0.4]], None,
         "chooses in rather than out: thief, 1.00, outweighs guard, -0.40"),
        ([[1e-3, 0.0], [0.0, 2e-9]], None, "chooses in rather than out: thief, 0.001, outweighs cat, -2e-09"),
    ],
)  # fmt: skip
def test_noise_is_no_objection(advice, action, sentence):
    names = ["thief", "cat", "guard"][: len(advice)]
    assert explain_advice(names, advice, np.ones(len(advice)), ["in", "out"], action=action).sentence == sentence


def test_the_only_advisor_decides():
    found = explain_advice(["reward"], np.array([[0.5, 2.0, 1.0]]), np.ones(1), ["a", "b", "c"])
    assert found.sentence == "chooses b rather than c: reward, 1.00, and nobody objects"
    assert found.influence == {"reward": ("a", "b", "c")}
    assert found.disagreement == 0
    assert found.table("a", "b") == {"reward": -1.5}


def test_what_cannot_be_explained():
    advice, ones = np.eye(2), np.ones(2)
    with pytest.raises(mad.BadInput, match="compared with itself"):
        explain_advice(["p", "q"], advice, ones, ["left", "right"], action="left", against="Left")
    for action in ("up", 2, -1, "2", True):
        refused("unknown action", explain_advice, ["p", "q"], advice, ones, ["left", "right"], action=action)
    assert explain_advice(["p", "q"], advice, ones, ["1", "0"], action="0", against=0).action == "0"  # names go first
    refused("not finite", explain_advice, ["p", "q"], advice * np.nan, ones, ["left", "right"])


# ---- agents ----------------------------------------------------------------------------------------------------------
class Deep:
    """An agent of another kind: it offers advice, as 32-bit numbers, and has no tables."""

    def __init__(self, agent):
        self._agent, self.task, self.settings = agent, agent.task, agent.settings

    def advice(self, state):
        names, advice = self._agent.advice(state)
        return names, advice.astype(np.float32)

    def preferences(self, state):
        return self.advice(state)[1].sum(axis=0)

    def act(self, state, draw=0.0):
        return self._agent.act(state, draw)


@pytest.mark.parametrize("gamma", [0.3, 0.4, 0.45, 0.49, 0.5, 0.51, 0.6, 0.9])
def test_the_three_fruits_turn_south_at_one_half(gamma):
    task = mad.make("three-fruits")
    found = theory.exact_agent(task, "egocentric", gamma).explain(task.initial_state(), "S", "N")
    assert found.advantage == pytest.approx(3 * gamma**2 - gamma - 2 * gamma**3)  # distances 2, 2, 2 against 1, 3, 3
    assert found.disagreement == pytest.approx(3 * gamma - max(3 * gamma**2, gamma + 2 * gamma**3))
    if gamma == 0.5:
        assert found.sentence.startswith("tie between South and North: fruits at (2, 0) and (2, 4)")
        assert set(found.greedy) == {"N", "W", "S", "E"}
    else:
        assert found.sentence.startswith(
            "goes South, into the wall, rather than North" if gamma > 0.5 else "South would"
        )
    assert (found.attractor, found.stuck) == (gamma > 0.5, gamma > 0.5)
    assert found.margin == pytest.approx(3 * gamma**2 - gamma - 2 * gamma**3)


def test_an_attractor_of_a_listed_world():
    task = mad.make("two-goal", r1=1.0, r2=0.5)  # waiting wins above gamma = 2/3
    for gamma in (0.6, 0.7):
        found = theory.exact_agent(task, "egocentric", gamma).explain(task.initial_state())
        assert (found.attractor, found.stable, found.stuck) == (gamma > 2 / 3,) * 3
        assert found.margin == pytest.approx(1.5 * gamma - 1.0)
    assert theory.exact_agent(task, "agnostic", 0.7).explain(task.initial_state()).attractor is None


@pytest.fixture(scope="module")
def rested():
    """Pac-Boy with egocentric advisors, who rest somewhere, and the trace of an episode."""
    agent = mad.MultiAdvisor(mad.make("pac-boy"), planning="egocentric", gamma=0.9, seed=1).learn(400_000)
    return agent, record(agent, 1, 3)


def test_where_pac_boy_rests_is_an_attractor(rested):
    agent, trace = rested
    assert trace.length[0] == 300
    assert not trace.terminated[0]
    last = trace.states(0)[-40:]
    cells = np.bincount(last[:, 0])
    resting = last[last[:, 0] == cells.argmax()][-1]
    found = agent.explain(resting)
    assert found.attractor
    assert found.stuck
    assert found.disagreement > 1
    solution = theory.board_solution(agent.task, resting, 0.9, agent)
    named = {one.label: one for one in theory.attractors(solution)}
    here = named[agent.task.board.name(int(resting[0]))]
    assert (here.stable, here.margin) == (found.stable, found.margin)
    start = agent.explain(agent.task.initial_state(3))
    assert not start.attractor
    assert start.margin < 0


def test_an_agent_without_tables_is_explained_alike(rested):
    agent, trace = rested
    for step in (0, 17, 120, 299):
        state = trace.step(0, step).state
        one, other = agent.explain(state), explain(Deep(agent), state)
        assert one.sentence == other.sentence
        assert one.msx_plus == other.msx_plus
        assert one.influence == other.influence
        assert (one.attractor, one.stable, one.stuck) == (other.attractor, other.stable, other.stuck)
        assert other.margin == pytest.approx(one.margin, abs=1e-5)
    solution, cell = learned_solution(agent, state)
    assert solution.preferences[cell] == pytest.approx(agent.preferences(state))


def test_a_step_of_a_trace_is_explained_as_its_state(rested):
    agent, trace = rested
    seen = trace.step(0, 41)
    assert explain_step(agent, trace, 0, 41).as_dict() == agent.explain(seen.state, seen.action).as_dict()
    assert explain_step(agent, trace, 0, 41, "North").against == "N"
    for step, message in ((300, "nothing is done at step 300"), (301, "there is no step 301")):
        refused(message, explain_step, agent, trace, 0, step)
    other = mad.MultiAdvisor(agent.task, planning="egocentric", gamma=0.9, seed=2)
    refused("of another agent", explain_step, other, trace, 0, 41)


def test_ghosts_and_discounts_of_their_own():
    task = mad.make("pac-boy")
    advisors = tuple(dataclasses.replace(f, gamma=0.5 if f.group == "fruits" else None) for f in task.advisors)
    agent = mad.MultiAdvisor(dataclasses.replace(task, advisors=advisors), planning="egocentric", gamma=0.95, seed=0)
    agent.learn(50_000)
    x = agent.task.initial_state(5)
    names, advice = agent.advice(x)
    own = np.where([name.startswith("fruit") for name in names], 0.5, 0.95)
    away = task.board.neighbour[x[0]] != x[0]
    margin = (own * advice.max(axis=1)).sum() - agent.preferences(x)[away].max()
    assert agent.explain(x).margin == pytest.approx(margin)


def test_nobody_has_a_say():
    agent = mad.MultiAdvisor(mad.make("pac-boy", ghosts=False)).learn(1000)
    empty = np.zeros(76, np.int64)
    found = agent.explain(empty)
    assert found.sentence == "goes North: no advisor has a say, so all actions tie"
    assert (found.attractor, found.stuck, found.names, found.disagreement) == (None, None, (), 0.0)
    assert found.greedy == ("N", "W", "S", "E")
    assert "no advisor" in str(found)


@pytest.mark.slow
def test_gymnasium_agents_are_explained_from_an_observation():
    advisors = [
        mad.Advisor("time", reward=lambda t: -1.0),
        mad.Advisor("cliff", reward=lambda t: -99.0 if t.reward == -100 else 0.0, active=lambda o: o >= 24),
    ]
    env = gymnasium.make("CliffWalking-v1", max_episode_steps=200)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, advisors), gamma=0.99).learn(60_000)
    found = agent.explain(30, against=2)  # just above the cliff: down is 2
    assert found.names == ("time", "cliff")
    assert found.advantage > 20
    assert found.msx_plus == ("cliff",)
    assert found.sentence.startswith("chooses right rather than down: cliff")
    assert found.attractor is None
    assert agent.explain(0).names == ("time",)
    trace = record(agent, 1)
    assert explain_step(agent, trace, 0, 0).as_dict() == agent.explain(36).as_dict()


def test_too_large_to_look_around():
    task = mad.make("fruit-grid", width=50, height=50, fruits=600)
    assert surroundings(mad.MultiAdvisor(task), task.initial_state()) == Surroundings()
