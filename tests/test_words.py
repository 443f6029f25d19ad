"""Documents, messages, help texts and the page use the usual words; CONTRIBUTING.md has the list."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_documents import DOCUMENTS, ROOT

BANNED = {
    r"in the place of\b": "instead of",
    r"(?<!pure )\bby chance\b": "at random",
    r"\bleft to chance\b": "random",
    r"(?<!critic )(?<!-)\banew\b": "again, reinitialised or restarted",
    r"\breplay memory\b|\btransitions remembered\b|\bthe same memory\b": "replay buffer",
    r"\b(did|do|does) not settle\b|\bhas settled\b": "converge",
    r"\bheard by\b|\bhears nobody\b": "combined or aggregated by",
    r"\bof one's own\b": "your own",
    r"(?<!\| )\bstep sizes?\b": "learning rate",
    r"\bgo(es)? on with (the|its|it|a) (run|sweep)\b": "continue",
    r"\bwhole numbers?\b": "integer",
    r"\btruth values?\b": "boolean",
    r"\bsome \d+ (?!million)": "about",
    r"\bis no (maze|text|valid|number|name|log|trace|file)\b": "is not",
}
BETWEEN = re.compile(r"<!-- ([\w-]+): .*?<!-- end of \1 -->", re.DOTALL)  # what commands write, from older runs too
TABLE = re.compile(r"^\| we write \| we do not write \|$.*?\n\n", re.MULTILINE | re.DOTALL)
PROSE = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]


def prose() -> Iterator[tuple[str, str]]:
    """Every document, notebook and example, without programs, and without the list itself."""
    for path in PROSE:
        text = TABLE.sub("", BETWEEN.sub("", path.read_text("utf-8")))
        yield path.name, re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        yield path.name, "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield path.name, path.read_text("utf-8")


def docstrings(tree: ast.AST) -> set[int]:
    """The docstrings of a module, by the identity of their nodes: only those of the reference are for users."""
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            found |= {id(each.value) for each in body if isinstance(each, ast.Expr)}
    return found


def strings(path: Path) -> str:
    """What a file of the package may show: its strings, but for docstrings; each on a line."""
    tree = ast.parse(path.read_text("utf-8"))
    hidden, found = docstrings(tree), []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            hidden |= {id(value) for value in node.values}
            found.append("".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            found.append(node.value)
    return "\n".join(found)


def shown() -> Iterator[tuple[str, str]]:
    """The strings of the package, the page's own, and the docstrings of the reference."""
    from test_site import DOCUMENTED

    source = ROOT / "src" / "multiadvisor"
    for path in sorted(source.rglob("*.py")):
        yield path.relative_to(source).as_posix(), strings(path)
    for path in sorted((source / "explorer" / "static").glob("*.*")):
        text = path.read_text("utf-8")
        yield path.name, text if path.suffix == ".html" else "\n".join(re.findall(r"\"[^\"\n]*\"|`[^`]*`", text))
    for name, (what, _) in DOCUMENTED.items():
        yield name, inspect.getdoc(what) or ""


@functools.cache
def everything() -> tuple[tuple[str, str], ...]:
    return tuple((name, re.sub(r"\s+", " ", text)) for name, text in [*prose(), *shown()])


@pytest.mark.slow
@pytest.mark.parametrize("phrase", BANNED)
def test_the_usual_words_are_used(phrase: str) -> None:
    wrong = [
        f"{name}: ...{text[max(0, found.start() - 40) : found.end() + 20]!r}"
        for name, text in everything()
        for found in re.finditer(phrase, text, re.IGNORECASE)
    ]
    assert wrong == [], f"better: {BANNED[phrase]} (CONTRIBUTING.md, the words)"


def test_a_page_where_readers_come_in_says_what_turns_and_games_are() -> None:
    entries = {"index.md", "concepts.md", "command-line.md", "faq.md", "glossary.md"}
    for path in PROSE:
        entry = path.name in entries or path.name.startswith("coming-from-")
        if path.name == "README.md" or (entry and path.parent.name == "docs"):
            text = re.sub(r"\s+", " ", path.read_text("utf-8"))
            assert re.search(r"a \*turn\* is a step", text, re.IGNORECASE), path.name
            assert re.search(r"a \*game\* is an episode", text), path.name
