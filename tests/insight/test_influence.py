"""Influence and calibration against brute force: each advisor left out, Monte Carlo returns added up."""

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.analysis.calibration import calibration, counts, returns
from multiadvisor.analysis.episode_report import report, report_on
from multiadvisor.analysis.episodes import play
from multiadvisor.analysis.influence import group_influence, influence
from multiadvisor.analysis.moments import disagreements, moments, pick, stakes
from multiadvisor.core.aggregator import Team, aggregator_of
from multiadvisor.task import Advisor
from refusal import refused

AGGREGATIONS = ("sum", "max", "max_plus", "p_norm:3", "majority", "ranks", "boltzmann_sum", "normalised", "a=max")


def some_advice(seed, steps=20, n=5, actions=4):
    generator = np.random.default_rng(seed)
    advice = np.round(generator.normal(size=(steps, n, actions)), 1)  # rounded, so that there are ties
    heard = generator.choice([0.0, 1.0, 0.5, 2.0], size=(steps, n))
    return advice, heard


def left_out(aggregator, advice, heard, silent, draws):
    """The action that the aggregator takes, ties drawn, if those in `silent` are not there at all."""
    who = np.setdiff1d(np.flatnonzero(heard), silent)
    if not len(who):
        return int(draws * len(advice[0])), np.zeros(advice.shape[1])
    preferences = aggregator._replace(of=aggregator.of[who]).prefer(advice[who], heard[who])
    best = np.flatnonzero(preferences >= preferences.max() - 1e-9)
    return int(best[int(draws * len(best))]), preferences


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_influence_is_what_leaving_each_advisor_out_brings(aggregation):
    advice, heard = some_advice(3)
    advisors = tuple(Advisor(f"f{j}", group="a" if j < 3 else "b") for j in range(5))
    aggregator = aggregator_of(Team("", advisors), aggregation)
    now = aggregator.prefer(advice, heard)
    choice = now.argmax(axis=1)
    found = influence(advice, heard, aggregator, choice)
    together = group_influence(advice, heard, aggregator, choice, [np.array([0, 1, 2]), np.array([3, 4])])
    for k, silent in enumerate([[0], [1], [2], [3], [4], [0, 1, 2], [3, 4]]):
        share, fall = 0.0, 0.0
        for step in range(len(advice)):
            if not heard[step, silent].any():
                continue
            draws = (np.arange(12) + 0.5) / 12  # every tie of up to four actions gets its share
            taken = [left_out(aggregator, advice[step], heard[step], silent, draw) for draw in draws]
            before = {left_out(aggregator, advice[step], heard[step], [], draw)[0] for draw in draws}
            if {action for action, _ in taken} != before:
                share += np.mean([action != choice[step] for action, _ in taken])
                if choice[step] not in {action for action, _ in taken}:
                    fall += taken[0][1].max() - taken[0][1][choice[step]]
        seen = found.of(k) if k < 5 else together.of(k - 5)
        assert seen["changed"] == pytest.approx(share / len(advice), abs=1e-9)
        assert seen["margin"] * seen["changed"] * len(advice) == pytest.approx(fall, abs=1e-6)
        assert seen["spoke"] == (heard[:, silent] != 0).any(axis=1).sum()
    assert found.changed.max() > 0.1


def test_who_has_no_say_has_no_influence_and_who_is_alone_has_all():
    advice = np.tile(np.array([[[0.0, 1.0], [5.0, 0.0]]]), (4, 1, 1))
    aggregator = aggregator_of(Team("", (Advisor("a"), Advisor("b"))), "sum")
    found = influence(advice, np.tile([1.0, 0.0], (4, 1)), aggregator, np.ones(4, int))
    assert found.changed.tolist() == [0.5, 0.0]  # without anybody the action is drawn
    assert found.spoke.tolist() == [4, 0]
    assert group_influence(advice, np.ones((4, 2)), aggregator, np.zeros(4, int), []).spoke.tolist() == []


def test_returns_are_sums_of_what_followed():
    generator = np.random.default_rng(1)
    paid, ended = generator.normal(size=30), generator.random(30) < 0.2
    found = returns(paid, ended, 0.9)
    for step in range(30):
        total, weight = 0.0, 1.0
        for later in range(step, 30):
            total, weight = total + weight * paid[later], weight * 0.9
            if ended[later]:
                break
        assert found[step] == pytest.approx(total)


def test_steps_whose_returns_were_cut_off_do_not_count():
    there, ended = np.ones(60, bool), np.zeros(60, bool)
    assert counts(there, ended, 0.9, True).all()
    known = counts(there, ended, 0.9, False)
    assert known.sum() == 60 - 43  # 0.9 ** 44 is below a hundredth
    assert known[:17].all()
    assert not counts(there, ended, 1.0, False).any()
    ended[29] = True  # what follows is nothing, or another part
    assert counts(there, ended, 1.0, False).tolist() == [step < 30 for step in range(60)]
    ones, episodes, cut = np.ones(60), np.array([0, 60]), np.zeros(1, bool)
    assert calibration(ones, ones, ones > 1, ones > 1, episodes, cut, 1.0).bias is None  # it never had a part


