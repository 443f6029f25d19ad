"""The figures of the report on the paper: data and an axis in, the axis back; a setting has one colour everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.core.intervals import interval
from multiadvisor.viz.plots import PALETTE, band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from multiadvisor.core.board_layout import Grid

COLOURS = {
    "egocentric 0.4": "#0072B2", "egocentric 0.9": "#56B4E9", "agnostic 0.9": "#E69F00", "empathic 0.9": "#D55E00",
    "linear Q-learning": "#777777", "DQN-clipped": "#009E73", "random player": "#000000",
}  # fmt: skip
TARGET_COLOURS = {
    "TSP": "#000000", "RL": "#0072B2", "summed egocentric": "#D55E00", "vector egocentric": "#009E73",
    "egocentric": "#CC79A7",
}  # fmt: skip
_DASHES = {"": "-", "0.01": "--", "0.1": ":"}
_DOTTED: dict[str, Any] = {"color": "black", "linewidth": 0.7, "linestyle": (0, (1, 3))}
MARKS = ("o", "s", "^", "D", "v", "P")


def style_of(name: str) -> dict[str, Any]:
    """Colour by setting, dashes by noise."""
    setting, _, noise = name.partition(", noise ")
    return {"color": COLOURS.get(setting, PALETTE[4]), "linestyle": _DASHES.get(noise, "-")}


def finish(axis: Axes) -> Axes:
    """A faint grid, two sides, and the legend below."""
    axis.grid(alpha=0.25)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.legend(fontsize=8.5, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    return axis


def _note(text: str, axis: Axes) -> None:
    axis.set_title(text, fontsize=9, loc="right", color="#444444")


def learning_curves(
    curves: dict[str, np.ndarray], measure: str, label: str, note: str, axis: Axes, lowest: float = -90
) -> Axes:
    """Mean over seeds of [seeds, epochs] with 95% bands; `note`: what was shortened, `lowest`: where scores begin."""
    for name, values in curves.items():
        across = np.arange(1, values.shape[1] + 1)
        band(across, values, axis, alpha=0.18, label=name, linewidth=1.6, **style_of(name))
    axis.set(xlabel="epoch of 20,000 transitions", ylabel=label)
    if measure == "score":
        axis.set_ylim(lowest, 40)
        axis.axhline(37.5, **_DOTTED)
    else:
        axis.set_ylim(bottom=0)
    if note:
        _note(note, axis)
    return finish(axis)


def sight(shares: dict[str, np.ndarray], right: float, axis: Axes) -> Axes:
    """How often an advisor points the right way, [seeds, distances], against the distance to its fruit."""
    for name, values in shares.items():
        away = np.arange(1, values.shape[1] + 1)
        band(away, values, axis, alpha=0.18, label=name, linewidth=1.6, **style_of(name))
    axis.axhline(right, **_DOTTED)
    axis.set(xlabel="steps from the fruit", ylabel="share of cells pointed the right way", ylim=(0, 1.03))
    return finish(axis)


def resting(board: Grid, places: np.ndarray, peaks: np.ndarray, axis: Axes) -> Axes:
    """The maze shaded by how often the agent stands on a cell; rings by how often the solver has an attractor there."""
    shade = np.full(board.shape, np.nan)
    shade[board.cells[:, 0], board.cells[:, 1]] = places / max(places.sum(), 1)
    axis.set_facecolor("#4a4a4a")
    image = axis.imshow(shade, cmap="cividis")
    axis.figure.colorbar(image, ax=axis, shrink=0.8, label="share of late steps spent there")
    often = peaks / max(peaks.max(), 1)
    for (row, column), share in zip(board.cells, often, strict=True):
        if share > 0.02:
            axis.plot(column, row, "o", markersize=3 + 13 * share, markerfacecolor="none", markeredgecolor="#D55E00",
                      markeredgewidth=1.6)  # fmt: skip
    axis.set(xticks=[], yticks=[])
    axis.set_xlabel("ring: attractor of the exact solver, the larger the more often", fontsize=8)
    return axis


def choices(bars: dict[str, list[tuple[str, np.ndarray]]], axis: Axes) -> Axes:
    """The final score of each setting under each option, with intervals over seeds."""
    options = [option for option, _ in next(iter(bars.values()))]
    for k, (name, values) in enumerate(bars.items()):
        shift = (k - (len(bars) - 1) / 2) * 0.12
        for place, (_, scores) in enumerate(values):
            low, high = interval(scores)
            mean = float(scores.mean())
            axis.errorbar(place + shift, mean, [[mean - low], [high - mean]], fmt=MARKS[k % len(MARKS)],
                          color=style_of(name)["color"], markersize=5, capsize=2, label=name if place == 0 else None
                          )  # fmt: skip
    axis.set_xticks(range(len(options)), [o.replace(" after ", "\nafter ") for o in options], fontsize=8)
    axis.set_xlim(-0.5, len(options) - 0.5)
    axis.set(ylabel="final score")
    return finish(axis)


def values_by_gamma(result: dict[str, Any], measure: str, label: str, axis: Axes) -> Axes:
    """Networks fitted to four kinds of values against gamma, with their bands; exact values dashed."""
    for source, style in (("table", "-"), ("exact", "--")):
        for target in dict.fromkeys(row["target"] for row in result[source]):
            rows = [row for row in result[source] if row["target"] == target]
            gammas = [row["gamma"] for row in rows]
            if gammas == [None]:  # does not depend on gamma: a level line
                gammas, rows = [min(result["gammas"]), max(result["gammas"])], rows * 2
            name = target if source == "table" else f"{target}, exact"
            axis.plot(gammas, [row[measure] for row in rows], style, color=TARGET_COLOURS[target], label=name)
            if source == "table":
                ends = np.array([row[f"{measure}_interval"] for row in rows])  # [gammas, 2]
                axis.fill_between(gammas, *ends.T, color=TARGET_COLOURS[target], alpha=0.15, linewidth=0)
    axis.set(xlabel="gamma", ylabel=label)
    axis.set_ylim(bottom=0)
    count = len(result["seeds"])
    _note(f"{count} seed{'s' * (count != 1)} (--full: 20)", axis)
    return finish(axis)
