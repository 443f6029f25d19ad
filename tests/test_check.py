"""check_task: honest tasks pass, and every planted defect is named."""

import itertools
import json
from dataclasses import replace
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from multiadvisor import Advisor, Task, World, check_task
from multiadvisor.analysis.checks.task_check import DEFECTS
from multiadvisor.core.compiling import compiled
from multiadvisor.core.rng import WORLD, below, draw, uniform
from multiadvisor.envs.registry import ENVIRONMENTS as EMULATED
from multiadvisor.envs.registry import TASKS
from multiadvisor.task import Outcome
from refusal import refused

GOAL = 5
PLANTED_STEPS = 800


class Corridor(gymnasium.Env):
    """Six cells: a fruit worth 2 on the left, a goal worth 1 on the right; a step slips with probability 0.2."""

    high = GOAL

    def __init__(self):
        self.observation_space = spaces.Box(0, self.high, (2,), np.int64)
        self.action_space = spaces.Discrete(2)
        self.fruit = 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = self.first_cell()
        self.put_fruit()
        return self.observe(), {}

    def step(self, action):
        if self.chance() >= 0.2:
            self.cell = min(max(self.cell + (1 if action == 1 else -1), 0), GOAL)
        goal, fruit = float(self.cell == GOAL), 2.0 * (self.cell == 0 and self.fruit)
        if self.cell == 0:
            self.fruit = 0
        return self.observe(), self.pay(goal, fruit), *self.flags(self.cell == GOAL), {}

    def first_cell(self):
        return int(self.np_random.integers(1, 4))

    def put_fruit(self):
        self.fruit = 1

    def chance(self):
        return self.np_random.random()

    def observe(self):
        return np.array([self.cell, self.fruit])

    def pay(self, goal, fruit):
        return goal + fruit

    def flags(self, terminated):
        return terminated, False


def cell_of(observation):
    return int(observation[0])


def fruit_is_left(observation):
    return bool(observation[1] == 1)


def goal_reward(t):
    return float(t.next_observation[0] == GOAL)


def fruit_reward(t):
    return 2.0 if fruit_was_eaten(t) else 0.0


def fruit_was_eaten(t):
    return bool(t.observation[1] == 1 and t.next_observation[1] == 0)


FRUIT = Advisor("fruit", reward=fruit_reward, active=fruit_is_left, ended=fruit_was_eaten)
IDLE = Advisor("idle", reward=lambda t: 0.0)
EXTRA = "idle"  # the advisor of a defect that comes with a third advisor


def corridor(env=Corridor, *extra, goal=None, **fruit):
    advisors = [
        replace(Advisor("goal", goal_reward, cell_of, GOAL + 1), **(goal or {})),
        replace(FRUIT, **fruit),
        *extra,
    ]
    return Task.from_gymnasium(env(), advisors, name="corridor")


def variant(**methods):
    """The corridor with other methods."""
    return type("Variant", (Corridor,), methods)


def vector(goal=None, **methods):
    """The corridor with a vector reward."""
    env = variant(reward_space=spaces.Box(0.0, 2.0, (2,)), **{"pay": lambda self, *parts: np.array(parts), **methods})
    return corridor(env, goal=goal or {"reward": 0}, reward=1)


def raising(*_, **__):
    raise RuntimeError("planted")


def alternating(*values):
    """A function that says something else every time."""
    cycle = itertools.cycle(values)
    return lambda _: next(cycle)


def own_chance():
    generator = np.random.default_rng()
    return lambda self: generator.random()


def overwritten(self):
    if not hasattr(self, "array"):
        self.array = np.zeros(2, np.int64)
    self.array[:] = self.cell, self.fruit
    return self.array


def float_observation(self):
    return np.array([self.cell, self.fruit], float)


def spoiling(function, part="", place=0, value=0):
    """The same answers, and a change of what it is given."""

    def spoilt(given):
        answer = function(given)
        (getattr(given, part) if part else given)[place] = value
        return answer

    return spoilt


