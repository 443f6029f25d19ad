"""Pac-Boy without noise: two baselines and four multi-advisor settings, as in the paper's main figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.intervals import Estimate, estimate, interquartile_mean, interval, paired
from multiadvisor.core.rng import EVALUATION, stream_key
from multiadvisor.envs.builtin import make
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.rollout import vector_rollout
from multiadvisor.runs.jobs import Job, Tell, kind
from multiadvisor.runs.training import RunConfig
from multiadvisor.studies.paper import dqn_clipped
from multiadvisor.studies.study import (
    ALL,
    FULL_EPOCHS,
    LAST,
    Evidence,
    Figure,
    MissingResult,
    Plan,
    Study,
    Table,
    curve_of,
    many,
    stretch,
)

BEST = 37.5  # fruits on a board, on average: no player can score more
MEASURES = ("score", "length", "terminated", "touches")
DQN = "DQN-clipped"
RANDOM_EPISODES = 1000


@dataclass(frozen=True)
class Setting:
    """One line of a figure: how an agent learns Pac-Boy."""

    planning: str
    gamma: float
    noise: float = 0.0
    learner: str = "tabular"
    rules: str = "paper"
    epsilon: float = 0.05
    alpha: float = 0.1
    alpha_half: int = 0
    ghosts: bool = True

    @property
    def name(self) -> str:
        """As in the paper's legend."""
        if self.learner == "linear":
            return "linear Q-learning"
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.planning} {self.gamma:g}{noise}"


LINEAR = Setting("egocentric", 0.9, learner="linear")
EGO_LOW, EGO_HIGH = Setting("egocentric", 0.4), Setting("egocentric", 0.9)
AGNOSTIC, EMPATHIC = Setting("agnostic", 0.9), Setting("empathic", 0.9)
ADVISORS = (EGO_LOW, EGO_HIGH, AGNOSTIC, EMPATHIC)
SETTINGS = (LINEAR, *ADVISORS)


# ---- work ------------------------------------------------------------------------------------------------------------
def job(setting: Setting, seed: int, plan: Plan) -> Job:
    """One run of a setting."""
    return Job("train", run_config(setting, seed, plan))


def run_config(setting: Setting, seed: int, plan: Plan) -> dict[str, Any]:
    """A run as data."""
    settings = {name: value for name, value in asdict(setting).items() if name not in ("rules", "ghosts")}
    config = {
        "task": "pac-boy", "options": {"rules": setting.rules, "ghosts": setting.ghosts},
        "settings": {**settings, "seed": seed},
        "schedule": plan.schedule(),
    }  # fmt: skip
    return RunConfig.parse(config).as_config()


def trained(config: dict[str, Any]) -> MultiAdvisor:
    """The agent at the end of a run."""
    run = RunConfig.parse(config)
    agent = MultiAdvisor(run.make_task(), run.settings)
    return agent.learn(run.schedule.steps, progress=False)


def random_job(plan: Plan) -> Job:
    """The player without a plan."""
    return Job("random-player", {"episodes": RANDOM_EPISODES, "rules": plan.rules})


@kind("random-player")
def random_work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """The score, steps, finish and touches of uniformly random actions, one episode on each of so many boards."""
    task, episodes = make("pac-boy", rules=config["rules"]), config["episodes"]
    env = CompiledEnv(task, [stream_key(seed, EVALUATION, 1 << 30) for seed in range(episodes)])
    generator = np.random.default_rng(0)
    fruits = task.grid.lying(env.reset()).sum(axis=1)
    length, returns, finished = np.zeros(episodes), np.zeros((episodes, task.n)), np.zeros(episodes)
    assert task.limit is not None
    assert task.metrics is not None
    for step, episode in vector_rollout(env, lambda: generator.integers(len(task.actions), size=episodes)):
        length += episode == 0
        returns += step.reward
        finished[step.terminated] = 1
    return {
        "score": (returns @ task.weights).tolist(), "length": length.tolist(), "terminated": finished.tolist(),
        "touches": task.metrics(returns)["touches"].tolist(), "fruits": fruits.tolist(),
    }  # fmt: skip


# ---- results ---------------------------------------------------------------------------------------------------------
def with_rules(setting: Setting, plan: Plan) -> Setting:
    """The setting under the plan's rules."""
    return replace(setting, rules=plan.rules)


