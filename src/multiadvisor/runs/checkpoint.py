"""Checkpoints: arrays as safetensors, the rest as JSON, both under SHA-256. Loading never runs code.

A folder holds `agent.json` and the values file it names. The values are written first, under the name of their own
digest; the rename of `agent.json` then switches from the old state to the new one in one step.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.errors import BadInput
from multiadvisor.runs.files import write_atomically
from multiadvisor.runs.sealed import strict_json

FORMAT = 1
KIND = "multiadvisor agent"
_LARGEST_JSON = 16 << 20


class Checkpoint(NamedTuple):
    """What a folder holds."""

    header: dict[str, Any]
    tensors: dict[str, np.ndarray]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def write_checkpoint(folder: Path, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Save, or leave what was there before."""
    from safetensors.numpy import save

    if folder.exists() and not folder.is_dir():
        raise BadInput(f"cannot save to {str(folder)!r}: it is a file, name a folder")
    content = save({name: np.asarray(array, order="C") for name, array in tensors.items()})  # scalars stay scalars
    digest = _digest(content)
    values = folder / f"values-{digest[:16]}.safetensors"
    header = {"format": FORMAT, "kind": KIND, **header, "values": {"file": values.name, "sha256": digest}}
    header["sha256"] = _digest(_canonical(header))
    write_atomically(values, content)
    write_atomically(folder / "agent.json", _canonical(header))
    for old in folder.glob("values-*.safetensors"):
        if old.name != values.name:
            with contextlib.suppress(OSError):
                old.unlink()


def read_header(folder: Path) -> dict[str, Any]:
    """agent.json, checked."""
    path = folder / "agent.json"
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise BadInput(f"{str(path)!r} is larger than any checkpoint's: it is not one")
        content = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"no run in {str(folder)!r}: there is no agent.json in it") from None
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror}") from None
    try:
        header = strict_json(content)
    except ValueError:
        raise BadInput(f"{str(path)!r} is torn or was changed: it is no valid JSON, restore it from a copy") from None
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise BadInput(f"{str(path)!r} is not the checkpoint of an agent")
    made_by = header.get("format")
    if isinstance(made_by, int) and made_by > FORMAT:
        raise BadInput(f"{str(path)!r} was made by multiadvisor {header.get('version')}: upgrade to read it")
    digest = header.pop("sha256", None)
    try:
        expected = _digest(_canonical(header))
        whole = _canonical({**header, "sha256": digest})
    except (TypeError, ValueError):
        expected, whole = "", b""
    if digest != expected or whole != content:
        raise BadInput(f"{str(path)!r} was changed after it was saved: its checksum differs, restore it from a copy")
    return header


def read_checkpoint(folder: Path) -> Checkpoint:
    """Load, or say what is wrong; the values are looked at only once their checksum is right."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    header = read_header(folder)
    entry = header.get("values")
    name = entry.get("file") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(name, str) or Path(name).name != name:
        raise BadInput(f"{str(folder / 'agent.json')!r} names no values file: restore it from a copy")
    path = folder / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror}") from None
    if _digest(content) != entry.get("sha256"):
        raise BadInput(f"{str(path)!r} is torn or was changed: its checksum differs, restore it from a copy")
    try:
        return Checkpoint(header, load(content))
    except (SafetensorError, ValueError, KeyError) as error:
        raise BadInput(f"{str(path)!r} holds no values that can be read: {error}") from None
