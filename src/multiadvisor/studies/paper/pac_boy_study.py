"""Pac-Boy without noise: two baselines and four multi-advisor settings, as in the paper's main figure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.solver import fixpoint
from multiadvisor.core.intervals import estimate, interquartile_mean, interval
from multiadvisor.core.rng import EVALUATION, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.registry import make
from multiadvisor.envs.rollout import vector_rollout
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.runs.training import RunConfig
from multiadvisor.studies.paper.dqn_clipped import (
    MEASURES,
    differences,
    dqn_curve,
    dqn_final,
    dqn_jobs,
    features_jobs,
    shipped,
)
from multiadvisor.studies.study import (
    ALL,
    LAST,
    Evidence,
    Figure,
    Plan,
    Study,
    Table,
    final_of,
    many,
    panel,
    stretch,
)
from multiadvisor.task import Task

BEST = 37.5  # fruits on a board, on average: no player can score more
DQN = "DQN-clipped"
RANDOM_EPISODES = 1000
CHOICE_SEEDS = (500, 501)  # on which the settings of linear Q-learning are chosen; they are not in the report
DANGER_EPISODES = 200  # of each trained agent
NEAR_GHOST = 2  # steps: a ghost within them is a danger


@dataclass(frozen=True)
class Setting:
    """One line of a figure: how an agent learns Pac-Boy."""

    planning: str
    gamma: float
    noise: float = 0.0
    learner: str = "tabular"
    epsilon: float = 0.05
    alpha: float = 0.1
    alpha_half: int = 0
    rules: str = ""
    """Of the ghosts; empty: the plan's."""
    ghosts: bool = True
    maze: str = ""
    """Its text; empty: the paper's."""

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
SWEPT = tuple(
    replace(LINEAR, gamma=gamma, alpha=alpha, alpha_half=half, epsilon=epsilon)
    for gamma, alpha, half, epsilon in (
        *itertools.product((0.4, 0.7, 0.9, 0.99), (0.02, 0.1), (0, 100_000), (0.05,)),
        *itertools.product((0.4, 0.9), (0.1,), (0,), (0.01, 0.2)),
    )
)
"""Linear Q-learning, whose settings the paper does not state: its own, and others."""


# ---- work ------------------------------------------------------------------------------------------------------------
@cache
def job(setting: Setting, seed: int, plan: Plan) -> Job:
    """One run of a setting."""
    return Job("train", run_config(setting, seed, plan))


def run_config(setting: Setting, seed: int, plan: Plan) -> dict[str, Any]:
    """A run as data."""
    settings = {**asdict(setting), "seed": seed}
    rules, ghosts, maze = (settings.pop(name) for name in ("rules", "ghosts", "maze"))
    options = {"rules": rules or plan.rules, **({"maze": f"{maze}\n"} if maze else {"ghosts": ghosts})}
    config = {"task": "pac-boy", "options": options, "settings": settings, "schedule": plan.schedule()}
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
def random_work(config: dict[str, Any]) -> dict[str, Any]:
    """The score, steps, finish and touches of uniformly random actions, one episode on each of so many boards."""
    task, episodes = make("pac-boy", rules=config["rules"]), config["episodes"]
    env = CompiledEnv(task, [stream_key(seed, EVALUATION, 1 << 30) for seed in range(episodes)])
    generator = np.random.default_rng(0)
    found = played(env, lambda: generator.integers(len(task.actions), size=episodes))
    return {name: figure.tolist() for name, figure in found.items()}


def played(env: CompiledEnv, act: Callable[[], np.ndarray]) -> dict[str, np.ndarray]:
    """Episodes side by side, one for each of an environment's boards: `MEASURES` and `fruits` of each; and in all of
    them together, how many steps began near a ghost and the touches in these (`danger`)."""
    task = env.task
    assert task.metrics is not None
    fruits = task.grid.lying(env.reset()).sum(axis=1)
    returns, danger, apart = np.zeros((len(fruits), task.n)), np.zeros(2), distances(task)
    length, finished = np.zeros(len(fruits)), np.zeros(len(fruits))
    for step, episode in vector_rollout(env, act):
        length += episode == 0
        returns += step.reward
        finished[step.terminated] = 1
        cell, *ghosts = task.grid.movers(step.state).T
        near = (episode == 0) & (np.min([apart[cell, ghost] for ghost in ghosts], axis=0) <= NEAR_GHOST)
        danger += near.sum(), task.metrics(step.reward)["touches"][near].sum()
    touches = task.metrics(returns)["touches"]
    return {"score": returns @ task.weights, "length": length, "terminated": finished, "touches": touches,
            "fruits": fruits, "danger": danger}  # fmt: skip


