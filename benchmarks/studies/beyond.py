"""Beyond the paper: far-sighted advisors aggregated by max, p-norms and blends, beside the paper's own settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from multiadvisor.core.intervals import Estimate, estimate, interval, paired
from multiadvisor.runs.jobs import Job
from multiadvisor.studies.claims import judge_all
from multiadvisor.studies.paper.tours import WALKS, tours_job
from multiadvisor.studies.study import FRESH, Evidence, Figure, Plan, Study, Table, many, stretch
from studies.given import given_results
from studies.mazes import report_mazes
from studies.schemes import (
    CANDIDATES,
    FIRST,
    PAPERS,
    SWEPT,
    Case,
    Scheme,
    all_runs,
    cases_of,
    choice_cases,
    choice_seeds,
    gamma_cases,
    other_rules,
    run_job,
    schemes_of,
)

BOARDS, FEW_BOARDS = 100, 40  # without ghosts, at most


# ---- results ---------------------------------------------------------------------------------------------------------
def measure(
    evidence: Evidence, scheme: Scheme, case: Case, name: str = "score", when: str = "last",
    seeds: Sequence[int] | None = None,
) -> np.ndarray:  # fmt: skip
    """[seeds]: the mean of the last, or the first, epochs of each run; of the report's seeds, or of these."""
    chosen = evidence.plan.each if seeds is None else seeds
    runs = [evidence.result(run_job(scheme, case, seed, evidence.plan)) for seed in chosen]
    return np.array([run[when][name] for run in runs], float)


def compared(evidence: Evidence, scheme: Scheme, other: Scheme, case: Case, name: str = "score") -> Estimate:
    """The first less the second, paired by seed."""
    return paired(measure(evidence, scheme, case, name), measure(evidence, other, case, name))


def report_cases(plan: Plan) -> list[Case]:
    """Every maze of the report with every noise."""
    return [case for maze in report_mazes() for case in cases_of(plan, maze)]


def boards(evidence: Evidence) -> dict[str, Any]:
    """The boards without ghosts."""
    return evidence.result(boards_job(evidence.plan))


def boards_job(plan: Plan) -> Job:
    """Walks and tours on the same boards."""
    return tours_job(min(plan.boards, BOARDS if plan.full else FEW_BOARDS))


# ---- the choice ------------------------------------------------------------------------------------------------------
def shortfalls(evidence: Evidence) -> dict[Scheme, float]:
    """How far each candidate is ahead of the best of the paper's settings where it does worst, on the choice's runs.

    In parts of what a board holds; the paper's settings are taken at their best case by case, which none of them is.
    """
    seeds = choice_seeds(evidence.plan)
    worst = dict.fromkeys(CANDIDATES, np.inf)
    for case in choice_cases():
        best = max(measure(evidence, paper, case, seeds=seeds).mean() for paper in PAPERS)
        for scheme in CANDIDATES:
            ahead = (measure(evidence, scheme, case, seeds=seeds).mean() - best) / case.maze.holds
            worst[scheme] = min(worst[scheme], float(ahead))
    return worst


def choice(evidence: Evidence) -> Scheme:
    """The candidate whose worst case is the best, from the choice's mazes and seeds alone."""
    worst = shortfalls(evidence)
    return max(worst, key=lambda scheme: worst[scheme])


def against_papers(evidence: Evidence, scheme: Scheme) -> list[tuple[Case, Scheme, Estimate]]:
    """The scheme's score less that of each of the paper's settings, in every case of the report."""
    return [(case, paper, compared(evidence, scheme, paper, case))
            for case in report_cases(evidence.plan) for paper in PAPERS]  # fmt: skip


# ---- tables ----------------------------------------------------------------------------------------------------------
HEAD = ("setting", "score", "95% interval", "length", "terminated", "touches", "bad episodes", "first epochs")


