"""The page "The paper, item by item" lists everything that the paper numbers, shows or cites, and points at what is."""

import runpy
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from multiadvisor.commands.parsing import parse
from multiadvisor.studies.claims import all_claims

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "from_paper.py"))
ITEMS = SCRIPT["items"]()
LATEX = ROOT.parent / "shared" / "paper.tex"


@pytest.mark.skipif(not LATEX.exists(), reason="the paper's LaTeX is not beside this checkout")
def test_nothing_of_the_paper_is_missing():
    """Symbols, definitions, equations, theorems, figures, numbers, citations; each in its section."""
    latex = LATEX.read_text("utf-8")
    assert SCRIPT["missing"](latex) == set()
    kinds = ("eq", "cite:", "th:", "def:", "ass:", "fig:", "footnote", "paragraph:")
    numbered = {item.key for item in ITEMS if item.key.startswith(kinds)}
    assert numbered == {key for key in SCRIPT["keys_of"](latex) if not key.startswith(("sec", "sup:"))}


def test_what_is_added_to_the_paper_is_noticed():
    """A theorem, a citation, a symbol, a number, a section, a paragraph; and what is in another section than listed."""
    more = r"\begin{theorem}\label{th:new}\end{theorem}\cite{Somebody2099} $\hat{z}^{new}$ 4,711"
    assert SCRIPT["missing"](more) == {"th:new", "cite:Somebody2099", r"\hat{z}", "{new}", "4,711"}
    more = "\\section{A}" * 7 + r"\textbf{Doubts} -- None.\footnote{One.}\footnote{Two.}"
    assert SCRIPT["missing"](more) == {"section 7", "paragraph:Doubts", "footnote 1", "footnote 2"}
    moved = r"\section{A}\section{B}\section{C}\label{sec:problem}\section{D}\label{sec:survey}"
    assert SCRIPT["missing"](moved) == {"sec:survey"}


def test_no_item_can_be_left_out(monkeypatch):
    """Without its row each symbol, number, equation and citation of the paper would be missed."""
    latex = LATEX.read_text("utf-8") if LATEX.exists() else pytest.skip("the paper's LaTeX is not beside this checkout")
    needed = SCRIPT["missing"].__globals__
    monkeypatch.setitem(needed, "items", lambda: [])
    missed = SCRIPT["missing"](latex)
    assert {r"\hat{f}", r"\phi", "{agn}", "17,252", "39.5", "th:att", "eq 14", "cite:Sun1999"} <= missed
    assert len(missed) > 150


def test_the_list_has_what_the_paper_numbers():
    """The same where the LaTeX is not at hand."""
    counted = Counter(item.key.partition(":")[0].partition(" ")[0] for item in ITEMS)
    assert {name: counted[name] for name in ("ass", "def", "th", "fig", "eq", "cite")} == {
        "ass": 1, "def": 2, "th": 5, "fig": 8, "eq": 28, "cite": 34
    }  # fmt: skip
    assert len({item.key for item in ITEMS}) == len(ITEMS)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.key)
def test_an_item_points_at_what_there_is(item):
    """A module or name that exists, a command that is understood, judged claims; or the reason why it is not here."""
    assert item.item
    assert item.ours
    assert item.module or "not here" in item.ours or item.key == "cite:Sutton1998"
    if item.module:
        assert SCRIPT["found"](item.module) is not None
    if item.command:
        program, command, *words = item.command.replace("TASK", "two-goal").split()
        assert program == "multiadvisor"
        parse(import_module(f"multiadvisor.commands.{command}").parser(), words)
    assert set(item.claims.split()) <= {one.id for one in all_claims()}


def test_every_claim_stands_at_an_item():
    named = {name for item in ITEMS for name in item.claims.split()}
    assert {one.id for one in all_claims()} == named


def test_the_page_is_up_to_date():
    assert SCRIPT["PAGE"].read_text("utf-8") == SCRIPT["page"](), "run python docs/from_paper.py"
