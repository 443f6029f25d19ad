"""Greedy episodes with all that can be asked of them: who advised what, who was paid, and where everybody was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.recording import Origin, recording
from multiadvisor.analysis.trace_file import Trace
from multiadvisor.core.aggregations import GPI, SELECTIONS
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.goal_views import goal_cells, goal_name
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.learners.registry import own_settings
from multiadvisor.settings import Settings, whole_number
from multiadvisor.task import Advisor, Task

CELLS = 10
"""Into so many cells each number of a real-valued observation is cut, to tell where an episode has been before."""
_LARGEST = 100_000_000  # values of advice that are held together
_NOBODY = -1  # the local state of who has no part


@dataclass(frozen=True, eq=False)
class Episodes:
    """T steps in G episodes, one after the other, of an agent with n advisors and A actions.

    Of actions that are real numbers two are compared, what is done and the middle of all.
    """

    task: Task
    settings: Settings
    advisors: tuple[Advisor, ...]  # [n] whose advice it is
    aggregator: Aggregator
    length: np.ndarray  # [G] in steps
    terminated: np.ndarray  # [G] bool: the episode ended by itself
    actions: tuple[str, ...]  # [A]
    choice: np.ndarray  # [T] the action, counted from 0
    did: np.ndarray | None  # [T, d] continuous actions, in the environment's own units
    moves: np.ndarray  # [T] which are alike: real numbers are cut into cells
    explored: np.ndarray  # [T] bool: done by chance
    advice: np.ndarray  # [T, n, A] 0 of who has no part
    heard: np.ndarray  # [T, n] weights; 0 of who has no part or no say
    asked: np.ndarray  # [T, n] bool: who gave advice; the others had no part, or were silent
    active: np.ndarray  # [T, n] bool: who had a part, and learned
    ended: np.ndarray  # [T, n] bool: whose part this step ended
    paid: np.ndarray  # [T, n] what each was paid; NaN of an advisor who is none of the task's
    gain: np.ndarray  # [T] the weighted rewards of the step
    places: np.ndarray  # [T + G, V] the local state of each view, the last of each episode included
    views: np.ndarray  # [V, n] bool: whose views they are
    states: tuple[Any, ...]  # [T + G] states x, or observations
    played: EpisodeReturns
    push: np.ndarray | None = None  # [T, n] shares of the push at actions that are real numbers; NaN of who has none

    def __len__(self) -> int:
        return len(self.length)

    @property
    def names(self) -> tuple[str, ...]:
        """The advisors' names [n]."""
        return tuple(advisor.name for advisor in self.advisors)

    @cached_property
    def first(self) -> np.ndarray:
        """[G + 1] the first step of each episode, counted through all of them."""
        return np.concatenate([[0], np.cumsum(self.length)])

    def span(self, episode: int) -> slice:
        """The steps of one episode."""
        return slice(int(self.first[episode]), int(self.first[episode + 1]))

    def walk(self, episode: int) -> slice:
        """The places of one episode, of which there is one more than steps."""
        return slice(int(self.first[episode]) + episode, int(self.first[episode + 1]) + episode + 1)

    def where(self, step: int) -> tuple[int, int]:
        """The episode and its own step, of a step counted through all episodes."""
        episode = int(np.searchsorted(self.first, step, side="right")) - 1
        return episode, int(step - self.first[episode])

    @cached_property
    def preferences(self) -> np.ndarray:
        """What the aggregator makes of the advice [T, A]."""
        found: np.ndarray = self.aggregator.prefer(self.advice, self.heard)
        return found

    def label(self, episode: int, step: int) -> str:
        """Where an episode stands, for people."""
        return state_label(self.task, self.states[self.walk(episode).start + step])


def state_label(task: Task, state: Any) -> str:
    """A state in a few words: the player's cell, what people call it, or its numbers, by name where they have names."""
    if task.board is not None:
        return task.board.name(int(task.board.movers(state)[0]))
    if task.labels and len(state) == 1:
        return task.labels[int(state[0])]
    if (name := goal_name(task, state)) is not None:
        return name
    names = task.observation_names
    parts = _flat(state)
    if len(parts) > 24:
        return f"an observation of {len(parts)} numbers"
    shown = [f"{part:.3g}" if isinstance(part, float | np.floating) else str(part) for part in parts.tolist()]
    if len(names) == len(shown):
        return ", ".join(f"{name} {part}" for name, part in zip(names, shown, strict=True))
    return f"({', '.join(shown)})" if len(shown) > 1 else shown[0]


