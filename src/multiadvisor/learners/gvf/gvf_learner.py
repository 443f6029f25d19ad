"""The learner with a bank of general value functions, in an environment whose task has `goals`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core import rng
from multiadvisor.core.aggregator import aggregator_of, plannings_of
from multiadvisor.core.compiling import first_use
from multiadvisor.core.validation import MOST_STEPS, Arrays, Shapes, array, require, whole
from multiadvisor.envs.python_env import Segment
from multiadvisor.envs.step import copied, finite_reward
from multiadvisor.errors import BadInput
from multiadvisor.learners.finite_choice import FiniteChoice
from multiadvisor.learners.gvf import bank
from multiadvisor.learners.gvf.gvf_spec import FRONTIER, REFUGE, KnownModel
from multiadvisor.learners.gvf.safety_plan import FOLLOWERS
from multiadvisor.learners.protocol import Advice, Decision, Exploration, nobody
from multiadvisor.settings import Settings
from multiadvisor.task import Task, Transition

KINDS = {"egocentric": bank.BEST, "agnostic": bank.UNIFORM, "empathic": bank.GREEDY, "estimate": bank.GREEDY}
"""The policy that each planning expects: none but the goal's own, all actions alike, or what the aggregator did there.

Empathic advisors cannot ask the aggregator in a replay, as it sees more than their local state: they expect what it
chose in that state before, each action as often (f_j is estimated)."""
STEP, EPISODES, EPISODE_STEP, FRESH = range(4)
_LOW = (1 << 32) - 1
_ROUNDING = 1e-3  # of values and probabilities
_NOTHING_NEW = 1 << 60  # steps in a room, for those who shall not explore


class GoalAdvice(NamedTuple):
    """Those who advise in one state."""

    advisors: np.ndarray  # [m]
    advice: np.ndarray  # [m, A]
    weights: np.ndarray  # [m] as they are now
    places: np.ndarray  # [m] they point at


class BankLearner(FiniteChoice):
    """Learns a bank of general value functions, and plays by the advisors that point at them."""

    def __init__(self, task: Task, settings: Settings, saved: Shapes | None = None) -> None:
        assert task.adapter is not None
        assert task.goals is not None
        self.task, self.settings, self.goals = task, settings, task.goals
        self._reader, self._lock = task.adapter.fresh(table=False), task.adapter.lock
        self.aggregator = aggregator_of(task, settings.aggregation)
        self.weights = task.weights
        if settings.noise:
            raise BadInput(f"noise is on rewards, and the goals of task {task.name!r} pay themselves: leave it out")
        kinds = list(zip((planning.name for planning in plannings_of(task, settings.planning)),
                         task.gammas(settings.gamma).tolist(), strict=True))  # fmt: skip
        for (planning, _), advisor in zip(kinds, task.advisors, strict=True):
            if planning not in KINDS:
                raise BadInput(
                    f"advisor {advisor.name!r} plans as {planning!r}, and a bank of general value functions knows "
                    f"{', '.join(KINDS)}: choose one of these"
                )
        self.kinds = list(dict.fromkeys(kinds))  # [tables] planning and gamma
        self.table_of = np.array([self.kinds.index(kind) for kind in kinds], np.int64)  # [n]
        self._worth = next((k for k, (planning, _) in enumerate(self.kinds) if KINDS[planning] == bank.BEST), 0)
        self.rooms: list[bank.Room | None] = [None] * self.goals.rooms
        self.key = rng.stream_key(settings.seed, rng.TRAINING)
        self.clock, self.tally = np.array([0, 0, 0, 1]), np.zeros(2)
        self.exploration = Exploration()
        self.segment = Segment(task.name, settings.seed)
        self._observation: Any = None
        self._touched: set[int] = set()  # rooms of this episode
        self.scores: list[float] = []  # of the episodes that came to their end

    # ---- what it is --------------------------------------------------------------------------------------------------
    @property
    def steps(self) -> int:
        """Transitions learned from."""
        return int(self.clock[STEP])

    @property
    def episodes(self) -> int:
        """Episodes played to their end."""
        return int(self.clock[EPISODES])

    @property
    def score_sum(self) -> float:
        """The scores of those episodes together."""
        return float(self.tally[1])

    # ---- what it says ------------------------------------------------------------------------------------------------
    def _room(self, number: int) -> bank.Room:
        room = self.rooms[number]
        if room is None:
            room = self.rooms[number] = self._new_room()
        return room

    def _new_room(self) -> bank.Room:
        goals, kinds = self.goals, [(KINDS[planning], gamma) for planning, gamma in self.kinds]
        return bank.Room(goals.states, goals.place, len(self.task.actions), kinds, self.task.n, goals.heading)

    def _enter(self, observation: Any) -> tuple[int, bank.Room, int]:
        """The room by its number, itself, and the number of the state in it, which is counted if it is a new one."""
        number, local = self.goals.at(observation)
        room = self._room(number)
        return number, room, room.state(local)

    def goal_advice(self, observation: Any, exploring: bool = False) -> GoalAdvice:
        """Who advises in one state, what, with what weights, and which places they point at."""
        goals = self.goals
        number, local = goals.at(observation)
        room = self.rooms[number]
        state = -1 if room is None else int(room.number[local])
        if room is None or state < 0:
            return GoalAdvice(*nobody(len(self.choices)), np.zeros(0, np.int64))
        look = self._look(room, exploring)
        aims = goals.aims(observation, look)
        column = np.where(aims.place >= 0, room.column[aims.place], np.where(aims.place == FRONTIER, 0, -1))
        safe = aims.place == REFUGE
        asked = np.flatnonzero(((column >= 0) | safe) & (aims.factor != 0.0))
        advice = np.empty((len(asked), len(self.task.actions)))
        for k, table in enumerate(room.tables):
            members = self.table_of[asked] == k
            advice[members] = table.q[state][:, column[asked[members]]].T
        if safe.any():  # a refuge is worth the share of the steps ahead that each action is sure of [A]
            advice[safe[asked]] = room.safety(state, goals.ahead, goals.checked_threat(observation, look))
        return GoalAdvice(asked, advice, self.weights[asked] * aims.factor[asked], aims.place[asked])

    def _look(self, room: bank.Room, exploring: bool) -> KnownModel:
        """What is known in a room."""
        table = room.tables[self._worth]

        def worth(local: Any, places: Any) -> np.ndarray:
            state, column = room.number[np.asarray(local)], room.column[np.asarray(places)]
            found = table.v[state[:, None], column[None, :]]
            return np.where((state[:, None] >= 0) & (column[None, :] >= 0), found, 0.0)

        def distances(local: Any) -> np.ndarray:
            return np.array([room.distances(one) for one in np.asarray(local).tolist()])

        return KnownModel(room.paid, room.steps if exploring else _NOTHING_NEW, worth, distances)

    def _choose(self, observation: Any, word: int, epsilon: float, exploring: bool) -> tuple[int, int]:
        """The action that is taken and the greedy one, by 64 random bits: high ones explore, low ones choose."""
        given = self.goal_advice(observation, exploring)
        greedy = _greedy(self._total(given).tolist(), word & _LOW)
        if epsilon * (1 << 32) > word >> 32 and not self._wary(given):
            return (word & _LOW) * len(self.task.actions) >> 32, greedy
        return greedy, greedy

    def _total(self, given: GoalAdvice) -> np.ndarray:
        """The preferences [A]; all 0 where nobody advises."""
        if not len(given.advisors):
            return np.zeros(len(self.task.actions))
        preferred: np.ndarray = self.aggregator.prefer(given.advice, given.weights, given.advisors)
        return preferred

    def _wary(self, given: GoalAdvice) -> bool:
        """Whether nothing may be tried, for those who are afraid."""
        afraid, safe, wary = given.weights < 0, given.places == REFUGE, self.goals.wary
        feared = afraid.any() and given.advice[afraid].max() > wary
        return bool(feared or (safe.any() and given.advice[safe].min() < 1.0 - wary))

    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state; their weights are those of this moment."""
        given = self.goal_advice(np.asarray(state))
        return Advice(tuple(self.task.names[j] for j in given.advisors), given.advice, given.weights, given.advisors)

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""
        return self._total(self.goal_advice(np.asarray(state)))

    def decide(self, state: Any, random_bits: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """What is done in a state by 64 random bits: also without learning it may be restless."""
        action, greedy = self._choose(state, random_bits, max(epsilon, self.goals.restless), False)
        given = self.goal_advice(state) if values else nobody(len(self.choices))
        return Decision(action, action, action != greedy, *given)

    def compare(self, state: Any, action: Any = None, against: Any = None) -> Decision:
        """All actions are compared with each other: the greedy decision, without restlessness."""
        chosen = self._choose(state, 0, 0.0, False)[1]
        return Decision(chosen, chosen, False, *self.goal_advice(state))

    def explore(self, state: Any) -> int:
        """The action that learning would take in one state."""
        step = self.exploration.step(self.steps)
        return self._choose(np.asarray(state), self._word(self.key, step), self.settings.exploring(step), True)[0]

    @staticmethod
    def _word(key: np.uint64, step: int) -> int:
        return rng.draw_python(int(key), step, rng.CHOICE)

    # ---- learning ----------------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Compile, where that has not been done."""
        room = bank.Room(1, np.zeros(1, np.int64), len(self.task.actions), [(bank.UNIFORM, 0.9)], 1)
        room.state(0)
        with first_use(bank.sweep):
            room.sweep(1)
            room.learn(0, 0)

    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""
        with self._lock as lock:
            if lock.user is not self and self.segment.actions:
                self._return()
            lock.user = self
            try:
                for _ in range(steps):
                    self._one_step()
            except BaseException:
                lock.user = None  # nobody knows where the environment is
                if not self.clock[EPISODE_STEP]:  # the episode was only begun: it is begun once more
                    self.clock[FRESH] = 1
                raise

    def _reset(self, seed: int | None) -> None:
        self._reader.reset(seed)
        self._observation = copied(self._reader.observation)

    def _step(self, action: int) -> tuple[bool, bool]:
        over = self._reader.step(action)
        self._observation = copied(self._reader.observation)  # the environment may change it in place
        return over

    def _return(self) -> None:
        """Play the current segment again up to where it was."""
        if self.segment.play_again(self._reset, self._step) != bool(self.clock[FRESH]):
            raise self.segment.not_reproducible()

    def _one_step(self) -> None:
        clock, step = self.clock, int(self.clock[STEP])
        if clock[FRESH]:
            self._reset(self.segment.next_seed(step))
            clock[FRESH] = 0
        before = self._observation
        self._enter(before)
        action, greedy = self._choose(before, self._word(self.key, step), self.settings.exploring(step), True)
        terminated, truncated = self._step(action)
        reward = finite_reward(self._reader.signals[0])
        self._learn(before, action, greedy, reward, self._observation, terminated)
        self.segment.actions.append(action)  # only now: a step that failed on the way is no part of the run
        clock[STEP] += 1
        clock[EPISODE_STEP] += 1
        self.tally[0] += reward
        if terminated or truncated:
            self._end()

    def _learn(self, before: Any, action: int, greedy: int, reward: float, after: Any, terminated: bool) -> None:
        goals = self.goals
        paid = goals.earned(before, after, reward, self.task.n)  # all that may fail comes first
        number, room, state = self._enter(before)
        elsewhere, local = -1, 0
        if not terminated and not goals.cut(before, after):
            elsewhere, local = goals.at(after)
        self._touched.add(number)
        room.steps += 1
        room.paid |= paid > 0
        room.chosen[state, greedy] += 1
        for table in room.tables:
            if table.kind == bank.GREEDY:
                table.policy[state] = room.chosen[state] / room.chosen[state].sum()
        if elsewhere != number:
            return
        following = room.state(local)
        room.follow(state, action, following)
        room.learn(state, action)

    def _end(self) -> None:
        """An episode is over: what was observed is replayed."""
        for number in sorted(self._touched):
            self._room(number).sweep(self.goals.sweeps)
        self._touched.clear()
        self.clock[EPISODES] += 1
        self.clock[EPISODE_STEP], self.clock[FRESH] = 0, 1
        self.tally[1] += self.tally[0]
        self.scores.append(float(self.tally[0]))
        self.tally[0] = 0.0

    def observe(self, transition: Transition, following: int | None) -> None:
        """Learn from a transition that somebody else played; the run's own episode, if one was going on, is given
        up."""
        with self._lock:
            before, after = np.asarray(transition.observation), np.asarray(transition.next_observation)
            reward = finite_reward(transition.reward)
            self._enter(before)
            action = transition.action - self.task.first_action
            greedy = self._choose(before, 0, 0.0, True)[1]
            self._learn(before, action, greedy, reward, after, transition.terminated)
            self.clock[STEP] += 1
            self.tally[0] += reward
            if transition.terminated or transition.truncated:
                self._end()
            self.segment.begin(self.steps)
            self.clock[FRESH] = 1

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def tensors(self) -> Arrays:
        """Everything the run is made of."""
        found = {
            "clock": self.clock, "tally": self.tally, "seeded_at": np.array([self.segment.seeded_at], np.int64),
            "trail": np.array(self.segment.actions, np.int64), "touched": np.array(sorted(self._touched), np.int64),
            "scores": np.array(self.scores, float), **self.exploration.tensors(self.steps),
        }  # fmt: skip
        for number, room in enumerate(self.rooms):
            if room is None:
                continue
            states, goals = room.states, room.goals
            parts = {
                "met": np.array(room.met, np.int64), "paid": room.paid.astype(np.uint8),
                "steps": np.array([room.steps], np.int64), "chosen": room.chosen[:states],
                "follower": room.model.follower[:states], "count": room.model.seen[:states],
            }  # fmt: skip
            for k, table in enumerate(room.tables):
                parts[f"q{k}"], parts[f"v{k}"] = table.q[:states, :, :goals], table.v[:states, :goals]
                parts[f"policy{k}"] = table.policy[:states]
            found.update({f"room{number}.{name}": np.ascontiguousarray(part) for name, part in parts.items()})
        return found

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        actions, rooms = len(self.task.actions), self.goals.rooms
        clock, tally = whole(tensors, "clock", (4,)), array(tensors, "tally", (2,), np.float64)
        trail, seeded_at = whole(tensors, "trail", (None,), 0, actions), whole(tensors, "seeded_at", (1,))
        require(clock[FRESH] in (0, 1) and seeded_at[0] + len(trail) == clock[STEP], "trail")
        require(len(trail) or clock[FRESH], "trail")
        touched = whole(tensors, "touched", (None,), 0, rooms)
        require((np.diff(touched) > 0).all(), "touched")
        scores = array(tensors, "scores", (int(clock[EPISODES]),), np.float64)
        self.rooms = [
            self._restored(tensors, f"room{number}.") if f"room{number}.met" in tensors else None
            for number in range(rooms)
        ]
        self.clock[:], self.tally[:] = clock, tally
        self.segment.seeded_at, self.segment.actions = int(seeded_at[0]), trail.tolist()
        self._touched, self.scores = set(touched.tolist()), scores.tolist()
        self.exploration.restore(tensors, self.steps)

    def _restored(self, tensors: Arrays, prefix: str) -> bank.Room:
        goals, actions = self.goals, len(self.task.actions)
        room = self._new_room()
        met = whole(tensors, f"{prefix}met", (None,), 0, goals.states)
        require(len(set(met.tolist())) == len(met) > 0, f"{prefix}met")
        for local in met.tolist():
            room.state(local)
        states = len(met)
        room.paid[:] = whole(tensors, f"{prefix}paid", (self.task.n,), 0, 2, np.uint8)
        room.steps = int(whole(tensors, f"{prefix}steps", (1,))[0])
        room.chosen[:states] = array(tensors, f"{prefix}chosen", (states, actions), np.float64)
        require((room.chosen >= 0).all() and (room.chosen <= MOST_STEPS).all(), f"{prefix}chosen")
        shape = (states, actions, FOLLOWERS)
        room.model.follower[:states] = whole(tensors, f"{prefix}follower", shape, 0, states, np.int32)
        room.model.seen[:states] = whole(tensors, f"{prefix}count", shape, 0, dtype=np.int32)
        for k, table in enumerate(room.tables):
            width = room.goals
            table.q[:states, :, :width] = array(tensors, f"{prefix}q{k}", (states, actions, width), np.float32)
            table.v[:states, :width] = array(tensors, f"{prefix}v{k}", (states, width), np.float32)
            for part, name in ((table.q, "q"), (table.v, "v")):  # whoever reaches a goal is paid 1, once
                require((part >= -_ROUNDING).all() and (part <= 1 + _ROUNDING).all(), f"{prefix}{name}{k}")
            policy = table.policy[:states] = array(tensors, f"{prefix}policy{k}", (states, actions), np.float64)
            require((policy >= 0).all() and (abs(policy.sum(axis=1) - 1) < _ROUNDING).all(), f"{prefix}policy{k}")
        return room


def _greedy(total: list[float], low: int) -> int:
    """The best action; 32 random bits pick among exactly equal ones."""
    best = max(total)
    tied = [action for action, one in enumerate(total) if one == best]
    return tied[low * len(tied) >> 32]