def ended_by_chance():
    """Asked where the advisor is inactive, so that its answers have no other consequence."""
    chance = alternating(False, True)
    return lambda t: t.observation[0] == 2 and chance(t)


class Shy:
    """Fails at everything that may be asked of it."""

    __slots__ = ("__dict__",)
    __repr__ = __eq__ = __array__ = __bool__ = raising

    def __hash__(self):
        raise RuntimeError("planted")


def first_cell_unseeded():
    chance = own_chance()
    return lambda self: 1 + int(3 * chance(self))


def forgetful_reset(self, seed=None, options=None):
    return Corridor.reset(self, seed=np.random.default_rng().integers(1 << 31).item() if seed is None else seed)


# What is planted, in whose advisor, and how; several ways to plant one defect are told apart by the text after a space.
ENVIRONMENTS = {
    "reset-not-seeded": (None, lambda: corridor(variant(first_cell=first_cell_unseeded()))),
    "unseeded-randomness": (None, lambda: corridor(variant(chance=own_chance()))),
    "reset-forgets-seed": (None, lambda: corridor(variant(reset=forgetful_reset))),
    "leaks-between-episodes": (None, lambda: corridor(variant(put_fruit=lambda self: None))),
    "never-ends": (None, lambda: corridor(variant(flags=lambda self, terminated: (False, False)))),
    "reset-raises": (None, lambda: corridor(variant(put_fruit=raising))),
    "reset-raises no seed": (None, lambda: corridor(variant(reset=lambda self: (self.observe(), {})))),
    "reset-protocol": (None, lambda: corridor(variant(reset=lambda self, seed=None: np.zeros(2, np.int64)))),
    "step-raises": (None, lambda: corridor(variant(chance=raising))),
    "step-protocol": (None, lambda: corridor(variant(step=lambda self, action: (self.observe(), 0.0, False, {})))),
    "flag-not-boolean": (None, lambda: corridor(variant(flags=lambda self, terminated: (terminated or None, False)))),
    "flag-not-boolean array": (None, lambda: corridor(variant(flags=lambda self, over: (over, np.zeros(2, bool))))),
    "observation-outside-space": (None, lambda: corridor(variant(high=GOAL - 1))),
    "observation-outside-space type": (None, lambda: corridor(variant(observe=float_observation))),
    "reused-observation": (None, lambda: corridor(variant(observe=overwritten))),
    "vector-reward-shape": (None, lambda: vector(pay=lambda self, *parts: np.array([*parts, 0.0]))),
    "vector-reward-shape scalar": (None, lambda: vector(pay=lambda self, goal, fruit: goal + fruit)),
    "vector-reward-shape undeclared": (None, lambda: corridor(variant(pay=lambda self, *parts: np.array(parts)))),
    "nan-reward": ("goal", lambda: corridor(goal={"reward": lambda t: np.nan})),
    "nan-reward own": (None, lambda: corridor(variant(pay=lambda self, goal, fruit: np.nan))),
    "nan-reward vector": ("fruit", lambda: vector(pay=lambda self, goal, fruit: np.array([goal, np.nan]))),
    "infinite-reward": ("fruit", lambda: corridor(reward=lambda t: fruit_reward(t) * 1e308 * 10)),
    "infinite-reward whole": ("goal", lambda: corridor(goal={"reward": lambda t: 10**400})),
    "reward-not-a-number": ("goal", lambda: corridor(goal={"reward": lambda t: np.array([1.0])})),
    "reward-not-a-number none": ("goal", lambda: corridor(goal={"reward": lambda t: None})),
    "reward-not-a-number own": (None, lambda: corridor(variant(pay=lambda self, goal, fruit: str(goal + fruit)))),
    "reward-not-repeatable": (EXTRA, lambda: corridor(Corridor, replace(IDLE, reward=alternating(0, 1e-9)))),
    "reward-raises": ("goal", lambda: corridor(goal={"reward": raising})),
    "rewards-do-not-sum": (None, lambda: corridor(weight=0.5)),
    "rewards-do-not-sum twice": (None, lambda: corridor(Corridor, Advisor("all", state=cell_of))),
    "inactive-advisor-paid": (
        EXTRA,
        lambda: corridor(
            Corridor, replace(IDLE, reward=lambda t: t.observation[0] < 3, active=lambda o: bool(o[0] >= 3), weight=0.0)
        ),
    ),
    "ended-advisor-paid": ("fruit", lambda: corridor(reward=lambda t: fruit_reward(t) - 0.1 * (t.observation[1] == 0))),
    "state-raises": ("fruit", lambda: corridor(state=raising)),
    "local-state-out-of-range": ("goal", lambda: corridor(goal={"states": GOAL})),
    "local-state-out-of-range below": ("goal", lambda: corridor(goal={"state": lambda o: int(o[0]) - 1})),
    "local-state-not-whole": ("goal", lambda: corridor(goal={"state": lambda o: o[0] / 2})),
    "local-state-not-whole text": ("goal", lambda: corridor(goal={"state": lambda o: str(o[0])})),
    "local-state-not-hashable": ("fruit", lambda: corridor(state=lambda o: [int(o[0])])),
    "local-state-not-hashable within": ("fruit", lambda: corridor(state=lambda o: (int(o[0]), [0]))),
    "local-state-not-repeatable": ("fruit", lambda: corridor(state=alternating(0, 1))),
    "local-state-not-repeatable nan": ("fruit", lambda: corridor(state=lambda o: float("nan"))),
    "local-state-not-saveable": ("fruit", lambda: corridor(state=lambda o: frozenset([int(o[0])]))),
    "never-active": (EXTRA, lambda: corridor(Corridor, replace(IDLE, active=lambda o: False))),
    "activity-not-boolean": ("fruit", lambda: corridor(active=lambda o: "yes" if fruit_is_left(o) else "")),
    "activity-not-repeatable": (EXTRA, lambda: corridor(Corridor, replace(IDLE, active=alternating(True, False)))),
    "activity-raises": (EXTRA, lambda: corridor(Corridor, replace(IDLE, active=raising))),
    "end-not-boolean": ("fruit", lambda: corridor(ended=lambda t: "eaten" if fruit_was_eaten(t) else None)),
    "end-not-repeatable": (
        EXTRA, lambda: corridor(Corridor, replace(IDLE, active=lambda o: bool(o[0] == 1), ended=ended_by_chance()))
    ),
    "end-raises": ("fruit", lambda: corridor(ended=raising)),
    "ended-advisor-stays-active": ("fruit", lambda: corridor(active=None)),
    "mutated-observation": ("goal", lambda: corridor(goal={"state": spoiling(cell_of)})),
    "mutated-observation activity": ("fruit", lambda: corridor(active=spoiling(fruit_is_left, place=1, value=1))),
    "mutated-transition": ("goal", lambda: corridor(goal={"reward": spoiling(goal_reward, "next_observation")})),
    "mutated-transition end": ("fruit", lambda: corridor(ended=spoiling(fruit_was_eaten, "observation", 1))),
    "mutated-transition vector": ("goal", lambda: vector(goal={"reward": spoiling(goal_reward, "reward", slice(2))})),
}  # fmt: skip


