"""Does a diagnosis find planted faults, and only those? Cases that thresholds were chosen on are not reported.

Each sample is of a policy that does the task, in an environment whose terms have random weights (none is paid less
than a quarter of another); a fault is planted in what it was paid. For hacked terms and stuck policies others play.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from measures.tables import machine
from multiadvisor.diagnosis.checkpoints import hacked
from multiadvisor.diagnosis.diagnosis import Diagnosis, report
from multiadvisor.diagnosis.policies import checked
from multiadvisor.diagnosis.sample import RewardTerms, Sample, SampledEpisode, Watch, gather
from multiadvisor.diagnosis.simulator import Simulator
from multiadvisor.task import Advisor, Transition

STEPS = 5_000
CHOSEN = ("Pendulum-v1", "CartPole-v1", "FrozenLake-v1", "Acrobot-v1", "MountainCar-v0", "LunarLander-v3")
"""On which thresholds were chosen; they are not reported."""
REPORTED = ("MountainCarContinuous-v0", "CliffWalking-v1", "Taxi-v4", "InvertedPendulum-v5", "Swimmer-v5", "Reacher-v5")
FIRST = 200
"""The first seed that is reported."""
FAULTS = ("dead", "100 times", "cancel", "counted twice", "hacked", "stuck", "lingers")
_FOUND = {
    "dead": ("never paid", "hardly matters"), "100 times": ("dominates",), "cancel": ("cancel",),
    "counted twice": ("counted twice",), "hacked": ("hacked",), "stuck": ("stuck",), "lingers": ("lingers", "stuck"),
}  # fmt: skip
_FOLLOWS = {"100 times": {"hardly matters"}, "lingers": {"dominates", "hardly matters"}}  # is true of the terms then
_FALSE = {kind for kinds in _FOUND.values() for kind in kinds} | {"does not add up"}


class Case(NamedTuple):
    """An environment, its terms by name, and who plays in it."""

    terms: dict[str, Callable[[Transition], float]]
    does: Callable[[Any, np.random.Generator], Any]
    rests: Callable[[Any], Any]
    """One that is stuck."""
    hack: Callable[[Any], Any]
    """One that collects the term `trick` and does nothing else."""
    trick: Callable[[Transition], float]
    options: dict[str, Any] = {}  # noqa: RUF012


def _seen(k: int, power: int = 2) -> Callable[[Transition], float]:
    """Minus a number of the next observation, squared or not."""
    return lambda t: -float(abs(t.next_observation[k]) ** power)


def _swing(seen: Any, draw: np.random.Generator) -> Any:
    cos, sin, speed = seen
    wanted = -10 * np.arctan2(sin, cos) - 2 * speed
    energy = 0.5 * speed**2 / 3 + 5 * cos
    return np.clip([wanted if cos > 0.9 else 2 * np.sign((5 - energy) * speed)], -2, 2)


def _land(seen: Any, draw: np.random.Generator) -> int:
    """Gymnasium's own rule, in short: hold an angle towards the pad, and a height above it."""
    x, y, vx, vy, angle, spin, left, right = seen
    target = np.clip(0.5 * x + vx, -0.4, 0.4)
    tilt, lift = (target - angle) * 0.5 - spin, (0.55 * abs(x) - y) * 0.5 - vy * 0.5
    if left or right:
        tilt, lift = 0.0, -vy * 0.5
    if lift > abs(tilt) and lift > 0.05:
        return 2
    return 3 if tilt < -0.05 else 1 if tilt > 0.05 else 0


def _cliff(seen: Any, draw: np.random.Generator) -> int:
    row, column = divmod(int(seen), 12)
    return 2 if column == 11 else 0 if row == 3 else 1


@cache
def _taxi() -> list[int]:
    """The best action in each state, by value iteration on the environment's own table."""
    import gymnasium

    outcomes = gymnasium.make("Taxi-v4").unwrapped.P  # type: ignore[attr-defined]
    value = np.zeros(len(outcomes))
    for _ in range(100):
        q = np.array([[ways[a][0][2] + 0.99 * value[ways[a][0][1]] * (not ways[a][0][3]) for a in range(6)]
                      for ways in outcomes.values()])  # fmt: skip
        value = q.max(axis=1)
    return [int(a) for a in q.argmax(axis=1)]


def _goes(t: Transition, action: int) -> float:
    return float(int(t.action) == action)


