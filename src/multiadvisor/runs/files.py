"""Writing files so that a reader, or a crash, finds the old one or the new one and nothing between."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from multiadvisor.errors import BadInput


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written before hours are spent on what should go there; nothing is left behind."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{str(folder)!r} is a file: name a folder")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise BadInput(f"cannot write {str(folder)!r}: {error.strerror}") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from None
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
