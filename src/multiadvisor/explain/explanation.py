"""Why this action and not that one? Who wanted what, the fewest advisors that decide, and one plain sentence.

An `Explanation` holds what was said, advice [m, A] and weights [m], how these m advisors are combined, and two of the
actions; everything else follows from it and is computed when it is first asked for. Finite and continuous actions
alike: of continuous ones the action taken is compared with one other, and what is expected of the actor's entropy
stands beside the advisors.

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
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.analysis.theory.learned_values import NOTHING_KNOWN, Surroundings, surroundings
from multiadvisor.core.aggregator import Aggregator, Team, aggregator_of
from multiadvisor.errors import BadInput, unknown
from multiadvisor.explain.ablation import best, contributions, disagreement, rounding, without_each
from multiadvisor.explain.decisions import decider_of
from multiadvisor.explain.leads import FollowedPlan, Lead, followed, lead
from multiadvisor.explain.msx import MSX, msx
from multiadvisor.explain.sentences import COMPASS, action_text, figure, sentence_of
from multiadvisor.learners.kinds import own_settings
from multiadvisor.learners.protocol import push_shares
from multiadvisor.settings import CAVEAT
from multiadvisor.task import Advisor

if TYPE_CHECKING:
    from multiadvisor.analysis.episodes import Episodes, RecordedStep

_NAMED = 3  # this many advisors without whom it would act differently are printed
_SHOWN = 8  # this many differences are printed


@dataclass(frozen=True, eq=False)
class Push:
    """Which advisors push a continuous action, and how far the critics agree."""

    shares: dict[str, float]
    """Each advisor's share: the length of its slope at the action, of all lengths together."""
    left: float | None = None
    """How much of all pushing is left once opposite pushes have cancelled, 0 to 1; None of a recorded step."""
    control: float | None = None
    """The value of the action by the critic that the actor follows; None of a recorded step."""
    gap: float | None = None
    """How far the sum of all values is above it."""
    slopes: np.ndarray | None = field(default=None, repr=False)
    """[m, d] which way each would push, with each number of an action from -1 to 1."""

    def __str__(self) -> str:
        shares = sorted(self.shares.items(), key=lambda one: -one[1])
        lines = [f"share of the push: {_first([f'{name} {share:.0%}' for name, share in shares])}"]
        if self.left is not None:
            lines.append(f"{self.left:.0%} of all pushing is left once opposite pushes have cancelled")
        if self.control is not None and self.gap is not None:
            sums = f"the sum of all values is {figure(self.gap, '+')} above it"
            lines.append(f"the critic that the actor follows says {figure(self.control)}; {sums}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """Why the aggregator prefers one action to another in one state.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.9, seed=0).learn(2_000, progress=False)
    >>> why = agent.explain([0], against="a_0")
    >>> print(why.sentence)
    chooses a_1 rather than a_0: goal 1, 0.14, and nobody objects
    >>> why.action, why.against, why.greedy, why.tie, round(why.advantage, 2), round(why.values["goal 1"], 2)
    ('a_1', 'a_0', ('a_1',), False, 0.14, 1.0)
    >>> why.msx_plus, why.msx_minus, round(why.disagreement, 2), why.leader, why.plans
    (('goal 1',), (), 0.97, None, ())
    >>> why.stuck, why.attractor, why.stable, why.margin
    (False, None, None, None)
    >>> why = explain_advice(["near", "far"], [[1.0, 0.0], [0.2, 0.4]], [1.0, 1.0], ["left", "right"])
    >>> why.preferences, why.differences == why.table("left", "right"), why.as_dict()["msx_plus"]
    ({'left': 1.2, 'right': 0.4}, True, ['near'])
    """

    task: str
    names: tuple[str, ...]
    """The active advisors [m] and, of an actor, the entropy."""
    groups: tuple[str, ...]
    """Of each [m], or ""."""
    actions: tuple[str, ...]
    """What is compared [A]: all actions, or the continuous action taken and one other, in words."""
    advice: np.ndarray = field(repr=False)
    """[m, A]"""
    weights: np.ndarray = field(repr=False)
    """[m]"""
    aggregator: Aggregator = field(repr=False)
    """How these m are combined."""
    aggregation: str = "sum"
    """The same in words."""
    chosen: int
    """The place of the action among `actions`."""
    other: int | None
    """The place of the action it is compared with; None where there is no other."""
    asked: bool = False
    """Whether the other was asked about; else it is the next best."""
    first: int = 0
    """The number of the first action, as the environment counts."""
    tolerance: float = 0.0
    """How far apart two preferences may be by rounding alone."""
    here: Surroundings = NOTHING_KNOWN
    numbers: tuple[list[float], list[float]] | None = None
    """The two continuous actions, in the environment's own units."""
    push: Push | None = None
    """Of continuous actions alone."""
    beside: int = 0
    """How many of the names, the last ones, are no advisors: the entropy of an actor is not."""
    by_group: bool = False
    """Whether the sentence names groups only, as of hundreds of advisors that point at goals."""
    caveat: str = ""
    """How far to trust it, where networks gave the advice; nothing of tables."""

    # ---- the two actions -----------------------------------------------------------------------------------------
    @property
    def action(self) -> str:
        """The action that is explained."""
        return self.actions[self.chosen]

    @property
    def against(self) -> str | None:
        """The action it is compared with, by default the best other one; None where there is no other."""
        return None if self.other is None else self.actions[self.other]

    @cached_property
    def sentence(self) -> str:
        """One plain sentence."""
        text, learned = sentence_of(self), self.aggregator.learned
        selected = learned is not None and learned.selects and self.names
        return f"{self.names[0]} is in control: {text}" if selected else text

    @cached_property
    def totals(self) -> np.ndarray:
        """[A] what the aggregator makes of the advice."""
        found: np.ndarray = self.aggregator.prefer(self.advice, self.weights)
        return found

    @property
    def preferences(self) -> dict[str, float]:
        """The aggregated preference for each action; Q_Sigma for a sum."""
        return dict(zip(self.actions, self.totals.tolist(), strict=True))

    @property
    def advantage(self) -> float:
        """The preference for the action less that for the other."""
        return 0.0 if self.other is None else float(self.totals[self.chosen] - self.totals[self.other])

    @property
    def tie(self) -> bool:
        """Whether the two are equal, up to rounding."""
        return self.other is not None and abs(self.advantage) <= self.tolerance

    @property
    def greedy(self) -> tuple[str, ...]:
        """The best actions: several where they tie."""
        return tuple(self.actions[a] for a in np.flatnonzero(best(self.totals, self.tolerance)).tolist())

    # ---- advisor by advisor --------------------------------------------------------------------------------------
    @cached_property
    def difference(self) -> np.ndarray:
        """[m] what each advisor contributes to the action over the other."""
        if self.other is None:
            return np.zeros(len(self.names))
        return contributions(self.advice, self.weights, self.aggregator, self.chosen, self.other)

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

    @property
    def values(self) -> dict[str, float]:
        """What each advisor expects of the action, times its weight."""
        return dict(zip(self.names, (self.weights * self.advice[:, self.chosen]).tolist(), strict=True))

    @cached_property
    def shortest(self) -> MSX:
        """The fewest that decide, by their places among the advisors."""
        return msx(self.difference[:0] if self.tie or not self.aggregator.plain else self.difference)

    @property
    def msx_plus(self) -> tuple[str, ...]:
        """The fewest advisors whose gains outweigh all losses, strongest first.

        Empty unless the action is better, and under any aggregation but the sum.
        """
        return tuple(self.names[j] for j in self.shortest.plus.tolist())

    @property
    def msx_minus(self) -> tuple[str, ...]:
        """The fewest whose losses show that no one of them can be left out."""
        return tuple(self.names[j] for j in self.shortest.minus.tolist())

    @cached_property
    def influence(self) -> dict[str, tuple[str, ...]]:
        """The advisors without whom other actions would be greedy, the strongest first, and which these are.

        Of continuous actions nothing: `push` has each one's share.
        """
        if self.push is not None:
            return {}
        now, without = (
            best(found, self.tolerance)
            for found in (self.totals, without_each(self.advice, self.weights, self.aggregator))
        )
        order = np.argsort(-np.abs(self.difference), kind="stable")
        return {
            self.names[j]: tuple(self.actions[a] for a in np.flatnonzero(without[j]).tolist())
            for j in order[(without != now).any(axis=1)[order]].tolist()
        }

    @property
    def disagreement(self) -> float | None:
        """What all advisors together lose by having to act as one; None where they do not choose from a sum."""
        return disagreement(self.advice, self.weights) if self.aggregator.plain and self.push is None else None

    # ---- who leads -----------------------------------------------------------------------------------------------
    @cached_property
    def lead(self) -> Lead | None:
        """Where the strongest wish decides: whose it is and whom it beats, by their places."""
        return lead(self.advice, self.weights, self.aggregator, self.tolerance)

    @property
    def leader(self) -> Lead | None:
        """The same by name."""
        if (one := self.lead) is None:
            return None
        named = one._replace(advisor=self.names[one.advisor], action=self.actions[one.action])
        if one.next is None:
            return named
        return named._replace(next=self.names[one.next], next_action=self.actions[one.next_action])

    @cached_property
    def plans(self) -> tuple[FollowedPlan, ...]:
        """Where plans are compared: whose is followed, a plan for each group."""
        return followed(self.names, self.actions, self.weights, self.aggregator, self.chosen, self.tolerance)

    # ---- the state -----------------------------------------------------------------------------------------------
    @property
    def attractor(self) -> bool | None:
        """Whether this state is an attractor by the agent's own values; None if not known or not egocentric."""
        return self.here.attractor

    @property
    def stable(self) -> bool | None:
        """Whether the greedy aggregator can remain in it."""
        return self.here.stable

    @property
    def margin(self) -> float | None:
        """By how much staying beats the best action that leaves."""
        return self.here.margin

    @property
    def stuck(self) -> bool | None:
        """Whether the greedy walk from here never earns and never ends; ghosts are taken to stay where they are.

        Of a Gymnasium environment it is known where it shows its transition table, and of a recorded step from the
        episode: what came to an end was not stuck, and what went on in the same few places until the episode was
        truncated was. A table asks whether any advisor is paid on the way, an episode what all were paid together.
        """
        return self.here.stuck

    # ---- all of it -----------------------------------------------------------------------------------------------
    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        push = self.push and {name: getattr(self.push, name) for name in ("shares", "left", "control", "gap")}
        return {
            "task": self.task, "action": self.action, "against": self.against, "numbers": self.numbers,
            "greedy": list(self.greedy), "preferences": self.preferences, "advantage": self.advantage, "tie": self.tie,
            "values": self.values, "differences": self.differences,
            "msx_plus": list(self.msx_plus), "msx_minus": list(self.msx_minus),
            "influence": {name: list(actions) for name, actions in self.influence.items()}, "push": push,
            "disagreement": self.disagreement, "attractor": self.attractor, "stable": self.stable,
            "margin": self.margin, "stuck": self.stuck, "aggregation": self.aggregation,
            "leader": self.leader and {**self.leader._asdict(), "margin": self.leader.margin},
            "plans": [dataclasses.asdict(plan) for plan in self.plans], "sentence": self.sentence,
            "caveat": self.caveat,
        }  # fmt: skip

    def __str__(self) -> str:
        marks = {name: "*" if name in self.greedy and self.push is None else "" for name in self.actions}
        lines = [self.sentence, *filter(None, [self.caveat]), ""]
        lines.append("  ".join(f"{a} {figure(q)}{marks[a]}" for a, q in self.preferences.items()))
        lines += [*([_leading(self.leader)] if self.leader else []), *map(_following, self.plans)]
        if self.against is not None and self.names:
            lines += self._listed()
        if self.push is not None:
            return "\n".join([*lines, str(self.push)])
        changed = [f"{name} ({' or '.join(actions)})" for name, actions in self.influence.items()]
        lines.append(f"it would act differently without: {_first(changed) or 'nobody'}")
        if self.disagreement is not None:
            lines.append(f"disagreement: {figure(self.disagreement)}")
        if self.attractor is not None:
            kind = "a stable attractor" if self.stable else "an attractor, but not a stable one"
            margin = "" if self.margin is None else f" (staying against leaving: {figure(self.margin, '+')})"
            lines.append(f"this state is {kind if self.attractor else 'no attractor'}{margin}")
        if self.stuck is not None:
            fate = "earns nothing more and never ends" if self.stuck else "can still earn, or reach the end"
            lines.append(f"with what it has learned, greedy play from here {fate}")
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


