"""Figures: data and an axis in, the axis back; nothing here runs an experiment. The only module with matplotlib."""

from __future__ import annotations

import io
import mimetypes
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.analysis.theory import attractors, board_solution
from multiadvisor.analysis.theory.solver import best_actions
from multiadvisor.core.intervals import Estimate, interval
from multiadvisor.core.optional_dependencies import needed
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.storage.files import check_writable, write_atomically

with needed("plots"):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib import patches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from multiadvisor.analysis.theory.solve_report import Answer
    from multiadvisor.analysis.theory.solver import Solution
    from multiadvisor.core.board_layout import Grid
    from multiadvisor.explain.explanation import Explanation

_SUFFIXES = (".png", ".svg")

# Okabe and Ito's colours, told apart by colour-blind readers as well.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")


# ---- curves and intervals --------------------------------------------------------------------------------------------
def band(across: np.ndarray, runs: np.ndarray, axis: Axes, alpha: float = 0.15, **style: Any) -> None:
    """The mean of runs [seeds, points] with its 95% bootstrap band."""
    (line,) = axis.plot(across, runs.mean(axis=0), **style)
    axis.fill_between(across, *interval(runs.T, resamples=500), color=line.get_color(), alpha=alpha, linewidth=0)


def bands(
    curves: dict[str, np.ndarray], across: np.ndarray, words: tuple[str, str], axis: Axes, xscale: str = "linear"
) -> Axes:
    """The mean over seeds of each curve [seeds, points] with its 95% band; `words` name the axes."""
    for name, runs in curves.items():
        band(across, runs, axis, label=name)
    axis.set(xlabel=words[0], ylabel=words[1], xscale=xscale)
    axis.grid(alpha=0.25)
    axis.legend()
    return axis


