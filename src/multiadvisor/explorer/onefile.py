"""One file that plays anywhere: the page, its style, its modules and the episodes of one or two runs, all inside."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

from multiadvisor.core.aggregator import learned_beside
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.explorer.albums import Albums
from multiadvisor.explorer.attractor_layers import attractor_layer
from multiadvisor.explorer.bundle import run_pack
from multiadvisor.explorer.insights import Insights
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.tips import TIPS

STATIC = Path(__file__).parent / "static"
_STYLE = re.compile(r'<link rel="stylesheet" href="/static/(\w+\.css)">\n')
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)
_NAME = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)


def modules(first: str = "app.js") -> list[str]:
    """The page's modules, each after those that it imports."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for imported in _IMPORT.findall((STATIC / name).read_text("utf-8")):
            visit(imported)
        order.append(name)

    visit(first)
    return order


def one_script() -> str:
    """All modules as one: imports fall away, as top-level names are unique."""
    parts: list[str] = []
    seen: dict[str, str] = {}
    for name in modules():
        text = (STATIC / name).read_text("utf-8")
        for found in _NAME.findall(text):
            if found in seen:
                raise AssertionError(f"{name} and {seen[found]} both have a {found}")
            seen[found] = name
        parts.append(f"// {name}\n{_EXPORT.sub('', _IMPORT.sub('', text))}")
    return "\n".join(parts)


def html(library: Library, names: list[str], episode: int) -> str:
    """A page that needs no server: up to two runs in one episode."""
    inside = json.dumps(_inside(library, names, episode), allow_nan=False).replace("<", "\\u003c")
    page = (STATIC / "index.html").read_text("utf-8").replace("<!-- modules -->\n", "")
    style, script = "".join((STATIC / name).read_text("utf-8") for name in _STYLE.findall(page)), one_script()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _STYLE.sub("", page).replace("</head>", f"<style>{style}</style>\n</head>", 1)
    page = re.sub(r'<link rel="icon"[^>]*>', "", page)
    page = page.replace("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">', 1)
    embedded = (
        f'<script type="application/json" id="embedded">{inside}</script>\n<script type="module">{script}</script>'
    )
    return re.sub(r'<script type="module"[^>]*></script>', lambda _: embedded, page)


def _inside(library: Library, names: list[str], episode: int) -> dict[str, object]:
    """All that the page would ask a server for; the runs are numbered, so that the same episode makes the same file."""
    if not names:
        raise BadInput("no run was named to export")
    listing = library.listing()
    known = {one["id"]: one for one in listing["runs"]}
    runs, packs, layers, albums = [], {}, {}, Albums(library)
    insights, beside = Insights(library, albums), {}
    for number, name in enumerate(names):
        entry = library.entry(name)
        titles = known[name]["episodes"]
        if not 0 <= episode < len(titles):
            raise BadInput(f"{entry.name} has {len(titles)} episodes here, and so no episode {episode + 1}")
        title = entry.name if entry.folder is None else entry.folder.name  # where it lay is nobody's business
        runs.append({**known[name], "id": str(number), "name": title, "episodes": [titles[episode]]})
        packs[f"runs/{number}"] = _text(run_pack(entry.agent, title))
        packs[f"runs/{number}/episodes/0"] = _text(library.episode(name, episode))
        layers[str(number)] = _layers(library, name, episode)
        if entry.agent.task.board is None:
            packs[f"pictures/{number}/0/0"] = _text(albums.pictures(name, episode, 0, until=1 << 30))
        beside[f"insight/{number}"] = _insight(library, insights, name, episode)
        beside[f"stuck/{number}/0"] = insights.stuck(name, episode)
    shown = library.curves(names)  # what else is open is nobody's business either
    found = {"curves": shown, "gallery": [], "plannings": [], "runs": runs, "packs": packs, "tips": TIPS}
    return {**found, "layers": layers, "beside": beside}


def _insight(library: Library, insights: Insights, name: str, episode: int) -> dict[str, object]:
    """What the episode in the file tells."""
    try:
        entry = library.entry(name)
        found = insights.look_at(entry, entry.agent, [episode])
    except BadInput as error:
        return {"error": str(error)}
    return found | {key: [{**one, "episode": 0} for one in found[key]] for key in ("episodes", "moments", "stuck")}


def _layers(library: Library, name: str, episode: int) -> dict[str, object]:
    """The exact attractors of every board of the episode, by the step in which it is new."""
    agent, (trace, number) = library.entry(name).agent, library.recorded(name, episode)
    found: dict[str, object] = {}
    if learned_beside(agent.settings.aggregation):  # attractors are those of the advisors' own values
        return found
    if trace.x is None or (maze := maze_of(agent.task)) is None:
        return found
    last = b""
    for step, x in enumerate(trace.states(number)):
        board = x[1 + len(maze.ghost_start) :].tobytes()
        if board != last:
            found[str(step)] = attractor_layer(agent, x, learned=False)
            last = board
    return found


def _text(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
