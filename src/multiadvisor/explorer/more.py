"""What the page asks for beside the episodes themselves: pictures, what many episodes tell, and how a training goes
on."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episode_report import Report, report_on
from multiadvisor.analysis.episodes import Episodes, play_each
from multiadvisor.analysis.moments import moments
from multiadvisor.analysis.stuck import Stuck, find_stuck
from multiadvisor.analysis.trace_file import Pictures
from multiadvisor.errors import BadInput
from multiadvisor.explorer.bundle import pack
from multiadvisor.explorer.following import RunWatchers
from multiadvisor.explorer.library import _LONGEST, Entry, Library
from multiadvisor.runs.pictures import LIMIT, SIGNATURE, Painting, facts_of
from multiadvisor.runs.trace import Trace

_AT_ONCE = 12  # pictures to an answer, so that the first ones come at once
_KEPT = 6  # episodes whose pictures are held
_MOMENTS = 6
_EPISODES = 20  # at most so many episodes are looked at together


class More:
    """Answers by path."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._following = RunWatchers(library)
        self._paintings: OrderedDict[tuple[str, int, int], Painting] = OrderedDict()
        self._insights: dict[str, tuple[int, dict[str, Any]]] = {}
        self._stuck: dict[tuple[str, int, int], dict[str, Any]] = {}
        self._lock, self._playing = threading.Lock(), threading.Lock()

    def answer(self, path: str) -> bytes | dict[str, Any]:
        """`pictures/RUN/EPISODE/FIRST`, `stuck/RUN/EPISODE`, `insight/RUN`, `live` or `live/RUN/SINCE`."""
        match path.split("/"):
            case ["pictures", name, episode, first]:
                return self.pictures(name, _number(episode), _number(first))
            case ["stuck", name, episode]:
                return self.stuck(name, _number(episode))
            case ["insight", name]:
                return self.insight(name)
            case ["live"]:
                return self._following.all()
            case ["live", name, since]:
                return self._following.one(name, _number(since))
        raise BadInput("the explorer cannot do that")

    # ---- pictures --------------------------------------------------------------------------------------------------
    def pictures(self, name: str, number: int, first: int, until: int | None = None) -> bytes:
        """Pictures of an episode from step `first` on: a few, or all up to `until`."""
        trace, episode = self._library.recorded(name, number)
        first = max(first, 0)
        last = first + _AT_ONCE - 1 if until is None else until
        if trace.pictures is not None:
            return _kept_pack(trace, episode, first, last)
        painting = self._painting(name, trace, episode)
        painting.advance(last, first if until is None else None)
        shown = painting.of[first : last + 1]
        # what was painted for an earlier reader comes piece by piece too
        done = painting.done and first + len(shown) >= len(painting.of)
        header = {
            **painting.facts(), "first": first, "count": painting.count, "reason": painting.reason, "done": done,
        }  # fmt: skip
        return _picture_pack(header, [painting.content[k] for k in dict.fromkeys(shown)], shown)

    def _painting(self, name: str, trace: Trace, episode: int) -> Painting:
        with self._lock:
            key = (name, id(trace), episode)
            if key not in self._paintings:
                self._paintings[key] = Painting(trace, episode, self._library.entry(name).agent.task)
            self._paintings.move_to_end(key)
            while len(self._paintings) > _KEPT:
                self._paintings.popitem(last=False)
            return self._paintings[key]

    # ---- many episodes -----------------------------------------------------------------------------------------------
    def insight(self, name: str) -> dict[str, Any]:
        """What the episodes on the page tell of a run: each advisor's part in it, when it counted, where it is stuck.

        Or, as `problem`, why nothing can be told of this one: that is an answer, and no failure.
        """
        entry = self._library.entry(name)
        agent = entry.agent
        steps = getattr(agent, "steps", 0)
        with self._playing:
            known = self._insights.get(name)
            if known is None or known[0] != steps:
                count, first = min(self._library.episodes, _EPISODES), len(entry.traces)
                try:
                    found = self.look_at(entry, agent, list(range(first, first + count)))
                except BadInput as error:
                    found = {"problem": str(error)}
                self._insights[name] = (steps, found)
            return self._insights[name][1]

    def stuck(self, name: str, number: int) -> dict[str, Any]:
        """Where one episode is stuck, as `evaluate --report` finds it; nothing where that cannot be told."""
        entry = self._library.entry(name)
        agent = entry.agent
        key = (name, number, getattr(agent, "steps", 0))
        with self._playing:
            if key not in self._stuck:
                try:
                    found = find_stuck(self._episodes(entry, agent, [number])[0])
                except BadInput:
                    found = []
                self._stuck[key] = {"stuck": [_told(one) for one in found]}
            return self._stuck[key]

    def look_at(self, entry: Entry, agent: Any, numbers: list[int]) -> dict[str, Any]:
        """What these episodes of a run tell, as the page counts them: those of trace files come before."""
        episodes, seeds = self._episodes(entry, agent, numbers)
        report = report_on(episodes)
        found = {**report.as_dict(), "stuck": [_told(one) for one in report.stuck]}
        rewards = agent.task.rewards(episodes.played.score, episodes.played.returns)
        picked = [one.as_dict() for one in moments(episodes, _MOMENTS)]
        for one in (*found["episodes"], *found["stuck"], *picked):
            one["episode"] = numbers[one["episode"]]
        for one in picked:
            one["picture"] = self._thumbnail(entry, agent, one["episode"], one["step"])
        return {
            **found, **_words(report), "moments": picked, "seeds": seeds, "score": float(rewards.mean()),
            "own": float(episodes.played.score.mean()) if agent.task.other_weights() else None,
            "terminated": float(episodes.terminated.mean()), "length": float(episodes.length.mean()),
        }  # fmt: skip

    def _episodes(self, entry: Entry, agent: Any, numbers: list[int]) -> tuple[Episodes, list[int]]:
        """These episodes of a run with all that was said in them, and their seeds."""
        if not isinstance(agent, MultiAdvisor):
            raise BadInput("this agent can only be asked for its advice: nothing is known of its advisors")
        library, before = self._library, len(entry.traces)
        if numbers[0] < before:
            raise BadInput(
                "this episode was recorded elsewhere: `multiadvisor evaluate --report` tells of such episodes"
            )
        draws = next(iter(library.entries.values())).settings["seed"]
        seeds = [library.seed + number - before for number in numbers]
        return play_each(agent, seeds, draws, _LONGEST), seeds

    def _thumbnail(self, entry: Entry, agent: MultiAdvisor, number: int, step: int) -> str | None:
        """One picture as text: a data address, or the text itself; None where there is none, or a board."""
        if agent.task.world is not None:
            return None
        trace, episode = self._library.recorded(entry.id, number)
        picture = self._painting(entry.id, trace, episode).look_at(step)
        if picture is None:
            return None
        if picture.startswith(SIGNATURE):
            return f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        return picture.decode("utf-8", "replace")


