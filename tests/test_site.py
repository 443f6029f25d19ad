"""The gallery is whole, and every public name has an example and its place in the reference."""

from __future__ import annotations

import doctest
import functools
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import multiadvisor as mad
from test_documents import ROOT, maker

REFERENCE = ROOT / "docs" / "reference"
MODULES = {"analysis.theory": "theory"}  # where the modules of the public names are


def referred() -> dict[str, list[str] | None]:
    """The names that the reference is made from, and which of their members it shows (None: all)."""
    pages = "".join(page.read_text("utf-8") for page in sorted(REFERENCE.glob("*.md")))
    entry = r"^::: multiadvisor\.([\w.]+)$(?:\n    options:\n      members: \[([^\]]*)\])?"
    return {name: None if members is None else re.findall(r"\w+", members)
            for name, members in (match.groups() for match in re.finditer(entry, pages, re.MULTILINE))}  # fmt: skip


def documented() -> dict[str, tuple[Any, Any]]:
    """Everything that the reference shows, by name, each with the class that it belongs to, or None."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, members in referred().items():
        what = functools.reduce(getattr, name.split("."), mad)
        found[name] = what, None
        if inspect.ismodule(what):
            assert members, f"{name}: the reference must say which of its names are public"
            found |= {f"{name}.{member}": (getattr(what, member), None) for member in members}
        elif inspect.isclass(what):
            for member in [each for each in vars(what) if each[0] != "_"] if members is None else members:
                static = inspect.getattr_static(what, member)
                plain = getattr(static, "fget", None) or getattr(static, "__func__", static)
                if inspect.isfunction(plain):
                    found[f"{name}.{member}"] = plain, what
    return found


DOCUMENTED = documented()


def test_every_public_name_is_in_the_reference_once() -> None:
    names = [MODULES.get(name, name) for name in referred()]
    assert sorted([*(name for name in names if "." not in name), "__version__"]) == sorted(mad.__all__)
    index = (REFERENCE / "index.md").read_text("utf-8")
    for name in mad.__all__:
        assert f"`{name}`" in index


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_every_documented_name_has_a_docstring_types_and_an_example_that_runs(name: str) -> None:
    """A method may have its example in the docstring of its class. `pytest` runs those of functions and classes."""
    what, owner = DOCUMENTED[name]
    text = inspect.getdoc(what) or ""
    assert text, f"multiadvisor.{name} has no docstring"
    if inspect.isfunction(what):
        signature = inspect.signature(what)
        bare = [each.name for each in signature.parameters.values() if each.annotation is each.empty]
        assert set(bare) <= {"self", "cls"}, f"multiadvisor.{name} has no type for {bare}"
        assert signature.return_annotation is not signature.empty, f"multiadvisor.{name} does not say what it returns"
    if owner is not None:
        shown = "".join(re.findall(r"^ *(?:>>>|\.\.\.) .*$", inspect.getdoc(owner) or "", re.MULTILINE))
        assert ">>> " in text or f".{name.rpartition('.')[2]}" in shown, f"multiadvisor.{name} has no example"
        return
    assert ">>> " in text, f"multiadvisor.{name} has no example in its docstring"
    if not (inspect.isclass(what) or inspect.isfunction(what) or inspect.ismodule(what)):  # those are collected anyway
        home = sys.modules[what.policy.__module__ if hasattr(what, "policy") else what.prefer.__module__]
        example = doctest.DocTestParser().get_doctest(text, dict(vars(home)), name, None, None)
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
    else:  # and here it is seen that they are
        module = what if inspect.ismodule(what) else sys.modules[what.__module__]
        assert Path(inspect.getfile(module)).is_relative_to(ROOT / "src")


def test_the_gallery_is_what_is_registered() -> None:
    assert (ROOT / "docs" / "gallery.md").read_text("utf-8") == maker("from_tasks").page()


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    books = {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert named == pages | books | {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
