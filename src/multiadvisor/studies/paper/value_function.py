"""The paper's value-function experiment: which target can a small network learn from 1000 states of a 5 x 5 grid?

Four targets (the shortest tour, the optimal return, the egocentric return summed and as a vector) are fitted by the
same network on the same states; the fitted values then play greedily. Exact values play the same episodes beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from multiadvisor.core.intervals import interval
from multiadvisor.errors import unknown
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.study import ALL, FULL_VALUE_EPOCHS, Evidence, Figure, Plan, Study, panel

SIDE, FRUITS = 5, 5
CELLS, SUBSETS = SIDE * SIDE, 1 << FRUITS
SAMPLES, STARTS = 1000, 300
CAP = 50  # steps: an episode that is not over by then counts as 50
FEW = 5  # seeds: with fewer the text warns of the intervals
TIE = 1e-12  # exact values closer than this are equal; those of a network are compared as they are
GAMMAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)

TSP, RL, SUMMED, VECTOR = "TSP", "RL", "summed egocentric", "vector egocentric"
EGOCENTRIC = "egocentric"  # exact values need not tell the sum from the vector
TARGETS = (TSP, RL, SUMMED, VECTOR)
PAIRS = ((VECTOR, SUMMED), (SUMMED, RL), (RL, TSP))  # easier to learn, says the paper, than the second of each pair
FURTHER = ((VECTOR, RL), (VECTOR, TSP), (SUMMED, TSP))  # implied by them, but not by their intervals
DATA, WEIGHTS, ORDER, EPISODES = 1, 2, 3, 4  # streams of a seed

# The neighbour north, south, west and east of each cell, -1 outside the grid; [cells, 4]
_row, _column = np.divmod(np.arange(CELLS), SIDE)
NEIGHBOUR = np.stack([
    np.where(_row > 0, np.arange(CELLS) - SIDE, -1), np.where(_row < SIDE - 1, np.arange(CELLS) + SIDE, -1),
    np.where(_column > 0, np.arange(CELLS) - 1, -1), np.where(_column < SIDE - 1, np.arange(CELLS) + 1, -1),
], axis=1)  # fmt: skip
DISTANCE = np.abs(_row[:, None] - _row) + np.abs(_column[:, None] - _column)  # [cells, cells]
BITS = (np.arange(SUBSETS)[:, None] >> np.arange(FRUITS)) & 1  # which fruits a subset holds, [subsets, fruits]


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open."""

    title: str
    fewer: bool
    """Train on states with 0 to 5 fruits, not on states with 5."""
    anywhere: bool
    """The agent of these states may be on a fruit."""
    after: bool
    """Judge a move by its reward and the state after collecting, not by the neighbour's value with the fruit there."""
    meaning: str


READINGS = {
    "default": Reading(
        "Value function", True, False, True,
        "trained on 0 to 5 fruits, a move judged by its reward and the state after collecting"),
    "literal": Reading(
        "Value function, taken by the letter", False, True, False,
        "trained on 5 fruits only, a move judged by the value of the neighbouring cell with its fruit still there"),
    "remaining": Reading(
        "Value function, by the letter with fruits remaining", True, True, False,
        "trained on 0 to 5 remaining fruits, the agent anywhere, a move to the neighbouring cell of highest value"),
}  # fmt: skip


@dataclass(frozen=True)
class States:
    """States of the grid, the first axis. Fruit i of a state lies on places[:, i] if bit i of left is set."""

    cell: np.ndarray
    """Where the agent is, [n]."""
    places: np.ndarray
    """Five distinct cells, [n, fruits]."""
    left: np.ndarray
    """The subset of fruits still there, [n]."""


