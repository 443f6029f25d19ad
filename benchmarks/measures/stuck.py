"""How often the detector of stuck episodes is right, where the truth is known from the world itself.

Three kinds of worlds: Gymnasium environments with a planted trap, whose values are a formula; the gadgets, which are
solved exactly; and Pac-Boy, where each step is solved with the agent's values and the ghosts held still. The detector's
thresholds were chosen with agents of seeds below `FIRST`; what is measured here begins there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from measures.tables import machine
from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episodes import Episodes, play
from multiadvisor.analysis.stuck import LEAST, Stuck, find_stuck
from multiadvisor.analysis.theory.attractors import stuck_states
from multiadvisor.analysis.theory.boards import exact_agent
from multiadvisor.analysis.theory.learned_values import learned_solution
from multiadvisor.analysis.theory.solver import Solution, best_actions
from multiadvisor.envs.registry import make
from multiadvisor.envs.spaces import Bins
from multiadvisor.task import Advisor, Task

FIRST = 100
"""The first seed of an agent that is measured."""
EPISODES = 20
"""Episodes of each agent."""
LONGEST = 6  # places of the corridor
GO_ON = 0
_TIED = 0.01  # relative: ways out that are about as good as the best
_WEAK = 0.02  # of the strongest: who holds less may be named or not
_LATE = 2  # steps: ghosts move while Pac-Boy comes to rest, so that this much is no error there


# ---- planted traps ---------------------------------------------------------------------------------------------------
class Fork(gymnasium.Env[Any, Any]):
    """A corridor leads to a fork: two goals pay and end the episode, and a third way goes on without pay.

    It goes on to the next of `forks` places that are all alike, in a ring. Places 0 .. LONGEST - 1 are the corridor,
    any of them the first; who leaves it finds a coin. Then come the forks. Advisors that each expect to get their own
    goal go on in the ring for ever, where gamma times what both pay is more than the better one pays.
    """

    action_space = spaces.Discrete(3)
    action_names = ("go on", "first goal", "second goal")
    reward_names = ("goal 1", "goal 2", "time", "coin")
    reward_space = spaces.Box(-1.0, 1.0, (4,))

    def __init__(
        self, forks: int = 1, real: bool = False, noise: bool = False, cost: float = 0.0,
        pay: tuple[float, float] = (1.0, 1.0), limit: int = 60,
    ) -> None:  # fmt: skip
        self.forks, self.real, self.noise, self.cost, self.pay = forks, real, noise, cost, pay
        self.limit = limit
        whole = spaces.Box(-2.0, 2.0, (2,))
        numbers = spaces.MultiDiscrete([LONGEST + forks, 8]) if noise else spaces.Discrete(LONGEST + forks)
        self.observation_space: Any = whole if real else numbers

    def _look(self) -> Any:
        if self.real:  # the corridor is a line, the forks are on a circle at its end
            if self.at < LONGEST:
                return np.array([-2.0 + self.at / LONGEST, 0.0], np.float32)
            angle = 2 * np.pi * (self.at - LONGEST) / self.forks
            return np.array([np.cos(angle), np.sin(angle)], np.float32)
        return np.array([self.at, self.np_random.integers(8)]) if self.noise else self.at

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Somewhere in the corridor."""
        super().reset(seed=seed)
        self.at, self.elapsed = int(self.np_random.integers(LONGEST)), 0
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step on, or a goal."""
        self.elapsed += 1
        paid, over = np.array([0.0, 0.0, -self.cost, 0.0], np.float32), False
        if self.at < LONGEST:
            self.at += 1
            paid[3] = 0.5 * (self.at == LONGEST)
        elif action == GO_ON:
            self.at = LONGEST + (self.at + 1 - LONGEST) % self.forks
        else:
            paid[action - 1], over = self.pay[action - 1], True
        return self._look(), paid, over, self.elapsed >= self.limit, {}


class Trap(NamedTuple):
    """A planted trap, drawn from a seed."""

    kind: str
    task: Task
    gamma: float
    env: Fork


def _number(observation: Any) -> int:
    return int(observation[0])


def planted(kind: str, seed: int) -> Trap:
    """One of the three kinds of traps, with payments, ring and gamma drawn from a seed."""
    generator = np.random.default_rng([seed, len(kind)])
    second = float(generator.choice([0.7, 0.8, 0.9, 1.0]))  # 1: both goals are the best way out
    pay = (1.0, second) if generator.random() < 0.5 else (second, 1.0)
    gamma = float(generator.choice([0.8, 0.9, 0.95]))
    if kind == "stands still":  # with an advisor who looks at noise
        env = Fork(noise=True, pay=pay)
        advisors = [
            Advisor(name, j, state=1 if name == "time" else _number) for j, name in enumerate(Fork.reward_names)
        ]
        return Trap(kind, Task.from_gymnasium(env, advisors, name=kind), gamma, env)
    if kind == "goes to and fro":
        env = Fork(2, pay=pay)
        return Trap(kind, Task.from_gymnasium(env, name=kind), gamma, env)
    env = Fork(int(generator.integers(3, 9)), real=True, cost=0.001, pay=pay)
    bins = Bins([-2, -1], [1, 1], [18, 7])
    return Trap(kind, Task.from_gymnasium(env, discretise=bins, name=kind), gamma, env)


PLANTED = ("stands still", "goes to and fro", "goes in circles")


def trained(task: Task, planning: str = "egocentric", gamma: float = 0.9, seed: int = 1) -> MultiAdvisor:
    """An agent of a planted task that has learned the values of its planning."""
    agent = MultiAdvisor(task, planning=planning, gamma=gamma, alpha=0.3, epsilon=0.3, seed=seed)
    return agent.learn(20_000, progress=False)


def fork_holders(env: Fork, gamma: float) -> tuple[set[str], set[str]]:
    """Who speaks for going on against the better goal, and who for the goal, by the values that a formula gives."""
    (one, two), cost = env.pay, env.cost
    values = np.array([  # [advisor, action] in every fork
        [gamma * one, one, 0.0], [gamma * two, 0.0, two], [-cost * (1.0 + gamma), -cost, -cost], [0.0, 0.0, 0.0],
    ])  # fmt: skip
    summed = values.sum(axis=0)
    assert summed[GO_ON] > summed.max(initial=-np.inf, where=[False, True, True]), "no trap"
    outs = [action for action in (1, 2) if np.isclose(summed[action], summed[1:].max())]
    lead = values[:, GO_ON] - values[:, outs].mean(axis=1)
    named = [{name for name, by in zip(Fork.reward_names, sign * lead, strict=True) if by > 1e-9} for sign in (1, -1)]
    return named[0], named[1]


class Right(NamedTuple):
    """Whether what was named of an episode is right."""

    state: bool = False
    step: bool = False
    advisors: bool = False


def _in_ring(env: Fork, observation: Any) -> bool:
    if env.real:
        return bool(observation[0] >= -1.0 - 1e-6)
    return int(np.ravel(observation)[0]) >= LONGEST


def judge_planted(trap: Trap, episodes: Episodes, episode: int, one: Stuck | None) -> Right:
    """The trap begins where the ring is entered; who holds is known from the formula."""
    states = episodes.positions[episodes.walk(episode)]
    entered = next(step for step, seen in enumerate(states) if _in_ring(trap.env, seen))
    if one is None:
        return Right()
    holds, leaves = fork_holders(trap.env, trap.gamma)
    near = one.where.startswith(episodes.label(episode, entered))
    return Right(near, one.since == entered, (set(one.held_by), set(one.leaves)) == (holds, leaves))


# ---- worlds that can be solved ---------------------------------------------------------------------------------------
def resting_places(solution: Solution) -> np.ndarray:
    """[S] bool: where the greedy walk, ties at random, comes again and again without ever being paid or ending."""
    mdp, greedy, stuck = solution.mdp, best_actions(solution.preferences), stuck_states(solution)
    reach = np.zeros((mdp.states, mdp.states), bool)
    for state in np.flatnonzero(stuck).tolist():
        for action in np.flatnonzero(greedy[state]).tolist():
            reach[state, mdp.successor[state, action][mdp.probability[state, action] > 0]] = True
    while True:
        more = reach | (reach @ reach)
        if np.array_equal(more, reach):
            return stuck & ~(reach & ~reach.T).any(axis=1)
        reach = more


def looked_at(agent: MultiAdvisor, states: np.ndarray) -> np.ndarray:
    """[T, 2] bool: whether the greedy walk from each of these states x [T, size], as it lies, never earns and never
    ends; and whether x is one of the states in which it comes to rest."""
    different, which = np.unique(states, axis=0, return_inverse=True)
    found = []
    for x in different:
        solved = learned_solution(agent, x)
        assert solved is not None
        solution, here = solved
        found.append((stuck_states(solution)[here], resting_places(solution)[here]))
    return np.array(found, bool)[which.reshape(-1)]


class Truth(NamedTuple):
    """The rest in which a step of an episode lies, by brute force."""

    first: int
    """The step from which on the greedy walk leads to nothing, ..."""
    last: int
    """... and the one from which on it is at rest: the same, where it walks into the trap with its last step."""
    places: frozenset[int]  # the first number of x: a cell of a board, or a state of a list


def _from(true: np.ndarray) -> int | None:
    """The first step from which on something [T] bool was true for two thirds of the time, and never for less."""
    for step in range(len(true)):
        if (np.cumsum(true[step:]) >= 2 / 3 * np.arange(1, len(true) - step + 1)).all():
            return step
    return None


def _truth(agent: MultiAdvisor, episodes: Episodes, episode: int, last: int) -> Truth | None:
    """What there is to know of the steps since the last reward before step `last`."""
    x, span = np.array(episodes.positions[episodes.walk(episode)]), episodes.span(episode)  # [L + 1, size]
    pays = np.flatnonzero((episodes.parts.paid[span][:last] > 0).any(axis=1))
    dry = int(pays[-1]) + 1 if len(pays) else 0
    seen = looked_at(agent, x[dry : last + 1])
    stuck, rests = _from(seen[:, 0]), _from(seen[:, 1])
    if stuck is None or rests is None:
        return None
    places = x[dry : last + 1, 0][rests:][seen[rests:, 1]]
    return Truth(dry + stuck, dry + rests, frozenset(places.tolist()))


def judge_solved(agent: MultiAdvisor, episodes: Episodes, episode: int, one: Stuck | None, late: int = 0) -> Right:
    """Against the rest that brute force finds; without those who are named nothing may be left that keeps it there."""
    if one is None:
        return Right()
    truth = _truth(agent, episodes, episode, one.since + one.steps - 1)
    if truth is None:
        return Right()
    x, span = np.array(episodes.positions[episodes.walk(episode)]), episodes.span(episode)
    steps = np.arange(one.since, one.since + one.steps)
    silent = np.array([name in one.held_by for name in episodes.names])
    free = _frees(episodes, span.start + steps, x[steps, 0], silent)
    near = one.where.startswith(
        tuple(episodes.label(episode, t) for t in steps.tolist() if int(x[t, 0]) in truth.places)
    )
    return Right(near, min(truth.first, truth.last) - late <= one.since <= truth.last + late, free)


def _frees(episodes: Episodes, steps: np.ndarray, cell: np.ndarray, silent: np.ndarray) -> bool:
    """Whether these advisors [n] bool hold it in these steps [T], spent in these places [T], and nobody else does.

    The aggregator is asked again without them. Without all of them nothing may be left, in some place, of the lead of
    what is done over what is never done there. Without any one of them the lead over the best of that must be smaller,
    and without anybody else it may not be.
    """
    never = np.ones((len(steps), len(episodes.task.actions)), bool)  # [T, A]
    for place in np.unique(cell).tolist():
        never[np.ix_(cell == place, episodes.choice[steps[cell == place]])] = False
    known = never.any(axis=1)
    steps, cell, never = steps[known], cell[known], never[known]
    advice, applied, taken = episodes.advice[steps], episodes.applied[steps], episodes.choice[steps]

    def preferences(without: Any) -> np.ndarray:  # [T, A]
        weights = applied.copy()
        weights[:, without] = 0.0
        found: np.ndarray = episodes.aggregator.prefer(advice, weights)
        return found

    def done(preferred: np.ndarray) -> np.ndarray:  # [T]
        found: np.ndarray = preferred[np.arange(len(steps)), taken]
        return found

    whole, rest = preferences([]), preferences(silent)
    best = np.where(never, whole, -np.inf).max(axis=1)  # [T] of the ways out
    outs = never & (whole >= (best - _TIED * np.abs(best))[:, None])
    before = done(whole) - best
    after = done(rest) - np.where(never, rest, -np.inf).max(axis=1)
    free = any(after[cell == place].mean() <= 0.01 * before[cell == place].mean() for place in np.unique(cell).tolist())

    def lead(preferred: np.ndarray) -> float:
        return float((done(preferred) - (preferred * outs).sum(axis=1) / outs.sum(axis=1)).mean())

    held = np.array([lead(whole) - lead(preferences([j])) for j in range(len(silent))])  # [n]
    slack = _WEAK * np.abs(held).max(initial=0.0)
    return bool(free and (held[silent] > -slack).all() and (held[~silent] < slack).all())


def gadgets(seed: int) -> Iterator[tuple[str, MultiAdvisor]]:
    """Agents with the exact values of worlds in which they get stuck."""
    generator = np.random.default_rng(seed)
    high = float(generator.uniform(0.6, 0.95))
    second = float(generator.choice([0.8, 0.9, 1.0]))
    yield "two-goal", exact_agent(make("two-goal", r2=second), "egocentric", high, seed)
    yield "three-fruits", exact_agent(make("three-fruits"), "egocentric", high, seed)
    yield "four-fruits", exact_agent(make("four-fruits"), "egocentric", high, seed)
    yield (
        "dollars-and-euros",
        exact_agent(make("dollars-and-euros"), "egocentric", float(generator.uniform(0.7, 0.95)), seed),
    )
    yield "bridge, agnostic", exact_agent(make("bridge"), "agnostic", high, seed)


def pac_boy(seed: int) -> MultiAdvisor:
    """An agent that plans egocentrically and gets stuck."""
    agent = MultiAdvisor(make("pac-boy"), planning="egocentric", gamma=0.9, seed=seed)
    return agent.learn(600_000, progress=False)


# ---- episodes that come to an end ------------------------------------------------------------------------------------
class _Agent(NamedTuple):
    """An agent whose episodes come to an end: its task, how long it learns, and its settings."""

    task: Callable[[int], Task]  # for a seed
    steps: int
    settings: dict[str, Any]

    def learned(self, seed: int) -> MultiAdvisor:
        return MultiAdvisor(self.task(seed), seed=seed, **self.settings).learn(self.steps, progress=False)


def _gym(name: str, **options: Any) -> Callable[[int], Task]:
    return lambda seed: Task.from_gymnasium(name, **options)


QUIET = {
    "Pac-Boy, empathic": _Agent(lambda seed: make("pac-boy"), 1_000_000, {"gamma": 0.9}),
    "fruit-grid, empathic": _Agent(lambda seed: make("fruit-grid"), 200_000, {"gamma": 0.9}),
    "mountain-car": _Agent(lambda seed: make("mountain-car"), 1_000_000, {"gamma": 0.99}),
    "racetrack": _Agent(lambda seed: make("racetrack"), 1_000_000, {"gamma": 0.95}),
    "FrozenLake": _Agent(_gym("FrozenLake-v1", is_slippery=False), 20_000, {"gamma": 0.95, "epsilon": 0.4}),
    "CliffWalking": _Agent(_gym("CliffWalking-v1", max_episode_steps=300), 20_000, {"gamma": 0.99}),
    "planted, empathic": _Agent(
        lambda seed: planted(PLANTED[seed % 3], seed).task, 20_000, {"alpha": 0.3, "epsilon": 0.3}
    ),
}


def cut(episodes: Episodes, episode: int, length: int) -> Episodes:
    """One episode as if it had been cut off after so many steps."""
    span, walk = episodes.span(episode), episodes.walk(episode)
    steps, states = slice(span.start, span.start + length), slice(walk.start, walk.start + length + 1)
    by_step = ("choice", "advice", "applied", "asked", "gain")
    origin = episodes.origin
    assert origin is not None
    cut_off = dataclasses.replace(
        episodes, length=np.array([length]), terminated=np.array([False]),
        origin=origin._replace(states=episodes.positions[states]),
        **{name: getattr(episodes, name)[steps] for name in by_step},
    )  # fmt: skip
    vars(cut_off).update(places=episodes.places[states], views=episodes.views)  # cells as of all episodes
    return cut_off


def quiet_row(name: str, seeds: range, count: int) -> dict[str, Any]:
    """Episodes that end: how many raise an alarm, and how many would if they had been cut off at any step."""
    row = dict.fromkeys(("episodes", "terminated", "raised", "cuts", "raised_when_cut"), 0)
    for seed in seeds:
        episodes = play(QUIET[name].learned(seed), count, seed)
        generator = np.random.default_rng(seed)
        raised = {one.episode for one in find_stuck(episodes)}
        row["episodes"] += len(episodes)
        row["terminated"] += int(episodes.terminated.sum())
        row["raised"] += sum(bool(episodes.terminated[episode]) for episode in raised)
        for episode in np.flatnonzero(episodes.terminated).tolist():
            if episodes.length[episode] > LEAST:
                length = int(generator.integers(LEAST, episodes.length[episode]))
                row["cuts"] += 1
                row["raised_when_cut"] += bool(find_stuck(cut(episodes, episode, length)))
    return {"case": name, **row}


# ---- the benchmark ---------------------------------------------------------------------------------------------------
def _row(name: str, judged: list[Right]) -> dict[str, Any]:
    table = np.array(judged, bool).reshape(-1, 3)  # [episodes, state or step or advisors]
    shares = dict(zip(Right._fields, table.mean(axis=0).tolist(), strict=True))
    return {"case": name, "episodes": len(table), "right": float(table.all(axis=1).mean()), **shares}


def planted_rows(seeds: range, count: int) -> list[dict[str, Any]]:
    """A row for each kind of trap."""
    rows = []
    for kind in PLANTED:
        judged = []
        for seed in seeds:
            trap = planted(kind, seed)
            episodes = play(trained(trap.task, "egocentric", trap.gamma, seed), count, seed)
            found = {one.episode: one for one in find_stuck(episodes)}
            cut_off = np.flatnonzero(~episodes.terminated).tolist()  # all of them, if it has learned the trap
            judged += [judge_planted(trap, episodes, episode, found.get(episode)) for episode in cut_off]
        rows.append(_row(f"planted: {kind}", judged))
    return rows


def _solved(agent: MultiAdvisor, count: int, seed: int, late: int) -> list[Right]:
    episodes = play(agent, count, seed)
    found = {one.episode: one for one in find_stuck(episodes)}
    return [
        judge_solved(agent, episodes, episode, found.get(episode), late)
        for episode in np.flatnonzero(~episodes.terminated).tolist()
    ]


def solved_rows(seeds: range, count: int) -> list[dict[str, Any]]:
    """A row for each gadget."""
    rows: dict[str, list[Right]] = {}
    for seed in seeds:
        for name, agent in gadgets(seed):
            rows.setdefault(name, []).extend(_solved(agent, count, seed, 0))
    return [_row(name, judged) for name, judged in rows.items()]


def pac_boy_row(seeds: range, count: int) -> dict[str, Any]:
    """The row of Pac-Boy."""
    return _row(
        "Pac-Boy, egocentric", [right for seed in seeds for right in _solved(pac_boy(seed), count, seed, _LATE)]
    )


def stuck(rounds: int = 9, first: int = FIRST) -> dict[str, Any]:
    """How often place, step and advisors are right, and how often an alarm is false; `rounds` agents of each kind."""
    seeds = range(first, first + rounds)
    few = seeds[: max(1, rounds // 3)]  # of those that take long
    rows = [*solved_rows(seeds, EPISODES), pac_boy_row(seeds, EPISODES), *planted_rows(seeds, EPISODES)]
    quiet = [quiet_row(name, few, EPISODES) for name in QUIET]
    return {"machine": machine(), "rounds": rounds, "first_seed": first, "rows": rows, "quiet": quiet}


BENCHMARKS = {"stuck": stuck}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    seeds = f"agents of seeds from {result['first_seed']} on"
    lines = [f"stuck, {seeds:36} episodes  right  state   step  advisors"]
    for row in result["rows"]:
        shares = [f"{row[name]:.1%}" for name in ("right", *Right._fields)]
        lines.append("{:42}  {:5} {:>6} {:>6} {:>6} {:>9}".format(row["case"], row["episodes"], *shares))
    lines.append(f"{'come to an end':43} episodes  ended  alarms  alarms when cut off at a random step")
    for row in result["quiet"]:
        cut_off = f"{row['raised_when_cut']} of {row['cuts']}"
        lines.append(f"{row['case']:42}  {row['episodes']:5}  {row['terminated']:5}  {row['raised']:6}  {cut_off}")
    return "\n".join(lines)
