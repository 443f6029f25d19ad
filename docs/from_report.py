"""Puts a finished report into the documents: `python docs/from_report.py report`, or a report of `beyond`.

The tables between the marks in README.md, docs/results.md, docs/the-paper-checked.md and docs/beyond-the-paper.md, and
their pictures, are all made here from the report's own files; nobody types a result.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import matplotlib.image
import numpy as np

from multiadvisor.errors import BadInput
from multiadvisor.studies.beyond.beyond_study import STUDY
from multiadvisor.studies.beyond.schemes import MAIN, PAPERS
from multiadvisor.studies.claims import Finding, counts, judge_all
from multiadvisor.studies.page import findings_markdown, markdown_table
from multiadvisor.studies.paper.noise_study import NOISY
from multiadvisor.studies.paper.pac_boy_study import MEASURES, SETTINGS, at, row, table
from multiadvisor.studies.study import Evidence
from multiadvisor.studies.study_report import read_report

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of this name."""
    old = path.read_text("utf-8")
    pattern = rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)"
    new, found = re.subn(pattern, lambda match: match[1] + text + "\n" + match[2], old, flags=re.DOTALL)
    if found != 1:
        raise SystemExit(f"{path} has no marks {name!r}")
    path.write_text(new, "utf-8")
    print(f"{path.name}: {name}")


def settings_table(evidence: Evidence) -> str:
    """The settings without and with noise."""
    rows = table(evidence, SETTINGS)
    rows += [row(s.name, {m: at(evidence, s, m) for m in MEASURES}) for s in NOISY]
    head = ("setting", "score", "95% interval", "length", "terminated", "touches")
    return markdown_table([head, *(
        (r["setting"], f"{r['score']:.2f}", "[{:.2f}, {:.2f}]".format(*r["score_interval"]), f"{r['length']:.1f}",
         f"{r['terminated']:.2f}", f"{r['touches']:.2f}") for r in rows
    )])  # fmt: skip


def counted(judged: list[Finding]) -> str:
    """How many claims hold."""
    whole, part, none = counts(judged).values()
    return f"Of {whole + part + none} claims {whole} reproduce, {part} in part, and {none} do{'es' * (none == 1)} not"


def side_by_side(*names: Path) -> np.ndarray:
    """Pictures in a row, cut to the height of the lowest."""
    images = [matplotlib.image.imread(name)[..., :3] for name in names]
    height = max(len(image) for image in images)
    padded = [np.pad(image, ((0, height - len(image)), (0, 12), (0, 0)), constant_values=1.0) for image in images]
    return np.concatenate(padded, axis=1)


def beyond(folder: Path, evidence: Evidence, judged: list[Finding]) -> None:
    """What is made from a report of `reproduce beyond`."""
    page = DOCS / "beyond-the-paper.md"
    figures = {figure.name: figure for figure in STUDY.figures(evidence)}
    shown = {scheme.name for scheme in (*PAPERS, *MAIN)}
    head, *rows = figures["beyond-pac-boy"].table
    kept = [row for row in rows if row[1] in shown and row[0] in ("0", "0.1", "0.3")]
    put(page, "scores", markdown_table([head, *kept]))
    put(page, "search", f"{figures['beyond-choice'].text}\n\n{markdown_table(figures['beyond-choice'].table)}")
    put(page, "tours", f"{figures['beyond-tours'].text}\n\n{markdown_table(figures['beyond-tours'].table)}")
    put(page, "claims", findings_markdown(judged))
    for measure in ("score", "length"):
        shutil.copyfile(folder / "figures" / f"beyond-{measure}.png", IMAGES / f"beyond-{measure}.png")


def main(folder: Path) -> None:
    """Everything that is made from a report."""
    evidence = read_report(folder)
    plan = evidence.plan
    judged = judge_all(evidence, papers=plan.what != "beyond")
    if plan.what == "beyond":
        return beyond(folder, evidence, judged)
    length = f"{plan.seeds} seeds of each setting, {plan.epochs} epochs of {plan.transitions:,} transitions"
    put(DOCS / "results.md", "results", settings_table(evidence))
    for page in (DOCS / "results.md", DOCS.parent / "README.md"):
        put(page, "verdicts", counted(judged) + ".")
    put(DOCS / "the-paper-checked.md", "claims", f"{counted(judged)} ({length}).\n\n{findings_markdown(judged)}")
    pair = side_by_side(folder / "figures" / "pac-boy-score.png", folder / "figures" / "noise-score.png")
    matplotlib.image.imsave(IMAGES / "reproduce.png", pair, metadata={"Software": None})
    shutil.copyfile(folder / "figures" / "attractors-resting.png", IMAGES / "resting.png")
    shutil.copyfile(folder / "figures" / "noise-sight.png", IMAGES / "sight.png")
    shutil.copyfile(folder / "poster.png", IMAGES / "poster.png")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "report"))
    except BadInput as error:
        raise SystemExit(str(error)) from None