Value = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Cells [n, 4] and subsets [n, 4] of the n episodes -> values [n, 4]."""


# ---- states ----------------------------------------------------------------------------------------------------------
def deal(generator: np.random.Generator, count: int, fewer: bool = False, anywhere: bool = False) -> States:
    """Random states: five fruits, or with `fewer` 0 to 5; the agent on a cell without fruit, or `anywhere`."""
    cells = generator.permuted(np.tile(np.arange(CELLS), (count, 1)), axis=1)
    left = (1 << generator.integers(FRUITS + 1, size=count)) - 1 if fewer else np.full(count, SUBSETS - 1)
    cell = generator.integers(CELLS, size=count) if anywhere else cells[:, FRUITS]
    return States(cell, cells[:, :FRUITS], left)


def training_states(seed: int, reading: Reading) -> States:
    """The 1000 states of a seed, the same for every target."""
    return deal(np.random.default_rng((seed, DATA)), SAMPLES, reading.fewer, reading.anywhere)


def fixed_starts(count: int) -> States:
    """The starts of the episodes: five fruits, the agent off them; the same for every seed and target."""
    return deal(np.random.default_rng((0, EPISODES)), count)


def fruit_maps(places: np.ndarray) -> np.ndarray:
    """The bits of the fruit positions for every subset, [n, subsets, cells]."""
    where = np.eye(CELLS, dtype=np.float32)[places]  # [n, fruits, cells]
    return np.asarray(np.einsum("sf,nfc->nsc", BITS.astype(np.float32), where))


def inputs(states: States) -> np.ndarray:
    """The network's 50 bits: fruit positions, then the agent's; [n, 50]."""
    fruits = fruit_maps(states.places)[np.arange(len(states.cell)), states.left]
    return np.concatenate([fruits, np.eye(CELLS, dtype=np.float32)[states.cell]], axis=1)


# ---- exact values ----------------------------------------------------------------------------------------------------
def tours(places: np.ndarray, gamma: float | None) -> np.ndarray:
    """The best tour from every cell through every subset of the fruits, [n, cells, subsets], by dynamic programming.

    With gamma the optimal return, the fruit at distance d being worth gamma ** d; without, minus the number of steps.
    """
    n = np.arange(len(places))
    distance = DISTANCE[:, places].transpose(1, 0, 2).astype(float)  # [n, cells, fruits]
    values = np.zeros((len(places), CELLS, SUBSETS))
    for subset in range(1, SUBSETS):  # a subset comes after all that are smaller than it
        values[:, :, subset] = -np.inf
        for fruit in np.flatnonzero(BITS[subset]):
            rest = values[n, places[:, fruit], subset ^ (1 << fruit)][:, None]  # from that fruit on, [n, 1]
            there = distance[:, :, fruit]
            tour = rest - there if gamma is None else gamma**there * (1 + rest)
            np.maximum(values[:, :, subset], tour, out=values[:, :, subset])
    return values


def egocentric(places: np.ndarray, gamma: float) -> np.ndarray:
    """The sum over fruits of gamma ** distance, for every cell and subset, [n, cells, subsets]."""
    return np.asarray((gamma ** DISTANCE[:, places].transpose(1, 0, 2).astype(float)) @ BITS.T)


def exact_values(target: str, places: np.ndarray, gamma: float) -> np.ndarray:
    """The true values of a target with one output, [n, cells, subsets]."""
    if target == TSP:
        return tours(places, None)
    return tours(places, gamma) if target == RL else egocentric(places, gamma)


def targets(target: str, states: States, gamma: float) -> np.ndarray:
    """What the network is to learn, [n, outputs]: 25 for the vector, a channel for each cell, 1 for the others."""
    n = np.arange(len(states.cell))
    if target == VECTOR:
        fruit = fruit_maps(states.places)[n, states.left]
        return np.where(fruit > 0, gamma ** DISTANCE[states.cell].astype(float), 0.0)
    return np.asarray(exact_values(target, states.places, gamma)[n, states.cell, states.left][:, None])


# ---- play ------------------------------------------------------------------------------------------------------------
def play(starts: States, value: Value, rewarded: bool, after: bool = True, tie: float = 0.0) -> dict[str, np.ndarray]:
    """Greedy episodes from all the starts at once: steps, fruits collected and success of each, [n].

    A move is worth its reward (if `rewarded`) plus the value `after` collecting, or else the value of the neighbouring
    cell with its fruit still there; the first best one is taken, in the order north, south, west, east.
    """
    n = np.arange(len(starts.cell))
    bit = np.zeros((len(n), CELLS), np.int64)  # the fruit that lies on a cell, as a bit
    bit[n[:, None], starts.places] = 1 << np.arange(FRUITS)
    cell, left = starts.cell, starts.left
    steps = np.where(left > 0, CAP, 0)
    for step in range(1, CAP + 1):
        to = NEIGHBOUR[cell]  # [n, 4]
        fruit = bit[n[:, None], to] & left[:, None]
        if after:
            worth = value(to, left[:, None] & ~fruit) + (rewarded & (fruit > 0))
        else:
            worth = value(to, np.repeat(left[:, None], 4, axis=1))
        worth = np.where(to >= 0, worth, -np.inf)
        best = (worth >= worth.max(axis=1, keepdims=True) - tie).argmax(axis=1)
        going = left > 0  # an episode that is over stays as it is
        cell, left = np.where(going, to[n, best], cell), left & ~fruit[n, best]
        steps[going & (left == 0)] = step
        if not left.any():
            break
    return {"length": steps, "fruits": FRUITS - BITS[left].sum(axis=1), "success": left == 0}


def play_exact(target: str, gamma: float, starts: States, reading: Reading) -> dict[str, np.ndarray]:
    """The episodes of a player that knows the target's true values."""
    values, n = exact_values(target, starts.places, gamma), np.arange(len(starts.cell))[:, None]
    # a neighbour of -1, outside the grid, reads the last cell's value, which `play` never uses
    return play(starts, lambda to, left: values[n, to, left], target != TSP, reading.after, TIE)


