"""What many episodes of a run tell: each advisor's part, decisive moments, where it is stuck; and their pictures."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episode_report import EpisodeReport, report_on
from multiadvisor.analysis.episodes import Episodes, play
from multiadvisor.analysis.moments import moments
from multiadvisor.analysis.stuck import Stuck, find_stuck
from multiadvisor.diagnosis.consequences import Consequences
from multiadvisor.diagnosis.taught import Taught
from multiadvisor.errors import BadInput
from multiadvisor.explorer.answers import beside, comparison, diagnosed, diagnosis_card, kept, prepared, report_card
from multiadvisor.explorer.bundle import episode_pack, pack, run_pack
from multiadvisor.explorer.library import LONGEST, Entry, Library
from multiadvisor.runs.pictures import SIGNATURE, Painting

STATIC = Path(__file__).parent / "static"
TIPS = json.loads((STATIC / "tips.json").read_text("utf-8"))
"""What the labels of the page mean, by their text: shown where one hovers over them."""
_AT_ONCE, ALL = 12, 1 << 30  # pictures to an answer
_KEPT = 6  # episodes whose pictures are held


class Albums:
    """The pictures of a library's episodes."""

    def __init__(self, library: Library, at_once: int = _AT_ONCE) -> None:
        self._library, self._at_once, self._lock = library, at_once, threading.Lock()
        self._paintings = lru_cache(_KEPT)(self._paint)

    def pictures(self, name: str, number: int, first: int) -> bytes:
        """Some pictures of an episode, from step `first` on."""
        painting, first = self._painting(name, number), max(first, 0)
        last = first + self._at_once - 1
        painting.advance(last, first if self._at_once < ALL else None)
        shown = painting.of[first : last + 1]
        # what was painted for an earlier reader comes piece by piece too
        done = painting.done and first + len(shown) >= len(painting.of)
        header = {**painting.facts(), "first": first, "count": painting.count, "reason": painting.reason, "done": done}
        place = {k: at for at, k in enumerate(dict.fromkeys(shown))}
        sent = [painting.content[k] for k in place]
        arrays: dict[str, np.ndarray] = {  # each once, where each ends, and which of them each step shows
            "content": np.frombuffer(b"".join(sent), np.uint8),
            "ends": np.cumsum([len(one) for one in sent], dtype=np.int64).astype(np.int32),
            "of": np.array([place[k] for k in shown], np.int32),
        }
        return pack(header, arrays)

    def _painting(self, name: str, number: int) -> Painting:
        trace, episode = self._library.recorded(name, number)
        with self._lock:  # each is begun once, whoever asks
            return self._paintings(name, trace, episode)

    def _paint(self, name: str, trace: Episodes, episode: int) -> Painting:
        painting, kept = Painting(trace, episode, self._library.entry(name).agent.task), trace.pictures
        if kept is not None:  # a trace file brought them with it
            painting.content, painting.of = list(kept.content), kept.of[trace.walk(episode)].tolist()
            painting.repeated = trace.header.get("pictures", {}).get("repeated", 0)
        return painting

    def thumbnail(self, name: str, episode: int, step: int) -> str | None:
        """One picture as text: a data address, or the text itself; None where there is none, or a board."""
        if self._library.entry(name).agent.task.world is not None:
            return None
        picture = self._painting(name, episode).look_at(step)
        if picture is None:
            return None
        if picture.startswith(SIGNATURE):
            return f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        return picture.decode("utf-8", "replace")


_MOMENTS = 6
_HELD = 2  # reports
_EPISODES = 20  # at most this many are looked at together


