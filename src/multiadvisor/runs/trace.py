"""Traces played again exactly, and explained: what was recorded, by its agent or by its task alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.agent import Evaluation, MultiAdvisor
from multiadvisor.analysis.episodes import Episodes, as_saved, count, record
from multiadvisor.analysis.stuck import stuck_at
from multiadvisor.analysis.theory.learned_values import NOTHING_KNOWN, surroundings
from multiadvisor.core.identity import difference, same
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.errors import BadInput, short
from multiadvisor.explain.explanation import Explanation, explain, explain_recorded
from multiadvisor.learners.kinds import own_settings
from multiadvisor.task import Task


def record_evaluation(agent: MultiAdvisor, episodes: int, seed: int) -> tuple[Evaluation, Episodes]:
    """`agent.evaluate` and the trace of the very same episodes."""
    if own_settings(agent.settings).network:
        # a network's last bits depend on how many episodes it is asked about at once, so that only one of them can
        # count
        trace = record(agent, episodes, seed)
        return Evaluation.of(agent.task, trace.played), trace
    seen, trace = agent.evaluate(episodes, seeds=(seed,)), record(agent, episodes, seed)
    same = np.array_equal(seen.played.score, trace.score) and np.array_equal(seen.played.length, trace.length)
    if not same:
        raise BadInput(f"task {agent.task.name!r} is not reproducible from the same seed: run check_task on it")
    return seen, trace


def _as_kept(trace: Episodes, episode: int) -> Callable[[Any, int], Any]:
    """Whoever does what was done in an episode."""
    actions = iter(trace.actions_of(episode))
    return lambda state, draw: next(actions)


def replay(trace: Episodes, task: Task) -> None:
    """Play the episodes again: the world, with its draws and the actions kept, must bring the same states and
    rewards."""
    name = short(trace.header["task"]["name"])
    if apart := difference(trace.header["task"]["identity"], task.identity):
        raise BadInput(
            f"the trace is of task {name!r} with other advisors or options than the given {task.name!r} ({apart})"
        )
    source = EvaluationEpisodes(task, trace.header["draws"], trace.header["seed"], trace.header["apart"])
    for episode, (at, length) in enumerate(zip(trace.first.tolist(), trace.length.tolist(), strict=False)):
        for step, now in enumerate(rollout(source, episode, _as_kept(trace, episode))):
            seen, last = trace.step(episode, step), step == length - 1
            same = seen.state is None or np.array_equal(seen.state, now.state)
            same &= np.isclose(trace.gain[at + step], now.gain) and np.array_equal(trace.reward[at + step], now.reward)
            same &= (now.over, now.terminated) == (last, last and bool(trace.terminated[episode]))
            if last and seen.state is not None:
                same &= np.array_equal(trace.states(episode)[-1], now.next_state)
            if not same:
                raise BadInput(f"episode {episode} of the trace differs from task {name!r} from step {step} on")


def explain_step(
    agent: MultiAdvisor, trace: Episodes, episode: int, step: int, against: str | int | None = None
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
    here = NOTHING_KNOWN if seen.state is None else surroundings(agent, seen.state)
    if here.stuck is None:
        here = here._replace(stuck=stuck_at(trace, episode, step))
    return explain_recorded(agent, trace, seen, against, here)
