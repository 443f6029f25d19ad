"""Explanations under any aggregation: against silencing one advisor after the other, and sentences worked by hand."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multiadvisor as mad
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.core.aggregations import AGGREGATIONS, register_aggregation
from multiadvisor.core.aggregator import Aggregator, Team, aggregator_of
from multiadvisor.explain.ablation import alone, best, contributions, influence, rounding, without_each
from multiadvisor.explain.explanation import explain_advice
from multiadvisor.explain.leads import lead
from multiadvisor.runs.trace import explain_step
from refusal import refused

COMPASS = ["N", "W", "S", "E"]
SHIPPED = ("sum", "max", "p_norm", "majority", "ranks", "boltzmann_product", "boltzmann_sum", "normalised")
BY_GROUP = ("odd=max", "odd=majority,even=ranks", "odd=p_norm:3,even=normalised")


def least(advice, weights, parameter):
    """The least of all wishes; whoever has no weight is not asked."""
    heard = np.where(weights[..., None] != 0, weights[..., None] * advice, np.inf).min(axis=-2)
    return np.where(np.isinf(heard), 0.0, heard)


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Known here, and to no other test."""
    register_aggregation("least")(least)
    yield
    del AGGREGATIONS["least"]


def team(m):
    return Team("task", tuple(mad.Advisor(f"advisor {j}", group="odd" if j % 2 else "even") for j in range(m)))


def case(seed, m, actions, text):
    generator = np.random.default_rng(seed)
    advice = generator.integers(-8, 9, size=(m, actions)) / 8
    weights = generator.choice([-0.5, 0.0, 0.5, 1.0, 2.0], size=m)
    values = text if "=" not in text or m > 1 else "sum"
    return advice, weights, aggregator_of(team(m), values)


# ---- numbers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", [*SHIPPED, *BY_GROUP, "least"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.integers(1, 7), actions=st.integers(2, 4))
def test_what_an_advisors_silence_changes(text, seed, m, actions):
    advice, weights, aggregator = case(seed, m, actions, text)
    now, silent = aggregator.prefer(advice, weights), without_each(advice, weights, aggregator)
    share = contributions(advice, weights, aggregator, 0, 1)
    tolerance = rounding(advice, weights, aggregator)
    for j in range(m):
        others = np.where(np.arange(m) == j, 0.0, weights)
        without = aggregator.prefer(advice, others)
        assert silent[j] == pytest.approx(without, abs=1e-9)
        assert share[j] == pytest.approx((now[0] - now[1]) - (without[0] - without[1]), abs=1e-9)
        changed = (best(without, tolerance) != best(now, tolerance)).any()
        assert influence(advice, weights, aggregator)[j] == changed


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.integers(0, 7))
def test_of_a_sum_it_is_rdx_and_adds_up(seed, m):
    generator = np.random.default_rng(seed)
    advice, weights = generator.normal(size=(m, 3)), generator.normal(size=m)
    aggregator = aggregator_of(team(m), "sum")
    assert np.array_equal(contributions(advice, weights, aggregator, 2, 0), weights * (advice[:, 2] - advice[:, 0]))
    total = aggregator.prefer(advice, weights)
    assert contributions(advice, weights, aggregator, 2, 0).sum() == pytest.approx(total[2] - total[0], abs=1e-12)


@pytest.mark.parametrize("name", SHIPPED)
def test_additive_is_what_adds_up(name):
    generator, kind = np.random.default_rng(0), AGGREGATIONS[name]
    gaps = []
    for _ in range(50):
        advice, weights = generator.normal(size=(4, 3)), generator.uniform(0.5, 2, size=4)
        each = alone(kind, kind.parameter, advice, weights)
        gaps.append(np.abs(each.sum(axis=0) - kind(advice, weights)).max())
    assert kind.additive == (max(gaps) < 1e-12)


def test_thousands_under_a_maximum_cost_no_more_than_their_number():
    advice = np.random.default_rng(0).normal(size=(20_000, 4))
    aggregator = Aggregator(((AGGREGATIONS["max"], 0.0),), np.zeros(20_000, np.int64))
    silent = without_each(advice, np.ones(20_000), aggregator)  # [m, m, A] would be 12 GB
    top = np.sort(advice, axis=0)
    leads = advice.argmax(axis=0)
    for a in range(4):
        assert silent[leads[a], a] == top[-2, a]
        assert (np.delete(silent[:, a], leads[a]) == top[-1, a]).all()


