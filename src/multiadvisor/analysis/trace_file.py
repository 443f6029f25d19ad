"""The file of a trace: recorded episodes, step by step, in one small file.

A file is one line of JSON, the header, and after it the arrays as safetensors, packed, both under SHA-256; reading
never runs code. `analysis.episodes` records episodes, `runs.trace` plays them again.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.analysis.episodes import Episodes, Pictures
from multiadvisor.errors import BadInput
from multiadvisor.storage.files import check_replaceable, write_atomically
from multiadvisor.storage.sealed import digest, seal, unseal

FORMAT = 1
KIND = "multiadvisor trace"
_FIRST, _MARK = b'{"actions":[', f'"kind":"{KIND}"'.encode()
"""How every header begins, as its keys are sorted, and what each of them has."""
_LARGEST_HEADER = 16 << 20
_LARGEST = 4 << 30  # bytes of all arrays, unpacked
_SHAPES = {
    "length": "G", "terminated": "G", "choice": "T", "explored": "T", "reward": "Tn", "gain": "T", "asked": "TN",
    "applied": "TN", "goals": "TN", "push": "TN", "advice": "TN*", "observed": "P*", "taken": "T*", "x": "P*",
}  # fmt: skip
"""The axes of the arrays: episodes, steps, positions (steps and the last of each episode), the task's advisors, those
who may be asked; a star is any."""


_OPTIONAL = ("goals", "push", "observed", "taken", "x")
_HEADER = {"actions", "apart", "asked", "draws", "epsilon", "own_score", "seed", "trained"}


def check_place(path: Path) -> None:
    """Refuse a file that cannot be written before any episode is played."""
    check_replaceable(path, "save the trace to", "a trace", _is_trace, _LARGEST_HEADER)


def _is_trace(head: bytes) -> bool:
    """Whether a file that begins like this is a trace, be it torn."""
    line, end, _ = head.partition(b"\n")
    return line.startswith(_FIRST) and (_MARK in line or not end)


# ---- writing ---------------------------------------------------------------------------------------------------------
def write_trace(path: Path, trace: Episodes) -> None:
    """Save, or leave what was there before."""
    from safetensors.numpy import save

    check_place(path)
    tensors = {name: _smallest(array) for name in _SHAPES if (array := getattr(trace, name)) is not None}
    if trace.pictures is not None:
        tensors |= _encoded(trace.pictures)
    content = zlib.compress(save({name: np.ascontiguousarray(array) for name, array in tensors.items()}))
    values = {"bytes": len(content), "sha256": digest(content)}
    write_atomically(path, seal(KIND, FORMAT, {**trace.header, "values": values}) + b"\n" + content)


def _smallest(array: np.ndarray) -> np.ndarray:
    """Whole numbers in the fewest bytes; others as they are."""
    if array.dtype.kind != "i":
        return array
    ends = array.min(initial=0), array.max(initial=0)
    return array.astype(np.result_type(*(np.min_scalar_type(int(end)) for end in ends)))


def _encoded(pictures: Pictures) -> dict[str, np.ndarray]:
    return {
        "pictures": np.frombuffer(b"".join(pictures.content), np.uint8),
        "picture_ends": np.cumsum([len(one) for one in pictures.content]).astype(np.int64),
        "picture_of": pictures.of.astype(np.int32),
    }


# ---- reading ---------------------------------------------------------------------------------------------------------
def read_trace(path: str | Path) -> Episodes:
    """A trace from its file, or an error of one sentence: a torn or changed one is refused."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    remedy = "record it again, or restore it from a copy"
    damaged = BadInput(f"the trace {str(path)!r} is damaged or was changed: {remedy}")
    header, content = _halves(Path(path), remedy)
    values = header.pop("values", None)
    if not isinstance(values, dict) or digest(content) != values.get("sha256"):
        raise damaged
    try:
        return _decoded(header, load(_unpacked(content)))
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError, OverflowError, zlib.error):
        raise damaged from None


def _halves(path: Path, remedy: str) -> tuple[dict[str, Any], bytes]:
    """The header of a trace, and what follows it; nothing where the file has another length than the header says."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{str(path)!r} is not a trace but a folder or a device: name a file")
        with path.open("rb") as file:
            line = file.readline(_LARGEST_HEADER)
            if not _is_trace(line):
                raise BadInput(f"{str(path)!r} is not a trace: multiadvisor evaluate RUN --trace FILE writes one")
            header = unseal(line.rstrip(b"\n"), KIND, FORMAT, path, remedy)
            values = header.get("values")
            size = values.get("bytes") if isinstance(values, dict) else None
            # it was changed, which is known without reading it, however long it is
            whole = isinstance(size, int) and len(line) + size == os.fstat(file.fileno()).st_size
            return header, file.read() if whole else b""
    except OSError as error:
        raise BadInput(f"cannot read the trace {str(path)!r}: {error.strerror}") from None


def _unpacked(content: bytes) -> bytes:
    packed = zlib.decompressobj()
    found = packed.decompress(content, _LARGEST)
    if not packed.eof:
        raise ValueError("size")
    return found


def _decoded(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> Episodes:
    """The trace that the arrays describe; any inconsistency raises."""
    arrays: dict[str, Any] = {
        name: array.astype(np.int64) if array.dtype.kind in "iu" else array
        for name in _SHAPES
        if (array := tensors.get(name) if name in _OPTIONAL else tensors[name]) is not None
    }
    trace = Episodes(header=header, pictures=_pictures(tensors), **arrays)
    total, given = int(trace.length.sum()), len(trace)
    sizes = {"G": given, "T": total, "P": total + given, "n": len(header["advisors"]), "N": len(header["asked"])}
    sound = (
        all(size == sizes.get(axis, size) for name, array in arrays.items()
            for axis, size in zip(_SHAPES[name], array.shape, strict=True)),
        given > 0 and (trace.length > 0).all() and trace.terminated.dtype == trace.asked.dtype == bool,
        trace.choice.min() >= 0 and trace.choice.max() < len(header["actions"]),
        trace.advice.shape[2] in (0, len(header["actions"])) and trace.action.shape[0] == total,
        trace.taken is None or len(header["box"]["names"]) == trace.taken.shape[1],
        trace.pictures is None or len(trace.pictures.of) == total + given,
        set(header) >= _HEADER and set(header["task"]) >= {"name", "options", "identity"},
        "seed" in header["settings"] and header["precision"] in ("float32", "float64"),
        len(trace.names) == sizes["N"] and trace.weights.shape == (sizes["n"],),
    )  # fmt: skip
    if not all(sound):
        raise ValueError("its parts do not fit each other")
    return trace


def _pictures(tensors: dict[str, np.ndarray]) -> Pictures | None:
    """What was encoded; any inconsistency raises."""
    if "pictures" not in tensors:
        return None
    content, ends, of = (tensors[name] for name in ("pictures", "picture_ends", "picture_of"))
    starts = np.concatenate([[0], ends[:-1]])
    ordered = of.min() >= 0 and of.max() < len(ends) and (ends > starts).all()
    if not ordered or ends[-1] != len(content) or content.dtype != np.uint8:
        raise ValueError("pictures")
    whole = content.tobytes()
    return Pictures(tuple(whole[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)), of.astype(np.int64))
