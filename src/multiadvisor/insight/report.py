"""One report on an agent's games: each advisor's return, influence and calibration, and where it is stuck."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.committee import Team, plannings_of
from multiadvisor.insight.calibration import ACTOR, ACTOR_SUM, MEANINGS, Calibration, calibration
from multiadvisor.insight.games import Games, play
from multiadvisor.insight.influence import Influence, group_influence, influence, pushing
from multiadvisor.insight.stuck import Stuck, find_stuck

_SHOWN = 12  # so many advisors are printed
_KINDS = 3  # so many different ways of being stuck are printed


@dataclass(frozen=True, eq=False)
class Report:
    """What the games say of each advisor [n], and of each group of them."""

    games: Games
    influence: Influence
    calibration: tuple[Calibration | None, ...]
    """None where an advisor's values are not a forecast of its own rewards."""
    expects: tuple[str, ...]
    """What each advisor's values mean."""
    groups: tuple[str, ...]
    of_groups: Influence
    stuck: tuple[Stuck, ...]

    @property
    def n(self) -> int:
        """How many are advisors: what is expected of an actor's entropy comes last, and is none."""
        beside = self.games.settings.continuous is not None and _apart(self.games)
        return len(self.games.advisors) - beside

    @property
    def entropy(self) -> float | None:
        """What is expected of the actor's entropy, on average; None where no critic tells it apart."""
        told = self.games.advice[:, self.n :, 0]
        return float(told.mean()) if told.shape[1] else None

    @property
    def returns(self) -> np.ndarray:
        """[G, n] what each advisor was paid in each game; NaN of one that is none of the task's."""
        found: np.ndarray = np.add.reduceat(self.games.paid, self.games.first[:-1])
        return found

    @property
    def note(self) -> str:
        """Why there is no calibration at all, where that is so; else nothing."""
        return "" if _apart(self.games) else f"no calibration: values are of {ACTOR_SUM}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        games, returns = self.games, self.returns
        total = max(int(games.turns.sum()), 1)
        advisors = {}
        for j, focus in enumerate(games.advisors[: self.n]):
            mean = None if np.isnan(returns[:, j]).any() else float(returns[:, j].mean())
            known = self.calibration[j]
            advisors[focus.name] = {
                "group": focus.group, "weight": float(focus.weight), "return": mean,
                "reward": None if mean is None else float(games.paid[:, j].sum() / total),
                "influence": self.influence.of(j),
                "calibration": None if known is None else {"expects": self.expects[j], **known.as_dict()},
            }  # fmt: skip
        return {
            "turns": total,
            "note": self.note,
            "caveat": self.games.settings.caveat,
            "advisors": advisors,
            "entropy": self.entropy,
            "groups": {
                name: {"return": _together(advisors, name), "influence": self.of_groups.of(k)}
                for k, name in enumerate(self.groups)
            },
            "games": [
                {"game": game, "turns": int(games.turns[game]), "finished": bool(games.finished[game]),
                 "score": float(games.played.score[game]),
                 "advisors": dict(zip(games.task.names, games.played.returns[game].tolist(), strict=True))}
                for game in range(len(games))
            ],
            "stuck": [one.as_dict() for one in self.stuck],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join([*self._advisors(), *filter(None, [self.games.settings.caveat]), *self._stuck()])

    def _advisors(self) -> list[str]:
        returns = self.returns.mean(axis=0)
        by = np.nan_to_num(-self.influence.by)
        order = np.lexsort((by, -np.nan_to_num(self.influence.strength, nan=-1.0)))
        order = order[order < self.n].tolist()
        names = [self.games.names[j] for j in order[:_SHOWN]]
        width = max(len(name) for name in [*names, *self.groups, "advisor"])
        lines = [
            f"{'advisor':{width}}  {'return':>9}  {self._driving():>25}  "
            f"{'expected':>9} {'followed':>9} {'bias':>8}  correlation"
        ]
        for name, j in zip(names, order, strict=False):
            known, changed = self.calibration[j], self.influence.of(j)
            text = f"{name:{width}}  {_figure(returns[j]):>9}  {_changes(changed):>25}  "
            if known is not None:
                text += f"{_figure(known.predicted):>9} {_figure(known.followed):>9} {_figure(known.bias, '+'):>8}  "
                text += f"{_figure(known.correlation):>11}{' *' if known.completed else ''}"
            lines.append(text.rstrip())
        if len(order) > _SHOWN:
            lines.append(f"and {len(order) - _SHOWN} more advisors (--json has all)")
        if any(known is not None and known.completed for known in self.calibration):
            lines.append("* every game was cut off too early: what it expected at the cut stands for what followed")
        for k, name in enumerate(self.groups):
            lines.append(f"{name:{width}}  {'(group)':>9}  {_changes(self.of_groups.of(k)):>25}")
        for meaning in dict.fromkeys(self.expects):
            who = [name for name, own in zip(self.games.names[: self.n], self.expects, strict=False) if own == meaning]
            few = ", ".join(who[:4]) + ("" if len(who) < 5 else f" and {len(who) - 4} more")
            shown = "each advisor" if len(who) == self.n else few
            lines.append(f"{shown} {'expect' if shown == few and len(who) > 1 else 'expects'} {meaning}")
        if self.entropy is not None:
            lines.append(f"entropy, no advisor: {self.entropy:.2f} is expected of acting unpredictably from there on")
        return lines

    def _driving(self) -> str:
        """What the column of influence says."""
        return "without it another action" if self.influence.push is None else "share of the push"

    def _stuck(self) -> list[str]:
        cut = int((~self.games.finished).sum())
        if not cut:
            return []
        if not self.stuck:
            return [f"{cut} of {len(self.games)} games were cut off, none of them stuck"]
        lines = [f"stuck in {len(self.stuck)} of {len(self.games)} games:"]
        alike: dict[tuple[str, str], list[Stuck]] = {}
        for one in self.stuck:
            alike.setdefault((one.kind, one.where), []).append(one)
        for several in sorted(alike.values(), key=len, reverse=True)[:_KINDS]:
            times = f"{len(several)} games, the first is " if len(several) > 1 else ""
            lines.append(f"  {times}game {several[0].game}: {several[0]}")
        if len(alike) > _KINDS:
            lines.append(f"  and {len(alike) - _KINDS} other places (--json has all)")
        return lines


def _together(advisors: dict[str, dict[str, Any]], group: str) -> float | None:
    """What all of a group were paid, on average; None where that is not known of one of them."""
    paid = [one["return"] for one in advisors.values() if one["group"] == group]
    return None if None in paid else float(sum(paid))


def _figure(value: float | None, sign: str = "") -> str:
    return "" if value is None or np.isnan(value) else f"{value:{sign}.2f}"


def _changes(one: dict[str, Any]) -> str:
    """How often, and by how much; or which share of the push it has."""
    if "push" in one:
        return "" if one["push"] is None else f"{one['push']:.1%}"
    return f"{one['changed']:.1%} of turns, by {one['by']:.2f}" if one["changed"] else "never"


def report_on(games: Games) -> Report:
    """What these games say."""
    names = [focus.group for focus in games.advisors]
    groups, members = _groups(names)
    return Report(
        games=games, influence=_influence(games, None),
        calibration=tuple(_calibrated(games, j) for j in range(len(games.advisors))), expects=_expectations(games),
        groups=groups, of_groups=_influence(games, members),
        stuck=tuple(find_stuck(games)),
    )  # fmt: skip


def _groups(names: list[str]) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """The groups of advisors, from that of each, and their members; none where each would be a group by itself."""
    found = tuple(name for name in dict.fromkeys(names) if name)
    if all(names.count(name) == 1 for name in found):
        return (), []
    return found, [np.flatnonzero(np.array(names) == name) for name in found]


def drives(games: Games, most: int) -> dict[str, float] | None:
    """How strongly each advisor drives the agent or, of more than `most`, each group; None where there is none."""
    groups, members = _groups([focus.group for focus in games.advisors])
    many = len(games.advisors) > most
    if many and not 0 < len(groups) <= most:
        return None
    strength = _influence(games, members if many else None).strength
    named = zip(groups if many else games.names, strength.tolist(), strict=True)
    return {name: value for name, value in named if not np.isnan(value)}


def _influence(games: Games, members: list[np.ndarray] | None) -> Influence:
    """Of each advisor, or of groups of these members."""
    if games.push is not None:
        each = [np.array([j]) for j in range(len(games.advisors))] if members is None else members
        return pushing(games.push, games.heard, each)
    said = (games.advice, games.heard, games.voices, games.choice)
    return influence(*said) if members is None else group_influence(*said, members)


def report(agent: MultiAdvisor, games: int = 20, seed: int = 0) -> Report:
    """Let the agent play greedily, and say which advisor drives it, whose values hold, and where it is stuck.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric", seed=0).learn(2_000, progress=False)
    >>> [one.kind for one in report(agent, games=2).stuck]
    ['stands still', 'stands still']
    """
    return report_on(play(agent, games, seed))


def _expectations(games: Games) -> tuple[str, ...]:
    """What each advisor's values mean."""
    if games.settings.learner != "advisors":
        return ("nothing of its own: the sum is learned",) * len(games.advisors)
    if games.settings.continuous is not None:
        return (ACTOR if _apart(games) else ACTOR_SUM,) * len(games.advisors)
    plans = plannings_of(Team(games.task.name, games.advisors), games.settings.planned)
    stays = "" if games.task.goals is None else ", while what it points at stays where it is"
    return tuple(MEANINGS.get(plan.name, f"what its planning {plan.name!r} says") + stays for plan in plans)


def _apart(games: Games) -> bool:
    """Whether what is expected of the rewards is told apart from the entropy that an actor is paid beside them."""
    return games.settings.continuous is None or bool(np.isnan(games.paid).all(axis=0).any())


def _calibrated(games: Games, j: int) -> Calibration | None:
    """The calibration of one advisor; None where its values are no forecast."""
    settings, paid = games.settings, games.paid[:, j]
    if settings.learner != "advisors" or np.isnan(paid).any() or not _apart(games):
        return None
    if settings.deep is not None and settings.deep.clip_rewards:
        paid = np.clip(paid, -1.0, 1.0)
    focus = games.advisors[j]
    gamma = settings.gamma if focus.gamma is None else focus.gamma
    predicted = games.advice[np.arange(len(games.choice)), j, games.choice]
    return calibration(predicted, paid, games.asked[:, j], games.ended[:, j], games.first, games.finished, gamma)


# ---- several agents --------------------------------------------------------------------------------------------------
def table_of(rows: list[dict[str, Any]]) -> str:
    """CSV: a row for each run, as `evaluate --report` gives it; of each advisor return, influence and calibration."""
    names = list(dict.fromkeys(name for row in rows for name in row["report"]["advisors"]))
    plain = ("run", "task", "planning", "aggregation", "gamma", "games", "score", "reward", "turns", "finished")
    pushed = any("push" in one["influence"] for row in rows for one in row["report"]["advisors"].values())
    columns = _COLUMNS | ({"push": ("influence", "push")} if pushed else {})
    weights = [" ".join(f"{name}={w:g}" for name, w in row.get("weights", {}).items()) for row in rows]
    head = [
        *plain,
        "weights",
        "stuck",
        "caveat",
        *(f"{what}/{name}" for name in names for what in ("return", *columns)),
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row, given in zip(rows, weights, strict=True):
        cells = [row[name] for name in plain] + [
            given,
            len(row["report"]["stuck"]) / row["games"],
            row["report"]["caveat"],
        ]
        for name in names:
            one = row["report"]["advisors"].get(name)
            cells.append(None if one is None else one["return"])
            for part, key in columns.values():
                cells.append(None if one is None or one[part] is None else one[part].get(key))
        writer.writerow(["" if cell is None else cell for cell in cells])
    return text.getvalue()


_COLUMNS = {
    "changed": ("influence", "changed"), "by": ("influence", "by"), "predicted": ("calibration", "predicted"),
    "bias": ("calibration", "bias"), "correlation": ("calibration", "correlation"),
}  # fmt: skip
