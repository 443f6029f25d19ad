"""The environment's own pictures of an episode: drawn a few at a time, so that the first ones come at once."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from multiadvisor.analysis.trace_file import Pictures
from multiadvisor.explorer.bundle import pack
from multiadvisor.explorer.library import Library
from multiadvisor.runs.pictures import LIMIT, SIGNATURE, Painting, facts_of
from multiadvisor.runs.trace import Trace

_AT_ONCE = 12  # pictures to an answer
_KEPT = 6  # episodes whose pictures are held


class Albums:
    """The pictures of a library's episodes."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._paintings: OrderedDict[tuple[str, int, int], Painting] = OrderedDict()
        self._lock = threading.Lock()

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

    def thumbnail(self, name: str, number: int, step: int) -> str | None:
        """One picture as text: a data address, or the text itself; None where there is none, or a board."""
        if self._library.entry(name).agent.task.world is not None:
            return None
        trace, episode = self._library.recorded(name, number)
        picture = self._painting(name, trace, episode).look_at(step)
        if picture is None:
            return None
        if picture.startswith(SIGNATURE):
            return f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        return picture.decode("utf-8", "replace")


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
