"""Documents, messages, help texts and the page use the usual words; CONTRIBUTING.md has the list."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import multiadvisor as mad
from multiadvisor.commands import evaluate, train
from multiadvisor.errors import RENAMED
from multiadvisor.runs.training import RunConfig
from refusal import refused
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
    """The strings of the package, its data, the page's own, and the docstrings of the reference."""
    from test_site import DOCUMENTED

    source = ROOT / "src" / "multiadvisor"
    for path in sorted(source.rglob("*.py")):
        yield path.relative_to(source).as_posix(), strings(path)
    for path in sorted(source.rglob("*.toml")):
        yield path.relative_to(source).as_posix(), path.read_text("utf-8")
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


# ---- words that are gone ---------------------------------------------------------------------------------------------
GONE = {
    "foci", "focus", "focuses", "turn", "turns", "game", "games", "teller", "voices", "hearing", "council", "speaks",
    "seats", "nudge", "settle", "foresee",
}  # fmt: skip
VERBS = re.compile(r"never_turn|turn_back|turns?_south|turns_a_wish|turn_an_advisor|about_to_turn|turn_into")
THEIRS = {"focus", "game_over", "reset_game"}  # of Playwright, and of the Atari emulator


def code() -> Iterator[Path]:
    for folder in ("src", "tests", "examples", "benchmarks", "docs"):
        yield from sorted((ROOT / folder).rglob("*.py"))


@functools.cache
def tokens(path: Path) -> dict[int, set[str]]:
    """Names and strings, each once."""
    found: dict[int, set[str]] = {tokenize.NAME: set(), tokenize.STRING: set()}
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type in found:
            found[token.type].add(token.string)
    return found


def test_no_name_in_the_code_is_an_old_word() -> None:
    old = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in code()
        for name in tokens(path)[tokenize.NAME] - THEIRS
        for part in re.findall(r"[a-z]+|[A-Z][a-z]*", VERBS.sub("", name))
        if part.lower() in GONE
    ]
    assert old == []


PAPERS = ("studies/", "viz/paper_plots.py", "viz/video.py", "commands/reproduce.py", "envs/worlds/maze.py",
          "envs/worlds/pac_boy.py", "errors.py")  # fmt: skip
OTHER_EPOCHS = ("learners/dqn/regression.py", "learners/ensembles/algorithm_selection.py")  # passes, and a bandit's
KEYS = {"epoch", "epochs", "transitions", "touches", "usual", "looked", "transitions_per_second", "--epochs",
        "--transitions"}  # fmt: skip


def test_epochs_and_touches_are_the_papers_alone() -> None:
    """Neither names nor keys of JSON nor flags elsewhere: there it is steps, evaluations and metrics."""
    source = ROOT / "src" / "multiadvisor"
    for path in sorted(source.rglob("*.py")):
        if not path.relative_to(source).as_posix().startswith((*PAPERS, *OTHER_EPOCHS)):
            keys = {text.strip("'\"") for text in tokens(path)[tokenize.STRING]}
            found = (tokens(path)[tokenize.NAME] & {"epoch", "epochs", "touches"}) | (keys & KEYS)
            assert found == set(), f"{path.name} uses {found}"


def test_an_old_name_is_answered_with_the_new_one() -> None:
    with pytest.raises(AttributeError, match="it is called 'Advisor' now"):
        getattr(mad, "Focus")  # noqa: B009
    with pytest.raises(mad.BadInput, match="unknown setting of dqn 'batch': it is called 'batch_size' now"):
        mad.Settings(learner={"name": "dqn", "batch": 3})
    refused("unknown flag '--games': it is called '--episodes' now", evaluate.run, ["nowhere", "--games", "3"])
    for old, new in {"--epochs": "--steps", "--transitions": "--eval-every", "--games": "--eval-episodes",
                     "--episodes": "--eval-episodes", "--option": "--env-kwarg"}.items():  # fmt: skip
        for task in ("two-goal", "FrozenLake-v1"):
            refused(f"unknown flag '{old}': it is called '{new}' now", train.run, [task, old, "3"])
    with pytest.raises(mad.BadInput, match="it is called 'steps' now, and it is the total: epochs times transitions"):
        RunConfig.parse({"task": "two-goal", "schedule": {"epochs": 3}})
    for old in RENAMED:
        assert old not in mad.__all__
