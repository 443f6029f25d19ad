"""Statements of the paper's theory, tried on random finite MDPs, gadgets and boards with the exact solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.attractors import attractor_states, critical_gamma
from multiadvisor.analysis.theory.bounds import GRID, gamma_bound, progressive
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP, LocalMDP
from multiadvisor.analysis.theory.solve_report import PAPER
from multiadvisor.analysis.theory.solver import best_actions, evaluate, greedy_policy, optimum, solve, solve_local
from multiadvisor.core.plannings import bootstrap, egocentric
from multiadvisor.envs.builtin import make
from multiadvisor.errors import unknown
from multiadvisor.runs.jobs import Job, Tell, kind
from multiadvisor.studies.study import Evidence, Plan

GOALS = ((1.0, 1.0), (1.0, 2.0), (3.0, 0.5), (10.0, 9.0))
BRIDGES = (1, 2, 3, 4, 5)
SHOPS = ((2, 2), (3, 2), (2, 5), (4, 2))  # jobs, units of work
TD_STEPS = 4_000_000
STATES, ACTIONS, ADVISORS = 12, 4, 3  # of the random MDPs
MANY, SPARSE = 8, 0.03  # advisors, and where each is paid, so that they disagree enough for attractors


def random_mdp(instance: int) -> FiniteMDP:
    """A random finite MDP with full states."""
    options = {"states": STATES, "actions": ACTIONS, "advisors": ADVISORS, "instance": instance}
    return enumerate_task(make("random-mdp", **options), full=True)


def cancellable_mdp(instance: int, advisors: int) -> FiniteMDP:
    """A random deterministic MDP in which every action, done twice, leads back; each advisor is paid in few places."""
    generator = np.random.default_rng((instance, 4))
    transition = np.zeros((STATES, ACTIONS, STATES))
    for action in range(ACTIONS):
        order, to = generator.permutation(STATES), np.arange(STATES)
        to[order[::2]], to[order[1::2]] = order[1::2], order[::2]
        transition[np.arange(STATES), action, to] = 1.0
    pays = generator.random((advisors, STATES, ACTIONS)) < SPARSE
    return FiniteMDP.from_arrays(transition, pays * generator.random(pays.shape), weights=np.ones(advisors))


def _inversion(mdps: int, gamma: float) -> dict[str, Any]:
    """By how much egocentric advisors overestimate: where they disagree, and where they are all of one mind."""
    least, over, agreed, backup = [], [], [], []
    for instance in range(mdps):
        mdp = random_mdp(instance)
        found, best = solve(mdp, "egocentric", gamma), optimum(mdp, gamma)[0]
        least.append(float((found.preferences - best).min()))
        choice = best_actions(found.values.reshape(-1, ACTIONS)).reshape(ADVISORS, STATES, ACTIONS)
        disagree = ~choice.all(axis=0).any(axis=-1)  # [S] no action suits everybody
        gap = found.preferences.max(axis=-1) - best.max(axis=-1)
        over.append(float(gap[disagree].mean() / np.abs(best).mean()) if disagree.any() else 0.0)
        ahead = (mdp.going_on * found.preferences.max(axis=-1)[mdp.successor]).sum(axis=-1)
        backup.append(float((found.preferences - (mdp.reward @ mdp.weights + gamma * ahead)).min()))
        same = replace(mdp, reward=mdp.reward[:, :, :1] * np.arange(1.0, ADVISORS + 1))
        one_mind = solve(same, "egocentric", gamma).preferences - optimum(same, gamma)[0]
        agreed.append(float(np.abs(one_mind).max()))
    return {"least": least, "over": over, "agreed": agreed, "backup": backup}


def _agnostic(mdps: int, gamma: float) -> dict[str, Any]:
    """Local against global agnostic values, and the greedy policy on them against the random one and the optimum."""
    apart, gain, short = [], [], []
    for instance in range(mdps):
        mdp = random_mdp(instance)
        found = solve(mdp, "agnostic", gamma)
        together, _, _ = solve_local(LocalMDP(mdp.successor, mdp.going_on, mdp.reward @ mdp.weights), gamma, "agnostic")
        apart.append(float(np.abs(found.preferences - together).max()))
        acted = evaluate(mdp, found.policy, gamma)
        value = (acted.preferences * found.policy).sum(axis=-1)
        gain.append(float((value - together.mean(axis=-1)).min()))
        best = optimum(mdp, gamma)[0].max(axis=-1)
        short.append(float(((best - value) / np.abs(best).mean()).mean()))
    return {"apart": apart, "gain": gain, "short": short}


def _empathic(mdps: int, gamma: float) -> dict[str, Any]:
    """Empathic planning with full states against the optimum; with local states, whether it settles."""
    apart = []
    for instance in range(mdps):
        mdp = random_mdp(instance)
        apart.append(float(np.abs(solve(mdp, "empathic", gamma).preferences - optimum(mdp, gamma)[0]).max()))
    settled = []
    for instance in range(mdps):
        generator = np.random.default_rng((instance, 5))
        view = generator.integers(STATES // 2, size=(ADVISORS, STATES))
        view[:, : STATES // 2] = np.arange(STATES // 2)  # every local state occurs
        settled.append(bool(solve(replace(random_mdp(instance), local=view), "empathic", gamma).converged))
    return {"apart": apart, "settled": settled}


def _staying(mdps: int, gamma: float, advisors: int) -> dict[str, Any]:
    """Theorem 2: Definition 1 in a state against what the aggregator does there once it may stay."""
    agree, attracting = [], 0
    for instance in range(mdps):
        mdp = cancellable_mdp(instance, advisors)
        found = solve(mdp, "egocentric", gamma)
        own = bootstrap(egocentric, found.values.reshape(-1, ACTIONS)).reshape(advisors, STATES)
        inequality = found.preferences.max(axis=-1) < gamma * (mdp.weights @ own) - 1e-12
        outcomes = mdp.successor.shape[-1]
        still = np.broadcast_to(np.arange(STATES)[:, None, None], (STATES, 1, outcomes))
        sure = np.zeros((STATES, 1, outcomes))
        sure[:, :, 0] = 1.0
        wider = replace(
            mdp, actions=(*mdp.actions, "stay"), successor=np.concatenate([mdp.successor, still], axis=1),
            probability=np.concatenate([mdp.probability, sure], axis=1),
            final=np.concatenate([mdp.final, np.zeros((STATES, 1, outcomes), bool)], axis=1),
            reward=np.concatenate([mdp.reward, np.zeros((STATES, 1, advisors))], axis=1),
        )  # fmt: skip
        chosen = best_actions(solve(wider, "egocentric", gamma).preferences)
        stays = chosen[:, -1] & ~chosen[:, :-1].any(axis=-1)
        agree.append(float((inequality == stays).mean()))
        attracting += int(inequality.sum())
    return {"agree": agree, "attractors": attracting, "states": STATES * mdps}


def _bound(mdps: int, advisors: int) -> dict[str, Any]:
    """Theorem 4 at its own bound; how far the attractor-free policy is from the optimum; attractors at 0.9 beside."""
    there, beyond, short, premises = [], [], [], []
    for instance in range(mdps):
        mdp = cancellable_mdp(instance, advisors)
        bound = gamma_bound(mdp)
        premises.append(bound.gamma is not None)
        gamma = 1.0 / (ACTIONS - 1)
        found = solve(mdp, "egocentric", gamma)
        there.append(int(attractor_states(found).sum()))
        beyond.append(int(attractor_states(solve(mdp, "egocentric", 0.9)).sum()))
        acted, best = evaluate(mdp, found.policy, gamma), optimum(mdp, gamma)[0].max(axis=-1)
        value = (acted.preferences * found.policy).sum(axis=-1)
        short.append(float(((best - value) / best.mean()).max()))
    return {"attractors": there, "beyond": beyond, "short": short, "premises": premises}


def _thresholds() -> dict[str, Any]:
    """Where attractors begin in the paper's own examples: found by the solver, and as the paper says."""
    rows = []
    cases = [("two-goal", {"r1": r1, "r2": r2}) for r1, r2 in GOALS] + [("three-fruits", {}), ("four-fruits", {})]
    for name, options in cases:
        task = make(name, **options)
        found = critical_gamma(enumerate_task(task))
        rows.append({"task": name, "options": options, "found": found, "paper": PAPER[name](task.options)})
    above = solve(enumerate_task(make("two-goal", r1=1.0, r2=2.0)), "egocentric", 0.9).preferences[0]
    return {"rows": rows, "unequal": above.tolist()}


