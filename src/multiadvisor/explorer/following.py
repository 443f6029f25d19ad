"""Following runs that another process trains: it writes files, and these are looked at again and again."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path
from typing import Any

from multiadvisor.analysis.episode_report import drives
from multiadvisor.analysis.episodes import play
from multiadvisor.analysis.stuck import find_stuck
from multiadvisor.errors import BadInput
from multiadvisor.explorer.library import Entry, Library, read_entry
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
    """One run in a folder: which checkpoint was seen last, and what an episode of each told."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        self.entry, self.folder, self.version = entry, folder, 0
        self.stamp = self._stamp()
        self.influence: list[dict[str, Any]] = []
        self.told, self._lock = -1, threading.Lock()

    def _stamp(self) -> int:
        try:
            return (self.folder / "agent.json").stat().st_mtime_ns
        except OSError:
            return 0

    def look(self) -> None:
        """Take up a newer checkpoint, where there is one."""
        entry, stamp = self.entry, self._stamp()
        if stamp in (0, self.stamp):
            return
        try:
            newer = read_entry(self.folder, entry.name, entry.named)
        except BadInput:
            return  # it is being replaced at this moment: next time
        with entry.lock:
            entry.evaluations, entry.settings, entry.task = newer.evaluations, newer.settings, newer.task
            entry.loaded, entry.known = None, {}
            entry.episodes.clear()
        self.stamp = stamp
        self.version += 1

    @property
    def training(self) -> bool:
        """Whether somebody trains it now."""
        return holder_of(self.folder / LOCK) is not None

    def tell(self, draws: int) -> None:
        """One episode of each new checkpoint, once: the influence of each term, and whether it is stuck."""
        with self._lock:
            if self.told == self.version:
                return
            self.told = self.version
            with contextlib.suppress(BadInput):
                agent = self.entry.agent
                episodes = play(agent, 1, 0, draws=draws, longest=_LONGEST)
                found, stuck = drives(episodes, _CHEAP), "".join(map(str, find_stuck(episodes)))
                seen = {"steps": agent.steps, "stuck": stuck, "caveat": episodes.settings.caveat}
                self.influence.append(seen if found is None else seen | {"influence": found})

    def as_dict(self, since: int) -> dict[str, Any]:
        """What the page draws; lines from number `since` on."""
        live = read_live(self.folder) or {"head": None, "lines": []}
        lines = live["lines"]
        return {"head": live["head"], "count": len(lines), "lines": lines[since:], "influence": self.influence}


class RunWatchers:
    """The runs of a library that lie in folders."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._runs: dict[str, RunWatcher] = {}

    def all(self) -> dict[str, Any]:
        """Which runs are being trained, and which checkpoint of each is the newest."""
        for entry in list(self._library.entries.values()):
            if entry.folder is not None:
                self._runs.setdefault(entry.id, RunWatcher(entry, entry.folder)).look()
        runs = [{"id": name, "training": one.training, "version": one.version} for name, one in self._runs.items()]
        return {"runs": runs}

    def one(self, name: str, since: int) -> dict[str, Any]:
        """All that there is to draw of one run."""
        self._library.entry(name)
        self.all()
        followed = self._runs.get(name)
        if followed is None:
            return {"head": None, "count": 0, "lines": [], "influence": []}
        if followed.told != followed.version:
            # in a thread of its own: the curves need not wait for it
            threading.Thread(target=followed.tell, args=(self._library.draws,), daemon=True).start()
        return followed.as_dict(max(since, 0))
