"""One process at a time in a folder: a lock that dies with its process, in a file that says whose it is."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from multiadvisor.errors import BadInput
from multiadvisor.storage.files import check_writable
from multiadvisor.storage.sealed import canonical

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Hold the file `name` in the folder, which is made where there is none; refused while another process holds it.

    The file goes at the end, and so does a folder that was made for it and in which nothing else was put.
    """
    if fcntl is None:
        raise BadInput("saving runs needs a POSIX system, for its locks: use Linux, macOS or WSL")
    check_writable(folder)
    path, made = folder / name, not folder.exists()
    handle = _acquire(path)
    try:
        with contextlib.suppress(OSError):  # on a full disk the name is missing, the lock is not
            os.ftruncate(handle, 0)
            os.write(handle, canonical({"pid": os.getpid(), "host": socket.gethostname()}))
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # while it is held: who waits for this very file sees that it is gone, and makes another
        os.close(handle)
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _acquire(path: Path) -> int:
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except FileNotFoundError:
            continue  # the folder went with its last lock between the two
        except OSError as error:
            raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(handle, path):
                return handle
            os.close(handle)  # its holder took it away before it let go
        except OSError as error:
            where, holder = str(path.parent), _holder(handle)
            os.close(handle)
            if isinstance(error, BlockingIOError):
                raise BadInput(f"{where!r} is in use by {holder}: wait for it, or stop it") from None
            raise BadInput(f"cannot lock {where!r}: {error.strerror}, choose a folder on a local disk") from None


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> str:
    try:
        who = json.loads(os.pread(handle, 1000, 0))
        return f"process {int(who['pid'])} on {str(who['host'])[:100]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def holder_of(path: Path) -> str | None:
    """Who holds this lock at this moment."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(handle)
    except (OSError, AttributeError):  # without locks nobody holds one
        return None
    finally:
        os.close(handle)
    return None
