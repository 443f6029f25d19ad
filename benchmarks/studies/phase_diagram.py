"""The phase diagram of Pac-Boy: what is learned over gamma and noise, with the solver's boundary of the attractors.

Egocentric advisors are held by attractors above some gamma (the paper's section 4.1). Where that begins is known
exactly of every board without ghosts; the runs show what is left of it with ghosts, noise and learning. Coarser maps
have exploration, the learning rate and 32 random mazes instead of the noise, and one line zooms in on the boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.attractors import first_gamma
from multiadvisor.analysis.theory.boards import Maze, exact_agent, peaks
from multiadvisor.core.intervals import interval
from multiadvisor.envs.registry import make
from multiadvisor.runs.jobs import Job, Tell, kind, silent
from multiadvisor.runs.training import RunConfig
from multiadvisor.studies.claims import BEYOND, FAILS, HOLDS, Claim, JudgedClaim, Judgement
from multiadvisor.studies.paper.other_mazes import SHAPES, grown
from multiadvisor.studies.study import FRESH, Evidence, Figure, Plan, Study, curve_of, many

PAPERS = ("egocentric", "agnostic", "empathic")
AGGREGATIONS = ("sum", "max")
GAMMAS = {False: tuple(k / 20 for k in range(2, 20)), True: tuple(k / 100 for k in range(5, 100))}
NOISES = {False: (0.0, 0.01, 0.1, 0.5), True: (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)}
EPSILONS, ALPHAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5), (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MAZES = range(8, 16)  # of each shape; the boundary was tried on 0 to 7
ZOOM, ZOOM_SEEDS = tuple(k / 100 for k in range(45, 86)), 8
MEASURES = {"terminated": "share finished", "score": "score", "length": "length", "touches": "touches by ghosts"}
COARSE = {"steps": 200_000, "eval_every": 100_000, "eval_episodes": 40}  # of a run that is not at full length
BOARDS, MAZE_BOARDS = 500, 200  # on which the boundary is looked for
LINES = {
    "attractor": "first board with an attractor", "stable": "first with a stable one",
    "stuck": "half of all exact episodes stuck",
}  # fmt: skip
NEAR = 0.05  # in gamma: so near the solver's boundary that it foretells the runs'


@dataclass(frozen=True)
class Sheet:
    """Maps over gamma and one thing more, for each planning under each aggregation."""

    name: str
    axis: str
    """What goes upwards."""
    rows: dict[str, dict[str, Any]]
    """Settings, and the `maze` where it is another one, by what is written beside the row."""
    gammas: tuple[float, ...]
    plannings: tuple[str, ...] = PAPERS
    aggregations: tuple[str, ...] = ("sum",)
    full: bool = False
    """Whether runs have the paper's length."""


def sheets(plan: Plan) -> dict[str, Sheet]:
    """All maps, the first of which is the phase diagram; the others are coarse always."""
    few, full = GAMMAS[False], plan.full
    plannings = (*PAPERS, "estimate") if full else PAPERS
    noises = {f"{noise:g}": {"noise": noise} for noise in NOISES[full]}
    found = (
        Sheet("noise", "noise", noises, GAMMAS[full], plannings, AGGREGATIONS, full),
        Sheet("epsilon", "epsilon", {f"{epsilon:g}": {"epsilon": epsilon} for epsilon in EPSILONS}, few),
        Sheet("alpha", "alpha", {f"{alpha:g}": {"alpha": alpha} for alpha in ALPHAS}, few),
        Sheet("mazes", "maze", {name: {"maze": name} for name in mazes()}, few, ("egocentric",)),
    )
    return {sheet.name: sheet for sheet in found}


def mazes() -> dict[str, str]:
    """Random mazes of every shape, by name."""
    return {f"{shape} {seed}": f"{grown(shape, seed)}\n" for shape in SHAPES for seed in MAZES}


