"""What `multiadvisor solve` says: one task, or one board of it, as a JSON object and as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import load
from multiadvisor.analysis.theory import boards, bounds
from multiadvisor.analysis.theory.attractors import attractors, first_gamma, stuck_states
from multiadvisor.analysis.theory.earning import broken_premises, earning_bound, rate
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.environment_model import SAMPLE
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
    mdp = solution.mdp
    return dict(zip(mdp.labelled(mdp.active), _winners(mdp.actions, solution.preferences[mdp.active]), strict=True))


def _result(task: Task, solution: Solution, found: bounds.Verdict, text: str, board: int | None) -> dict[str, Any]:
    mdp, egocentric, exact = solution.mdp, solution.planning == "egocentric", not found.learned
    selfish = solution if egocentric or not exact else solve(mdp, "egocentric", solution.gamma)
    regressions = bounds.progressive(selfish) if exact else []
    return {
        "task": task.name, "options": task.options, "board": board, "planning": solution.planning,
        "aggregation": solution.aggregation, "gamma": solution.gamma, "model": mdp.known or None,
        "estimated": mdp.estimated, "residual": solution.residual if np.isfinite(solution.residual) else None,
        "error_bound": solution.bound if np.isfinite(solution.bound) else None, "converged": solution.converged,
        "iterations": solution.iterations, "cycle": solution.cycle, "markov": solution.markov,
        "actions": list(mdp.actions), "states": [mdp.label(state) for state in range(mdp.states)],
        "values": {name: solution.values[j].tolist() for j, name in enumerate(mdp.advisors)},
        "policy": _policy(solution),
        "attractors": [one.as_dict() for one in attractors(solution)] if egocentric else [],
        "stuck": _stuck(solution), "earning_bound": _earning(solution) if exact else None,
        "critical_gamma": found.critical, "critical_gamma_stable": found.stable, "critical_gamma_stuck": found.stuck,
        "progressive": not regressions if exact else None, "progressive_at_any_gamma": found.always_progressive,
        "not_progressive": [one._asdict() for one in regressions], "gamma_bound": found.bound.gamma,
        "broken_premises": list(found.bound.broken), "ways_out": [way.as_dict() for way in found.ways],
        "verdict": text,
    }  # fmt: skip


def _earning(solution: Solution) -> dict[str, int] | None:
    """For each state with something to earn the steps within which it is; None where nothing bounds them."""
    if broken_premises(solution) or rate(solution) >= 1.0:
        return None
    steps = earning_bound(solution)
    return {solution.mdp.label(int(state)): int(steps[state]) for state in np.flatnonzero(np.isfinite(steps))}


def answer(
    task: Task, planning: str, gamma: float, *, full: bool = False, aggregation: str = "sum", sample: int = SAMPLE
) -> Answer:  # fmt: skip
    """A whole task, every state listed."""
    mdp = enumerate_task(task, full=full, sample=sample)
    aggregation = boards.present(task, mdp, aggregation)
    solution = solve(mdp, planning, gamma, aggregation)
    found = bounds.verdict(mdp, gamma, aggregation)
    own = "" if planning == "egocentric" else f"{_fate(solution)}\nunder egocentric planning: "
    about = "of the estimate, not of the environment itself: " if mdp.estimated else ""
    result = _result(task, solution, found, f"{about}{own}{found.text}", None)
    return Answer(task, solution, result, task.initial_state() if task.board else None)


def _fate(solution: Solution) -> str:
    """What becomes of greedy play under a planning without attractors."""
    if not solution.converged:
        round_trip = f"it goes round in a cycle of {solution.cycle}" if solution.cycle > 0 else "it went on changing"
        return f"{solution.planning} planning did not converge ({round_trip}): nothing follows from these values"
    return bounds.fate(_stuck(solution), f"under {solution.planning} planning")


def answer_board(
    task: Task, gamma: float, seed: int, tell: Callable[[str], None] = lambda text: None, aggregation: str = "sum"
) -> Answer:
    """One board of a maze as it lies, without its ghosts, and the greedy episodes that begin with it."""
    x = _deal(task, seed)
    if any(advisor.group == "ghosts" for advisor in task.advisors):
        raise BadInput(f"a board of {task.name!r} is solved without ghosts: add --no-ghosts")
    solution, maze = boards.board_solution(task, x, gamma, aggregation=aggregation), boards.Maze(task)
    bound = maze.bound() if solution.aggregator.plain else bounds.Bound(None, None, ("Theorem 4 is about sums",))
    critical, stable = (_critical(maze, x, only_stable, aggregation) for only_stable in (False, True))
    episodes = boards.outlook(task, x, gamma, bound.gamma or 0.0, tell, aggregation)
    here = bounds.among([one.label for one in attractors(solution)], "cell")
    lines = _describe_episodes(task, episodes, gamma)
    if steps := _earning(solution):
        lines.append(f"the board as it is: earns within {max(steps.values())} steps from every cell (proved)")
    else:
        lines += ["the board as it is: " + line for line in bounds.describe_thresholds(critical, stable, gamma, here)]
    if stuck := _stuck(solution):
        lines.append(f"the board as it is: greedy play never earns from {bounds.among(stuck, 'cell')}")
    if bound.gamma is not None:
        lines.append(f"safe up to gamma = {bounds.share(bound.gamma)} by Theorem 4, whose premises hold")
    ways = () if episodes.keep is None else _ways_out_of_boards(task, solution, tell)
    lines += bounds.what_to_do([] if episodes.keep is None else [episodes.keep], ways)
    found = bounds.Verdict("\n".join(lines), bound, critical, stable, episodes.stuck, ways=ways)
    result = _result(task, solution, found, found.text, seed)
    return Answer(task, solution, {**result, "episodes": episodes.as_dict(task)}, x)


def _ways_out_of_boards(task: Task, solution: Solution, tell: Callable[[str], None]) -> tuple[WayOut, ...]:
    """For mazes too large to list: the maximum by its proof, the p-norm of Theorem 4 tried on random boards."""
    gamma = solution.gamma
    proved = None if broken_premises(solution.aggregated_by("max")) else 1.0
    ways = [WayOut("--aggregation max", proved, proved, "follow the strongest wish")]
    if gamma < 1.0:
        p = least_exponent(len(task.actions), gamma)
        tell(f"other episodes with a p-norm of {p:g}")
        safe = p > 1.0 and boards.other_episodes(task, gamma, aggregation=f"p_norm:{p:g}") == 0
        ways += [WayOut(f"--aggregation p_norm:{p:g}", gamma, None, "use a p-norm of the wishes")] if safe else []
    ways.append(WayOut("--planning empathic", None, None, "plan empathically"))
    return tuple(way for way in ways if way.flag != f"--aggregation {solution.aggregation}")


def _describe_episodes(task: Task, episodes: boards.Outlook, gamma: float) -> list[str]:
    """What becomes of greedy episodes, in words."""
    steps, left = episodes.ending.steps, episodes.ending.left
    now = f"at gamma = {gamma:g} it is finished after {steps} steps"
    if left:
        fruits = f"{left} fruit{'s' * (left != 1)}"
        now = f"at gamma = {gamma:g} it never eats the last {fruits}, held at {task.grid.name(episodes.ending.cell)}"
    elif task.limit is not None and steps > task.limit:
        now += f", beyond the limit of {task.limit}"
    stuck = "at no gamma that was tried"
    if episodes.stuck is not None:
        stuck = f"from gamma = {bounds.share(episodes.stuck)} on"
    lines = [f"the greedy episode from this board gets stuck {stuck}; {now}"]
    if episodes.others_safe is not None and episodes.others_stuck is not None:
        lines.append(
            f"of {episodes.others} greedy episodes from random boards none gets stuck up to gamma = "
            f"{bounds.share(episodes.others_safe)}; at gamma = {gamma:g} {100 * episodes.others_stuck:.3g}% do"
        )
    return lines


def answer_run(task: Task, seed: int, run: str | Path) -> Answer:
    """One board with the learned values of a saved run, its ghost advisors included."""
    x, agent = _deal(task, seed), load(run, task, reweight=False)
    own = agent.settings.learner_settings
    if own.summed:
        raise BadInput(f"the run {str(run)!r} is of {own.name} Q-learning: its advisors have no values")
    solution = boards.board_solution(task, x, agent.settings.gamma, agent)
    stuck = bounds.among(_stuck(solution), "cell")
    text = f"in the learned {agent.settings.planning} values of this board greedy play never earns from {stuck}"
    if agent.settings.planning == "egocentric":
        found = attractors(solution)
        text += f"\nattractors in {bounds.among([one.label for one in found], 'cell')}"
        text += f"\nstable ones in {bounds.among([one.label for one in found if one.stable], 'cell')}"
    bound = bounds.Bound(None, None, ("learned values follow no theorem",))
    known = bounds.Verdict(text, bound, learned=True)
    return Answer(task, solution, _result(task, solution, known, text, seed), x)


def _deal(task: Task, seed: int) -> np.ndarray:
    if seed < 0:
        raise BadInput(f"board is {seed}: give a seed from 0 on")
    return task.initial_state(seed)


def _critical(maze: boards.Maze, x: np.ndarray, stable: bool, aggregation: str) -> float | None:
    """The smallest gamma at which this board has an attractor, by bisection."""
    board = maze.fruit(x)[None]
    return first_gamma(lambda gamma: bool(boards.peaks(maze, board, gamma, aggregation)[int(stable)].any()))


def traps(
    task: Task, count: int, tell: Callable[[str], None] = lambda text: None, aggregation: str = "sum"
) -> dict[str, Any]:
    """How often a random board is a trap, against gamma."""
    if count < 1:
        raise BadInput(f"boards is {count}: give at least 1")
    gammas = sorted([k / 20 for k in range(4, 20)] + [1 / 3, 0.99])
    shares = boards.trap_shares(task, gammas, count, tell=tell, aggregation=aggregation)
    return {"task": task.name, "options": task.options, "aggregation": aggregation, "boards": count, "shares": shares}


def sweep(task: Task, aggregation: str = "sum") -> dict[str, Any]:
    """The preference for each action in the first state against gamma, which one wins, and the critical gamma."""
    gammas = [k / 200 for k in range(1, 200)]
    mdp = enumerate_task(task)
    first = int(mdp.start.argmax())
    aggregation = boards.present(task, mdp, aggregation)
    each = [solve(mdp, "egocentric", gamma, aggregation).preferences[first] for gamma in gammas]
    preferences = np.array(each)  # [G, A]
    found = bounds.verdict(mdp, aggregation=aggregation)
    paper = PAPER[task.name](task.options) if task.name in PAPER and aggregation == "sum" else None
    return {
        "task": task.name, "aggregation": aggregation, "state": mdp.label(first), "gammas": gammas,
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
    how = "" if result["aggregation"] == "sum" else f" aggregated by {result['aggregation']}"
    lines = [f"{result['task']}, {result['planning']}{how}, gamma = {result['gamma']:g}"]
    lines += [line for line in (result["model"], *result["verdict"].splitlines()) if line]
    held = len(result["values"]) > 1 or bool(result["stuck"])  # one advisor alone has nothing to be held between
    for one in result["attractors"][: 8 * held]:
        kind = "stable" if one["stable"] else "unstable"
        lines.append(
            f"  {one['state']}: {kind}, margin {one['margin']:.4g}, goes {one['action']}, "
            f"pulled by {', '.join(one['advisors'][:4])}" + (" ..." if len(one["advisors"]) > 4 else "")
        )
    if held and len(result["attractors"]) > 8:
        lines.append(f"  and {len(result['attractors']) - 8} more (--json has all)")
    for one in result["not_progressive"][: 2 * held]:
        lines.append(f"  not progressive: {one['advisor']}, by {one['action']!r} in {one['state']}")
    shown = [f"{state}: {action}" for state, action in result["policy"].items()]
    more = [f"and {len(shown) - 6} states more"] if len(shown) > 6 else []
    lines.append("greedy policy: " + "; ".join([*shown[:6], *more]))
    if not result["converged"]:
        lines.append("not converged: these values are not a fixed point")
    elif result["residual"] is not None:
        bound = result["error_bound"]
        error = "" if bound is None else f", no value is further off than {bound:.1e}"
        lines.append(f"Bellman residual {result['residual']:.1e}{error}")
    return "\n".join(lines)