def _told(one: Stuck) -> dict[str, Any]:
    """Where an episode is stuck, with the sentence that says it."""
    return {**one.as_dict(), "sentence": str(one)}


def _words(report: Report) -> dict[str, str]:
    """What stands above the tables: how many episodes there are, and what is shown of them."""
    episodes = report.episodes
    count = f"{len(episodes)} episode{'s' * (len(episodes) != 1)}"
    total = int(episodes.length.sum())
    said = list(dict.fromkeys(report.expects[j] for j, known in enumerate(report.calibration[: report.n]) if known))
    expects = f" Each expects {said[0]}." if len(said) == 1 else ""
    note, caveat = (
        f" {text[0].upper()}{text[1:]}." if text else "" for text in (report.note, episodes.settings.caveat)
    )
    pair = "the best and the worst action" if episodes.push is None else "the action taken and the centre of the box"
    return {
        "meaning": f"{count}, {total} step{'s' * (total != 1)}.{expects}{note}{caveat}",
        "chosen": f"From {count}: where {pair} were furthest apart and the advisors disagreed most.{caveat}",
    }


def _kept_pack(trace: Trace, episode: int, first: int, last: int) -> bytes:
    """Of pictures that a trace file brought with it."""
    kept: Pictures | None = trace.pictures
    assert kept is not None
    span = trace.span(episode)
    count = span.stop - span.start + 1
    shown = kept.of[span.start + episode :][first : min(last + 1, count)].tolist()
    facts = trace.header.get("pictures") or facts_of(kept.content, count, 0)
    header = {**facts, "first": first, "count": count, "reason": "", "done": first + len(shown) >= count}
    return _picture_pack(header, [kept.content[k] for k in dict.fromkeys(shown)], shown)


def _picture_pack(header: dict[str, Any], content: list[bytes], shown: list[int]) -> bytes:
    """Pictures, each once, where each ends, and which of them each step shows."""
    place = {k: at for at, k in enumerate(dict.fromkeys(shown))}
    arrays: dict[str, np.ndarray] = {
        "content": np.frombuffer(b"".join(content), np.uint8),
        "ends": np.cumsum([len(one) for one in content], dtype=np.int64).astype(np.int32),
        "of": np.array([place[k] for k in shown], np.int32),
    }
    return pack({**header, "limit": LIMIT}, arrays)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
