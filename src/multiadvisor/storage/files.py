"""Writing files so that a reader, or a crash, finds the old one or the new one and nothing between."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from multiadvisor.errors import BadInput

_SYNCS = 16  # that wait at the same time

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


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


def open_regular(path: Path) -> BinaryIO:
    """A file for reading; OSError for what is none: a pipe would wait for ever, and a device never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is not a file")
    return os.fdopen(handle, "rb")


def write_atomically(path: Path, content: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = _part(path)
    except OSError as error:
        raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)  # while it is locked: it is ours until it has its real name
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from None
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def write_together(folder: Path, contents: dict[str, bytes]) -> None:
    """Several files, each atomically, in a folder where nobody else writes.

    Their fsyncs wait side by side: a file system settles those that wait together in one go.
    """
    parts = {name: folder / f".{name}.part" for name in contents}

    def write(name: str) -> None:
        handle = os.open(parts[name], os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(contents[name])
            file.flush()
            os.fsync(handle)

    try:
        with ThreadPoolExecutor(min(_SYNCS, len(parts))) as pool:
            list(pool.map(write, parts))
        for name in list(parts):
            os.replace(parts.pop(name), folder / name)
        _sync_folder(folder)
    except OSError as error:
        raise BadInput(f"cannot write to {str(folder)!r}: {error.strerror}; what is finished so far is kept") from None
    finally:
        for part in parts.values():
            with contextlib.suppress(OSError):
                os.unlink(part)


def _part(path: Path) -> tuple[int, str]:
    """A new file beside `path`, locked: the lock dies with its process, and says that somebody still writes."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        if not _locked(handle) or os.path.exists(name):
            return handle, name
        os.close(handle)  # taken for a leftover before it was locked


def _locked(handle: int) -> bool:
    """Whether a file is locked by us now; not where another has it, or where there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, AttributeError):
        return False
    return True


def remove_leftovers(folder: Path, *names: str) -> None:
    """Remove what processes that were killed left of files of these names (patterns); of the living, nothing."""
    for pattern in names:
        for path in folder.glob(f".{pattern}.????????.part"):  # as `mkstemp` names them
            with contextlib.suppress(OSError), open_regular(path) as file:
                if _locked(file.fileno()):
                    path.unlink()


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