def curve(evidence: Evidence, setting: Setting, measure: str = "score") -> np.ndarray:
    """[seeds, epochs] of one measure."""
    return evidence.curve(lambda seed: job(setting, seed, evidence.plan), measure)


def final(evidence: Evidence, setting: Setting, measure: str = "score") -> np.ndarray:
    """[seeds]: the mean of the last epochs."""
    return np.asarray(curve(evidence, setting, measure)[:, -LAST:].mean(axis=1))


def at(evidence: Evidence, setting: Setting, measure: str = "score") -> np.ndarray:
    """[seeds]: the final figure of a setting under the plan's rules."""
    return final(evidence, with_rules(setting, evidence.plan), measure)


def dqn_jobs(plan: Plan) -> list[Job]:
    """The runs of DQN-clipped; none where JAX is not installed."""
    if not dqn_clipped.available():
        return []
    common = {"schedule": plan.schedule(plan.dqn_epochs), "rules": plan.rules}
    return [Job("dqn-clipped", {"seed": seed, **common}) for seed in range(plan.dqn_seeds)]


def dqn_curve(evidence: Evidence, measure: str = "score") -> np.ndarray:
    """[seeds, epochs] of one measure of DQN-clipped."""
    jobs = dqn_jobs(evidence.plan)
    if not jobs:
        raise MissingResult("DQN-clipped is not in this report: networks need the extra deep")
    return np.array([curve_of(evidence.result(one), measure) for one in jobs])


def dqn_final(evidence: Evidence, measure: str = "score") -> np.ndarray:
    """[seeds]: the mean of the last epochs."""
    return np.asarray(dqn_curve(evidence, measure)[:, -evidence.plan.dqn_last :].mean(axis=1))


def curves(evidence: Evidence, settings: tuple[Setting, ...], measure: str = "score") -> dict[str, np.ndarray]:
    """[seeds, epochs] of one measure of each setting, by name."""
    return {s.name: curve(evidence, with_rules(s, evidence.plan), measure) for s in settings}


def row(name: str, measures: dict[str, np.ndarray]) -> dict[str, Any]:
    """One row of the table: means over seeds with intervals, and the interquartile mean of the score."""
    means = {key: float(values.mean()) for key, values in measures.items()}
    bands = {f"{key}_interval": interval(values) for key, values in measures.items()}
    middle = estimate(measures["score"], interquartile_mean)
    return {"setting": name, **means, **bands, "score_iqm": middle.value, "score_iqm_interval": middle.interval,
            "seeds": len(measures["score"])}  # fmt: skip


def table(evidence: Evidence, settings: tuple[Setting, ...]) -> list[dict[str, Any]]:
    """The rows of all settings, the random player first."""
    played = evidence.result(random_job(evidence.plan))
    rows = [row("random player", {key: np.array(played[key]) for key in MEASURES})]
    for setting in settings:
        rows.append(row(setting.name, {key: at(evidence, setting, key) for key in MEASURES}))
        deep = dqn_jobs(evidence.plan) if setting == LINEAR else []
        if deep and all(one.id in evidence.results for one in deep):
            rows.append(row(DQN, {key: dqn_final(evidence, key) for key in MEASURES}))
    return rows


def text_table(rows: list[dict[str, Any]]) -> Table:
    """The table for a page."""
    head = ("setting", "score", "95% interval", "IQM", "length", "all fruit", "touches", "seeds")
    return (head, *(
        (r["setting"], f"{r['score']:.2f}", "[{:.2f}, {:.2f}]".format(*r["score_interval"]), f"{r['score_iqm']:.2f}",
         f"{r['length']:.0f}", f"{r['terminated']:.2f}", f"{r['touches']:.2f}", str(r["seeds"]))
        for r in rows
    ))  # fmt: skip


# ---- the study -------------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """Every run, and the random player; without ghosts as well, to see what they are to blame for."""
    settings = [*(with_rules(s, plan) for s in SETTINGS), *(without_ghosts(s, plan) for s in (AGNOSTIC, EMPATHIC))]
    return [random_job(plan), *(job(s, seed, plan) for s in settings for seed in plan.each), *dqn_jobs(plan)]


def without_ghosts(setting: Setting, plan: Plan) -> Setting:
    """The setting in the maze without ghosts."""
    return replace(setting, rules=plan.rules, ghosts=False)


