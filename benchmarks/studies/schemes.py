"""Settings beyond the paper's, where they are tried, and the runs that try them.

What is chosen is chosen on some mazes and seeds (`choice_runs`) and reported on others (`report_runs`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.runs.jobs import Job, Tell, kind, silent
from multiadvisor.runs.training import RunConfig
from multiadvisor.studies.study import LAST, Plan, unique
from studies.mazes import Maze, choice_mazes, report_mazes

FIRST = 5  # epochs in which learning is looked at for its speed
BAD = 5  # touches of an episode that is a bad one
MEASURES = ("score", "length", "terminated", "touches", "bad")
CHOICE_SEED, CHOICE_SEEDS = 500, 4  # those of a report begin at `FRESH`


@dataclass(frozen=True)
class Scheme:
    """How advisors plan, and how their advice is aggregated."""

    planning: str
    gamma: float
    aggregation: str = "sum"
    alpha_half: int = 0

    @property
    def name(self) -> str:
        """In words.

        >>> Scheme("fruits=empathic,ghosts=egocentric", 0.9, "fruits=max_plus:0.1").name
        'empathic fruits, egocentric ghosts 0.9, max_plus:0.1'
        """
        who = ", ".join(" ".join(reversed(part.split("="))) for part in self.planning.split(","))
        aggregation = self.aggregation.removeprefix("fruits=")
        cooling = f", alpha halved after {self.alpha_half:,}" if self.alpha_half else ""
        return f"{who} {self.gamma:g}, {aggregation}{cooling}"


EGO_LOW, EGO_HIGH = Scheme("egocentric", 0.4), Scheme("egocentric", 0.9)
AGNOSTIC, EMPATHIC = Scheme("agnostic", 0.9), Scheme("empathic", 0.9)
PAPERS = (EGO_LOW, EGO_HIGH, AGNOSTIC, EMPATHIC)


def aggregated(scheme: Scheme, aggregation: str) -> Scheme:
    """The same advisors, whose advice on fruit is aggregated in another way; ghosts are summed."""
    return replace(scheme, aggregation=f"fruits={aggregation}")


EGO_MAX, EMP_MAX = aggregated(EGO_HIGH, "max"), aggregated(EMPATHIC, "max")
EMP_P5, EMP_PLUS = aggregated(EMPATHIC, "p_norm:5"), aggregated(EMPATHIC, "max_plus:0.1")
_KIND = Scheme("fruits=empathic,ghosts=egocentric", 0.9)  # empathic fruits, egocentric ghosts
_CAREFUL = Scheme("fruits=egocentric,ghosts=empathic", 0.9)
TEMPERED = Scheme("tempered", 0.9)
MAIN = (EGO_MAX, EMP_MAX, EMP_P5, EMP_PLUS)
CANDIDATES = (
    *MAIN, aggregated(EMPATHIC, "p_norm:3"), aggregated(EMPATHIC, "p_norm:8"), aggregated(EGO_HIGH, "p_norm:8"),
    aggregated(EGO_HIGH, "max_plus:0.1"), aggregated(_KIND, "max"), aggregated(_CAREFUL, "max"),
    aggregated(Scheme("expected_sarsa", 0.9), "max"), replace(EMP_MAX, gamma=0.95),
    aggregated(TEMPERED, "max"), aggregated(TEMPERED, "max_plus:0.1"), replace(aggregated(TEMPERED, "max"), gamma=0.95),
    replace(EMP_MAX, alpha_half=500_000), replace(EMP_PLUS, alpha_half=500_000),
)  # fmt: skip
NOISES, FEW_NOISES = (0.0, 0.01, 0.03, 0.1, 0.3), (0.0, 0.1, 0.3)
CHOICE_NOISES = (0.0, 0.03, 0.1, 0.3)
GAMMAS, FEW_GAMMAS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99), (0.4, 0.9, 0.99)
GAMMA_NOISES = (0.0, 0.1)
SWEPT = (EGO_HIGH, EMPATHIC, EGO_MAX, EMP_MAX)


@dataclass(frozen=True)
class Case:
    """Where a scheme is tried."""

    maze: Maze
    noise: float = 0.0
    rules: str = "paper"

    @property
    def name(self) -> str:
        """In words."""
        rules = "" if self.rules == "paper" else f", rules {self.rules}"
        return f"{self.maze.name}, noise {self.noise:g}{rules}"


def pac_boy(noise: float = 0.0, rules: str = "paper") -> Case:
    """The paper's maze."""
    return Case(report_mazes()["Pac-Boy"], noise, rules)