CASES: dict[str, Case] = {
    "Pendulum-v1": Case(
        {"angle": lambda t: -float(np.arctan2(t.next_observation[1], t.next_observation[0]) ** 2),
         "speed": _seen(2), "torque": lambda t: -float(t.action[0] ** 2)},
        _swing, lambda seen: np.clip(-seen[2:], -2, 2), lambda seen: np.full(1, 2.0),
        lambda t: float(t.action[0] > 1.9),
    ),
    "CartPole-v1": Case(
        {"alive": lambda t: 1.0, "centre": _seen(0), "upright": _seen(2)},
        lambda seen, draw: int(seen[2] + 0.3 * seen[3] + 0.05 * seen[0] + 0.1 * seen[1] > 0),
        lambda seen: int(seen[2] + seen[3] > 0), lambda seen: 1, lambda t: _goes(t, 1),
    ),
    "FrozenLake-v1": Case(
        {"goal": lambda t: float(t.reward), "time": lambda t: -0.1,
         "hole": lambda t: -0.2 * float(t.next_observation > 4)},
        lambda seen, draw: (1, 2, 1, 0, 1, 0, 1, 0, 2, 1, 1, 0, 0, 2, 2, 0)[int(seen)],
        lambda seen: 0, lambda seen: 3, lambda t: _goes(t, 3), {"is_slippery": False},
    ),
    "Acrobot-v1": Case(
        {"time": lambda t: float(t.reward), "bend": lambda t: -float(1 - t.next_observation[2]), "speed": _seen(4)},
        lambda seen, draw: 2 if seen[4] > 0 else 0, lambda seen: 1, lambda seen: 1, lambda t: _goes(t, 1),
    ),
    "MountainCar-v0": Case(
        {"time": lambda t: float(t.reward), "low": lambda t: -float(1 - np.sin(3 * t.next_observation[0])),
         "engine": lambda t: -float(int(t.action) != 1)},
        lambda seen, draw: 2 if seen[1] > 0 or draw.random() < 0.05 else 0, lambda seen: 1, lambda seen: 1,
        lambda t: _goes(t, 1),
    ),
    "MountainCarContinuous-v0": Case(
        {"goal": lambda t: 10.0 * float(t.terminated), "fuel": lambda t: -float(t.action[0] ** 2),
         "low": lambda t: -float(1 - np.sin(3 * t.next_observation[0]))},
        lambda seen, draw: np.clip([np.sign(seen[1] + 1e-9) * draw.uniform(0.7, 1.0)], -1, 1),
        lambda seen: np.zeros(1), lambda seen: np.full(1, -1.0), lambda t: float(t.action[0] < -0.99),
    ),
    "LunarLander-v3": Case(
        {"away": lambda t: -float(np.hypot(t.next_observation[0], t.next_observation[1])),
         "fast": lambda t: -float(np.hypot(t.next_observation[2], t.next_observation[3])),
         "fuel": lambda t: -float(int(t.action) == 2),
         "landed": lambda t: float(t.next_observation[6] + t.next_observation[7])},
        _land, lambda seen: 0, lambda seen: 2, lambda t: _goes(t, 2),
    ),
    "CliffWalking-v1": Case(
        {"time": lambda t: -1.0, "far": lambda t: -float(14 - (t.next_observation % 12)) / 5,
         "edge": lambda t: -float(24 < t.next_observation < 35)},
        lambda seen, draw: _cliff(seen, draw) if draw.random() > 0.1 else 0, lambda seen: 3, lambda seen: 3,
        lambda t: _goes(t, 3),
    ),
    "Taxi-v4": Case(
        {"time": lambda t: -1.0, "wrong": lambda t: -float(t.reward == -10),
         "goal": lambda t: 5.0 * float(t.terminated)},
        lambda seen, draw: _taxi()[int(seen)] if draw.random() > 0.1 else int(draw.integers(6)),
        lambda seen: 0, lambda seen: 5, lambda t: _goes(t, 5),
    ),
    "InvertedPendulum-v5": Case(
        {"alive": lambda t: 1.0, "centre": _seen(0), "upright": _seen(1)},
        lambda seen, draw: np.clip([seen @ (0.5, 20.0, 0.7, 4.0) + 0.1 * draw.normal()], -3, 3),
        lambda seen: np.zeros(1), lambda seen: np.full(1, 3.0), lambda t: float(t.action[0] > 2.9),
    ),
    "Swimmer-v5": Case(
        {"forward": lambda t: float(t.info["x_velocity"]), "ctrl": lambda t: -float(t.action @ t.action),
         "bend": lambda t: -float(t.next_observation[1] ** 2)},
        lambda seen, draw: draw.uniform(-1, 1, 2), lambda seen: np.zeros(2), lambda seen: np.ones(2),
        lambda t: float((t.action > 0.99).all()),
    ),
    "Reacher-v5": Case(
        {"near": lambda t: -float(np.hypot(*t.next_observation[8:10])), "ctrl": lambda t: -float(t.action @ t.action),
         "speed": lambda t: -float(t.next_observation[6:8] @ t.next_observation[6:8])},
        lambda seen, draw: np.clip(-0.1 * seen[6:8] + 0.2 * draw.normal(size=2), -1, 1), lambda seen: np.zeros(2),
        lambda seen: np.ones(2), lambda t: float((t.action > 0.99).all()),
    ),
}  # fmt: skip
_FALLS = ("LunarLander-v3", "CartPole-v1", "InvertedPendulum-v5")  # an episode ends soon, whatever is done
_WANDERS = ("MountainCar-v0", "MountainCarContinuous-v0", "CliffWalking-v1", "Taxi-v4")
"""In which a policy at random goes on until the limit."""
_GENTLY = 0.3  # of a continuous action at random


