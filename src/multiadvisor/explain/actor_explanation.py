"""Why this action, where actions are real numbers: what each advisor expects of it, and which way each would push.

Pure functions on what the critics said, `Judged`; `explain_actor` asks a learner of continuous actions for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from multiadvisor.envs.rollout import episodes_of, rollout
from multiadvisor.errors import BadInput
from multiadvisor.explain.sentences import figure
from multiadvisor.explain.shortest_reason import msx
from multiadvisor.settings import CAVEAT


def influence(slopes: np.ndarray) -> tuple[np.ndarray, float]:
    """Each advisor's share of the push [m], from slopes [m, d]; and how much of all pushing is left in the end.

    >>> shares, left = influence(np.array([[3.0, 0.0], [-1.0, 0.0]]))
    >>> shares.tolist(), left
    ([0.75, 0.25], 0.5)
    """
    lengths = np.linalg.norm(slopes, axis=1)
    total = float(lengths.sum())
    if total == 0.0:
        return np.zeros(len(slopes)), 1.0
    return lengths / total, float(np.linalg.norm(slopes.sum(axis=0)) / total)


_SEEN = 0.005  # what the entropy adds, to be named
ENTROPY = "entropy"  # what is expected of acting unpredictably, beside the advisors


@dataclass(frozen=True, eq=False)
class ActorExplanation:
    """Why the actor prefers one action to another in one state."""

    task: str
    action: list[float]
    against: list[float]
    """The action it is compared with, by default the middle of all actions."""
    values: dict[str, float]
    """What each advisor expects of the action, times its weight."""
    entropy: float
    """What is expected of acting unpredictably later on; 0 where no critic tells it apart."""
    differences: dict[str, float]
    """What each adds to the action over the other, the largest magnitude first; the entropy's is not among them."""
    entropy_difference: float
    advantage: float
    """The differences together, that of the entropy included."""
    msx_plus: tuple[str, ...]
    """The fewest advisors whose gains outweigh all losses, strongest first; empty unless the action is better."""
    msx_minus: tuple[str, ...]
    influence: dict[str, float]
    """Each advisor's share of the push at the action: the length of its slope, of all lengths together."""
    sentence: str
    left: float | None = None
    """How much of all the pushing is left when what is contrary has cancelled, 0 to 1; None where it was not kept."""
    control: float | None = None
    """What the critic that the actor follows says of the action, and ..."""
    gap: float | None = None
    """... how far the advisors' values and the entropy's together are above it; None where it was not kept."""
    slopes: np.ndarray | None = field(default=None, repr=False)
    """[m, d] which way each would push, with each number of an action from -1 to 1."""
    caveat: str = CAVEAT
    """How far to trust it: critics are networks."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("task", "action", "against", "values", "entropy", "differences", "entropy_difference", "advantage",
                 "influence", "left", "control", "gap", "sentence", "caveat")  # fmt: skip
        found = {name: getattr(self, name) for name in names}
        return {**found, "msx_plus": list(self.msx_plus), "msx_minus": list(self.msx_minus)}

    def __str__(self) -> str:
        head = f"{'':24} {'value':>10} {'difference':>10} {'influence':>10}"
        lines = [self.sentence, self.caveat, "", head]
        for name in self.differences:
            row = f"{self.values[name]:10.2f} {self.differences[name]:+10.2f} {self.influence[name]:10.0%}"
            lines.append(f"{name:24} {row}")
        apart = f"{self.entropy:10.2f} {self.entropy_difference:+10.2f}   no advisor: what acting unpredictably brings"
        lines += ["", f"{ENTROPY:24} {apart}"]
        if self.left is not None:
            lines.append(f"of all the pushing {self.left:.0%} is left when what is contrary has cancelled")
        if self.control is not None and self.gap is not None:
            lines.append(f"the critic that the actor follows says {figure(self.control)}, they {figure(self.gap, '+')}")
        return "\n".join(lines)


def action_text(action: np.ndarray) -> str:
    """An action of real numbers, for people."""
    return f"({', '.join(f'{number:.2f}' for number in np.ravel(action))})"


def two_actions(action: str, against: str, names: Sequence[str], difference: np.ndarray, entropy: float = 0.0) -> str:
    """Who decides, and the strongest two of those who are outvoted; the entropy, which is no advisor, by itself.

    >>> two_actions("(1.00)", "(0.00)", ["speed"], np.array([-0.5]), 0.75)
    'chooses (1.00) rather than (0.00): entropy, which is no advisor, +0.75, outweighs speed, -0.50'
    """
    advantage = float(difference.sum()) + entropy
    if advantage == 0.0:
        return f"{action} and {against} are worth the same"
    found = msx(difference if advantage > 0 else -difference).plus
    outvoted = np.flatnonzero(difference < 0 if advantage > 0 else difference > 0)
    outvoted = outvoted[np.argsort(-np.abs(difference[outvoted]), kind="stable")][:2]

    def listed(chosen: np.ndarray) -> str:
        return " and ".join(f"{names[j]}, {difference[j]:+.2f}" for j in chosen)

    start = f"chooses {action} rather than {against}"
    if advantage < 0:
        start = f"{against} would be better than {action}"
    verb, apart = "outweighs" if len(found) == 1 else "outweigh", f"{ENTROPY}, which is no advisor, {entropy:+.2f}"
    if advantage * float(difference.sum()) <= 0:
        found, verb, text = found[:0], "outweighs", apart
    else:
        text = listed(found)
    text = f"{start}: {text}" + (f", {verb} {listed(outvoted)}" if len(outvoted) else "")
    return f"{text}; {apart}" if len(found) and abs(entropy) >= _SEEN else text


def state_at(agent: Any, learner: Any, seed: int, episode: int, step: int) -> tuple[Any, int]:
    """The observation at a step of an episode that `agent.evaluate(seeds=(seed,))` plays, and how long the episode
    is."""
    source = episodes_of(agent.task, agent.settings.seed, seed)
    states = [each.state for each in rollout(source, episode, lambda state, draw: learner.choose(state))]
    if step >= len(states):
        raise BadInput(f"episode {episode} of seed {seed} has {len(states)} steps, counted from 0, and no step {step}")
    return states[step], len(states)


def explain_actor(learner: Any, state: Any, action: Any = None, against: Any = None) -> ActorExplanation:
    """Why the actor takes this action, by default its own, rather than another, by default the middle of all."""
    box, task = learner.actions, learner.task
    chosen = learner.choose(state) if action is None else box.from_environment(action, "action")
    other = np.zeros(box.size, np.float32) if against is None else box.from_environment(against, "against")
    told = learner.judge(state, np.stack([chosen, other]))
    if not all(np.isfinite(part).all() for part in (told.values, told.control)):
        raise BadInput(f"the values in this state of {task.name!r} are not finite: there is nothing to explain")
    weighted = told.weights[:, None] * told.values  # [m, 2]
    shares, left = influence(told.slopes)
    found = explain_values(
        task.name, box.to_environment(chosen), box.to_environment(other), told.names, weighted, told.entropy, shares
    )
    gap = float(weighted[:, 0].sum() + told.entropy[0] - told.control[0])
    return replace(found, left=left, control=float(told.control[0]), gap=gap, slopes=told.slopes)


def explain_values(
    task: str, action: np.ndarray, against: np.ndarray, names: Sequence[str], weighted: np.ndarray,
    entropy: np.ndarray, shares: np.ndarray | None,
) -> ActorExplanation:  # fmt: skip
    """Explain from weighted values [m, 2] and the entropy's [2] of two actions alone, as a trace keeps them.

    >>> values = np.array([[2.0, 0.5], [-0.5, 0.0]])
    >>> explain_values("", np.ones(1), np.zeros(1), ["speed", "fuel"], values, np.zeros(2), None).sentence
    'chooses (1.00) rather than (0.00): speed, +1.50, outweighs fuel, -0.50'
    """
    difference = weighted[:, 0] - weighted[:, 1]
    unpredictable = float(entropy[0] - entropy[1])
    advantage = float(difference.sum() + unpredictable)
    deciding = msx(difference if advantage > 0 else difference[:0])
    order = np.argsort(-np.abs(difference), kind="stable")
    shares = np.zeros(len(names)) if shares is None else shares
    shown = [action_text(each) for each in (action, against)]
    return ActorExplanation(
        task=task, action=np.ravel(action).tolist(), against=np.ravel(against).tolist(),
        values={name: float(value) for name, value in zip(names, weighted[:, 0], strict=True)},
        entropy=float(entropy[0]), differences={names[j]: float(difference[j]) for j in order},
        entropy_difference=unpredictable, advantage=advantage,
        msx_plus=tuple(names[j] for j in deciding.plus.tolist()),
        msx_minus=tuple(names[j] for j in deciding.minus.tolist()),
        influence={name: float(share) for name, share in zip(names, shares, strict=True)},
        sentence=two_actions(shown[0], shown[1], names, difference, unpredictable),
    )  # fmt: skip
