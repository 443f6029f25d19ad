"""Learners with tables: what they have in common, and the one for compiled worlds (`adapter_learner` has the other).

They hold everything a run is made of in plain arrays, so that it can be cut anywhere, saved, and taken up again with
the same bytes.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from multiadvisor.core import rng
from multiadvisor.core.aggregator import Aggregator, aggregator_of, plannings_of
from multiadvisor.core.compiling import first_use, specialise
from multiadvisor.core.learned import TABLES
from multiadvisor.core.plannings import TARGET, Planning
from multiadvisor.core.validation import MOST_STEPS, Arrays, Shapes, array, require
from multiadvisor.envs.step import LONGEST_EPISODE
from multiadvisor.errors import BadInput, short
from multiadvisor.learners.finite_choice import FiniteChoice
from multiadvisor.learners.protocol import Advice, EpisodeReturns, Exploration, refuse_unobservable
from multiadvisor.learners.tabular import kernel, records, switch
from multiadvisor.learners.tabular.rules.update_rules import as_learned, extra_of, extra_table, rule_of
from multiadvisor.settings import Settings
from multiadvisor.task import Advisor, Task, Transition


class Tables(FiniteChoice):
    """What the learners with tables answer alike."""

    table: np.ndarray
    extra: Any  # what the update rule learns besides the table
    progress: np.ndarray
    """[1] PROGRESS: how far the run has come."""
    offset: np.ndarray
    """[n] what tells the rows of advisors apart that are in one local state."""

    def __init__(self, task: Task, settings: Settings) -> None:
        self._n = task.n  # those who are paid
        self.task, self.settings = as_learned(task, settings), settings
        self.made = made_committee(self.task, settings)
        self.aggregator, self.weights = self.made.aggregator, self.task.weights
        self.key = rng.stream_key(settings.seed, rng.TRAINING)
        self.exploration = Exploration()
        self._shared = shared_advisors(self.task)

    @property
    def steps(self) -> int:
        """Transitions learned from."""
        return int(self.progress["step"][0])

    @property
    def episodes(self) -> int:
        """Episodes played to their end."""
        return int(self.progress["episodes"][0])

    @property
    def score_sum(self) -> float:
        """The scores of those episodes together."""
        return float(self.progress["score_sum"][0])

    @abstractmethod
    def _active(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The active advisors [m], their rows [m], and whether they advise [m] in a state."""

    def _asked(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The advisors that are asked in a state [m], their rows [m] and weights [m]."""
        advisors, rows, asked = self._active(state)
        weights = self.weights[advisors]
        if (learned := self.aggregator.learned) is not None:
            weights = learned.weigh(self.extra, advisors, rows, weights * asked)
            asked = weights != 0.0 if learned.selects else asked
        return (advisors, rows, weights) if asked.all() else (advisors[asked], rows[asked], weights[asked])

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The advisors that are asked in a state [m], and their rows [m]."""
        return self._asked(state)[:2]

    def _committee(self, offset: np.ndarray, stride: np.ndarray) -> records.Committee:
        """What belongs to each advisor, whose rows lie so."""
        task, made, settings = self.task, self.made, self.settings
        return records.Committee(
            offset, stride, made.kinds, made.aggregator.of, task.weights, task.gammas(settings.gamma),
            task.alphas(settings.alpha),
        )  # fmt: skip

    def _run_record(self, key: np.uint64, limit: int, learning: bool) -> records.RunRecord:
        """What never changes during a call; without learning nothing is explored, and rewards have no noise."""
        settings, made = self.settings, self.made
        return records.RunRecord(
            key, settings.alpha_half, float(settings.epsilon) if learning else 0.0, settings.epsilon_half,
            float(settings.noise) if learning else 0.0, limit, self._shared, learning, made.kind, made.needs,
        )  # fmt: skip

    def _refuse_infinite(self, rows: np.ndarray | None = None) -> None:
        """Of all values, or of those in these rows [m]; neither may their weighted sum be too large for a number."""
        with np.errstate(over="ignore", invalid="ignore"):
            reach = max(1.0, float(np.abs(self.weights).sum()))
            wrong = ~np.isfinite((self.table if rows is None else self.table[rows]) * reach)
        if wrong.any():
            row = np.argwhere(wrong)[0, 0] if rows is None else rows[np.argwhere(wrong)[0, 0]]
            raise BadInput(
                f"a value of task {self.task.name!r} is no longer finite (table row {row}), or not so times the "
                "weights: look for a reward that is not, or is very large, or choose a gamma below 1"
            )

    @abstractmethod
    def _total(self, state: Any) -> np.ndarray:
        """The preferences [A] in a state, as the loop itself finds them."""

    def explore(self, state: Any) -> int:
        """The action that learning would take in one state."""
        total = self._total(state)
        step = self.exploration.step(self.steps)
        word = rng.draw(np.uint64(rng.step_key(self.key, step)), rng.CHOICE)
        return int(kernel.choose(total, self.settings.exploring(step), np.uint64(word)))

    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state."""
        advisors, rows, weights = self._asked(state)
        names = self.task.names
        return Advice(tuple([names[j] for j in advisors.tolist()]), self.table[rows], weights, advisors)

    def _combined(self, advisors: np.ndarray, rows: np.ndarray) -> Aggregator:
        """The aggregator of these advisors [m] in these rows [m]."""
        if (learned := self.aggregator.learned) is None:
            return self.aggregator._replace(of=self.aggregator.of[advisors])
        return learned.at(self.aggregator, self.extra, self.task.advisors, self.offset, advisors, rows)

    def aggregator_at(self, state: Any) -> Aggregator:
        """The aggregator of those who are active in one state [m]."""
        return self._combined(*self.rows(state))

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""
        advisors, rows, weights = self._asked(state)
        found: np.ndarray = self._combined(advisors, rows).prefer(self.table[rows], weights)
        return found

    def _not_compiled(self, error: NumbaError) -> BadInput:
        reason, learned = " ".join(str(error).split())[:200], self.aggregator.learned
        if learned is not None:
            return BadInput(
                f"the rule of the aggregation {learned.name!r} cannot be compiled for task {self.task.name!r}: write "
                f"it with loops over single numbers, as no array can be made there ({reason} ...)"
            )
        return BadInput(
            f"the world of task {self.task.name!r} cannot be compiled: run check_task on it, which names the "
            f"function ({reason} ...)"
        )


def shared_advisors(task: Task) -> int:
    """How many advisors, the first ones, may share tables: -1 where they are too many, or not the first."""
    sharing = [j for j, advisor in enumerate(task.advisors) if advisor.table is not None]
    if not sharing:
        return 0
    return len(sharing) if sharing == list(range(len(sharing))) and len(sharing) <= 8 else -1


class CompiledCommittee(NamedTuple):
    """A committee in the kernel's terms: codes, and the switches they are codes of."""

    aggregator: Aggregator
    kinds: np.ndarray  # [n] int64 the code of each advisor's planning
    kind: int  # the code of all, or MIXED
    needs: int
    counting: bool
    codes: np.ndarray  # [G] int64 the code of each part's aggregation
    ends: np.ndarray  # [G] int64 the first advisor behind each part; -1 where parts are mixed up
    parameters: np.ndarray  # [G]
    rule: records.Rule
    plannings: tuple[Planning, ...]  # that the loop knows, by their codes


def made_committee(task: Task, settings: Settings) -> CompiledCommittee:
    """How each advisor plans and is aggregated, as the compiled loop has it."""
    plannings, aggregator = plannings_of(task, settings.planning), aggregator_of(task, settings.aggregation, TABLES)
    known, combined = switch.known_to(plannings, tuple(aggregation for aggregation, _ in aggregator.parts))
    code = {planning: k for k, planning in enumerate(known)}
    kinds = np.array([code[planning] for planning in plannings], np.int64)
    needs = {need for planning in plannings for need in planning.needs}
    if aggregator.learned is not None:
        needs.update(aggregator.learned.needs)
    return CompiledCommittee(
        aggregator, kinds, int(kinds[0]) if (kinds == kinds[0]).all() else kernel.MIXED,
        sum(kernel.NEEDS[need] for need in needs), "counts" in needs,
        np.array([combined.index(aggregation) for aggregation, _ in aggregator.parts], np.int64),
        _ends(aggregator), np.array([parameter for _, parameter in aggregator.parts], float),
        rule_of(task, settings, aggregator, switch.combine_switch(combined), switch.expect_switch(known)),
        known,
    )  # fmt: skip


def _ends(aggregator: Aggregator) -> np.ndarray:
    """The first advisor behind each part, where advisors of a part stand side by side; else -1."""
    ends = np.searchsorted(aggregator.of, np.arange(len(aggregator.parts)), side="right")
    return ends if (np.diff(aggregator.of) >= 0).all() else np.full_like(ends, -1)


class CompiledLearner(Tables):
    """Learns inside a compiled world, by the update rule that the settings name."""

    def __init__(self, task: Task, settings: Settings) -> None:
        super().__init__(task, settings)
        task, made, world = self.task, self.made, self.task.world
        assert world is not None
        layout, actions = task.layout(), len(task.actions)
        self.committee = self._committee(layout.offset, layout.stride)
        self.offset = layout.offset
        self.layout = np.stack([layout.offset, layout.stride])
        self.table = empty_table(task, layout.rows)
        self.counts = np.zeros(self.table.shape if made.counting else (1, actions))
        self.extra = extra_of(task, settings, made.aggregator, layout.rows)
        self._policies = policies_of(task, made.needs, layout.rows)
        self.x = np.zeros(world.size, np.int64)
        self.progress = records.new_progress()
        self._limit = -1 if task.limit is None else task.limit
        looking: dict[str, Any] = {
            "begin": world.begin, "local_states": world.local_states,
            "advises": world.advises or kernel.everybody_advises,
        }  # fmt: skip
        self._loop = specialise(
            kernel.play, reset=world.reset, step=world.step, ADVISES=world.advises is not None, JOINS=world.joins,
            pseudo=world.pseudo or kernel.nothing_besides, PSEUDO=world.pseudo is not None, RULE=made.rule, **looking,
        )  # fmt: skip
        self._ask = specialise(kernel.ask, RULE=made.rule, **looking)

    def _play(
        self, x: np.ndarray, progress: np.ndarray, key: np.uint64, *, steps: int, episodes: int, learning: bool
    ) -> EpisodeReturns:  # fmt: skip
        task = self.task
        assert task.world is not None
        found = EpisodeReturns.zeros(episodes, task.n)
        if not episodes:  # what is returned then is written somewhere, too
            found = found._replace(returns=np.zeros((1, task.n)))
        work = self._workspace(progress, key, learning)
        self._loop(task.world.constants, x, work, *self._slots(), steps, found)
        return found._replace(returns=found.returns[:episodes, : self._n])

    def _slots(self) -> tuple[np.ndarray, np.ndarray]:
        """Room for the slots."""
        return np.zeros((records.INTEGERS, self.task.n), np.int64), np.zeros((records.REALS, self.task.n))

    def _workspace(self, progress: np.ndarray, key: np.uint64, learning: bool) -> records.Workspace:
        """What the compiled loop works on."""
        made, room = self.made, np.zeros((3, self.table.shape[1]))
        aggregator = records.AggregatorParts(made.codes, made.ends, made.parameters, room[0], room[1], room[2])
        values = records.Values(self.table, self.counts, self._policies, self.extra)
        run = self._run_record(key, self._limit, learning)
        return records.Workspace(values, self.committee, aggregator, run, progress)

    def prepare(self) -> None:
        """Compile, where that has not been done: nothing is played."""
        try:
            with first_use(self._loop):
                self._play(self.x, self.progress, self.key, steps=0, episodes=0, learning=True)
        except NumbaError as error:
            raise self._not_compiled(error) from None

    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""
        self._play(self.x, self.progress, self.key, steps=steps, episodes=0, learning=True)
        self._refuse_infinite()

    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning; the run itself is not touched."""
        key = rng.stream_key(self.settings.seed, rng.EVALUATION, seed)
        x, progress = np.zeros_like(self.x), records.new_progress()
        steps = episodes * (self._limit if self._limit > 0 else LONGEST_EPISODE)
        played = self._play(x, progress, key, steps=steps, episodes=episodes, learning=False)
        if progress["episodes"][0] < episodes:
            raise BadInput(
                f"greedy play did not end {episodes} episodes of {self.task.name!r} in {steps} steps: give it a limit"
            )
        return played

    def _active(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, slots, _ = self._look(state)
        return slots.advisors[:m], slots.rows[:m], slots.weight[:m] != 0.0

    def preferences(self, state: Any) -> np.ndarray:
        """The preferences [A] in a state x, as the loop itself finds them."""
        return self._look(state)[2]

    _total = preferences

    def observe(self, transition: Transition, following: int | None) -> None:
        """Nobody but the world can tell."""
        refuse_unobservable(self.task)

    def _look(self, state: Any) -> tuple[int, records.Slots, np.ndarray]:
        """How many are active, the slots in which they stand, and the preferences [A]."""
        world = self.task.world
        assert world is not None
        x = world.checked(state, self.task.name)
        integers, reals = self._slots()
        work = self._workspace(self.progress, self.key, learning=False)
        try:
            m = self._ask(world.constants, x, work, integers, reals)
        except NumbaError as error:
            raise self._not_compiled(error) from None
        return m, records.unpack_slots.py_func(integers, reals), work.aggregator.total

    def fill(self, j: int, states: np.ndarray, values: np.ndarray) -> None:
        """Put values [S, A] into the table of an advisor, for these local states [S]: exact ones, for instance."""
        self.table[self.layout[0, j] + self.layout[1, j] * states] = values

    def values(self, j: int) -> np.ndarray:
        """Q_j [states, A] of one advisor."""
        states = self.task.advisors[j].states or 0
        found: np.ndarray = self.table[self.layout[0, j] + self.layout[1, j] * np.arange(states)]
        return found

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything the run is made of."""
        return {**self._own(), **self.exploration.tensors(self.steps)}

    def _own(self) -> Arrays:
        counted = {"counts": self.counts} if self.made.counting else {}
        extra = extra_table(self.extra)
        besides = {} if extra is None else {"extra": extra}
        return {"table": self.table, "x": self.x, **progress_tensors(self.progress), **counted, **besides}

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave; an episode whose state cannot be checked is begun anew."""
        own, world = self._own(), self.task.world
        assert world is not None
        for name, mine in own.items():
            array(tensors, name, mine.shape, mine.dtype)
        require(not self.made.counting or (tensors["counts"] >= 0).all(), "counts")
        restored = restored_progress(tensors, self._limit, self.table.shape[1])
        for name, mine in own.items():
            mine[...] = tensors[name]
        self.progress[:] = restored
        self._refuse_infinite()
        self.exploration.restore(tensors, self.steps)
        if not self.progress["fresh"][0] and not world.sound(self.x, self.task.name):
            self.progress["fresh"], self.progress["held"] = 1, 0


def linear_learner(task: Task, settings: Settings, saved: Shapes | None = None) -> CompiledLearner:
    """One Q-function, linear in a feature of its own for every advisor's local state, as in the paper."""
    assert task.world is not None
    if task.world.advises is not None or task.world.pseudo is not None:
        raise BadInput(
            f"in task {task.name!r} advisors fall silent, or learn from pseudo-rewards, and linear Q-learning has one "
            "value for the score of all of them: learn with tables"
        )
    for what, each in (("gamma", task.gammas(settings.gamma)), ("alpha", task.alphas(settings.alpha))):
        if (each != each[0]).any():
            raise BadInput(f"linear Q-learning has one {what} for everything: leave those of advisors out")
    return CompiledLearner(task, settings)


def empty_table(task: Task, rows: int) -> np.ndarray:
    """Zeros [rows, A]."""
    try:
        return np.zeros((rows, len(task.actions)))
    except (MemoryError, ValueError):
        raise BadInput(
            f"a table for task {task.name!r} has {rows} rows, more than the memory of this machine: make the task "
            "smaller, or learn with a network, learner='dqn' (--learner dqn)"
        ) from None


def policies_of(task: Task, needs: int, rows: int) -> np.ndarray:
    """The policies [rows, A] that advisors were given to value; next to nothing where none needs one."""
    actions = len(task.actions)
    if not needs & kernel.NEEDS[TARGET]:
        return np.zeros((1, actions))
    layout, policies = task.layout(), np.zeros((rows, actions))
    for j, advisor in enumerate(task.advisors):
        if advisor.target is not None:
            for state in range(advisor.states or 0):
                policies[layout.offset[j] + layout.stride[j] * state] = _policy(advisor, advisor.target(state), actions)
    return policies


def _policy(advisor: Advisor, given: Any, actions: int) -> np.ndarray:
    """Probabilities [A] from an action or from probabilities."""
    if isinstance(given, int | np.integer) and 0 <= given < actions:
        found: np.ndarray = np.eye(actions)[given]
        return found
    policy = np.asarray(given, float)
    if policy.shape != (actions,) or not (policy >= 0).all() or not abs(policy.sum() - 1.0) < 1e-9:
        raise BadInput(
            f"the target of advisor {advisor.name!r} gives {short(repr(given))}: give an action below {actions}, or "
            f"{actions} probabilities that sum to 1"
        )
    return policy


def grown(table: np.ndarray, rows: int) -> np.ndarray:
    """A table [rows, ...] that begins as this one."""
    bigger = np.zeros((rows, *table.shape[1:]))
    bigger[: len(table)] = table
    return bigger


def progress_tensors(progress: np.ndarray) -> Arrays:
    """PROGRESS [1] as a checkpoint keeps it: the integers, and the floats."""
    names = records.PROGRESS.names or ()
    scores = [name for name in names if records.PROGRESS[name].kind == "f"]
    counters = [name for name in names if name not in scores]
    return {
        "counters": np.array([progress[name][0] for name in counters], np.int64),
        "scores": np.array([progress[name][0] for name in scores], np.float64),
    }


def restored_progress(tensors: Arrays, limit: int, actions: int) -> np.ndarray:
    """PROGRESS [1] from what `progress_tensors` gave, checked."""
    counters = array(tensors, "counters", (7,), np.int64).tolist()
    scores = array(tensors, "scores", (2,), np.float64).tolist()
    step, episodes, episode_step, fresh, held, action, active = counters
    longest = step if limit < 0 else min(step, limit)
    require(0 <= step < MOST_STEPS and 0 <= episodes <= step and 0 <= episode_step <= longest, "counters")
    require(fresh in (0, 1) and (fresh or episode_step < limit or limit < 0), "counters")
    require(0 <= held <= (0 if fresh else actions) and 0 <= action < actions and active >= 0, "counters")
    return np.array([(*counters, *scores)], records.PROGRESS)
