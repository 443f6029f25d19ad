"""Why this action and not that one? Who wanted what, the fewest advisors that decide, and one plain sentence.

Pure functions on advice [m, A], weights [m] and how these m advisors are combined; `explain` applies them to any
agent that has `task`, `settings`, `advice(state)` and `act(state)`.

>>> import multiadvisor as mad
>>> advice, weights = [[1.0, 0.0], [0.2, 0.4]], [1.0, 1.0]
>>> mad.explain.explain_advice(["near", "far"], advice, weights, ["left", "right"]).sentence
'chooses left rather than right: near, 1.00, outweighs far, -0.20'
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.exact_tables import greedy_stuck
from multiadvisor.analysis.theory.learned_values import Surroundings, surroundings
from multiadvisor.core.aggregations import GPI, SELECTIONS, weighted_sum
from multiadvisor.core.aggregator import Aggregator, Team, aggregator_of, learned_beside
from multiadvisor.errors import BadInput, unknown
from multiadvisor.explain.ablation import Lead, PlanLead, contributions, followed, lead, rounding, summed, without_each
from multiadvisor.explain.sentences import COMPASS, Choice, figure, term
from multiadvisor.explain.shortest_reason import msx
from multiadvisor.task import Advisor

_NAMED = 3  # so many without whom it would act otherwise are printed
_SHOWN = 8  # so many differences are printed


# ---- numbers ---------------------------------------------------------------------------------------------------------
def best(preferences: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """[..., A] bool: the greedy actions, all of those that are equal up to the tolerance."""
    return preferences >= preferences.max(axis=-1, keepdims=True) - tolerance


def influence(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator | None = None) -> np.ndarray:
    """[m] bool: without whom the greedy actions would be others.

    >>> influence(np.array([[1.0, 0.0], [0.0, 3.0], [0.5, 0.0]]), np.ones(3))
    array([False,  True, False])
    """
    aggregator = aggregator or summed(len(advice))
    tolerance = rounding(advice, weights, aggregator)
    now = best(aggregator.prefer(advice, weights), tolerance)
    return (best(without_each(advice, weights, aggregator), tolerance) != now).any(axis=1)


def disagreement(advice: np.ndarray, weights: np.ndarray) -> float:
    """Of a sum: what each could have at best, summed up, less the most that all can have together; never below 0.

    >>> disagreement(np.array([[1.0, 0.0], [0.0, 3.0]]), np.ones(2))
    1.0
    """
    wished = weights[:, None] * advice
    return max(float(wished.max(axis=1).sum() - weighted_sum(advice, weights).max()), 0.0)


@dataclass(frozen=True)
class Leader:
    """The strongest wish, and the strongest of those who would rather have another action."""

    advisor: str
    action: str
    value: float
    next: str | None
    """None where nobody would act otherwise; so are the three below."""
    next_action: str | None
    next_value: float | None
    by: float | None
    """The lead over the next."""

    def __str__(self) -> str:
        first = f"the strongest wish: {self.advisor} {figure(self.value)} for {self.action}"
        if self.next_value is None or self.by is None:
            return f"{first}, and no other advisor would act differently"
        beaten = f"{self.next} {figure(self.next_value)} for {self.next_action}"
        return f"{first}, {figure(self.by, '+')} ahead of {beaten}"


@dataclass(frozen=True)
class Plan:
    """The plan that the action follows, of those of one group; and the best of those that would rather do otherwise."""

    advisor: str
    value: float
    """What it is worth to all of its group."""
    worth: dict[str, float]
    """And to each, times its weight, the most first."""
    next: str | None
    """None where no plan would; so are the three below."""
    next_action: str | None
    next_value: float | None
    by: float | None
    """The lead over the next; below 0 where others than the group decided."""

    def __str__(self) -> str:
        shares = [f"{name} {figure(value)}" for name, value in self.worth.items()]
        more = f" and {len(shares) - _NAMED} more" if len(shares) > _NAMED else ""
        first = f"follows the plan of {self.advisor}, worth {figure(self.value)}: {', '.join(shares[:_NAMED])}{more}"
        if self.next_value is None or self.by is None:
            return f"{first}; no plan would act differently"
        beaten = f"that of {self.next}, {figure(self.next_value)} for {self.next_action}"
        return f"{first}; {figure(self.by, '+')} ahead of {beaten}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why the aggregator prefers one action to another in one state.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.9, seed=0).learn(2_000, progress=False)
    >>> print(agent.explain([0], against="a_0").sentence)
    chooses a_1 rather than a_0: goal 1, 0.14, and nobody objects
    >>> why = explain_advice(["near", "far"], [[1.0, 0.0], [0.2, 0.4]], [1.0, 1.0], ["left", "right"])
    >>> why.preferences, why.differences == why.table("left", "right"), why.as_dict()["msx_plus"]
    ({'left': 1.2, 'right': 0.4}, True, ['near'])
    """

    task: str
    action: str
    against: str | None
    """The action it is compared with, by default the best other one; None where there is no other."""
    greedy: tuple[str, ...]
    """The best actions: several where they tie."""
    advantage: float
    """The preference for the action less that for the other."""
    tie: bool
    """Whether the two are equal, up to rounding."""
    msx_plus: tuple[str, ...]
    """The fewest advisors whose gains outweigh all losses, strongest first; empty unless the action is better, and
    under any aggregation but the sum."""
    msx_minus: tuple[str, ...]
    """The fewest whose losses show that no one of them can be left out."""
    influence: dict[str, tuple[str, ...]]
    """The advisors without whom other actions would be greedy, the strongest first, and which these are."""
    disagreement: float | None
    """What all advisors together lose by having to act as one; None where they are not summed."""
    attractor: bool | None
    """Whether this state is an attractor by the agent's own values; None where nobody knows, or planning is not
    egocentric."""
    stable: bool | None
    margin: float | None
    stuck: bool | None
    """Whether the greedy walk from here never earns and never ends; ghosts are taken to stay where they are.

    Of a Gymnasium environment it is known where it shows its transition table, and of a step of a trace from the
    episode: what came to an end was not stuck, and what went on in the same few places until the episode was cut off
    was."""
    aggregation: str
    """How the advisors are heard."""
    leader: Leader | None
    """Where the strongest wish decides: whose it is, and whom it beats."""
    plans: tuple[Plan, ...]
    """Where plans are compared: whose is followed, a plan for each group."""
    sentence: str
    names: tuple[str, ...] = field(repr=False)
    """The active advisors [m]."""
    actions: tuple[str, ...] = field(repr=False)
    advice: np.ndarray = field(repr=False)
    """[m, A]"""
    weights: np.ndarray = field(repr=False)
    """[m]"""
    aggregator: Aggregator = field(repr=False)
    """How these m are heard."""
    first: int = field(default=0, repr=False)
    """The number of the first action."""
    caveat: str = ""
    """How far to trust it, where networks gave the advice; nothing of tables."""

    @property
    def preferences(self) -> dict[str, float]:
        """The aggregated preference for each action; Q_Sigma for a sum."""
        return dict(zip(self.actions, self.aggregator.prefer(self.advice, self.weights).tolist(), strict=True))

    @property
    def differences(self) -> dict[str, float]:
        """What the action's lead over the other loses without each advisor, by name, largest magnitude first.

        For a sum this is RDX, what each adds to the action over the other; the differences add up to the advantage.
        """
        return self.table(self.action, self.against)

    def table(self, action: str | int, against: str | int | None) -> dict[str, float]:
        """The differences between any two actions."""
        if against is None:
            return {}
        pair = (self.actions.index(action_named(self.actions, name, self.first)) for name in (action, against))
        found = contributions(self.advice, self.weights, self.aggregator, *pair)
        return {self.names[j]: float(found[j]) for j in np.argsort(-np.abs(found), kind="stable")}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "task": self.task, "action": self.action, "against": self.against, "greedy": list(self.greedy),
            "preferences": self.preferences, "advantage": self.advantage, "tie": self.tie,
            "differences": self.differences, "msx_plus": list(self.msx_plus), "msx_minus": list(self.msx_minus),
            "influence": {name: list(actions) for name, actions in self.influence.items()},
            "disagreement": self.disagreement, "attractor": self.attractor, "stable": self.stable,
            "margin": self.margin, "stuck": self.stuck, "aggregation": self.aggregation,
            "leader": None if self.leader is None else dataclasses.asdict(self.leader),
            "plans": [dataclasses.asdict(plan) for plan in self.plans], "sentence": self.sentence,
            "caveat": self.caveat,
        }  # fmt: skip

    def __str__(self) -> str:
        marks = {name: "*" if name in self.greedy else "" for name in self.actions}
        lines = [self.sentence, *filter(None, [self.caveat]), ""]
        lines.append("  ".join(f"{a} {figure(q)}{marks[a]}" for a, q in self.preferences.items()))
        if self.leader is not None:
            lines.append(str(self.leader))
        lines += [str(plan) for plan in self.plans]
        if self.against is not None and self.names:
            lines += self._listed()
        changed = [f"{name} ({' or '.join(actions)})" for name, actions in self.influence.items()]
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        lines.append(f"it would act differently without: {', '.join(changed[:_NAMED]) or 'nobody'}{more}")
        if self.disagreement is not None:
            lines.append(f"disagreement: {figure(self.disagreement)}")
        if self.attractor is not None:
            kind = "a stable attractor" if self.stable else "an attractor, but not a stable one"
            margin = "" if self.margin is None else f" (staying against leaving: {figure(self.margin, '+')})"
            lines.append(f"this state is {kind if self.attractor else 'no attractor'}{margin}")
        if self.stuck is not None:
            lines.append(f"as things stand, greedy play from here {'never earns' if self.stuck else 'makes progress'}")
        return "\n".join(lines)

    def _listed(self) -> list[str]:
        """The strongest differences, a line each."""
        pair, rows = f"{self.action} over {self.against}", list(self.differences.items())
        if self.aggregator.plain:
            lines = [f"what speaks for {pair}, {figure(self.advantage, '+')} in all:"]
        else:
            rows = [(name, value) for name, value in rows if value != 0]
            would = "would lose without each:" if rows else "would lose nothing without any one of them"
            lines = [f"{pair}, {figure(self.advantage, '+')} by {self.aggregation}, {would}"]
        for name, value in rows[:_SHOWN]:
            note = "  MSX+" if name in self.msx_plus else "  MSX-" if name in self.msx_minus else ""
            lines.append(f"  {name:24} {figure(value, '+')}{note}")
        if len(rows) > _SHOWN:
            more = f"{len(rows) - _SHOWN} more"
            rest = figure(sum(value for _, value in rows[_SHOWN:]), "+") if self.aggregator.plain else ""
            lines.append(f"  {more:24} {rest}".rstrip())
        return lines


