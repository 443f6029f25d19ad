"""Pac-Boy without noise: two baselines and four multi-advisor settings, as in the paper's main figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
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
from multiadvisor.studies import dqn_clipped
from multiadvisor.studies.parts import FULL_EPOCHS, LAST, Evidence, Figure, MissingResult, Part, Plan, many, stretch

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


def epochs_of(evidence: Evidence, setting: Setting) -> list[list[dict[str, Any]]]:
    """The evaluations of every seed of a setting, one after each epoch."""
    plan = evidence.plan
    return [_epochs(evidence.result(job(setting, seed, plan))) for seed in range(plan.seeds)]


def _epochs(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The evaluations of a run, touches among their measures."""
    return [{**one, **one["metrics"]} for one in result["evaluations"]]


def curve(evidence: Evidence, setting: Setting, measure: str = "score") -> np.ndarray:
    """[seeds, epochs] of one measure."""
    return np.array([[epoch[measure] for epoch in run] for run in epochs_of(evidence, setting)], float)


def final(evidence: Evidence, setting: Setting, measure: str = "score") -> np.ndarray:
    """[seeds]: the mean of the last epochs."""
    return curve(evidence, setting, measure)[:, -LAST:].mean(axis=1)


def dqn_jobs(plan: Plan) -> list[Job]:
    """The runs of DQN-clipped; none where JAX is not installed."""
    if not dqn_clipped.available():
        return []
    common = {"schedule": plan.schedule(plan.dqn_epochs), "rules": plan.rules}
    return [Job("dqn-clipped", {"seed": seed, **common}) for seed in range(plan.dqn_seeds)]


def dqn_epochs(evidence: Evidence) -> list[list[dict[str, Any]]]:
    """The evaluations of every seed of DQN-clipped, one after each epoch."""
    jobs = dqn_jobs(evidence.plan)
    if not jobs:
        raise MissingResult("DQN-clipped is not in this report: networks need the extra deep")
    return [_epochs(evidence.result(one)) for one in jobs]


def dqn_final(evidence: Evidence, measure: str = "score") -> np.ndarray:
    """[seeds]: the mean of the last epochs."""
    last = evidence.plan.dqn_last
    return np.array([np.mean([epoch[measure] for epoch in run[-last:]]) for run in dqn_epochs(evidence)])


def curves(evidence: Evidence, settings: tuple[Setting, ...]) -> dict[str, list[list[dict[str, Any]]]]:
    """The learning curves by name, DQN-clipped among them where there is one."""
    found = {s.name: epochs_of(evidence, with_rules(s, evidence.plan)) for s in settings}
    return found


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
        here = with_rules(setting, evidence.plan)
        rows.append(row(setting.name, {key: final(evidence, here, key) for key in MEASURES}))
        deep = dqn_jobs(evidence.plan) if setting == LINEAR else []
        if deep and all(one.id in evidence.results for one in deep):
            rows.append(row(DQN, {key: dqn_final(evidence, key) for key in MEASURES}))
    return rows