class Setting(NamedTuple):
    """A case with one seed: its environment, made once, and the weights of its terms."""

    name: str
    seed: int
    env: Any
    weights: np.ndarray

    @property
    def case(self) -> Case:
        """By its name."""
        return CASES[self.name]


def setting(name: str, seed: int) -> Setting:
    """Weights by which no term is paid less than a quarter of another, in this sample."""
    import gymnasium

    env = gymnasium.make(name, disable_env_checker=True, **CASES[name].options)
    if env.spec is not None and not env.spec.max_episode_steps:
        env = gymnasium.wrappers.TimeLimit(env, 200)
    plain = Setting(name, seed, env, np.ones(len(CASES[name].terms)))
    sizes = np.abs(np.concatenate([one.terms for one in sampled(plain, plain.case.does).episodes])).mean(axis=0)
    factor = 2.0 ** np.random.default_rng([seed, 21]).uniform(-1, 1, len(sizes))
    return plain._replace(weights=factor / np.maximum(sizes, 1e-9))


def sampled(
    where: Setting, policy: Callable[[Any, np.random.Generator], Any], steps: int = STEPS, trick: bool = False
) -> Sample:
    """Episodes of a policy; `trick`: with one more term, to be hacked."""
    terms = where.case.terms | ({"trick": where.case.trick} if trick else {})
    advisors = tuple(Advisor(name, reward=term) for name, term in terms.items())
    draw = np.random.default_rng([where.seed, 22])
    act = checked(lambda seen: policy(seen, draw), where.env.action_space)
    return gather(Simulator(where.env), act, RewardTerms(advisors), steps, 1_000 * where.seed, Watch())


def paid(sample: Sample, weights: np.ndarray, more: dict[str, np.ndarray] | None = None) -> Sample:
    """The sample as if its terms had these weights [K], and as if further terms had been paid [T] each."""
    columns = np.concatenate([one.terms for one in sample.episodes]) * weights
    names = list(sample.terms.names) + list(more or {})
    columns = np.column_stack([columns, *(more or {}).values()])
    ends = np.cumsum([len(one.actions) for one in sample.episodes])
    episodes: list[SampledEpisode] = [
        one._replace(terms=part, reward=part.sum(axis=1))
        for one, part in zip(sample.episodes, np.split(columns, ends[:-1]), strict=True)
    ]
    return Sample(RewardTerms(tuple(Advisor(name) for name in names)), tuple(episodes), sample.space)


def said(sample: Sample) -> Diagnosis:
    """What is counted of it."""
    return report("planted", 0.99, sample)


def planted(fault: str, where: Setting, sample: Sample) -> Sample:
    """The sample with a fault in its terms."""
    draw = np.random.default_rng([where.seed, FAULTS.index(fault)])
    columns = np.concatenate([one.terms for one in sample.episodes]) * where.weights
    shares = np.abs(columns).mean(axis=0)
    k = int(draw.choice(np.flatnonzero(columns.std(axis=0) > 1e-9 * shares)))
    if fault == "dead":
        size = draw.choice([0.0, 1e-3]) * shares.sum()
        return paid(sample, where.weights, {"dead": size * (draw.random(len(columns)) < 0.5)})
    if fault == "100 times":
        return paid(sample, where.weights * np.where(np.arange(len(shares)) == draw.integers(len(shares)), 100, 1))
    factor = -draw.uniform(0.95, 1.05) if fault == "cancel" else 4 ** draw.uniform(-1, 1)
    return paid(sample, where.weights, {"other": factor * columns[:, k]})


