"""One report on an agent's episodes: each advisor's return, influence and calibration, and where it is stuck."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.calibration import ACTOR, ACTOR_SUM, Calibration, calibration
from multiadvisor.analysis.episodes import Episodes, play
from multiadvisor.analysis.influence import Influence, group_influence, influence, pushing
from multiadvisor.analysis.stuck import Stuck, find_stuck
from multiadvisor.core.aggregator import Team, plannings_of
from multiadvisor.learners.kinds import own_settings

_SHOWN = 12  # so many advisors are printed
_KINDS = 3  # so many different ways of being stuck are printed


@dataclass(frozen=True, eq=False)
class EpisodeReport:
    """What the episodes say of each advisor [n], and of each group of them."""

    episodes: Episodes
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
        beside = own_settings(self.episodes.settings).entropy and _apart(self.episodes)
        return len(self.episodes.advisors) - beside

    @property
    def entropy(self) -> float | None:
        """What is expected of the actor's entropy, on average; None where no critic tells it apart."""
        expected = self.episodes.advice[:, self.n :, 0]
        return float(expected.mean()) if expected.shape[1] else None

    @property
    def returns(self) -> np.ndarray:
        """[G, n] what each advisor was paid in each episode; NaN of one that is none of the task's."""
        return np.asarray(np.add.reduceat(self.episodes.parts.paid, self.episodes.first[:-1]))

    @property
    def note(self) -> str:
        """Why there is no calibration at all, where that is so; else nothing."""
        return "" if _apart(self.episodes) else f"no calibration: values are of {ACTOR_SUM}"

    def drive(self, j: int) -> dict[str, Any]:
        """The influence of one advisor: of networks without a margin that is smaller than what their values miss."""
        one, known = self.influence.of(j), self.calibration[j]
        if self.episodes.settings.caveat and one["margin"] is not None:
            miss = np.inf if known is None or known.miss is None else known.miss
            small = one["margin"] < miss * abs(self.episodes.advisors[j].weight)
            return {**one, "margin": None} if small else one
        return one

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        episodes, returns = self.episodes, self.returns
        total = max(int(episodes.length.sum()), 1)
        advisors = {}
        for j, advisor in enumerate(episodes.advisors[: self.n]):
            mean = None if np.isnan(returns[:, j]).any() else float(returns[:, j].mean())
            known = self.calibration[j]
            advisors[advisor.name] = {
                "group": advisor.group, "weight": float(advisor.weight), "return": mean,
                "reward": None if mean is None else float(episodes.parts.paid[:, j].sum() / total),
                "influence": self.drive(j),
                "calibration": None if known is None else {"expects": self.expects[j], **known._asdict()},
            }  # fmt: skip
        return {
            "steps": total, "note": self.note, "caveat": episodes.settings.caveat, "advisors": advisors,
            "entropy": self.entropy,
            "groups": {
                name: {"return": _together(advisors, name), "influence": self.of_groups.of(k)}
                for k, name in enumerate(self.groups)
            },
            "episodes": [
                {"episode": k, "length": length, "terminated": ended, "score": score,
                 "advisors": dict(zip(episodes.task.names, paid, strict=True))}
                for k, (length, ended, score, paid) in enumerate(zip(
                    episodes.length.tolist(), episodes.terminated.tolist(), episodes.played.score.tolist(),
                    episodes.played.returns.tolist(), strict=True,
                ))
            ],
            "stuck": [one.as_dict() for one in self.stuck],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join([*self._advisors(), *filter(None, [self.episodes.settings.caveat]), *self._stuck()])

    def _advisors(self) -> list[str]:
        returns = self.returns.mean(axis=0)
        by = np.nan_to_num(-self.influence.margin)
        order = np.lexsort((by, -np.nan_to_num(self.influence.strength, nan=-1.0)))
        order = order[order < self.n].tolist()
        names = [self.episodes.names[j] for j in order[:_SHOWN]]
        width = max(len(name) for name in [*names, *self.groups, "advisor"])
        driving = "without it another action" if self.influence.push is None else "share of the push"
        lines = [
            f"{'advisor':{width}}  {'return':>9}  {driving:>25}  "
            f"{'expected':>9} {'followed':>9} {'bias':>8}  correlation"
        ]
        for name, j in zip(names, order, strict=False):
            known, changed = self.calibration[j], self.drive(j)
            text = f"{name:{width}}  {_figure(returns[j]):>9}  {_changes(changed):>25}  "
            if known is not None:
                text += f"{_figure(known.predicted):>9} {_figure(known.followed):>9} {_figure(known.bias, '+'):>8}  "
                text += f"{_figure(known.correlation):>11}{' *' if known.completed else ''}"
            lines.append(text.rstrip())
        if len(order) > _SHOWN:
            lines.append(f"and {len(order) - _SHOWN} more advisors (--json has all)")
        if any(known is not None and known.completed for known in self.calibration):
            lines.append("* every episode was cut off too early: what it expected at the cut stands for what followed")
        for k, name in enumerate(self.groups):
            lines.append(f"{name:{width}}  {'(group)':>9}  {_changes(self.of_groups.of(k)):>25}")
        for meaning in dict.fromkeys(self.expects):
            who = [self.episodes.names[j] for j in range(self.n) if self.expects[j] == meaning]
            few = ", ".join(who[:4]) + ("" if len(who) < 5 else f" and {len(who) - 4} more")
            shown = "each advisor" if len(who) == self.n else few
            lines.append(f"{shown} {'expect' if shown == few and len(who) > 1 else 'expects'} {meaning}")
        if self.entropy is not None:
            lines.append(f"entropy, no advisor: {self.entropy:.2f} is expected of acting unpredictably from there on")
        return lines

    def _stuck(self) -> list[str]:
        cut = int((~self.episodes.terminated).sum())
        if not cut:
            return []
        if not self.stuck:
            return [f"{cut} of {len(self.episodes)} episodes were cut off, none of them stuck"]
        lines = [f"stuck in {len(self.stuck)} of {len(self.episodes)} episodes:"]
        alike: dict[tuple[str, str], list[Stuck]] = {}
        for one in self.stuck:
            alike.setdefault((one.kind, one.where), []).append(one)
        for several in sorted(alike.values(), key=len, reverse=True)[:_KINDS]:
            times = f"{len(several)} episodes, the first is " if len(several) > 1 else ""
            lines.append(f"  {times}episode {several[0].episode}: {several[0]}")
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
    margin = "" if one["margin"] is None else f", by {one['margin']:.2f}"
    return f"{one['changed']:.1%} of steps{margin}" if one["changed"] else "never"


def report_on(episodes: Episodes) -> EpisodeReport:
    """What these episodes say."""
    names = [advisor.group for advisor in episodes.advisors]
    groups, members = _groups(names)
    return EpisodeReport(
        episodes=episodes,
        influence=_influence(episodes, None),
        calibration=tuple(_calibrated(episodes, j) for j in range(len(episodes.advisors))),
        expects=_expectations(episodes),
        groups=groups,
        of_groups=_influence(episodes, members),
        stuck=tuple(find_stuck(episodes)),
    )


def _groups(names: list[str]) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """The groups of advisors, from that of each, and their members; none where each would be a group by itself."""
    found = tuple(name for name in dict.fromkeys(names) if name)
    if all(names.count(name) == 1 for name in found):
        return (), []
    return found, [np.flatnonzero(np.array(names) == name) for name in found]


def drives(episodes: Episodes, most: int) -> dict[str, float] | None:
    """How strongly each advisor drives the agent or, of more than `most`, each group; None where there is none."""
    groups, members = _groups([advisor.group for advisor in episodes.advisors])
    many = len(episodes.advisors) > most
    if many and not 0 < len(groups) <= most:
        return None
    strength = _influence(episodes, members if many else None).strength
    named = zip(groups if many else episodes.names, strength.tolist(), strict=True)
    return {name: value for name, value in named if not np.isnan(value)}


def _influence(episodes: Episodes, members: list[np.ndarray] | None) -> Influence:
    """Of each advisor, or of groups of these members."""
    if episodes.push is not None:
        each = [np.array([j]) for j in range(len(episodes.advisors))] if members is None else members
        return pushing(episodes.push, episodes.applied, each)
    steps = (episodes.advice, episodes.applied, episodes.aggregator, episodes.choice)
    return influence(*steps) if members is None else group_influence(*steps, members)


def report(agent: MultiAdvisor, episodes: int = 20, seed: int = 0) -> EpisodeReport:
    """Let the agent play greedily, and say which advisor drives it, whose values hold, and where it is stuck.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric", seed=0).learn(2_000, progress=False)
    >>> [one.kind for one in report(agent, episodes=2).stuck]
    ['stands still', 'stands still']
    """
    return report_on(play(agent, episodes, seed))


def _expectations(episodes: Episodes) -> tuple[str, ...]:
    """What each advisor's values mean."""
    if own_settings(episodes.settings).summed:
        return ("nothing of its own: the sum is learned",) * len(episodes.advisors)
    if own_settings(episodes.settings).entropy:
        return (ACTOR if _apart(episodes) else ACTOR_SUM,) * len(episodes.advisors)
    plans = plannings_of(Team(episodes.task.name, episodes.advisors), episodes.settings.planning)
    stays = "" if not own_settings(episodes.settings).points else ", while what it points at stays where it is"
    return tuple(plan.expects + stays for plan in plans)


def _apart(episodes: Episodes) -> bool:
    """Whether what is expected of the rewards is told apart from the entropy that an actor is paid beside them."""
    return not own_settings(episodes.settings).entropy or bool(np.isnan(episodes.parts.paid).all(axis=0).any())


def _calibrated(episodes: Episodes, j: int) -> Calibration | None:
    """The calibration of one advisor; None where its values are no forecast."""
    settings, paid = episodes.settings, episodes.parts.paid[:, j]
    if own_settings(settings).summed or np.isnan(paid).any() or not _apart(episodes):
        return None
    paid = own_settings(settings).as_learned(paid)
    advisor = episodes.advisors[j]
    gamma = settings.gamma if advisor.gamma is None else advisor.gamma
    predicted = episodes.advice[np.arange(len(episodes.choice)), j, episodes.choice]
    return calibration(
        predicted, paid, episodes.asked[:, j], episodes.parts.ended[:, j], episodes.first, episodes.terminated, gamma
    )


# ---- several agents --------------------------------------------------------------------------------------------------
def table_of(rows: list[dict[str, Any]]) -> str:
    """CSV: a row for each run, as `evaluate --report` gives it; of each advisor return, influence and calibration."""
    names = list(dict.fromkeys(name for row in rows for name in row["report"]["advisors"]))
    plain = ("run", "task", "planning", "aggregation", "gamma", "episodes", "score", "reward", "length", "terminated")
    pushed = any("push" in one["influence"] for row in rows for one in row["report"]["advisors"].values())
    columns = _COLUMNS | ({"push": ("influence", "push")} if pushed else {})
    weights = [" ".join(f"{name}={w:g}" for name, w in row.get("weights", {}).items()) for row in rows]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    of_each = [f"{what}/{name}" for name in names for what in ("return", *columns)]
    writer.writerow([*plain, "weights", "stuck", "caveat", *of_each])
    for row, given in zip(rows, weights, strict=True):
        report = row["report"]
        cells = [*(row[name] for name in plain), given, len(report["stuck"]) / row["episodes"], report["caveat"]]
        for one in (report["advisors"].get(name, {}) for name in names):
            cells += [one.get("return"), *((one.get(part) or {}).get(key) for part, key in columns.values())]
        writer.writerow(["" if cell is None else cell for cell in cells])
    return text.getvalue()


_COLUMNS = {
    "changed": ("influence", "changed"), "margin": ("influence", "margin"), "predicted": ("calibration", "predicted"),
    "bias": ("calibration", "bias"), "correlation": ("calibration", "correlation"),
}  # fmt: skip
