"""Recording: greedy episodes kept step by step, by one loop for traces and for reports.

In a compiled world a step is its state x, packed, and what the advisors are worth there follows from the agent's
tables; else the advice itself is kept, as the agent's decider has it. The episodes are those of
`agent.evaluate(episodes, seeds=(seed,))`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiadvisor.analysis.theory.boards import has_tables
from multiadvisor.analysis.trace_file import Trace
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput
from multiadvisor.explain.decisions import decider_of
from multiadvisor.learners.protocol import Decider, Decision
from multiadvisor.learners.registry import own_settings
from multiadvisor.settings import Settings, whole_number
from multiadvisor.task import Advisor, Task
from multiadvisor.version import VERSION

if TYPE_CHECKING:
    from multiadvisor.agent import MultiAdvisor

_LONGEST_OBSERVATION = 64  # numbers that are kept of each step


class Origin(NamedTuple):
    """What no file keeps of recorded episodes: who chose, and the steps themselves."""

    task: Task
    settings: Settings
    decider: Decider
    episodes: list[list[Step]]  # [G] the steps of each

    @property
    def steps(self) -> list[Step]:
        """[T] one behind the other."""
        return [step for one in self.episodes for step in one]

    @property
    def states(self) -> list[Any]:
        """[T + G] states x, or observations, the last of each episode included."""
        return [state for one in self.episodes for state in (*(step.state for step in one), one[-1].next_state)]


def record(
    agent: MultiAdvisor, episodes: int = 1, seed: int = 0, *, epsilon: float = 0.0, advice: bool | None = None,
    draws: int | None = None, longest: int | None = None,
) -> Trace:  # fmt: skip
    """The episodes that `agent.evaluate(episodes, seeds=(seed,))` plays, step by step; with `epsilon`, exploring ones.

    `advice` keeps every step's advice as well; by default only where no table tells it from the state. `draws` is the
    seed of the agent whose random numbers the episodes use, by default its own: with the same `draws` and `seed` two
    agents play the same first episode. Episodes are cut off after `longest` steps; by default they must end by
    themselves.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits"), gamma=0.9).learn(20_000, progress=False)
    >>> trace = record(agent, episodes=2, seed=3)
    >>> trace.length.tolist(), trace.step(0, 0).state.tolist()
    ([10, 10], [12, 1, 1, 1])
    """
    episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed)
    own = whole_number("draws", agent.settings.seed if draws is None else draws)
    if advice is None:
        advice = agent.task.world is None or not has_tables(agent)
    return recording(agent, [seed], episodes, own, epsilon=epsilon, advice=advice, longest=longest)[0]


def recording(
    agent: MultiAdvisor, seeds: list[int], episodes: int, draws: int, *, epsilon: float = 0.0, advice: bool = True,
    longest: int | None = None, most: int | None = None,
) -> tuple[Trace, Origin]:  # fmt: skip
    """Episodes for each of the seeds; refused where they say more than `most` values. Nobody else plays meanwhile."""
    task, decider = agent.task, decider_of(agent)
    apart = own_settings(agent.settings).own_draws(task)
    size = len(decider.asked) * len(decider.choices)
    said: list[Decision] = []
    each: list[list[Step]] = []

    def act(state: Any, draw: int) -> Any:
        said.append(decider.decide(state, draw, epsilon, values=advice))
        if most is not None and len(said) * size > most:
            count = len(seeds) * episodes
            raise BadInput(f"{count} episodes of {task.name!r} say more than fits into memory: give fewer episodes")
        return said[-1].action

    with contextlib.nullcontext() if task.adapter is None else task.adapter.lock:
        for seed in seeds:
            source = EvaluationEpisodes(task, draws, seed, apart)
            each += [list(islice(rollout(source, episode, act), longest)) for episode in range(episodes)]
    origin = Origin(task, agent.settings, decider, each)
    header = {
        "version": VERSION, "task": task.as_data(), "settings": as_saved(agent.settings),
        "trained": int(getattr(agent, "steps", 0)), "seed": seeds[0], "draws": draws, "epsilon": float(epsilon),
        "actions": list(decider.choices), "first_action": task.first_action, "advisors": _listed(task.advisors),
        "wishes": _listed(decider.asked), "apart": apart,
        "sizes": None if task.world is None or task.world.sizes is None else list(task.world.sizes),
    }  # fmt: skip
    return _trace(header, origin, said, advice), origin


def _trace(header: dict[str, Any], origin: Origin, said: list[Decision], advice: bool) -> Trace:
    """The steps as arrays."""
    task, steps, states = origin.task, origin.steps, origin.states
    box = None if task.adapter is None else task.adapter.box
    if box is not None:
        header["box"] = {**box.bounds(), "names": list(task.actions)}
    actions = np.array([step.action for step in steps])  # [T], or [T, d]
    paid = np.array([step.reward for step in steps])  # [T, n]
    when, who = np.nonzero(paid)
    return Trace(
        header=header,
        length=np.array([len(one) for one in origin.episodes], np.int64),
        terminated=np.array([one[-1].terminated for one in origin.episodes], bool),
        action=actions + task.first_action if box is None else box.to_environment(actions).reshape(actions.shape),
        explored=np.array([one.explored for one in said], bool),
        reward_step=when.astype(np.int64),
        reward_advisor=who.astype(np.int64),
        reward=paid[when, who],
        x=None if task.world is None else np.array(states, np.int64),
        observed=_observed(states) if task.world is None else None,
        taken=None if box is None else actions,
        gain=None if not task.own_score else np.array([step.gain for step in steps]),
        **(_spoken(said, origin.decider) if advice else {"active": None, "advice": None}),
    )


def as_saved(settings: Settings) -> dict[str, Any]:
    """Settings as a file gives them back: JSON has lists instead of tuples, and never equals them otherwise."""
    kept: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return kept


def _listed(advisors: tuple[Advisor, ...]) -> list[dict[str, Any]]:
    return [{"name": one.name, "group": one.group, "weight": float(one.weight)} for one in advisors]


def _spoken(said: list[Decision], decider: Decider) -> dict[str, Any]:
    """Who spoke in each step [T, n] and, row by row, what they said."""
    active = np.zeros((len(said), len(decider.asked)), bool)
    for row, one in zip(active, said, strict=True):
        row[one.advisors] = True
    order = [np.argsort(one.advisors, kind="stable") for one in said]  # rows stand in the order of the advisors

    def rows(name: str) -> np.ndarray:
        return np.concatenate([getattr(one, name)[k] for one, k in zip(said, order, strict=True)])

    own = np.array([advisor.weight for advisor in decider.asked], float)[np.nonzero(active)[1]]
    heard = rows("weights")
    return {
        "active": active, "advice": rows("values"), "heard": None if (heard == own).all() else heard,
        "goals": None if said[0].goals is None else rows("goals"),
        "push": None if said[0].push is None else rows("push"),
    }  # fmt: skip


def _observed(observations: list[Any]) -> np.ndarray | None:
    """Observations as rows of numbers [T + G, d]; None where they are none, or long as pictures are."""
    try:
        found = np.array([numbers_of(one) for one in observations])
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 2 and 1 <= found.shape[1] <= _LONGEST_OBSERVATION else None


def numbers_of(observation: Any) -> np.ndarray:
    """An observation as a row of numbers."""
    parts = list(observation.values()) if isinstance(observation, dict) else observation
    return np.ravel(np.asarray(parts, float)).astype(np.float32)
