"""Statements of the paper's theory and their premises, tried by the solver on random finite MDPs, gadgets, boards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.attractors import attractor_states, critical_gamma
from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.analysis.theory.bounds import GRID, bound_of, gamma_bound, progressive
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP, LocalMDP
from multiadvisor.analysis.theory.solve_report import PAPER
from multiadvisor.analysis.theory.solver import (
    LOCAL,
    Solution,
    best_actions,
    evaluate,
    greedy_policy,
    optimum,
    solve,
    solve_local,
    visits,
)
from multiadvisor.core.aggregations import AGGREGATIONS
from multiadvisor.envs.registry import make
from multiadvisor.errors import unknown
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.paper.tours import FIRST_BOARD, walk
from multiadvisor.studies.study import Evidence, Plan

GOALS = ((1.0, 1.0), (1.0, 2.0), (3.0, 0.5), (10.0, 9.0))
BRIDGES = (1, 2, 3, 4, 5)
SHOPS = ((2, 2), (3, 2), (2, 5), (4, 2))  # jobs, units of work
SMALL = "G..\n.P.\n"  # a maze that can be enumerated, ghost and fruit together
SLIPS = (0.1, 0.3)  # how often a move goes elsewhere
EPSILONS = (0.0, 0.05, 0.1, 0.2)
TOLL = 0.2
GAMMA, LOW = 0.9, 0.4
TD_STEPS = RANDOM_STEPS = 4_000_000
STATES, ACTIONS, ADVISORS = 12, 4, 3  # of the random MDPs
BOUND = 1 / (ACTIONS - 1)  # of Theorem 4
MANY, SPARSE = 8, 0.03  # advisors, and where each is paid, so that they disagree enough for attractors
FEW = 40  # of what takes long: MDPs, boards
ROUNDS, RATE, SETTLED = 3_000, 0.1, 1e-6  # of temporal differences in expectation, and when nothing moves any more


# ---- checks by name --------------------------------------------------------------------------------------------------
Check = Callable[..., dict[str, Any]]
CHECKS: dict[str, Check] = {}


def checked(check: Check) -> Check:
    """Registers a check by its name; its parameters `mdps` and `boards` are those of a plan."""
    CHECKS[check.__name__.strip("_")] = check
    return check


def checked_on_mdps(look: Check) -> Check:
    """The same of a function of one instance: a list over so many MDPs for each figure that it finds."""

    def check(mdps: int) -> dict[str, Any]:
        rows = [look(instance) for instance in range(mdps)]
        return {figure: [row[figure] for row in rows] for figure in rows[0]}

    CHECKS[look.__name__.strip("_")] = check
    return look


@kind("theory", lease=600.0)
def work(config: dict[str, Any]) -> dict[str, Any]:
    """One of the checks, by name."""
    given = {name: value for name, value in config.items() if name != "check"}
    if config["check"] not in CHECKS:
        raise unknown("check", config["check"], CHECKS)
    return CHECKS[config["check"]](**given)


def check_job(name: str, plan: Plan) -> Job:
    """A check at the length of a plan."""
    sizes = signature(CHECKS[name]).parameters
    return Job("theory", {"check": name, **{size: getattr(plan, size) for size in sizes}})


def check(evidence: Evidence, name: str) -> dict[str, Any]:
    """The result of a check."""
    return evidence.result(check_job(name, evidence.plan))


def learning_job(seed: int, aggregation: str = "sum") -> Job:
    """Theorem 1 on a random MDP."""
    return Job("theory", {"check": "learning", "seed": seed, "aggregation": aggregation})


def learning_jobs(plan: Plan) -> list[Job]:
    """Theorem 1, a few times."""
    return [learning_job(seed) for seed in range(min(plan.seeds, 5))]


def aggregation_jobs() -> dict[str, Job]:
    """Theorem 1 under every aggregation of this package."""
    return {name: learning_job(0, name) for name in AGGREGATIONS}


# ---- random MDPs -----------------------------------------------------------------------------------------------------
def random_mdp(instance: int) -> FiniteMDP:
    """A random finite MDP with full states."""
    task = make("random-mdp", states=STATES, actions=ACTIONS, advisors=ADVISORS, instance=instance)
    return enumerate_task(task, full=True)


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


def with_stay(mdp: FiniteMDP, where: np.ndarray) -> FiniteMDP:
    """The MDP with a further action: it stays for nothing in these states [S] bool, and is the first one elsewhere."""
    states, outcomes = mdp.states, mdp.successor.shape[-1]
    stays = where[:, None]
    sure = np.arange(outcomes) == 0

    def wider(table: np.ndarray, staying: np.ndarray) -> np.ndarray:
        """The table with an entry for the further action."""
        first = table[:, 0]
        chosen = np.where(stays, np.broadcast_to(staying, first.shape), first)
        return np.concatenate([table, chosen[:, None]], axis=1)

    return replace(
        mdp, actions=(*mdp.actions, "stay"), successor=wider(mdp.successor, np.arange(states)[:, None]),
        probability=wider(mdp.probability, sure), final=wider(mdp.final, np.zeros(1, bool)),
        reward=wider(mdp.reward, np.zeros(1)),
    )  # fmt: skip


def definition_1(mdp: FiniteMDP) -> tuple[np.ndarray, np.ndarray]:
    """[S] bool: the strict inequality of Definition 1; and [n, S] what each advisor expects at best."""
    found = solve(mdp, "egocentric", GAMMA)
    own = found.values.max(axis=-1)
    return found.preferences.max(axis=-1) < GAMMA * (mdp.weights @ own) - 1e-12, own


def stays(mdp: FiniteMDP, where: np.ndarray) -> np.ndarray:
    """[S] bool: where the egocentric aggregator would stay, were it possible in these states [S] bool."""
    chosen = best_actions(solve(with_stay(mdp, where), "egocentric", GAMMA).preferences)
    return np.asarray(chosen[:, -1] & ~chosen[:, :-1].any(axis=-1))


def worth(mdp: FiniteMDP, policy: np.ndarray, gamma: float) -> np.ndarray:
    """[S] the value of a policy."""
    return np.asarray((evaluate(mdp, policy, gamma).preferences * policy).sum(axis=-1))


def blurred_mdp(instance: int) -> FiniteMDP:
    """A random MDP of whose states each advisor tells only half apart."""
    generator = np.random.default_rng((instance, 5))
    view = generator.integers(STATES // 2, size=(ADVISORS, STATES))
    view[:, : STATES // 2] = np.arange(STATES // 2)  # every local state occurs
    return replace(random_mdp(instance), local=view)


# ---- the theorems ----------------------------------------------------------------------------------------------------
@checked_on_mdps
def _inversion(instance: int) -> dict[str, float]:
    """By how much egocentric advisors overestimate: where they disagree, and where they are all of one mind."""
    mdp = random_mdp(instance)
    found, best = solve(mdp, "egocentric", GAMMA), optimum(mdp, GAMMA)[0]
    choice = best_actions(found.values.reshape(-1, ACTIONS)).reshape(ADVISORS, STATES, ACTIONS)
    disagree = ~choice.all(axis=0).any(axis=-1)  # [S] no action suits everybody
    gap = found.preferences.max(axis=-1) - best.max(axis=-1)
    ahead = (mdp.going_on * found.preferences.max(axis=-1)[mdp.successor]).sum(axis=-1)
    same = replace(mdp, reward=mdp.reward[:, :, :1] * np.arange(1.0, ADVISORS + 1))
    one_mind = solve(same, "egocentric", GAMMA).preferences - optimum(same, GAMMA)[0]
    return {
        "least": float((found.preferences - best).min()),
        "over": float(gap[disagree].mean() / np.abs(best).mean()) if disagree.any() else 0.0,
        "agreed": float(np.abs(one_mind).max()),
        "backup": float((found.preferences - (mdp.reward @ mdp.weights + GAMMA * ahead)).min()),
    }


@checked_on_mdps
def _agnostic(instance: int) -> dict[str, float]:
    """Local against global agnostic values, and the greedy policy on them against the random one and the optimum."""
    mdp = random_mdp(instance)
    found, best = solve(mdp, "agnostic", GAMMA), optimum(mdp, GAMMA)[0].max(axis=-1)
    together, _, _ = solve_local(LocalMDP(mdp.successor, mdp.going_on, mdp.reward @ mdp.weights), GAMMA, "agnostic")
    value = worth(mdp, found.policy, GAMMA)
    return {
        "apart": float(np.abs(found.preferences - together).max()),
        "gain": float((value - together.mean(axis=-1)).min()),
        "short": float(((best - value) / np.abs(best).mean()).mean()),
    }


@checked_on_mdps
def _empathic(instance: int) -> dict[str, float | bool]:
    """Empathic planning with full states against the optimum; with local states, whether it settles."""
    mdp = random_mdp(instance)
    apart = float(np.abs(solve(mdp, "empathic", GAMMA).preferences - optimum(mdp, GAMMA)[0]).max())
    return {"apart": apart, "settled": bool(solve(blurred_mdp(instance), "empathic", GAMMA).converged)}


@checked
def _staying(mdps: int) -> dict[str, Any]:
    """Theorem 2: Definition 1 in a state against what the aggregator does there once it may stay."""
    agree, attracting = [], 0
    for instance in range(mdps):
        mdp = cancellable_mdp(instance, MANY)
        inequality, _ = definition_1(mdp)
        agree.append(float((inequality == stays(mdp, np.ones(STATES, bool))).mean()))
        attracting += int(inequality.sum())
    return {"agree": agree, "attractors": attracting, "states": STATES * mdps}


@checked_on_mdps
def _bound(instance: int) -> dict[str, Any]:
    """Theorem 4 at its own bound; how far the attractor-free policy is from the optimum; attractors at 0.9 beside."""
    mdp, gamma = cancellable_mdp(instance, MANY), BOUND
    found, best = solve(mdp, "egocentric", gamma), optimum(mdp, gamma)[0].max(axis=-1)
    return {
        "attractors": int(attractor_states(found).sum()),
        "beyond": int(attractor_states(solve(mdp, "egocentric", GAMMA)).sum()),
        "short": float(((best - worth(mdp, found.policy, gamma)) / best.mean()).max()),
        "premises": gamma_bound(mdp).gamma is not None,
    }


@checked
def _thresholds() -> dict[str, Any]:
    """Where attractors begin in the paper's own examples: found by the solver, and as the paper says."""
    rows = []
    cases: list[tuple[str, dict[str, Any]]] = [("two-goal", {"r1": r1, "r2": r2}) for r1, r2 in GOALS]
    cases += [("three-fruits", {}), ("four-fruits", {})]
    for name, options in cases:
        task = make(name, **options)
        found = critical_gamma(enumerate_task(task))
        rows.append({"task": name, "options": options, "found": found, "paper": PAPER[name](task.options)})
    above = solve(enumerate_task(make("two-goal", r1=1.0, r2=2.0)), "egocentric", 0.9).preferences[0]
    return {"rows": rows, "unequal": above.tolist()}


