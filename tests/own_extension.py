"""A user's own file: a planning, an aggregation, a world with its task, a learner, a study, each in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import multiadvisor as mad
from multiadvisor.core.aggregator import aggregator_of
from multiadvisor.core.plannings import one_hot
from multiadvisor.core.rng import CHOICE, TRAINING, draw_python, stream_key
from multiadvisor.core.validation import array, whole
from multiadvisor.envs.slots import slot_of
from multiadvisor.envs.stepping import LONGEST_EPISODE
from multiadvisor.learners.finite_choice import FiniteChoice
from multiadvisor.learners.protocol import Advice
from multiadvisor.learners.registry import LearnerKind, LearnerSettings, named, register_learner
from multiadvisor.runs.jobs import Job
from multiadvisor.settings import finite_number, option
from multiadvisor.studies.study import Evidence, Figure, Plan, Study, register_study


# ---- a planning ------------------------------------------------------------------------------------------------------
def hopeful_value(q, ahead):
    best, total = q[0], 0.0
    for action in range(q.shape[0]):
        best = max(best, q[action])
        total += q[action]
    return 0.5 * best + 0.5 * total / q.shape[0]


@mad.register_planning("hopeful", compiled=hopeful_value)
def hopeful(advice, ahead):
    """Every other time its own best action, else any."""
    return 0.5 * one_hot(advice.argmax(axis=1), advice) + 0.5 / advice.shape[1]


# ---- an aggregation --------------------------------------------------------------------------------------------------
def fill_loudest(table, rows, weights, m, parameter, preferences):
    """What is said most loudly for or against, to a power that keeps its sign."""
    for action in range(table.shape[1]):
        preferences[action] = 0.0
        for i in range(m):
            q = weights[i] * table[rows[i], action]
            if abs(q) > abs(preferences[action]):
                preferences[action] = q
        sign = 1.0 if preferences[action] > 0.0 else -1.0
        preferences[action] = sign * abs(preferences[action]) ** parameter


@mad.register_aggregation("loudest", compiled=fill_loudest, takes="power", parameter=1.0, least=0.5)
def loudest(advice, weights, parameter):
    """The advice of largest magnitude, wish or fear."""
    heard = weights[..., None] * advice
    which = abs(heard).argmax(axis=-2)
    picked = (heard * (which[..., None, :] == np.arange(advice.shape[-2])[:, None])).sum(axis=-2)
    return (1.0 - 2.0 * (picked <= 0)) * abs(picked) ** parameter


# ---- a compiled world ------------------------------------------------------------------------------------------------
class Corridor(NamedTuple):
    """What never changes during a run."""

    length: int


# The state x is [the place, is the lamp at the left lit, the one at the right].
@mad.compiled
def reset(world, x, key):
    x[0], x[1], x[2] = world.length // 2, 0, 0


@mad.compiled
def begin(world, x, advisors):
    m = 0
    for lamp in range(2):
        if x[1 + lamp] == 0:
            advisors[m] = lamp
            m += 1
    return m


@mad.compiled
def local_states(world, x, advisors, m, local):
    for i in range(m):
        local[i] = x[0]


@mad.compiled
def step(world, x, action, key, advisors, m, reward, ended):
    x[0] = min(max(x[0] + (1 if action == 1 else -1), 0), world.length - 1)
    for lamp in range(2):
        if x[1 + lamp] == 0 and x[0] == lamp * (world.length - 1):
            x[1 + lamp] = 1
            slot = slot_of(advisors, m, lamp)
            reward[slot], ended[slot] = 1.0, 1
    return x[1] + x[2] == 2


@mad.register_task("two-lamps")
def two_lamps(length: int = 5) -> mad.Task:
    """A corridor with a lamp at each end, both of which have to be lit.

    length: the number of places.
    """
    if not 3 <= length <= 100:
        raise mad.BadInput(f"length is {length}: choose 3 to 100")
    advisors = tuple(mad.Advisor(name, state="place", states=length, group="lamps") for name in ("left", "right"))
    world = mad.World(Corridor(length), 3, reset, begin, local_states, step, sizes=(length, 2, 2))
    return mad.Task("two-lamps", ("west", "east"), advisors, world, limit=60)


# ---- a learner -------------------------------------------------------------------------------------------------------
LEARNING = 1 << 31  # the number of no evaluation


@dataclass(frozen=True)
class MonteCarlo(LearnerSettings):
    """Its settings, which are its flags too, and what others have to know of it."""

    name: str = named("monte-carlo")
    untried: float = option(0.0, "what is expected of an action before it is tried", searched=True)

    def __post_init__(self):
        self._put("untried", finite_number("untried", self.untried))

    @property
    def ahead(self):
        """Episodes are always finished."""
        return LONGEST_EPISODE

    def own_draws(self, task):
        """Every episode can be played by itself."""
        return True

    def check(self, settings):
        """Refuse what it cannot do."""
        for name, only in (("planning", "empathic"), ("noise", 0.0)):
            if getattr(settings, name) != only:
                raise mad.BadInput(f"learner 'monte-carlo' knows no {name} but {only}: leave it out")


class MonteCarloLearner(FiniteChoice):
    """Expects of an action in a state what episodes brought from there on, on average."""

    steps, episodes, score_sum = 0, 0, 0.0

    def __init__(self, task, settings):
        self.task, self.settings, self.aggregator = task, settings, aggregator_of(task, settings.aggregation)
        self.known = {}  # by state, [n + 1, A]: each advisor's returns together, and their number

    def entry(self, state):
        found = self.known.get(tuple(np.ravel(state).tolist()))
        return np.zeros((self.task.n + 1, len(self.task.actions))) if found is None else found

    def consult(self, state):
        *total, count = self.entry(state)
        advice = np.where(count > 0, total / np.maximum(count, 1), self.settings.learner_settings.untried)
        return Advice(self.task.names, advice, self.task.weights, np.arange(self.task.n))

    def run(self, steps):
        until = self.steps + steps
        while self.steps < until:
            self.learn(list(self.play(self.episodes, LEARNING, self.epsilon_now())))

    def learn(self, episode):
        brought = np.zeros(self.task.n)
        for step in reversed(episode):
            after = np.where(step.ended, 0.0, self.task.gammas(self.settings.gamma) * brought)
            brought, entry = step.reward + after, self.entry(step.state)
            entry[:, step.action] += [*brought, 1]
            self.known[tuple(np.ravel(step.state).tolist())] = entry
        self.steps, self.episodes = self.steps + len(episode), self.episodes + 1
        self.score_sum += sum(step.gain for step in episode)

    def explore(self, state):
        draw = draw_python(int(stream_key(self.settings.seed, TRAINING)), self.steps, CHOICE)
        return self.decide(state, draw, self.epsilon_now(), values=False).action

    def observe(self, transition, following):
        raise mad.BadInput("learner 'monte-carlo' learns from whole episodes, not from transitions: call learn")

    def tensors(self):
        return {
            "progress": np.array([self.steps, self.episodes]), "score": np.array([self.score_sum]),
            "states": np.array(list(self.known), float), "entries": np.array(list(self.known.values()), float),
        }  # fmt: skip

    def restore(self, tensors):
        self.steps, self.episodes = whole(tensors, "progress", (2,)).tolist()
        self.score_sum = float(array(tensors, "score", (1,), np.float64)[0])
        self.known = {tuple(state.tolist()): np.array(entry) for state, entry in
                      zip(tensors["states"], tensors["entries"], strict=True)}  # fmt: skip


MONTE_CARLO = register_learner(
    LearnerKind(
        "monte-carlo", "averages of what episodes brought", MonteCarlo,
        lambda task, settings, saved: MonteCarloLearner(task, settings), plans=False,
    )
)  # fmt: skip


# ---- a study --------------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """The own planning and the own aggregation on the own task."""
    settings = {"planning": "hopeful", "aggregation": "lamps=loudest:2", "gamma": 0.9}
    schedule = {"steps": 500 * plan.epochs, "eval_every": 500, "eval_episodes": 5}
    return [
        Job("train", {"task": "two-lamps", "settings": {**settings, "seed": seed}, "schedule": schedule})
        for seed in plan.each
    ]


def figures(evidence: Evidence) -> list[Figure]:
    """How often the last episodes were finished."""
    done = [evidence.result(job)["evaluations"][-1]["terminated"] for job in jobs(evidence.plan)]
    return [Figure("lamps", "Two lamps", f"lamps lit in {np.mean(done):.0%} of the episodes")]


register_study(Study("lamps", "Lamps", 100, jobs, figures))
