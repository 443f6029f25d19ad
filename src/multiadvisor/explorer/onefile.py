"""One file that plays anywhere: the page, its style, its modules and the episodes of one or two runs, all inside."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.explorer.insights import ALL, STATIC, answers_of
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.questions import attractor_layer
from multiadvisor.storage.files import check_replaceable, write_atomically

_HEAD = 8 << 10  # bytes of a page in which its title stands
_STYLE = re.compile(r'<link rel="stylesheet" href="/static/(\w+\.css)">\n')
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)


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
    texts = {name: (STATIC / name).read_text("utf-8") for name in modules()}
    return "\n".join(f"// {name}\n{_EXPORT.sub('', _IMPORT.sub('', text))}" for name, text in texts.items())


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
    """The answers to all that the page would ask a server for."""
    if not names:
        raise BadInput("no run was named to export")
    part = library.part(names, episode)
    works, answers = answers_of(part, ALL), {}
    for name, entry in part.entries.items():
        for pattern in ("runs", "curves", *(one for one in works if "{id}" in one)):
            given = {"id": name, "episode": "0", "first": "0"}
            if entry.agent.task.board is None or not pattern.startswith("pictures"):
                answer = works[pattern](given)
                answers[pattern.format(**given)] = _text(answer) if isinstance(answer, bytes) else answer
    return {"answers": answers, "layers": {name: _layers(part, name) for name in part.entries}}


def _layers(library: Library, name: str) -> dict[str, object]:
    """The exact attractors of every board of the episode, by the step in which it is new."""
    agent, (trace, number) = library.entry(name).agent, library.recorded(name, 0)
    found: dict[str, object] = {}
    if agent.aggregator.learned is not None:  # attractors are those of the advisors' own values
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


# ---- writing it ------------------------------------------------------------------------------------------------------
def check_place(file: Path) -> None:
    """Refuse a file that cannot be written, or that is none of ours, before any episode is played."""
    check_replaceable(file, "export to", "an exported page", _is_page, _HEAD)


def _is_page(head: bytes) -> bool:
    return head.startswith(b"<!doctype html>") and b"<title>multiadvisor explorer</title>" in head


def write_page(library: Library, file: Path) -> int:
    """The first episode of the first two runs of one task as one file; its size in bytes."""
    check_place(file)
    entries = list(library.entries.values())
    if not entries:
        raise BadInput("no run to export: name one or two folders of saved runs")
    names = [entry.id for entry in entries[:2] if entry.task["name"] == entries[0].task["name"]]
    content = html(library, names, 0).encode()
    write_atomically(file, content)
    return len(content)
