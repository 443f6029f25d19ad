"""What stands first on the page: what drives a run and what to change, as sentences and one table.

What was counted in the episodes on the page comes at once; a diagnosis, which tries other actions, when it is asked
for. A diagnosis of anybody's policy, read from a file, is told in the same way. JavaScript draws and adds nothing.
"""

from __future__ import annotations

import contextlib
import copy
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episode_report import EpisodeReport
from multiadvisor.analysis.episodes import Episodes
from multiadvisor.analysis.influence import change
from multiadvisor.core.intervals import Estimate, estimate, paired
from multiadvisor.diagnosis.consequences import Consequences, consequences
from multiadvisor.diagnosis.diagnosis import Measurements, diagnose
from multiadvisor.diagnosis.findings import findings, percent
from multiadvisor.diagnosis.kept import FILE, recalled, taught_in
from multiadvisor.diagnosis.taught import Taught
from multiadvisor.errors import BadInput, short
from multiadvisor.settings import Settings
from multiadvisor.task import Advisor, Task

_FEW = 12  # terms that are counted one by one; of more, their groups
_ENOUGH = 5_000  # steps, from which on it is said that a term never paid
_STUCK = 3  # episodes that are named
_SMALL = 0.01  # of a step's largest effect: what is smaller is not shown
_ROUNDING = 1e-6  # below this a figure is shown as nothing
_STEPS, _BRANCHES, _TRIALS = 5_000, 100, 20  # of a diagnosis on the page
# of `train`, for environments
_FLAGS = ("max_episode_steps", "bins", "components", "advisors", "remainder", "action_names")
_LARGEST_FILE = 16 << 20  # bytes
# what matters most stands first: a phone shows three columns
_DIAGNOSED = (
    "term", "push", "share of what is paid", "return", "with the rest", "halves agree", "value", "forecast", "weight",
)  # fmt: skip


class Row(NamedTuple):
    """A term, or a group of them, in a table."""

    name: str
    cells: list[str]
    kind: str = ""


def card(
    sentences: Sequence[dict[str, Any]], head: Sequence[str], rows: Sequence[Row], notes: Sequence[str], **more: Any
) -> dict[str, Any]:
    """What the page draws: `sentences` have a `text` and, where they are of a step, its `episode` and `step`. Columns
    in which nothing is known are left out."""
    known = [k for k in range(len(head) - 1) if any(row.cells[k] for row in rows)]
    shown = [row._replace(cells=[row.cells[k] for k in known])._asdict() for row in rows]
    return {
        "sentences": list(sentences), "head": [head[0], *(head[1:][k] for k in known)], "rows": shown,
        "notes": [note for note in notes if note], **more,
    }  # fmt: skip


