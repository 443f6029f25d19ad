"""Writing files so that a reader, or a crash, finds the old one or the new one and nothing between."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from multiadvisor.errors import BadInput, short

_SYNCS = 16  # that wait at the same time

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def plainly(doing: str) -> Iterator[None]:
    """What the system refuses, in one sentence."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot {doing}: {error.strerror}") from None


def named(what: str, path: Any, kind: str = "folder") -> Path:
    """A path that a user gave, or an error that says what it should be."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise BadInput(f"{what} is {short(repr(path))}: name a {kind}")
    return Path(path)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written before hours are spent on what should go there; nothing is left behind."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{str(folder)!r} is a file: name a folder")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    with plainly(f"write {str(folder)!r}"), tempfile.TemporaryFile(dir=nearest):
        pass


def open_regular(path: Path) -> BinaryIO:
    """A file for reading; OSError for what is none: a pipe would wait for ever, and a device never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is not a file")
    return os.fdopen(handle, "rb")


def read_regular(path: Path, most: int) -> bytes:
    """The first bytes of a file, so many at most."""
    with plainly(f"read {str(path)!r}"), open_regular(path) as file:
        return file.read(most)


def check_replaceable(file: Path, doing: str, what: str, mine: Callable[[bytes], bool], size: int) -> None:
    """Refuse a file that cannot be written, or whose owner would miss it, before anything is played for it: only what
    is empty, or `mine` by its first bytes, is replaced."""
    if file.is_dir():
        raise BadInput(f"cannot {doing} {str(file)!r}: it is a folder, name a file")
    check_writable(file.parent)
    if file.exists() and (not file.is_file() or ((head := read_regular(file, size)) and not mine(head))):
        raise BadInput(f"{str(file)!r} already exists and is not {what}: name another file")


def write_atomically(path: Path, content: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    with plainly(f"write {str(path)!r}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
        _sync_folder(path.parent)


def write_together(folder: Path, contents: dict[str, bytes]) -> None:
    """Several files, each atomically.

    Their fsyncs wait side by side: a file system settles those that wait together in one go.
    """
    try:
        with ThreadPoolExecutor(min(_SYNCS, len(contents))) as pool:
            list(pool.map(_replace, (folder / name for name in contents), contents.values()))
        _sync_folder(folder)
    except OSError as error:
        raise BadInput(f"cannot write to {str(folder)!r}: {error.strerror}; what is finished so far is kept") from None


def _replace(path: Path, content: bytes) -> None:
    handle, name = _part(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
            os.replace(name, path)  # while it is locked: it is ours until it has its real name
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _part(path: Path) -> tuple[int, str]:
    """A new file beside `path`, locked: the lock dies with its process, and says that somebody still writes."""
    while True:
        name = str(path.with_name(f".{path.name}.{secrets.token_hex(4)}.part"))
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
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
        for path in folder.glob(f".{pattern}.????????.part"):
            with contextlib.suppress(OSError), open_regular(path) as file:
                if _locked(file.fileno()):
                    path.unlink()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
