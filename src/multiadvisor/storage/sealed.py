"""JSON files that carry their own SHA-256: what was changed, torn or made by a newer version is refused, by name.

>>> unseal(seal("multiadvisor example", 1, {"answer": 42}), "multiadvisor example", 1, Path("x"), "remove it")
{'answer': 42}
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from multiadvisor.errors import BadInput, short
from multiadvisor.version import VERSION

_LARGEST = 256 << 20


def canonical(data: Any) -> bytes:
    """One text for equal data: sorted keys, no spaces, ASCII, finite numbers only.

    >>> canonical({"b": 1.0, "a": [True, None]})
    b'{"a":[true,null],"b":1.0}'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def strict_json(content: bytes | str) -> Any:
    """JSON without duplicate keys, NaN, Infinity or numbers as large; ValueError for anything else."""
    try:
        return json.loads(content, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key appears twice")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is too large")
    return value


def seal(kind: str, form: int, body: dict[str, Any]) -> bytes:
    """The file's content: the body, what it is, and a checksum of both."""
    whole = {**body, "kind": kind, "format": form, "version": VERSION}
    return canonical({**whole, "sha256": digest(canonical(whole))})


def unseal(content: bytes, kind: str, form: int, path: Path, remedy: str) -> dict[str, Any]:
    """The body, once the checksum is right; `remedy` ends the sentence that refuses it."""
    try:
        whole = strict_json(content)
    except ValueError:
        raise BadInput(f"{str(path)!r} is damaged or was changed: it is not valid JSON, {remedy}") from None
    if not isinstance(whole, dict) or whole.get("kind") != kind:
        raise BadInput(f"{str(path)!r} is no {kind.removeprefix('multiadvisor ')} of multiadvisor: {remedy}")
    if isinstance(whole.get("format"), int) and whole["format"] > form:
        raise BadInput(f"{str(path)!r} was made by multiadvisor {short(str(whole.get('version')))}: upgrade to read it")
    given = whole.pop("sha256", None)
    if given != digest(canonical(whole)) or canonical({**whole, "sha256": given}) != content:
        raise BadInput(f"{str(path)!r} was changed after it was written: its checksum differs, {remedy}")
    return {key: value for key, value in whole.items() if key not in ("kind", "format", "version")}


def read_sealed(path: Path, kind: str, form: int, remedy: str) -> dict[str, Any]:
    """`unseal` a file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"{str(path)!r} is larger than any {kind.removeprefix('multiadvisor ')}: {remedy}")
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror}") from None
    return unseal(content, kind, form, path, remedy)
