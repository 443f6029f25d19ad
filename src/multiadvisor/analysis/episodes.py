"""Recorded episodes, and the one loop that records them: for a file, and for whoever asks about them.

In a compiled world a step is its state x, packed, and what the advisors are worth there follows from the agent's
tables; else the advice itself is kept, as the agent's decider has it. The episodes are those of
`agent.evaluate(episodes, seeds=(seed,))`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiadvisor.analysis.theory.boards import has_tables
from multiadvisor.analysis.theory.enumeration import flat_row, local_states, state_label
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.envs.spaces import BoxActions
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput, short
from multiadvisor.explain.decisions import decider_of
from multiadvisor.learners.gvf.gvf_spec import goal_cells
from multiadvisor.learners.kinds import own_settings
from multiadvisor.learners.protocol import Decider, Decision, EpisodeReturns
from multiadvisor.settings import Settings, whole_number
from multiadvisor.task import Advisor, Task

if TYPE_CHECKING:
    from multiadvisor.agent import MultiAdvisor

_LONGEST_OBSERVATION = 64  # numbers that are kept of each step
CELLS = 10
"""Into so many cells each number of a real-valued observation is cut, to tell where an episode has been before."""
_LARGEST = 100_000_000  # values of advice that are held together
_NOBODY = -1  # the local state of who has no part


@dataclass(frozen=True, eq=False)
class Pictures:
    """A picture before each of the T steps in G episodes, and one after the last step of each."""

    content: tuple[bytes, ...]  # each once: PNG, or text in UTF-8
    of: np.ndarray  # [T + G] which of them

    def __getitem__(self, at: int) -> bytes:
        return self.content[int(self.of[at])]


class RecordedStep(NamedTuple):
    """One step of an episode; after an episode's last one there is a state, and nothing is done in it."""

    state: np.ndarray | None
    """The state x of a compiled world, else None."""
    action: int | np.ndarray | None
    """As the environment numbers it; of continuous actions its own numbers [d]."""
    explored: bool
    rewards: dict[str, float]
    """What the action brought to whom, where it is not zero."""
    names: tuple[str, ...] | None
    """Who was asked [m], and ..."""
    advice: np.ndarray | None
    """... what they advised [m, A]; None where the agent's tables tell it from the state. Of continuous actions what
    they expect of the action taken, and of the centre of the box."""
    returns: dict[str, float] = {}  # noqa: RUF012
    """What each advisor was paid so far in this episode, the step itself included, where it is not zero."""
    weights: np.ndarray | None = None
    """The weights with which those who were asked were combined [m]."""
    goals: np.ndarray | None = None
    """The places that they pointed at [m], where they point at any; below 0: none."""
    push: np.ndarray | None = None
    """Each one's share of the push at a continuous action [m]; NaN for the entropy."""


class Parts(NamedTuple):
    """Who had a part in each of T steps, whose part each of them ended, and what it paid; [T, n] each."""

    active: np.ndarray
    ended: np.ndarray
    paid: np.ndarray


class Origin(NamedTuple):
    """What no file keeps of recorded episodes: who chose, and the steps themselves."""

    task: Task
    settings: Settings
    decider: Decider
    states: tuple[Any, ...]  # [T + G] states x, or observations, the last of each episode included
    parts: Parts  # of the task's own advisors


