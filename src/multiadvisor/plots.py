"""Figures: data and an axis in, the axis back; nothing here runs an experiment. The only module with matplotlib."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.errors import BadInput
from multiadvisor.runs.files import write_atomically
from multiadvisor.statistics import interval

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    raise BadInput("figures need matplotlib: install it with pip install 'multiadvisor[plots]'") from None

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers as well; one setting has one colour everywhere.
COLOURS = {
    "egocentric 0.4": "#0072B2", "egocentric 0.9": "#56B4E9", "agnostic 0.9": "#E69F00", "empathic 0.9": "#D55E00",
}  # fmt: skip
Curves = dict[str, list[list[dict[str, Any]]]]


def learning_curves(curves: Curves, axis: Axes, figure: str = "score") -> Axes:
    """Mean over seeds against epochs, with a 95% bootstrap band; noisier settings are dashed and dotted."""
    for name, runs in curves.items():
        values = np.array([[epoch[figure] for epoch in run] for run in runs])  # [seeds, epochs]
        epochs = np.arange(1, values.shape[1] + 1)
        band = np.array([interval(column, resamples=500) for column in values.T])  # [epochs, 2]
        setting, _, noise = name.partition(", noise ")
        style = {"": "-", "0.01": "--", "0.1": ":"}[noise]
        colour = COLOURS[setting]
        axis.plot(epochs, values.mean(axis=0), style, color=colour, label=name)
        axis.fill_between(epochs, band[:, 0], band[:, 1], color=colour, alpha=0.15, linewidth=0)
    axis.set_xlabel("epoch")
    axis.grid(alpha=0.25)
    return axis


def pac_boy(curves: Curves, transitions: int) -> Figure:
    """The paper's two Pac-Boy figures, and beside them how long a game takes."""
    plain = {name: runs for name, runs in curves.items() if "noise" not in name}
    noisy = {name: runs for name, runs in curves.items() if "noise" in name}
    seeds = len(next(iter(curves.values())))
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    learning_curves(plain, axes[0]).set(title="no noise", ylabel="score of a game", ylim=(-20, 40))
    learning_curves(noisy, axes[1]).set(title="noisy rewards", ylabel="score of a game", ylim=(-20, 40))
    learning_curves(plain, axes[2], "turns").set(title="no noise", ylabel="turns of a game", ylim=(0, 310))
    for axis in axes:
        axis.legend(fontsize=8, loc="lower right")
    figure.suptitle(
        f"Pac-Boy: greedy games after each epoch of {transitions:,} transitions, mean of {seeds} seeds, 95% bands"
    )
    return figure


def save(figure: Figure, path: Path) -> None:
    """As PNG and SVG, the same bytes every time."""
    for kind in ("png", "svg"):
        content = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "multiadvisor"}):
            figure.savefig(
                content, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else {"Software": None}
            )
        write_atomically(path.with_suffix(f".{kind}"), content.getvalue())
    plt.close(figure)
