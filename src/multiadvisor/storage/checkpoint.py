"""Checkpoints: arrays as safetensors, the rest as JSON, both under SHA-256. Loading never runs code.

A folder holds `agent.json` and the values file it names. The values are written first, under the name of their own
digest; the rename of `agent.json` then switches from the old state to the new one in one step.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.storage.files import open_regular, read_regular, remove_leftovers, write_atomically
from multiadvisor.storage.sealed import checksum_differs, digest, parse_of_kind

FORMAT = 1
KIND = "multiadvisor agent"
LARGEST_JSON = 64 << 20  # bytes
MOST_ENTRIES = 2_000_000  # in all lists and tables of the JSON: each takes up to some 300 bytes when it is read
_TRIES = 100  # another process may save in the very moment of reading, but hardly so often
_SEAL = b'\n "sha256": "'
_REMEDY = "restore it from a copy"


class Checkpoint(NamedTuple):
    """What a folder holds."""

    header: dict[str, Any]
    tensors: dict[str, np.ndarray]


def _canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def seal_header(header: dict[str, Any]) -> bytes:
    """The content of agent.json: the header and its checksum."""
    return _canonical({**header, "sha256": digest(_canonical(header))})


def _too_large(content: bytes) -> str | None:
    """Why JSON is refused, when it is written as when it is read: what a few bytes ask for may be gigabytes."""
    if len(content) > LARGEST_JSON:
        return f"it has {len(content)} bytes, and {LARGEST_JSON} are read"
    entries = sum(content.count(mark) for mark in (b",", b"[", b"{"))
    return f"it has some {entries} entries, and {MOST_ENTRIES} are read" if entries > MOST_ENTRIES else None


def write_checkpoint(folder: Path, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Save, or leave what was there before."""
    from safetensors.numpy import save

    if folder.exists() and not folder.is_dir():
        raise BadInput(f"cannot save to {str(folder)!r}: it is a file, name a folder")
    content = save({name: np.asarray(array, order="C") for name, array in tensors.items()})  # scalars stay scalars
    known = digest(content)
    values = folder / f"values-{known[:16]}.safetensors"
    header = {"format": FORMAT, "kind": KIND, **header, "values": {"file": values.name, "sha256": known}}
    text = seal_header(header)
    if reason := _too_large(text):
        raise BadInput(f"the record for {str(folder)!r} is too large to be read again ({reason}): keep less in it")
    remove_leftovers(folder, "agent.json", "values-*.safetensors")
    write_atomically(values, content)
    write_atomically(folder / "agent.json", text)
    for old in folder.glob("values-*.safetensors"):
        if old.name != values.name:
            with contextlib.suppress(OSError):
                old.unlink()


def read_header(folder: Path) -> dict[str, Any]:
    """agent.json, checked."""
    path = folder / "agent.json"
    if folder.is_file():
        raise BadInput(f"{str(folder)!r} is a file: name the folder of a run, which has agent.json in it")
    if not path.exists():
        raise BadInput(f"no run in {str(folder)!r}: there is no agent.json in it; train --out FOLDER makes one")
    content = read_regular(path, LARGEST_JSON + 1)
    if _too_large(content):
        raise BadInput(f"{str(path)!r} is too large for a checkpoint")
    header = parse_of_kind(content, KIND, FORMAT, path, _REMEDY)
    if not _sealed(content, header.pop("sha256", None)):
        raise checksum_differs(path, _REMEDY)
    return header


def _sealed(content: bytes, known: Any) -> bool:
    """Whether the checksum is that of all other lines; `_canonical` gives it a line of its own, and never the last."""
    before, found, after = content.partition(_SEAL)
    given = after[:64].decode(errors="replace")
    return bool(found) and after[64:67] == b'",\n' and digest(before + after[66:]) == given == known


def read_checkpoint(folder: Path) -> Checkpoint:
    """Load, or say what is wrong; the values are looked at only once their checksum is right."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    header, path, content = _read_both(folder)
    if digest(content) != header["values"].get("sha256"):
        raise checksum_differs(path, _REMEDY)
    try:
        return Checkpoint(header, load(content))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{str(path)!r} holds no values that can be read: {short(str(error))}") from None


def _read_both(folder: Path) -> tuple[dict[str, Any], Path, bytes]:
    """The header, the values' file and what is in it; again, where another process saves meanwhile and removes it."""
    before = None
    for _ in range(_TRIES):
        header = read_header(folder)
        entry = header.get("values")
        name = entry.get("file") if isinstance(entry, dict) and {*entry} == {"file", "sha256"} else None
        if not isinstance(name, str) or Path(name).name != name or "\0" in name:
            raise BadInput(f"{str(folder / 'agent.json')!r} names no values file: {_REMEDY}")
        path = folder / name
        try:
            with open_regular(path) as file:
                return header, path, file.read()
        except MemoryError:
            raise BadInput(f"{str(path)!r} is larger than the memory of this machine: it cannot be loaded") from None
        except OSError as error:
            reason = error.strerror
            if not isinstance(error, FileNotFoundError) or name == before:
                break
            before = name
    raise BadInput(f"cannot read {short(str(path), 200)!r}: {reason}; {_REMEDY}") from None