class Insights:
    """What the episodes of a library's runs tell, each run asked once for each checkpoint."""

    def __init__(self, library: Library, albums: Albums) -> None:
        self._library, self.albums = library, albums
        self._reports = lru_cache(_HELD)(
            lambda name, agent, numbers: report_on(self._episodes(library.entry(name), numbers))
        )
        self._playing, self._drawing, self._diagnosing = threading.RLock(), threading.Lock(), threading.Lock()

    def of(self, name: str) -> dict[str, Any]:
        """What the episodes on the page tell of a run: each advisor's part in it, when it counted, where it is stuck.

        Or, as `problem`, why nothing can be told of this one: that is an answer, and no failure.
        """
        if name in self._library.diagnoses:
            return {"cards": [self._library.diagnoses[name][-1]]}
        entry = self._library.entry(name)
        with self._playing:
            try:
                found: dict[str, Any] = entry.once("insight", lambda: self.look_at(entry, self._numbers(entry)))
            except BadInput as error:
                return {"problem": str(error)}
        if (diagnosis := entry.known.get("diagnosis")) is None:
            return found
        card = diagnosis_card(diagnosis)
        return {**found, "cards": [card, *(beside(card, one) for one in found.get("cards", []))]}

    def _numbers(self, entry: Entry) -> list[int]:
        """The episodes that are looked at together: those that are played here."""
        first = len(entry.traces)
        return list(range(first, first + min(self._library.episodes, _EPISODES)))

    def report(self, name: str) -> EpisodeReport:
        """The report on the episodes of a run; the last few are held."""
        entry = self._library.entry(name)
        with self._playing:
            return self._reports(name, entry.agent, tuple(self._numbers(entry)))

    def compare(self, one: str, other: str) -> dict[str, Any]:
        """Two runs of one task in the same episodes, term by term."""
        names = (one, other)
        entries = [self._library.entry(name) for name in names]
        if entries[0].task["name"] != entries[1].task["name"]:
            raise BadInput("these runs are of different tasks: choose two of one task")
        reports = [self.report(name) for name in names]
        return comparison(reports, [entry.name for entry in entries], [one.known.get("diagnosis") for one in entries])

    def diagnose(self, name: str) -> dict[str, Any]:
        """A run diagnosed: other actions are tried in some of its states."""
        entry = self._library.entry(name)
        with self._diagnosing:
            found = entry.once("diagnosis", lambda: diagnosed(entry.agent))
            with contextlib.suppress(BadInput):  # what was taught of another agent is no reason to say nothing
                entry.known["consequences"] = self.consequences(entry)
            entry.known["consequences"] = entry.known.get("consequences") or prepared(entry.agent)
            return diagnosis_card(found)

    def consequences(self, entry: Entry) -> Consequences | Taught | None:
        """Who answers what follows from an action, where that was prepared: by a diagnosis here, or for `explain`; or
        what was taught. Refused where that was of another agent."""
        if entry.known.get("consequences") is None:
            entry.known["consequences"] = kept(entry.agent, entry.folder)
        found: Consequences | Taught | None = entry.known["consequences"]
        return found

    def stuck(self, name: str, number: int) -> dict[str, Any]:
        """Where one episode is stuck, as `evaluate --report` finds it; nothing where that cannot be told."""
        entry, _ = self._library.entry(name), self._library.recorded(name, number)
        with self._playing, contextlib.suppress(BadInput):
            found = entry.once(("stuck", number), lambda: find_stuck(self._episodes(entry, [number])))
            return {"stuck": [_with_sentence(one) for one in found]}
        return {"stuck": []}

    def look_at(self, entry: Entry, numbers: Sequence[int]) -> dict[str, Any]:
        """What these episodes of a run tell, as the page counts them: those of trace files come before."""
        task, report = entry.agent.task, self._reports(entry.id, entry.agent, tuple(numbers))
        episodes = report.episodes
        found = {**report.as_dict(), "stuck": [_with_sentence(one) for one in report.stuck]}
        rewards = task.rewards(episodes.played.score, episodes.played.returns)
        picked = [one.as_dict() for one in moments(episodes, _MOMENTS)]
        for one in (*found["episodes"], *found["stuck"], *picked):
            one["episode"] = numbers[one["episode"]]
        meaning, chosen = _words(report)
        return {
            **found, "chosen": chosen, "cards": [report_card(report, numbers, [meaning])], "moments": picked,
            "score": float(rewards.mean()),
            "own": float(episodes.played.score.mean()) if task.other_weights() else None,
            "terminated": float(episodes.terminated.mean()), "length": float(episodes.length.mean()),
        }  # fmt: skip

    def pictures(self, name: str) -> dict[str, Any]:
        """What its decisive moments look like, for itself: an environment may take long to draw them."""
        entry, found = self._library.entry(name), self.of(name).get("moments", [])

        def drawn() -> list[dict[str, Any]]:
            places = [{"episode": one["episode"], "step": one["step"]} for one in found]
            return [{**place, "picture": self.albums.thumbnail(name, **place)} for place in places]

        with self._drawing:
            return {"pictures": entry.once("pictures", drawn)}

    def _episodes(self, entry: Entry, numbers: Sequence[int]) -> Episodes:
        """These episodes of a run with all that was advised in them."""
        agent: Any = entry.agent
        if not isinstance(agent, MultiAdvisor):
            raise BadInput("this agent can only be asked for its advice: nothing is known of its advisors")
        if not numbers or numbers[0] < len(entry.traces):
            raise BadInput(
                "this episode was recorded elsewhere: `multiadvisor evaluate --report` tells of such episodes"
            )
        seeds = [self._library.seed + number - len(entry.traces) for number in numbers]
        return play(agent, 1, seeds, draws=self._library.draws, longest=LONGEST)