# ---- compiled worlds: one corridor, whose constants say which defect it has ------------------------------------------
class Plan(NamedTuple):
    mode: int
    track: np.ndarray  # [1]


MODES = (
    "honest", "reset-not-seeded", "unseeded-randomness", "leaks-between-episodes", "never-ends", "reset-raises",
    "step-raises", "activity-raises", "state-raises", "flag-not-boolean", "nan-reward", "infinite-reward",
    "local-state-out-of-range", "local-state-out-of-range unwritten", "local-state-not-repeatable", "never-active",
    "activity-not-repeatable", "activity-changes-silently joins", "activity-changes-silently leaves",
    "advisors-not-rising", "advisors-not-rising count", "end-not-boolean", "ended-advisor-stays-active",
    "mutated-state", "mutated-constants", "mutated-advisors", "writes-past-active", "index-out-of-bounds",
)  # fmt: skip
(
    HONEST, RESET_RANDOM, STEP_RANDOM, LEAK, NEVER_ENDS, RESET_RAISES, STEP_RAISES, BEGIN_RAISES, LOCAL_RAISES, FLAG,
    NAN, INFINITE, RANGE, UNWRITTEN, LOCAL_RANDOM, ABSENT, BEGIN_RANDOM, JOINS, LEAVES, FALLING, TOO_MANY, END, STAYS,
    STATE, CONSTANTS, ADVISORS, PAST, BOUNDS,
) = range(len(MODES))  # fmt: skip