def _leading(one: Lead) -> str:
    """Who leads, by how much, and whom."""
    first = f"the strongest wish: {one.advisor} {figure(one.value)} for {one.action}"
    if one.next_value is None or one.margin is None:
        return f"{first}, and no other advisor would act differently"
    return f"{first}, {figure(one.margin, '+')} ahead of {one.next} {figure(one.next_value)} for {one.next_action}"


def _following(plan: FollowedPlan) -> str:
    """Whose plan is followed, what it is worth to whom, and what it is ahead of."""
    shares = _first([f"{name} {figure(value)}" for name, value in plan.worth.items()])
    first = f"follows the plan of {plan.advisor}, worth {figure(plan.value)}: {shares}"
    if plan.next_value is None or plan.margin is None:
        return f"{first}; no plan would act differently"
    beaten = f"that of {plan.next}, {figure(plan.next_value)} for {plan.next_action}"
    return f"{first}; {figure(plan.margin, '+')} ahead of {beaten}"


def _first(parts: list[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return ", ".join(parts[:_NAMED]) + more


# ---- from advice -----------------------------------------------------------------------------------------------------
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
    against: str | int | None = None, groups: Sequence[str] | None = None, task: str = "", aggregation: str = "sum",
    **known: Any,
) -> Explanation:  # fmt: skip
    """Explain from advice [m, A] and weights [m] alone, as an episode keeps them.

    By default the greedy action is compared with the next best. `aggregation` is how the advisors are combined, by
    name or group; `known` are further fields of `Explanation`, such as the `aggregator` of the m advisors that are
    active now.

    >>> advice = np.array([[2.0, 0.5], [-0.5, 0.0]])
    >>> explain_advice(["speed", "fuel"], advice, np.ones(2), ["fast", "slow"]).sentence
    'chooses fast rather than slow: speed, 1.50, outweighs fuel, -0.50'
    >>> explain_advice(["speed", "fuel"], advice, np.ones(2), ["fast", "slow"], aggregation="majority").sentence
    'tie between fast and slow: 1 of 2 votes each'
    """
    groups = list(groups or [""] * len(names))
    advice, weights = np.asarray(advice).reshape(len(names), len(actions)), np.asarray(weights, float)
    if not (np.isfinite(advice).all() and np.isfinite(weights).all()):
        raise BadInput(f"the advice in this state of {task!r} is not finite: there is nothing to explain")
    if (aggregator := known.pop("aggregator", None)) is None:
        advisors = tuple(Advisor(name, group=group) for name, group in zip(names, groups, strict=True))
        aggregator = aggregator_of(Team(task, advisors), aggregation)
    tolerance, advice = rounding(advice, weights, aggregator), advice.astype(float)
    preferences = aggregator.prefer(advice, weights)
    if not np.isfinite(preferences).all():
        raise BadInput(f"aggregation {aggregation!r} gives what is not finite in this state of {task!r}: correct it")
    first = known.get("first", 0)
    chosen = int(preferences.argmax()) if action is None else actions.index(action_named(actions, action, first))
    return Explanation(
        task=task, names=tuple(names), groups=tuple(groups), actions=tuple(actions), advice=advice, weights=weights,
        aggregator=aggregator, aggregation=aggregation, chosen=chosen, tolerance=tolerance,
        other=_other(actions, preferences, chosen, against, first), asked=against is not None, **known,
    )  # fmt: skip


def _other(
    actions: Sequence[str], preferences: np.ndarray, chosen: int, against: str | int | None, first: int
) -> int | None:
    """The action to compare with: the one that was asked about, or the next best; None where there is none."""
    if against is not None:
        other = actions.index(action_named(actions, against, first))
        if other == chosen:
            raise BadInput(f"action {actions[chosen]!r} is compared with itself: name another one")
        return other
    return max((a for a in range(len(actions)) if a != chosen), key=lambda a: preferences[a], default=None)


def explain_numbers(
    task: str, pair: tuple[np.ndarray, np.ndarray], names: Sequence[str], values: np.ndarray, weights: np.ndarray,
    push: Push, beside: int = 0,
) -> Explanation:  # fmt: skip
    """Explain one of two continuous actions from values [m, 2] and weights [m]; the last `beside` are no advisors.

    >>> values, push = np.array([[2.0, 0.5], [-0.5, 0.0], [0.75, 0.0]]), Push({})
    >>> pair = (np.ones(1), np.zeros(1))
    >>> explain_numbers("", pair, ["speed", "fuel"], values[:2], np.ones(2), push).sentence
    'chooses (1.00) rather than (0.00), as its networks expect: speed, 1.50, outweighs fuel, -0.50'
    >>> explain_numbers("", pair, ["fuel", "entropy"], values[1:], np.ones(2), push, beside=1).sentence
    'chooses (1.00) rather than (0.00), as its networks expect: entropy (no advisor), 0.75, outweighs fuel, -0.50'
    """
    found = explain_advice(names, values, weights, ["taken", "other"], action="taken", against="other", task=task)
    mine, other = (np.ravel(one).tolist() for one in pair)
    texts = (action_text(pair[0]), action_text(pair[1]))
    return dataclasses.replace(found, actions=texts, numbers=(mine, other), push=push, beside=beside, caveat=CAVEAT)


# ---- from agents -----------------------------------------------------------------------------------------------------
def explain(agent: Any, state: Any, action: Any = None, against: Any = None) -> Explanation:
    """Why the agent takes this action, by default its own, rather than another, by default the next best.

    Of continuous actions the default to compare with is the centre of the box.

    >>> import multiadvisor as mad
    >>> task = mad.make("three-fruits")
    >>> agent = mad.theory.exact_agent(task, "egocentric", 0.6)
    >>> print(explain(agent, task.initial_state(), against="North").sentence)
    goes South, into the wall, rather than North: fruits at (2, 0) and (2, 4), 0.29, outweigh fruit at (0, 2), -0.24
    """
    task, decider = agent.task, decider_of(agent)
    decision = decider.compare(state, action, against)
    names = [decider.asked[j].name for j in decision.advisors.tolist()]
    if (pair := decision.compared) is not None:  # the entropy comes behind the advisors
        shares, left = push_shares(pair.slopes)
        gap = float((decision.weights * decision.values[:, 0]).sum()) - pair.control
        push = Push(dict(zip(names, shares.tolist(), strict=False)), left, pair.control, gap, pair.slopes)
        beside = int((decision.advisors >= len(agent.advisors)).sum())
        both = pair.mine, pair.other
        return explain_numbers(task.name, both, names, decision.values, decision.weights, push, beside)
    action = task.first_action + decision.action if action is None else _numbered(task, action)
    against, here = _numbered(task, against), surroundings(agent, state)
    return explain_advised(agent, names, decision.values, action, against, here, state, decision.weights)


def _numbered(task: Any, action: Any) -> Any:
    """An action by name or number; several choices at once, as the environment has them, by the number of all."""
    several = None if task.adapter is None else task.adapter.several
    if isinstance(action, np.integer):
        return int(action)
    return action if several is None or isinstance(action, str | int | None) else several.number(action)


def explain_advised(
    agent: Any, names: Sequence[str], advice: Any, action: str | int, against: str | int | None,
    here: Surroundings = NOTHING_KNOWN, state: Any = None, weights: np.ndarray | None = None,
) -> Explanation:  # fmt: skip
    """Explain advice [m, A] that the agent's advisors of these names gave, in this state where it is known.

    `weights` [m]: those of this step; by default each advisor's own.
    """
    task, aggregation = agent.task, getattr(agent.settings, "aggregation", "sum")
    advisors = {advisor.name: (j, advisor) for j, advisor in enumerate(getattr(agent, "advisors", task.advisors))}
    active = [advisors[name] for name in names]
    aggregator = agent.aggregator if hasattr(agent, "aggregator") else aggregator_of(task, aggregation)
    if aggregator.learned is None or not aggregator.learned.beyond:
        aggregator = aggregator._replace(of=aggregator.of[[j for j, _ in active]])
    elif state is None:
        raise BadInput(
            f"the trace of task {task.name!r} keeps what advisors said, and not {aggregator.learned.beyond}: "
            "explain an observation with agent.explain"
        )
    else:
        aggregator = agent.aggregator_at(state)
    return explain_advice(
        names, advice, np.array([advisor.weight for _, advisor in active]) if weights is None else weights,
        task.actions, action=action, against=against, groups=[advisor.group for _, advisor in active], task=task.name,
        aggregation=aggregation, aggregator=aggregator, first=task.first_action, here=here,
        by_group=own_settings(agent.settings).points, caveat=getattr(agent.settings, "caveat", ""),
    )  # fmt: skip


def explain_recorded(
    agent: Any, trace: Episodes, seen: RecordedStep, against: Any = None, here: Surroundings = NOTHING_KNOWN,
    beside: int | None = None,
) -> Explanation:  # fmt: skip
    """Explain a recorded step from what was advised in it; a continuous action against the centre of the box.

    `beside` are those who were asked and are no advisors; by default as many as the agent does not have.
    """
    assert seen.names is not None
    assert seen.advice is not None
    if trace.taken is None:
        action = int(np.asarray(seen.action))
        return explain_advised(agent, seen.names, seen.advice, action, against, here, seen.state, seen.weights)
    if against is not None:
        raise BadInput(
            "a trace keeps what the critics said of the action and of the centre of the box: leave against out, or "
            "explain an observation with agent.explain"
        )
    assert seen.weights is not None
    beside = len(trace.names) - len(agent.advisors) if beside is None else beside
    shares = [] if seen.push is None else seen.push[: len(seen.names) - beside].tolist()
    pair = np.asarray(seen.action), trace.box.to_environment(np.zeros(trace.box.size))
    push = Push(dict(zip(seen.names, shares, strict=False)))
    return explain_numbers(agent.task.name, pair, seen.names, seen.advice, seen.weights, push, beside)