# ---- near ghosts -----------------------------------------------------------------------------------------------------
def distances(task: Task) -> np.ndarray:
    """[cells, cells]: the steps from each cell of a maze to each other."""
    neighbour = task.grid.neighbour
    cells = len(neighbour)
    apart = np.where(np.eye(cells, dtype=bool), 0, cells)
    return np.asarray(fixpoint(lambda d: np.minimum(d, 1 + d[neighbour].min(axis=1)), apart))


def danger_job(setting: Setting, seed: int, plan: Plan) -> Job:
    """How a trained agent does near ghosts."""
    return Job("danger", {"run": run_config(setting, seed, plan), "episodes": DANGER_EPISODES})


@kind("danger")
def danger_work(config: dict[str, Any]) -> dict[str, Any]:
    """Greedy episodes of a trained agent, side by side: the steps begun near a ghost, and the touches in these."""
    agent, episodes = trained(config["run"]), config["episodes"]
    task = agent.task
    env = CompiledEnv(task, [stream_key(agent.settings.seed, EVALUATION, (1 << 30) + k) for k in range(episodes)])
    values = [agent.values(j) for j in range(task.n)]
    ghosts = len(task.grid.sprites) - 1
    fruits = np.stack(values[ghosts:], axis=1)  # [cells, fruits, A]
    generator = np.random.default_rng(agent.settings.seed)

    def act() -> np.ndarray:
        cell, *others = task.grid.movers(env.x).T
        preferences = np.einsum("ef,efa->ea", task.grid.lying(env.x), fruits[cell])
        for ghost, there in enumerate(others):
            preferences += values[ghost][cell * len(fruits) + there]
        best = preferences >= preferences.max(axis=1, keepdims=True)
        return np.asarray(np.where(best, generator.random(best.shape), -1.0).argmax(axis=1))

    return {"danger": played(env, act)["danger"].tolist()}


def danger_rate(evidence: Evidence, setting: Setting) -> np.ndarray:
    """[seeds]: touches in a step that begins near a ghost."""
    steps, touches = evidence.over(lambda seed: danger_job(setting, seed, evidence.plan), "danger").T
    return np.asarray(touches / np.maximum(steps, 1))


# ---- results ---------------------------------------------------------------------------------------------------------
def curve(evidence: Evidence, setting: Setting, measure: str = "score") -> np.ndarray:
    """[seeds, epochs] of one measure."""
    return evidence.curve(lambda seed: job(setting, seed, evidence.plan), measure)


def final(evidence: Evidence, setting: Setting, measure: str = "score") -> np.ndarray:
    """[seeds]: the mean of the last epochs."""
    return np.asarray(curve(evidence, setting, measure)[:, -LAST:].mean(axis=1))


def row(name: str, measures: dict[str, np.ndarray]) -> dict[str, Any]:
    """One row of the table: means over seeds with intervals, and the interquartile mean of the score."""
    means = {key: float(values.mean()) for key, values in measures.items()}
    bands = {f"{key}_interval": interval(values) for key, values in measures.items()}
    middle = estimate(measures["score"], interquartile_mean)
    return {"setting": name, **means, **bands, "score_iqm": middle.value, "score_iqm_interval": middle.interval,
            "seeds": len(measures["score"])}  # fmt: skip