@compiled
def hidden(count):
    return np.random.randint(0, count)  # noqa: NPY002  (the unseeded generator is the defect)


@compiled
def reset(world, x, key):
    """x: the cell, whether the fruit is eaten, whether the bell advisor takes part."""
    if world.mode == RESET_RAISES:
        raise ValueError("planted")
    x[0] = 1 + (hidden(3) if world.mode == RESET_RANDOM else below(draw(key, WORLD), 3))
    if world.mode != LEAK:
        x[1] = 0
    x[2] = 0 if world.mode == ABSENT else below(draw(key, WORLD + 1), 2)


@compiled
def begin(world, x, advisors):
    if world.mode == BEGIN_RAISES:
        raise ValueError("planted")
    if world.mode == TOO_MANY:
        return 4
    m = 1
    advisors[0] = 0
    if x[1] == 0 or world.mode == STAYS or (world.mode == JOINS and x[0] == 4):
        advisors[m] = 1
        m += 1
    here = hidden(2) if world.mode == BEGIN_RANDOM else x[2]
    if here == 1 and not (world.mode == LEAVES and x[0] == 3):
        advisors[m] = 2
        m += 1
    if world.mode == FALLING and m > 1:
        advisors[0], advisors[1] = advisors[1], advisors[0]
    return m


@compiled
def local_states(world, x, advisors, m, local):
    if world.mode == LOCAL_RAISES:
        raise ValueError("planted")
    for i in range(m):
        local[i] = x[0] + (2 if world.mode == RANGE else 0)
        if world.mode == LOCAL_RANDOM:
            local[i] = hidden(6)
        if world.mode == UNWRITTEN:
            break
    if world.mode == STATE and x[0] == 2:
        x[0] = 3


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    if world.mode == STEP_RAISES:
        raise ValueError("planted")
    chance = hidden(10) / 10 if world.mode == STEP_RANDOM else uniform(draw(key, WORLD))
    if chance >= 0.2:
        x[0] = min(max(x[0] + 2 * action - 1, 0), 5)
    if x[0] == 0 and x[1] == 0:
        x[1] = 1
        for i in range(m):
            if advisors[i] == 1:
                reward[i] = 2.0
                ended[i] = 2 if world.mode == END else 1
    if x[0] == 5:
        reward[0] = np.nan if world.mode == NAN else np.inf if world.mode == INFINITE else 1.0
    if world.mode == CONSTANTS:
        world.track[0] += 1
    if world.mode == ADVISORS:
        advisors[0] = 2
    if world.mode == PAST and x[1] == 1 and m < 3:
        reward[m] = 2.0
    if world.mode == BOUNDS:
        world.track[x[0] + 1] = 0
    if world.mode == FLAG and x[0] == 5:
        return 2
    return 1 if x[0] == 5 and world.mode != NEVER_ENDS else 0


def plain_begin(world, x, advisors):
    for j in range(3):
        advisors[j] = j
    return 3


def making_begin(world, x, advisors):
    advisors[:] = np.arange(3)
    return 3


