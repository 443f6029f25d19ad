"""The documents cannot go stale: their programs run, print what they say, and their links lead somewhere.

A block of Python that is followed at once by a block of text prints exactly that text. The blocks of one document are
one program, as a reader would type them one after the other.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
AT_THE_ROOT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
DOCUMENTS = [*(ROOT / name for name in AT_THE_ROOT), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = {
    "01_pac_boy.py": ["77 advisors", "bit for bit? True"],
    "02_own_environment.py": ["no defect found in task 'courier'", "100% terminated", "121"],
    "03_attractor.py": ["0.49  0.7253  0.7253  0.7203  0.7253   N      100%",
                        "0.51  0.7753  0.7753  0.7803  0.7753   S        0%"],
    "04_compiled_world.py": ["no defect found in task 'warehouse'", "100% terminated"],
    "05_will_it_get_stuck.py": ["gamma 0.45  attractor at the start: unstable  says: goes on  finished: 100%",
                                "gamma 0.90  attractor at the start: unstable  says: stuck    finished:   0%",
                                "0.50          9.4%          0.0%            0.0%",
                                "empathic   at gamma 0.9: compromise"],
    "06_why_did_it_do_that.py": ["finished, replayed exactly", "not finished, replayed exactly",
                                 "its last 100 steps are spent in (5, 5); 100 of them in an attractor"],
    "09_your_own_planning.py": ["egocentric  sum                0%", "soft        max              100%",
                                "soft        approval"],
    "07_deep_advisors.py": ["main engine", "an episode, before its weight 0.3", "what speaks for "],
    "10_hopper.py": ["('forward', 'ctrl', 'survive') 3 episodes", "of all the pushing", "effort ten times as "
                                                                                        "expensive"],
    "11_mixed_learners.py": ["before: 9 steps", "more than 100"],
    "08_own_loop.py": ["30000 transitions observed; 20 episodes: score -13.00", "loaded, it has observed 30000"],
}  # fmt: skip
MARK = "---- end of a block ----"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A program, and what it should print (None: not said)."""

    line: int
    code: str
    output: str | None


def blocks(document: str) -> list[Block]:
    fences = [(match.group(1), match.group(2), match.start(), match.end()) for match in _FENCE.finditer(document)]
    found = []
    for k, (language, body, start, end) in enumerate(fences):
        if language == "python":
            follows = (
                k + 1 < len(fences) and fences[k + 1][0] == "text" and not document[end : fences[k + 1][2]].strip()
            )
            found.append(Block(document.count("\n", 0, start) + 1, body, fences[k + 1][1] if follows else None))
    return found


def run(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    # Gymnasium warns about its own spaces; one thread, as the tests share the machine
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONIOENCODING": "utf-8", "NUMBA_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(script)], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8",
        timeout=PATIENCE, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_example_runs(name: str, tmp_path: Path) -> None:
    if "Hopper" in (ROOT / "examples" / name).read_text():
        pytest.importorskip("mujoco")  # some 100 MB that no other test needs
    done = run(ROOT / "examples" / name, tmp_path)
    assert done.returncode == 0, done.stderr
    for part in EXAMPLES[name]:
        assert part in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", [d for d in DOCUMENTS if blocks(d.read_text("utf-8"))], ids=lambda path: path.name)
def test_programs_print_what_the_document_says(path: Path, tmp_path: Path) -> None:
    programs = blocks(path.read_text("utf-8"))
    if importlib.util.find_spec("mo_gymnasium") is None:
        programs = [
            b._replace(code="import multiadvisor as mad\n", output=None) if "mo_gymnasium" in b.code else b
            for b in programs
        ]
    script = tmp_path / "document.py"
    script.write_text("".join(f"{b.code}\nprint({MARK!r})\n" for b in programs), "utf-8")
    done = run(script, tmp_path)
    assert done.returncode == 0, f"a program of {path.name} fails:\n{done.stderr}"
    printed = done.stdout.split(MARK + "\n")
    assert len(printed) == len(programs) + 1
    for block, output in zip(programs, printed, strict=False):
        if block.output is not None:
            assert output == block.output, f"{path.name}, line {block.line}: the program prints something else"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    document = _FENCE.sub("", path.read_text("utf-8"))
    for target in _LINK.findall(document):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.is_file(), f"{path.name} links to {target}, which does not exist"
        assert file.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(file.read_text("utf-8")), f"{path.name}: {name} has no heading for #{anchor}"


