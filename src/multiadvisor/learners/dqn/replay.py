"""The memory of the last transitions, every observation stored once, and what is read from it for a batch.

Each episode has a ring of rows, in the order of its steps. A row is an observation with what was done in it and what
came of it; where an episode ended, one row more holds its last observation. Sums over n steps are taken when a batch is
read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiadvisor.core.aggregator import Aggregator
from multiadvisor.core.compiling import cached, specialise
from multiadvisor.core.rng import CHOICE, NOISE, below, draw, normal, step_key
from multiadvisor.core.validation import Arrays, array, require, whole
from multiadvisor.learners.dqn.dqn_update import Batch
from multiadvisor.learners.network_learner import DONE, SCORE, SCORE_SUM
from multiadvisor.learners.tabular import kernel, switch

# What a row is: the newest one of its ring (nothing was done in it yet), a step, an episode's last step, or its end.
NEWEST, STEP, LAST, END = range(4)
HEAD, FILLED, STEPS = range(3)  # the entries of `clock`
_ROWS = ("action", "reward", "ended", "active", "kind")  # what a checkpoint keeps as it is


def combine(code, table, rows, weights, m, parameter, preferences):
    """Bound to the aggregations before compiling."""


class Combination(NamedTuple):
    """How n advisors are combined, by the parts of an aggregator, and room for `choose` to work in."""

    weight: np.ndarray  # [n]
    part: np.ndarray  # [n] int64 to which of the G parts an advisor belongs
    codes: np.ndarray  # [G] int64
    parameters: np.ndarray  # [G]
    total: np.ndarray  # [A]
    one: np.ndarray  # [A]
    members: np.ndarray  # [n] int64
    members_weight: np.ndarray  # [n]


def choose(advice, active, keys, clock, epsilon, combination, actions):
    """The actions [N] for advice [N, n, A]; ties and exploration by each episode's own draws."""
    weight, part, codes, parameters, total, one, members, members_weight = combination
    for i in range(advice.shape[0]):
        word = draw(step_key(keys[i], clock[i, STEPS]), CHOICE)
        for a in range(advice.shape[2]):
            total[a] = 0.0
        for g in range(codes.shape[0]):
            count = 0
            for j in range(advice.shape[1]):
                if part[j] == g and (active.shape[1] == 0 or active[i, j] != 0):
                    members[count], members_weight[count] = j, weight[j]
                    count += 1
            combine(codes[g], advice[i], members, members_weight, count, parameters[g], one)
            for a in range(advice.shape[2]):
                total[a] += one[a]
        actions[i] = kernel.choose(total, epsilon, word)


class Chooser:
    """`choose` for a committee: compiled with the aggregations it uses."""

    def __init__(self, aggregator: Aggregator, weights: np.ndarray, actions: int) -> None:
        used = tuple(aggregation for aggregation, _ in aggregator.parts)
        _, known = switch.known_to((), used)
        self._call = specialise(choose, combine=switch.combine_switch(known))
        n = len(weights)
        self._combination = Combination(
            np.asarray(weights, float), aggregator.of,
            np.array([known.index(aggregation) for aggregation in used], np.int64),
            np.array([parameter for _, parameter in aggregator.parts], float),
            np.zeros(actions), np.zeros(actions), np.zeros(n, np.int64), np.zeros(n),
        )  # fmt: skip

    def __call__(
        self, advice: np.ndarray, active: np.ndarray, keys: np.ndarray, clock: np.ndarray, epsilon: float
    ) -> np.ndarray:
        """The actions [N] for advice [..., n, A] of N episodes."""
        actions = np.zeros(len(keys), np.int64)
        each = advice.reshape(-1, *advice.shape[-2:])
        self._call(each, active, keys, clock, epsilon, self._combination, actions)
        return actions


