"""The learner with tables as one would write it on a blackboard; `kernel.py` is its compiled twin, and is checked.

Everything random is a function of the run's key and the step (`core/rng.py`), so both draw the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agents import SELECTIONS
from multiadvisor.core.aggregations import behaviour, epsilon_greedy, greedy, weighted_sum
from multiadvisor.core.aggregator import Aggregator, aggregator_of, plannings_of
from multiadvisor.core.learned import TABLES
from multiadvisor.core.mappings import Mapping, mapped, plain
from multiadvisor.core.plannings import TARGET, Ahead, Planning, bootstrap
from multiadvisor.core.rng import CHOICE, NEXT_CHOICE, NOISE, draw, high_half, low_half, normal, step_key  # fmt: skip
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.python_env import Segment
from multiadvisor.learners.tabular.compiled_learner import made_committee, policies_of
from multiadvisor.learners.tabular.kernel import NEEDS, TINY
from multiadvisor.learners.tabular.rules.mapped import is_mapped, mappings_of
from multiadvisor.settings import Settings
from multiadvisor.task import Task


class Frame(NamedTuple):
    """The active advisors, the rows of the table they look at, and whether the aggregator hears them."""

    advisors: np.ndarray  # [m], rising
    rows: np.ndarray  # [m]
    applied: np.ndarray  # [m] 1.0, or 0.0 for who is silent


class Outcome(NamedTuple):
    """What a step brought to the advisors of the frame before it."""

    reward: np.ndarray  # [m]
    gone: np.ndarray  # [m] bool: whose own part is over, or who has no say any more
    rows: np.ndarray  # [m] where they are now (any value for those gone)
    frame: Frame  # who is active now
    terminated: bool
    truncated: bool


@dataclass
class Reference:
    """Multi-advisor temporal-difference learning, one step at a time."""

    source: CompiledSource | AdapterSource
    table: np.ndarray  # [rows, A]
    plannings: tuple[Planning, ...]  # [n]
    aggregator: Aggregator
    weights: np.ndarray  # [n]
    gammas: np.ndarray  # [n]
    alphas: np.ndarray  # [n]
    alpha_half: int
    exploring: Callable[[int], float]  # epsilon in a step
    sigma: float
    key: np.uint64
    counts: np.ndarray  # [rows, A] how often each action was the aggregator's
    correcting: bool = False  # the last advisor is the correction
    groups: tuple[np.ndarray, ...] = ()  # [groups] [members] of those who are applied by each other's plans
    offset: np.ndarray | None = None  # [n] of the rows of advisors with the same local state
    plans: np.ndarray | None = None  # [rows, J, A] Q_k^{pi_j}: the row of j's plan, the place of k in its group
    targets: np.ndarray | None = None  # [rows, A] the policies that advisors were given to value
    mappings: np.ndarray | None = None  # [n] MAPPING: the scales on which values are moved
    linear: bool = False  # one Q-function, linear in the features "advisor j is in local state s"
    step: int = 0
    frame: Frame | None = None
    held: int | None = None  # the next action, where an advisor has learned from it

    def learn(self, steps: int) -> list[int]:
        """Play and learn; the actions taken."""
        actions = []
        for _ in range(steps):
            if self.frame is None:
                self.frame = self.source.deal()
            action = self.choose(self.frame, self.step) if self.held is None else self.held
            self.held = None
            outcome = self.source.step(action)
            key = np.uint64(step_key(self.key, self.step))
            (self.update_linear if self.linear else self.update)(self.frame, action, outcome, key)
            over = outcome.terminated or outcome.truncated
            self.frame, self.held = (None, None) if over else (outcome.frame, self.held)
            self.step += 1
            actions.append(action)
        return actions

    def preferences(self, frame: Frame) -> np.ndarray:
        """What the aggregator makes of the advice [A]."""
        weights = self.weights[frame.advisors] * frame.applied
        single = ~np.isin(frame.advisors, [k for group in self.groups for k in group])
        total = np.zeros(self.table.shape[1])
        if single.any() or not self.groups:
            total = self.aggregator.prefer(self.table[frame.rows[single]], weights[single], frame.advisors[single])
        for group in self.groups:
            if np.isin(frame.advisors, group).any():
                total = total + self.best_plan(frame, weights, group)
        return total

    def best_plan(self, frame: Frame, weights: np.ndarray, group: np.ndarray) -> np.ndarray:
        """The best over the plans j of sum_k w_k Q_k^{pi_j} [A]."""
        worth = np.zeros((len(group), self.table.shape[1]))  # [J, A]
        for k, row, weight in zip(frame.advisors, frame.rows, weights, strict=True):
            if k in group:
                worth += weight * self.plans[self.plan_rows(row, k, group), np.searchsorted(group, k)]
        return worth.max(axis=0)

    def plan_rows(self, row: int, k: int, group: np.ndarray) -> np.ndarray:
        """The rows [J] of all plans of a group in the local state in which k looks at `row`."""
        return row - self.offset[k] + self.offset[group]

    def learn_plans(self, rows: np.ndarray, action: int, reward: np.ndarray, advisors: np.ndarray,
                    after: np.ndarray | None) -> None:  # fmt: skip
        """What every plan of its group is worth to each of these advisors, who arrive in the rows `after`, or end."""
        for i, k in enumerate(advisors):
            for group in self.groups:
                if k in group:
                    place = np.searchsorted(group, k)
                    target = np.full(len(group), reward[i])
                    if after is not None:
                        ahead = self.plan_rows(after[i], k, group)
                        tied = self.table[ahead] == self.table[ahead].max(axis=1, keepdims=True)  # [J, A] the plans
                        worth = np.where(tied, self.plans[ahead, place], 0.0)
                        target += self.gammas[k] * (np.array([sum(each) for each in worth]) / tied.sum(axis=1))
                    here = self.plan_rows(rows[i], k, group)
                    old = self.plans[here, place, action]
                    new = old + self.alphas[k] * self.decay() * (target - old)
                    self.plans[here, place, action] = np.where(abs(new) > TINY, new, 0.0)

    def choose(self, frame: Frame, step: int) -> int:
        """The action of that step."""
        word = np.uint64(draw(np.uint64(step_key(self.key, step)), CHOICE))
        return int(epsilon_greedy(self.preferences(frame), self.exploring(step), high_half(word), low_half(word)))

    def update(self, before: Frame, action: int, outcome: Outcome, key: np.uint64) -> None:
        """Those who are gone learn their last reward; the others bootstrap by their planning."""
        reward = self.noisy(outcome.reward, before.advisors, key)
        if self.correcting:
            reward[-1] = 0.0
        gone = outcome.gone | outcome.terminated
        self.learn_plans(before.rows[gone], action, reward[gone], before.advisors[gone], None)
        self.td_update(before.rows[gone], action, reward[gone], before.advisors[gone])
        if outcome.terminated:
            return
        stay = before.advisors[~gone]
        reward, values = reward[~gone], self.expect(stay, outcome.rows[~gone], outcome.frame, key)
        if self.correcting:  # paid what the others expect, and worth minus what all together can get
            reward[-1] = sum(self.weights[stay[:-1]] * self.gammas[stay[:-1]] * values[:-1])
            values[-1] = -self.preferences(outcome.frame).max()
        self.learn_plans(before.rows[~gone], action, reward, stay, outcome.rows[~gone])
        self.td_update(before.rows[~gone], action, reward + self.gammas[stay] * values, stay)

    def expect(self, advisors: np.ndarray, rows: np.ndarray, after: Frame, key: np.uint64) -> np.ndarray:
        """What the advisors expect of the rows they have arrived at."""
        preferences = self.preferences(after)
        ahead = int(greedy(preferences, low_half(np.uint64(draw(key, NEXT_CHOICE)))))  # f_Sigma(x')
        for row in rows:  # in turn, as two advisors may share a row
            self.counts[row, ahead] += 1.0
        plannings = [self.plannings[j] for j in advisors]
        if len(advisors) and self.holds():
            self.held = self.choose(after, self.step + 1)
        values = np.zeros(len(rows))
        for planning in dict.fromkeys(plannings):
            those = np.array([one == planning for one in plannings])
            expected = behaviour(preferences, self.exploring(self.step + 1))
            given = None if self.targets is None else self.targets[rows[those]]
            known = Ahead(ahead, self.held, expected, self.counts[rows[those]], given)
            values[those] = bootstrap(planning, self.table[rows[those]], known)
        return values

    def holds(self) -> bool:
        """Whether somebody learns from the action taken next."""
        return any("taken" in planning.needs for planning in self.plannings)

    def update_linear(self, before: Frame, action: int, outcome: Outcome, key: np.uint64) -> None:
        """Plain Q-learning on the sum; every feature that was present takes an equal share of the step."""
        weights, after = self.weights[before.advisors], outcome.frame
        expected = weighted_sum(self.table[before.rows], weights)[action]
        ahead = self.preferences(after).max() if not outcome.terminated else 0.0
        income = sum(weights * self.noisy(outcome.reward, before.advisors, key))
        step = self.alphas[0] * self.decay() / len(before.rows) * (income + self.gammas[0] * ahead - expected)
        if self.mappings is not None:  # the features sum up to the mapped value
            scale, alpha = Mapping(*self.mappings[0].tolist()), self.alphas[0] * self.decay()
            old, target = plain(scale, expected), income + self.gammas[0] * plain(scale, ahead)
            step = scale.alpha * (mapped(scale, old + alpha * (target - old)) - expected) / len(before.rows)
        for row in before.rows:
            new = self.table[row, action] + step
            self.table[row, action] = new if abs(new) > TINY else 0.0

    def noisy(self, reward: np.ndarray, advisors: np.ndarray, key: np.uint64) -> np.ndarray:
        """The rewards [m] as the advisors perceive them."""
        if self.sigma == 0:
            return reward
        return reward + self.sigma * np.array([normal(np.uint64(draw(key, NOISE + int(j)))) for j in advisors])

    def decay(self) -> float:
        """By how much step sizes have fallen."""
        half = self.alpha_half
        return half / (half + self.step) if half > 0 else 1.0

    def td_update(self, rows: np.ndarray, action: int, targets: np.ndarray, advisors: np.ndarray) -> None:
        """q += alpha * (target - q), in turn, as two advisors may share a row."""
        for row, target, j in zip(rows, targets, advisors, strict=True):
            old, alpha = self.table[row, action], self.alphas[j] * self.decay()
            new = old + alpha * (target - old)
            if self.mappings is not None:  # the average in plain space is approached in mapped space
                scale = Mapping(*self.mappings[j].tolist())
                new = plain(scale, mapped(scale, old) + scale.alpha * (mapped(scale, new) - mapped(scale, old)))
            self.table[row, action] = new if abs(new) > TINY else 0.0


@dataclass
class ArbitratedReference(Reference):
    """With one advisor in control (`rules/arbitration.py`); an arbitrator is the last of a frame."""

    selection: str = ""
    claims: np.ndarray | None = None  # [rows, 1] W-values, or [rows, n] what all earn with each in control
    apart: bool = False  # the arbitrator has a reward of its own

    def own(self, frame: Frame) -> int:
        """How many advisors are active, without the arbitrator."""
        return len(frame.advisors) - (self.selection == "arbi_q")

    def leader(self, frame: Frame) -> int | None:
        """The place of the one in control: the first of the largest claims."""
        able = np.flatnonzero(self.weights[frame.advisors] * frame.applied)
        claims = [self.claim_of(frame, i) for i in able]
        return int(able[np.argmax(claims)]) if len(able) else None

    def claim_of(self, frame: Frame, i: int) -> float:
        """Of the advisor in slot i."""
        if self.selection == "arbi_q":
            return float(self.claims[frame.rows[-1], frame.advisors[i]])
        return float(self.claims[frame.rows[i], 0])

    def preferences(self, frame: Frame) -> np.ndarray:
        """Of the one in control."""
        leader = self.leader(frame)
        only = np.arange(len(frame.advisors)) == leader
        return self.aggregator.prefer(self.table[frame.rows], self.weights[frame.advisors] * only, frame.advisors)

    def holds(self) -> bool:
        """An arbitrator does."""
        return super().holds() or self.selection == "arbi_q"

    def wishes(self, frame: Frame) -> np.ndarray:
        """w Q of the active advisors [k, A]."""
        k = self.own(frame)
        return self.weights[frame.advisors[:k], None] * self.table[frame.rows[:k]]

    def claim(self, row: int, column: int, target: float, advisor: int) -> None:
        """A claim moves towards a target, with the learning rate of an advisor."""
        new = self.claims[row, column] + self.alphas[advisor] * self.decay() * (target - self.claims[row, column])
        self.claims[row, column] = new if abs(new) > TINY else 0.0

    def lose(self, before: Frame, who: np.ndarray, targets: np.ndarray) -> None:
        """These advisors [k] bool lose what they would have got less what they get."""
        wishes = self.wishes(before).max(axis=1)
        for i in np.flatnonzero(who):
            j = before.advisors[i]
            self.claim(before.rows[i], 0, wishes[i] - self.weights[j] * targets[i], j)

    def control(self, before: Frame, wants: np.ndarray, target: float) -> None:
        """All who wanted what was done might have been in control."""
        for i in np.flatnonzero(wants):
            self.claim(before.rows[-1], before.advisors[i], target, before.advisors[-1])

    def update(self, before: Frame, action: int, outcome: Outcome, key: np.uint64) -> None:
        """Claims are learned before the values on which they rest."""
        k, leader, arbitrated = self.own(before), self.leader(before), self.selection == "arbi_q"
        advisors, rows = before.advisors[:k], before.rows[:k]
        reward = self.noisy(outcome.reward, before.advisors, key)
        paid = reward[-1] if self.apart else sum(self.weights[advisors] * reward[:k])
        reward, gone = reward[:k], (outcome.gone | outcome.terminated)[:k]
        wishes = self.wishes(before)
        wants = wishes[:, action] == wishes.max(axis=1)  # [k]
        lost = np.arange(k) != leader if leader is not None and wants[leader] else np.zeros(k, bool)
        if not arbitrated:
            self.lose(before, lost & gone, reward)
        elif outcome.terminated:
            self.control(before, wants, paid)
        self.td_update(rows[gone], action, reward[gone], advisors[gone])
        if outcome.terminated:
            return
        after, values = outcome.frame, np.zeros(k)
        leads = self.leader(after)
        self.held = None
        values[~gone] = self.expect(advisors[~gone], outcome.rows[:k][~gone], after, key)
        targets = reward + self.gammas[advisors] * values
        if arbitrated:
            self.control(before, wants, paid + self.gammas[-1] * self.worth(after, leads))
        else:
            self.lose(before, lost & ~gone, targets)
        self.td_update(rows[~gone], action, targets[~gone], advisors[~gone])

    def worth(self, after: Frame, leader: int | None) -> float:
        """The claim of who is in control next: where it does not want the action taken, of the first who does."""
        if leader is None:
            return 0.0
        k, wishes = self.own(after), self.wishes(after)
        if self.held is not None:
            wants = wishes[:, self.held] == wishes.max(axis=1)
            able = np.flatnonzero(wants & (self.weights[after.advisors[:k]] * after.applied[:k] != 0))
            leader = int(able[0]) if not wants[leader] and len(able) else leader
        return self.claim_of(after, leader)


def reference(
    task: Task, settings: Settings, source: CompiledSource | AdapterSource, table: np.ndarray, key: np.uint64
) -> Reference:
    """The readable learner of a task; what it learns goes into `table`."""
    aggregator = aggregator_of(task, settings.aggregation, TABLES)
    planned = [part for part, (aggregation, _) in enumerate(aggregator.parts) if aggregation.name == "gpi"]
    groups = tuple(np.flatnonzero(aggregator.of == part) for part in planned)
    most = max((len(group) for group in groups), default=0)
    committee = made_committee(task, settings)
    targets = policies_of(task, committee.needs, len(table)) if committee.needs & NEEDS[TARGET] else None
    apart = task.layout().offset if task.adapter is None else task.adapter.position
    made = ArbitratedReference if settings.aggregation in SELECTIONS else Reference
    found = made(
        source, table, plannings_of(task, settings.planning), aggregator, task.weights,
        task.gammas(settings.gamma), task.alphas(settings.alpha), settings.alpha_half, settings.exploring,
        settings.noise, key, np.zeros_like(table), settings.aggregation == "correction", groups,
        apart if groups else None, np.zeros((len(table), most, table.shape[1])), targets,
        mappings_of(task, settings) if is_mapped(task) else None,
        settings.learner_settings.name == "linear",
    )  # fmt: skip
    if isinstance(found, ArbitratedReference):
        claims = aggregator.learned.extra(task, aggregator, len(table))
        found.selection, found.claims, found.apart = settings.aggregation, claims.table, claims.apart
    return found


class CompiledSource:
    """A compiled world for the reference learner."""

    def __init__(self, task: Task, key: np.uint64) -> None:
        self.task, self.env, self.layout = task, CompiledEnv(task, [key]), task.layout()

    def _frame(self, advisors: np.ndarray, local: np.ndarray) -> Frame:
        world, applied = self.task.world, np.ones(len(advisors))
        if world is not None and world.advises is not None:
            world.advises(world.constants, self.env.x[0], advisors, len(advisors), applied)
        return Frame(advisors, self.layout.offset[advisors] + self.layout.stride[advisors] * local, applied)

    def deal(self) -> Frame:
        """Start an episode."""
        self.env.reset()
        return self._frame(*self._arrived())

    def _arrived(self) -> tuple[np.ndarray, np.ndarray]:
        """Whoever was active before the last step, or in the first state [m], and their local states now [m]."""
        m = self.env.count[0]
        return self.env.slots[0, :m].copy(), self.env.local[0, :m].copy()

    def _here(self) -> tuple[np.ndarray, np.ndarray]:
        """Who is active now [m], and their local states [m]."""
        world, (advisors, local) = self.task.world, np.zeros((2, self.task.n), np.int64)
        m = world.begin(world.constants, self.env.x[0], advisors)
        world.local_states(world.constants, self.env.x[0], advisors, m, local)
        return advisors[:m], local[:m]

    def step(self, action: int) -> Outcome:
        """Play a step."""
        now, world = self.env.step(np.array([action])).single(), self.task.world
        advisors, local = self._arrived()
        reward, ended = now.reward[advisors], now.ended[advisors]
        if world.pseudo is not None:
            world.pseudo(world.constants, self.env.x[0], action, advisors, len(ended), ended.astype(np.int64), reward)
        here = self._frame(advisors, local)
        left = self._frame(*self._here()) if world.joins else self._frame(advisors[~ended], local[~ended])
        return Outcome(reward, ended, here.rows, left, now.terminated, now.truncated)


class AdapterSource:
    """A Gymnasium environment for the reference learner, seeded as the compiled learner seeds it."""

    def __init__(self, task: Task, seed: int) -> None:
        self.adapter, self.elapsed, self.segment = task.adapter, 0, Segment(task.name, seed)
        self.active, self.applied = np.ones(task.n, np.int64), np.ones(task.n, np.int64)
        self.ended = np.zeros(task.n, np.int64)
        self.adapter.bind(self.active, self.applied, self.ended)

    def _rows(self, advisors: np.ndarray) -> np.ndarray:
        adapter = self.adapter
        return adapter.firsts[adapter.view_of[advisors]] + adapter.position[advisors]

    def _frame(self) -> Frame:
        advisors = np.flatnonzero(self.active)
        return Frame(advisors, self._rows(advisors), self.applied[advisors].astype(float))

    def deal(self) -> Frame:
        """Start an episode; after a segment of steps, from a new seed."""
        self.adapter.reset(self.segment.next_seed(self.elapsed))
        self.before = self._frame()
        return self.before

    def step(self, action: int) -> Outcome:
        """Play a step."""
        advisors = self.before.advisors
        terminated, truncated = self.adapter.step(action)
        self.elapsed += 1
        self.segment.actions.append(action)
        self.before = self._frame()
        gone = (self.ended[advisors] == 1) | (self.active[advisors] == 0)
        reward = self.adapter.signals[self.adapter.source[advisors]]
        return Outcome(reward, gone, self._rows(advisors), self.before, terminated, truncated)