# ---- one run ---------------------------------------------------------------------------------------------------------
def run_job(scheme: Scheme, case: Case, seed: int, plan: Plan) -> Job:
    """One run."""
    config = {
        "task": "pac-boy", "options": {**case.maze.options, "rules": case.rules},
        "settings": {
            "planning": scheme.planning, "gamma": scheme.gamma, "aggregation": scheme.aggregation,
            "alpha_half": scheme.alpha_half, "noise": case.noise, "seed": seed,
        },
        "schedule": plan.schedule(),
    }  # fmt: skip
    return Job("scheme", {"run": RunConfig.parse(config).as_config()})


@kind("scheme", lease=600.0)
def run_work(config: dict[str, Any], folder: Path | None = None, tell: Tell = silent) -> dict[str, Any]:
    """The score of every epoch, and the means of the first and the last; bad episodes are those with many touches."""
    run = RunConfig.parse(config["run"])
    agent = MultiAdvisor(run.make_task(), run.settings)._prepare()
    rows = []
    for epoch in range(1, run.schedule.evaluations + 1):
        agent.learn(run.schedule.due(epoch) - agent.steps, progress=False)
        rows.append(_looked_at(agent, run.schedule.eval_episodes, epoch))
        tell(epoch / run.schedule.evaluations)
    figures = np.array(rows)  # [epochs, measures]

    def means(part: np.ndarray) -> dict[str, float]:
        return {name: round(float(value), 6) for name, value in zip(MEASURES, part.mean(axis=0), strict=True)}

    return {"first": means(figures[:FIRST]), "last": means(figures[-LAST:]), "scores": figures[:, 0].round(3).tolist()}


def _looked_at(agent: MultiAdvisor, episodes: int, epoch: int) -> list[float]:
    """Score, steps, finished, touches and bad episodes of greedy play: the very episodes of `agent.evaluate`."""
    played = agent.play(episodes, epoch)  # which needs no intervals of its own
    metrics = agent.task.metrics
    touches = metrics(played.returns)["touches"] if metrics else np.zeros(episodes)
    return [float(figure.mean()) for figure in
            (played.score, played.length, played.terminated, touches, touches >= BAD)]  # fmt: skip


# ---- all runs --------------------------------------------------------------------------------------------------------
def choice_seeds(plan: Plan) -> range:
    """The seeds that a scheme is chosen on."""
    return range(CHOICE_SEED, CHOICE_SEED + min(CHOICE_SEEDS, plan.seeds))


def schemes_of(plan: Plan) -> tuple[Scheme, ...]:
    """Those whose report is asked for."""
    return (*PAPERS, *(CANDIDATES if plan.full else MAIN))


def cases_of(plan: Plan, maze: str) -> list[Case]:
    """A maze of the report with each noise."""
    return [Case(report_mazes()[maze], noise, plan.rules) for noise in (NOISES if plan.full else FEW_NOISES)]


def choice_cases() -> list[Case]:
    """Where a scheme is chosen."""
    return [Case(maze, noise) for maze in choice_mazes().values() for noise in CHOICE_NOISES]


def gamma_cases(plan: Plan) -> list[tuple[Scheme, Case]]:
    """Four schemes at every gamma, on Pac-Boy."""
    gammas = GAMMAS if plan.full else FEW_GAMMAS
    return [(replace(scheme, gamma=gamma), pac_boy(noise, plan.rules))
            for noise in GAMMA_NOISES for gamma in gammas for scheme in SWEPT]  # fmt: skip


def other_rules(plan: Plan) -> list[Case]:
    """Pac-Boy by the rules that the plan does not follow."""
    return [pac_boy(noise, "hra" if plan.rules == "paper" else "paper") for noise in GAMMA_NOISES]


def all_runs(plan: Plan) -> list[Job]:
    """Every run, seed by seed, so that what is there can be paired whenever it ends."""
    schemes = schemes_of(plan)
    cases = [case for maze in report_mazes() for case in cases_of(plan, maze)]
    report = [*((s, case) for case in [*cases, *other_rules(plan)] for s in schemes), *gamma_cases(plan)]
    runs = [(*one, seed) for seed in plan.each for one in report]
    if plan.full:
        runs += [(s, case, seed) for seed in choice_seeds(plan) for case in choice_cases() for s in schemes]
    return unique(run_job(*one, plan) for one in runs)
