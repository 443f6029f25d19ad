"""Are explanations true? Each one that is shown, against branches: the other action is taken, and the policy goes on.

No number was chosen on the agents that are reported; the code was tried on those of `TRIED`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from measures.tables import machine
from multiadvisor.agent import MultiAdvisor, load
from multiadvisor.diagnosis.branches import agreement, correlations, horizon_of, spread_over, states
from multiadvisor.diagnosis.consequences import Consequences, _pair, consequences
from multiadvisor.diagnosis.sample import Watch, gather
from multiadvisor.envs.registry import make
from multiadvisor.task import Advisor, Task

TRIED = (("CartPole", 0), ("CartPole", 1), ("Pendulum", 1), ("Acrobot", 1), ("LunarLander", 1), ("Hopper", 1))
"""On which the code was tried, with seeds that are not reported."""
FIRST = 2
"""The first seed that is reported."""
FOLDER = Path("runs/faithfulness")
STATES, DRAWS = 40, 8
CEILING = 0.5
"""The agreement of two halves of the truth below which nobody could agree with it."""
_QUARTER = 0.75


class Case(NamedTuple):
    """A task and how its agent is trained."""

    task: Callable[[], Task]
    settings: dict[str, Any]
    steps: int
    states: int = STATES
    draws: int = DRAWS
    needs: str = ""


def cartpole() -> Task:
    """Two terms, one of which hurts the other."""
    return make("CartPole-v1", advisors=[
        Advisor("alive", reward=lambda t: 1.0), Advisor("centre", reward=lambda t: -abs(float(t.next_observation[0]))),
    ])  # fmt: skip


def acrobot() -> Task:
    """Height of the tip, and time."""
    return make("Acrobot-v1", advisors=[
        Advisor("time", reward=lambda t: float(t.reward)),
        Advisor("height", reward=lambda t: float(-t.next_observation[0] - (
            t.next_observation[0] * t.next_observation[2] - t.next_observation[1] * t.next_observation[3])) - 1.0),
        Advisor("speed", reward=lambda t: -0.02 * float(t.next_observation[4] ** 2 + t.next_observation[5] ** 2)),
    ])  # fmt: skip


def lander() -> Task:
    """Fuel, landing or crashing, and the shaping that is left."""
    return make("LunarLander-v3", advisors=[
        Advisor("fuel", reward=lambda t: (0.0, -0.03, -0.3, -0.03)[int(t.action)]),
        Advisor("end", reward=lambda t: float(np.sign(t.reward) * 100.0) if t.terminated else 0.0),
        Advisor("shaping", reward="remainder"),
    ])  # fmt: skip


def pendulum() -> Task:
    """The three terms of its reward."""
    return make("Pendulum-v1", advisors=[
        Advisor("angle", reward=lambda t: -float(np.arctan2(t.observation[1], t.observation[0]) ** 2)),
        Advisor("speed", reward=lambda t: -0.1 * float(t.observation[2] ** 2)),
        Advisor("torque", reward=lambda t: -0.001 * float(t.action[0] ** 2)),
    ])  # fmt: skip


_DQN = {"name": "dqn", "hidden": (64, 64), "learning_starts": 1_000, "epsilon_steps": 8_000, "learning_rate": 1e-3}
_SAC = {"name": "sac", "hidden": (64, 64), "critics": "separate"}
CASES = {
    "Pac-Boy, egocentric 0.4": Case(lambda: make("pac-boy"), {"planning": "egocentric", "gamma": 0.4}, 1_000_000, 60),
    "Pac-Boy, empathic 0.9": Case(lambda: make("pac-boy"), {"planning": "empathic", "gamma": 0.9}, 1_000_000, 60, 16),
    "CartPole": Case(cartpole, {"learner": _DQN, "gamma": 0.99}, 20_000),
    "Acrobot": Case(acrobot, {"learner": _DQN, "gamma": 0.99}, 30_000),
    "LunarLander": Case(lander, {"learner": _DQN, "gamma": 0.99}, 80_000, 24, 4),
    "Pendulum": Case(pendulum, {"learner": _SAC, "gamma": 0.99}, 30_000),
    "Hopper": Case(lambda: make("Hopper-v5", advisors="info:reward_*"), {"learner": _SAC, "gamma": 0.99}, 60_000,
                   needs="mujoco"),
}  # fmt: skip


def trained(name: str, seed: int, folder: Path = FOLDER) -> MultiAdvisor:
    """The agent of a case, as it was saved, or trained now."""
    case, place = CASES[name], folder / f"{name.replace(' ', '-').replace(',', '')}-{seed}"
    task = case.task()
    if (place / "agent.json").exists():
        return load(place, task)
    agent = MultiAdvisor(task, seed=seed, **case.settings).learn(case.steps, progress=False)
    place.mkdir(parents=True, exist_ok=True)
    agent.save(place)
    return agent


# ---- what is asked ---------------------------------------------------------------------------------------------------
class Asked(NamedTuple):
    """B states in which an action was compared with another, by K terms; effects have their weights."""

    truth: np.ndarray  # [B, D, K] whole branches
    short: np.ndarray  # [B, K] on demand
    told: np.ndarray  # [B, K] bool: what the answers on demand tell
    expected: np.ndarray  # [B, K] what the agent's advisors expect
    without: np.ndarray  # [B, K] bool: without the term the other action is expected to be better
    seconds: float  # CPU time of an answer

    @property
    def true(self) -> np.ndarray:
        """[B, K]"""
        found: np.ndarray = self.truth.mean(axis=1)
        return found


def asked(prepared: Consequences, seed: int, count: int, draws: int, agent: MultiAdvisor | None = None) -> Asked:
    """Compare the action taken with the usual other one in states of fresh episodes; of an agent, what it expects."""
    brancher = prepared.brancher
    whole = replace(brancher, horizon=horizon_of(brancher.gamma, prepared.longest), close=None, draws=draws)
    sample = gather(brancher.simulator, brancher.policy.act, brancher.terms, 3_000, 50_000 + seed, Watch())
    truth, short, told, expected, without, seconds = [], [], [], [], [], []
    nothing = np.zeros(len(brancher.terms.names))
    for number, place, moment in states(brancher.simulator, sample, spread_over(sample, count, seed)):
        chance, action = np.random.default_rng([seed, number, place]), sample.episodes[number].actions[place]
        against = prepared.rival(moment.observation, action, chance)
        answer = prepared.compare(moment, action, against, seed=number * 100_000 + place)
        pair = _pair(prepared.place.env.action_space, action, against, chance)
        truth.append(whole.differences(moment, pair, chance)[0] * brancher.terms.weights)
        short.append(answer.difference)
        told.append([k in answer.told for k in range(len(answer.names))])
        seconds.append(answer.seconds)
        say, silent = (
            (nothing, nothing > 0)
            if agent is None
            else _expectation(agent, prepared, moment.observation, action, against)
        )
        expected.append(say)
        without.append(silent)
    return Asked(
        np.array(truth), np.array(short), np.array(told), np.array(expected), np.array(without),
        float(np.median(seconds)),
    )  # fmt: skip


def _expectation(
    agent: MultiAdvisor, prepared: Consequences, seen: Any, action: Any, against: Any
) -> tuple[np.ndarray, np.ndarray]:
    """What the agent's advisors expect of an action over another by each term [K], and without which the other wins."""
    state, terms = prepared.place.state(seen), prepared.brancher.terms.names
    why = agent.explain(state, action, against)
    difference = np.zeros(len(terms))
    for name, group, one in zip(why.names, why.groups, why.difference.tolist(), strict=True):
        if name in terms or group in terms:
            difference[terms.index(name if name in terms else group)] += one
    left = why.advantage - difference
    return difference, left < 0