# ---- putting it together ---------------------------------------------------------------------------------------------
def action_named(actions: Sequence[str], action: str | int, first: int = 0) -> str:
    """An action by name, by compass point, or by number, counted from `first` as the environment does."""
    if action in actions:
        return str(action)
    if isinstance(action, str):
        for name in actions:
            if action.lower() in (name.lower(), COMPASS.get(name, name).lower()):
                return name
    if re.fullmatch(r"-?[0-9]{1,18}", str(action)) and 0 <= int(action) - first < len(actions):
        return actions[int(action) - first]
    raise unknown("action", action, actions)


def explain_advice(
    names: Sequence[str], advice: Any, weights: Any, actions: Sequence[str], *, action: str | int | None = None,
    against: str | int | None = None, groups: Sequence[str] | None = None, task: str = "",
    first: int = 0, here: Surroundings | None = None, aggregation: str = "sum", aggregator: Aggregator | None = None,
) -> Explanation:  # fmt: skip
    """Explain from advice [m, A] and weights [m] alone, as a trace keeps them; `first` is the first action's number.

    `aggregation` is how they are combined, by name or group; if some of a task's advisors are silent now, `aggregator`
    says how these m are combined.

    >>> advice = np.array([[2.0, 0.5], [-0.5, 0.0]])
    >>> explain_advice(["speed", "fuel"], advice, np.ones(2), ["fast", "slow"]).sentence
    'chooses fast rather than slow: speed, 1.50, outweighs fuel, -0.50'
    >>> explain_advice(["speed", "fuel"], advice, np.ones(2), ["fast", "slow"], aggregation="majority").sentence
    'tie between fast and slow: 1 of 2 votes each'
    """
    names, actions = list(names), list(actions)
    groups = list(groups or [""] * len(names))
    advice, weights = np.asarray(advice).reshape(len(names), len(actions)), np.asarray(weights, float)
    if aggregator is None:
        advisors = tuple(Advisor(name, group=group) for name, group in zip(names, groups, strict=True))
        aggregator = aggregator_of(Team(task, advisors), aggregation)
    if not (np.isfinite(advice).all() and np.isfinite(weights).all()):
        raise BadInput(f"the advice in this state of {task!r} is not finite: there is nothing to explain")
    tolerance, advice = rounding(advice, weights, aggregator), advice.astype(float)
    preferences = aggregator.prefer(advice, weights)
    if not np.isfinite(preferences).all():
        raise BadInput(f"aggregation {aggregation!r} gives what is not finite in this state of {task!r}: correct it")
    greedy = best(preferences, tolerance)
    chosen = int(preferences.argmax()) if action is None else actions.index(action_named(actions, action, first))
    other = _other(actions, preferences, chosen, against, first)
    none = np.zeros(len(names))
    difference = none if other is None else contributions(advice, weights, aggregator, chosen, other)
    advantage = 0.0 if other is None else float(preferences[chosen] - preferences[other])
    tie = other is not None and abs(advantage) <= tolerance
    deciding = msx(difference[:0] if tie or not aggregator.plain else difference)
    silent = best(without_each(advice, weights, aggregator), tolerance)  # [m, A]
    order = np.argsort(-np.abs(difference), kind="stable")
    changes = order[(silent != greedy).any(axis=1)[order]].tolist()
    ahead, plans = lead(advice, weights, aggregator, tolerance), followed(weights, aggregator, chosen, tolerance)
    choice = Choice(
        tuple(term(name, actions) for name in names), tuple(groups), tuple(actions), advice, weights, aggregator,
        aggregation, None if here is None else here.leaves, chosen, other, against is not None, preferences, difference,
        ahead, plans, tolerance,
    )  # fmt: skip
    return Explanation(
        task=task, action=actions[chosen], against=None if other is None else actions[other],
        greedy=tuple(actions[a] for a in np.flatnonzero(greedy).tolist()), advantage=advantage, tie=tie,
        msx_plus=tuple(names[j] for j in deciding.plus.tolist()),
        msx_minus=tuple(names[j] for j in deciding.minus.tolist()),
        influence={names[j]: tuple(actions[a] for a in np.flatnonzero(silent[j]).tolist()) for j in changes},
        disagreement=disagreement(advice, weights) if aggregator.plain else None,
        attractor=None if here is None else here.attractor, stable=None if here is None else here.stable,
        margin=None if here is None else here.margin, stuck=None if here is None else here.stuck,
        aggregation=aggregation, leader=None if ahead is None else _leader(names, actions, ahead),
        plans=tuple(_plan(names, actions, plan) for plan in plans),
        sentence=choice.sentence(), names=tuple(names), actions=tuple(actions), advice=advice, weights=weights,
        aggregator=aggregator, first=first,
    )  # fmt: skip