def test_an_advisor_without_weight_neither_leads_nor_follows():
    advice, weights = np.array([[9.0, 0.0], [1.0, 0.5], [0.2, 0.8]]), np.array([0.0, 1.0, 1.0])
    aggregator = aggregator_of(team(3), "max")
    assert lead(advice, weights, aggregator)[:3] == (1, 0, 1.0)
    assert lead(advice, weights * 0, aggregator) is None
    assert contributions(advice, weights, aggregator, 0, 1)[0] == 0.0


# ---- sentences -------------------------------------------------------------------------------------------------------
FRUITS = ["fruit (0, 10)", "fruit (4, 2)", "fruit (9, 9)"]


def told(rows, names=FRUITS, groups=("fruits",) * 3, text="fruits=max", actions=COMPASS, **how):
    return explain_advice(names, np.array(rows), np.ones(len(rows)), actions, groups=groups, aggregation=text, **how)


LED = [[0.43, 0.38, 0.35, 0.35], [0.2, 0.41, 0.2, 0.2], [0.42, 0.1, 0.1, 0.1]]


def test_the_strongest_wish():
    found = told(LED)
    assert found.sentence == (
        "goes North: fruit at (0, 10), 0.43, is the strongest wish; the next, fruit at (4, 2), 0.41, would go West"
    )
    assert (found.msx_plus, found.msx_minus, found.disagreement) == ((), (), None)
    assert found.leader.next == "fruit (4, 2)"
    assert found.leader.margin == pytest.approx(0.02)
    kept = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert kept["aggregation"] == "fruits=max"
    assert kept["leader"] == {
        "advisor": "fruit (0, 10)", "action": "N", "value": 0.43, "next": "fruit (4, 2)", "next_action": "W",
        "next_value": 0.41, "margin": pytest.approx(0.02),
    }  # fmt: skip
    assert found.influence == {}  # another fruit, 0.42, goes North as well
    assert told(LED[:2], FRUITS[:2], ("fruits",) * 2).influence == {"fruit (0, 10)": ("W",)}
    assert "the strongest wish: fruit (0, 10) 0.430 for N, +0.020 ahead of fruit (4, 2) 0.410 for W" in str(found)
    assert "would lose" in str(found)


def test_of_one_mind():
    alike = [[0.5, 0.1, 0.1, 0.1], [0.4, 0.1, 0.1, 0.1], [0.3, 0.1, 0.1, 0.1]]
    found = told(alike)
    assert found.sentence == "goes North: fruit at (0, 10), 0.50, is the strongest wish, and nobody would go elsewhere"
    assert found.leader.next is None
    assert "no other advisor would act differently" in str(found)


def test_two_that_are_compared_on_request_or_tie():
    assert told(LED, against="E").sentence == (
        "goes North rather than East: fruit at (0, 10) has the strongest wish for both, 0.43 and 0.35"
    )
    assert told(LED, action="W").sentence == (
        "West would be worse than North: the strongest wish for West is fruit at (4, 2), 0.41, for North fruit at "
        "(0, 10), 0.43"
    )
    tied = [[0.5, 0.1, 0.1, 0.1], [0.1, 0.5, 0.1, 0.1], [0.0, 0.0, 0.0, 0.0]]
    assert told(tied).sentence == (
        "tie between North and West: the strongest wish for North is fruit at (0, 10), 0.50, for West fruit at "
        "(4, 2), 0.50"
    )


GHOSTS = (["ghost 1", *FRUITS], ("ghosts", "fruits", "fruits", "fruits"))