def play_network(
    predict: Callable[[np.ndarray], np.ndarray], target: str, starts: States, reading: Reading
) -> dict[str, np.ndarray]:
    """The episodes of a network: inputs [m, 50] -> outputs [m, 1 or 25], whose sum is the value."""
    maps, n = fruit_maps(starts.places), np.arange(len(starts.cell))[:, None]
    agent = np.eye(CELLS, dtype=np.float32)

    def value(to: np.ndarray, left: np.ndarray) -> np.ndarray:
        bits = np.concatenate([maps[n, left], agent[to]], axis=2)  # [n, 4, 50]
        return np.asarray(predict(bits.reshape(-1, 2 * CELLS)).sum(axis=1).reshape(to.shape))

    return play(starts, value, target != TSP, reading.after)


# ---- run -------------------------------------------------------------------------------------------------------------
def grid() -> list[tuple[str, float | None]]:
    """The models of a seed, (target, gamma); the shortest tour knows no gamma."""
    return [(TSP, None), *((target, gamma) for target in TARGETS[1:] for gamma in GAMMAS)]


def run(seed: int, reading: Reading, starts: States, epochs: int) -> dict[str, np.ndarray]:
    """Train and play all models of a seed: steps, fruits, success and final loss, each [models] as in `grid`.

    The states, the initial hidden layers and the order of the batches are the same for all of them.
    """
    from multiadvisor.learners.dqn import regression

    states = training_states(seed, reading)
    x, orders = inputs(states), regression.shuffles(np.random.default_rng((seed, ORDER)), SAMPLES, epochs)
    measured: dict[tuple[str, float | None], dict[str, float]] = {}
    for outputs in (1, CELLS):  # models of one shape share a compiled program
        models = [one for one in grid() if (one[0] == VECTOR) == (outputs == CELLS)]
        ys = np.stack([targets(target, states, gamma or 1.0) for target, gamma in models])  # [models, samples, outputs]
        first = regression.initial(np.random.default_rng((seed, WEIGHTS)), 2 * CELLS, outputs)
        layers, losses = regression.fit(first, x, ys, orders)
        for index, one in enumerate(models):
            fitted = regression.model(layers, index)
            episodes = play_network(partial(regression.predict, fitted), one[0], starts, reading)
            scores = {key: float(values.mean()) for key, values in episodes.items()}
            measured[one] = {**scores, "loss": float(losses[index, -1])}
    return {key: np.array([measured[one][key] for one in grid()]) for key in ("length", "fruits", "success", "loss")}


# ---- score -----------------------------------------------------------------------------------------------------------
def means(values: dict[str, np.ndarray]) -> dict[str, Any]:
    """Mean and 95% interval of each figure."""
    return {
        key: entry
        for name, column in values.items()
        for key, entry in ((name, float(column.mean())), (f"{name}_interval", interval(column)))
    }


def exact_lines(starts: States, reading: Reading) -> list[dict[str, Any]]:
    """The dashed lines: the same episodes played with exact values; their intervals are over the starts."""
    return [
        {"target": target, "gamma": gamma, **means(play_exact(target, gamma or 1.0, starts, reading))}
        for target, gamma in [(TSP, None), *((target, gamma) for target in (RL, EGOCENTRIC) for gamma in GAMMAS)]
    ]