def _flat(state: Any) -> np.ndarray:
    """The numbers of an observation in one row, those of its parts one behind the other; texts stay what they are."""
    if isinstance(state, dict | tuple):
        parts = list(state.values()) if isinstance(state, dict) else list(state)
        return np.concatenate([_flat(part) for part in parts]) if parts else np.zeros(0)
    row = np.ravel(np.asarray(state))
    return row.astype(object) if row.dtype.kind == "U" else row


def play(agent: MultiAdvisor, episodes: int = 20, seed: int = 0) -> Episodes:
    """The episodes that `agent.evaluate(episodes, seeds=(seed,))` plays, with all that was said in them.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits"), gamma=0.9).learn(20_000, progress=False)
    >>> play(agent, episodes=2, seed=3).length.tolist()
    [10, 10]
    """
    episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed)
    return _played(agent, [seed], episodes, agent.settings.seed)


def play_each(agent: MultiAdvisor, seeds: Sequence[int], draws: int, longest: int | None = None) -> Episodes:
    """One episode for each of these seeds, as `record(agent, 1, seed, draws=draws, longest=longest)` records it."""
    return _played(agent, list(seeds), 1, draws, longest)


def _played(agent: MultiAdvisor, seeds: list[int], episodes: int, draws: int, longest: int | None = None) -> Episodes:
    aggregation = agent.settings.aggregation
    if any(name in aggregation for name in (GPI, *SELECTIONS)):
        raise BadInput(
            f"an agent with the aggregation {aggregation!r} acts by plans or by who is in control, not by advice "
            "alone, so its shares are not defined: explain single states with agent.explain"
        )
    return spread(*recording(agent, seeds, episodes, draws, longest=longest, most=_LARGEST))


def spread(trace: Trace, origin: Origin) -> Episodes:
    """A recording as whole arrays, with places for those who were silent."""
    task, decider, states = origin.task, origin.decider, origin.states
    advisors, asked = decider.asked, trace.active
    assert asked is not None
    assert trace.advice is not None

    def whole(rows: np.ndarray, silent: float = 0.0) -> np.ndarray:
        found = np.full((*asked.shape, *rows.shape[1:]), silent)
        found[asked] = rows
        return found

    own, gains = parts_of(task, origin.episodes), np.array([step.gain for step in origin.steps])
    first, weights = trace.first[:-1], np.array([advisor.weight for advisor in advisors], float)
    returns = np.add.reduceat(own.paid, first)
    places, views = _places(task, advisors, states)
    return Episodes(
        task=task,
        settings=origin.settings,
        advisors=advisors,
        aggregator=decider.combined,
        length=trace.length,
        terminated=trace.terminated,
        actions=decider.choices,
        choice=trace.choice,
        did=None if trace.taken is None else trace.action,
        moves=trace.choice if trace.taken is None else alike((trace.taken + 1) / 2),
        explored=trace.explored,
        advice=whole(trace.advice),
        heard=np.where(asked, weights, 0.0) if trace.heard is None else whole(trace.heard),
        asked=asked,
        gain=gains,
        places=places,
        views=views,
        states=tuple(states),
        played=EpisodeReturns(np.add.reduceat(gains, first), trace.length, trace.terminated.astype(np.int64), returns),
        push=None if trace.push is None else whole(trace.push, np.nan),
        **_as_learned(task, origin.settings, advisors, own, asked, first)._asdict(),
    )


# ---- who had a part --------------------------------------------------------------------------------------------------
class Parts(NamedTuple):
    """Who had a part in each of T steps, whose part each of them ended, and what it paid; [T, n] each."""

    active: np.ndarray
    ended: np.ndarray
    paid: np.ndarray


def parts_of(task: Task, episodes: list[list[Step]]) -> Parts:
    """The task's own advisors in these episodes, one behind the other."""
    steps = [step for one in episodes for step in one]
    return Parts(*(np.array([getattr(step, name) for step in steps]) for name in ("advisors", "ended", "reward")))


