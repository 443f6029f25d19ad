"""`multiadvisor explore`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from multiadvisor.commands.parsing import Parser, parse
from multiadvisor.errors import BadInput


def run(arguments: Sequence[str]) -> int:
    """Open the explorer."""
    parser = Parser(
        "explore",
        "Look at trained agents in the browser: what each advisor wants, who won, why it is stuck. The page is served\n"
        "on this machine only, and nothing leaves it. Ctrl-C ends it.",
        "multiadvisor explore runs/a runs/b\n  multiadvisor explore runs/a --export game.html",
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of saved runs, or of many of them")
    parser.add_argument(
        "--port", type=int, default=8765, metavar="INT", help="port, or the next free one (default 8765)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument("--games", type=int, default=5, metavar="INT", help="games to choose from (default 5)")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="seed of the first game (default 0)")
    parser.add_argument("--trace", type=Path, action="append", default=[], metavar="FILE",
                        help="games recorded by `evaluate --trace`; may be given again")  # fmt: skip
    parser.add_argument("--export", type=Path, metavar="FILE", help="write the first game as one HTML file, and end")
    given = parse(parser, arguments)
    if not 0 <= given.port <= 65535:
        raise BadInput(f"port is {given.port}: choose it between 0 and 65535")
    for name, least in (("games", 1), ("seed", 0)):
        if getattr(given, name) < least:
            raise BadInput(f"{name} is {getattr(given, name)}: give a whole number of at least {least}")
    from multiadvisor.explorer.library import Library

    library = Library(given.games, given.seed)
    for folder in given.runs:
        library.add_folder(folder)
    if given.trace:
        from multiadvisor.runs.trace import read_trace

        for file in given.trace:
            library.add_trace(read_trace(file), str(file))
    if given.export is not None:
        return _export(library, given.export)
    return _serve(library, given.port, given.no_browser)


def _export(library: object, file: Path) -> int:
    from multiadvisor.explorer.export import html
    from multiadvisor.runs.files import write_atomically

    names = list(library.entries)  # type: ignore[attr-defined]
    if not names:
        raise BadInput("no run to export: name one or two folders of saved runs")
    content = html(library, names[:2], 0).encode()  # type: ignore[arg-type]
    write_atomically(file, content)
    print(f"{file}: {len(content) / 1000:.0f} KB, plays in any browser")
    return 0


def _serve(library: object, port: int, quiet: bool) -> int:
    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "websockets")):
        raise BadInput("the explorer needs starlette, uvicorn and websockets: pip install 'multiadvisor[explorer]'")
    from multiadvisor.explorer.server import Explorer, address, listen, server_on

    explorer = Explorer(library)  # type: ignore[arg-type]
    listening = listen(port)
    taken = listening.getsockname()[1]
    if port and taken != port:
        print(f"port {port} is in use: took {taken}", file=sys.stderr)

    shown: list[str] = []

    def tell(used: str = "") -> None:
        if not shown or used == shown[-1]:
            shown.append(explorer.keys.ticket())
            print(address(taken, shown[-1]), flush=True)

    explorer.on_enter = tell
    explorer.warm()
    tell()
    print("each address opens the page once, then the next one is shown here; Ctrl-C ends", file=sys.stderr)
    if not quiet and _display():
        _open(address(taken, explorer.keys.ticket()))
    server = server_on(explorer, listening)
    with contextlib.suppress(KeyboardInterrupt):
        server.run([listening])
    return 0


def _display() -> bool:
    """Whether there is a screen to open a browser on."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(page: str) -> None:
    import threading
    import webbrowser

    # the server answers only after this; a browser that is slow to start must not keep it waiting
    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