def brief_step(world, x, action, key, advisors, m, reward, ended):
    x[0] = min(x[0] + 1, 5)
    return x[0] == 5


def silent_step(world, x, action, key, advisors, m, reward, ended):
    x[0] = min(x[0] + 1, 5)


def outcomes(world, x, action, slips=0.2):
    """What `step` does, said once more."""
    for chance, cell in ((slips, x[0]), (1.0 - slips, min(max(x[0] + 2 * action - 1, 0), 5))):
        found = cell == 0 and x[1] == 0
        pay = {1: 2.0 * found, 0: float(cell == 5)}
        yield Outcome(chance, (cell, 1 if found else x[1], x[2]), pay, cell == 5)


def never_slips(world, x, action):
    return outcomes(world, x, action, 0.0)


def half_of_them(world, x, action):
    return [outcome._replace(probability=outcome.probability / 2) for outcome in outcomes(world, x, action)]


def no_outcomes(world, x, action):
    raise ValueError("planted")


@compiled
def one_local_state(world, x, j):
    return x[0]


@compiled
def other_local_state(world, x, j):
    return x[0] - (1 if x[0] == 3 else 0)


def world_task(mode=HONEST, *, limit=None, endless=False, states=6, begin=begin, step=step, **answers):
    world = World(Plan(mode, np.zeros(1, np.int64)), 3, reset, begin, local_states, step, **answers)
    advisors = tuple(Advisor(name, state="cell", states=states) for name in ("goal", "fruit", "bell"))
    return Task("corridor", ("left", "right"), advisors, world=world, limit=limit, endless=endless)


# What else the plant brings about: chance in `begin` is seen as advisors that come and go in mid-episode, too.
ALSO = {"activity-not-repeatable": {"activity-changes-silently", "unseeded-randomness"}}

WORLDS = {name: (lambda mode=mode: world_task(mode)) for mode, name in enumerate(MODES) if mode != HONEST} | {
    "endless-task-ends": lambda: world_task(endless=True),
    "states-not-given": lambda: world_task(states=None),
    "local-states-differ": lambda: world_task(local_state=other_local_state),
    "reward-out-of-bounds": lambda: world_task(bounds=np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])),
    "outcome-not-listed": lambda: world_task(outcomes=never_slips),
    "outcome-not-listed sum": lambda: world_task(outcomes=half_of_them),
    "outcome-not-listed raises": lambda: world_task(outcomes=no_outcomes),
    "not-compiled": lambda: world_task(begin=plain_begin, step=compiled(brief_step)),
    "not-compiled array": lambda: world_task(begin=compiled(making_begin), step=compiled(brief_step)),
    "flag-not-boolean none": lambda: world_task(begin=compiled(plain_begin), step=compiled(silent_step), limit=20),
}
ADVISOR_OF = {"nan-reward": "goal", "infinite-reward": "goal", "never-active": "bell", "end-not-boolean": "fruit",
              "reward-out-of-bounds": "fruit"}  # fmt: skip


HONEST_ANSWERS = {
    "outcomes": outcomes, "bounds": np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 0.0]]), "local_state": one_local_state,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [corridor, vector, lambda: world_task(**HONEST_ANSWERS), lambda: world_task(NEVER_ENDS, limit=20),
     lambda: world_task(NEVER_ENDS, endless=True)],
)  # fmt: skip
def test_what_is_honest_has_no_defect(build):
    report = check_task(build())
    assert report.ok, str(report)
    assert (
        str(report).splitlines()[0] == f"no defect found in task 'corridor' (2000 steps in {report.episodes} episodes)"
    )


@pytest.mark.parametrize("plant", ENVIRONMENTS)
def test_a_defect_planted_in_an_environment_is_named(plant):
    advisor, build = ENVIRONMENTS[plant]
    report = check_task(build(), steps=PLANTED_STEPS)
    defect = plant.split()[0]
    assert report.defects == (defect,), str(report)
    assert report.findings[0].advisor == advisor
    assert not report.ok


