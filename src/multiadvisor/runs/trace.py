"""Traces: greedy episodes kept step by step in one small file, and played again exactly.

In a compiled world a step is its state x, packed, and what the advisors are worth there follows from the agent's
tables; else the advice itself is kept, as the agent's decider has it. The episodes are those of
`agent.evaluate(episodes, seeds=(seed,))`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from multiadvisor.analysis.episodes import CELLS
from multiadvisor.analysis.stuck import ends_of_parts, resting
from multiadvisor.analysis.theory.boards import has_tables
from multiadvisor.analysis.theory.learned_values import surroundings
from multiadvisor.core.identity import difference, same
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput, short
from multiadvisor.explain.decisions import Decider, Decision, decider_of
from multiadvisor.explain.explanation import (
    NOTHING_KNOWN,
    Explanation,
    Push,
    explain,
    explain_advised,
    explain_numbers,
)
from multiadvisor.runs.drawing import numbers_of
from multiadvisor.runs.trace_file import FORMAT, Trace, TracedStep, _sealed, check_place, count, read_trace, write_trace
from multiadvisor.settings import NETWORKS, Settings, whole_number
from multiadvisor.task import Task
from multiadvisor.version import VERSION

if TYPE_CHECKING:
    from multiadvisor.agent import Evaluation, MultiAdvisor

__all__ = [
    "FORMAT",
    "Trace",
    "TracedStep",
    "_sealed",
    "check_place",
    "explain_step",
    "read_trace",
    "record",
    "record_evaluation",
    "replay",
    "stuck_at",
    "write_trace",
]
_LONGEST_OBSERVATION = 64  # numbers that are kept of each step


def _kept(settings: Settings) -> dict[str, Any]:
    """Settings as a file gives them back: JSON has lists instead of tuples, and never equals them otherwise."""
    kept: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return kept


# ---- recording -------------------------------------------------------------------------------------------------------
_Given = ParamSpec("_Given")


def _alone(
    play: Callable[Concatenate[MultiAdvisor, _Given], Trace],
) -> Callable[Concatenate[MultiAdvisor, _Given], Trace]:
    """While a Python environment is played in, nobody else plays in it."""

    @functools.wraps(play)
    def alone(agent: MultiAdvisor, *given: _Given.args, **named: _Given.kwargs) -> Trace:
        adapter = agent.task.adapter
        with contextlib.nullcontext() if adapter is None else adapter.lock:
            return play(agent, *given, **named)

    return alone


@_alone
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
    task = agent.task
    if advice is None:
        advice = task.world is None or not has_tables(agent)
    apart = task.world is not None and agent.settings.deep is not None
    decider = decider_of(agent)
    steps: list[Step] = []
    lengths, states = [], []
    said: list[Decision] = []

    def act(state: Any, draw: int) -> Any:
        said.append(decider.tell(state, draw, epsilon, values=bool(advice)))
        return said[-1].action

    source = EvaluationEpisodes(task, own, seed, apart)
    for episode in range(episodes):
        played = list(islice(rollout(source, episode, act), longest))
        steps += played
        states += [*(step.state for step in played), played[-1].next_state]
        lengths.append(len(played))
    last = np.cumsum(lengths) - 1
    paid = np.array([step.reward for step in steps])  # [T, n]
    when, who = np.nonzero(paid)
    header = {
        "version": VERSION,
        "task": task.as_data(),
        "settings": _kept(agent.settings),
        "trained": int(getattr(agent, "steps", 0)),
        "seed": seed,
        "draws": own,
        "epsilon": float(epsilon),
        "actions": list(decider.choices),
        "first_action": task.first_action,
        "advisors": [{"name": f.name, "group": f.group, "weight": float(f.weight)} for f in task.advisors],
        "wishes": [{"name": f.name, "group": f.group, "weight": float(f.weight)} for f in decider.advisors_asked],
        "apart": apart,
        "sizes": None if task.world is None or task.world.sizes is None else list(task.world.sizes),
    }
    box = None if task.adapter is None else task.adapter.box
    if box is not None:
        header["box"] = {**box.bounds(), "names": list(task.actions)}
    actions = np.array([step.action for step in steps])  # [T], or [T, d]
    return Trace(
        header=header,
        length=np.array(lengths, np.int64),
        terminated=np.array([steps[k].terminated for k in last], bool),
        action=actions + task.first_action if box is None else box.to_environment(actions).reshape(actions.shape),
        explored=np.array([one.explored for one in said], bool),
        reward_step=when.astype(np.int64),
        reward_advisor=who.astype(np.int64),
        reward=paid[when, who],
        x=None if task.world is None else np.array(states, np.int64),
        observed=_observed(states) if task.world is None else None,
        taken=None if box is None else actions,
        gain=None if task.goals is None else np.array([step.gain for step in steps]),
        **(_spoken(said, decider) if advice else {"active": None, "advice": None}),
    )


def _spoken(said: list[Decision], decider: Decider) -> dict[str, Any]:
    """Who spoke in each step [T, n] and, row by row, what they said."""
    active = np.zeros((len(said), len(decider.advisors_asked)), bool)
    for row, one in zip(active, said, strict=True):
        row[one.advisors] = True
    order = [np.argsort(one.advisors, kind="stable") for one in said]  # rows stand in the order of the advisors

    def rows(name: str) -> np.ndarray:
        return np.concatenate([getattr(one, name)[k] for one, k in zip(said, order, strict=True)])

    own = np.array([advisor.weight for advisor in decider.advisors_asked], float)[np.nonzero(active)[1]]
    heard = rows("weights")
    voice = np.divide(heard, own, out=np.ones(len(own)), where=own != 0)
    return {
        "active": active, "advice": rows("values"), "voice": None if (voice == 1.0).all() else voice,
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


def record_evaluation(agent: MultiAdvisor, episodes: int, seed: int) -> tuple[Evaluation, Trace]:
    """`agent.evaluate` and the trace of the very same episodes."""
    if agent.settings.deep is not None or agent.settings.continuous is not None:
        # a network's last bits depend on how many episodes it is asked about at once, so that only one of them can
        # count
        trace = record(agent, episodes, seed)
        return agent.summary(trace.played()), trace
    seen, trace = agent.evaluate(episodes, seeds=(seed,)), record(agent, episodes, seed)
    same = np.array_equal(seen.played.score, trace.score) and np.array_equal(seen.played.length, trace.length)
    if not same:
        raise BadInput(f"task {agent.task.name!r} is not reproducible from the same seed: run check_task on it")
    return seen, trace


def _as_kept(trace: Trace, episode: int) -> Callable[[Any, int], Any]:
    """Whoever does what was done in an episode."""
    actions = iter(trace.actions_of(episode))
    return lambda state, draw: next(actions)


def replay(trace: Trace, task: Task) -> None:
    """Play the episodes again: the world, with its draws and the actions kept, must bring the same states and
    rewards."""
    name = short(trace.header["task"]["name"])
    if told := difference(trace.header["task"]["identity"], task.identity):
        raise BadInput(
            f"the trace is of task {name!r} with other advisors or options than the given {task.name!r} ({told})"
        )
    source = EvaluationEpisodes(task, trace.header["draws"], trace.header["seed"], trace.header.get("apart", False))
    for episode, length in enumerate(trace.length.tolist()):
        for step, now in enumerate(rollout(source, episode, _as_kept(trace, episode))):
            seen, last = trace.step(episode, step), step == length - 1
            paid = {task.names[j]: float(now.reward[j]) for j in np.flatnonzero(now.reward)}
            same = seen.state is None or np.array_equal(seen.state, now.state)
            same &= trace.gain is None or trace.gain[trace.span(episode)][step] == now.gain
            same &= paid == seen.rewards and (now.over, now.terminated) == (
                last,
                last and bool(trace.terminated[episode]),
            )
            if last and seen.state is not None:
                same &= np.array_equal(trace.states(episode)[-1], now.next_state)
            if not same:
                raise BadInput(f"episode {episode} of the trace differs from task {name!r} from step {step} on")


def explain_step(
    agent: MultiAdvisor, trace: Trace, episode: int, step: int, against: str | int | None = None
) -> Explanation:
    """Why the agent did what it did at one step of its trace, rather than `against`, by default the next best.

    As `agent.explain` does it: continuous actions are compared with the centre of the box.
    """
    task, kept = agent.task, trace.header
    own = [task.identity, _kept(agent.settings), getattr(agent, "steps", 0)]
    if not same(own, [kept["task"]["identity"], kept["settings"], kept["trained"]]):
        name = short(kept["task"]["name"])
        raise BadInput(f"the trace is of another agent, of task {name!r}: record this one's own episodes")
    seen = trace.step(episode, step)
    if seen.action is None:
        raise BadInput(
            f"nothing is done at step {step}: episode {episode} ended after {count(step, 'step')}, counted from 0"
        )
    if seen.names is None or seen.advice is None:
        return explain(agent, seen.state, int(seen.action), against)
    if trace.taken is not None:
        return _explain_numbers(agent, trace, seen, against)
    here = None if seen.state is None else surroundings(agent, seen.state)
    here = here or NOTHING_KNOWN._replace(stuck=stuck_at(trace, episode, step))
    return explain_advised(agent, seen.names, seen.advice, int(seen.action), against, here, seen.state, seen.weights)


def _explain_numbers(agent: MultiAdvisor, trace: Trace, seen: TracedStep, against: Any) -> Explanation:
    """Why a continuous action was taken, from what the critics said of it and of the centre of the box."""
    if against is not None:
        raise BadInput(
            "a trace keeps what the critics said of the action and of the centre of the box: leave against out, or "
            "explain an observation with agent.explain"
        )
    assert agent.task.adapter is not None
    assert agent.task.adapter.box is not None
    assert seen.names is not None
    assert seen.advice is not None
    assert seen.weights is not None
    centre = agent.task.adapter.box.to_environment(np.zeros(len(trace.header["box"]["names"])))
    told = len(agent.advisors) < len(trace.header["wishes"])  # the entropy comes last
    n = len(seen.names) - told
    push = Push({} if seen.push is None else dict(zip(seen.names[:n], seen.push[:n].tolist(), strict=True)))
    return explain_numbers(
        agent.task.name, (np.asarray(seen.action), centre), seen.names[:n], seen.advice[:n], seen.weights[:n], push,
        seen.advice[-1] if told else None,
    )  # fmt: skip


def stuck_at(trace: Trace, episode: int, step: int) -> bool | None:
    """Whether a step of a greedy episode lies in a rest that lasted until the episode was cut off; None if not known.

    Where there are no states, places are told apart by the advice given in them.
    """
    if trace.active is None or trace.advice is None or trace.header["epsilon"] > 0:
        return None
    if trace.terminated[episode]:
        return False
    span = trace.span(episode)
    advised = trace.rows(span.start, span.stop)
    advice = trace.advice[advised]
    if any(trace.header["settings"].get(name) is not None for name in NETWORKS):  # they never say the same twice
        low, high = advice.min(axis=0), advice.max(axis=0)
        advice = np.floor((advice - low) / np.maximum(high - low, 1e-9) * CELLS)
    rows = np.split(advice, trace._first_advice[span.start + 1 : span.stop] - advised.start)
    keys = [(who.tobytes(), row.tobytes()) for who, row in zip(trace.active[span], rows, strict=True)]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    walk, length = np.array([places[key] for key in keys]), len(keys) - 1
    paid = slice(*np.searchsorted(trace.reward_step, [span.start, span.stop]))
    gain = np.zeros(length + 1)
    if trace.gain is not None:
        gain[:] = trace.gain[span]
        paid = slice(0, 0)
    np.add.at(
        gain, trace.reward_step[paid] - span.start, trace.weights[trace.reward_advisor[paid]] * trace.reward[paid]
    )
    rest = resting(walk, trace.choice[span][:length], gain[:length], False, ends_of_parts(trace.active[span])[:length])
    return True if rest is not None and rest.until == length and step >= rest.since else None
