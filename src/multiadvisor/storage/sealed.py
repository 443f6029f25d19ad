"""JSON files that carry their own SHA-256: what was changed, torn or made by a newer version is refused, by name.

>>> unseal(seal("multiadvisor example", 1, {"answer": 42}), "multiadvisor example", 1, Path("x"), "remove it")
{'answer': 42}
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

from multiadvisor.errors import BadInput, short
from multiadvisor.storage.files import read_regular
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


NUMBER = "a finite number"


def fits(data: Any, shape: Any) -> bool:
    """Whether JSON data have a shape: a type, NUMBER, None, a tuple of alternatives, [shape] for a list of any length,
    {str: shape} for a table of any names, or a table of these names, of which those with a question mark may lack.

    >>> fits({"a": 1, "b": [0.5, None]}, {"a": int, "b": [(NUMBER, None)], "c?": str})
    True
    >>> fits({"a": True}, {"a": int}), fits({"a": 1, "d": 2}, {"a": int}), fits(float("nan"), NUMBER)
    (False, False, False)
    """
    if isinstance(shape, tuple):
        return any(fits(data, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(data, list) and all(fits(one, shape[0]) for one in data)
    if isinstance(shape, dict):
        if not isinstance(data, dict):
            return False
        if str in shape:
            return all(fits(one, shape[str]) for one in data.values())
        named = {name.removesuffix("?"): part for name, part in shape.items()}
        whole = {*data} <= {*named} and {name for name in shape if not name.endswith("?")} <= {*data}
        return whole and all(fits(one, named[name]) for name, one in data.items())
    if shape is NUMBER:
        return type(data) in (int, float) and abs(data) <= sys.float_info.max
    return data is None if shape is None else type(data) is shape


def seal(kind: str, form: int, body: dict[str, Any]) -> bytes:
    """The file's content: the body, what it is, and a checksum of both."""
    return with_checksum({**body, "kind": kind, "format": form, "version": VERSION})


def with_checksum(whole: dict[str, Any]) -> bytes:
    """The text of the data with their own SHA-256 among them."""
    return canonical({**whole, "sha256": digest(canonical(whole))})


def parse_of_kind(content: bytes, kind: str, form: int, path: Path, remedy: str) -> dict[str, Any]:
    """What a file of this kind says, its checksum not yet looked at; `remedy` ends the sentence that refuses it."""
    try:
        whole = strict_json(content)
    except ValueError:
        raise BadInput(f"{str(path)!r} is damaged or was changed: it is not valid JSON, {remedy}") from None
    if not isinstance(whole, dict) or whole.get("kind") != kind:
        raise BadInput(f"{str(path)!r} is no {kind.removeprefix('multiadvisor ')} of multiadvisor: {remedy}")
    made_by, version = whole.get("format"), whole.get("version")
    if isinstance(made_by, int) and made_by > form:
        raise BadInput(f"{str(path)!r} was made by multiadvisor {short(str(version))}: upgrade to read it")
    if type(made_by) is not int or made_by < 1 or not isinstance(version, str):
        raise BadInput(f"{str(path)!r} does not say what made it: {remedy}")
    return whole


def checksum_differs(path: Path, remedy: str) -> BadInput:
    """Why a file is refused whose checksum is not that of what it holds."""
    return BadInput(f"{str(path)!r} is damaged or was changed: its checksum differs, {remedy}")


def unseal(content: bytes, kind: str, form: int, path: Path, remedy: str) -> dict[str, Any]:
    """The body, once the checksum is right."""
    whole = parse_of_kind(content, kind, form, path, remedy)
    given = whole.pop("sha256", None)
    if given != digest(canonical(whole)) or canonical({**whole, "sha256": given}) != content:
        raise checksum_differs(path, remedy)
    return {key: value for key, value in whole.items() if key not in ("kind", "format", "version")}


def read_sealed(path: Path, kind: str, form: int, remedy: str) -> dict[str, Any]:
    """`unseal` a file."""
    content = read_regular(path, _LARGEST + 1)
    if len(content) > _LARGEST:
        raise BadInput(f"{str(path)!r} is larger than any {kind.removeprefix('multiadvisor ')}: {remedy}")
    return unseal(content, kind, form, path, remedy)