def sweep_curves(curves: dict[str, list[list[tuple[int, float]]]], figure: str, title: str, axis: Axes) -> Axes:
    """Mean over seeds with a 95% bootstrap band; a run is its steps and values, and runs may differ in length."""
    for k, (name, runs) in enumerate(curves.items()):
        length = min(len(run) for run in runs)
        colour, style = PALETTE[k % len(PALETTE)], _STYLES[k // len(PALETTE) % len(_STYLES)]
        label = f"{name} ({len(runs)} seed{'s' if len(runs) > 1 else ''})"
        marker = "o" if length == 1 else None
        steps = np.array([at for at, _ in runs[0][:length]])
        values = np.array([[value for _, value in run[:length]] for run in runs])  # [seeds, evaluations]
        band(steps, values, axis, color=colour, linestyle=style, marker=marker, label=label)
    words = {"score": "score of an episode", "length": "steps of an episode",
             "terminated": "share of episodes that terminated"}  # fmt: skip
    axis.set(xlabel="steps", ylabel=words.get(figure, f"{figure}, per episode"), title=title)
    axis.locator_params(axis="x", integer=True)
    axis.grid(alpha=0.25)
    if len(curves) <= 28:
        axis.legend(fontsize=8 if len(curves) <= 10 else 6, loc="best")
    return axis


def intervals(seen: dict[str, Estimate], label: str, axis: Axes) -> Axes:
    """A number for each name with its 95% interval, one below the other."""
    for row, one in enumerate(seen.values()):
        axis.plot([one.low, one.high], [row, row], color="tab:blue", linewidth=2, alpha=0.5)
        axis.plot([one.value], [row], "o", color="tab:blue")
    axis.set_yticks(range(len(seen)), list(seen))
    axis.set_ylim(len(seen) - 0.5, -0.5)
    axis.set_xlabel(label)
    axis.grid(alpha=0.25)
    return axis


# ---- the theory lab --------------------------------------------------------------------------------------------------
def _aggregated(solution: Solution) -> str:
    """The aggregation, for titles, where it is not the sum."""
    return "" if solution.aggregation == "sum" else f", {solution.aggregation}"


def board_policy(board: Grid, solution: Solution, fruit: np.ndarray, start: int, axis: Axes) -> Axes:
    """Values as shades, greedy actions as arrows (ties drawn as ties), attractors as rings: full where stable."""
    height, width = board.shape
    shade = np.full((height, width), np.nan)
    for cell, (row, column) in enumerate(board.cells):
        if not fruit[cell]:
            shade[row, column] = solution.preferences[cell].max()
    axis.set_facecolor("#f4f1ea")
    for row, column in np.argwhere(board.walls):
        corner = (float(column) - 0.5, float(row) - 0.5)
        axis.add_patch(
            patches.Rectangle(corner, 1, 1, facecolor="#3a3a3a", edgecolor="#777777", hatch="////", linewidth=0)
        )
    image = axis.imshow(shade, cmap="cividis", zorder=0)
    low, high = image.get_clim()
    dark = low + 0.55 * (high - low)  # arrows are drawn light on dark shades and dark on light ones
    plt.colorbar(image, ax=axis, shrink=0.8, label="best value of the aggregator")
    best, reach = best_actions(solution.preferences), 0.32
    for cell, (row, column) in enumerate(board.cells):
        if fruit[cell]:
            axis.plot(column, row, "o", color="#CC79A7", markeredgecolor="black", markersize=9, zorder=3)
            continue
        ink = "white" if shade[row, column] < dark else "black"
        for action in np.flatnonzero(best[cell]):
            down, right = list(DIRECTIONS.values())[action]
            axis.annotate(
                "", (column + reach * right, row + reach * down), (column, row), zorder=2,
                arrowprops={"arrowstyle": "-|>", "color": ink, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
    for one in attractors(solution) if solution.planning == "egocentric" else ():
        row, column = board.cells[one.state]
        style = {"linewidth": 2.5, "linestyle": "-" if one.stable else ":"}
        axis.add_patch(patches.Circle((column, row), 0.45, fill=False, color="#D55E00", zorder=4, **style))
    row, column = board.cells[start]
    axis.plot(column, row, "s", color="white", markeredgecolor="black", markeredgewidth=1.5, markersize=7, zorder=5)
    axis.set(xticks=[], yticks=[])
    axis.set_title(f"gamma = {solution.gamma:g}{_aggregated(solution)}")
    axis.set_xlabel("dot: fruit, square: start\nring: attractor (dotted: unstable)", fontsize=8)
    return axis


def preference_bars(solution: Solution, axis: Axes, most: int = 12) -> Axes:
    """The preference for every action, state by state; attractors are marked in the label."""
    mdp, states = solution.mdp, min(solution.mdp.states, most)
    held = {one.state for one in attractors(solution)} if solution.planning == "egocentric" else set()
    wide = 0.8 / len(mdp.actions)
    for a, name in enumerate(mdp.actions):
        place = np.arange(states) + (a - (len(mdp.actions) - 1) / 2) * wide
        axis.bar(place, solution.preferences[:states, a], wide, label=name, color=PALETTE[a % len(PALETTE)])
    labels = [mdp.label(state) + (" (attractor)" if state in held else "") for state in range(states)]
    few = states <= 4
    axis.set_xticks(np.arange(states), labels, rotation=0 if few else 60, ha="center" if few else "right")
    axis.axhline(0, color="black", linewidth=0.8)
    rest = "" if states == mdp.states else f", {states} of {mdp.states} states"
    axis.set(
        ylabel="value to the aggregator",
        title=f"{mdp.name}, {solution.planning}, gamma = {solution.gamma:g}{_aggregated(solution)}{rest}",
    )
    axis.legend(fontsize=8)
    return axis


def gamma_sweep(result: dict[str, Any], axis: Axes) -> Axes:
    """Each action's value in the first state against gamma, the critical gamma found, and the paper's if it has one."""
    for k, (name, values) in enumerate(result["preferences"].items()):  # dashes: equal values lie on each other
        axis.plot(result["gammas"], values, _STYLES[k % 4], color=PALETTE[k % len(PALETTE)], linewidth=2, label=name)
    if (found := result["critical_gamma"]) is not None:
        axis.axvline(found, color="black", linewidth=1, label=f"attractor from {found:.4f} on")
    if (paper := result["paper"]) is not None:
        axis.axvline(paper, color="#D55E00", linestyle=":", linewidth=3, label=f"the paper's threshold: {paper:.4f}")
    axis.set(
        xlabel="gamma",
        ylabel="value to the aggregator",
        title=f"{result['task']}: which action wins in the first state",
    )
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8)
    return axis


def trap_curves(rows: list[dict[str, Any]], axis: Axes) -> Axes:
    """The share of random boards that are traps, against gamma, with the bounds of the paper."""
    names = {"attractor": "has an attractor", "stable": "has a stable one", "stuck": "greedy episode ends stuck"}
    for (key, name), colour, style in zip(names.items(), PALETTE, ("-", "--", "-."), strict=False):
        shares = [row[key] for row in rows]
        axis.plot([row["gamma"] for row in rows], shares, style, color=colour, marker="o", markersize=3, label=name)
    for bound, text in ((1 / 3, "1/3"), (1 / 2, "1/2")):
        axis.axvline(bound, color="black", linewidth=0.8, linestyle=":")
        axis.text(bound, 1.03, text, ha="center", fontsize=8)
    axis.set(xlabel="gamma", ylabel=f"share of {rows[0]['boards']:,} random boards", ylim=(-0.02, 1.12))
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="center left")
    return axis


def solution(answer: Answer) -> Figure:
    """A board with its policy where there is one, else bars."""
    task, x, flat, maze = answer.task, answer.board, answer.solution, maze_of(answer.task)
    cells = 0 if maze is None else len(maze.neighbour)
    if x is None or cells == 0 or (flat.planning != "egocentric" and flat.mdp.states != cells):
        return one_axis(preference_bars, flat)
    board = task.grid
    fruit = np.isin(np.arange(cells), board.item_cells[board.lying(x)])
    if flat.mdp.states != cells:  # every subset of the fruits was solved: draw the first board
        flat = board_solution(task, x, flat.gamma, aggregation=flat.aggregation)
    height, width = board.shape
    size = (max(5.0, 0.55 * width + 2), max(3.5, 0.55 * height + 1))
    return one_axis(board_policy, board, flat, fruit, int(x[0]), size=size)


def explanation_bars(explanation: Explanation, axis: Axes, most: int = 14) -> Axes:
    """What each advisor adds to the action over the other, largest magnitude first; who decides is hatched."""
    rows = list(explanation.differences.items())
    shown = rows[:most]
    if len(rows) > most:
        shown.append((f"{len(rows) - most} more", sum(value for _, value in rows[most:])))
    marks = dict.fromkeys(explanation.msx_plus, "MSX+") | dict.fromkeys(explanation.msx_minus, "MSX-")
    for place, (name, value) in enumerate(shown):
        mark = marks.get(name, "")
        axis.barh(place, value, color=PALETTE[0] if value > 0 else PALETTE[3], hatch="///" if mark else None,
                  edgecolor="black", linewidth=0.5)  # fmt: skip
        beside = f" {value:+.2f} {mark} "
        axis.text(value, place, beside, va="center", ha="left" if value >= 0 else "right", fontsize=8)
    axis.set_yticks(range(len(shown)), [name for name, _ in shown])
    axis.invert_yaxis()
    axis.axvline(0, color="black", linewidth=0.8)
    axis.margins(x=0.25)
    axis.set_xlabel(f"for {explanation.action} over {explanation.against}: {explanation.advantage:+.3f} in all")
    words = [textwrap.wrap(text, 80, break_on_hyphens=False) for text in (explanation.sentence, explanation.caveat)]
    axis.set_title("\n".join([*words[0], *words[1]]), fontsize=9)
    return axis


# ---- figures and files -----------------------------------------------------------------------------------------------
def several(*draws: Callable[[Axes], Axes], size: tuple[float, float] = (10, 4), across: int = 0) -> Figure:
    """Axes side by side in one figure, each drawn by its own function; `across`: at most so many in a row."""
    columns = min(across or len(draws), len(draws))
    rows = -(-len(draws) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for draw, axis in zip(draws, axes.flat, strict=False):
        draw(axis)
    for axis in axes.flat[len(draws) :]:
        axis.set_axis_off()
    return figure


def one_axis(draw: Callable[..., Axes], *arguments: Any, size: tuple[float, float] = (7, 4.5)) -> Figure:
    """A figure with one axis, drawn by one of the functions above."""
    return several(lambda axis: draw(*arguments, axis), size=size)


def check_place(path: Path) -> None:
    """Refuse a name or a folder to which no figure can go, before hours are spent on it."""
    kind = mimetypes.MimeTypes().guess_type(path.name, strict=False)[0]
    if kind is not None and path.suffix.lower() not in _SUFFIXES:
        raise BadInput(f"a figure is saved as PNG and SVG, not as {path.suffix}: name it {path.stem}.png")
    check_writable(path.parent)


def save(figure: Figure, path: Path) -> Path:
    """As PNG and SVG, the same bytes every time; where the PNG is."""
    base = str(path)[:-4] if path.suffix.lower() in _SUFFIXES else str(path)
    for kind in ("png", "svg"):
        write_atomically(Path(f"{base}.{kind}"), drawn(figure, kind))
    plt.close(figure)
    return Path(f"{base}.png")


def drawn(figure: Figure, kind: str, salt: str = "multiadvisor") -> bytes:
    """The file's content, with nothing in it that changes from run to run; `salt` names the parts of an SVG."""
    content = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        figure.savefig(content, format=kind, dpi=120, metadata=metadata)
    return content.getvalue()


def both(figure: Figure, name: str) -> tuple[bytes, bytes]:
    """A figure as SVG, whose parts carry its name so that several may stand in one page, and as PNG."""
    content = drawn(figure, "svg", name), drawn(figure, "png")
    plt.close(figure)
    return content