def _row(evidence: Evidence, scheme: Scheme, case: Case) -> tuple[str, ...]:
    score = estimate(measure(evidence, scheme, case))
    steps, finished, touches, bad = (
        measure(evidence, scheme, case, name).mean() for name in ("length", "terminated", "touches", "bad")
    )
    first = measure(evidence, scheme, case, when="first").mean()
    return (scheme.name, f"{score.value:.2f}", f"[{score.low:.2f}, {score.high:.2f}]", f"{steps:.0f}",
            f"{100 * finished:.0f}%", f"{touches:.2f}", f"{100 * bad:.2f}%", f"{first:.1f}")  # fmt: skip


def _table(evidence: Evidence, cases: Sequence[Case], about: str = "noise") -> Table:
    rows = [(f"{getattr(case, about):g}" if about == "noise" else case.name, *_row(evidence, scheme, case))
            for case in cases for scheme in schemes_of(evidence.plan)]  # fmt: skip
    return ((about, *HEAD), *rows)


def _gamma_table(evidence: Evidence) -> Table:
    head = ("noise", "gamma", *(f"{s.planning}, {s.aggregation.removeprefix('fruits=')}" for s in SWEPT))
    found = gamma_cases(evidence.plan)
    rows = []
    for k in range(0, len(found), len(SWEPT)):
        group = found[k : k + len(SWEPT)]
        cells = [
            f"{measure(evidence, s, case).mean():.1f} / {measure(evidence, s, case, 'length').mean():.0f} / "
            f"{100 * measure(evidence, s, case, 'terminated').mean():.0f}%"
            for s, case in group
        ]
        rows.append((f"{group[0][1].noise:g}", f"{group[0][0].gamma:g}", *cells))
    return (head, *rows)


def _tours_table(evidence: Evidence) -> Table:
    found = boards(evidence)
    tour = np.array(found["tours"], float)
    rows = [("near-optimal tour (2-opt and or-opt, restarts)", f"{tour.mean():.1f}", "", "1.00", "100%")]
    for (name, gamma), steps in zip(WALKS, found["walks"], strict=True):
        walked = np.array(steps, float)
        more = paired(walked, tour)
        times, finished = walked.mean() / tour.mean(), (walked < found["limit"]).mean()
        rows.append(
            (f"{name}, gamma {gamma:g}", f"{walked.mean():.1f}", f"{more}", f"{times:.2f}", f"{100 * finished:.0f}%")
        )
    return (("walk", "length", "more than the tour", "times the tour", "terminated"), *rows)


def _choice_table(evidence: Evidence) -> Table:
    worst = shortfalls(evidence)
    rows = []
    for scheme in sorted(worst, key=lambda one: -worst[one]):
        found = [one for _, _, one in against_papers(evidence, scheme)]
        behind, ahead = sum(one.high < 0 for one in found), sum(one.low > 0 for one in found)
        least = min(found, key=lambda one: one.value)
        rows.append((scheme.name, f"{100 * worst[scheme]:+.1f}%", str(ahead), str(len(found) - ahead - behind),
                     str(behind), f"{least}"))  # fmt: skip
    head = ("candidate", "worst case of the choice", "ahead", "equal", "behind", "least difference of the report")
    return (head, *rows)


# ---- the study -------------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """Boards without ghosts, then every run."""
    return [boards_job(plan), *all_runs(plan)]


def _noise_lines(lines: dict[str, np.ndarray], noises: list[str], label: str, axis: Any) -> Any:
    """Means over seeds of [noises, seeds] with 95% intervals; the paper's settings dashed."""
    from multiadvisor.viz.paper_plots import MARKS, finish
    from multiadvisor.viz.plots import PALETTE

    for k, (name, values) in enumerate(lines.items()):
        mean, ends = values.mean(axis=1), np.array([interval(row) for row in values])
        axis.errorbar(np.arange(len(noises)) + 0.03 * k, mean, [mean - ends[:, 0], ends[:, 1] - mean], label=name,
                      color=PALETTE[k % len(PALETTE)], marker=MARKS[k % len(MARKS)], markersize=4, capsize=2,
                      linewidth=1.3, linestyle="--" if name.endswith(", sum") else "-")  # fmt: skip
    axis.set_xticks(range(len(noises)), noises)
    axis.set(xlabel="noise", ylabel=label)
    return finish(axis)


