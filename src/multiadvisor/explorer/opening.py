"""Opening the explorer: on a port of this machine, in the browser where there is a screen, or into one file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput
from multiadvisor.explorer.library import Library
from multiadvisor.runs.artists import end_idle
from multiadvisor.storage.files import check_writable, write_atomically

_HEAD = 8 << 10  # bytes of a page in which its title stands


def serve(library: Library, port: int, browser: bool, as_json: bool = False, view: str | None = None) -> None:
    """Print the address, open it at this view, and serve until Ctrl-C."""
    require("explorer")
    from multiadvisor.explorer.server import Explorer, address, serving

    explorer = Explorer(library)
    shown: list[str] = []
    where = f"&view={view}" if view else ""

    def tell(used: str = "") -> None:
        if not shown or used == shown[-1]:
            shown.append(explorer.keys.ticket())
            page = address(taken, shown[-1]) + where
            print(json.dumps({"address": page, "port": taken}) if as_json else page, flush=True)

    explorer.on_enter = tell
    # the server has a thread of its own, so that this works inside a notebook's event loop as well
    with contextlib.suppress(KeyboardInterrupt), serving(explorer, port) as taken:
        if port not in (0, taken):
            print(f"port {port} is in use: took {taken}", file=sys.stderr)
        tell()
        explorer.warm()
        print("each address opens the page once, then the next one is shown here; Ctrl-C ends", file=sys.stderr)
        if os.environ.get("SSH_CONNECTION"):
            print(f"from your own machine: ssh -L {taken}:127.0.0.1:{taken} HOST, the same port twice", file=sys.stderr)
        if browser and has_display():
            _open(address(taken, explorer.keys.ticket()) + where)
        while True:
            time.sleep(0.5)
    end_idle()  # in a notebook nothing else would, before it ends


def has_display() -> bool:
    """Whether there is a screen to open a browser on."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(page: str) -> None:
    import webbrowser

    # some browsers only return when they are closed
    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()


def check_place(file: Path) -> None:
    """Refuse a file that cannot be written, or that is none of ours, before any episode is played."""
    if file.is_dir():
        raise BadInput(f"cannot export to {str(file)!r}: it is a folder, name a file")
    check_writable(file.parent)
    if file.exists() and not _replaceable(file):
        raise BadInput(f"{str(file)!r} already exists and is not an exported page: name another file")


def _replaceable(file: Path) -> bool:
    """Whether a file is an exported page, or empty: of anything else the owner would miss it."""
    if not file.is_file():
        return False
    try:
        with file.open("rb") as page:
            head = page.read(_HEAD)
    except OSError as error:
        raise BadInput(f"cannot read {str(file)!r}, which would be replaced: {error.strerror}") from None
    return not head or (head.startswith(b"<!doctype html>") and b"<title>multiadvisor explorer</title>" in head)


def write_page(library: Library, file: Path) -> int:
    """The first episode of the first two runs of one task as one file; its size in bytes."""
    from multiadvisor.explorer.onefile import html

    check_place(file)
    entries = list(library.entries.values())
    if not entries:
        raise BadInput("no run to export: name one or two folders of saved runs")
    names = [entry.id for entry in entries[:2] if entry.task["name"] == entries[0].task["name"]]
    content = html(library, names, 0).encode()
    write_atomically(file, content)
    return len(content)
