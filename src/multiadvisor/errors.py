"""The one exception that users meet: a sentence that names the culprit and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInput(ValueError):
    """Something the caller gave cannot be used; the message says what and what to do instead.

    The command line prints it as one line and exits with code 2.
    """


class Diverged(BadInput):
    """Learning has gone astray: what was saved before it is better than what there is now."""


def unknown(kind: str, name: object, known: Iterable[str]) -> BadInput:
    """An unknown name, with the closest known one, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(str(name)[:100], names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}"
    return BadInput(f"unknown {kind} {short(str(name))!r}: {hint}")


def short(text: str, most: int = 60) -> str:
    """A text of others for one line of ours."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."