# ---- the boundary ----------------------------------------------------------------------------------------------------
def boundary_job(maze: str = "") -> Job:
    """The solver's part; of the paper's maze, or of one of `mazes`."""
    if maze:
        return Job("phase-boundary", {"boards": MAZE_BOARDS, "maze": mazes()[maze]})
    return Job("phase-boundary", {"boards": BOARDS, "shares": list(ZOOM)})


@kind("phase-boundary", lease=900.0)
def boundary_work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """Of egocentric advisors under a sum, on random boards without ghosts: the smallest gamma at which some board has
    an attractor, at which some has a stable one, and at which half of the greedy episodes with exact values get stuck
    (fruit is eaten there, so that other boards come about); None where there is none. And at each gamma of `shares`
    the share of boards with a stable attractor, and of such episodes that get stuck.

    Under a maximum there is none: the nearest fruit is nearer from a cell next door.
    """
    task = make("pac-boy", ghosts=False, **({"maze": config["maze"]} if "maze" in config else {}))
    maze, count = Maze(task), config["boards"]
    boards, tell = maze.random_boards(count, 0), tell or silent

    def share(gamma: float, stable: bool = True) -> float:
        tell(0.3)
        return float(peaks(maze, boards, gamma)[stable].any(axis=1).mean())

    def stuck(gamma: float) -> float:
        tell(0.6)
        return 1.0 - exact_agent(task, "egocentric", gamma).evaluate(count).terminated

    return {
        "attractor": first_gamma(lambda gamma: share(gamma, False) > 0.0, digits=4),
        "stable": first_gamma(lambda gamma: share(gamma) > 0.0, digits=4),
        "stuck": first_gamma(lambda gamma: stuck(gamma) > 0.5, digits=4),
        "shares": {"stable": [share(gamma) for gamma in config.get("shares", ())],
                   "stuck": [stuck(gamma) for gamma in config.get("shares", ())]},
    }  # fmt: skip


def boundary(evidence: Evidence, aggregation: str) -> dict[str, float | None]:
    """The boundary's gammas by name."""
    found = dict.fromkeys(LINES) if aggregation == "max" else evidence.result(boundary_job())
    return {name: found[name] for name in LINES}


# ---- the runs --------------------------------------------------------------------------------------------------------
def run_job(plan: Plan, settings: dict[str, Any], full: bool = False) -> Job:
    """One run; a `maze` among the settings is one of `mazes`."""
    own = {name: value for name, value in settings.items() if name != "maze"}
    schedule = plan.schedule() if full else COARSE
    config: dict[str, Any] = {"task": "pac-boy", "settings": own, "schedule": schedule}
    if "maze" in settings:
        config["options"] = {"maze": mazes()[settings["maze"]]}
    return Job("train", RunConfig.parse(config).as_config())


def cell_jobs(plan: Plan, sheet: Sheet, planning: str, aggregation: str, gamma: float, row: str) -> list[Job]:
    """The runs of one cell of a map, one for each seed."""
    settings = {"planning": planning, "aggregation": aggregation, "gamma": gamma, **sheet.rows[row]}
    return [run_job(plan, {**settings, "seed": seed}, sheet.full) for seed in plan.each]


def zoom_jobs(plan: Plan, gamma: float) -> list[Job]:
    """The runs of egocentric advisors at one gamma near the boundary."""
    seeds = range(plan.first_seed, plan.first_seed + max(plan.seeds, ZOOM_SEEDS))
    return [run_job(plan, {"planning": "egocentric", "gamma": gamma, "seed": seed}) for seed in seeds]


def jobs(plan: Plan) -> list[Job]:
    """The boundaries, and every run."""
    return [
        *(boundary_job(maze) for maze in ("", *mazes())),
        *(
            job for sheet in sheets(plan).values()
            for planning in sheet.plannings for aggregation in sheet.aggregations
            for row in sheet.rows for gamma in sheet.gammas
            for job in cell_jobs(plan, sheet, planning, aggregation, gamma, row)
        ),
        *(job for gamma in ZOOM for job in zoom_jobs(plan, gamma)),
    ]  # fmt: skip


