"""`multiadvisor explore`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from multiadvisor.commands.parsing import Parser, add_named_task, parse, show
from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput

VIEWS = ("episode", "compare", "agents", "gallery", "learning")  # of the page; a test compares them with its own


def run(arguments: Sequence[str]) -> int:
    """Open the explorer."""
    parser = Parser(
        "explore",
        "Look at trained agents in the browser: what each advisor wants, who won, why it is stuck. The page is served\n"
        "on this machine only, and nothing leaves it. Ctrl-C ends it.",
        "multiadvisor explore runs/a runs/b\n  multiadvisor explore runs/a --export episode.html",
    )
    parser.add_argument(
        "runs", nargs="*", type=Path, metavar="RUN", help="folders of saved runs, or folders that contain many"
    )
    parser.flag("--port", int, "port, or the next free one", 8765)
    parser.flag("--no-browser", bool, "print the address only")
    parser.flag("--episodes", int, "episodes to choose from", 5)
    parser.flag("--seed", int, "seed of the first episode", 0)
    parser.add_argument("--trace", type=Path, action="append", default=[], metavar="FILE",
                        help="episodes recorded by `evaluate --trace`; may be repeated")  # fmt: skip
    parser.add_argument("--view", choices=VIEWS, metavar="NAME", help=f"the view to open with: {', '.join(VIEWS)}")
    parser.flag("--export", Path, "write the first episode as one HTML file, and exit")
    add_named_task(parser)
    given = parse(parser, arguments)
    if not 0 <= given.port <= 65535:
        raise BadInput(f"port is {given.port}: choose it between 0 and 65535")
    if given.export is None:
        require("explorer")  # before anything is loaded
    from multiadvisor.explorer.following import wait_for_run
    from multiadvisor.explorer.library import Library

    library = Library(given.episodes, given.seed, given.named)
    if given.export is not None:
        from multiadvisor.explorer.opening import check_place

        check_place(given.export)  # refused before anything is loaded
        library.episodes = 1
    for folder in given.runs:
        if given.export is None:
            wait_for_run(folder)
        library.add_folder(folder)
    for sentence in library.skipped:
        print(f"multiadvisor explore: skipped: {sentence}", file=sys.stderr)
    if given.trace:
        from multiadvisor.runs.trace import read_trace

        for file in given.trace:
            library.add_trace(read_trace(file), str(file))
    from multiadvisor.explorer.opening import serve, write_page

    if given.export is not None:
        size = write_page(library, given.export)
        text = f"{given.export}: {size / 1000:.0f} KB, plays in any browser"
        show({"file": str(given.export), "bytes": size}, given.json, text)
    else:
        serve(library, given.port, not given.no_browser, given.json, given.view)
    return 0
