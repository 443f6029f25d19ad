"""The notebooks run, in a folder of their own and without Jupyter, and print what they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from test_documents import MARK, ROOT, run

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


def test_there_are_three_small_ones() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["attractors", "quick-start", "your-own-environment"]
    for path in NOTEBOOKS:
        assert path.stat().st_size < 30_000
        notebook = read(path)
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        ids = [cell["id"] for cell in notebook["cells"]]
        assert len(set(ids)) == len(ids)
        assert "".join(notebook["cells"][0]["source"]).startswith("# ")


def test_the_lesson_answers_what_it_asks() -> None:
    text = "".join("".join(cell["source"]) for cell in read(ROOT / "notebooks" / "attractors.ipynb")["cells"])
    assert text.count("**Question.**") == text.count("**Answer.**") >= 5


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_print_what_the_notebook_holds(path: Path, tmp_path: Path) -> None:
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    script.write_text("".join(f"{''.join(cell['source'])}\nprint({MARK!r})\n" for cell in cells), "utf-8")
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    for k, (cell, printed) in enumerate(zip(cells, done.stdout.split(MARK + "\n"), strict=False)):
        held = "".join(line for output in cell["outputs"] for line in output["text"])
        assert printed == held, f"{path.name}, program {k + 1}: it prints something else"