@pytest.mark.slow
@pytest.mark.parametrize("plant", WORLDS)
def test_a_defect_planted_in_a_world_is_named(plant):
    task = WORLDS[plant]()
    report = check_task(task, steps=PLANTED_STEPS)
    defect = plant.split()[0]
    assert defect in report.defects, str(report)
    assert set(report.defects) - {defect} <= ALSO.get(plant, set()), str(report)
    if defect in ADVISOR_OF:
        assert [finding.advisor for finding in report.findings] == [ADVISOR_OF[defect]]
    assert task.world.constants.track[0] == 0


def test_all_defects_are_planted_in_92_ways():
    """One more needs an aggregation that does not fit the rewards: tests/commands/test_committee_flags.py plants it."""
    planted = [*ENVIRONMENTS, *WORLDS]
    assert {name.split()[0] for name in planted} == set(DEFECTS) - {"fear-under-a-maximum", "stuck"}
    assert (len(DEFECTS), len(planted)) == (52, 92)


QUIET = {
    **{name: ({}, {}) for name in TASKS if name not in EMULATED},
    **{f"pac-boy {k}": (options, {}) for k, options in enumerate([{"rules": "hra"}, {"ghosts": False}, {"limit": 20}])},
    "fruit-grid rare": ({"width": 20, "height": 20, "fruits": 3}, {"episodes": 2, "steps": 200}),
    **{name: ({}, {"seed": 1}) for name in ("FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "Blackjack-v1")},
    **{name: ({}, {"seed": 1}) for name in ("deep-sea-treasure-v0", "resource-gathering-v0", "four-room-v0")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUIET)
def test_no_false_alarm(name):
    options, how = QUIET[name]
    report = check_task(mad.make(name.split()[0], **options), **how)
    assert report.ok, str(report)


@pytest.mark.parametrize("before", [0, 203], ids=["a new agent", "one in the middle of an episode"])
def test_a_task_can_be_used_after_its_check_as_if_nothing_had_happened(before):
    tables = []
    for checked in (True, False):
        task = corridor()
        agent = mad.MultiAdvisor(task, seed=1).learn(before)
        if checked:
            check_task(task, steps=100)
        agent.learn(300)
        tables.append([agent.values(name).tobytes() for name in ("goal", "fruit")])
    assert tables[0] == tables[1]


@pytest.mark.parametrize("what", ["state", "reward", "active", "ended", "observe", "pay"])
def test_no_answer_makes_the_check_fail(what):
    def shy(*_):
        return Shy()

    task = corridor(variant(**{what: shy})) if what in ("observe", "pay") else corridor(**{what: shy})
    assert not check_task(task, steps=100).ok


@pytest.mark.slow
def test_the_same_check_gives_the_same_report():
    assert check_task(corridor(weight=0.5), seed=3) == check_task(corridor(weight=0.5), seed=3)


def test_a_defect_is_named_once_for_each_advisor_that_has_it():
    report = check_task(corridor(goal={"reward": raising}, reward=raising))
    assert report.defects == ("reward-raises",)
    assert [one.advisor for one in report.findings] == ["goal", "fruit"]
    assert "RuntimeError: planted" in str(report)


def test_a_report_is_data():
    report = check_task(corridor(weight=0.5), episodes=3, steps=60)
    finding = {"defect": "rewards-do-not-sum", "advisor": None, "message": report.findings[0].message}
    assert json.loads(json.dumps(report.as_dict())) == {
        "ok": False, "task": "corridor", "findings": [finding], "episodes": report.episodes, "steps": 60, "remarks": []
    }  # fmt: skip
    assert str(report).splitlines()[0] == f"1 found in task 'corridor' (60 steps in {report.episodes} episodes)"


@pytest.mark.parametrize("size", [{"episodes": 0}, {"steps": 0}])
def test_a_check_of_nothing_is_refused(size):
    refused("is 0: give an integer of at least 1", check_task, corridor(), **size)
