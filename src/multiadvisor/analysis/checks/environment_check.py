"""The part of `check_task` for Gymnasium environments and advisors written in Python."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.analysis.checks.task_check import (
    NOTHING,
    Subject,
    as_flag,
    as_number,
    attempt,
    scalar,
    shown,
    snapshot,
)
from multiadvisor.core import rng
from multiadvisor.envs.info_terms import reward_function
from multiadvisor.envs.local_states import View, encode_state
from multiadvisor.envs.step import copied, form_of
from multiadvisor.errors import in_one_line
from multiadvisor.task import REMAINDER, Task, Transition

_TOLERANCE = 1e-6  # of the weighted sum of rewards, relative to the largest number in it


class _Kind(NamedTuple):
    """What an advisor' function answers, and the names of its defects."""

    what: str
    raises: str
    changes: str
    mutates: str


_STATE = _Kind("the local state", "state-raises", "local-state-not-repeatable", "mutated-observation")
_ACTIVE = _Kind("whether it is active", "activity-raises", "activity-not-repeatable", "mutated-observation")
_REWARD = _Kind("its reward", "reward-raises", "reward-not-repeatable", "mutated-transition")
_ENDED = _Kind("whether its part has ended", "end-raises", "end-not-repeatable", "mutated-transition")


@dataclass(frozen=True, eq=False)
class _Question:
    """One function of an advisor."""

    kind: _Kind
    index: int  # of the view for a local state, else of the advisor
    advisor: str
    function: Callable[[Any], Any]


def _contents(argument: Any) -> Any:
    """A print of what a function may not change: an observation, or a transition without its info."""
    return snapshot(argument._replace(info={}) if isinstance(argument, Transition) else argument)