def test_fears_are_named_where_they_change_the_decision():
    names, groups = GHOSTS
    calm = told([[-0.01, 0.0, 0.0, 0.0], *LED], names, groups)
    assert "ghost" not in calm.sentence
    found = told([[-0.3, 0.0, 0.0, 0.0], *LED], names, groups)
    assert found.sentence == (
        "goes West: ghost 1, 0.30, outweighs the strongest wish, fruit at (0, 10), 0.43, which would go North; the "
        "strongest for West is fruit at (4, 2), 0.41"
    )
    assert found.influence["ghost 1"] == ("N",)
    assert found.table("W", "N")["ghost 1"] == 0.3
    assert told([[-0.3, 0.0, 0.0, 0.0], *LED], names, groups, action="N", against="W").sentence == (
        "North would be worse than West: the strongest wish for North is fruit at (0, 10), 0.43, for West fruit at "
        "(4, 2), 0.41; ghost 1, -0.30, speaks against North"
    )
    alone_now = told([[-0.3, 0.1, 0.0, 0.0]], names[:1], groups[:1], "ghosts=sum")
    assert alone_now.sentence == "goes West rather than South: ghost 1, 0.10, and nobody objects"


def test_votes():
    names = [f"advisor {j}" for j in range(5)]
    rows = [[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]]
    found = told(rows, names, [""] * 5, "majority", ["a", "b", "c"])
    assert found.sentence == "chooses a: 2.5 of 5 votes (advisor 0, advisor 1 and advisor 2); b has 1.5"
    assert told(rows, names, [""] * 5, "majority", ["a", "b", "c"], action="c", against="a").sentence == (
        "c would be worse than a: 1 of 5 votes against 2.5"
    )
    assert told(rows[2:3], names[:1], [""], "majority", ["a", "b", "c"]).sentence == (
        "tie between a and b: 0.5 of 1 votes each"
    )


def test_any_other_aggregation():
    names, rows = ["speed", "fuel", "noise"], [[3.0, 1.0], [2.0, 4.0], [0.0, 1.0]]
    found = told(rows, names, [""] * 3, "ranks", ["fast", "slow"])
    assert found.sentence == (
        "chooses slow rather than fast, 5.00 against 4.00 by ranks: fuel and noise speak for slow, and speed speaks "
        "against slow"
    )
    own = told(rows, names, [""] * 3, "least", ["fast", "slow"])
    assert own.preferences == {"fast": 0.0, "slow": 1.0}
    assert own.sentence == "chooses slow rather than fast, 1 against 0 by least: noise speaks for slow"
    assert own.aggregation == "least"
    refused("unknown aggregation 'leest'", told, rows, names, [""] * 3, "leest", ["fast", "slow"])


def test_what_is_not_finite_is_said_to_be():
    @register_aggregation("broken")
    def broken(advice, weights, parameter):
        return advice.sum(axis=-2) * np.nan

    try:
        refused("aggregation 'broken' gives what is not finite", told, LED, text="broken")
    finally:
        del AGGREGATIONS["broken"]


# ---- agents ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("text", ["fruits=max", "majority", "ranks"])
def test_an_agent_is_explained_as_it_acts(text, tmp_path):
    task = mad.make("pac-boy")
    agent = mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, aggregation=text).learn(20_000)
    trace = record(agent, 1, 3)
    for step in (0, 5, 20):
        state = trace.step(0, step).state
        found = agent.explain(state)
        assert list(found.preferences.values()) == pytest.approx(agent.preferences(state).tolist(), abs=1e-12)
        assert found.action in found.greedy
        assert (found.attractor is not None, found.aggregation) == (True, text)
    record(agent, 1, 3, advice=True).save(tmp_path / "a.trace")  # with its advice, it is explained from the file alone
    again = read_trace(tmp_path / "a.trace")
    assert explain_step(agent, again, 0, 5).as_dict() == explain_step(agent, trace, 0, 5).as_dict()


@pytest.mark.slow
def test_python_environments_too():
    import gymnasium

    advisors = [
        mad.Advisor("time", reward=lambda t: -1.0),
        mad.Advisor("cliff", reward=lambda t: float(t.reward == -100)),
    ]
    env = gymnasium.make("CliffWalking-v1", max_episode_steps=50)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, advisors), aggregation="max").learn(500)
    trace = record(agent, 1)
    recorded = explain_step(agent, trace, 0, 0).as_dict()
    asked = agent.explain(36, trace.step(0, 0).action).as_dict()
    # It falls down the cliff for ever: one advisor is paid for it, says the table; nothing together, says the episode.
    assert (recorded.pop("stuck"), asked.pop("stuck")) == (True, False)
    assert recorded == asked
    assert agent.explain(36).leader is not None
