"""Traces played again exactly, and explained: what was recorded, by its agent or by its task alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.analysis.recording import as_saved, record
from multiadvisor.analysis.stuck import stuck_at
from multiadvisor.analysis.theory.learned_values import surroundings
from multiadvisor.analysis.trace_file import (
    FORMAT,
    Trace,
    TracedStep,
    _sealed,
    check_place,
    count,
    read_trace,
    write_trace,
)  # fmt: skip
from multiadvisor.core.identity import difference, same
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.errors import BadInput, short
from multiadvisor.explain.explanation import (
    NOTHING_KNOWN,
    Explanation,
    Push,
    explain,
    explain_advised,
    explain_numbers,
)
from multiadvisor.learners.registry import own_settings
from multiadvisor.task import Task

if TYPE_CHECKING:
    from multiadvisor.agent import Evaluation, MultiAdvisor

__all__ = [
    "FORMAT", "Trace", "TracedStep", "_sealed", "check_place", "explain_numbers_of", "explain_step", "read_trace",
    "record", "record_evaluation", "replay", "write_trace",
]  # fmt: skip


def record_evaluation(agent: MultiAdvisor, episodes: int, seed: int) -> tuple[Evaluation, Trace]:
    """`agent.evaluate` and the trace of the very same episodes."""
    if own_settings(agent.settings).network:
        # a network's last bits depend on how many episodes it is asked about at once, so that only one of them can
        # count
        trace = record(agent, episodes, seed)
        from multiadvisor.agent import Evaluation

        return Evaluation.of(agent.task, trace.played()), trace
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
    own = [task.identity, as_saved(agent.settings), getattr(agent, "steps", 0)]
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
        return explain_numbers_of(agent, trace, seen, against)
    here = None if seen.state is None else surroundings(agent, seen.state)
    here = here or NOTHING_KNOWN._replace(stuck=stuck_at(trace, episode, step))
    return explain_advised(agent, seen.names, seen.advice, int(seen.action), against, here, seen.state, seen.weights)


def explain_numbers_of(agent: MultiAdvisor, trace: Trace, seen: TracedStep, against: Any) -> Explanation:
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