def _other(
    actions: Sequence[str], preferences: np.ndarray, chosen: int, against: str | int | None, first: int
) -> int | None:
    """The action to compare with: the one that was asked about, or the next best; None where there is none."""
    if against is not None:
        other = list(actions).index(action_named(actions, against, first))
        if other == chosen:
            raise BadInput(f"action {actions[chosen]!r} is compared with itself: name another one")
        return other
    return max((a for a in range(len(actions)) if a != chosen), key=lambda a: preferences[a], default=None)


def _leader(names: Sequence[str], actions: Sequence[str], ahead: Lead) -> Leader:
    """The leader by name."""
    if ahead.next is None or ahead.next_action is None or ahead.next_value is None:
        return Leader(names[ahead.advisor], actions[ahead.action], ahead.value, None, None, None, None)
    return Leader(
        names[ahead.advisor], actions[ahead.action], ahead.value,
        names[ahead.next], actions[ahead.next_action], ahead.next_value, ahead.value - ahead.next_value,
    )  # fmt: skip


def _plan(names: Sequence[str], actions: Sequence[str], plan: PlanLead) -> Plan:
    """A plan by name."""
    order = np.argsort(-np.abs(plan.worth), kind="stable")
    worth = {names[plan.members[k]]: float(plan.worth[k]) for k in order.tolist()}
    if plan.next is None or plan.next_action is None or plan.next_value is None:
        return Plan(plan.planner.name, plan.value, worth, None, None, None, None)
    by = plan.value - plan.next_value
    return Plan(plan.planner.name, plan.value, worth, plan.next.name, actions[plan.next_action], plan.next_value, by)