class Rings(NamedTuple):
    """The memory of N episodes, a ring of rows each."""

    observations: np.ndarray  # [N, size, F]
    action: np.ndarray  # [N, size] int32
    reward: np.ndarray  # [N, size, n] float32
    ended: np.ndarray  # [N, size, n] uint8
    active: np.ndarray  # [N, size, n] uint8, or [N, size, 0] where everybody is
    kind: np.ndarray  # [N, size] uint8
    clock: np.ndarray  # [N, 3] int64: HEAD, FILLED, STEPS
    tally: np.ndarray  # [N, 3]: SCORE of this episode, episodes DONE, SCORE_SUM of those


class StepBatch(NamedTuple):
    """What one step of every episode brought."""

    actions: np.ndarray  # [N]
    arrived: np.ndarray  # [N, F] what the step led to
    paid: np.ndarray  # [N, n]
    over: np.ndarray  # [N]
    ended: np.ndarray  # [N, n] whose own part is over
    dealt: np.ndarray  # [N] where the step only began an episode
    following: np.ndarray  # [N, F] what is acted on next: the same, or a new episode
    now_active: np.ndarray  # [N, n] in what the step led to
    then_active: np.ndarray  # [N, n] in what is acted on next
    raw: np.ndarray  # [N, .] the rewards that make up the score


@cached
def add(rings, keys, brought, waits, limit, sigma, score_weights):
    """One step of every episode into its ring; -1, or the advisor whose reward is not finite.

    Where a new episode `waits`, it begins with a step of its own, `dealt`, in which nothing was done.
    """
    observations, active, kind, clock, tally = rings.observations, rings.active, rings.kind, rings.clock, rings.tally
    paid, over, dealt, raw = brought.paid, brought.over, brought.dealt, brought.raw
    for i in range(clock.shape[0]):
        for j in range(paid.shape[1]):
            if not (dealt[i] or np.isfinite(paid[i, j])):
                return j  # before anything was written
    for i in range(clock.shape[0]):
        head = clock[i, HEAD]
        size = kind.shape[1]
        if dealt[i]:
            # the step only began an episode: the ring goes on behind the last one's end
            head = (head + 1) % size
        else:
            step = step_key(keys[i], clock[i, STEPS])
            rings.action[i, head] = brought.actions[i]
            kind[i, head] = LAST if over[i] else STEP
            for j in range(paid.shape[1]):
                r = paid[i, j]
                if limit > 0.0:
                    r = min(max(r, -limit), limit)
                if sigma > 0.0:
                    r += sigma * normal(draw(step, NOISE + j))
                rings.reward[i, head, j] = r
                rings.ended[i, head, j] = brought.ended[i, j]
            for j in range(raw.shape[1]):
                tally[i, SCORE] += score_weights[j] * raw[i, j]
            clock[i, STEPS] += 1
            head = (head + 1) % size
            if over[i]:
                kind[i, head] = END
                clock[i, FILLED] = min(clock[i, FILLED] + 1, size)
                for f in range(observations.shape[2]):
                    observations[i, head, f] = brought.arrived[i, f]
                for j in range(active.shape[2]):
                    active[i, head, j] = brought.now_active[i, j]
                tally[i, SCORE_SUM] += tally[i, SCORE]
                tally[i, SCORE] = 0.0
                tally[i, DONE] += 1.0
                if waits:
                    clock[i, HEAD] = head
                    continue
                head = (head + 1) % size
        kind[i, head] = NEWEST
        clock[i, FILLED] = min(clock[i, FILLED] + 1, size)
        for f in range(observations.shape[2]):
            observations[i, head, f] = brought.following[i, f]
        for j in range(active.shape[2]):
            active[i, head, j] = brought.then_active[i, j]
        clock[i, HEAD] = head
    return -1


