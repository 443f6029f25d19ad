"""Another action in one step of an episode: both are played on in branches with the same random numbers.

A compiled world is put into the state; an environment of Gymnasium is restored, or its episode is replayed, in an
instance of its own, and asked whether an unchanged branch reproduces the episode before anything is said.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episodes import Episodes, numbers_of
from multiadvisor.core.intervals import paired
from multiadvisor.core.rng import CHOICE, EVALUATION, draw_python, evaluation_seed, stream_key
from multiadvisor.diagnosis.consequences import Consequences
from multiadvisor.diagnosis.kept import answered
from multiadvisor.diagnosis.policies import seed_everything
from multiadvisor.diagnosis.simulator import SavedState, Simulator, simulator_of
from multiadvisor.diagnosis.taught import Taught
from multiadvisor.envs.step import copied
from multiadvisor.errors import BadInput
from multiadvisor.explain.decisions import decider_of
from multiadvisor.explain.sentences import action_text
from multiadvisor.explorer.answers import own_environment
from multiadvisor.task import Task

HORIZON = 100
"""Steps of a branch."""
_NAMED, _SMALL = 3, 0.01  # terms that a sentence names: those that are not next to nothing beside the largest
_POINTS = 120  # of a path that is drawn


def alternatives(task: Task) -> list[str]:
    """The actions that can be tried: all, or of real numbers the centre of the box and each number at its ends."""
    if task.adapter is None or task.adapter.box is None:
        return list(task.actions)
    return ["the centre of the box", *(f"{name}, {end}" for name in task.actions for end in ("lowest", "highest"))]


def alternative(task: Task, taken: Any, number: int) -> Any:
    """The action of this number among them, as learners count it, in a step in which another one was `taken`."""
    if task.adapter is None or task.adapter.box is None:
        return number
    other = np.zeros_like(taken) if number == 0 else np.array(taken)
    if number:
        other[(number - 1) // 2] = (number - 1) % 2 * 2 - 1
    return other


def fan(
    step: int, names: Sequence[str], paths: Sequence[np.ndarray], terms: np.ndarray, of: Sequence[str],
    ended: Sequence[int], note: str,
) -> dict[str, Any]:  # fmt: skip
    """Branches as the page draws and says them.

    Of each of the actions `names`, of which the first is the one that was taken: scores from the step on `paths` [D, S
    + 1], what each term named by `of` brought, times its weight, `terms` [actions, D, n], and how many ended.
    """
    count, longest = paths[0].shape[0], max(one.shape[1] for one in paths) - 1
    if len(names) == 1:
        sentence = "It is the action that was taken."
    else:
        found = paired(paths[1][:, -1], paths[0][:, -1])
        size = f"{abs(found.value):.3g} {'more' if found.value >= 0 else 'less'}"
        apart = (terms[1] - terms[0]).mean(axis=0)
        least = _SMALL * np.abs(apart).max()
        time = f"{longest} step{'s' * (longest != 1)}"
        order = [j for j in np.argsort(-np.abs(apart), kind="stable").tolist() if abs(apart[j]) > least][:_NAMED]
        by = ", ".join(f"{of[j]} {apart[j]:+.3g}" for j in order) if len(of) > 1 else ""
        better, worse = (int((way * (paths[1][:, -1] - paths[0][:, -1]) > 0).sum()) for way in (1, -1))
        sure = (
            f" [{found.low:.3g}, {found.high:.3g}]: better in {better} of {count} branches, worse in {worse}"
            if count > 1
            else ", and nothing here is random"
        )
        sentence = f"{names[1]} instead of {names[0]} brings {size} in {time}{sure}{f'; {by}' * bool(by)}."
        if not found.value:
            average = ", on average" * bool((paths[1][:, -1] != paths[0][:, -1]).any())
            sentence = f"{names[1]} instead of {names[0]} brings the same in {time}{average}."
    sentence = sentence[:1].upper() + sentence[1:]
    every = max(1, longest // _POINTS)
    if alone := count == 1 < len(names):  # two lines would lie on each other
        paths = [one - paths[0] for one in paths]
    return {
        "step": step, "count": count, "sentence": sentence, "note": note, "every": every,
        "measure": "score against what was done" if alone else "score from here",
        "actions": [
            {"name": name, "mean": float(path[:, -1].mean()), "ended": int(over), "paths": path[:, ::every].tolist()}
            for name, path, over in zip(names, paths, ended, strict=True)
        ],
    }  # fmt: skip


def consequence(
    asked: Consequences | Taught, agent: MultiAdvisor, trace: Episodes, episode: int, step: int, number: int
) -> str:
    """By short branches that are closed by values, or as these taught: what the alternative brings, as far as it can be
    believed."""
    actions = trace.actions_of(episode)[: step + 1]
    other = agent.task.played(alternative(agent.task, actions[step], number))
    seed = evaluation_seed(trace.header["draws"], trace.header["seed"], episode)
    found = answered(asked, agent, seed, actions, trace.seen(episode, step), against=other)
    # what is asked here is what the other action brings
    said = replace(found, difference=-found.difference).sentence
    if isinstance(asked, Taught):
        return f"{said[:1].upper()}{said[1:]}."
    return f"By {asked.brancher.draws} short branches: {said}."


def unplayed(step: int, sentence: str, note: str) -> dict[str, Any]:
    """An answer without branches, as the page draws and says it."""
    return {"step": step, "count": 0, "sentence": sentence, "note": note, "every": 1, "measure": "", "actions": []}


class Branching:
    """Branches of the episodes of one run, in an instance of its environment of their own."""

    def __init__(self, agent: MultiAdvisor) -> None:
        self._decider, self._task = decider_of(agent), own_environment(agent.task)
        assert self._task.adapter is not None
        adapter = self._task.adapter

        def act(observation: Any) -> Any:
            return adapter.played(self._decider.decide(observation, 0, values=False).action)

        with self._held():
            found, self._method = simulator_of(adapter.env, act, 0)
        if found is None:
            raise BadInput(self._method)
        self._simulator: Simulator = found

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Nobody else plays in the environment meanwhile, and whoever trains in it has to find its way back."""
        assert self._task.adapter is not None
        with self._task.adapter.lock as lock:
            lock.user = None
            yield

    def what_if(self, trace: Episodes, episode: int, step: int, number: int, count: int) -> dict[str, Any]:
        """Both the action taken in a step of an episode and the alternative of this number, `count` branches each."""
        with self._held():
            return self._tried(trace, episode, step, number, count)

    def _tried(self, trace: Episodes, episode: int, step: int, number: int, count: int) -> dict[str, Any]:
        task, actions = self._task, trace.actions_of(episode)
        moment = self._moment(trace, episode, step)
        taken = actions[step]
        tried = [taken, alternative(task, taken, number)]
        if np.array_equal(*tried):
            tried = tried[:1]
        played = [[self._branch(moment, action, k) for k in range(2)] for action in tried]
        if not all(np.array_equal(one[0][0], one[1][0]) for one in played):
            for action, one in zip(tried, played, strict=True):
                one += [self._branch(moment, action, k) for k in range(2, count)]
        else:
            played = [one[:1] for one in played]
        longest = max(len(path) for one in played for path, _, _ in one)
        paths = [
            np.array([np.pad(path, (0, longest - len(path)), mode="edge") for path, _, _ in one]) for one in played
        ]
        terms = np.array([[paid for _, paid, _ in one] for one in played]) * task.weights
        ended = [sum(over for _, _, over in one) for one in played]
        names = [self._name(taken), self._name(tried[-1], number)][: len(tried)]
        return fan(step, names, paths, terms, task.names, ended, self._method[:1].upper() + self._method[1:] + ".")

    def _name(self, action: Any, number: int | None = None) -> str:
        adapter = self._task.adapter
        assert adapter is not None
        if adapter.box is None:
            return self._task.actions[int(action)]
        shown = action_text(np.ravel(adapter.played(action))) if len(np.ravel(action)) <= 4 else "the action taken"
        return shown if number is None else alternatives(self._task)[number]

    def _moment(self, trace: Episodes, episode: int, step: int) -> SavedState:
        """The state of an episode before this step, by playing its actions until there."""
        adapter = self._task.adapter
        assert adapter is not None
        seed = evaluation_seed(trace.header["draws"], trace.header["seed"], episode)
        observation, before = self._simulator.begin(seed), []
        for action in trace.actions_of(episode)[:step]:
            before.append(adapter.played(action))
            observation = self._simulator.env.step(before[-1])[0]
        known = trace.observed is None or np.array_equal(
            numbers_of(observation), trace.seen(episode, step), equal_nan=True
        )
        if not known:
            raise BadInput(f"task {self._task.name!r} is not reproducible before step {step}: run check_task on it")
        return SavedState(seed, tuple(before), copied(observation), self._simulator.save())

    def _branch(self, moment: SavedState, action: Any, number: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """The score after each step, what each term paid in all, and whether it came to an end."""
        task = self._task
        assert task.adapter is not None
        self._simulator.restore(moment)
        self._simulator.reseed(number)
        seed_everything(number)
        adapter, key = task.adapter.fresh(table=False, env=self._simulator.env), int(stream_key(number, EVALUATION))
        adapter.arrive(moment.observation)
        scores, paid = [0.0], np.zeros(task.n)
        for length in range(1, HORIZON + 1):
            terminated, truncated = adapter.step(action)
            paid += adapter.paid
            scores.append(float(paid @ task.weights))
            if terminated or truncated:
                return np.array(scores), paid, True
            action = self._decider.decide(adapter.observation, draw_python(key, length, CHOICE), values=False).action
        return np.array(scores), paid, False
