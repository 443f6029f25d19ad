"""The correction that the aggregator learns: what the sum of the advisors promises too much (`theory.correction`).

    D(x, a) = E[ sum_j w_j gamma_j V_j(x'_j) - gamma max_a' (Q_Sigma(x', a') - D(x', a')) ]

D is heard as one more advisor, of weight -1, whose local state is the whole state or what the task names in its place.
Its reward is what the others expect of the next state, its value there minus the best that all together can really
get. So everything but these two lines is the advisors' own: rows of the one table, the sum, ends, checkpoints.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import CORRECTION
from multiadvisor.core.compiling import compiled, inside
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import aggregate, larger, learn_advisors, look_ahead, update_terminal_advisors
from multiadvisor.learners.tabular.state_index import of_module, place_of
from multiadvisor.task import Advisor, Task, World, nothing


# ---- learning --------------------------------------------------------------------------------------------------------
# The correction is the last of the active advisors, and active as long as the episode lasts.
@inside
def update_terminal_corrected(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """`settle_advisors`; the correction's own reward has no noise, and at the end of an episode it is 0."""
    slots.reward[m - 1] = 0.0
    return update_terminal_advisors(table, slots, rows, m, committee, action, decay, run, first, terminated, voice)


@inside
def update_bootstrap_corrected(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """`advance_advisors`, with the reward and the value of the correction."""
    aggregate(combine, table, seen, slots, committee, voice)
    if run.learning and m > 0:
        look_ahead(expect, table, counts, slots, nexts, committee, m, now, run, voice, clock)
        promised = 0.0
        for i in range(m - 1):
            j = np.uintp(slots.advisors[i])
            promised += committee.weight[j] * committee.gamma[j] * slots.value[i]
        best = voice.total[0]
        for a in range(1, voice.total.shape[0]):
            best = larger(best, voice.total[a])
        slots.reward[m - 1], slots.value[m - 1] = promised, -best
        changed = learn_advisors(table, slots, rows, nexts, m, action, decay, run)
        slots.reward[m - 1] = 0.0  # a world is given zeros
        if changed or seen.size != m:
            aggregate(combine, table, seen, slots, committee, voice)


class CorrectionConstants(NamedTuple):
    """The constants of a world in which the correction looks at the whole state, or at features of it."""

    world: Any
    """The world's own."""
    radix: Any  # [size] int64: what each number of x counts, where nobody names features
    states: int
    n: int
    """The number of the correction among the advisors."""


# ---- the task with one advisor more ----------------------------------------------------------------------------------
def with_correction(task: Task) -> Task:
    """The task as its aggregator sees it: with the correction as the last advisor."""
    world = task.world
    if any(advisor.advises is not None for advisor in task.advisors) or (
        world is not None and (world.advises or world.joins)
    ):
        raise BadInput(
            f"some advisors of task {task.name!r} fall silent or join, and the correction is of a sum of the same "
            "advisors throughout: let everybody speak, or choose another aggregation"
        )
    given = task.correction or Advisor(CORRECTION)
    advisor = Advisor(
        CORRECTION, reward=nothing, state=given.state, states=given.states, weight=-1.0, alpha=given.alpha,
        planning="egocentric", group=CORRECTION,
    )  # fmt: skip
    if task.adapter is not None:
        advisors = (*task.advisors, advisor)
        return replace(task, advisors=advisors, adapter=Adapter(task.adapter.env, advisors, task.adapter.discretise))
    assert task.world is not None
    place = place_of(task, task.world, CORRECTION, given)
    advisor = replace(advisor, state=CORRECTION, states=place.states)
    constants = CorrectionConstants(task.world.constants, place.radix, place.states, task.n)
    return replace(
        task, advisors=(*task.advisors, advisor), world=_looking(task.world, constants, place.number), board=None
    )


def _looking(world: World, constants: CorrectionConstants, place: Any) -> World:
    """The world with one advisor more, which looks at `place`."""
    functions = _compiled(world.reset, world.begin, world.local_states, world.step, place)
    going = None if world.going is None else lambda constants, x: world.going(constants.world, x)  # type: ignore[misc]
    # what it answers besides is about the task itself, which is asked
    besides: dict[str, Any] = {"outcomes": None, "listing": None, "bounds": None}
    return replace(world, constants=constants, going=going, **besides, **functions)


@lru_cache(maxsize=64)
def _compiled(reset: Any, begin: Any, local_states: Any, step: Any, place: Any) -> dict[str, Any]:
    @compiled
    def reset_all(constants, x, key):
        reset(constants.world, x, key)

    @compiled
    def begin_all(constants, x, advisors):
        m = begin(constants.world, x, advisors)
        advisors[m] = constants.n
        return m + 1

    @compiled
    def local_states_all(constants, x, advisors, m, local):
        others = m - 1 if m > 0 else 0
        local_states(constants.world, x, advisors, others, local)
        if m > 0:
            at = place(constants, x)
            if at < 0 or at >= constants.states:
                raise BadInput("the correction looks at a state that is out of range: correct `sizes`, or its function")
            local[others] = at

    @compiled
    def step_all(constants, x, action, key, advisors, m, reward, ended):
        return step(constants.world, x, action, key, advisors, m - 1, reward, ended)

    return {
        "reset": of_module(reset_all, reset),
        "begin": of_module(begin_all, begin),
        "local_states": of_module(local_states_all, local_states, place),
        "step": of_module(step_all, step),
    }