def row_of(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    """The row of a setting."""
    return row(setting.name, {key: final(evidence, setting, key) for key in MEASURES})


def table(evidence: Evidence, settings: Sequence[Setting] = SETTINGS) -> list[dict[str, Any]]:
    """The rows of all settings, the random player first."""
    player = evidence.result(random_job(evidence.plan))
    rows = [row("random player", {key: np.array(player[key]) for key in MEASURES})]
    for setting in settings:
        rows.append(row_of(evidence, setting))
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
    made = ((job, (*SETTINGS, without_ghosts(AGNOSTIC), without_ghosts(EMPATHIC))), (danger_job, ADVISORS))
    runs = [make_job(s, seed, plan) for make_job, those in made for s in those for seed in plan.each]
    swept = [job(s, seed, plan) for s in SWEPT for seed in swept_seeds(plan)]
    return [random_job(plan), *runs, *swept, *dqn_jobs(plan), *features_jobs(plan)]


def swept_seeds(plan: Plan) -> tuple[int, ...]:
    """Those of other settings of linear Q-learning: the seeds of the choice, then a few of the report."""
    return (*CHOICE_SEEDS, *plan.each[: plan.wide_seeds])


def sweep(evidence: Evidence) -> dict[Setting, tuple[float, np.ndarray]]:
    """The final score of each: its mean over the choice's seeds, the best first, and that of each seed of the
    report's."""
    found, plan = {}, evidence.plan
    for setting in SWEPT:
        scores = np.array([final_of(evidence.result(job(setting, seed, plan))) for seed in swept_seeds(plan)])
        found[setting] = float(scores[: len(CHOICE_SEEDS)].mean()), scores[len(CHOICE_SEEDS) :]
    return dict(sorted(found.items(), key=lambda pair: -pair[1][0]))


def without_ghosts(setting: Setting) -> Setting:
    """The setting in the maze without ghosts."""
    return replace(setting, ghosts=False)


_SHOWN = {
    "score": ("Pac-Boy, no noise", "score of an episode",
              f"Means over seeds with 95% bootstrap bands; a board holds {BEST} fruits on average."),
    "length": ("Steps per episode", "steps of an episode", "An episode is cut off after 300 steps."),
    "terminated": ("Episodes with all fruit eaten", "share of episodes with all fruit eaten", ""),
    "touches": ("Touches per episode", "touches by ghosts in an episode", ""),
}  # fmt: skip
"""Of each measure the title, the axis and the words below."""


def figures(evidence: Evidence) -> list[Figure]:
    """Score, steps, finished episodes and touches against epochs; the table."""
    plan = evidence.plan
    deep = bool(dqn_jobs(plan))
    length = dqn_curve(evidence).shape if deep else ()
    note = f"{DQN}: {many(length[0], 'seed')} of {many(length[1], 'epoch')}" if deep else f"without {DQN}"
    about = f"Means of {stretch('last', plan.last, plan.epochs)}, of {plan.epochs}; intervals over seeds (of the "
    about += "random player over episodes). IQM is the interquartile mean over seeds."
    about += f" {DQN}: {shipped().origin}." if deep and not plan.full else f" {note[0].upper()}{note[1:]}."
    found = [Figure("pac-boy-table", "The scores", about, table=text_table(table(evidence)))]
    for measure, (title, label, text) in _SHOWN.items():
        shown = {s.name: curve(evidence, s, measure) for s in SETTINGS}
        shown |= {DQN: dqn_curve(evidence, measure)} if deep else {}
        curves = panel("learning_curves", shown, measure, label, note)
        found.append(Figure(f"pac-boy-{measure}", title, text, (curves,)))
    text = "The paper names the standard algorithm of Mnih et al. (2015), and no figures but of its input."
    return [*found, sweep_figure(evidence), Figure("pac-boy-dqn", DQN, text, table=differences())]


def sweep_figure(evidence: Evidence) -> Figure:
    """Linear Q-learning in other settings."""
    found = sweep(evidence)
    _, tuned = next(iter(found.values()))
    head = ("gamma", "alpha", "halved after", "epsilon", "score on the seeds of the choice", "score on the report's")
    rows = [
        (f"{s.gamma:g}", f"{s.alpha:g}", f"{s.alpha_half:,}" if s.alpha_half else "never", f"{s.epsilon:g}",
         f"{chosen:.1f}", f"{scores.mean():.1f}")
        for s, (chosen, scores) in found.items()
    ]  # fmt: skip
    text = (
        "The paper states neither learning rate nor gamma nor epsilon of linear Q-learning. Chosen on seeds "
        f"{CHOICE_SEEDS[0]} to {CHOICE_SEEDS[-1]} and reported on {many(len(tuned), 'seed')} of the report: the best "
        f"on the former ends at {tuned.mean():.1f}. The curve of the report is that of gamma {LINEAR.gamma:g}, alpha "
        f"{LINEAR.alpha:g}."
    )
    return Figure("pac-boy-linear", "Linear Q-learning in other settings", text, table=(head, *rows))


STUDY = Study(
    "pac-boy", "Pac-Boy without noise", 10, jobs, figures, report=ALL,
    about="the baselines and the multi-advisor settings, without noise",
    data=lambda evidence: {"table": table(evidence)},
)  # fmt: skip
