"""`multiadvisor solve`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from multiadvisor.commands.parsing import Parser, parse, show, table
from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput


def run(arguments: Sequence[str]) -> int:
    """Exact values, attractors and a verdict."""
    parser = Parser(
        "solve",
        "Solve a task exactly: values, greedy policy, attractors (states where the aggregator would rather stay), and\n"
        "a verdict in plain words. Of mazes with random fruit, one board is solved, and greedy episodes are played "
        "from\n"
        "it and others (--board), or many boards are asked whether they are traps (--boards). With --noise it says\n"
        "which setting to use where rewards are noisy. With --out, a figure is saved as PNG and SVG.",
        "multiadvisor solve three-fruits --gamma 0.6\n"
        "  multiadvisor solve three-fruits --sweep-gamma --out sweep.png\n"
        "  multiadvisor solve pac-boy --no-ghosts --board 3 --gamma 0.7\n"
        "  multiadvisor solve pac-boy --no-ghosts --boards 2000 --out traps.png\n"
        "  multiadvisor solve three-fruits --aggregation max\n"
        "  multiadvisor solve pac-boy --noise 0.1",
    )
    parser.add_argument("task", metavar="TASK", help="a name from `multiadvisor tasks`")
    parser.flag("--planning", str, "whose fixed point to compute (default egocentric)")
    parser.flag("--aggregation", str, "how advice is combined: max, p_norm:5, fruits=max, ... (sum)")
    parser.flag("--gamma", float, "discount factor (default 0.9)")
    parser.flag("--full-states", bool, "let every advisor see the whole state")
    parser.flag("--sweep-gamma", bool, "which action wins in the first state, by gamma")
    parser.flag("--board", int, "the board of the episode with this seed, and its episodes", metavar="SEED")
    parser.flag("--boards", int, "this many random boards: how often are they traps?")
    parser.flag("--noise", float, "which setting to use with this noise on rewards")
    parser.flag("--run", Path, "with --board: the learned values of this saved run", metavar="RUN")
    parser.flag("--out", Path, "save the figure here, as .png and .svg")
    given = parse(parser, arguments)
    if given.out is not None:
        require("plots")  # first of all: without it, or where the figure cannot go, nothing should start
        from multiadvisor.viz import plots

        plots.check_place(given.out)
    from multiadvisor.analysis.theory import solve_report
    from multiadvisor.core.progress import Status
    from multiadvisor.envs.builtin import make
    from multiadvisor.task import check_gamma

    draw: Callable[[], Any]
    _refuse_idle_flags(given)
    gamma = 0.9 if given.gamma is None else given.gamma
    heard = given.aggregation or "sum"
    check_gamma(gamma)
    task = make(given.task, **given.task_options)
    if given.noise is not None:
        from multiadvisor.analysis.theory.noise_bounds import choose

        choice = choose(task, given.noise, gamma)
        show(choice.as_dict(), given.json, str(choice))
        return 0
    if given.boards is not None:
        with Status() as tell:
            result = solve_report.traps(task, given.boards, tell, heard)
        head = ["gamma", "attractor", "stable", "stuck"]
        rows = [[f"{row['gamma']:.3g}", *(f"{row[key]:.3f}" for key in head[1:])] for row in result["shares"]]
        text, draw = table(head, rows), lambda: plots.one_axis(plots.trap_curves, result["shares"])
    elif given.sweep_gamma:
        result = solve_report.sweep(task, heard)
        text, draw = solve_report.describe_sweep(result), lambda: plots.one_axis(plots.gamma_sweep, result)
    else:
        if given.run is not None:
            found = solve_report.answer_run(task, given.board, given.run)
        elif given.board is not None:
            with Status() as tell:
                found = solve_report.answer_board(task, gamma, given.board, tell, heard)
        else:
            planning = given.planning or "egocentric"
            found = solve_report.answer(task, planning, gamma, full=given.full_states, aggregation=heard)
        result, text, draw = found.result, solve_report.describe(found.result), lambda: plots.solution(found)
    if given.out is not None:
        text += f"\nfigure in {plots.save(draw(), given.out)}"
    show(result, given.json, text)
    return 0


def _refuse_idle_flags(given: argparse.Namespace) -> None:
    """A flag that would have no effect is a misunderstanding: say so."""
    set_flags = {
        "--planning": given.planning is not None, "--aggregation": given.aggregation is not None,
        "--gamma": given.gamma is not None,
        "--full-states": given.full_states, "--board": given.board is not None, "--run": given.run is not None,
        "--sweep-gamma": given.sweep_gamma, "--boards": given.boards is not None, "--out": given.out is not None,
    }  # fmt: skip
    others = [flag for flag in set_flags if flag not in ("--aggregation", "--boards", "--out")]
    every = [flag for flag in set_flags if flag != "--gamma"]
    own = ("--planning", "--aggregation", "--gamma", "--full-states")
    modes = {
        "--noise": (given.noise is not None, "names a setting and solves nothing", every),
        "--boards": (given.boards is not None, "looks at egocentric planning at many gammas", others),
        "--sweep-gamma": (given.sweep_gamma, "looks at egocentric planning at every gamma", others),
        "--run": (given.run is not None, "has its own planning, aggregation and gamma", own),
        "--board": (given.board is not None, "has exact egocentric values only", ("--planning", "--full-states")),
    }
    if given.run is not None and given.board is None:
        raise BadInput("--run shows the learned values of a board: add --board SEED")
    for mode, (chosen, why, idle) in modes.items():
        for flag in idle if chosen else ():
            if flag != mode and set_flags[flag]:
                raise BadInput(f"{mode} {why}: leave {flag} out")
