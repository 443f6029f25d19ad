"""The figures of the report on the paper: data in, a figure out; one setting has one colour everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.core.intervals import interval
from multiadvisor.viz import plots
from multiadvisor.viz.plots import COLOURS, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from multiadvisor.core.board_layout import Grid

SIZE = (4.8, 3.9)  # inches: readable in one column of a phone
_DASHES = {"": "-", "0.01": "--", "0.1": ":"}
_MARKS = ("o", "s", "^", "D", "v", "P")


def style_of(name: str) -> dict[str, Any]:
    """Colour by setting, dashes by noise."""
    setting, _, noise = name.partition(", noise ")
    return {"color": COLOURS.get(setting, PALETTE[4]), "linestyle": _DASHES.get(noise, "-")}


def curves_figure(curves: dict[str, Any], measure: str, label: str, note: str, lowest: float = -90) -> Figure:
    """Mean over seeds against epochs with 95% bands; `note` says what was shortened, `lowest` is where scores begin."""

    def draw(axis: Axes) -> Axes:
        for name, runs in curves.items():
            values = np.array([[epoch[measure] for epoch in run] for run in runs], float)  # [seeds, epochs]
            epochs = np.arange(1, values.shape[1] + 1)
            band = np.array([interval(column, resamples=500) for column in values.T])  # [epochs, 2]
            style = style_of(name)
            axis.plot(epochs, values.mean(axis=0), label=name, linewidth=1.6, **style)
            axis.fill_between(epochs, band[:, 0], band[:, 1], color=style["color"], alpha=0.18, linewidth=0)
        axis.set(xlabel="epoch of 20,000 transitions", ylabel=label)
        if measure == "score":
            axis.set_ylim(lowest, 40)
            axis.axhline(37.5, color="black", linewidth=0.7, linestyle=(0, (1, 3)))
        else:
            axis.set_ylim(bottom=0)
        if note:
            axis.set_title(note, fontsize=9, loc="right", color="#444444")
        return _finish(axis)

    return plots.one_axis(draw, size=SIZE)


def _finish(axis: Axes) -> Axes:
    axis.grid(alpha=0.25)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.legend(fontsize=8.5, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    return axis


def sight_figure(sight: dict[str, np.ndarray], right: float) -> Figure:
    """How often an advisor points the right way against the distance to its fruit."""

    def draw(axis: Axes) -> Axes:
        for name, shares in sight.items():
            away, style = np.arange(1, shares.shape[1] + 1), style_of(name)
            band = np.array([interval(column, resamples=500) for column in shares.T])
            axis.plot(away, shares.mean(axis=0), label=name, linewidth=1.6, **style)
            axis.fill_between(away, band[:, 0], band[:, 1], color=style["color"], alpha=0.18, linewidth=0)
        axis.axhline(right, color="black", linewidth=0.7, linestyle=(0, (1, 3)))
        axis.set(xlabel="steps from the fruit", ylabel="share of cells pointed the right way", ylim=(0, 1.03))
        return _finish(axis)

    return plots.one_axis(draw, size=SIZE)


def resting_figure(board: Grid, places: np.ndarray, peaks: np.ndarray) -> Figure:
    """The maze shaded by how often the agent stands on a cell; rings by how often the solver has an attractor there."""

    def draw(axis: Axes) -> Axes:
        height, width = board.shape
        shade = np.full((height, width), np.nan)
        shade[board.cells[:, 0], board.cells[:, 1]] = places / max(places.sum(), 1)
        axis.set_facecolor("#4a4a4a")
        image = axis.imshow(shade, cmap="cividis")
        axis.figure.colorbar(image, ax=axis, shrink=0.8, label="share of late steps spent there")
        often = peaks / max(peaks.max(), 1)
        for (row, column), share in zip(board.cells, often, strict=True):
            if share > 0.02:
                axis.plot(column, row, "o", markersize=3 + 13 * share, markerfacecolor="none",
                          markeredgecolor="#D55E00", markeredgewidth=1.6)  # fmt: skip
        axis.set(xticks=[], yticks=[])
        axis.set_xlabel("ring: attractor of the exact solver, the larger the more often", fontsize=8)
        return axis

    return plots.one_axis(draw, size=SIZE)


def lines_figure(lines: dict[str, np.ndarray], places: list[str], xlabel: str, ylabel: str) -> Figure:
    """Means over seeds of [places, seeds] at each place, with 95% intervals; the paper's settings dashed."""

    def draw(axis: Axes) -> Axes:
        for k, (name, values) in enumerate(lines.items()):
            mean, ends = values.mean(axis=1), np.array([interval(row) for row in values])
            axis.errorbar(np.arange(len(places)) + 0.03 * k, mean, [mean - ends[:, 0], ends[:, 1] - mean], label=name,
                          color=PALETTE[k % len(PALETTE)], marker=_MARKS[k % len(_MARKS)], markersize=4, capsize=2,
                          linewidth=1.3, linestyle="--" if name.endswith(", sum") else "-")  # fmt: skip
        axis.set_xticks(range(len(places)), places)
        axis.set(xlabel=xlabel, ylabel=ylabel)
        return _finish(axis)

    return plots.one_axis(draw, size=SIZE)


def choices_figure(bars: dict[str, list[tuple[str, np.ndarray]]]) -> Figure:
    """The final score of each setting under each option, with intervals over seeds."""

    def draw(axis: Axes) -> Axes:
        options = [option for option, _ in next(iter(bars.values()))]
        for k, (name, values) in enumerate(bars.items()):
            shift = (k - (len(bars) - 1) / 2) * 0.12
            for place, (_, scores) in enumerate(values):
                low, high = interval(scores)
                mean, style = float(scores.mean()), style_of(name)
                axis.errorbar(place + shift, mean, [[mean - low], [high - mean]], fmt=_MARKS[k % len(_MARKS)],
                              color=style["color"], markersize=5, capsize=2, label=name if place == 0 else None
                              )  # fmt: skip
        axis.set_xticks(range(len(options)), [o.replace(" after ", "\nafter ") for o in options], fontsize=8)
        axis.set_xlim(-0.5, len(options) - 0.5)
        axis.set(ylabel="final score")
        return _finish(axis)

    return plots.one_axis(draw, size=SIZE)


def value_figure(result: dict[str, Any], measure: str, label: str) -> Figure:
    """Networks fitted to four kinds of values against gamma; exact values dashed."""

    def draw(axis: Axes) -> Axes:
        plots.value_lines(result, measure, label, axis)
        axis.set_title(f"{len(result['seeds'])} seeds (--full: 20)", fontsize=9, loc="right", color="#444444")
        return _finish(axis)

    return plots.one_axis(draw, size=SIZE)
