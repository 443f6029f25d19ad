"""The part of `check_task` for compiled worlds.

The world's functions are compiled anew with checks of every index, so that one which reaches beyond an array is named
and does not take the process down. They work on a copy of the world's constants.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from multiadvisor.analysis.checks.task_check import Broken, Subject, as_flag, attempt, snapshot
from multiadvisor.core import rng
from multiadvisor.errors import in_one_line
from multiadvisor.task import Task

_RAISES = {
    "reset": "reset-raises", "begin": "activity-raises", "local_states": "state-raises", "step": "step-raises",
    "local_state": "state-raises",
}  # fmt: skip
_UNWRITTEN = np.iinfo(np.int64).min
_X_ALONE = "let it depend on x alone"


@functools.lru_cache(maxsize=64)
def _bounds_checked(function: Any) -> Any:
    # without the runtime, as in the compiled loop, so that what cannot be compiled there is not compiled here either
    options: dict[str, Any] = {"boundscheck": True, "error_model": "numpy", "_nrt": False}
    return numba.njit(getattr(function, "py_func", function), **options)


class WorldSubject(Subject):
    """Plays a compiled world by calling its four functions, as the compiled loop would."""

    def __init__(self, task: Task, seed: int) -> None:
        super().__init__(task, seed)
        assert task.world is not None
        self.world = task.world
        self.constants = copy.deepcopy(self.world.constants)
        self.x = np.zeros(self.world.size, np.int64)  # one for all episodes, as in the compiled loop
        self.advisors = np.zeros(0, np.int64)
        self.must_end = task.limit is None and not task.endless
        for name in _RAISES:
            function = getattr(self.world, name)
            if not hasattr(function, "py_func") and (function is not None or name != "local_state"):
                self.note("not-compiled", f"{name} is a plain function: decorate it with multiadvisor.compiled")
        for advisor in task.advisors:
            if advisor.states is None:
                message = "the compiled loop needs its number of local states: give `states`"
                self.note("states-not-given", message, advisor.name)

    def where(self) -> str:
        """The episode and the step."""
        return f"in episode {self.episode}, step {self.steps} (seed {self.seed})"

    def leave(self) -> None:
        """Nothing of the task was touched."""

    def spoilt(self) -> bool:
        """Whether the world has changed its constants."""
        if snapshot(self.constants) == snapshot(self.world.constants):
            return False
        message = f"the constants differ after {self.episode + 1} episodes: keep what changes in the state x"
        self.note("mutated-constants", message)
        return True

    # ---- playing -----------------------------------------------------------------------------------------------------
    def _call(self, name: str, *arguments: Any) -> Any:
        def failed(error: Exception) -> None:
            if isinstance(error, NumbaError):
                mend = "use numbers and the given arrays, and make no new ones"
                self.blame("not-compiled", f"{name} cannot be compiled ({in_one_line(error)})", mend)
            else:
                defect = "index-out-of-bounds" if isinstance(error, IndexError) else _RAISES[name]
                self.blame(defect, f"{name} raised {in_one_line(error)}", "correct it")
            raise Broken from error

        function = _bounds_checked(getattr(self.world, name))
        return attempt(lambda: function(self.constants, self.x, *arguments), failed)

    def _key(self) -> np.uint64:
        return rng.stream_key(self.seed, rng.ENVIRONMENT, (self.episode << 32) + self.steps)

    def deal(self, episode: int, *, seeded: bool = True) -> Any:
        """Reset with the episode's key."""
        self.episode, self.steps = episode, 0
        self._call("reset", self._key())
        first = self.x.tobytes()
        self.advisors = self._look()
        return first

    def step(self, action: int) -> tuple[bool, Any]:
        """One step, as the compiled loop makes it."""
        self.steps += 1
        before = tuple(self.x.tolist())
        m, n = len(self.advisors), self.task.n
        slots = np.zeros(n, np.int64)
        slots[:m] = self.advisors
        reward, ended = np.zeros(n), np.zeros(n, np.int64)
        terminated = self._call("step", action, self._key(), slots, m, reward, ended)
        over = bool(terminated)
        if self.checking:
            self._judge(m, slots, reward, ended, terminated)
            self._judge_answers(before, action, reward, over)
        happened = (self.x.tobytes(), reward.tobytes(), ended.tobytes(), over)
        if over:
            self._local_states(self.advisors[:0])  # the compiled loop asks even when nobody is left
        else:
            arrived = self._look()
            self._judge_activity(self.advisors, ended[:m] != 0, arrived)
            self.advisors = arrived
        return over or self.steps == self.task.limit, happened

    # ---- judging what it wrote ---------------------------------------------------------------------------------------
    def _judge(self, m: int, slots: np.ndarray, reward: np.ndarray, ended: np.ndarray, terminated: Any) -> None:
        if as_flag(terminated) is None:
            self.blame("flag-not-boolean", f"step returned {terminated!r}", "return whether the episode has terminated")
        if terminated and self.task.endless:
            self.blame("endless-task-ends", "an episode terminated", "build the task with endless=False")
        self._judge_slots("step", slots[:m], self.advisors)
        if reward[m:].any() or ended[m:].any():
            slot = m + int(np.flatnonzero((reward[m:] != 0) | (ended[m:] != 0))[0])
            what = f"step wrote into slot {slot} of {m} active advisors"
            self.blame("writes-past-active", what, "write below m only")
        self.judge_rewards(self.advisors.tolist(), reward[:m].tolist())
        for i, j in enumerate(self.advisors):
            if reward[i] != 0.0:
                self.judge_number(reward[i], self.task.names[j], "the reward")
            if ended[i] not in (0, 1):
                self.blame("end-not-boolean", f"step wrote {ended[i]} into ended", "write 1 or 0", self.task.names[j])

    def _judge_answers(self, before: tuple[int, ...], action: int, reward: np.ndarray, over: bool) -> None:
        """Whether what happened is within the bounds that the world gives, and among its outcomes."""
        world, defect = self.world, "outcome-not-listed"
        paid = {int(j): float(reward[i]) for i, j in enumerate(self.advisors) if reward[i] != 0.0}
        for j, value in paid.items():
            low, high = (-math.inf, math.inf) if world.bounds is None else world.bounds[j]
            if math.isfinite(value) and not low <= value <= high:
                what = f"the reward is {value:g} and not {low:g} to {high:g}"
                self.blame("reward-out-of-bounds", what, "correct step or `bounds`", self.task.names[j])
        if (outcomes := world.outcomes) is None:
            return

        def failed(error: Exception) -> None:
            self.blame(defect, f"outcomes raised {in_one_line(error)}", "correct it")
            raise Broken from error

        listed = attempt(lambda: list(outcomes(self.constants, before, action)), failed)
        happened = (None if over else tuple(self.x.tolist()), paid, over)
        for chance, x, pay, end in listed:
            seen = (None if end else tuple(x), {j: value for j, value in pay.items() if value != 0.0}, bool(end))
            if chance > 0 and seen == happened:
                break
        else:
            what = f"step did what outcomes does not list for {list(before)} and action {action}"
            self.blame(defect, what, "correct one of them")
        if not abs(math.fsum(outcome.probability for outcome in listed) - 1.0) < 1e-9:
            self.blame(defect, "the probabilities of the outcomes do not sum to 1", "correct them")

    def _judge_slots(self, name: str, slots: np.ndarray, advisors: np.ndarray) -> None:
        if not np.array_equal(slots, advisors):
            self.blame("mutated-advisors", f"{name} changed the list of active advisors", "leave that to begin")

    def _judge_activity(self, before: np.ndarray, ended: np.ndarray, after: np.ndarray) -> None:
        names = self.task.names
        over, stay, now = set(before[ended]), set(before[~ended]), set(after)
        joins = self.world.joins
        for j in sorted(set() if joins else over & now):
            what = "begin lists it in the state in which its part has just ended,"
            self.blame("ended-advisor-stays-active", what, "leave it out there", names[j])
        for j in sorted(stay - now if joins else (stay ^ now) - over):
            what = f"begin {'adds' if j in now else 'drops'} it, and only those whose part step ends may change,"
            self.blame("activity-changes-silently", what, "set ended, or let it be active throughout", names[j])

    # ---- looking around ----------------------------------------------------------------------------------------------
    def _unchanged(self, name: str, before: np.ndarray) -> None:
        if not np.array_equal(self.x, before):
            self.blame("mutated-state", f"{name} changed the state x", "only reset and step may")
            self.x[:] = before

    def _look(self) -> np.ndarray:
        """The active advisors; their local states are judged on the way."""
        advisors = self._begin()
        if self.checking:
            if not np.array_equal(advisors, self._begin()):
                self.blame("activity-not-repeatable", "begin gave two lists for the same state", _X_ALONE)
            self.present(advisors.tolist())
            local = self._local_states(advisors)
            self._judge_local(advisors, local, self._local_states(advisors))
            self._judge_one_by_one(advisors, local)
        return advisors

    def _begin(self) -> np.ndarray:
        n, before = self.task.n, self.x.copy()
        slots = np.full(n, _UNWRITTEN)
        m = self._call("begin", slots)
        self._unchanged("begin", before)
        whole = isinstance(m, int) and 0 <= m <= n
        advisors = slots[:m] if whole else slots[:0]
        if not whole or (np.diff(advisors) <= 0).any() or (m and not 0 <= advisors[0] <= advisors[-1] < n):
            shown = f"begin returned {m!r} and wrote {advisors.tolist()!s:.60}".replace(str(_UNWRITTEN), "nothing")
            mend = f"write advisors 0 to {n - 1} in rising order, each once, and return how many"
            self.broken("advisors-not-rising", shown, mend)
        return advisors

    def _local_states(self, advisors: np.ndarray) -> np.ndarray:
        before, m = self.x.copy(), len(advisors)
        slots, local = np.zeros(self.task.n, np.int64), np.full(self.task.n, _UNWRITTEN)
        slots[:m] = advisors
        self._call("local_states", slots, m, local)
        self._unchanged("local_states", before)
        self._judge_slots("local_states", slots[:m], advisors)
        return local[:m]

    def _judge_local(self, advisors: np.ndarray, local: np.ndarray, again: np.ndarray) -> None:
        for i, j in enumerate(advisors):
            advisor = self.task.advisors[j]
            if advisor.states is not None and not 0 <= local[i] < advisor.states:
                shown = "not written" if local[i] == _UNWRITTEN else str(local[i])
                mend = f"write 0 to {advisor.states - 1}, or correct `states`"
                self.blame("local-state-out-of-range", f"the local state is {shown}", mend, advisor.name)
            if local[i] != again[i]:
                what = f"local_states gave {local[i]} and {again[i]}"
                self.blame("local-state-not-repeatable", what, _X_ALONE, advisor.name)

    def _judge_one_by_one(self, advisors: np.ndarray, local: np.ndarray) -> None:
        for i, j in enumerate(advisors if self.world.local_state is not None else ()):
            before = self.x.copy()
            one = self._call("local_state", j)
            self._unchanged("local_state", before)
            if one != local[i]:
                what = f"local_state gave {one!r} and local_states {local[i]}"
                self.blame("local-states-differ", what, "let both say the same", self.task.advisors[j].name)
