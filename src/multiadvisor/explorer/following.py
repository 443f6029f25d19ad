"""Following runs that another process trains: it writes files, and these are looked at again and again."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

from multiadvisor.analysis.episode_report import drives
from multiadvisor.analysis.episodes import play_each
from multiadvisor.analysis.stuck import find_stuck
from multiadvisor.errors import BadInput
from multiadvisor.explorer.library import Entry, Library, _entry
from multiadvisor.runs.live import read_live
from multiadvisor.runs.training import LOCK
from multiadvisor.storage.folder_lock import holder_of

_CHEAP = 40  # advisors whose influence is told while training goes on; of more, that of their groups
_LONGEST = 500  # steps of the episode by which it is told
_WAIT = 0.2  # seconds


def wait_for_run(folder: Path) -> None:
    """Where a training has begun in a folder and saved nothing yet, wait for its first checkpoint."""
    if (folder / "agent.json").exists() or holder_of(folder / LOCK) is None:
        return
    print(f"{folder} is being trained and has saved nothing yet: waiting", file=sys.stderr)
    while not (folder / "agent.json").exists() and holder_of(folder / LOCK) is not None:
        time.sleep(_WAIT)


class RunWatcher:
    """One run: which checkpoint was seen last, and what an episode of each told."""

    def __init__(self, entry: Entry) -> None:
        self.entry, self.version = entry, 0
        self.stamp = self._stamp()
        self.influence: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._told = -1

    def _stamp(self) -> int:
        try:
            return (self.entry.folder / "agent.json").stat().st_mtime_ns if self.entry.folder else 0
        except OSError:
            return 0

    def look(self) -> None:
        """Take up a newer checkpoint, where there is one."""
        entry, stamp = self.entry, self._stamp()
        if entry.folder is None or stamp in (0, self.stamp):
            return
        try:
            newer = _entry(entry.folder, entry.name, entry.named)
        except BadInput:
            return  # it is being replaced at this moment: next time
        with entry.lock:
            entry.evaluations, entry.settings, entry.task = newer.evaluations, newer.settings, newer.task
            entry.loaded = None
            entry.episodes.clear()
        self.stamp = stamp
        self.version += 1

    @property
    def due(self) -> bool:
        """Whether the newest checkpoint was not asked for its influence yet, and nobody is about to."""
        return self._told != self.version and not self._lock.locked()

    def tell(self, draws: int) -> None:
        """One episode of each new checkpoint, once: the influence of each term, and whether it is stuck."""
        with self._lock:
            if self._told == self.version:
                return
            self._told = self.version
            try:
                agent = self.entry.agent
                episodes = play_each(agent, [0], draws, _LONGEST)
            except BadInput:
                return
            found = drives(episodes, _CHEAP)
            seen: dict[str, Any] = {"steps": agent.steps, "stuck": "".join(map(str, find_stuck(episodes)))}
            seen["caveat"] = episodes.settings.caveat
            self.influence.append(seen if found is None else seen | {"influence": found})

    def as_dict(self, since: int) -> dict[str, Any]:
        """What the page draws; lines from number `since` on."""
        entry = self.entry
        live = read_live(entry.folder) if entry.folder is not None else None
        lines = [] if live is None else live["lines"]
        return {
            "id": entry.id, "training": entry.folder is not None and holder_of(entry.folder / LOCK) is not None,
            "version": self.version, "head": None if live is None else live["head"], "count": len(lines),
            "lines": lines[since:], "first": min(since, len(lines)), "influence": self.influence,
        }  # fmt: skip


class RunWatchers:
    """All runs of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._runs: dict[str, RunWatcher] = {}

    def _of(self, entry: Entry) -> RunWatcher:
        return self._runs.setdefault(entry.id, RunWatcher(entry))

    def all(self) -> dict[str, Any]:
        """Which runs are being trained, and which checkpoint of each is the newest."""
        found = []
        for entry in list(self._library.entries.values()):
            one = self._of(entry)
            one.look()
            busy = entry.folder is not None and holder_of(entry.folder / LOCK) is not None
            found.append({"id": entry.id, "training": busy, "version": one.version})
        return {"runs": found, "followed": any(one.entry.folder is not None for one in self._runs.values())}

    def one(self, name: str, since: int) -> dict[str, Any]:
        """All that there is to draw of one run."""
        followed = self._of(self._library.entry(name))
        followed.look()
        if followed.entry.folder is not None and followed.due:
            # in a thread of its own: the curves need not wait for it
            draws = next(iter(self._library.entries.values())).settings["seed"]
            threading.Thread(target=followed.tell, args=(draws,), daemon=True).start()
        return followed.as_dict(max(since, 0))