@checked
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


@checked
def _bridges() -> dict[str, Any]:
    """Who sets foot on a bridge, and what that is worth at its bank against the optimum."""
    rows = []
    for length in BRIDGES:
        mdp = enumerate_task(make("bridge", length=length), full=True)
        best = float(optimum(mdp, GAMMA)[0][0].max())
        for planning in ("egocentric", "agnostic", "empathic"):
            policy = greedy_policy(solve(mdp, planning, GAMMA).preferences)
            value = float(worth(mdp, policy, GAMMA)[0])
            rows.append({"length": length, "planning": planning, "crosses": float(policy[0, mdp.actions.index("E")]),
                         "value": value, "best": best})  # fmt: skip
    return {"rows": rows}


def _learner(instance: int, planning: str, **settings: Any) -> tuple[MultiAdvisor, Solution]:
    """Who is to learn a random MDP with local states, and what there is to learn."""
    task = make("random-mdp", states=STATES, actions=ACTIONS, advisors=ADVISORS, instance=instance)
    agent = MultiAdvisor(task, planning=planning, gamma=GAMMA, alpha_half=1000, seed=instance, **settings)
    return agent, solve(enumerate_task(task), planning, GAMMA)


@checked
def _learning(seed: int, aggregation: str) -> dict[str, Any]:
    """Theorem 1: temporal differences with a decaying learning rate against the exact fixed points."""
    rows = []
    for planning in LOCAL:
        agent, exact = _learner(seed, planning, aggregation=aggregation, alpha=1.0, epsilon=0.5)
        errors = []
        for steps in (TD_STEPS // 100, TD_STEPS // 10, TD_STEPS):
            agent.learn(steps - agent.steps, progress=False)
            errors.append(distance(agent, exact))
        rows.append({"planning": planning, "errors": errors})
    return {"rows": rows, "steps": TD_STEPS}


def distance(agent: MultiAdvisor, exact: Solution) -> float:
    """How far learned values are from exact ones on average, as a part of the mean value."""
    learned = np.array([agent.values(j)[exact.mdp.local[j]] for j in range(exact.mdp.n)])
    return float(np.abs(learned - exact.values).mean() / np.abs(exact.values).mean())


# ---- their premises, and what is said beside them --------------------------------------------------------------------
def reluctant() -> FiniteMDP:
    """The premise that Theorem 2 needs: the one action ends the episode, pays an advisor 1 and costs another 0.5.

    It is worth 0.5, more than 0.9 * 0.5, so that this is no attractor by Definition 1; and yet who could stay would, as
    the second advisor would rather wait for ever (0) than ever pay: staying is worth 0.9.
    """
    return FiniteMDP.from_arrays(
        np.zeros((1, 1, 1)), np.array([[[1.0]], [[-0.5]]]), end=np.ones((1, 1)), name="reluctant", actions=("end",),
        advisors=("paid", "charged"),
    )  # fmt: skip


@checked
def _signs(mdps: int) -> dict[str, Any]:
    """Theorem 2 with rewards of both signs: where every advisor expects at least 0, and elsewhere."""
    agree: dict[str, list[bool]] = {"premise": [], "elsewhere": []}
    for instance in range(min(mdps, FEW)):
        mdp = cancellable_mdp(instance, MANY)
        feared = np.arange(MANY) % 2 == 1
        cost = TOLL * (instance % 2) * (np.arange(MANY) == 0)  # in every second MDP one advisor pays for each step
        mdp = replace(mdp, reward=np.where(feared, -1.0, 1.0) * mdp.reward - cost)
        inequality, own = definition_1(mdp)
        for state in range(mdp.states):
            where = "premise" if own[:, state].min() >= -1e-12 else "elsewhere"
            stayed = stays(mdp, np.arange(mdp.states) == state)[state]
            agree[where].append(bool(stayed == inequality[state]))
    one, everywhere = reluctant(), np.ones(1, bool)
    inequality, own = definition_1(one)
    example = {
        "ends": float(solve(one, "egocentric", GAMMA).preferences[0, 0]), "bound": GAMMA * float(own.sum()),
        "staying": float(solve(with_stay(one, everywhere), "egocentric", GAMMA).preferences[0, 1]),
        "attractor": bool(inequality[0]), "stays": bool(stays(one, everywhere)[0]),
    }  # fmt: skip
    return {"agree": agree, "example": example}


@checked
def _markov() -> dict[str, Any]:
    """Assumption 1 in Pac-Boy, on a board of six cells: by advisor, with one fruit and with two."""
    task, rows = make("pac-boy", maze=SMALL), []
    for fruits in (1, 2):
        x = task.initial_state()
        x[2:] = np.arange(len(x) - 2) < fruits
        mdp = enumerate_task(task, x)
        told = zip(mdp.advisors, mdp.local_mdps, strict=True)
        rows += [{"fruits": fruits, "advisor": name, "markov": markov} for name, (_, markov) in told]
    return {"rows": rows}


@checked
def _cancelling() -> dict[str, Any]:
    """Whether every action can be cancelled in Pac-Boy: of a cell, of the fruit advisors, and of a ghost's."""
    maze = Maze(make("pac-boy"))
    to, cells = maze.world.neighbour, np.arange(maze.cells)
    back = (to[to] == cells[:, None, None]).any(axis=-1)  # [cells, A]
    ghost = bound_of([("ghost 1", maze.ghost_mdp, np.arange(maze.cells**2))], maze.task.actions, np.ones(1))
    return {"cells": float(back.mean()), "fruits": list(maze.bound().broken), "ghosts": list(ghost.broken),
            "advisors": maze.task.n, "haunted": maze.ghosts}  # fmt: skip


@checked
def _unfinished() -> dict[str, Any]:
    """Theorem 3 where episodes end with goals open: advisors that are not progressive, and attractors, by case."""
    mdps = [enumerate_task(make("two-goal", r1=r1, r2=r2)) for r1, r2 in GOALS]
    cases = [solve(mdp, "egocentric", gamma) for mdp in mdps for gamma in GRID]
    return {"regressions": [len(progressive(found)) for found in cases],
            "attractors": [int(attractor_states(found).sum()) for found in cases]}  # fmt: skip


@checked
def _randomness(boards: int) -> dict[str, Any]:
    """Exact egocentric play at each epsilon: the share of boards without ghosts that it finishes, and what it earns in
    the example of two equal goals, as a part of the best; a low gamma beside it."""
    task = make("pac-boy", ghosts=False)
    maze = Maze(task)
    lying = maze.random_boards(min(boards, 5 * FEW), FIRST_BOARD)

    def share(discount: float, epsilon: float) -> float:
        return float((walk(task, lying, maze.distances, "sum", discount, epsilon=epsilon) < task.limit).mean())

    mdp = enumerate_task(make("two-goal"))
    waits, best = solve(mdp, "egocentric", GAMMA).policy, optimum(mdp, GAMMA)[0][0].max()
    earned = []
    for epsilon in EPSILONS:
        mixed = (1.0 - epsilon) * waits + epsilon / waits.shape[-1]
        value = evaluate(mdp, mixed, GAMMA).preferences[0] @ mixed[0]
        earned.append(float(value / best))
    finished = [share(GAMMA, epsilon) for epsilon in EPSILONS]
    return {"finished": finished, "low": share(LOW, 0.0), "earned": earned}


@checked
def _stochastic(mdps: int) -> dict[str, Any]:
    """Theorem 4's bound where a move sometimes goes elsewhere: attractors there and at 0.9, for each slip."""

    def count(slip: float, gamma: float) -> int:
        return sum(int(attractor_states(solve(slipping(cancellable_mdp(k, MANY), slip), "egocentric", gamma)).sum())
                   for k in range(mdps))  # fmt: skip

    there, beyond = ([count(slip, gamma) for slip in SLIPS] for gamma in (BOUND, GAMMA))
    return {"slips": list(SLIPS), "attractors": there, "beyond": beyond, "states": mdps * STATES}


def slipping(mdp: FiniteMDP, slip: float) -> FiniteMDP:
    """The same MDP, in which every action is replaced by a random one with this probability."""
    acts = len(mdp.actions)
    share = (1.0 - slip) * np.eye(acts) + slip / acts  # [A, A]
    transition = np.zeros((mdp.states, acts, mdp.states))
    np.add.at(transition, (*np.indices(mdp.successor.shape)[:2], mdp.successor), mdp.going_on)
    mixed = np.einsum("ab,sbt->sat", share, transition)
    reward = np.einsum("ab,sbj->jsa", share, mdp.reward)
    return FiniteMDP.from_arrays(mixed, reward, weights=mdp.weights)


@checked
def _td(mdps: int) -> dict[str, list[float]]:
    """Empathic temporal differences with blurred states, in expectation: how much still moves after all rounds.

    Each round moves every value by a tenth of its mean temporal difference, over the states that random play visits;
    the next action is the aggregator's own, in the real next state.
    """
    blurred = [blurred_mdp(instance) for instance in range(min(mdps, FEW) // 2)]
    return {planning: [td_residual(mdp, planning) for mdp in blurred] for planning in ("empathic", "egocentric")}


def td_residual(mdp: FiniteMDP, planning: str) -> float:
    """The largest temporal difference of the last hundred rounds, over the largest value."""
    n, seen = mdp.n, int(mdp.local.max()) + 1
    occupied = visits(mdp, np.full((mdp.states, len(mdp.actions)), 1.0 / len(mdp.actions)), 0.0)
    here = np.zeros((n, seen, mdp.states))  # how much each state counts in each local one
    here[np.arange(n)[:, None], mdp.local, np.arange(mdp.states)] = occupied
    here /= here.sum(axis=-1, keepdims=True)
    q, largest = np.zeros((n, seen, len(mdp.actions))), 0.0
    for rounds in range(ROUNDS):
        advice = q[np.arange(n)[:, None], mdp.local]  # [n, S, A]
        if planning == "empathic":
            taken = np.tensordot(mdp.weights, advice, 1).argmax(axis=-1)  # [S]
            ahead = advice[:, np.arange(mdp.states), taken]  # [n, S]
        else:
            ahead = advice.max(axis=-1)
        onward = (mdp.going_on * ahead[:, mdp.successor]).sum(axis=-1)  # [n, S, A]
        difference = here @ (np.moveaxis(mdp.reward, -1, 0) + GAMMA * onward) - q
        q += RATE * difference
        if rounds >= ROUNDS - 100:
            largest = max(largest, float(np.abs(difference).max() / np.abs(q).max()))
    return largest


@checked
def _algorithms() -> dict[str, Any]:
    """The fixed points of another way of learning: random play with another learning rate."""
    rows = []
    for planning in LOCAL:
        agent, exact = _learner(0, planning, alpha=0.5, epsilon=1.0)
        agent.learn(RANDOM_STEPS, progress=False)
        rows.append({"planning": planning, "apart": distance(agent, exact)})
    return {"rows": rows}