def _scheduling() -> dict[str, Any]:
    """Resource scheduling at many gammas: progressive? any attractor? And navigation: progressive?"""
    regressions, found = 0, 0
    for jobs, units in SHOPS:
        mdp = enumerate_task(make("resource-scheduling", jobs=jobs, work=units))
        for gamma in GRID:
            solution = solve(mdp, "egocentric", gamma)
            regressions += len(progressive(solution))
            found += int(attractor_states(solution).sum())
    walking = [
        len(progressive(solve(enumerate_task(make(name)), "egocentric", gamma)))
        for name in ("three-fruits", "four-fruits") for gamma in GRID
    ]  # fmt: skip
    return {"cases": len(SHOPS) * len(GRID), "regressions": regressions, "attractors": found, "navigation": walking}


def _bridges(gamma: float) -> dict[str, Any]:
    """Who sets foot on a bridge, and what that is worth at its bank against the optimum."""
    rows = []
    for length in BRIDGES:
        mdp = enumerate_task(make("bridge", length=length), full=True)
        best = float(optimum(mdp, gamma)[0][0].max())
        for planning in ("egocentric", "agnostic", "empathic"):
            found = solve(mdp, planning, gamma)
            policy = greedy_policy(found.preferences)
            value = float((evaluate(mdp, policy, gamma).preferences * policy).sum(axis=-1)[0])
            rows.append({"length": length, "planning": planning, "crosses": float(policy[0, mdp.actions.index("E")]),
                         "value": value, "best": best})  # fmt: skip
    return {"rows": rows}