@dataclass(frozen=True, eq=False)
class Episodes:
    """T steps in G episodes, one after the other, of a task with n advisors; N may be asked, about A actions.

    Of actions that are real numbers two are compared, what is done and the centre of the box. What is asked of the
    `origin` is known of episodes that were recorded here, and not of those from a file.
    """

    header: dict[str, Any]
    """Task, settings, seed, names: all that is no array."""
    length: np.ndarray  # [G] in steps
    terminated: np.ndarray  # [G] bool: the episode ended by itself
    choice: np.ndarray  # [T] the action's place among the header's; of continuous ones what is done is the first
    explored: np.ndarray  # [T] bool: done by chance
    reward: np.ndarray  # [T, n] what each of the task's advisors was paid
    gain: np.ndarray  # [T] what each step added to the score
    asked: np.ndarray  # [T, N] bool: who gave advice
    advice: np.ndarray  # [T, N, A] 0 of who was not asked; [T, N, 0] where the agent's tables tell it from the state
    applied: np.ndarray  # [T, N] weights; 0 of who was not asked
    x: np.ndarray | None = None  # [T + G, size] states, the last of each episode included; None: Python environments
    observed: np.ndarray | None = None  # [T + G, d] the observations of a Python environment, where they are short
    taken: np.ndarray | None = None  # [T, d] continuous actions as they were chosen, each number from -1 to 1
    goals: np.ndarray | None = None  # [T, N] the places that they point at, below 0: none
    push: np.ndarray | None = None  # [T, N] shares of the push at continuous actions; NaN: none
    pictures: Pictures | None = None
    origin: Origin | None = None

    def __len__(self) -> int:
        return len(self.length)

    # ---- who and what --------------------------------------------------------------------------------------------
    @property
    def weights(self) -> np.ndarray:
        """The weights of the task's advisors [n]."""
        return np.array([one["weight"] for one in self.header["advisors"]], float)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of those who may be asked [N]."""
        return tuple(one["name"] for one in self.header["asked"])

    @property
    def advised(self) -> bool:
        """Whether what was advised is among it."""
        return bool(self.advice.shape[2])

    @property
    def _known(self) -> Origin:
        assert self.origin is not None
        return self.origin

    @property
    def task(self) -> Task:
        """Whose episodes they are."""
        return self._known.task

    @property
    def settings(self) -> Settings:
        """Those of the agent."""
        return self._known.settings

    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """Who may be asked [N]."""
        return self._known.decider.asked

    @property
    def aggregator(self) -> Aggregator:
        """How these are combined."""
        return self._known.decider.combined

    @property
    def positions(self) -> tuple[Any, ...]:
        """[T + G] states x, or observations, the last of each episode included."""
        return self._known.states

    # ---- episodes and steps --------------------------------------------------------------------------------------
    @cached_property
    def first(self) -> np.ndarray:
        """[G + 1] the first step of each episode, counted through all of them."""
        return np.concatenate([[0], np.cumsum(self.length)])

    def span(self, episode: int) -> slice:
        """The steps of one episode among those of all episodes."""
        if not 0 <= episode < len(self):
            raise BadInput(f"there is no episode {episode}: {count(len(self), 'episode')} in the trace, counted from 0")
        return slice(int(self.first[episode]), int(self.first[episode + 1]))

    def walk(self, episode: int) -> slice:
        """The places of one episode, of which there is one more than steps."""
        span = self.span(episode)
        return slice(span.start + episode, span.stop + episode + 1)

    def where(self, step: int) -> tuple[int, int]:
        """The episode and its own step, of a step counted through all episodes."""
        episode = int(np.searchsorted(self.first, step, side="right")) - 1
        return episode, int(step - self.first[episode])

    def label(self, episode: int, step: int) -> str:
        """Where an episode stands, for people."""
        return state_label(self.task, self.positions[self.walk(episode).start + step])

    def states(self, episode: int) -> np.ndarray:
        """All states x [steps + 1, size] of one episode of a compiled world."""
        walk = self.walk(episode)
        if self.x is None:
            raise BadInput(f"the trace of task {short(self.header['task']['name'])!r} has advice instead of states")
        return self.x[walk]

    def seen(self, episode: int, step: int) -> Any:
        """The state x of a compiled world, or the observation as far as it is kept, before a step."""
        own = None if self.origin is None else self.positions
        kept = next((one for one in (self.x, self.observed, own) if one is not None), None)
        return None if kept is None else kept[self.walk(episode).start + step]

    def returns(self, episode: int) -> np.ndarray:
        """What each advisor was paid before each step of one episode, and in all of it [steps + 1, n]."""
        paid = self.reward[self.span(episode)]
        return np.concatenate([np.zeros((1, paid.shape[1])), np.cumsum(paid, axis=0)])

    @cached_property
    def action(self) -> np.ndarray:
        """What was done [T], as the environment numbers it; of continuous actions its own numbers [T, d]."""
        if self.taken is None:
            return np.asarray(self.choice + self.header["first_action"])
        return self.box.to_environment(self.taken)

    @property
    def box(self) -> BoxActions:
        """The range of actions that are real numbers."""
        return BoxActions.of_bounds(self.header["box"])

    def actions_of(self, episode: int) -> list[Any]:
        """What was done in one episode, as a source of episodes takes it: counted from 0, or numbers from -1 to 1."""
        span = self.span(episode)
        return self.choice[span].tolist() if self.taken is None else list(self.taken[span])

    def action_text(self, at: int) -> str:
        """What was done in a step, counted through all episodes, in words."""
        if self.taken is None:
            return str(self.header["actions"][int(self.choice[at])])
        numbers = zip(self.header["box"]["names"], self.action[at].tolist(), strict=True)
        return ", ".join(f"{name} {number:+.2f}" for name, number in numbers)

    def step(self, episode: int, step: int) -> RecordedStep:
        """One step of one episode, both counted from 0."""
        span = self.span(episode)
        length, at = span.stop - span.start, span.start + step
        if not 0 <= step <= length:
            raise BadInput(f"there is no step {step}: episode {episode} ended after {count(length, 'step')}")
        state = None if self.x is None else self.x[at + episode]
        if step == length:
            return RecordedStep(state, None, False, {}, None, None)
        names = [one["name"] for one in self.header["advisors"]]
        rewards, returns = (
            {names[j]: float(paid[j]) for j in np.flatnonzero(paid)}
            for paid in (self.reward[at], self.reward[span.start : at + 1].sum(axis=0))
        )
        action = int(self.action[at]) if self.taken is None else self.action[at]
        done = RecordedStep(state, action, bool(self.explored[at]), rewards, None, None, returns)
        if not self.advised:
            return done
        who = np.flatnonzero(self.asked[at])
        return done._replace(
            names=tuple(self.names[j] for j in who), advice=self.advice[at, who].astype(self.header["precision"]),
            weights=self.applied[at, who], goals=None if self.goals is None else self.goals[at, who],
            push=None if self.push is None else self.push[at, who],
        )  # fmt: skip

    # ---- what they come to ---------------------------------------------------------------------------------------
    @property
    def score(self) -> np.ndarray:
        """The score of each episode [G]."""
        return self.played.score

    @cached_property
    def played(self) -> EpisodeReturns:
        """The episodes as an evaluation gives them: the score is what the steps added where the task says so, else the
        weighted rewards, summed in the order they came."""
        episode, score = np.repeat(np.arange(len(self)), self.length), np.zeros(len(self))
        when, who = np.nonzero(self.reward)
        returns = np.zeros((len(self), self.reward.shape[1]))
        with np.errstate(over="ignore"):  # `Evaluation.of` refuses what does not add up
            np.add.at(returns, (episode[when], who), self.reward[when, who])
            if self.header["own_score"]:
                np.add.at(score, episode, self.gain)
            else:
                np.add.at(score, episode[when], self.weights[who] * self.reward[when, who])
        return EpisodeReturns(score, self.length, self.terminated.astype(np.int64), returns)

    @cached_property
    def preferences(self) -> np.ndarray:
        """What the aggregator makes of the advice [T, A]."""
        return np.asarray(self.aggregator.prefer(self.advice, self.applied))

    @cached_property
    def moves(self) -> np.ndarray:
        """[T] which actions are alike: real numbers are cut into cells."""
        return self.choice if self.taken is None else alike((self.taken + 1) / 2)

    @cached_property
    def parts(self) -> Parts:
        """Of those who may be asked [T, N]: the task's own advisors, others whom nobody pays (NaN), or such as stand
        for several of the task's."""
        task, own = self.task, self._known.parts
        found = Parts(self.asked.copy(), np.zeros(self.asked.shape, bool), np.full(self.asked.shape, np.nan))
        stands = own_settings(self.settings).stands_for(task)
        if stands is None:
            found.ended[:, : task.n], found.paid[:, : task.n] = own.ended, own.paid
            if not own_settings(self.settings).points:
                found.active[:, : task.n] = own.active
            else:  # who points at nothing has no part
                found.ended[:-1] |= ~self.asked[1:]
                found.ended[self.first[1:] - 1] = own.ended[self.first[1:] - 1]
            return found
        for j, members in enumerate(stands):
            found.paid[:, j] = own.paid[:, members] @ task.weights[list(members)]
        return found

    @cached_property
    def places(self) -> np.ndarray:
        """The local states [T + G, V] of each view, the last of each episode included."""
        return self._seen[0]

    @cached_property
    def views(self) -> np.ndarray:
        """[V, N] bool: whose views these are."""
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[np.ndarray, np.ndarray]:
        return _places(self.task, self.advisors, self.positions)

    def save(self, path: str | Path) -> None:
        """Write to a file, atomically."""
        from multiadvisor.analysis.trace_file import write_trace

        write_trace(Path(path), self)