class EnvironmentSubject(Subject):
    """Plays the environment itself, and asks the advisors beside it: the adapter and its counted states are not
    touched."""

    unseeded_resets = True

    def __init__(self, task: Task, seed: int) -> None:
        super().__init__(task, seed)
        assert task.adapter is not None
        self.adapter, self.env = task.adapter, task.adapter.env
        self.adapter.lock.user = self  # so that an agent in the middle of an episode finds back to it
        advisors = list(enumerate(task.advisors))
        views = enumerate(self.adapter.views)
        self._looking = [_Question(_STATE, k, view.owner, view.phi) for k, view in views]
        self._looking += [_Question(_ACTIVE, j, f.name, f.active) for j, f in advisors if f.active is not None]
        self._judging = [_Question(_REWARD, j, f.name, r) for j, f in advisors if (r := reward_function(f)) is not None]
        self._judging += [_Question(_ENDED, j, f.name, f.ended) for j, f in advisors if f.ended is not None]
        self._observation: Any = None
        self._kept: Any = None  # a copy of the observation as it was handed out,
        self._print: Any = None  # and its print
        self._active: set[int] = set()
        self._ended: set[int] = set()  # whose part has ended in this episode, until they are active anew
        self.must_end = getattr(self.env.spec, "max_episode_steps", None) is None

    def where(self) -> str:
        """The episode, its seed and the step."""
        return f"in episode {self.episode} (seed {self._episode_seed()}), step {self.steps}"

    def _episode_seed(self) -> int:
        return rng.environment_seed(self.seed, rng.ENVIRONMENT, self.episode)

    def leave(self) -> None:
        """Leave the environment at the start of an episode."""
        with contextlib.suppress(Exception):
            self.env.reset(seed=self.seed % (1 << 31))

    # ---- playing -----------------------------------------------------------------------------------------------------
    def _demand(self, name: str, call: Callable[[], Any], parts: int, wanted: str) -> Any:
        """What reset or step returns, which must be this many parts, the last of them a dictionary."""
        mend = "correct the environment"
        result = attempt(call, lambda error: self.broken(f"{name}-raises", in_one_line(error), mend))
        if not (isinstance(result, tuple) and len(result) == parts and isinstance(result[-1], dict)):
            self.broken(f"{name}-protocol", f"{name} gave {form_of(result)}", f"return {wanted}")
        return result

    def deal(self, episode: int, *, seeded: bool = True) -> Any:
        """Reset, with the episode's seed or without one."""
        self.episode, self.steps = episode, 0
        seed = self._episode_seed()
        reset = (lambda: self.env.reset(seed=seed)) if seeded else self.env.reset
        observation, _ = self._demand("reset", reset, 2, "(observation, a dict of info)")
        self._ended.clear()
        self._arrive(observation)
        if self.checking:
            self._active = self._look()
        return snapshot(observation)

    def step(self, action: Any) -> tuple[bool, Any]:
        """One step, and what every advisor makes of it."""
        self.steps += 1
        played = self.adapter.played(action)
        wanted = "(observation, reward, terminated, truncated, a dict of info)"
        observation, reward, terminated, truncated, info = self._demand(
            "step", lambda: self.env.step(copied(played)), 5, wanted
        )
        over = self._truth("flag-not-boolean", "terminated is", terminated)
        over |= self._truth("flag-not-boolean", "truncated is", truncated)
        if self.checking:
            if snapshot(self._observation) != self._print:
                what = f"the observation before step {self.steps} of episode {self.episode} has changed with the step"
                self.note("reused-observation", f"{what}: return a new array, or a copy, each time")
            before = self._kept
            self._arrive(observation)
            transition = Transition(before, played, copied(reward), self._kept, terminated, truncated, info)
            self._judge(transition)
        return over, snapshot((observation, reward, terminated, truncated))

    def _truth(self, defect: str, what: str, value: Any, advisor: str | None = None) -> bool:
        if as_flag(value) is None:
            self.blame(defect, f"{what} {shown(value)}", "return True or False", advisor)
        return attempt(lambda: bool(value)) is True

    def _arrive(self, observation: Any) -> None:
        self._observation, self._kept, self._print = observation, copied(observation), snapshot(observation)
        if self.checking and not self._inside(observation):
            what = f"{self.env.observation_space!r:.120} does not contain the observation {shown(observation)}"
            self.blame("observation-outside-space", what, "correct the space or the observation, its type included")

    def _inside(self, observation: Any) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a space may warn about what it casts; the answer is all that counts here
            return attempt(lambda: self.env.observation_space.contains(observation)) is True

    # ---- asking the advisors -----------------------------------------------------------------------------------------
    def _ask(self, questions: list[_Question], argument: Any) -> dict[_Question, Any]:
        """Every function's answer; each is asked twice, with copies of its own, and may not change them."""
        whole, answers = _contents(argument), {}
        for question in questions:
            given = copied(argument)
            answer, again = self._answer(question, given), self._answer(question, copied(argument))
            if _contents(given) != whole:
                what = f"the function for {question.kind.what} changed what it was given"
                self.blame(question.kind.mutates, what, "let it work on a copy", question.advisor)
            if answer is not NOTHING and again is not NOTHING and not self._alike(question, answer, again):
                what = f"asked twice for {question.kind.what}, it said {shown(answer)} and {shown(again)}"
                self.blame(question.kind.changes, what, "make it a function of its argument alone", question.advisor)
            answers[question] = answer
        return answers

    def _alike(self, question: _Question, answer: Any, again: Any) -> bool:
        counted = question.kind is _STATE and self.adapter.views[question.index].states is None
        if counted and isinstance(answer, Hashable) and isinstance(again, Hashable):
            # counted in a dictionary, so that its notion of being the same decides
            return attempt(lambda: again in {answer}) is not False
        return bool(snapshot(answer) == snapshot(again))

    def _answer(self, question: _Question, argument: Any) -> Any:
        def failed(error: Exception) -> None:
            what = f"the function for {question.kind.what} raised {in_one_line(error)}"
            self.blame(question.kind.raises, what, "correct it", question.advisor)

        return attempt(lambda: question.function(argument), failed)

    def _says(self, question: _Question, answer: Any, defect: str) -> bool:
        return self._truth(defect, f"asked {question.kind.what}, it said", answer, question.advisor)

    # ---- judging what they say ---------------------------------------------------------------------------------------
    def _look(self) -> set[int]:
        """Who is active in the state arrived in; local states are judged on the way."""
        active = set(range(self.task.n))
        for question, answer in self._ask(self._looking, self._kept).items():
            if answer is not NOTHING and question.kind is _STATE:
                self._judge_state(self.adapter.views[question.index], answer)
            elif answer is not NOTHING and not self._says(question, answer, "activity-not-boolean"):
                active.discard(question.index)
        self.present(active)
        return active

    def _judge_state(self, view: View, state: Any) -> None:
        what, defect = f"the local state is {shown(state)}, a {type(state).__name__},", ""
        if view.states is None:
            mend = "return a number, a string or a tuple of them"
            if attempt(lambda: hash(state)) is NOTHING:
                defect = "local-state-not-hashable"
            elif attempt(lambda: encode_state(state)) is NOTHING:
                defect = "local-state-not-saveable"
        elif (number := attempt(lambda: index(state))) is NOTHING:
            defect, mend = "local-state-not-whole", "return an integer"
        elif not 0 <= number < view.states:
            defect, mend = "local-state-out-of-range", f"return 0 to {view.states - 1}, or correct `states`"
        if defect:
            self.blame(defect, what, mend, view.owner)

    def _judge(self, transition: Transition) -> None:
        answers = self._ask(self._judging, transition)
        before, after = self._active, self._look()
        rewards = self._rewards(transition.reward, answers)
        self._judge_payments(rewards, before)
        active = sorted(before)
        self.judge_rewards(active, [rewards[j] for j in active])
        if self.adapter.components:
            there = [reward if j in before else 0.0 for j, reward in enumerate(rewards)]
            self.terms.compare(there, scalar(transition.info.get("original_reward")))
        for question, answer in answers.items():
            if question.kind is _ENDED and answer is not NOTHING and self._says(question, answer, "end-not-boolean"):
                self._judge_end(question, before, after, as_flag(transition.terminated) is True)
        self._ended -= after - before
        self._active = after

    def _judge_end(self, question: _Question, before: set[int], after: set[int], terminated: bool) -> None:
        if question.index not in before or terminated:
            return
        self._ended.add(question.index)
        if question.index in after:
            what = "it is active in the state in which its part has just ended,"
            self.blame("ended-advisor-stays-active", what, "let `active` be false there", question.advisor)

    def _judge_payments(self, rewards: list[float | None], before: set[int]) -> None:
        for j, reward in enumerate(rewards):
            if reward and j not in before:
                defect, when = "inactive-advisor-paid", "where it is inactive"
                if j in self._ended:
                    defect, when = "ended-advisor-paid", "after its own part has ended"
                mend = "pay nothing there, or let it be active"
                self.blame(defect, f"it gets {reward:g} {when},", mend, self.task.names[j])

    def _rewards(self, paid: Any, answers: dict[_Question, Any]) -> list[float | None]:
        """r_j [n], None where it is not a finite number; the environment's own reward and their sum are judged too."""
        own = self._own_rewards(paid)
        said = {q.index: (q, answer) for q, answer in answers.items() if q.kind is _REWARD}
        rewards: list[float | None] = []
        for j, advisor in enumerate(self.task.advisors):
            if j in said:
                rewards.append(self._reward(said[j][1], advisor.name, "the reward"))
                continue
            value = own[advisor.reward if isinstance(advisor.reward, int) else 0] if own else None
            vector = self.adapter.components > 0
            whole = value is None or not vector or self.judge_number(value, advisor.name, "the reward")
            rewards.append(value if whole else None)
        for j, advisor in enumerate(self.task.advisors):
            if advisor.reward == REMAINDER:
                others = [reward for k, reward in enumerate(rewards) if k != j and reward is not None]
                rewards[j] = own[0] - sum(others) if own and len(others) == len(rewards) - 1 else None
        if own and not self.adapter.components:
            self._judge_sum(own[0], rewards)
        return rewards

    def _reward(self, value: Any, advisor: str | None, whose: str) -> float | None:
        if value is NOTHING:
            return None
        number = as_number(value)
        if number is None:
            self.blame("reward-not-a-number", f"{whose} is {shown(value)}", "return a single number", advisor)
            return None
        return number if self.judge_number(number, advisor, whose) else None

    def _own_rewards(self, paid: Any) -> list[float] | None:
        """The environment's reward as numbers, or None where it cannot be read."""
        components = self.adapter.components
        shape = attempt(lambda: np.shape(paid))
        if not components and shape in ((), NOTHING):
            number = self._reward(paid, None, "the environment's reward")
            return None if number is None else [number]
        if shape != (components,):
            space = f"a vector of {components}" if components else "nothing of a vector"
            what = f"the environment pays {shown(paid)}, and its reward space says {space},"
            self.blame("vector-reward-shape", what, "correct the reward, or reward_space")
            return None
        numbers = [as_number(part) for part in paid]
        if None in numbers:
            self.blame("reward-not-a-number", f"the environment pays {shown(paid)}", "pay numbers")
            return None
        return [number for number in numbers if number is not None]

    def _judge_sum(self, paid: float, rewards: list[float | None]) -> None:
        if None in rewards:
            return
        parts = [self.task.advisors[j].weight * (rewards[j] or 0.0) for j in self._active]
        total = sum(parts)
        if abs(total - paid) > _TOLERANCE * max(1.0, abs(paid), *map(abs, parts)):
            what = f"the active advisors' weighted rewards add up to {total:g}, but the environment pays {paid:g},"
            self.blame("rewards-do-not-sum", what, "correct the rewards or weights, or add an advisor for the rest")