def _said(value: Estimate) -> str:
    return f"{value.value:.1f} [{value.low:.1f}, {value.high:.1f}]"


def _texts(evidence: Evidence) -> dict[str, str]:
    """What is said below the curves of each measure."""
    plan = evidence.plan

    def end(setting: Setting, measure: str = "score") -> Estimate:
        return estimate(at(evidence, setting, measure))

    low, kind = at(evidence, EGO_LOW), at(evidence, EMPATHIC)
    faster = paired(at(evidence, EMPATHIC, "length"), at(evidence, EGO_LOW, "length"))
    fear = end(AGNOSTIC, "terminated")
    touched = {s.name: end(s, "touches") for s in SETTINGS}
    length = {s.name: at(evidence, s, "length").mean() for s in SETTINGS}
    fewest, shortest = min(touched, key=lambda name: touched[name].value), min(length, key=lambda name: length[name])
    rates = ", ".join(f"{name} {100 * one.value / length[name]:.2f}" for name, one in touched.items())
    return {
        "score": f"Mean of {plan.seeds} seeds with 95% bootstrap bands; final scores are means of "
        f"{stretch('last', plan.last, plan.epochs)}. Egocentric 0.4 ends at {_said(estimate(low))} and empathic 0.9 at "
        f"{_said(estimate(kind))}, of {BEST} that a board holds on average; paired by seed, the difference is "
        f"{_said(paired(low, kind))}. Egocentric 0.9 ends at {_said(end(EGO_HIGH))}, agnostic 0.9 at "
        f"{_said(end(AGNOSTIC))}, linear Q-learning at {_said(end(LINEAR))}.",
        "length": f"An episode is cut off after 300 steps. Steps of empathic 0.9 less those of egocentric 0.4: "
        f"{_said(faster)} (paired by seed; the paper says 20). Egocentric 0.9 takes {_said(end(EGO_HIGH, 'length'))}.",
        "terminated": f"Agnostic 0.9 eats all the fruit in {100 * fear.value:.0f}% of its last episodes "
        f"[{100 * fear.low:.0f}, {100 * fear.high:.0f}].",
        "touches": f"Fewest in the end: {fewest}, {touched[fewest]} an episode. The shortest episodes are those of "
        f"{shortest}; per 100 steps the touches are {rates}.",
    }


_LABELS = {
    "score": ("Pac-Boy, no noise", "score of an episode"), "length": ("Steps per episode", "steps of an episode"),
    "terminated": ("Episodes with all fruit eaten", "share of episodes with all fruit eaten"),
    "touches": ("Touches per episode", "touches by ghosts in an episode"),
}  # fmt: skip


def figures(evidence: Evidence) -> list[Figure]:
    """Score, steps, finished episodes and touches against epochs; the table."""
    from multiadvisor.viz import paper_plots

    plan, texts = evidence.plan, _texts(evidence)
    deep, shortened = bool(dqn_jobs(plan)), ""
    if not deep:
        shortened = f"without {DQN}, which this version cannot run"
    elif plan.dqn_epochs < max(plan.epochs, FULL_EPOCHS) or plan.dqn_seeds < plan.seeds:
        shortened = f"{DQN}: {many(plan.dqn_seeds, 'seed')} of {many(plan.dqn_epochs, 'epoch')} only"
    about = f"Means of {stretch('last', plan.last, plan.epochs)}, of {plan.epochs}; intervals over seeds (of the "
    about += "random player over episodes). IQM is the interquartile mean over seeds."
    about += f" {shortened[0].upper()}{shortened[1:]}." if shortened else ""
    found = [Figure("pac-boy-table", "The scores", about, table=text_table(table(evidence, SETTINGS)))]
    for measure, (title, label) in _LABELS.items():
        shown = curves(evidence, SETTINGS, measure) | ({DQN: dqn_curve(evidence, measure)} if deep else {})
        panel = partial(paper_plots.learning_curves, shown, measure, label, shortened)
        found.append(Figure(f"pac-boy-{measure}", title, texts[measure], (panel,)))
    return found


STUDY = Study(
    "pac-boy", "Pac-Boy without noise", 10, jobs, figures, report=ALL, needs=("plots", "deep"),
    about="the baselines and the multi-advisor settings, without noise",
    data=lambda evidence: {"table": table(evidence, SETTINGS)},
)  # fmt: skip
