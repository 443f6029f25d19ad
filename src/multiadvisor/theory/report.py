"""What `multiadvisor solve` says: one task, or one board of it, as a JSON object and as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor, load
from multiadvisor.errors import BadInput
from multiadvisor.task import Task
from multiadvisor.theory.attractors import attractors, first_gamma, stuck_states
from multiadvisor.theory.boards import board_bound, board_solution, peaks, trap_shares
from multiadvisor.theory.bounds import Bound, progressive, share, verdict
from multiadvisor.theory.enumerate import enumerate_task
from multiadvisor.theory.solver import Solution, best_actions, solve

# The thresholds that the paper derives by hand; the tool finds its own and never looks here.
PAPER = {
    "three-fruits": lambda options: 1 / 2,
    "four-fruits": lambda options: 1 / 3,
    "two-goal": lambda options: max(options["r1"], options["r2"]) / (options["r1"] + options["r2"]),
}


@dataclass(frozen=True, eq=False)
class Answer:
    """The solution, what it means, and the board it is drawn on, if any."""

    task: Task
    solution: Solution
    result: dict[str, Any]
    board: np.ndarray | None  # the state x of the board


def _stuck(solution: Solution) -> list[str]:
    """The states from which the greedy walk never earns, where somebody still has something to earn."""
    spoken = np.any(solution.mdp.local >= 0, axis=0)
    return [solution.mdp.label(int(state)) for state in np.flatnonzero(stuck_states(solution) & spoken)]


def _policy(solution: Solution) -> dict[str, str]:
    best = best_actions(solution.preferences)
    actions = solution.mdp.actions
    names = (" or ".join(actions[a] for a in np.flatnonzero(row)) for row in best)
    spoken = np.any(solution.mdp.local >= 0, axis=0)  # where nobody speaks there is nothing to choose by
    return {solution.mdp.label(state): name for state, name in enumerate(names) if bool(spoken[state])}


def _result(
    task: Task, solution: Solution, critical: float | None, stable: float | None, bound: Bound, text: str,
    always: bool, board: int | None,
) -> dict[str, Any]:  # fmt: skip
    mdp = solution.mdp
    egocentric = solution.planning == "egocentric"
    regressions = progressive(solution if egocentric else solve(mdp, "egocentric", solution.gamma))
    return {
        "task": task.name,
        "options": task.options,
        "board": board,
        "planning": solution.planning,
        "gamma": solution.gamma,
        "residual": solution.residual,
        "error_bound": solution.bound if np.isfinite(solution.bound) else None,
        "converged": solution.converged,
        "cycle": solution.cycle,
        "markov": solution.markov,
        "actions": list(mdp.actions),
        "states": [mdp.label(state) for state in range(mdp.states)],
        "values": {name: solution.values[j].tolist() for j, name in enumerate(mdp.advisors)},
        "policy": _policy(solution),
        "attractors": [one.as_dict() for one in attractors(solution)] if egocentric else [],
        "stuck": _stuck(solution),
        "critical_gamma": critical,
        "critical_gamma_stable": stable,
        "progressive": not regressions,
        "progressive_at_any_gamma": always,
        "not_progressive": [one._asdict() for one in regressions],
        "gamma_bound": bound.gamma,
        "broken_premises": list(bound.broken),
        "verdict": text,
    }


def answer(task: Task, planning: str, gamma: float, *, full: bool = False) -> Answer:
    """A whole task, every state listed."""
    mdp = enumerate_task(task, full=full)
    solution = solve(mdp, planning, gamma)
    found = verdict(mdp, gamma)
    text = found.text
    if planning != "egocentric":
        stuck = _stuck(solution)
        names = ", ".join(stuck[:3]) + (", ..." if len(stuck) > 3 else "")
        own = (
            f"never earns from {len(stuck)} states: {names}"
            if stuck
            else "goes on to earn, or to the end, from every state"
        )
        text = f"under {planning} planning the greedy aggregator {own}\nunder egocentric planning: {found.text}"
    result = _result(task, solution, found.critical, found.stable, found.bound, text, found.always_progressive, None)
    return Answer(task, solution, result, task.deal() if task.board is not None else None)


def answer_board(
    task: Task, gamma: float, seed: int, planning: str | None = None, run: str | Path | None = None
) -> Answer:
    """One board of a maze as it lies, without its ghosts; or with the learned values of a saved run, ghosts and all."""
    if seed < 0:
        raise BadInput(f"board is {seed}: give a seed from 0 on")
    if run is not None:
        return _answer_run(task, seed, load(run, task))
    if planning not in (None, "egocentric"):
        raise BadInput(f"a board has exact egocentric values only, no {planning} ones: leave --planning out")
    if any(focus.group == "ghosts" for focus in task.foci):
        raise BadInput(f"a board of {task.name!r} is solved without ghosts: add --no-ghosts")
    x = task.deal(seed)
    solution = board_solution(task, x, gamma)
    critical, stable = (_critical(task, x, only_stable) for only_stable in (False, True))
    bound, found = board_bound(task), attractors(solution)
    lines = ["no attractor on this board at any gamma"]
    if critical is not None:
        here = f"at gamma = {gamma:g} in {len(found)} cell{'s' * (len(found) != 1)}"
        lines = [f"attractors on this board from gamma = {share(critical)} on; {here}"]
    if stable is not None:
        lines.append(f"stable ones, which hold the aggregator for good, from gamma = {share(stable)} on")
    if bound.gamma is not None:
        lines.append(f"safe up to gamma = {share(bound.gamma)} by Theorem 4, whose premises hold")
    if critical is not None:
        lines.append(f"what to do: keep gamma at or below {share(critical)}, or plan empathically")
    return Answer(task, solution, _result(task, solution, critical, stable, bound, "\n".join(lines), False, seed), x)


def _answer_run(task: Task, seed: int, agent: MultiAdvisor) -> Answer:
    x = task.deal(seed)
    solution = board_solution(task, x, agent.settings.gamma, agent)
    found = attractors(solution)
    held = [one.label for one in found if one.stable]
    text = f"{len(found)} attractors in the learned values of this board"
    text += f", of which {len(held)} hold the aggregator: {', '.join(held[:5])}" if held else ""
    bound = Bound(None, None, ("learned values follow no theorem",))
    return Answer(task, solution, _result(task, solution, None, None, bound, text, False, seed), x)


def _critical(task: Task, x: np.ndarray, stable: bool) -> float | None:
    """The smallest gamma at which this board has an attractor, by bisection."""
    boards = (x[1:] == 1)[None]

    def caught(gamma: float) -> bool:
        return bool(peaks(task, boards, gamma)[int(stable)].any())

    return first_gamma(caught)


def traps(task: Task, boards: int) -> dict[str, Any]:
    """How often a random board is a trap, against gamma."""
    if boards < 1:
        raise BadInput(f"boards is {boards}: give at least 1")
    gammas = sorted([k / 20 for k in range(4, 20)] + [1 / 3, 0.99])
    return {"task": task.name, "options": task.options, "boards": boards, "shares": trap_shares(task, gammas, boards)}


def sweep(task: Task) -> dict[str, Any]:
    """Q_Sigma of every action in the first state against gamma, which action wins, and the critical gamma found."""
    gammas = [k / 200 for k in range(1, 200)]
    mdp = enumerate_task(task)
    first = int(mdp.start.argmax())
    preferences = np.array([solve(mdp, "egocentric", float(g)).preferences[first] for g in gammas])  # [G, A]
    winners = [" or ".join(mdp.actions[a] for a in np.flatnonzero(row)) for row in best_actions(preferences)]
    found = verdict(mdp)
    paper = PAPER[task.name](task.options) if task.name in PAPER else None
    return {
        "task": task.name, "state": mdp.label(first), "gammas": [float(g) for g in gammas],
        "preferences": {name: preferences[:, a].tolist() for a, name in enumerate(mdp.actions)}, "winner": winners,
        "critical_gamma": found.critical, "paper": paper, "verdict": found.text,
    }  # fmt: skip


def describe_sweep(result: dict[str, Any]) -> str:
    """A sweep as text."""
    gammas, winner = result["gammas"], result["winner"]
    lines = [f"{result['task']}, in {result['state']}: {winner[0]} wins at gamma = {gammas[0]:g}"]
    changes = [k for k in range(1, len(winner)) if winner[k] != winner[k - 1]]
    lines += [f"from gamma = {gammas[k]:g} on {winner[k]} wins" for k in changes]
    return "\n".join([*lines, result["verdict"]])


def describe(result: dict[str, Any]) -> str:
    """A solution as text."""
    lines = [f"{result['task']}, {result['planning']}, gamma = {result['gamma']:g}", *result["verdict"].splitlines()]
    for one in result["attractors"][:8]:
        kind = "stable" if one["stable"] else "unstable"
        lines.append(
            f"  {one['state']}: {kind}, margin {one['margin']:.4g}, goes {one['action']}, "
            f"pulled by {', '.join(one['advisors'][:4])}" + (" ..." if len(one["advisors"]) > 4 else "")
        )
    if len(result["attractors"]) > 8:
        lines.append(f"  and {len(result['attractors']) - 8} more (--json has all)")
    for one in result["not_progressive"][:2]:
        lines.append(f"  not progressive: {one['advisor']}, by {one['action']!r} in {one['state']}")
    if result["cycle"]:
        length = f" of {result['cycle']}" if result["cycle"] > 0 else ""
        lines.append(f"the policy did not settle: it goes round in a cycle{length}")
    shown = [f"{state}: {action}" for state, action in result["policy"].items()]
    more = [f"and {len(shown) - 12} states more"] if len(shown) > 12 else []
    lines.append("greedy policy: " + "; ".join([*shown[:12], *more]))
    error = f", no value is further off than {result['error_bound']:.1e}" if result["error_bound"] is not None else ""
    lines.append(f"Bellman residual {result['residual']:.1e}{error}")
    return "\n".join(lines)