def text_table(rows: list[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    """The table for a page."""
    head = ("setting", "score", "95% interval", "IQM", "length", "all fruit", "touches", "seeds")
    return (head, *(
        (r["setting"], f"{r['score']:.2f}", "[{:.2f}, {:.2f}]".format(*r["score_interval"]), f"{r['score_iqm']:.2f}",
         f"{r['length']:.0f}", f"{r['terminated']:.2f}", f"{r['touches']:.2f}", str(r["seeds"]))
        for r in rows
    ))  # fmt: skip


# ---- figures ---------------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """Every run, and the random player; without ghosts as well, to see what they are to blame for."""
    runs = [job(with_rules(s, plan), seed, plan) for s in SETTINGS for seed in range(plan.seeds)]
    calm = [job(without_ghosts(s, plan), seed, plan) for s in (AGNOSTIC, EMPATHIC) for seed in range(plan.seeds)]
    return [random_job(plan), *runs, *calm, *dqn_jobs(plan)]


def without_ghosts(setting: Setting, plan: Plan) -> Setting:
    """The setting in the maze without ghosts."""
    return replace(setting, rules=plan.rules, ghosts=False)


def _said(value: Estimate) -> str:
    return f"{value.value:.1f} [{value.low:.1f}, {value.high:.1f}]"


def figures(evidence: Evidence) -> list[Figure]:
    """Score, steps, finished episodes and touches against epochs; the table."""
    plan = evidence.plan
    here = {s.name: with_rules(s, plan) for s in SETTINGS}
    shown = curves(evidence, SETTINGS)
    shortened = ""
    if dqn_jobs(plan):
        shown[DQN] = dqn_epochs(evidence)
        if plan.dqn_epochs < max(plan.epochs, FULL_EPOCHS) or plan.dqn_seeds < plan.seeds:
            shortened = f"{DQN}: {many(plan.dqn_seeds, 'seed')} of {many(plan.dqn_epochs, 'epoch')} only"
    else:
        shortened = f"without {DQN}, which this version cannot run"
    low, high = final(evidence, here["egocentric 0.4"]), final(evidence, here["empathic 0.9"])
    faster = paired(final(evidence, here["empathic 0.9"], "length"), final(evidence, here["egocentric 0.4"], "length"))
    fear = estimate(final(evidence, here["agnostic 0.9"], "terminated"))
    stuck = estimate(final(evidence, here["egocentric 0.9"], "length"))
    touched = {name: estimate(final(evidence, s, "touches")) for name, s in here.items()}
    carefullest = min(touched, key=lambda name: touched[name].value)
    length = {name: final(evidence, s, "length").mean() for name, s in here.items()}
    texts = {
        "score": f"Mean of {plan.seeds} seeds with 95% bootstrap bands; final scores are means of "
        f"{stretch('last', plan.last, plan.epochs)}. Egocentric 0.4 ends at {_said(estimate(low))} and empathic 0.9 at "
        f"{_said(estimate(high))}, of {BEST} that a board holds on average; paired by seed, the difference is "
        f"{_said(paired(low, high))}. Egocentric 0.9 ends at "
        f"{_said(estimate(final(evidence, here['egocentric 0.9'])))}, agnostic 0.9 at "
        f"{_said(estimate(final(evidence, here['agnostic 0.9'])))}, linear Q-learning at "
        f"{_said(estimate(final(evidence, here['linear Q-learning'])))}.",
        "length": f"An episode is cut off after 300 steps. Steps of empathic 0.9 less those of egocentric 0.4: "
        f"{_said(faster)} (paired by seed; the paper says 20). Egocentric 0.9 takes {_said(stuck)}.",
        "terminated": f"Agnostic 0.9 eats all the fruit in {100 * fear.value:.0f}% of its last episodes "
        f"[{100 * fear.low:.0f}, {100 * fear.high:.0f}].",
        "touches": f"Fewest in the end: {carefullest}, {touched[carefullest]} an episode. The shortest episodes are "
        f"those of "
        f"{min(length, key=lambda name: length[name])}; per 100 steps the touches are "
        + ", ".join(f"{name} {100 * touched[name].value / length[name]:.2f}" for name in here)
        + ".",
    }
    labels = {"score": "score of an episode", "length": "steps of an episode", "terminated": "share of episodes with "
                                                                                             "all fruit eaten",
              "touches": "touches by ghosts in an episode"}  # fmt: skip
    titles = {"score": "Pac-Boy, no noise", "length": "Steps per episode", "terminated": "Episodes with all fruit "
                                                                                         "eaten",
              "touches": "Touches per episode"}  # fmt: skip

    def draw(measure: str) -> Callable[[], Any]:
        def now() -> Any:
            from multiadvisor.viz import paper_plots

            return paper_plots.curves_figure(shown, measure, labels[measure], shortened)

        return now

    found = [Figure(f"pac-boy-{m}", titles[m], texts[m], draw(m)) for m in MEASURES]
    rows = table(evidence, SETTINGS)
    about = (
        f"Means of {stretch('last', plan.last, plan.epochs)}, of {plan.epochs}; intervals over seeds (of the random "
    )
    about += "player over episodes). IQM is the interquartile mean over seeds." + (
        f" {shortened[0].upper()}{shortened[1:]}." if shortened else ""
    )
    return [Figure("pac-boy-table", "The scores", about, table=text_table(rows)), *found]


PART = Part(
    "pac-boy",
    "Pac-Boy without noise",
    10,
    jobs,
    figures,
    about="the baselines and the multi-advisor settings, without noise",
)
