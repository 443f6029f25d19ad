"""Results that a program of `benchmarks` wrote, for `multiadvisor reproduce ... --from FILE`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from multiadvisor.errors import BadInput


def given_results(read: Callable[[str], dict[str, Any]], writer: str) -> Callable[[Path], dict[str, dict[str, Any]]]:
    """A reader of files with results by their job, whose text `read` understands and the program `writer` wrote."""

    def results(path: Path) -> dict[str, dict[str, Any]]:
        try:
            found = read(path.read_text("utf-8"))
            if not all(isinstance(one, dict) for one in found.values()):
                raise TypeError("a result is a table")
        except OSError as error:
            raise BadInput(f"cannot read {str(path)!r}: {error.strerror}; give a file that {writer} wrote") from None
        except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
            raise BadInput(f"{str(path)!r} holds no runs: give a file that {writer} wrote") from None
        return found

    return results
