"""One environment, several who play in it: one at a time, and each can tell whether somebody else was there.

Two agents of one task share its environment, and a page or a program with threads may let both play at once. Whoever
plays takes the lock first, for an episode or for some steps of training, and then looks who had it last.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from types import TracebackType
from typing import Any, Self


class EnvironmentLock:
    """A lock that is handed on in the order of asking, so that a long training lets others in from time to time.

    Whoever holds it may take it again.
    """

    def __init__(self) -> None:
        self.user: object = None
        """Who stepped the environment last: nobody else knows where it is."""
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._holder: int | None = None  # a thread
        self._depth = 0

    def __enter__(self) -> Self:
        thread, place = threading.get_ident(), object()
        with self._changed:
            if self._holder != thread:
                self._waiting.append(place)
                try:
                    self._changed.wait_for(lambda: self._holder is None and self._waiting[0] is place)
                    self._holder = thread
                finally:  # also where Ctrl-C has ended the waiting
                    self._waiting.remove(place)
                    self._changed.notify_all()
            self._depth += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._changed:
            self._depth -= 1
            if self._depth == 0:
                self._holder = None
                self._changed.notify_all()


_locks: dict[int, EnvironmentLock] = {}
_making = threading.Lock()


def lock_of(env: Any) -> EnvironmentLock:
    """The one lock of an environment, however it is wrapped, as long as it lives."""
    bare = env.unwrapped
    with _making:
        if id(bare) not in _locks:
            _locks[id(bare)] = EnvironmentLock()
            weakref.finalize(bare, _locks.pop, id(bare), None)
        return _locks[id(bare)]
