"""`multiadvisor explore`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.commands.parsing import Parser, add_named_task, parse, show
from multiadvisor.core.optional_dependencies import require
from multiadvisor.explorer.following import wait_for_run
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.onefile import check_place, write_page
from multiadvisor.settings import whole_number

VIEWS = ("episode", "compare", "agents", "gallery", "learning")  # of the page; a test compares them with its own


def parser() -> Parser:
    """The flags."""
    flags = Parser(
        "explore",
        "Look at trained agents in the browser: what each advisor wants, which one wins, why it is stuck. The page is\n"
        "served on this machine only, and nothing leaves it. Ctrl-C ends it.",
        "multiadvisor explore runs/a runs/b\n  multiadvisor explore runs/a --export episode.html",
    )
    flags.add_argument(
        "runs", nargs="*", type=Path, metavar="RUN",
        help="folders of saved runs, or folders that contain many; or what `multiadvisor diagnose ... --json` wrote",
    )  # fmt: skip
    flags.flag("--port", int, "port, or the next free one", 8765)
    flags.flag("--no-browser", bool, "print the address only")
    flags.flag("--episodes", int, "episodes to choose from", 5)
    flags.flag("--seed", int, "seed of the first episode", 0)
    flags.add_argument("--trace", type=Path, action="append", default=[], metavar="FILE",
                        help="episodes recorded by `evaluate --trace`; may be repeated")  # fmt: skip
    flags.add_argument("--view", choices=VIEWS, metavar="NAME", help=f"the view to open with: {', '.join(VIEWS)}")
    flags.flag("--export", Path, "write the first episode as one HTML file, and exit")
    add_named_task(flags)
    return flags


def run(arguments: Sequence[str]) -> int:
    """Open the explorer."""
    given = parse(parser(), arguments)
    whole_number("port", given.port, 0, 65535)
    if given.export is None:
        require("explorer")  # before anything is loaded

    library = Library(given.episodes, given.seed, given.named)
    if given.export is not None:
        check_place(given.export)  # refused before anything is loaded
        library.episodes = 1
    for folder in given.runs:
        if given.export is None:
            wait_for_run(folder)
        library.add_folder(folder)
    for sentence in library.skipped:
        print(f"multiadvisor explore: skipped: {sentence}", file=sys.stderr)
    if given.trace:
        for file in given.trace:
            library.add_trace(read_trace(file), str(file))

    if given.export is not None:
        size = write_page(library, given.export)
        text = f"{given.export}: {size / 1000:.0f} KB, plays in any browser"
        show({"file": str(given.export), "bytes": size}, given.json, text)
    else:
        from multiadvisor.explorer.server import serve

        serve(library, given.port, not given.no_browser, given.json, given.view)
    return 0
