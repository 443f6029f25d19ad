"""General value functions: banks that learn from every transition, pseudo-rewards, ends that are no end, targets."""

import dataclasses

import numpy as np
import pytest
from test_parity import assert_compiled_parity, random_mdp

import multiadvisor as mad
from agents import in_pieces, same
from multiadvisor.analysis.theory import enumerate_task
from refusal import refused

TARGETS = {0: 1, 1: (0.2, 0.3, 0.5), 2: 0}


def goals(**options):
    return mad.make("hra-fruits", **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planning", "aggregation", "noise"),
    [("egocentric", "max", 0.0), ("agnostic", "sum", 0.1), ("fruit (0, 0)=sarsa,empathic", "sum", 0.0)],
)
def test_a_bank_learns_as_the_reference_does(planning, aggregation, noise):
    how = {"planning": planning, "aggregation": aggregation, "noise": noise, "epsilon": 0.3}
    assert_compiled_parity(goals(limit=40), 1200, **how)


def test_everybody_learns_from_every_transition_and_the_score_is_the_fruit():
    agent = mad.MultiAdvisor(goals(), planning="egocentric", alpha=1.0, epsilon=1.0, aggregation="max")
    agent.learn(20_000)
    plain = mad.MultiAdvisor(goals(heads="fruits"), planning="egocentric", alpha=1.0, epsilon=1.0, aggregation="max")
    plain.learn(20_000)
    seen, fewer = agent.evaluate(100), plain.evaluate(100)
    assert seen.score == 5.0
    assert seen.terminated == 1.0
    assert seen.length < 30
    assert abs(seen.length - fewer.length) < 1.5, "what both can learn is the same"
    values, steps = agent.values("fruit (4, 4)"), abs(np.indices((10, 10)) - 4).sum(axis=0).ravel()
    np.testing.assert_allclose(values.max(axis=1), 0.9 ** np.where(steps > 0, steps - 1, 1), rtol=1e-12)
    assert agent._learner.score_sum <= 5 * agent.episodes, "pseudo-rewards are no score"


def test_a_run_that_is_cut_goes_on_with_the_same_bytes(tmp_path):
    how = {"planning": "egocentric", "aggregation": "max", "epsilon": 0.5}
    whole, part = mad.MultiAdvisor(goals(), **how), mad.MultiAdvisor(goals(), **how)
    assert same(in_pieces(part, None, tmp_path, 333, 444), whole.learn(777))


def test_only_places_with_fruit_have_a_say():
    task = goals()
    agent = mad.MultiAdvisor(task, planning="egocentric").learn(3000)
    x = task.initial_state(3)
    names, _ = agent.advice(x)
    assert list(names) == [task.names[k] for k in np.flatnonzero(x[1:])]


@pytest.mark.slow
def test_the_task_holds_what_it_promises():
    for heads in ("goals", "fruits", "whole"):
        assert not mad.check_task(goals(heads=heads)).defects
    refused("heads", goals, heads="hydra")
    refused("pseudo-rewards", enumerate_task, goals(), goals().initial_state())


# ---- a target policy that was given ----------------------------------------------------------------------------------
def with_targets(task, target=TARGETS.__getitem__):
    advisors = (dataclasses.replace(task.advisors[0], target=target), *task.advisors[1:])
    return dataclasses.replace(task, advisors=advisors)


def test_a_given_policy_is_valued():
    task = with_targets(random_mdp(3, 3, 3, 1))
    assert_compiled_parity(task, 1000, planning="egocentric", epsilon=1.0)
    agent = mad.MultiAdvisor(task, planning="egocentric", epsilon=1.0, alpha=0.5, alpha_half=1000, gamma=0.8)
    agent.learn(300_000)
    mdp = enumerate_task(dataclasses.replace(task, advisors=random_mdp(3, 3, 3, 1).advisors))
    policy = np.array([np.eye(3)[1], TARGETS[1], np.eye(3)[0]])
    flow = np.zeros((3, 3, 3))  # [state, action, next]
    for state, action, k in np.ndindex(mdp.successor.shape):
        flow[state, action, mdp.successor[state, action, k]] += mdp.going_on[state, action, k]
    moved = np.einsum("sa,sat->st", policy, flow)
    value = np.linalg.solve(np.eye(3) - 0.8 * moved, (policy * mdp.reward[:, :, 0]).sum(axis=1))
    np.testing.assert_allclose(agent.values(0), mdp.reward[:, :, 0] + 0.8 * flow @ value, atol=0.05)


@pytest.mark.parametrize("wrong", [3, -1, (0.5, 0.5), (0.5, 0.5, 0.5), (-1.0, 1.0, 1.0)])
def test_a_policy_that_is_none(wrong):
    refused("target of advisor", mad.MultiAdvisor, with_targets(random_mdp(3, 3, 2, 1), lambda state: wrong))


def test_targets_need_tables_of_a_compiled_world_and_a_policy():
    refused(r"give advisor .* one with target=", mad.MultiAdvisor, random_mdp(3, 3, 2, 1), planning="target")
    env = mad.Task.from_gymnasium("FrozenLake-v1", [mad.Advisor("goal", target=lambda state: 0)])
    refused("compiled worlds", mad.MultiAdvisor, env)