# ---- how true it is --------------------------------------------------------------------------------------------------
def judged(found: Asked) -> dict[str, Any]:
    """By explanation: how often or how closely it is right, what a constant answer reaches, and what is on demand."""
    true, halves = found.true, agreement(found.truth)
    ceiling = np.sqrt(np.clip(2 * halves[0] / (1 + halves[0]), 0.0, 1.0))
    knowable = halves[0] >= CEILING
    size = np.abs(true)
    strong = size >= np.maximum(np.quantile(size, _QUARTER, axis=0), 1e-12)  # [B, K]

    def terms(said: np.ndarray) -> dict[str, Any]:
        pearson, ranks = correlations(said, true)
        right = np.sign(said) == np.sign(true)
        return {
            "r": _listed(pearson), "ranks": _listed(ranks), "of ceiling": _listed(pearson / ceiling),
            "strong signs": _listed(
                (right & strong).sum(axis=0) / np.where(strong.any(axis=0), strong.sum(axis=0), np.nan)
            ),
            "better action": float((np.sign(said.sum(axis=1)) == np.sign(true.sum(axis=1))).mean()),
            "leading term": float((np.abs(said).argmax(axis=1) == size.argmax(axis=1)).mean()),
            "decisive": _spearman(np.abs(said.sum(axis=1)), np.abs(true.sum(axis=1))),
        }  # fmt: skip

    better = true.sum(axis=1) > 0
    leads = np.bincount(size.argmax(axis=1), minlength=size.shape[1])
    wrong = (true.sum(axis=1)[:, None] - true) < 0  # without the term the other action is truly better
    claims = found.without & (found.expected.sum(axis=1) > 0)[:, None]
    told_right = (np.sign(found.short) == np.sign(true)) & found.told
    return {
        "halves": _listed(halves[0]), "rank halves": _listed(halves[1]), "knowable": knowable.tolist(),
        "expected": terms(found.expected), "on demand": terms(found.short),
        "constant": {
            "better action": float(max(better.mean(), 1 - better.mean())),
            "leading term": float(leads.max() / leads.sum()),
        },
        "decisive halves": _spearman(*(np.abs(half.sum(axis=1)) for half in _halves(found.truth))),
        "leave one out": {
            "claims": int(claims.sum()), "right": _share(wrong & claims, claims),
            "constant": _share(wrong, np.ones_like(wrong)),
        },
        "told": _listed(found.told.mean(axis=0)), "told right": _share(told_right, found.told),
        "ms": 1e3 * found.seconds,
    }  # fmt: skip