def anchors(document: str) -> set[str]:
    """The headings' anchors, as they are made where the documents are shown."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def section(document: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    return document.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_readme_installs_before_its_first_program() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    first = text.index("```python")
    assert 0 < text.index("make setup") < text.index("source .venv/bin/activate") < first


def test_what_is_set_up_runs_every_section_of_the_readme_or_the_section_names_the_extra() -> None:
    needs = {"multiadvisor explore": "explorer", "--learner dqn": "deep", "gymnasium:mo-": "mo", "Ray": "ray",
             "multiadvisor reproduce": "video", "sweep plot": "plots"}  # fmt: skip
    make, text = (ROOT / "Makefile").read_text("utf-8"), (ROOT / "README.md").read_text("utf-8")
    recipe = make.partition("installed-reproduce: ")[2].partition("touch")[0]
    installed = re.search(r"--editable '\.\[([\w,]+)\]'", recipe)
    assert installed is not None
    for heading in re.findall(r"^## (.+)$", text, re.MULTILINE):
        body = section(text, heading)
        for sign, extra in needs.items():
            if sign in body and heading != "Where to go next":
                assert extra in installed[1].split(",") or f"extra `{extra}`" in body, f"{heading} needs {extra}"


def test_the_readme_fits_on_three_screens() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 3 * 45


def test_marks_for_figures_stand_where_the_report_puts_them() -> None:
    places = {
        "README.md": ["verdicts"],
        "docs/results.md": ["verdicts", "results"],
        "docs/the-paper-checked.md": ["claims"],
    }
    for path, names in places.items():
        text = (ROOT / path).read_text("utf-8")
        for name in names:
            assert len(re.findall(rf"<!-- {name}: .*? -->\n.*?<!-- end of {name} -->", text, re.DOTALL)) == 1


@pytest.mark.slow
def test_the_grid_of_the_documents_is_the_example_and_gives_what_is_shown(tmp_path: Path) -> None:
    body = section((ROOT / "docs" / "from-one-machine-to-many.md").read_text("utf-8"), "A grid of Pac-Boy")
    [grid] = [text for language, text in _FENCE.findall(body) if language == "toml"]
    [shown] = [text for language, text in _FENCE.findall(body) if language == "console"]
    assert grid == (ROOT / "examples" / "grid.toml").read_text("utf-8")
    command = [sys.executable, "-m", "multiadvisor", "sweep", str(ROOT / "examples" / "grid.toml"), "--workers", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == shown.partition("\n")[2].partition("$ ")[0]


def test_the_maze_of_the_documents_is_the_example_and_every_symbol_is_explained() -> None:
    from multiadvisor.envs.worlds.board import SYMBOLS, parse_maze

    text, maze = (ROOT / "docs" / "mazes.md").read_text("utf-8"), (ROOT / "examples" / "maze.txt").read_text("utf-8")
    assert f'"""\\\n{maze}"""' in text
    assert [line[3] for line in text.splitlines() if re.match(r"\| `.` \|", line)] == list(SYMBOLS)
    assert "`.` beside\nan `F` holds none" in text
    fixed = parse_maze(maze.replace("...#..G", "F..#..G"))
    assert [fixed.name(cell) for cell in fixed.fruit] == ["(4, 0)"], "as the document says"


def test_images_are_small() -> None:
    images = list((ROOT / "docs" / "images").iterdir())
    assert images
    for image in images:
        largest = {".png": 300_000, ".webp": 60_000, ".gif": 2_000_000}
        assert image.suffix in largest
        assert image.stat().st_size < largest[image.suffix]


def test_documents_name_no_place_of_one_machine() -> None:
    for path in [*DOCUMENTS, *(ROOT / "examples").glob("*.py")]:
        found = re.findall(r"(?<![\w.:])/(?:work|tmp|home|root|Users)/\S*", path.read_text("utf-8"))
        assert not found, f"{path.name} names {found[0]}"


def test_every_planning_and_aggregation_is_explained() -> None:
    from multiadvisor.learners.tabular.switch import SHIPPED_AGGREGATIONS, SHIPPED_PLANNINGS

    text = (ROOT / "docs" / "plannings-and-aggregations.md").read_text("utf-8")
    for heading, known in (("The plannings", SHIPPED_PLANNINGS), ("The aggregations", SHIPPED_AGGREGATIONS)):
        listed = re.findall(r"^\| `(\w+)(?::\w)?` \|", section(text, heading), re.MULTILINE)
        assert listed == [one.name for one in known]


def test_what_contributors_are_shown_is_what_the_tests_train_save_and_sweep() -> None:
    """Everything but what a block imports in front and prints at its end stands in own_extension.py."""
    text, own = (ROOT / "CONTRIBUTING.md").read_text("utf-8"), (ROOT / "tests" / "own_extension.py").read_text("utf-8")
    for heading in ("A planning", "An aggregation", "A world", "A learner", "A study"):
        [block] = blocks(text.partition(f"\n### {heading}\n")[2].partition("\n### ")[0])
        shown = re.sub(r"^(?:(?:from|import) .*\n|\n)+", "", block.code)
        parts = [part for part in shown.split("\n\n\n") if not part.startswith(("print(", "advice = "))]
        assert parts
        for part in parts:
            assert re.sub(r"\nprint\(.*\n", "", part).strip() in own, f"{heading}: not in own_extension.py:\n{part}"


def test_citation_names_this_version_and_the_paper() -> None:
    from multiadvisor.version import VERSION

    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {VERSION}\n" in text
    assert re.findall(r"family-names: (.+)", text) == ["Laroche", "Fatemi", "Romoff", "van Seijen"]
    assert 'title: "Multi-Advisor Reinforcement Learning"' in text


def test_every_command_is_explained() -> None:
    from multiadvisor.cli import COMMANDS

    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    for command in COMMANDS:
        assert f"\n## {command}\n" in text