def _sentence(text: str, **where: int) -> dict[str, Any]:
    return {"text": text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."), **where}


def _number(value: float | None, sign: str = "") -> str:
    """A figure of a table; nothing where it is not known."""
    if value is None or not np.isfinite(value):
        return ""
    size = abs(value)
    kind = ".0f" if size >= 1000 else ".1f" if size >= 100 else ".2f" if size >= 0.005 or size < _ROUNDING else ".1g"
    if size < _ROUNDING:
        return "0.00"
    return f"{value:{sign}{kind}}".replace("-", "\u2212")


def _interval(one: Mapping[str, Any] | Estimate | None, sign: str = "", share: bool = False) -> str:
    """A figure with its interval."""
    if one is None:
        return ""
    value, low, high = (one[k] if isinstance(one, Mapping) else getattr(one, k) for k in ("value", "low", "high"))
    text = percent if share else lambda number: _number(number, sign)
    if low is None or high is None or text(low) == text(high) == text(value):
        return text(value)
    return f"{text(value)} [{text(low)}, {text(high)}]"


# ---- of the episodes on the page -------------------------------------------------------------------------------------
def report_card(report: EpisodeReport, numbers: Sequence[int], words: Sequence[str]) -> dict[str, Any]:
    """What the episodes of a run say, counted; `numbers` are those of the episodes on the page."""
    episodes, pushed = report.episodes, report.influence.push is not None
    driving = "share of the push" if pushed else "without it another action"
    head = ("term", driving, "share of what is paid", "return", "expected", "followed", "bias", "weight")
    order = np.lexsort((-np.nan_to_num(report.influence.strength[: report.n]), -_shares(episodes)[: report.n]))
    kinds = [one.group for one in episodes.advisors]
    rows = [_row(report, name, [j for j, kind in enumerate(kinds) if kind == name]) for name in report.groups]
    rows += [_row(report, episodes.names[j], [j]) for j in order.tolist()]
    said = [*_driver(report), *_counted(episodes), *_stuck(report, numbers)]
    return card(said, head, rows, words, title="From the episodes on this page")


def _paid(episodes: Episodes) -> np.ndarray:
    """What each was paid, times its weight [T, n]; NaN of one that is none of the task's."""
    return np.asarray(episodes.parts.paid * np.array([one.weight for one in episodes.advisors]))


def _shares(episodes: Episodes) -> np.ndarray:
    """Of all that is paid and taken, step by step [n]."""
    sizes = np.nan_to_num(np.abs(_paid(episodes)).mean(axis=0))
    return np.asarray(sizes / sizes.sum() if sizes.sum() else sizes)


def _influence(report: EpisodeReport, name: str) -> tuple[str, Any]:
    """How often another action would be taken without a group or an advisor and how much better that then looks, or its
    share of the push; and of an advisor its calibration, where there is one."""
    if name not in (*report.groups, *report.episodes.names):
        return "", None
    if report.n == 1:  # who is alone drives everything, which says nothing
        return "", report.calibration[0]
    if name in report.groups:
        one, known = report.of_groups.of(report.groups.index(name)), None
    else:
        j = report.episodes.names.index(name)
        one, known = report.drive(j), report.calibration[j]
    if "push" in one:
        return "" if one["push"] is None else percent(one["push"]), known
    margin = f", by {one['margin']:.3g}" if one["margin"] else ""
    return f"{percent(one['changed'])}{margin}" if one["changed"] else "never", known


def _row(report: EpisodeReport, name: str, members: list[int]) -> Row:
    """One advisor, or a group of them."""
    weights = np.array([report.episodes.advisors[j].weight for j in members])
    returns, grouped = (report.returns[:, members] * weights).sum(axis=1), name in report.groups
    share = percent(float(_shares(report.episodes)[members].sum()))
    paid = ["", ""] if np.isnan(returns).any() else [share, _interval(estimate(returns))]
    changes, known = _influence(report, name)
    forecast = [""] * 3
    if known is not None:
        forecast = [_number(known.predicted), _number(known.followed), _number(known.bias, "+")]
    weight = "" if grouped else f"{weights[0]:g}"
    return Row(f"{name} (all)" if grouped else name, [changes, *paid, *forecast, weight], "sum" if grouped else "")


def _driver(report: EpisodeReport) -> list[dict[str, Any]]:
    """Who changes what is done, the first two."""
    if len(report.episodes.advisors) == 1:
        only = report.episodes.names[0]
        return [_sentence(f"{only} is the only term: name its parts as advisors to see which of them drives the run")]
    names, sizes = report.groups, report.of_groups.strength
    if not report.groups:
        names, sizes = report.episodes.names[: report.n], report.influence.strength[: report.n]
    pairs = [(name, size) for name, size in zip(names, sizes.tolist(), strict=True) if size > 0]
    order = sorted(pairs, key=lambda one: -one[1])[:2]
    if not order:
        return []
    if report.influence.push is not None:
        shares = " and ".join(f"{name} ({percent(size)})" for name, size in order)
        said = f"by its critics most of the push is that of {shares}: other actions show whether it is"
        return [_sentence(said, tentative=True)]
    parts = " and without ".join(f"{name} in {percent(size)}" for name, size in order)
    return [_sentence(f"without {parts} of the steps another action would be taken")]


def _counted(episodes: Episodes) -> list[dict[str, Any]]:
    """What is found by counting what the terms paid; of many terms, what their groups did."""
    paid, names = _paid(episodes), list(episodes.names)
    known = ~np.isnan(paid).any(axis=0)
    if known.sum() > _FEW:
        kinds = [one.group or one.name for one in episodes.advisors]
        names = list(dict.fromkeys(kinds))
        paid = np.stack([paid[:, [kind == name for kind in kinds]].sum(axis=1) for name in names], axis=1)
        known = ~np.isnan(paid).any(axis=0)
    if not known.any() or len(names) > _FEW or episodes.task.own_score:
        return []
    names = [name for name, counts in zip(names, known, strict=True) if counts]
    evidence = Measurements(tuple(names), paid[:, known], episodes.gain, None, {}, None)
    unsaid = {"does not add up"} | ({"never paid"} if len(paid) < _ENOUGH else set())
    return [_sentence(one.sentence) for one in findings(evidence) if one.kind not in unsaid]


def _stuck(report: EpisodeReport, numbers: Sequence[int]) -> list[dict[str, Any]]:
    found, count = report.stuck, len(report.episodes)
    if not found:
        return [_sentence(f"none of the {count} episodes is stuck" if count > 1 else "the episode is not stuck")]
    shown, more = found[:_STUCK], len(found) - _STUCK
    sentences = [_sentence(f"stuck: {one.found}", episode=numbers[one.episode], step=one.since) for one in shown]
    sentences += [_sentence(f"and {more} more of the {count} episodes are stuck")] if more > 0 else []
    return [*sentences, *(_sentence(text) for text in dict.fromkeys(one.advice for one in shown))]


# ---- a diagnosis -----------------------------------------------------------------------------------------------------
def diagnosis_card(found: Mapping[str, Any]) -> dict[str, Any]:
    """A diagnosis as `Diagnosis.as_dict()` gives it, of our own run or of anybody's policy."""
    terms = sorted(found["terms"], key=_size, reverse=True)
    sentences = [_sentence(str(one["sentence"])) for one in found["findings"]]
    facts = (
        f"{found['episodes']} episodes of {found['length']:.0f} steps in {found['environment']}, gamma "
        f"{found['gamma']:g}; other actions were tried in {found['branches']} states and followed for "
        f"{found['branch_length']} steps."
    )
    decisive: dict[str, str] = {}  # one step of those that are alike
    for one in found["decisive"]:
        decisive.setdefault(_effects(one["effects"]), f"episode {one['episode']}, step {one['step']}")
    places = "; ".join(f"{place}: {effects}" for effects, place in decisive.items())
    stakes = f"It counts its own episodes from 0: most was at stake in {places}." * bool(places)
    ended = found.get("problem") or "it was interrupted" * bool(found.get("interrupted"))
    early = f"It ended early, and this is what was gathered until then: {ended}." * bool(ended)
    rows = [Row(str(one["name"]), _term_cells(one)) for one in terms]
    notes = [early, facts, stakes, *(_sentence(str(note))["text"] for note in found["notes"])]
    pictures = [
        {"src": one["picture"], "text": f"episode {one['episode']}, step {one['step']}"}
        for one in found["decisive"] if str(one.get("picture", "")).startswith("data:image/png;base64,")
    ]  # fmt: skip
    pushes = _pushes(terms)
    said = [*pushes, *(sentences or [_sentence(f"nothing {'else ' * bool(pushes)}stands out among the terms")])]
    return card(said, _DIAGNOSED, rows, notes, pictures=pictures, title="Other actions tried")


def beside(diagnosis: dict[str, Any], counted: dict[str, Any]) -> dict[str, Any]:
    """The card of the episodes below that of a diagnosis, without what this has said already, or has an answer to."""
    said = {_topic(one) for one in diagnosis["sentences"]}
    left = [one for one in counted["sentences"] if _topic(one) not in said and not one.get("tentative")]
    return {**counted, "sentences": left}


def _topic(sentence: Mapping[str, Any]) -> str:
    return str(sentence["text"]).partition(":")[0]


def _pushes(terms: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What drives the policy, of terms by their push: the first two; or that this cannot be told."""
    known = [one for one in terms if one["push"] is not None]
    if len(terms) > 1 and not known:
        tried = any(one["agreement"] is not None for one in terms)
        why = "two halves of the branches disagree, and more of them may help" if tried else "no other action was tried"
        return [_sentence(f"which term drives it cannot be told: {why}")]
    if len(known) < 2:
        return []
    first, second = (f"{one['name']} is {_interval(one['push'], share=True)}" for one in known[:2])
    return [_sentence(f"{first} of what another action changes, and {second}")]


def _effects(effects: Mapping[str, float]) -> str:
    """Of a step, the largest first, without those that are next to nothing beside it."""
    order = sorted(effects.items(), key=lambda one: -abs(one[1]))
    shown = [(name, value) for name, value in order if abs(value) >= _SMALL * abs(order[0][1])]
    return ", ".join(f"{name} {_number(value, '+')}" for name, value in shown)


def _size(term: Mapping[str, Any]) -> tuple[float, float]:
    push = term["push"]
    return (-1.0 if push is None else push["value"]), term["share"]


def _term_cells(term: Mapping[str, Any]) -> list[str]:
    known, agreement = term["calibration"], term["agreement"]
    push = _interval(term["push"], share=True) or ("withheld" if agreement is not None else "")
    forecast = "" if known is None else _number(known["correlation"])
    return [
        push, percent(term["share"]), _interval(term["returned"]), _interval(term["with_the_rest"], "+"),
        _number(agreement), _number(term.get("value")), forecast, f"{term['weight']:g}",
    ]  # fmt: skip


def read_diagnosis(path: Path) -> tuple[str, dict[str, Any]] | None:
    """What is diagnosed and its card, from the JSON that `multiadvisor diagnose` wrote; None of any other folder."""
    file = path / "diagnosis.json" if path.is_dir() else path
    if not file.is_file() or (file == path and path.suffix != ".json"):
        return None
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise ValueError("it is too large")
        found = json.loads(file.read_text("utf-8"))
        return short(str(found["environment"]), 80), diagnosis_card(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"{str(file)!r} is not a diagnosis ({type(error).__name__} {short(str(error), 60)}): write one with "
            "`multiadvisor diagnose ... --json`"
        ) from None


def diagnosed(agent: MultiAdvisor) -> dict[str, Any]:
    """A diagnosis of an agent, in an environment of its own."""
    task, gamma = own_environment(agent.task), agent.settings.gamma
    return diagnose(task, agent, gamma=gamma, steps=_STEPS, branches=_BRANCHES, progress=False).as_dict()


def prepared(agent: MultiAdvisor) -> Consequences | None:
    """Who answers what follows from an action; nobody where states cannot be gone back to, which the diagnosis says."""
    with contextlib.suppress(BadInput):
        return consequences(own_environment(agent.task), agent, steps=_STEPS, trials=_TRIALS, progress=False)
    return None


def kept(agent: MultiAdvisor, folder: Path | None) -> Consequences | Taught | None:
    """The same, as `multiadvisor explain` has prepared it for this run, or as `diagnose --teach` taught it."""
    if folder is None:
        return None
    found = recalled(folder, agent, own_environment(agent.task)) if (folder / FILE).exists() else None
    return found or taught_in(folder, agent)


def own_environment(task: Task) -> Task:
    """The same task with another instance of its environment, so that nobody else's episodes are disturbed."""
    if task.adapter is None:
        return task
    if task.adapter.vector:
        raise BadInput(f"{task.name!r} is a vector environment: states of single ones are gone back to")
    if task.own_score:
        raise BadInput(f"the advisors of {task.name!r} point at goals, and are not terms of its reward")
    env = task.adapter.env  # where there can be no other one, everybody takes turns
    with contextlib.suppress(Exception):  # whatever copying a stranger's object may raise
        env = copy.deepcopy(env)
    with contextlib.suppress(BadInput):
        env = task.adapter.copies(2)[0]
    return replace(task, adapter=task.adapter.fresh(table=False, env=env))


# ---- two runs --------------------------------------------------------------------------------------------------------
def comparison(pair: Sequence[EpisodeReport], named: Sequence[str], diagnosed: Sequence[Any]) -> dict[str, Any]:
    """Two runs of one task in the same episodes, term by term; their scores by one yardstick, the first run's."""
    episodes, task = [one.episodes for one in pair], pair[0].episodes.task
    pushed = all(one is not None for one in diagnosed)
    driving = "push" if pushed else "share of the push" if pair[0].influence.push is not None else "without it"
    head = [
        "term", "difference", "return 1", "return 2", f"{driving} 1", f"{driving} 2", "correlation 1", "correlation 2",
        "weight 1", "weight 2",
    ]  # fmt: skip
    rows = []
    for name, members in _terms(task).items():
        places = [[one.task.names.index(task.names[j]) for j in members] for one in episodes]
        weights = [one.task.weights[at] for one, at in zip(episodes, places, strict=True)]
        paid = [one.played.returns[:, at].sum(axis=1) for one, at in zip(episodes, places, strict=True)]
        apart = paired(paid[0], paid[1])
        cells = [_interval(apart, "+"), *(_number(float(one.mean())) for one in paid)]
        told = [_influence(one, name) for one in pair]
        cells += [_pushed(found, name) if found else text for (text, _), found in zip(told, diagnosed, strict=True)]
        cells += ["" if known is None else _number(known.correlation) for _, known in told]
        cells += [f"{w[0]:g}" if (w == w[0]).all() else "several" for w in weights]
        rows.append((abs(apart.value * float(weights[0][0])), Row(name, cells)))
    rows.sort(key=lambda one: -one[0])
    scores = [one.played.returns @ task.yardstick for one in episodes]
    total = [_number(float(one.mean())) for one in scores]
    whole = Row("score", [_interval(paired(scores[0], scores[1]), "+"), *total, *[""] * 6], "sum")
    usual = named_weights(task.advisors, task.yardstick, np.zeros(task.n))
    by = ", ".join(f"{name} {weight:g}" for name, weight in list(usual.items())[:_FEW])
    notes = [
        f"The same {len(scores[0])} episodes for both: 1 is {named[0]}, 2 is {named[1]}. Returns are before weights; "
        "the largest difference stands first.",
        f"Both scores by one yardstick, the task's own weights: {by}.",
    ]
    return card([], head, [whole, *(row for _, row in rows)], notes)


def _terms(task: Task) -> dict[str, list[int]]:
    """The terms of a task by name, and of many their groups: the places of their members."""
    found: dict[str, list[int]] = {}
    for j, one in enumerate(task.advisors):
        found.setdefault(one.group if one.group and task.n > _FEW else one.name, []).append(j)
    return found


def _pushed(diagnosis: Mapping[str, Any], name: str) -> str:
    """The push of a term, as a diagnosis found it."""
    return next((_interval(one["push"], share=True) for one in diagnosis["terms"] if one["name"] == name), "")


# ---- other weights ---------------------------------------------------------------------------------------------------
def preview(report: EpisodeReport, weights: Sequence[float]) -> str:
    """In how many steps of the episodes on the page another action would be taken under these weights [n]."""
    episodes = report.episodes
    if episodes.push is not None:
        return "What an actor would do under other weights is not in its critics: train it with them."
    own = np.array([one.weight for one in episodes.advisors], float)
    given = np.append(np.asarray(weights, float), own[len(weights) :])
    applied = episodes.asked * applied_under(given, own, episodes.applied)
    other = episodes.aggregator.prefer(episodes.advice, applied)
    tolerance = 1e-12 * np.abs(other).max(axis=1)
    share = float(change(other, episodes.preferences, episodes.choice, tolerance)[0].mean())
    changed = [f"{name} = {value:g}" for name, value in named_weights(episodes.advisors, given, own).items()]
    named = ", ".join(changed[:4]) + (f" and {len(changed) - 4} more" if len(changed) > 4 else "")
    return (
        f"With {named or 'its own weights'} another action would be taken in {percent(share)} of the "
        f"{len(episodes.choice):,} steps of {len(episodes)} episodes, by the values as they are."
    )


def applied_under(given: np.ndarray, own: np.ndarray, applied: np.ndarray) -> np.ndarray:
    """The weights applied [..., N] if these [N] are given instead of their own [N]: an advisor that points at a goal is
    weighted more or less than its own from step to step, and stays so."""
    return np.asarray(given * np.divide(applied, own, out=np.ones(applied.shape), where=own != 0))


def named_weights(advisors: Sequence[Advisor], given: np.ndarray, usual: np.ndarray) -> dict[str, float]:
    """The weights [n] that are not the usual ones [n], by name: of groups whose members all have the same new one.

    >>> pair = [Advisor("near", group="fruits"), Advisor("far", group="fruits")]
    >>> named_weights(pair, np.array([2.0, 2.0]), np.ones(2)), named_weights(pair, np.array([2.0, 1.0]), np.ones(2))
    ({'fruits': 2.0}, {'near': 2.0})
    """
    found: dict[str, float] = {}
    for one, value, before in zip(advisors, given.tolist(), usual.tolist(), strict=True):
        members = [j for j, other in enumerate(advisors) if one.group and other.group == one.group]
        together = len(members) > 1 and (given[members] == value).all() and (usual[members] != value).all()
        if together or value != before:
            found[one.group if together else one.name] = value
    return found


def command(agent: MultiAdvisor, folder: Path | None, weights: Mapping[str, float]) -> str:
    """What trains the same agent under other weights, on the command line or, of a task made there, in Python."""
    task, named = agent.task, ",".join(f"{name}={value:g}" for name, value in weights.items())
    options = {name: value for name, value in task.options.items() if name != "weights" and value is not None}
    if "advisors" in options:
        options["advisors"] = _as_terms(options["advisors"])
    if task.by_hand or None in options.values():
        given = named.replace(",", ", ") if all(map(str.isidentifier, weights)) else f"**{dict(weights)}"
        return f"mad.MultiAdvisor(task.with_weights({given}), agent.settings).learn({agent.steps:_})"
    words = ["multiadvisor", "train", task.maker, *_flags(_given(agent)), "--steps", str(agent.steps)]
    for name, value in options.items():
        flag = name in _FLAGS or task.world is not None
        words += _flags({name: value}) if flag else ["--env-kwarg", f"{name}={json.dumps(value)}"]
    out = "run" if folder is None else folder.name
    words += ["--weights", named, "--out", f"{out}-reweighted"]
    return shlex.join(words)


def _as_terms(advisors: Any) -> str | None:
    """Advisors by their terms in info, as `--advisors` takes them; None where they cannot all be named so.

    >>> _as_terms([{"name": "speed", "reward": "info:reward_speed"}, {"name": "fuel", "reward": "info:costs.fuel"}])
    'info:reward_*,info:costs.fuel'
    """
    if not isinstance(advisors, list | tuple):
        return str(advisors)
    terms = []
    for one in advisors:
        name, reward = (str(one.get(what)) for what in ("name", "reward"))
        if len(one) != 2 or not reward.startswith("info:") or not reward.endswith(name):
            return None
        start = reward.removesuffix(name)
        terms.append(reward if start[-1] in ":." else f"{start}*")
    return ",".join(dict.fromkeys(terms))


def _given(agent: MultiAdvisor) -> dict[str, Any]:
    """The settings that are not those that such a run has by itself."""
    own, learner = agent.settings, agent.settings.learner_settings
    usual = Settings(**{name: value for name, value in agent.task.defaults.items() if name in _NAMES})
    found = {name: getattr(own, name) for name in _NAMES if getattr(own, name) != getattr(usual, name)}
    kept = {**asdict(type(learner)()), **agent.task.defaults.get(learner.name, {})}  # a preset, where there is one
    inner = {name: value for name, value in asdict(learner).items() if name != "name" and value != kept[name]}
    return {**{name: value for name, value in found.items() if name != "learner"}, "learner": learner.name, **inner}


def _flags(values: Mapping[str, Any]) -> list[str]:
    """Values as flags of the command line."""
    words: list[str] = []
    for name, value in values.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]
    return words


_NAMES = tuple(one.name for one in fields(Settings))
