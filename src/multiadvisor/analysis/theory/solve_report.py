"""What `multiadvisor solve` says: one task, or one board of it, as a JSON object and as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import load
from multiadvisor.analysis.theory.attractors import attractors, first_gamma, stuck_states
from multiadvisor.analysis.theory.board_episodes import Outlook, other_episodes, outlook
from multiadvisor.analysis.theory.boards import Maze, board_solution, peaks, present, trap_shares
from multiadvisor.analysis.theory.bounds import (
    Bound,
    Verdict,
    among,
    describe_thresholds,
    progressive,
    share,
    verdict,
    what_to_do,
)
from multiadvisor.analysis.theory.earning import broken_premises, earning_bound, rate
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.solver import Solution, best_actions, solve
from multiadvisor.analysis.theory.ways_out import WayOut, least_exponent
from multiadvisor.errors import BadInput
from multiadvisor.task import Task

# The thresholds that the paper derives by hand; the tool finds its own and never looks here.
PAPER: dict[str, Callable[[Any], float]] = {
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
    return solution.mdp.labelled(stuck_states(solution))


def _winners(actions: tuple[str, ...], preferences: np.ndarray) -> list[str]:
    """[S] the best actions by name, from preferences [S, A]."""
    return [" or ".join(actions[a] for a in np.flatnonzero(row)) for row in best_actions(preferences)]


def _policy(solution: Solution) -> dict[str, str]:
    mdp, names = solution.mdp, np.array(_winners(solution.mdp.actions, solution.preferences))
    return dict(zip(mdp.labelled(mdp.active), names[mdp.active].tolist(), strict=True))


def _result(task: Task, solution: Solution, found: Verdict, text: str, board: int | None) -> dict[str, Any]:
    mdp = solution.mdp
    egocentric = solution.planning == "egocentric"
    exact = not found.learned
    regressions = progressive(solution if egocentric else solve(mdp, "egocentric", solution.gamma)) if exact else []
    return {
        "task": task.name,
        "options": task.options,
        "board": board,
        "planning": solution.planning,
        "aggregation": solution.aggregation,
        "gamma": solution.gamma,
        "residual": solution.residual if np.isfinite(solution.residual) else None,
        "error_bound": solution.bound if np.isfinite(solution.bound) else None,
        "converged": solution.converged,
        "iterations": solution.iterations,
        "cycle": solution.cycle,
        "markov": solution.markov,
        "actions": list(mdp.actions),
        "states": [mdp.label(state) for state in range(mdp.states)],
        "values": {name: solution.values[j].tolist() for j, name in enumerate(mdp.advisors)},
        "policy": _policy(solution),
        "attractors": [one.as_dict() for one in attractors(solution)] if egocentric else [],
        "stuck": _stuck(solution),
        "earning_bound": _earning(solution) if exact else None,
        "critical_gamma": found.critical,
        "critical_gamma_stable": found.stable,
        "critical_gamma_stuck": found.stuck,
        "progressive": not regressions if exact else None,
        "progressive_at_any_gamma": found.always_progressive,
        "not_progressive": [one._asdict() for one in regressions],
        "gamma_bound": found.bound.gamma,
        "broken_premises": list(found.bound.broken),
        "ways_out": [way.as_dict() for way in found.ways],
        "verdict": text,
    }


def _earning(solution: Solution) -> dict[str, int] | None:
    """For each state with something to earn the steps within which it is; None where nothing bounds them."""
    if broken_premises(solution) or rate(solution) >= 1.0:
        return None
    steps = earning_bound(solution)
    return {solution.mdp.label(int(state)): int(steps[state]) for state in np.flatnonzero(np.isfinite(steps))}


def answer(task: Task, planning: str, gamma: float, *, full: bool = False, aggregation: str = "sum") -> Answer:
    """A whole task, every state listed."""
    mdp = enumerate_task(task, full=full)
    heard = present(task, mdp, aggregation)
    solution = solve(mdp, planning, gamma, heard)
    found = verdict(mdp, gamma, heard)
    text = found.text
    if planning != "egocentric":
        text = f"{_fate(solution)}\nunder egocentric planning: {found.text}"
    return Answer(
        task, solution, _result(task, solution, found, text, None), task.initial_state() if task.board else None
    )


def _fate(solution: Solution) -> str:
    """What becomes of the greedy aggregator under a planning without attractors."""
    if not solution.converged:
        round_trip = f"it goes round in a cycle of {solution.cycle}" if solution.cycle > 0 else "it went on changing"
        return f"{solution.planning} planning did not converge ({round_trip}): nothing follows from these values"
    stuck = _stuck(solution)
    fate = f"never earns from {among(stuck)}" if stuck else "goes on to earn, or to the end, from every state"
    return f"under {solution.planning} planning the greedy aggregator {fate}"


def answer_board(
    task: Task, gamma: float, seed: int, tell: Callable[[str], None] = lambda text: None, aggregation: str = "sum"
) -> Answer:
    """One board of a maze as it lies, without its ghosts, and the greedy episodes that begin with it."""
    x = _deal(task, seed)
    if any(advisor.group == "ghosts" for advisor in task.advisors):
        raise BadInput(f"a board of {task.name!r} is solved without ghosts: add --no-ghosts")
    solution, maze = board_solution(task, x, gamma, aggregation=aggregation), Maze(task)
    bound = maze.bound() if solution.aggregator.plain else Bound(None, None, ("Theorem 4 is about sums",))
    critical, stable = (_critical(maze, x, only_stable, aggregation) for only_stable in (False, True))
    episodes = outlook(task, x, gamma, bound.gamma or 0.0, tell, aggregation)
    here = among([one.label for one in attractors(solution)], "cell")
    lines = _describe_episodes(task, episodes, gamma)
    if steps := _earning(solution):
        lines.append(f"the board as it is: earns within {max(steps.values())} steps from every cell (proved)")
    else:
        lines += ["the board as it is: " + line for line in describe_thresholds(critical, stable, gamma, here)]
    if stuck := _stuck(solution):
        lines.append(f"the board as it is: greedy play never earns from {among(stuck, 'cell')}")
    if bound.gamma is not None:
        lines.append(f"safe up to gamma = {share(bound.gamma)} by Theorem 4, whose premises hold")
    ways = () if episodes.keep is None else _ways_out_of_boards(task, solution, tell)
    lines += what_to_do([] if episodes.keep is None else [episodes.keep], ways)
    found = Verdict("\n".join(lines), critical, stable, episodes.stuck, bound, False, ways=ways)
    return Answer(
        task, solution, {**_result(task, solution, found, found.text, seed), "episodes": episodes.as_dict(task)}, x
    )


def _ways_out_of_boards(task: Task, solution: Solution, tell: Callable[[str], None]) -> tuple[WayOut, ...]:
    """For mazes too large to list: the maximum by its proof, the p-norm of Theorem 4 tried on random boards."""
    gamma = solution.gamma
    proved = None if broken_premises(solution.aggregated_by("max")) else 1.0
    ways = [WayOut("--aggregation max", proved, proved, "follow the strongest wish")]
    if gamma < 1.0:
        p = least_exponent(len(task.actions), gamma)
        tell(f"other episodes with a p-norm of {p:g}")
        safe = p > 1.0 and other_episodes(task, gamma, aggregation=f"p_norm:{p:g}") == 0
        ways += [WayOut(f"--aggregation p_norm:{p:g}", gamma, None, "use a p-norm of the wishes")] if safe else []
    ways.append(WayOut("--planning empathic", None, None, "plan empathically"))
    return tuple(way for way in ways if way.flag != f"--aggregation {solution.aggregation}")


def _describe_episodes(task: Task, episodes: Outlook, gamma: float) -> list[str]:
    """What becomes of greedy episodes, in words."""
    steps, left, cell, _ = episodes.ending
    now = f"at gamma = {gamma:g} it is finished after {steps} steps"
    if left:
        fruits = f"{left} fruit{'s' * (left != 1)}"
        now = f"at gamma = {gamma:g} it never eats the last {fruits}, held at {task.grid.name(cell)}"
    elif task.limit is not None and steps > task.limit:
        now += f", beyond the limit of {task.limit}"
    if episodes.stuck is None:
        lines = [f"the greedy episode from this board gets stuck at no gamma that was tried; {now}"]
    else:
        lines = [f"the greedy episode from this board gets stuck from gamma = {share(episodes.stuck)} on; {now}"]
    if episodes.others_safe is not None and episodes.others_stuck is not None:
        lines.append(
            f"of {episodes.others} greedy episodes from random boards none gets stuck up to gamma = "
            f"{share(episodes.others_safe)}; at gamma = {gamma:g} {100 * episodes.others_stuck:.3g}% do"
        )
    return lines


def answer_run(task: Task, seed: int, run: str | Path) -> Answer:
    """One board with the learned values of a saved run, its ghost advisors included."""
    x, agent = _deal(task, seed), load(run, task, reweight=False)
    own = agent.settings.learner_settings
    if own.summed:
        raise BadInput(f"the run {str(run)!r} is of {own.name} Q-learning: its advisors have no values")
    solution = board_solution(task, x, agent.settings.gamma, agent)
    stuck = among(_stuck(solution), "cell")
    text = f"in the learned {agent.settings.planning} values of this board greedy play never earns from {stuck}"
    if agent.settings.planning == "egocentric":
        found = attractors(solution)
        text += f"\nattractors in {among([one.label for one in found], 'cell')}"
        text += f"\nstable ones in {among([one.label for one in found if one.stable], 'cell')}"
    bound = Bound(None, None, ("learned values follow no theorem",))
    known = Verdict(text, None, None, None, bound, False, learned=True)
    return Answer(task, solution, _result(task, solution, known, text, seed), x)


def _deal(task: Task, seed: int) -> np.ndarray:
    if seed < 0:
        raise BadInput(f"board is {seed}: give a seed from 0 on")
    return task.initial_state(seed)


def _critical(maze: Maze, x: np.ndarray, stable: bool, aggregation: str) -> float | None:
    """The smallest gamma at which this board has an attractor, by bisection."""
    board = maze.fruit(x)[None]
    return first_gamma(lambda gamma: bool(peaks(maze, board, gamma, aggregation)[int(stable)].any()))


def traps(
    task: Task, boards: int, tell: Callable[[str], None] = lambda text: None, aggregation: str = "sum"
) -> dict[str, Any]:
    """How often a random board is a trap, against gamma."""
    if boards < 1:
        raise BadInput(f"boards is {boards}: give at least 1")
    gammas = sorted([k / 20 for k in range(4, 20)] + [1 / 3, 0.99])
    shares = trap_shares(task, gammas, boards, tell=tell, aggregation=aggregation)
    return {
        "task": task.name, "options": task.options, "aggregation": aggregation, "boards": boards, "shares": shares
    }  # fmt: skip


def sweep(task: Task, aggregation: str = "sum") -> dict[str, Any]:
    """The preference for each action in the first state against gamma, which one wins, and the critical gamma."""
    gammas = [k / 200 for k in range(1, 200)]
    mdp = enumerate_task(task)
    first = int(mdp.start.argmax())
    heard = present(task, mdp, aggregation)
    preferences = np.array([solve(mdp, "egocentric", float(g), heard).preferences[first] for g in gammas])  # [G, A]
    found = verdict(mdp, aggregation=heard)
    paper = PAPER[task.name](task.options) if task.name in PAPER and heard == "sum" else None
    return {
        "task": task.name, "aggregation": heard, "state": mdp.label(first), "gammas": [float(g) for g in gammas],
        "preferences": {name: preferences[:, a].tolist() for a, name in enumerate(mdp.actions)},
        "winner": _winners(mdp.actions, preferences), "critical_gamma": found.critical, "paper": paper,
        "verdict": found.text,
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
    heard = "" if result["aggregation"] == "sum" else f" aggregated by {result['aggregation']}"
    lines = [f"{result['task']}, {result['planning']}{heard}, gamma = {result['gamma']:g}"]
    lines += result["verdict"].splitlines()
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
    shown = [f"{state}: {action}" for state, action in result["policy"].items()]
    more = [f"and {len(shown) - 6} states more"] if len(shown) > 6 else []
    lines.append("greedy policy: " + "; ".join([*shown[:6], *more]))
    if not result["converged"]:
        lines.append("not converged: these values are not a fixed point")
    elif result["residual"] is not None:
        error = (
            f", no value is further off than {result['error_bound']:.1e}" if result["error_bound"] is not None else ""
        )
        lines.append(f"Bellman residual {result['residual']:.1e}{error}")
    return "\n".join(lines)
