"""The explorer: a local page that shows what each advisor wants, who won, and where the aggregator is stuck.

`multiadvisor explore` opens it on saved runs. From Python it takes agents as they are, of tasks of one's own as well:
`explore({"mine": agent})`, or `export({"mine": agent}, "episode.html")` for one file that plays anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from multiadvisor.core.optional_dependencies import require

if TYPE_CHECKING:
    from multiadvisor.agent import MultiAdvisor
    from multiadvisor.explorer.library import Library


def _library(agents: Mapping[str, MultiAdvisor], episodes: int, seed: int) -> Library:
    from multiadvisor.explorer.library import Library

    library = Library(episodes, seed)
    for name, agent in agents.items():
        library.add_agent(agent, name)
    return library


def explore(
    agents: Mapping[str, MultiAdvisor], *, port: int = 8765, browser: bool = True, episodes: int = 5, seed: int = 0
) -> None:
    """Serve the page for these agents, by name, until Ctrl-C."""
    require("explorer")
    from multiadvisor.explorer.server import serve

    serve(_library(agents, episodes, seed), port, browser)


def export(agents: Mapping[str, MultiAdvisor], file: str | Path, *, seed: int = 0) -> int:
    """Write one episode of one or two agents as an HTML file that plays anywhere; its size in bytes.

    >>> import tempfile, multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits")).learn(1_000, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export({"three fruits": agent}, f"{folder}/episode.html") > 10_000
    True
    """
    from multiadvisor.explorer.onefile import write_page

    return write_page(_library(agents, 1, seed), Path(file))