Answering = Callable[[dict[str, str]], "bytes | str | dict[str, Any]"]
"""What answers a request, by what was given in its path and query."""


def answers_of(library: Library, at_once: int = _AT_ONCE, insights: Insights | None = None) -> dict[str, Answering]:
    """What tells of runs and their episodes, by the path of the request: for the server, and for a file without one."""
    insights = insights or Insights(library, Albums(library, at_once))
    albums = insights.albums
    return {
        "runs": lambda given: {**library.listing(), "gallery": [], "plannings": [], "tips": TIPS},
        "curves": lambda given: {"curves": library.curves()},
        "runs/{id}": lambda given: run_pack(library.entry(given["id"]).agent, library.entry(given["id"]).name),
        "runs/{id}/episodes/{episode}": lambda given: episode_pack(
            *library.recorded(given["id"], whole(given["episode"])), library.entry(given["id"]).agent
        ),
        "pictures/{id}/{episode}/{first}": lambda given: albums.pictures(
            given["id"], whole(given["episode"]), whole(given["first"])
        ),
        "stuck/{id}/{episode}": lambda given: insights.stuck(given["id"], whole(given["episode"])),
        "insight/{id}": lambda given: insights.of(given["id"]),
        "moments/{id}": lambda given: insights.pictures(given["id"]),
    }


def whole(value: Any) -> int:
    """A number that somebody gave; -1 where it is none."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return int(value)
    return -1


def _with_sentence(one: Stuck) -> dict[str, Any]:
    """Where an episode is stuck, with the sentence that says it."""
    return {**one.as_dict(), "sentence": str(one)}


def _words(report: EpisodeReport) -> tuple[str, str]:
    """What stands with the tables: how many episodes there are, and what is shown of them."""
    episodes = report.episodes
    count = f"{len(episodes)} episode{'s' * (len(episodes) != 1)}"
    total = int(episodes.length.sum())
    said = list(dict.fromkeys(report.expects[j] for j, known in enumerate(report.calibration[: report.n]) if known))
    expects = f" Each expects {said[0]}." if len(said) == 1 else ""
    note, caveat = (
        f" {text[0].upper()}{text[1:]}." if text else "" for text in (report.note, episodes.settings.caveat)
    )
    pair = "the best and the worst action" if episodes.push is None else "the action taken and the centre of the box"
    meaning = f"{count}, {total:,} step{'s' * (total != 1)}.{expects}{note}{caveat}"
    return meaning, f"From {count}: where {pair} were furthest apart and the advisors disagreed most.{caveat}"