def _numbered(task: Any, action: Any) -> Any:
    """An action by name or number; several choices at once, as the environment has them, by the number of all."""
    several = None if task.adapter is None else task.adapter.several
    if isinstance(action, np.integer):
        return int(action)
    return action if several is None or isinstance(action, str | int | None) else several.number(action)


def explain(agent: Any, state: Any, action: str | int | None = None, against: str | int | None = None) -> Explanation:
    """Why the agent takes this action, by default the greedy one, rather than another, by default the next best.

    >>> import multiadvisor as mad
    >>> task = mad.make("three-fruits")
    >>> agent = mad.theory.exact_agent(task, "egocentric", 0.6)
    >>> print(explain(agent, task.initial_state(), against="North").sentence)
    goes South, into the wall, rather than North: fruits at (2, 0) and (2, 4), 0.29, outweigh fruit at (0, 2), -0.24
    """
    names, advice = agent.advice(state)
    # whoever points at goals speaks louder or softer from step to step
    weights = None if agent.task.goals is None else agent._learner.consult(state).weights
    action = _numbered(agent.task, agent.act(state) if action is None else action)
    against = _numbered(agent.task, against)
    here = surroundings(agent, state)
    found = explain_advised(agent, names, advice, action, against, here, state, weights)
    return dataclasses.replace(found, stuck=greedy_stuck(agent, state)) if here is None else found