@cached
def sample(rings, keys, first, gammas, steps, batch):
    """Fill batches [K, S, B, ...]: transitions drawn uniformly, up to `steps` of them summed for each sample."""
    observations, reward, active, kind, clock = rings.observations, rings.reward, rings.active, rings.kind, rings.clock
    updates, runs, samples = batch.action.shape
    episodes = clock.shape[0] // runs
    size = kind.shape[1]
    for k in range(updates):
        for s in range(runs):
            step = step_key(keys[s], first + k)
            for b in range(samples):
                attempt = 0
                while True:
                    word = draw(step, (b << 20) + attempt)
                    attempt += 1
                    i = s * episodes + below(word >> np.uint64(32), episodes)
                    back = below(word, clock[i, FILLED])
                    row = (clock[i, HEAD] - back) % size
                    if kind[i, row] == STEP or kind[i, row] == LAST:
                        break
                for f in range(observations.shape[2]):
                    batch.observation[k, s, b, f] = observations[i, row, f]
                batch.action[k, s, b] = rings.action[i, row]
                for j in range(reward.shape[2]):
                    batch.reward[k, s, b, j] = 0.0
                    batch.discount[k, s, b, j] = 1.0
                for j in range(active.shape[2]):
                    batch.active[k, s, b, j] = active[i, row, j]
                for _ in range(steps):
                    over = kind[i, row] == LAST
                    following = (row + 1) % size
                    for j in range(reward.shape[2]):
                        left = batch.discount[k, s, b, j]
                        batch.reward[k, s, b, j] += left * reward[i, row, j]
                        batch.discount[k, s, b, j] = 0.0 if rings.ended[i, row, j] else left * gammas[j]
                    for j in range(active.shape[2]):
                        if not active[i, following, j]:
                            batch.discount[k, s, b, j] = 0.0
                    row = following
                    if over or kind[i, row] == NEWEST:
                        break
                for f in range(observations.shape[2]):
                    batch.next_observation[k, s, b, f] = observations[i, row, f]
                for j in range(active.shape[2]):
                    batch.next_active[k, s, b, j] = active[i, row, j]


