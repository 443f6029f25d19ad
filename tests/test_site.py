"""The gallery is whole, and every public name has an example and its place in the reference."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import re
import sys

import pytest

import multiadvisor as mad
from test_documents import ROOT

REFERENCE = ROOT / "docs" / "reference"


def referred() -> list[str]:
    """The names that the reference is made from."""
    pages = "".join(page.read_text("utf-8") for page in sorted(REFERENCE.glob("*.md")))
    return re.findall(r"^::: multiadvisor\.(\w+)$", pages, re.MULTILINE)


def test_every_public_name_is_in_the_reference_once() -> None:
    assert sorted([*referred(), "__version__"]) == sorted(mad.__all__)
    index = (REFERENCE / "index.md").read_text("utf-8")
    for name in mad.__all__:
        assert f"`{name}`" in index


@pytest.mark.parametrize("name", sorted(set(mad.__all__) - {"__version__"}))
def test_every_public_name_is_documented_with_an_example_that_runs(name: str) -> None:
    what = getattr(mad, name)
    text = inspect.getdoc(what) or ""
    assert ">>> " in text, f"multiadvisor.{name} has no example in its docstring"
    if not (inspect.isclass(what) or inspect.isfunction(what) or inspect.ismodule(what)):  # those are collected anyway
        home = sys.modules[what.policy.__module__ if hasattr(what, "policy") else what.prefer.__module__]
        example = doctest.DocTestParser().get_doctest(text, dict(vars(home)), name, None, None)
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_the_gallery_is_what_is_registered() -> None:
    spec = importlib.util.spec_from_file_location("from_tasks", ROOT / "docs" / "from_tasks.py")
    assert spec is not None
    assert spec.loader is not None
    from_tasks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(from_tasks)
    assert (ROOT / "docs" / "gallery.md").read_text("utf-8") == from_tasks.page()


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    books = {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert named == pages | books | {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