def _learning(seed: int, gamma: float) -> dict[str, Any]:
    """Theorem 1: temporal differences with a decaying learning rate against the exact fixed points."""
    rows = []
    for planning in ("egocentric", "agnostic"):
        task = make("random-mdp", states=STATES, actions=ACTIONS, advisors=ADVISORS, instance=seed)
        exact = solve(enumerate_task(task), planning, gamma)
        agent = MultiAdvisor(task, planning=planning, gamma=gamma, alpha=1.0, alpha_half=1000, epsilon=0.5, seed=seed)
        errors, done = [], 0
        scale = float(np.abs(exact.values).mean())
        for steps in (TD_STEPS // 100, TD_STEPS // 10, TD_STEPS):
            agent.learn(steps - done, progress=False)
            done = steps
            learned = np.array([agent.values(j)[exact.mdp.local[j]] for j in range(task.n)])
            errors.append(float(np.abs(learned - exact.values).mean()) / scale)
        rows.append({"planning": planning, "errors": errors})
    return {"rows": rows, "steps": TD_STEPS}


@kind("theory", lease=600.0)
def work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """One of the checks, by name."""
    given = {name: value for name, value in config.items() if name != "check"}
    if config["check"] not in CHECKS:
        raise unknown("check", config["check"], CHECKS)
    return CHECKS[config["check"]](**given)


CHECKS: dict[str, Callable[..., dict[str, Any]]] = {
    "inversion": _inversion, "agnostic": _agnostic, "empathic": _empathic, "staying": _staying, "bound": _bound,
    "thresholds": _thresholds, "scheduling": _scheduling, "bridges": _bridges, "learning": _learning,
}  # fmt: skip


def _job(check: str, **config: Any) -> Job:
    return Job("theory", {"check": check, **config})


def named_jobs(plan: Plan) -> dict[str, Job]:
    """The checks of a plan, by name."""
    many = {"mdps": plan.mdps}
    return {
        **{name: _job(name, **many, gamma=0.9) for name in ("inversion", "agnostic", "empathic")},
        "staying": _job("staying", **many, gamma=0.9, advisors=MANY),
        "bound": _job("bound", **many, advisors=MANY),
        "thresholds": _job("thresholds"), "scheduling": _job("scheduling"),
        "bridges": _job("bridges", gamma=0.9),
    }  # fmt: skip


def learning_jobs(plan: Plan) -> list[Job]:
    """Theorem 1, a few times."""
    return [_job("learning", seed=seed, gamma=0.9) for seed in range(min(plan.seeds, 5))]


def check(evidence: Evidence, name: str) -> dict[str, Any]:
    """The result of a check."""
    return evidence.result(named_jobs(evidence.plan)[name])