class Replay:
    """Rings for N episodes of S runs, N / S each; the arrays hold everything that a checkpoint needs."""

    def __init__(
        self, keys: np.ndarray, run_keys: np.ndarray, capacity: int, shape: tuple[int, ...], dtype: np.dtype, n: int,
        activity: bool,
    ) -> None:  # fmt: skip
        episodes, size, features = len(keys), max(capacity * len(run_keys) // len(keys), 2) + 1, int(np.prod(shape))
        self.keys, self.run_keys, self.shape = keys, run_keys, shape
        self.rings = Rings(
            np.zeros((episodes, size, features), dtype), np.zeros((episodes, size), np.int32),
            np.zeros((episodes, size, n), np.float32), np.zeros((episodes, size, n), np.uint8),
            np.zeros((episodes, size, n if activity else 0), np.uint8), np.full((episodes, size), END, np.uint8),
            np.zeros((episodes, 3), np.int64), np.zeros((episodes, 3)),
        )  # fmt: skip
        self.observations, self.action, self.reward, self.ended, self.active, self.kind, self.clock, self.tally = (
            self.rings
        )
        self.clock[:, HEAD] = size - 1  # so that the first row is filled first

    def stands_at(self, observation: np.ndarray) -> bool:
        """Whether the only episode stands at this observation [F], so that what was done in it goes on there."""
        head = self.clock[0, HEAD]
        return bool(self.kind[0, head] == NEWEST and np.array_equal(self.observations[0, head], observation))

    def begin(self, observations: np.ndarray, active: np.ndarray) -> None:
        """New episodes in every ring, whatever was going on: what was not finished counts as cut off."""
        for i in range(len(self.kind)):
            head, size = int(self.clock[i, HEAD]), self.kind.shape[1]
            before = (head - 1) % size
            if self.kind[i, head] == NEWEST and self.kind[i, before] == STEP:
                self.kind[i, head], self.kind[i, before] = END, LAST
            if self.kind[i, head] == END:
                head = (head + 1) % size
                self.clock[i, HEAD], self.clock[i, FILLED] = head, min(self.clock[i, FILLED] + 1, size)
            # else nothing was done in that episode yet: it takes no place, lest idle episodes push the steps out
            self.observations[i, head], self.kind[i, head] = observations[i], NEWEST
            if self.active.size:
                self.active[i, head] = active[i]
            self.tally[i, SCORE] = 0.0

    def batches(self, first: int, updates: int, samples: int, gammas: np.ndarray, steps: int) -> Batch:
        """Batches for the updates number `first` and on: the same ones whenever they are asked for."""
        front, n = (updates, len(self.run_keys), samples), self.reward.shape[2]
        features = self.observations.shape[2]
        batch = Batch(
            np.empty((*front, features), self.observations.dtype), np.empty(front, np.int32),
            np.empty((*front, n), np.float32), np.empty((*front, n), np.float32),
            np.empty((*front, features), self.observations.dtype),
            np.ones((*front, n), np.float32), np.ones((*front, n), np.float32),
        )  # fmt: skip
        sample(self.rings, self.run_keys, first, gammas, steps, batch)
        shape = (*front, *self.shape)
        return batch._replace(
            observation=batch.observation.reshape(shape), next_observation=batch.next_observation.reshape(shape)
        )

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def tensors(self) -> dict[str, np.ndarray]:
        """The rows in use; bytes that are all 0 or 1 are packed eight to one."""
        used = int(self.clock[:, FILLED].max())
        kept = {name: getattr(self, name)[:, :used] for name in _ROWS}
        seen = self.observations[:, :used]
        if seen.dtype == np.uint8 and seen.size and seen.max() <= 1:
            kept["packed"] = np.packbits(seen, axis=2)
        else:
            kept["observations"] = seen
        return {**kept, "replay_clock": self.clock, "replay_tally": self.tally}

    def restore(self, tensors: Arrays, actions: int, waits: bool) -> None:
        """Take up what `tensors` gave, for so many actions, once all of it is sound: `recall` checks nothing."""
        episodes, size, features = self.observations.shape
        clock = whole(tensors, "replay_clock", self.clock.shape)
        head, filled = clock[:, HEAD], clock[:, FILLED]
        used = int(filled.max())
        require(((head < size) & (filled >= 1) & (filled <= size)).all() and used <= size, "replay_clock")
        given = {name: array(tensors, name, (episodes, used, *getattr(self, name).shape[2:]), getattr(self, name).dtype)
                 for name in _ROWS}  # fmt: skip
        require(((given["action"] >= 0) & (given["action"] < actions)).all(), "action")
        require(all((given[name] <= most).all() for name, most in (("ended", 1), ("active", 1), ("kind", END))), "kind")
        if "packed" in tensors and self.observations.dtype == np.uint8:
            packed = array(tensors, "packed", (episodes, used, -(-features // 8)), np.uint8)
            given["observations"] = np.unpackbits(packed, axis=2, count=features)
            require(not np.unpackbits(packed[:, :, -1:], axis=2)[:, :, (features - 1) % 8 + 1 :].any(), "packed")
        else:
            given["observations"] = array(tensors, "observations", (episodes, used, features), self.observations.dtype)
        tally = array(tensors, "replay_tally", self.tally.shape, np.float64)
        require((tally[:, DONE] >= 0).all(), "replay_tally")
        for kind, entries in zip(given["kind"], clock.tolist(), strict=True):
            require(_sound(kind, *entries, size=size, waits=waits), "kind")
        for name, values in given.items():
            getattr(self, name)[:, :used] = values
        self.clock[...], self.tally[...] = clock, tally


def _sound(kind: np.ndarray, head: int, filled: int, steps: int, *, size: int, waits: bool) -> bool:
    """Whether a ring's rows follow each other as steps do: then every search in it ends."""
    if filled < size and head != filled - 1:
        return False
    rows = kind[(head - filled + 1 + np.arange(filled)) % size]  # from the oldest to the newest
    now, then = rows[:-1], rows[1:]
    follows = np.where(now == LAST, then == END, (now != NEWEST) & (then != END))
    played = int(((rows == STEP) | (rows == LAST)).sum())
    newest = rows[-1] == NEWEST or (waits and rows[-1] == END)
    return bool(follows.all() and newest and (played == steps if filled < size else played <= steps))
