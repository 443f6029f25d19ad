"""The memory against a plain list of everything that ever happened."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from multiadvisor.core.aggregator import Team, aggregator_of
from multiadvisor.core.rng import TRAINING, stream_key
from multiadvisor.learners.dqn.replay import DONE, FILLED, SCORE_SUM, STEPS, Chooser, Replay, StepBatch, add
from multiadvisor.task import Advisor

GAMMAS = np.array([0.5, 0.9])
N = 2  # advisors


class Story:
    """A Replay and the list model beside it: every row of every episode, in order, with a number of its own."""

    def __init__(self, runs=1, episodes=1, capacity=50, activity=True, waits=False):
        self.runs, self.episodes, self.waits, self.activity = runs, episodes, waits, activity
        count = runs * episodes
        keys = np.array([stream_key(9, TRAINING, i) for i in range(count)], np.uint64)
        run_keys = np.array([stream_key(s, TRAINING, 1 << 32) for s in range(runs)], np.uint64)
        self.replay = Replay(keys, run_keys, capacity, (2,), np.dtype(np.float32), N, activity)
        self.size = self.replay.kind.shape[1]
        self.number = 0
        self.rows = [[] for _ in range(count)]  # dicts
        self.waiting = [False] * count
        actives = self.actives(None)
        self.replay.begin(
            np.array([self.new(i, "newest", actives[i]) for i in range(count)], np.float32), self.shown(actives)
        )

    def actives(self, active):
        return np.ones((len(self.rows), N), np.uint8) if active is None else np.array(active, np.uint8)

    def shown(self, actives):
        return actives if self.activity else np.zeros((len(self.rows), 0), np.uint8)

    def new(self, i, kind, active):
        self.number += 1
        active = active if self.activity else np.ones(N, np.uint8)
        self.rows[i].append({"number": self.number, "kind": kind, "active": list(active)})
        return [self.number, i]

    def step(self, actions, rewards, over, ended, now=None, then=None, limit=0.0):
        """One step of all episodes; those that wait for a new episode are dealt one."""
        count = len(self.rows)
        dealt = np.array(self.waiting)
        now, then = self.actives(now), self.actives(then)
        over = np.array(over) & ~dealt
        arrived, following = np.zeros((count, 2), np.float32), np.zeros((count, 2), np.float32)
        for i in range(count):
            if dealt[i]:
                arrived[i] = following[i] = self.new(i, "newest", then[i])
                self.waiting[i] = False
                continue
            done = self.rows[i][-1]
            done.update(kind="last" if over[i] else "step", action=int(actions[i]), reward=list(rewards[i]),
                        ended=list(ended[i]))  # fmt: skip
            if over[i]:
                arrived[i] = following[i] = self.new(i, "end", now[i])
                self.waiting[i] = self.waits
                if not self.waits:
                    following[i] = self.new(i, "newest", then[i])
            else:
                then[i] = now[i]
                arrived[i] = following[i] = self.new(i, "newest", now[i])
        replay = self.replay
        paid = np.array(rewards, float)
        brought = StepBatch(
            np.array(actions, np.int64), arrived, paid, over, np.array(ended, np.uint8), dealt, following,
            self.shown(now), self.shown(then), paid,
        )  # fmt: skip
        return add(replay.rings, replay.keys, brought, self.waits, limit, 0.0, np.array([1.0, 2.0]))

    def again(self):
        """All episodes begin anew."""
        count = len(self.rows)
        for rows in self.rows:
            if rows[-1]["kind"] == "newest" and len(rows) > 1 and rows[-2]["kind"] == "step":
                rows[-2]["kind"], rows[-1]["kind"] = "last", "end"
            elif rows[-1]["kind"] == "newest":
                rows.pop()
        self.waiting = [False] * count
        actives = self.actives(None)
        self.replay.begin(
            np.array([self.new(i, "newest", actives[i]) for i in range(count)], np.float32), self.shown(actives)
        )

    def kept(self, i):
        """The steps that the ring still holds: (place in the list, row)."""
        first = max(len(self.rows[i]) - self.size, 0)
        return [(k, row) for k, row in enumerate(self.rows[i]) if k >= first and row["kind"] in ("step", "last")]

    def expected(self, i, k, steps):
        """The sum of rewards, the discounts and the row it ends in, from the list."""
        path = [self.rows[i][k]]
        while len(path) < steps and path[-1]["kind"] == "step" and self.rows[i][k + len(path)]["kind"] != "newest":
            path.append(self.rows[i][k + len(path)])
        arrived = self.rows[i][k + len(path)]
        totals, discounts = [], []
        for j in range(N):
            total, left = 0.0, 1.0
            for step, row in enumerate(path):
                total += left * row["reward"][j]
                goes_on = not row["ended"][j] and self.rows[i][k + step + 1]["active"][j]
                left = left * GAMMAS[j] if goes_on else 0.0
            totals.append(total)
            discounts.append(left)
        return totals, discounts, arrived

    def check(self, steps, samples=24, first=0):
        batch = self.replay.batches(first, 2, samples, GAMMAS, steps)
        for k, s, b in np.ndindex(2, self.runs, samples):
            number, i = batch.observation[k, s, b].astype(int).tolist()
            assert i // self.episodes == s
            place = next(p for p, row in self.kept(i) if row["number"] == number)
            row = self.rows[i][place]
            totals, discounts, arrived = self.expected(i, place, steps)
            assert batch.action[k, s, b] == row["action"]
            np.testing.assert_allclose(batch.reward[k, s, b], totals, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(batch.discount[k, s, b], discounts, rtol=1e-6)
            assert batch.next_observation[k, s, b, 0] == arrived["number"]
            assert batch.active[k, s, b].tolist() == row["active"]
            assert batch.next_active[k, s, b].tolist() == arrived["active"]
        return batch


bits = st.lists(st.booleans(), min_size=N, max_size=N)


@pytest.mark.slow
@hypothesis_settings(max_examples=60)
@given(data=st.data(), runs=st.integers(1, 2), episodes=st.integers(1, 3), capacity=st.integers(2, 9),
       activity=st.booleans(), waits=st.booleans(), steps=st.integers(1, 4))  # fmt: skip
def test_batches_are_what_the_list_says(data, runs, episodes, capacity, activity, waits, steps):
    """Ends of episodes and of single advisors, cuts, inactivity, rings that wrap around, episodes begun anew by
    force."""
    story = Story(runs, episodes, capacity * episodes, activity, waits)
    count = runs * episodes

    def each(strategy):
        return data.draw(st.lists(strategy, min_size=count, max_size=count))

    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.integers(0, 9)) == 0:
            story.again()
            continue
        rewards = np.array(each(st.lists(st.integers(-4, 4), min_size=N, max_size=N))) / 4
        over = each(st.integers(0, 3).map(lambda value: value == 0))
        assert story.step(each(st.integers(0, 5)), rewards, over, each(bits), each(bits), each(bits)) == -1
        for i, rows in enumerate(story.rows):
            assert story.replay.clock[i, FILLED] == min(len(rows), story.size)
    if all(any(story.kept(i) for i in range(s * episodes, (s + 1) * episodes)) for s in range(runs)):
        story.check(steps)


def plain_step(story, over=False, ended=(0, 0)):
    count = len(story.rows)
    story.step([0] * count, [[1, 10]] * count, [over] * count, [list(ended)] * count)


def test_ends_stop_the_future_and_cuts_do_not():
    """Three steps and the end, summed over two steps: by hand."""
    for ended, discounts in (((1, 1), [0.0, 0.0]), ((0, 0), [0.25, 0.81]), ((1, 0), [0.0, 0.81])):
        story = Story(activity=False)
        plain_step(story)
        plain_step(story)
        plain_step(story, over=True, ended=ended)
        batch = story.check(2, samples=40)
        found = {}
        for b in range(40):
            found[int(batch.observation[0, 0, b, 0])] = (
                batch.reward[0, 0, b].tolist(), batch.discount[0, 0, b].astype(float).round(6).tolist(),
                int(batch.next_observation[0, 0, b, 0]),
            )  # fmt: skip
        last = [0.5 * (1 - ended[0]), 0.9 * (1 - ended[1])]
        both = [1.5, 19.0]
        assert found == {1: (both, [0.25, 0.81], 3), 2: (both, discounts, 4), 3: ([1.0, 10.0], last, 4)}


def test_samples_are_uniform():
    """Over the steps in memory of all episodes of a run; the draws of two updates differ, and can be made again."""
    story = Story(episodes=2, capacity=40)
    for k in range(30):
        plain_step(story, over=k % 7 == 6)
    steps = len(story.kept(0))
    assert steps == len(story.kept(1)) < 20
    batch = story.replay.batches(5, 40, 100, GAMMAS, 1)
    numbers = batch.observation[..., 0].astype(int).ravel()
    _, counts = np.unique(numbers, return_counts=True)
    assert len(counts) == 2 * steps
    mean = 4000 / len(counts)
    assert ((counts - mean) ** 2 / mean).sum() < len(counts) + 6 * np.sqrt(2 * len(counts))
    again = story.replay.batches(6, 1, 100, GAMMAS, 1)
    assert again.observation[0].tobytes() == batch.observation[1].tobytes()
    assert batch.observation[0].tobytes() != batch.observation[1].tobytes()


def test_idle_episodes_do_not_push_the_steps_out():
    """Evaluated again and again, or taken up again and again, the memory stays what it was."""
    for waits in (False, True):
        story = Story(capacity=4, waits=waits)
        plain_step(story)
        plain_step(story, over=True)
        for _ in range(20):
            story.again()
        assert len(story.kept(0)) == 2
        story.check(1)


def test_scores_and_clocks():
    story = Story(waits=True)
    for over in (False, True, False, False, True):  # the third only deals
        plain_step(story, over)
    assert story.replay.clock[0, STEPS] == 4
    assert story.replay.tally[0, [DONE, SCORE_SUM]].tolist() == [2.0, 4 * 21.0]  # weights 1 and 2
    story = Story()
    story.step([0], [[3, -7]], [False], [[0, 0]], limit=1.0)
    plain_step(story, over=True)
    assert story.replay.reward[0, 0].tolist() == [1.0, -1.0]  # clipped where it is learned from
    assert story.replay.tally[0, SCORE_SUM] == 3 - 14 + 21  # and nowhere else


def test_a_reward_that_is_not_finite_leaves_everything_as_it_was():
    story = Story(episodes=2)
    plain_step(story)
    before = {name: array.copy() for name, array in story.replay.tensors().items()}
    assert story.step([1, 1], [[1, 2], [3, np.nan]], [False, False], [[0, 0], [0, 0]]) == 1
    for name, array in story.replay.tensors().items():
        assert array.tobytes() == before[name].tobytes(), name


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("high", [2, 200])
@pytest.mark.parametrize("steps", [3, 30])
def test_a_checkpoint_holds_it_all(dtype, high, steps):
    """Nine features, no whole number of bytes; packed where they are bits; a ring not full and one that has wrapped."""
    keys = np.array([stream_key(0, TRAINING, i) for i in range(2)], np.uint64)

    def fresh():
        return Replay(keys, keys[:1], 20, (9,), np.dtype(dtype), N, True)

    replay, generator = fresh(), np.random.default_rng(0)

    def some():
        return generator.integers(0, high, (2, 9)).astype(dtype)

    replay.begin(some(), np.ones((2, N), np.uint8))
    for _ in range(steps):
        over = generator.random(2) < 0.3
        everybody = np.ones((2, N), np.uint8)
        brought = StepBatch(
            generator.integers(4, size=2), some(), generator.normal(size=(2, N)), over,
            generator.integers(0, 2, (2, N)).astype(np.uint8), np.zeros(2, bool), some(), everybody, everybody,
            np.zeros((2, N)),
        )  # fmt: skip
        add(replay.rings, keys, brought, False, 0.0, 0.5, np.ones(N))
    kept = replay.tensors()
    assert ("packed" in kept) == (dtype is np.uint8 and high == 2)
    other = fresh()
    other.restore(kept, 4, waits=False)
    assert {name: array.tobytes() for name, array in other.tensors().items()} == {
        name: array.tobytes() for name, array in kept.items()
    }
    for first, second in zip(replay.batches(3, 2, 16, GAMMAS, 2), other.batches(3, 2, 16, GAMMAS, 2), strict=True):
        assert first.tobytes() == second.tobytes()


# ---- acting ----------------------------------------------------------------------------------------------------------
def chosen(advice, weights, active, epsilon=0.0, step=0):
    keys = np.array([stream_key(7, TRAINING, i) for i in range(len(advice))], np.uint64)
    clock = np.zeros((len(advice), 3), np.int64)
    clock[:, STEPS] = step
    advisors = tuple(Advisor(f"j{j}") for j in range(len(weights)))
    choose = Chooser(aggregator_of(Team("task", advisors), "sum"), np.array(weights), advice.shape[2])
    return choose(advice.astype(np.float32), np.array(active, np.uint8), keys, clock, epsilon)


def test_the_weighted_sum_of_those_who_have_a_say_decides():
    generator = np.random.default_rng(0)
    advice, weights = generator.normal(size=(200, 3, 4)), [1.0, -2.0, 0.5]
    active = generator.integers(0, 2, (200, 3))
    everybody = np.einsum("ija,j->ia", advice, weights).argmax(axis=1)
    assert chosen(advice, weights, np.zeros((0, 0))).tolist() == everybody.tolist()
    some = np.einsum("ija,j,ij->ia", advice, weights, active)
    told = active.any(axis=1)
    assert chosen(advice, weights, active)[told].tolist() == some.argmax(axis=1)[told].tolist()
    assert (some.argmax(axis=1) != everybody).any()


def test_ties_and_exploration_are_even_and_each_episodes_own():
    for epsilon, advice in ((0.0, np.zeros((4000, 1, 4))), (1.0, np.tile([9.0, 0, 0, 0], (4000, 1, 1)))):
        first, second = (chosen(advice, [1.0], np.zeros((0, 0)), epsilon, step) for step in (0, 1))
        assert np.bincount(first, minlength=4) == pytest.approx(1000, abs=120)
        assert 0.2 < (first == second).mean() < 0.3
    greedy = (chosen(np.tile([9.0, 0, 0, 0], (4000, 1, 1)), [1.0], np.zeros((0, 0)), 0.4) == 0).mean()
    assert greedy == pytest.approx(0.7, abs=0.04)