def explain_advised(
    agent: Any, names: Sequence[str], advice: Any, action: str | int, against: str | int | None,
    here: Surroundings | None, state: Any = None, weights: np.ndarray | None = None,
) -> Explanation:  # fmt: skip
    """Explain advice [m, A] that the agent's advisors of these names gave, in this state where it is known.

    `weights` [m]: how loudly they were heard; by default each with its own.
    """
    task, aggregation = agent.task, getattr(agent.settings, "aggregation", "sum")
    advisors = {advisor.name: (j, advisor) for j, advisor in enumerate(getattr(agent, "advisors", task.advisors))}
    spoken = [advisors[name] for name in names]
    if GPI in learned_beside(aggregation):
        if state is None:
            raise BadInput(
                f"the trace of task {task.name!r} keeps what advisors said, and not what their plans are worth: "
                "explain an observation with agent.explain"
            )
        aggregator = agent.aggregator_at(state)
    else:
        aggregator = agent.aggregator if hasattr(agent, "aggregator") else aggregator_of(task, aggregation)
        aggregator = aggregator._replace(of=aggregator.of[[j for j, _ in spoken]])
    found = explain_advice(
        names,
        advice,
        np.array([advisor.weight for _, advisor in spoken]) if weights is None else weights,
        task.actions,
        action=action,
        against=against,
        groups=[advisor.group for _, advisor in spoken],
        task=task.name,
        first=task.first_action,
        here=here,
        aggregation=aggregation,
        aggregator=aggregator,
    )
    if aggregation in SELECTIONS and names:  # the others are silent
        found = dataclasses.replace(found, sentence=f"{names[0]} is in control: {found.sentence}")
    return dataclasses.replace(found, caveat=getattr(agent.settings, "caveat", ""))