def count(number: int, what: str) -> str:
    """So many of something, in words."""
    return f"{number} {what}{'' if number == 1 else 's'}"


# ---- the loop --------------------------------------------------------------------------------------------------------
def record(
    agent: MultiAdvisor, episodes: int = 1, seed: int | Sequence[int] = 0, *, epsilon: float = 0.0,
    advice: bool | None = None, draws: int | None = None, longest: int | None = None, most: int | None = None,
) -> Episodes:  # fmt: skip
    """The episodes that `agent.evaluate(episodes, seeds=(seed,))` plays, step by step; with `epsilon`, exploring ones.

    Of several seeds as many episodes each. `advice` keeps every step's advice as well; by default only where no table
    tells it from the state. `draws` is the seed of the agent whose random numbers the episodes use, by default its own:
    with the same `draws` and `seed` two agents play the same first episode. Episodes are cut off after `longest` steps;
    by default they must end by themselves. What says more than `most` values is refused. Nobody else plays meanwhile.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits"), gamma=0.9).learn(20_000, progress=False)
    >>> trace = record(agent, episodes=2, seed=3)
    >>> trace.length.tolist(), trace.step(0, 0).state.tolist()
    ([10, 10], [12, 1, 1, 1])
    """
    task, decider = agent.task, decider_of(agent)
    advised = task.world is None or not has_tables(agent) if advice is None else advice
    seeds = [whole_number("seed", one) for one in (seed if isinstance(seed, Sequence) else [seed])]
    episodes, draws = whole_number("episodes", episodes, 1), agent.settings.seed if draws is None else draws
    draws = whole_number("draws", draws)
    apart = own_settings(agent.settings).own_draws(task)
    size = len(decider.asked) * len(decider.choices)
    decided: list[Decision] = []
    each: list[list[Step]] = []

    def act(state: Any, draw: int) -> Any:
        decided.append(decider.decide(state, draw, epsilon, values=advised))
        if most is not None and len(decided) * size > most:
            number = len(seeds) * episodes
            raise BadInput(f"{number} episodes of {task.name!r} say more than fits into memory: give fewer episodes")
        return decided[-1].action

    with contextlib.nullcontext() if task.adapter is None else task.adapter.lock:
        for one in seeds:
            source = EvaluationEpisodes(task, draws, one, apart)
            each += [list(islice(rollout(source, episode, act), longest)) for episode in range(episodes)]
    header = {
        "task": task.as_data(), "settings": as_saved(agent.settings),
        "trained": int(getattr(agent, "steps", 0)), "seed": seeds[0], "draws": draws, "epsilon": float(epsilon),
        "actions": list(decider.choices), "first_action": task.first_action, "advisors": _listed(task.advisors),
        "asked": _listed(decider.asked), "apart": apart, "own_score": task.own_score,
    }  # fmt: skip
    steps, parts = [step for one in each for step in one], parts_of(each)
    states = tuple(state for one in each for state in (*(step.state for step in one), one[-1].next_state))
    box = None if task.adapter is None else task.adapter.box
    if box is not None:
        header["box"] = {**box.bounds(), "names": list(task.actions)}
    actions = np.array([step.action for step in steps])  # [T], or [T, d]
    header["precision"] = "float32" if decided[0].values.dtype == np.float32 else "float64"
    return Episodes(
        header=header, length=np.array([len(one) for one in each], np.int64),
        terminated=np.array([one[-1].terminated for one in each], bool),
        choice=actions if box is None else np.zeros(len(steps), np.int64),
        explored=np.array([one.explored for one in decided], bool), reward=parts.paid,
        gain=np.array([step.gain for step in steps]), x=None if task.world is None else np.array(states, np.int64),
        observed=_observed(states) if task.world is None else None, taken=None if box is None else actions,
        origin=Origin(task, agent.settings, decider, states, parts), **_advised(decided, decider, advised),
    )  # fmt: skip