def figure_of(evidence: Evidence, job: Job, measure: str) -> float:
    """A measure of one run: the mean of its last evaluations."""
    return float(np.mean(curve_of(evidence.result(job), measure)[-evidence.plan.last :]))


def field(evidence: Evidence, sheet: Sheet, planning: str, aggregation: str, measure: str) -> np.ndarray:
    """[rows, gammas] of a measure: the mean over seeds."""
    return np.array([
        [
            np.mean([figure_of(evidence, job, measure)
                     for job in cell_jobs(evidence.plan, sheet, planning, aggregation, gamma, row)])
            for gamma in sheet.gammas
        ]
        for row in sheet.rows
    ])  # fmt: skip


def first_below(gammas: Sequence[float], finished: Sequence[float]) -> float | None:
    """The gamma from which less than half as many episodes are finished as at the best one, between two of the grid;
    None: there is none.

    >>> first_below([0.5, 0.6, 0.7], [1.0, 0.75, 0.25]), first_below([0.5, 0.6], [0.8, 0.4])
    (0.65, None)
    """
    share = max(finished) / 2
    best = int(np.argmax(finished))
    for k in range(best + 1, len(finished)):
        if finished[k] < share:
            part = (finished[k - 1] - share) / (finished[k - 1] - finished[k])
            return float(round(gammas[k - 1] + part * (gammas[k] - gammas[k - 1]), 6))
    return None


def crossings(evidence: Evidence, sheet: Sheet, aggregation: str = "sum") -> list[float | None]:
    """For each row, the gamma from which egocentric advisors finish less than half as many episodes as at best."""
    found = field(evidence, sheet, "egocentric", aggregation, "terminated")
    return [first_below(sheet.gammas, row.tolist()) for row in found]


def foretold(evidence: Evidence) -> list[float]:
    """For each maze, how far the runs' gamma is from that of the exact episodes; infinite where one of them is none."""
    sheet = sheets(evidence.plan)["mazes"]
    exact = [evidence.result(boundary_job(maze))["stuck"] for maze in sheet.rows]
    pairs = zip(crossings(evidence, sheet), exact, strict=True)
    return [np.inf if runs is None or line is None else abs(runs - line) for runs, line in pairs]


def data(evidence: Evidence) -> dict[str, Any]:
    """All maps as plain data: of each measure the means [rows][gammas], of the boundary what the solver found."""
    found: dict[str, Any] = {"boundary": evidence.result(boundary_job()), "zoom": {
        "gammas": list(ZOOM),
        "terminated": [round(float(np.mean(zoomed(evidence, gamma))), 4) for gamma in ZOOM],
    }}  # fmt: skip
    for name, sheet in sheets(evidence.plan).items():
        found[name] = {"gammas": list(sheet.gammas), "rows": list(sheet.rows)} | {
            f"{planning}, {aggregation}": {
                measure: field(evidence, sheet, planning, aggregation, measure).round(4).tolist()
                for measure in MEASURES
            }
            for planning in sheet.plannings for aggregation in sheet.aggregations
        }  # fmt: skip
    found["mazes"]["boundary"] = [evidence.result(boundary_job(maze)) for maze in mazes()]
    return {"maps": found}


def zoomed(evidence: Evidence, gamma: float) -> np.ndarray:
    """[seeds] the share of episodes that egocentric advisors finish at a gamma near the boundary."""
    return np.array([figure_of(evidence, job, "terminated") for job in zoom_jobs(evidence.plan, gamma)])


