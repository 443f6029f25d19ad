"""`multiadvisor solve`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from multiadvisor.analysis.theory import solve_report
from multiadvisor.analysis.theory.noise_bounds import choose
from multiadvisor.commands.parsing import (
    TASK,
    Parser,
    add_environment_flags,
    parse,
    refuse_beside,
    show,
    table,
    task_from_flags,
)  # fmt: skip
from multiadvisor.core.optional_dependencies import require
from multiadvisor.core.progress import Status
from multiadvisor.errors import BadInput
from multiadvisor.settings import Settings, described, number_between, whole_number


def parser() -> Parser:
    """The flags."""
    flags = Parser(
        "solve",
        "Solve a task exactly: values, greedy policy, attractors (states where the aggregator would rather stay), and\n"
        "a verdict in plain words. Environments are solved by their own table of transitions, or explored by copying\n"
        "them, or estimated from a sample of steps: the output says which.\n\n"
        "Of mazes with random fruit, one board is solved, and greedy episodes are played from it and others\n"
        "(--board), or many boards are asked whether they are traps (--boards). With --noise it says which setting to\n"
        "use where rewards are noisy.",
        "multiadvisor solve FrozenLake-v1 --env-kwarg is_slippery=false\n"
        "  multiadvisor solve three-fruits --sweep-gamma --out sweep.png\n"
        "  multiadvisor solve fruit-grid --board 3 --gamma 0.7",
    )
    flags.add_argument("task", metavar="TASK", help=TASK)
    flags.flag("--planning", str, "whose fixed point to compute (default egocentric)")
    flags.flag("--aggregation", str, "how advice is combined: max, p_norm:5, fruits=max, ... (sum)")
    flags.flag("--gamma", float, "discount factor (default: that of training)")
    flags.flag("--full-states", bool, "let every advisor see the whole state", rare=True)
    flags.flag("--sweep-gamma", bool, "which action wins in the first state, by gamma")
    flags.flag("--board", int, "the board of the episode with this seed, and its episodes", metavar="SEED", rare=True)
    flags.flag("--boards", int, "this many random boards: how often are they traps?", rare=True)
    flags.flag("--noise", float, "which setting to use with this noise on rewards", rare=True)
    flags.flag("--run", Path, "with --board: the learned values of this saved run", metavar="RUN", rare=True)
    flags.flag("--sample", int, "steps from which an environment is estimated that cannot be listed (default 20000)")
    flags.flag("--out", Path, "save the figure here, as .png and .svg")
    add_environment_flags(flags)
    return flags


def run(arguments: Sequence[str]) -> int:
    """Exact values, attractors and a verdict."""
    given = parse(parser(), arguments)
    if given.out is not None:
        require("plots")  # first of all: without it, or where the figure cannot go, nothing should start
        from multiadvisor.viz import plots

        plots.check_place(given.out)

    draw: Callable[[], Any]
    _refuse_idle_flags(given)
    aggregation = given.aggregation or "sum"
    number_between("gamma", 0.0 if given.gamma is None else given.gamma, 0, 1)
    task = task_from_flags(given)
    gamma = described(Settings, {}, task.defaults).gamma if given.gamma is None else given.gamma
    if given.sample is not None:
        if task.world is not None:
            raise BadInput(f"task {task.name!r} is known exactly: leave --sample out")
        whole_number("sample", given.sample, 1)
    if given.noise is not None:
        choice = choose(task, given.noise, gamma)
        show(choice.as_dict(), given.json, str(choice))
        return 0
    if given.boards is not None:
        with Status() as tell:
            result = solve_report.traps(task, given.boards, tell, aggregation)
        head = ["gamma", "attractor", "stable", "stuck"]
        rows = [[f"{row['gamma']:.3g}", *(f"{row[key]:.3f}" for key in head[1:])] for row in result["shares"]]
        text, draw = table(head, rows), lambda: plots.one_axis(plots.trap_curves, result["shares"])
    elif given.sweep_gamma:
        result = solve_report.sweep(task, aggregation)
        text, draw = solve_report.describe_sweep(result), lambda: plots.one_axis(plots.gamma_sweep, result)
    else:
        if given.run is not None:
            found = solve_report.answer_run(task, given.board, given.run)
        elif given.board is not None:
            with Status() as tell:
                found = solve_report.answer_board(task, gamma, given.board, tell, aggregation)
        else:
            planning = given.planning or "egocentric"
            sample = {} if given.sample is None else {"sample": given.sample}
            found = solve_report.answer(
                task, planning, gamma, full=given.full_states, aggregation=aggregation, **sample
            )
        result, text, draw = found.result, solve_report.describe(found.result), lambda: plots.solution(found)
    if given.out is not None:
        text += f"\nfigure in {plots.save(draw(), given.out)}"
    show(result, given.json, text)
    return 0


def _refuse_idle_flags(given: argparse.Namespace) -> None:
    """A flag that would have no effect is a misunderstanding: say so."""
    if given.run is not None and given.board is None:
        raise BadInput("--run shows the learned values of a board: add --board SEED")
    one = ("planning", "gamma", "full_states", "board", "run", "sweep_gamma")  # what is solved, and how
    own = ("planning", "aggregation", "gamma", "full_states")
    every = ("planning", "aggregation", "full_states", "board", "run", "sweep_gamma", "boards", "out")
    refuse_beside(given, "noise", "names a setting and solves nothing", every)
    refuse_beside(given, "boards", "looks at egocentric planning at many gammas", one)
    refuse_beside(given, "sweep_gamma", "looks at egocentric planning at every gamma", one[:-1])
    refuse_beside(given, "run", "has its own planning, aggregation and gamma", own)
    refuse_beside(given, "board", "has exact egocentric values only", ("planning", "full_states"))