def play(
    agent: MultiAdvisor, episodes: int = 20, seed: int | Sequence[int] = 0, *, draws: int | None = None,
    longest: int | None = None,
) -> Episodes:  # fmt: skip
    """The same with all that was said in them, refused where shares of what was said are not defined.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits"), gamma=0.9).learn(20_000, progress=False)
    >>> play(agent, episodes=2, seed=3).length.tolist()
    [10, 10]
    """
    learned = decider_of(agent).combined.learned
    if learned is not None and learned.acts_by:
        raise BadInput(
            f"an agent with the aggregation {agent.settings.aggregation!r} acts by {learned.acts_by}, not by advice "
            "alone, so its shares are not defined: explain single states with agent.explain"
        )
    return record(agent, episodes, seed, advice=True, draws=draws, longest=longest, most=_LARGEST)


def as_saved(settings: Settings) -> dict[str, Any]:
    """Settings as a file gives them back: JSON has lists instead of tuples, and never equals them otherwise."""
    kept: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return kept


def _listed(advisors: tuple[Advisor, ...]) -> list[dict[str, Any]]:
    return [{"name": one.name, "group": one.group, "weight": float(one.weight)} for one in advisors]


def parts_of(episodes: list[list[Step]]) -> Parts:
    """The task's own advisors in these episodes, one behind the other."""
    steps = [step for one in episodes for step in one]
    return Parts(*(np.array([getattr(step, name) for step in steps]) for name in ("advisors", "ended", "reward")))