def _noise_figure(evidence: Evidence, name: str, about: str) -> Figure:
    """One measure against noise."""
    cases = cases_of(evidence.plan, "Pac-Boy")
    shown = [scheme for scheme in schemes_of(evidence.plan) if scheme in PAPERS or scheme in CANDIDATES[:4]]
    lines = {s.name: np.array([measure(evidence, s, case, name) for case in cases]) for s in shown}
    noises = [f"{case.noise:g}" for case in cases]
    panel = partial(_noise_lines, lines, noises, f"{name} of an episode")
    return Figure(f"beyond-{name}", f"Pac-Boy, {name} against noise", about, (panel,))


def figures(evidence: Evidence) -> list[Figure]:
    """Tables of every maze, gammas, rules, boards, and the search; score and steps against noise."""
    plan = evidence.plan
    about = (
        f"{many(plan.seeds, 'seed')} from {plan.first_seed} on, means of {stretch('last', plan.last, plan.epochs)}; "
        "bad episodes are those with five touches or more, first epochs the mean score of "
        f"{stretch('first', min(FIRST, plan.epochs), plan.epochs)}. Where a setting names an aggregation other than "
        "the sum, it applies to the fruits, and ghosts are summed."
    )
    found = [_noise_figure(evidence, name, about) for name in ("score", "length")]
    for name, maze in report_mazes().items():
        said = f"An episode is cut off after {maze.limit} steps; a board holds {maze.holds:g} fruits on average. "
        found.append(Figure(f"beyond-{name.lower()}", name, said + about, table=_table(evidence, cases_of(plan, name))))
    gammas = f"Score, steps and finished episodes of Pac-Boy at each gamma; {about}"
    rules = f"Pac-Boy by the rules that others use. {about}"
    walks = (
        f"{many(len(boards(evidence)['tours']), 'board')} of Pac-Boy without ghosts, exact egocentric values, the same "
        "boards for all; intervals are over boards. A walk that is stuck counts with the limit of an episode."
    )
    found += [
        Figure("beyond-gamma", "Every gamma", gammas, table=_gamma_table(evidence)),
        Figure("beyond-rules", "The other rules", rules, table=_table(evidence, other_rules(plan), "name")),
        Figure("beyond-tours", "Boards without ghosts", walks, table=_tours_table(evidence)),
    ]
    if plan.full:
        searched = (
            f"Chosen on {many(len(choice_cases()), 'case')} that are not in the report, with seeds "
            f"{choice_seeds(plan)[0]} to {choice_seeds(plan)[-1]}: the candidate whose worst case is the best, against "
            f"the best of the paper's settings in each. That is {choice(evidence).name}. The other columns are the "
            "report's own mazes and seeds: in how many comparisons with the paper's four settings, by paired intervals "
            "of the score, each candidate is ahead, equal or behind. Of equals, one in forty is behind by pure chance."
        )
        found.append(Figure("beyond-choice", "One that is never worse?", searched, table=_choice_table(evidence)))
    return found


STUDY = Study(
    "beyond", "Beyond the paper", 70, jobs, figures, partial(judge_all, papers=False),
    given=given_results(lambda text: json.loads(text)["results"], "benchmarks/beyond_runs.py"),
    about="not part of all: the strongest wish, p-norms and blends beside the paper's settings; its own report",
    seeds=(3, 10), first_seed=FRESH, flags=("full", "epochs", "rules", "given"), papers=True,
    shortened="only some of the settings, noises and gammas were run, and nothing was searched for",
)  # fmt: skip