# ---- what is said of it ----------------------------------------------------------------------------------------------
def _told(gamma: float | None) -> str:
    return "none" if gamma is None else f"{gamma:.4g}"


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Whether the runs without noise keep to the solver's boundary, in the paper's maze and in others."""
    sheet, lines = sheets(evidence.plan)["noise"], boundary(evidence, "sum")
    gammas, finished = np.array(sheet.gammas), field(evidence, sheet, "egocentric", "sum", "terminated")[0]
    found = []
    if lines["stable"] is not None:
        least = float(finished[gammas < lines["stable"]].min())
        found.append(_finding(
            "phase-free", "Below the gamma at which some board has a stable attractor, egocentric advisors finish",
            "share of episodes finished, at the worst such gamma, without noise", "at least 0.9", least, least >= 0.9,
        ))  # fmt: skip
    if lines["stuck"] is not None:
        most = float(finished[gammas > lines["stuck"] + NEAR].max())
        found.append(_finding(
            "phase-held", "Where exact episodes mostly get stuck, egocentric advisors are held",
            f"share of episodes finished, at the best gamma more than {NEAR:g} above that from which half of the exact "
            "episodes get stuck, without noise", "at most 0.5", most, most <= 0.5,
        ))  # fmt: skip
    near = float(np.mean(np.array(foretold(evidence)) <= NEAR))
    found.append(_finding(
        "phase-mazes", "In other mazes, too, exact episodes without ghosts foretell from which gamma on runs are held",
        f"share of {len(foretold(evidence))} random mazes in which the gamma from which half of the exact episodes get "
        f"stuck is at most {NEAR:g} from that at which half as many learned ones are finished as at best",
        "at least 0.9", near, near >= 0.9,
    ))  # fmt: skip
    return found


def _finding(id: str, text: str, statistic: str, test: str, value: float, holds: bool) -> JudgedClaim:
    return JudgedClaim(Claim(id, BEYOND, text, statistic, test), Judgement(value, None, HOLDS if holds else FAILS))


def phase_map(
    values: np.ndarray, gammas: Sequence[float], rows: Sequence[str], label: str, lines: Sequence[float | None],
    limits: tuple[float, float], title: str, axis: Any,
) -> Any:  # fmt: skip
    """A measure [rows, gammas] as a map; gammas of a boundary as lines, dotted, dashed and solid."""
    middle = np.arange(len(rows) + 1) - 0.5
    step = (gammas[-1] - gammas[0]) / (len(gammas) - 1)
    edges = np.append(np.array(gammas) - step / 2, gammas[-1] + step / 2)
    mesh = axis.pcolormesh(edges, middle, values, vmin=limits[0], vmax=limits[1], cmap="viridis")
    axis.set(xlabel="gamma", ylabel=label, title=title)
    axis.set_yticks(np.arange(len(rows)), rows)
    for gamma, style in zip(lines, (":", "--", "-"), strict=False):
        if gamma is not None:
            axis.axvline(gamma, color="white", linestyle=style, linewidth=1.6)
    axis.figure.colorbar(mesh, ax=axis)
    return axis


def maze_map(values: np.ndarray, sheet: Sheet, lines: Sequence[float | None], axis: Any) -> Any:
    """The map of mazes [mazes, gammas], in each of which the solver's boundary is a mark."""
    phase_map(values, sheet.gammas, tuple(sheet.rows), "", (), (0.0, 1.0), "egocentric, sum", axis)
    axis.tick_params(axis="y", labelsize=6)
    known = [(gamma, k) for k, gamma in enumerate(lines) if gamma is not None]
    return axis.scatter(*zip(*known, strict=True), marker="|", color="white", s=40).axes


def zoom_lines(finished: np.ndarray, exact: dict[str, Sequence[float]], axis: Any) -> Any:
    """What the solver and the runs [gammas, seeds] say of each gamma near the boundary."""
    low, high = interval(finished)
    axis.fill_between(ZOOM, 1 - np.array(high), 1 - np.array(low), alpha=0.25)
    axis.plot(ZOOM, 1 - finished.mean(axis=1), label="runs: episodes not finished")
    axis.plot(ZOOM, exact["stuck"], color="black", label="exact values, no ghosts: episodes that get stuck")
    axis.plot(ZOOM, exact["stable"], color="black", linestyle="--", label="first boards with a stable attractor")
    axis.set(xlabel="gamma", ylabel="share", title="egocentric, sum, without noise")
    axis.legend(fontsize=7)
    return axis


