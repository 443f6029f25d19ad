"""What many episodes of a run tell: each advisor's part in it, the decisive moments, and where it is stuck."""

from __future__ import annotations

import threading
from typing import Any

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episode_report import Report, report_on
from multiadvisor.analysis.episodes import Episodes, play_each
from multiadvisor.analysis.moments import moments
from multiadvisor.analysis.stuck import Stuck, find_stuck
from multiadvisor.errors import BadInput
from multiadvisor.explorer.albums import Albums
from multiadvisor.explorer.library import LONGEST, Entry, Library

_MOMENTS = 6
_EPISODES = 20  # at most this many are looked at together


class Insights:
    """What the episodes of a library's runs tell, each run asked once for each checkpoint."""

    def __init__(self, library: Library, albums: Albums) -> None:
        self._library, self._albums = library, albums
        self._insights: dict[str, tuple[int, dict[str, Any]]] = {}
        self._stuck: dict[tuple[str, int, int], dict[str, Any]] = {}
        self._playing = threading.Lock()

    def of(self, name: str) -> dict[str, Any]:
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
            one["picture"] = self._albums.thumbnail(entry.id, one["episode"], one["step"])
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
        return play_each(agent, seeds, draws, LONGEST), seeds


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