def _halves(effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = effects.shape[1] // 2
    return effects[:, :half].mean(axis=1), effects[:, half:].mean(axis=1)


def _spearman(one: np.ndarray, other: np.ndarray) -> float | None:
    return _listed(correlations(one[:, None], other[:, None])[1])[0]


def _share(part: np.ndarray, whole: np.ndarray) -> float | None:
    return float(part.sum() / whole.sum()) if whole.sum() else None


def _listed(values: np.ndarray) -> list[float | None]:
    return [float(one) if np.isfinite(one) else None for one in values]


# ---- push and conflict of an actor -----------------------------------------------------------------------------------
def pushed(agent: MultiAdvisor, prepared: Consequences, case: Case, seed: int) -> dict[str, Any]:
    """Shares of the push and the conflict of an actor's critics, against branches that change the action both ways."""
    brancher = prepared.brancher
    whole = replace(brancher, horizon=horizon_of(brancher.gamma, prepared.longest), close=None, draws=case.draws // 2)
    sample = gather(brancher.simulator, brancher.policy.act, brancher.terms, 3_000, 60_000 + seed, Watch())
    truth: list[np.ndarray] = []
    short: list[np.ndarray] = []
    shares, slopes = [], []
    for number, place, moment in states(brancher.simulator, sample, spread_over(sample, case.states, seed)):
        action = sample.episodes[number].actions[place]
        for one, into in ((whole, truth), (brancher, short)):
            into.append(one.effects(moment, action, (seed, number, place))[0].mean(axis=0))
        why = agent.explain(moment.observation, action)
        assert why.push is not None
        shares.append(list(why.push.shares.values()))
        slopes.append(why.push.slopes)
    weights = brancher.terms.weights
    true, fast = np.array(truth) * weights, np.array(short) * weights
    rows = np.array(slopes).transpose(1, 0, 2).reshape(len(weights), -1)
    return {
        "said": np.mean(shares, axis=0).tolist(), "true": _part(true), "on demand": _part(fast),
        "conflict said": _cosines(rows), "conflict true": _cosines(true.T), "conflict on demand": _cosines(fast.T),
    }  # fmt: skip


def _part(effects: np.ndarray) -> list[float]:
    sizes = np.abs(effects).mean(axis=0)
    found: list[float] = (sizes / sizes.sum()).tolist()
    return found


def _cosines(rows: np.ndarray) -> list[float | None]:
    """Between the first row and each other."""
    size = np.linalg.norm(rows, axis=1)
    return _listed((rows[1:] @ rows[0]) / np.where(size[1:] * size[0] > 0, size[1:] * size[0], np.nan))


# ---- the benchmark ---------------------------------------------------------------------------------------------------
def measure(name: str, seed: int) -> dict[str, Any]:
    """One agent of one case."""
    start, case, agent = time.process_time(), CASES[name], trained(name, seed)
    prepared = consequences(agent.task, agent, seed=seed, progress=False)
    found = asked(prepared, seed, case.states, case.draws, agent)
    row = {"case": name, "seed": seed, "terms": list(prepared.brancher.terms.names), **judged(found),
           "precision": [vars(one) for one in prepared.precision], "prepared": prepared.seconds}  # fmt: skip
    if hasattr(prepared.place.env.action_space, "low"):
        row["push"] = pushed(agent, prepared, case, seed)
    return {**row, "seconds": time.process_time() - start}


def available(case: Case) -> bool:
    """Whether what it needs is installed."""
    from importlib.util import find_spec

    return not case.needs or find_spec(case.needs) is not None


def faithfulness(rounds: int = 9) -> dict[str, Any]:
    """Every case with at most 3 seeds."""
    seeds = range(FIRST, FIRST + min(rounds, 3))
    rows = [measure(name, seed) for name, case in CASES.items() if available(case) for seed in seeds]
    return {
        "machine": machine(),
        "rows": rows,
        "left out": [name for name, case in CASES.items() if not available(case)],
    }


BENCHMARKS = {"faithfulness": faithfulness}


# ---- in words --------------------------------------------------------------------------------------------------------
def several(values: list[float | None], percent: bool = False) -> str:
    """Numbers or shares in words."""
    return ", ".join("-" if one is None else f"{one:.0%}" if percent else f"{one:.2f}" for one in values)


def _one(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


_SAID = (
    "task, seed", "terms", "two halves of the truth agree", "r", "strong signs", "better action (constant)",
    "leading term (constant)", "decisive steps", "leave one out (constant)",
)  # fmt: skip
_ANSWERS = (
    "task, seed", "r of what can be reached", "strong signs", "better action", "leading term", "told", "right of these",
    "ms",
)  # fmt: skip


def _said(row: dict[str, Any]) -> list[str]:
    said, constant, left = (row[key] for key in ("expected", "constant", "leave one out"))
    return [
        f"{row['case']}, {row['seed']}", ", ".join(row["terms"]), several(row["halves"]), several(said["r"]),
        several(said["strong signs"], True),
        f"{said['better action']:.0%} ({constant['better action']:.0%})",
        f"{said['leading term']:.0%} ({constant['leading term']:.0%})",
        several([said["decisive"]]),
        f"{_one(left['right'])} ({_one(left['constant'])})" if left["claims"] else "no claim",
    ]  # fmt: skip


def _answers(row: dict[str, Any]) -> list[str]:
    one = row["on demand"]
    return [
        f"{row['case']}, {row['seed']}", several(one["of ceiling"]), several(one["strong signs"], True),
        f"{one['better action']:.0%}", f"{one['leading term']:.0%}", several(row["told"], True),
        _one(row["told right"]), f"{row['ms']:.0f}",
    ]  # fmt: skip


def _markdown(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def said_table(rows: list[dict[str, Any]]) -> str:
    """Markdown: what each agent's advisors expect, against branches."""
    return "\n".join(_markdown(_SAID, [_said(row) for row in rows]))


def table_of_answers(rows: list[dict[str, Any]]) -> str:
    """Markdown: what is answered on demand, against whole branches."""
    return "\n".join(_markdown(_ANSWERS, [_answers(row) for row in rows]))


def summary(rows: list[dict[str, Any]]) -> str:
    """How often answers on demand are right where that can be known, and withheld where it cannot, in one line."""
    terms = [
        (known, one["of ceiling"][k], one["strong signs"][k], row["told"][k])
        for row in rows
        for one in [row["on demand"]]
        for k, known in enumerate(row["knowable"])
    ]
    known = [(r, signs) for holds, r, signs, _ in terms if holds and r is not None and signs is not None]
    close, right = (sum(one[k] >= least for one in known) for k, least in ((0, 0.7), (1, 0.8)))
    silent = [1 - told for holds, _, _, told in terms if not holds]
    said = f"of {len(known)} terms on which two halves of the truth agree, {close} reach 0.7 of what can be reached, "
    said += f"and {right} the right sign in 80% of the strongest quarter"
    withheld = f"; of {len(silent)} others, answers are withheld in {np.mean(silent):.0%} of states" if silent else ""
    return f"{said}{withheld}; an answer takes {np.median([row['ms'] for row in rows]):.0f} ms (median)"


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: what is said, what is answered on demand and, of actors, the share of the push and the conflict."""
    lines = [said_table(rows), "", table_of_answers(rows)]
    actors = [row for row in rows if "push" in row]
    if actors:
        head = ("task, seed", "terms", "share of the push: said", "true", "on demand", "conflict with the first: said",
                "true", "on demand")  # fmt: skip
        lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for row in actors:
            one = row["push"]
            shares = [several(one[key], True) for key in ("said", "true", "on demand")]
            cosines = [several(one[f"conflict {key}"]) for key in ("said", "true", "on demand")]
            cells = [f"{row['case']}, {row['seed']}", ", ".join(row["terms"]), *shares, *cosines]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    left = (
        f"\nleft out, as what they need is not installed: {', '.join(result['left out'])}" if result["left out"] else ""
    )
    return f"machine: {result['machine']}{left}\n\n{table(result['rows'])}"