def figures(evidence: Evidence) -> list[Figure]:
    """The phase diagram of each measure, the zoom, the other maps, and the boundary as a table."""
    plan, maps = evidence.plan, sheets(evidence.plan)
    lines = {aggregation: boundary(evidence, aggregation) for aggregation in AGGREGATIONS}
    noise = maps["noise"]
    length = "the paper's length" if noise.full else f"{COARSE['steps']:,} steps"
    seeds = f"{many(plan.seeds, 'seed')} from {plan.first_seed} on"
    about = (
        f"Pac-Boy with two ghosts, {seeds}, {length}; the noise is on "
        f"each advisor's reward while learning. Lines, on egocentric advisors: the solver's exact boundary on {BOARDS} "
        "random boards without ghosts and noise; dotted: the first board that has an attractor, dashed: a stable one, "
        "solid: half of the greedy episodes with exact values get stuck."
    )

    def drawn(sheet: Sheet, measure: str, name: str, title: str, text: str) -> Figure:
        values = {(p, a): field(evidence, sheet, p, a, measure) for p in sheet.plannings for a in sheet.aggregations}
        limits = min(each.min() for each in values.values()), max(each.max() for each in values.values())
        panels = tuple(
            partial(phase_map, each, sheet.gammas, tuple(sheet.rows), sheet.axis,
                    [*lines[a].values()] if p == "egocentric" else [], limits, f"{p}, {a}")
            for (p, a), each in values.items()
        )  # fmt: skip
        high = 3.0 * -(-len(panels) // 2)
        return Figure(name, title, text, panels, (9.0, max(high, 4.0)), across=2)

    found = [drawn(noise, one, f"phase-{one}", f"Pac-Boy, {name}", about) for one, name in MEASURES.items()]
    shares = evidence.result(boundary_job())["shares"]
    finished = np.array([zoomed(evidence, gamma) for gamma in ZOOM])
    found.append(Figure(
        "phase-zoom", "Near the boundary",
        f"{finished.shape[1]} seeds of {COARSE['steps']:,} steps, with 95% intervals, beside what is exact on "
        f"{BOARDS} random boards without ghosts.",
        (partial(zoom_lines, finished, shares),), (6.0, 4.0),
    ))  # fmt: skip
    for name in ("epsilon", "alpha"):
        text = f"Without noise; {seeds}, {COARSE['steps']:,} steps, lines as above."
        found.append(drawn(maps[name], "terminated", f"phase-{name}", f"Share finished, over gamma and {name}", text))
    values = field(evidence, maps["mazes"], "egocentric", "sum", "terminated")
    marks = [evidence.result(boundary_job(maze))["stuck"] for maze in mazes()]
    text = (
        f"{len(marks)} random mazes with as many cells as the paper's; {seeds}, {COARSE['steps']:,} steps. The mark in "
        f"each: the gamma from which half of {MAZE_BOARDS} greedy episodes with exact values and no ghosts get stuck."
    )
    panel = partial(maze_map, values, maps["mazes"], marks)
    found.append(Figure("phase-mazes", "Share finished, in other mazes", text, (panel,), (6.0, 6.5)))
    across = {a: [_told(gamma) for gamma in crossings(evidence, noise, a)] for a in AGGREGATIONS}
    rows = [(a, *(_told(lines[a][name]) for name in LINES), *across[a]) for a in AGGREGATIONS]
    head = ("aggregation", *LINES.values(), *(f"runs, noise {row}" for row in noise.rows))
    text = (
        "The gammas of the exact boundary, and beside them the gamma, between two of the grid, from which egocentric "
        "advisors finish less than half as many episodes as at their best."
    )
    return [*found, Figure("phase-boundary", "Theory and runs", text, table=(head, *rows))]


STUDY = Study(
    "phase-diagram", "The phase diagram of Pac-Boy", 75, jobs, figures, findings,
    about="gamma x noise x planning x aggregation, with the solver's boundary of the attractors; its own report",
    seeds=(2, 20), first_seed=FRESH, flags=("full",),
)  # fmt: skip