def lingering(where: Setting) -> Sample:
    """As many episodes of one that does the task as of one that wanders until the limit."""
    space = where.env.action_space
    space.seed(where.seed)
    gentle = _GENTLY if hasattr(space, "low") else 1
    wanders = sampled(where, lambda seen, draw: space.sample() * gentle).episodes
    count = min(len(wanders), 8)
    does = sampled(where, where.case.does)
    return replace(does, episodes=(*does.episodes[:count], *wanders[:count]))


def series(where: Setting) -> dict[str, Diagnosis]:
    """Two checkpoints, the second of which only collects the trick; none where the terms hardly lose by it."""
    found: dict[str, Sample] = {}
    found["before"] = sampled(where, where.case.does, trick=True)
    found["after"] = sampled(where, lambda seen, draw: where.case.hack(seen), trick=True)
    first, last = ((one.returns[:, :-1] @ where.weights).mean() for one in found.values())
    collected = found["after"].returns[:, -1].mean() - found["before"].returns[:, -1].mean()
    if first - last < 0.5 * abs(first) or collected <= 0:
        return {}
    pays = 0.5 * (first - last) / collected  # half of what is lost is paid back
    return {name: said(paid(one, np.append(where.weights, pays))) for name, one in found.items()}


def outcomes(name: str, seed: int) -> Iterator[tuple[str, bool, list[str]]]:
    """Each fault, or "clean": whether it was found, and what else was said that is none."""
    where = setting(name, seed)
    sample = sampled(where, where.case.does)
    clean = {one.kind for one in said(paid(sample, where.weights)).findings} & _FALSE
    yield "clean", not clean, sorted(clean)
    for fault in FAULTS[:4]:
        kinds = {one.kind for one in said(planted(fault, where, sample)).findings}
        odd = (kinds & _FALSE) - set(_FOUND[fault]) - _FOLLOWS.get(fault, set()) - clean
        yield fault, bool(kinds & set(_FOUND[fault])), sorted(odd)
    steady = {
        f"{k}": said(paid(sampled(where._replace(seed=seed + 500 * k), where.case.does), where.weights)) for k in (0, 1)
    }
    yield "steady checkpoints", not hacked(steady), ["hacked"] * len(hacked(steady))
    if checkpoints := series(where):
        names = [one.terms[0] for one in hacked(checkpoints)]
        yield "hacked", "trick" in names, [one for one in names if one != "trick"]
    if name not in _FALLS:
        still = said(paid(sampled(where, lambda seen, draw: where.case.rests(seen)), where.weights))
        yield "stuck", "stuck" in {one.kind for one in still.findings}, []
    if name in _WANDERS:
        kinds = {one.kind for one in said(paid(lingering(where), where.weights)).findings}
        yield (
            "lingers",
            bool(kinds & set(_FOUND["lingers"])),
            sorted((kinds & _FALSE) - set(_FOUND["lingers"]) - _FOLLOWS["lingers"] - clean),
        )


def measure(names: tuple[str, ...], seeds: range) -> dict[str, Any]:
    """How many faults were found, and how many clean cases accused, with all that went wrong."""
    counts: dict[str, list[int]] = {}
    wrong = []
    for name in names:
        for seed in seeds:
            for fault, good, odd in outcomes(name, seed):
                row = counts.setdefault(fault, [0, 0])
                row[0] += good
                row[1] += 1
                if not good or odd:
                    wrong.append({"environment": name, "seed": seed, "case": fault, "right": good, "also said": odd})
    total = [sum(counts[fault][k] for fault in FAULTS if fault in counts) for k in (0, 1)]
    clean = [sum(counts[one][k] for one in ("clean", "steady checkpoints")) for k in (0, 1)]
    return {
        "faults": {fault: counts[fault] for fault in FAULTS if fault in counts}, "found": total,
        "clean": clean[1], "accused": clean[1] - clean[0], "wrong": wrong,
    }  # fmt: skip


def faults(rounds: int = 9) -> dict[str, Any]:
    """The reported environments, with `rounds` seeds each that nothing was chosen on."""
    names = tuple(name for name in REPORTED if find_spec("mujoco") or not name.endswith("-v5"))
    return {"machine": machine(), "environments": names, **measure(names, range(FIRST, FIRST + rounds))}


BENCHMARKS = {"faults": faults}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}; {', '.join(result['environments'])}"]
    lines += [f"  {fault}: {good} of {count} found" for fault, (good, count) in result["faults"].items()]
    good, count = result["found"]
    lines.append(f"{good} of {count} planted faults found; {result['accused']} of {result['clean']} clean ones accused")
    lines += [f"  not as planted: {one}" for one in result["wrong"]]
    return "\n".join(lines)