def _advised(decided: list[Decision], decider: Decider, advised: bool) -> dict[str, Any]:
    """Who gave advice in each step, and what it was; nothing of anybody unless it is `advised`."""

    def whole(what: Callable[[Decision], Any], silent: Any, *more: int) -> Any:
        if what(decided[0]) is None:
            return None
        found = np.full((len(decided), len(decider.asked), *more), silent)
        for row, one in zip(found, decided if advised else (), strict=advised):
            row[one.advisors] = what(one)
        return found

    return {
        "asked": whole(lambda one: True, False), "applied": whole(lambda one: one.weights, 0.0),
        "advice": whole(lambda one: one.values, 0.0, len(decider.choices) if advised else 0),
        "goals": whole(lambda one: one.goals, -1), "push": whole(lambda one: one.push, np.nan),
    }  # fmt: skip


def _observed(observations: Sequence[Any]) -> np.ndarray | None:
    """Observations as rows of numbers [T + G, d]; None where they are none, or long as pictures are."""
    try:
        found = np.array([numbers_of(one) for one in observations])
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 2 and 1 <= found.shape[1] <= _LONGEST_OBSERVATION else None


def numbers_of(observation: Any) -> np.ndarray:
    """An observation as a row of numbers."""
    return flat_row(observation).astype(np.float32)


# ---- where everybody is ----------------------------------------------------------------------------------------------
def _places(task: Task, advisors: tuple[Advisor, ...], states: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The local states [T + G, V] of each view, and whose these are [V, n]."""
    if (cells := goal_cells(task, states)) is not None:
        return cells[:, None], np.ones((1, len(advisors)), bool)
    if task.world is not None:
        local = np.array([local_states(task, state) for state in states])  # [T + G, task.n]
        keys = [advisor.state if advisor.table is None else ("table", advisor.table) for advisor in task.advisors]
        order = list(dict.fromkeys(keys))
        whose = np.array([[key == one for one in keys] for key in order])
        seen = np.stack([np.where(whose[v], local, _NOBODY).max(axis=1) for v in range(len(order))], axis=1)
        return seen, _applied_weights(whose, task, advisors)
    assert task.adapter is not None
    if task.adapter.refusal is None:
        adapter = task.adapter.fresh()
        found = []
        for state in states:
            adapter.look(state)
            found.append(adapter.firsts.copy())
        whose = np.array([adapter.view_of == v for v in range(len(adapter.views))])
        return np.array(found), _applied_weights(whose, task, advisors)
    return _cells(task.adapter.space, states), np.ones((1, len(advisors)), bool)


def _applied_weights(whose: np.ndarray, task: Task, advisors: tuple[Advisor, ...]) -> np.ndarray:
    """[V, n]; advisors that are none of the task's look at everything."""
    columns = [
        whose[:, task.names.index(advisor.name)] if advisor.name in task.names else np.ones(len(whose), bool)
        for advisor in advisors
    ]
    return np.stack(columns, axis=1)


def _cells(space: Any, states: tuple[Any, ...]) -> np.ndarray:
    """Real-valued observations as numbers of cells [T + G, 1]."""
    flat = np.array([flat_row(state) for state in states])  # [T + G, d]
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