def compare(steps: dict[tuple[str, float | None], np.ndarray]) -> list[dict[str, Any]]:
    """For each gamma and pair: steps of the harder target less those of the easier one, paired by seed.

    `verdict` is "holds" or "reversed" where the 95% interval excludes 0, else "open"; so it is with one seed, which
    has no interval.
    """
    rows: list[dict[str, Any]] = []
    for gamma in GAMMAS:
        for easier, harder in (*PAIRS, *FURTHER):
            more = steps[harder, None if harder == TSP else gamma] - steps[easier, gamma]  # [seeds]
            low, high = interval(more)
            verdict = "open" if len(more) < 2 else "holds" if low > 0 else "reversed" if high < 0 else "open"
            rows.append({
                "gamma": gamma, "easier": easier, "harder": harder, "difference": float(more.mean()),
                "interval": (low, high), "verdict": verdict,
            })  # fmt: skip
    return rows


def score(measured: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    """The table, a row for each model with intervals over seeds, and the paired comparisons."""
    columns = {key: np.stack([one[key] for one in measured]) for key in measured[0]}  # each [seeds, models]
    table = [
        {
            "target": target, "gamma": gamma, **means({key: column[:, k] for key, column in columns.items()}),
            "length_by_seed": columns["length"][:, k].tolist(),
        }
        for k, (target, gamma) in enumerate(grid())
    ]  # fmt: skip
    return {"table": table, "comparisons": compare({one: columns["length"][:, k] for k, one in enumerate(grid())})}


def at_best(result: dict[str, Any]) -> dict[str, tuple[float | None, np.ndarray]]:
    """Each target at the gamma at which it needs the fewest steps: that gamma, and the steps of each seed."""
    found: dict[str, tuple[float | None, np.ndarray]] = {}
    for row in result["table"]:
        steps = np.array(row["length_by_seed"])
        if row["target"] not in found or steps.mean() < found[row["target"]][1].mean():
            found[row["target"]] = row["gamma"], steps
    return found


# ---- text ------------------------------------------------------------------------------------------------------------
def steps_of(rows: list[dict[str, Any]]) -> dict[tuple[str, float | None], float]:
    """The mean steps by target and gamma."""
    return {(row["target"], row["gamma"]): row["length"] for row in rows}


def describe(result: dict[str, Any]) -> str:
    """What these numbers are; the claims of the paper say what follows from them."""
    exact, trained, last = steps_of(result["exact"]), steps_of(result["table"]), GAMMAS[-1]
    rl, ego = ([exact[target, gamma] for gamma in GAMMAS] for target in (RL, EGOCENTRIC))
    return "\n".join([
        f"With exact values the shortest tour needs {exact[TSP, None]:.2f} steps, the optimal return {min(rl):.2f} to "
        f"{max(rl):.2f}, the egocentric return {min(ego):.2f} to {max(ego):.2f}.",
        *_describe_order(result),
        f"Trained, at gamma {last:g}: "
        + ", ".join(f"{target} {trained[target, last]:.1f} steps" for target in (VECTOR, SUMMED, RL))
        + f"; TSP {trained[TSP, None]:.1f} at any gamma.",
    ])  # fmt: skip


def _describe_order(result: dict[str, Any]) -> list[str]:
    seeds = len(result["seeds"])
    if seeds < 2:
        return ["One seed has no interval over seeds: nothing can be said about the order of the trained networks."]
    held = [g for g in GAMMAS if all(row["verdict"] == "holds" for row in result["comparisons"] if row["gamma"] == g)]
    listed = "gamma " + ", ".join(f"{gamma:g}" for gamma in held) if held else "no gamma"
    end = ", that is everywhere." if len(held) == len(GAMMAS) else " and as a whole nowhere else."
    few = f"{seeds} seeds are few: intervals from fewer than {FEW} are too narrow to be trusted."
    return [
        f"Trained networks, {seeds} seeds: the paper's order, vector < summed < RL < TSP in steps, holds with paired "
        f"95% intervals at {listed}{end}",
        *[few] * (seeds < FEW),
    ]


def summary(evidence: Evidence) -> list[str]:
    """Which reading this is, where it is the only one."""
    reading = evidence.plan.reading
    if not reading:
        return []
    return [
        f"The paper leaves details open; this is the {reading} reading: {READINGS[reading].meaning}. All networks play "
        f"the same {STARTS} starts. Intervals of networks are over seeds, those of exact values over starts."
    ]


# ---- jobs ------------------------------------------------------------------------------------------------------------
def job(seed: int, reading: str, epochs: int = FULL_VALUE_EPOCHS) -> Job:
    """All networks of a seed."""
    return Job("value-function", {"seed": seed, "reading": reading, "epochs": epochs, "starts": STARTS})


@kind("value-function", lease=900.0)
def work(config: dict[str, Any]) -> dict[str, Any]:
    """Train and play the networks of a seed."""
    measured = run(config["seed"], READINGS[config["reading"]], fixed_starts(config["starts"]), config["epochs"])
    return {key: column.tolist() for key, column in measured.items()}


def exact_job(reading: str) -> Job:
    """The dashed lines."""
    return Job("value-function-exact", {"reading": reading, "starts": STARTS})


@kind("value-function-exact", lease=600.0)
def exact_work(config: dict[str, Any]) -> dict[str, Any]:
    """The episodes of players that know the true values."""
    return {"exact": exact_lines(fixed_starts(config["starts"]), READINGS[config["reading"]])}


# ---- the study -------------------------------------------------------------------------------------------------------
def readings(plan: Plan) -> dict[str, range]:
    """The seeds of each reading: of all, the literal ones with fewer; or of the one that is asked for."""
    counts = {name: plan.value_seeds if name == "default" else plan.literal_seeds for name in READINGS}
    if plan.reading:
        if plan.reading not in READINGS:
            raise unknown("reading", plan.reading, READINGS)
        counts = {plan.reading: plan.seeds}
    return {reading: range(plan.first_seed, plan.first_seed + count) for reading, count in counts.items()}


def jobs(plan: Plan) -> list[Job]:
    """The exact players of each reading, then the networks."""
    found = readings(plan)
    networks = [job(seed, reading, plan.value_epochs) for reading, seeds in found.items() for seed in seeds]
    return [*(exact_job(reading) for reading in found), *networks]


def summary_of(evidence: Evidence, reading: str = "default") -> dict[str, Any]:
    """Table, comparisons and text of a reading, from the plan's runs."""
    plan = evidence.plan
    seeds = list(readings(plan).get(reading, ())) or [0]
    results = [evidence.result(job(seed, reading, plan.value_epochs)) for seed in seeds]
    measured = [{key: np.array(column) for key, column in one.items()} for one in results]
    result: dict[str, Any] = {
        "reading": reading, "seeds": seeds, "samples": SAMPLES, "epochs": plan.value_epochs, "starts": STARTS,
        "cap": CAP, "gammas": list(GAMMAS), "exact": evidence.result(exact_job(reading))["exact"], **score(measured),
    }  # fmt: skip
    return {**result, "text": describe(result)}


def figures(evidence: Evidence) -> list[Figure]:
    """Steps against gamma in each reading; alone, fruits and success beside them."""
    alone, found = bool(evidence.plan.reading), []
    for reading in readings(evidence.plan):
        result = summary_of(evidence, reading)
        labels = {"length": "steps to collect all fruits (50: stuck)"}
        if alone:
            labels |= {"fruits": "fruits collected", "success": "share of episodes that terminated"}
        panels = tuple(panel("values_by_gamma", result, key, label) for key, label in labels.items())
        size = (13, 4.4) if alone else Figure.size
        found.append(Figure(f"value-function-{reading}", READINGS[reading].title, result["text"], panels, size))
    return found


def data(evidence: Evidence) -> dict[str, Any]:
    """The tables and the text of the reading that was asked for; nothing in the report on all of the paper."""
    return summary_of(evidence, evidence.plan.reading) if evidence.plan.reading else {}


STUDY = Study(
    "value-function", "Values that are easier to learn", 30, jobs, figures, report=ALL, summary=summary,
    about="networks fitted to four kinds of values on a 5 x 5 grid", data=data,
    seeds=(5, 5), least_seeds=1, flags=("first_seed", "reading"), needs=("plots", "deep"),
)  # fmt: skip