def _as_learned(
    task: Task, settings: Settings, advisors: tuple[Advisor, ...], own: Parts, asked: np.ndarray, first: np.ndarray
) -> Parts:
    """Of the agent's advisors: the task's own and others, whom nobody pays, or such as stand for several of them."""
    found = Parts(asked.copy(), np.zeros(asked.shape, bool), np.full(asked.shape, np.nan))
    stands = own_settings(settings).stands_for(task)
    if stands is None:
        found.ended[:, : task.n], found.paid[:, : task.n] = own.ended, own.paid
        if not own_settings(settings).points:
            found.active[:, : task.n] = own.active
        else:  # who points at nothing has no part
            found.ended[:-1] |= ~asked[1:]
            found.ended[first[1:] - 1] = own.ended[first[1:] - 1]
        return found
    for j, members in enumerate(stands):
        found.paid[:, j] = own.paid[:, members] @ task.weights[list(members)]
    return found


# ---- where everybody is ----------------------------------------------------------------------------------------------
def _places(task: Task, advisors: tuple[Advisor, ...], states: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The local states [T + G, V] of each view, and whose these are [V, n]."""
    if (cells := goal_cells(task, states)) is not None:
        return cells[:, None], np.ones((1, len(advisors)), bool)
    if task.world is not None:
        local = np.array([_local_states(task, state) for state in states])  # [T + G, task.n]
        keys = [advisor.state if advisor.table is None else ("table", advisor.table) for advisor in task.advisors]
        order = list(dict.fromkeys(keys))
        whose = np.array([[key == one for one in keys] for key in order])
        seen = np.stack([np.where(whose[v], local, _NOBODY).max(axis=1) for v in range(len(order))], axis=1)
        return seen, _as_heard(whose, task, advisors)
    assert task.adapter is not None
    if task.adapter.refusal is None:
        adapter = task.adapter.fresh()
        found = []
        for state in states:
            adapter.look(state)
            found.append(adapter.firsts.copy())
        whose = np.array([adapter.view_of == v for v in range(len(adapter.views))])
        return np.array(found), _as_heard(whose, task, advisors)
    return _cells(task, states), np.ones((1, len(advisors)), bool)


def _as_heard(whose: np.ndarray, task: Task, advisors: tuple[Advisor, ...]) -> np.ndarray:
    """[V, n]; advisors that are none of the task's look at everything."""
    columns = [
        whose[:, task.names.index(advisor.name)] if advisor.name in task.names else np.ones(len(whose), bool)
        for advisor in advisors
    ]
    return np.stack(columns, axis=1)


def _local_states(task: Task, x: np.ndarray) -> np.ndarray:
    """phi_j(x) [n], -1 where advisor j has no part."""
    world = task.world
    assert world is not None
    x, advisors, local = x.copy(), np.zeros(task.n, np.int64), np.zeros(task.n, np.int64)
    m = world.begin(world.constants, x, advisors)
    world.local_states(world.constants, x, advisors, m, local)
    found = np.full(task.n, _NOBODY)
    found[advisors[:m]] = local[:m]
    return found


def _cells(task: Task, states: list[Any]) -> np.ndarray:
    """Real-valued observations as numbers of cells [T + G, 1]."""
    assert task.adapter is not None
    space = getattr(task.adapter.env, "single_observation_space", task.adapter.env.observation_space)
    flat = np.array([_flat(state) for state in states])  # [T + G, d]
    texts = np.array([isinstance(part, str) for part in flat[0]])
    words = [np.unique(column.astype(str), return_inverse=True)[1] for column in flat[:, texts].T]
    flat = np.where(texts, 0.0, flat).astype(float)
    whole = np.shape(states[0]) if hasattr(space, "low") else flat.shape[1:]
    low, high = (np.ravel(np.broadcast_to(getattr(space, name, 0.0), whole)) for name in ("low", "high"))
    bounded = np.isfinite(low) & np.isfinite(high) & (np.abs(low) < 1e6) & (np.abs(high) < 1e6) & (high > low)
    low = np.where(bounded, low, flat.min(axis=0))
    width = np.where(bounded, high - low, np.maximum(flat.max(axis=0) - flat.min(axis=0), 1e-9))
    cells = alike((flat - low) / width)
    return np.unique(np.column_stack([cells, *words]), axis=0, return_inverse=True)[1].reshape(-1, 1)


def alike(shares: np.ndarray) -> np.ndarray:
    """Rows of numbers from 0 to 1 [T, d] as numbers of cells [T]: those in one cell are alike.

    >>> alike(np.array([[0.11], [0.55], [0.19]])).tolist()
    [0, 1, 0]
    """
    cells = np.clip(np.floor(shares * CELLS), 0, CELLS - 1).astype(np.int8)
    return np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
