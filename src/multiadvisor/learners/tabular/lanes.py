"""Many runs of one compiled world side by side, one to a lane: what a lane does, on whatever it runs.

A lane plays by the very same compiled loop as a run alone (`kernel.play`), on its own part of arrays that hold all
runs. What is random in a run follows from its seed and the number of the step alone, so that it makes no difference how
many runs share a launch, nor into how many launches a run is cut. `lane_batch` makes the arrays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from multiadvisor.core.compiling import inside
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.learners.tabular import records

PLAY: Any = None  # bound before compiling: a learner's own loop


class Lanes(NamedTuple):
    """N runs, each of which has one part of every array."""

    table: Any  # [N, rows, A]
    counts: Any  # [N, rows, A], or next to nothing where no planning counts
    policies: Any  # [N, rows, A], likewise
    offset: Any  # [N, n] int64, as the rest of the `Committee`
    stride: Any
    kind: Any
    part: Any
    weight: Any
    gamma: Any
    alpha: Any
    code: Any  # [N, G] int64, as the rest of the `AggregatorParts`
    ends: Any
    parameter: Any
    finite: Any  # [N] int64 1 where all that was learned is finite


class Play(NamedTuple):
    """What a stretch of play works on besides: one for learning, one for evaluations."""

    x: Any  # [N, size] int64 the worlds' states
    progress: Any  # [N] PROGRESS
    run: Any  # [N] RUN
    integers: Any  # [N, INTEGERS, n] int64 the slots
    reals: Any  # [N, REALS, n]
    room: Any  # [N, 3, A] preferences
    score: Any  # [N, episodes]: no room for any where it only learns
    length: Any  # [N, episodes] int64
    terminated: Any  # [N, episodes] int64
    returns: Any  # [N, max(episodes, 1), n]


@inside
def workspace_of(lanes, play, lane, room, progress):
    """What a loop works on in one lane."""
    return records.Workspace(
        records.Values(lanes.table[lane], lanes.counts[lane], lanes.policies[lane], ()),
        records.Committee(
            lanes.offset[lane], lanes.stride[lane], lanes.kind[lane], lanes.part[lane], lanes.weight[lane],
            lanes.gamma[lane], lanes.alpha[lane],
        ),
        records.AggregatorParts(
            lanes.code[lane], lanes.ends[lane], lanes.parameter[lane], room[0], room[1], room[2]
        ),
        records.unpack_run(play.run[lane : lane + 1]),
        progress,
    )  # fmt: skip


# ---- what a lane does: the lanes from `first` to `end`, which on a GPU is one for each thread ------------------------
def clear_lanes(constants, lanes, play, steps, first, end):
    """Nothing has been learned."""
    for lane in range(first, end):
        lanes.table[lane, :, :] = 0.0
        lanes.counts[lane, :, :] = 0.0


def start_lanes(constants, lanes, play, steps, first, end):
    """Nothing has been played."""
    for lane in range(first, end):
        progress = play.progress[lane]
        progress.step, progress.episodes, progress.episode_step, progress.fresh, progress.held = 0, 0, 0, 1, 0
        progress.action, progress.active, progress.episode_score, progress.score_sum = 0, 0, 0.0, 0.0
        play.x[lane, :] = 0
        play.returns[lane, :, :] = 0.0


def play_lanes(constants, lanes, play, steps, first, end):
    """Go on for so many steps, or until the episodes are full where there is room for some."""
    for lane in range(first, end):
        progress, wanted, room = play.progress[lane : lane + 1], play.score.shape[1], play.room[lane]
        done = progress[0].episodes if wanted > 0 else 0  # an evaluation is cut anywhere: it goes on behind these
        if wanted == 0 or done < wanted:
            work = workspace_of(lanes, play, lane, room, progress)
            episodes = EpisodeReturns(
                play.score[lane][done:], play.length[lane][done:], play.terminated[lane][done:],
                play.returns[lane][done:],
            )  # fmt: skip
            PLAY(constants, play.x[lane], work, play.integers[lane], play.reals[lane], steps, episodes)


def check_lanes(constants, lanes, play, steps, first, end):
    """Note whether all values, times the weights, are finite."""
    for lane in range(first, end):
        table, weight, reach = lanes.table[lane], lanes.weight[lane], 0.0
        for j in range(weight.shape[0]):
            reach += abs(weight[j])
        reach = max(1.0, reach)
        lanes.finite[lane] = 1
        for row in range(table.shape[0]):
            for a in range(table.shape[1]):
                if not math.isfinite(table[row, a] * reach):
                    lanes.finite[lane] = 0