def test_where_every_episode_is_cut_off_the_own_value_stands_for_the_rest():
    ones, episodes, cut = np.ones(60), np.array([0, 60]), np.zeros(1, bool)
    right = calibration(100 * ones, ones, ones > 0, ones > 1, episodes, cut, 0.99)  # 1 in every step for ever
    assert right.completed
    assert (right.steps, right.bias, right.correlation) == (59, pytest.approx(0.0), None)
    ended = calibration(100 * ones, ones, ones > 0, ones > 1, episodes, ~cut, 0.99)
    assert not ended.completed
    assert ended.bias == pytest.approx(100 - np.mean([(1 - 0.99**k) / 0.01 for k in range(1, 61)]))


def test_calibration_agrees_with_monte_carlo_within_its_error():
    """A finite world with chance in it: exact values of the behaviour are right, others are off by what is added."""
    agent = mad.MultiAdvisor(mad.make("dollars-and-euros", failure=0.5), planning="empathic", gamma=0.9, alpha_half=300)
    episodes = play(agent.learn(60_000, progress=False), 400)
    said = report_on(episodes)
    for j, known in enumerate(said.calibration):
        followed = np.concatenate([
            [sum(0.9**k * r for k, r in enumerate(episodes.parts.paid[t : episodes.span(g).stop, j]))
             for t in range(episodes.span(g).start, episodes.span(g).stop)]
            for g in range(len(episodes))
        ])  # fmt: skip
        predicted = episodes.advice[np.arange(len(episodes.choice)), j, episodes.choice]
        assert known.steps == len(followed)
        assert known.followed == pytest.approx(followed.mean())
        assert known.bias == pytest.approx((predicted - followed).mean())
        assert abs(known.bias) < 4 * known.error + 0.01
        mine = episodes.parts.paid[:, j], episodes.asked[:, j], episodes.parts.ended[:, j]
        off = calibration(predicted + 0.5, *mine, episodes.first, episodes.terminated, 0.9)
        assert off.bias == pytest.approx(known.bias + 0.5)
        assert off.correlation == (None if known.correlation is None else pytest.approx(known.correlation))


def test_own_gamma_and_what_a_value_means():
    task = mad.make("two-goal", gammas={"goal 1": 0.5})
    said = report(mad.MultiAdvisor(task, planning="goal 1=egocentric,empathic").learn(500, progress=False), 2)
    assert said.expects == ("that its own best actions follow", "what the aggregator does")
    assert "goal 1 expects that its own best actions follow" in str(said)


def test_the_episodes_are_those_of_an_evaluation():
    agent = mad.MultiAdvisor(mad.make("pac-boy"), seed=2).learn(20_000, progress=False)
    episodes, seen = play(agent, 4, seed=5), agent.evaluate(4, seeds=(5,)).played
    assert np.array_equal(episodes.played.length, seen.length)
    assert np.allclose(episodes.played.score, seen.score)
    assert np.allclose(episodes.played.returns, seen.returns)
    assert np.allclose(episodes.preferences[0], agent.preferences(episodes.positions[0]))
    data = report_on(episodes).as_dict()
    assert set(data["groups"]) == {"ghosts", "fruits"}
    assert sum(row["length"] for row in data["episodes"]) == data["steps"]
    assert data["advisors"]["ghost 1"]["return"] == pytest.approx(seen.returns[:, 0].mean())


@pytest.mark.slow
def test_no_two_decisive_moments_are_of_nearly_the_same_numbers():
    """Cells have borders: what lies on both sides of one looks the same to everybody."""
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium("CartPole-v1", bins="60,-2:2:60,60,-2:2:60"), seed=1).learn(
        3_000, progress=False
    )
    episodes = play(agent, 12)
    seen = np.array([episodes.positions[episodes.walk(one.episode).start + one.step] for one in moments(episodes, 6)])
    near = np.ptp(np.array(episodes.positions), axis=0) / 10
    assert len(seen) > 1
    for k, one in enumerate(seen):
        assert all((np.abs(one - other) >= 0.9 * near).any() for other in seen[:k])


def test_an_advisor_with_the_name_of_an_action_is_called_a_term():
    advice = np.array([[0.0, 1.0], [2.0, 0.0]])
    why = mad.explain.explain_advice(["main engine", "fuel"], advice, np.ones(2), ["nothing", "main engine"])
    assert why.sentence == "chooses nothing rather than main engine: fuel, 2.00, outweighs the term main engine, -1.00"
    assert set(why.differences) == {"main engine", "fuel"}


def test_decisive_moments_are_far_apart_and_no_two_alike():
    score, first = np.array([5.0, 4.9, 1.0, 0.5, 4.8, 0.1]), np.array([0, 4, 6])
    assert pick(score, first, lambda one, other: False, 3, apart=2) == [0, 4, 2]
    assert pick(score, first, lambda one, other: {one, other} == {0, 4}, 9, apart=1) == [0, 1, 2, 3, 5]
    agent = mad.MultiAdvisor(mad.make("pac-boy"), seed=0).learn(100_000, progress=False)
    episodes = play(agent, 4)
    found = moments(episodes, 5)
    assert len(found) == 5
    stake, odds = stakes(episodes.preferences), disagreements(episodes.advice, episodes.applied, episodes.choice)
    assert all(one.stake > np.median(stake) and one.disagreement > np.median(odds) for one in found)
    assert all("goes " in one.reason for one in found)
    one = found[0]
    here = agent.explain(episodes.positions[episodes.walk(one.episode).start + one.step])
    assert one.disagreement == pytest.approx(here.disagreement, abs=1e-9)


def test_who_acts_by_plans_is_told_so():
    agent = mad.MultiAdvisor(mad.make("three-fruits"), planning="egocentric", aggregation="gpi")
    refused("acts by plans, not by advice alone", play, agent, 1)
