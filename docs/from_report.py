"""Puts a finished report into the documents: `python docs/from_report.py report`, or a report of `beyond`.

The tables between the marks in README.md, docs/results.md, docs/the-paper-checked.md and docs/beyond-the-paper.md, and
their pictures, are all made here from the report's own files; nobody types a result. Judged claims of the paper are
kept in docs/claims.json: the report on one study (`reproduce attractors`) replaces those that it judges, and the page
"The paper, item by item" is made of them (docs/from_paper.py). Other mazes are those of `reproduce deviations`,
and a table of `reproduce value-function` has seeds of its own. Of `reproduce phase-diagram` it takes the boundary and
the map, of `reproduce continuous` the figure.

Of a file instead of a folder: what `python examples/01_pac_boy.py` printed of the settings' worst episodes.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
from from_systems import put

from multiadvisor.core.intervals import estimate
from multiadvisor.errors import BadInput
from multiadvisor.studies.claims import Claim, JudgedClaim, Judgement, all_claims, counts, judge_all
from multiadvisor.studies.page import findings_markdown, markdown_table
from multiadvisor.studies.paper import value_function
from multiadvisor.studies.paper.deviations import maze_figures
from multiadvisor.studies.paper.dqn_clipped import MEASURES, differences, dqn_curve, dqn_jobs, shipped
from multiadvisor.studies.paper.noise_study import NOISY
from multiadvisor.studies.paper.pac_boy_study import SETTINGS, sweep_figure, table
from multiadvisor.studies.study import ALL, Evidence, Plan, many
from multiadvisor.studies.study_report import read_report

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "benchmarks"))
from studies import phase_diagram  # noqa: E402
from studies.beyond import STUDY  # noqa: E402
from studies.schemes import MAIN, PAPERS  # noqa: E402

IMAGES = DOCS / "images"
CLAIMS = DOCS / "claims.json"


def settings_table(evidence: Evidence) -> str:
    """The settings without and with noise."""
    rows = table(evidence, (*SETTINGS, *NOISY))
    head = ("setting", "score", "95% interval", "length", "terminated", "touches")
    return markdown_table([head, *(
        (r["setting"], f"{r['score']:.2f}", "[{:.2f}, {:.2f}]".format(*r["score_interval"]), f"{r['length']:.1f}",
         f"{r['terminated']:.2f}", f"{r['touches']:.2f}") for r in rows
    )])  # fmt: skip


def keep(judged: list[JudgedClaim]) -> list[JudgedClaim]:
    """All claims of the paper as last judged, in its order: those of this report, and those that it says nothing of."""
    rows = {row["id"]: row for row in json.loads(CLAIMS.read_bytes())}
    rows |= {one.claim.id: one.as_dict() for one in judged if one.judgement is not None}
    ordered = [rows[one.id] for one in all_claims() if one.id in rows]
    CLAIMS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return [finding(row) for row in ordered]


def finding(row: dict[str, Any]) -> JudgedClaim:
    """A row of the file."""
    claim = Claim(*(row[field.name] for field in fields(Claim)))
    interval = None if row["interval"] is None else (row["interval"][0], row["interval"][1])
    judgement = Judgement(row["value"], interval, row["verdict"], row["explanation"], row["at_least"])
    return JudgedClaim(claim, judgement)


def counted(judged: list[JudgedClaim]) -> str:
    """How many claims hold."""
    whole, part, none = counts(judged).values()
    return f"Of {whole + part + none} claims {whole} reproduce, {part} in part, and {none} do{'es' * (none == 1)} not"


def side_by_side(*names: Path) -> np.ndarray:
    """Pictures in a row, cut to the height of the lowest."""
    images = [matplotlib.image.imread(name)[..., :3] for name in names]
    height = max(len(image) for image in images)
    padded = [np.pad(image, ((0, height - len(image)), (0, 12), (0, 0)), constant_values=1.0) for image in images]
    return np.concatenate(padded, axis=1)


def beyond(folder: Path, evidence: Evidence, judged: list[JudgedClaim]) -> None:
    """What is made from a report of `reproduce beyond`."""
    page = DOCS / "beyond-the-paper.md"
    figures = {figure.name: figure for figure in STUDY.figures(evidence)}
    shown = {scheme.name for scheme in (*PAPERS, *MAIN)}
    head, *rows = figures["beyond-pac-boy"].table
    kept = [row for row in rows if row[1] in shown and row[0] in ("0", "0.1", "0.3")]
    put(page, "scores", markdown_table([head, *kept]))
    put(page, "search", f"{figures['beyond-choice'].text}\n\n{markdown_table(figures['beyond-choice'].table)}")
    put(page, "tours", f"{figures['beyond-tours'].text}\n\n{markdown_table(figures['beyond-tours'].table)}")
    put(page, "claims", findings_markdown(judged).partition("\n\n- ")[0])  # the table alone
    for measure in ("score", "length"):
        shutil.copyfile(folder / "figures" / f"beyond-{measure}.png", IMAGES / f"beyond-{measure}.png")


def lengths(plan: Plan) -> str:
    """What was run, and how long."""
    about = shipped().about
    return (
        f"{many(plan.seeds, 'seed')} of each setting, {plan.epochs} epochs of {plan.transitions:,} transitions; "
        f"DQN-clipped {many(len(shipped().runs), 'seed')} of {many(about['epochs'], 'epoch')}; value-function networks "
        f"{many(plan.value_seeds, 'seed')}, {plan.literal_seeds} in each literal reading"
    )


VALUES = {
    value_function.VECTOR: "vector: egocentric values one by one", value_function.SUMMED: "summed egocentric values",
    value_function.RL: "RL: the optimal return", value_function.TSP: "TSP: the shortest tour, at any gamma",
}  # fmt: skip
VALUE_GAMMAS = (0.4, 0.5, 0.6, 0.9, 0.99)


def values(folder: Path, evidence: Evidence) -> None:
    """What networks learn of four kinds of values."""
    result = value_function.summary_of(evidence, evidence.plan.reading)
    steps = value_function.steps_of(result["table"])
    head = ("steps to collect all fruits, at most 50", *(f"gamma {gamma:g}" for gamma in VALUE_GAMMAS))
    rows = [
        (name, *(f"{steps[target, None if target == value_function.TSP else gamma]:.1f}" for gamma in VALUE_GAMMAS))
        for target, name in VALUES.items()
    ]
    name = f"value-function-{result['reading']}"
    put(DOCS / "results.md", name, "\n\n".join([markdown_table([head, *rows]), *result["text"].splitlines()]))
    shutil.copyfile(folder / "figures" / f"{name}.png", IMAGES / "value-function.png")


def tail(printed: Path) -> None:
    """What examples/01_pac_boy.py printed of many episodes."""
    lines = (line for line in printed.read_text("utf-8").splitlines() if line.startswith("  "))
    put(DOCS / "results.md", "tail", "\n".join(f"    {line.strip()}" for line in lines))


def main(folder: Path) -> None:
    """Everything that is made from a report, or from what the example printed."""
    if folder.is_file():
        return tail(folder)
    evidence = read_report(folder)
    plan = evidence.plan
    if plan.what == "deviations":
        return mazes(evidence)
    if plan.what == "value-function":
        return values(folder, evidence)
    if plan.what == "phase-diagram":
        return phases(folder, evidence)
    if plan.what == "continuous":
        shutil.copyfile(folder / "figures" / "continuous.png", IMAGES / "continuous.png")
        return None
    judged = judge_all(evidence, papers=plan.what != "beyond")
    if plan.what == "beyond":
        return beyond(folder, evidence, judged)
    kept = keep(judged)
    for page in (DOCS / "results.md", DOCS.parent / "README.md"):
        put(page, "verdicts", f"{counted(kept)} ({lengths(plan)}).")
    put(DOCS / "the-paper-checked.md", "claims", f"{counted(kept)} ({lengths(plan)}).\n\n{findings_markdown(kept)}")
    if dqn_jobs(plan) and plan.what in (ALL, "pac-boy"):
        dqn(evidence)
    if plan.what != ALL:
        return
    put(DOCS / "results.md", "results", settings_table(evidence))
    linear(evidence)
    pair = side_by_side(folder / "figures" / "pac-boy-score.png", folder / "figures" / "noise-score.png")
    matplotlib.image.imsave(IMAGES / "reproduce.png", pair, metadata={"Software": None})
    shutil.copyfile(folder / "figures" / "attractors-resting.png", IMAGES / "resting.png")
    shutil.copyfile(folder / "figures" / "noise-sight.png", IMAGES / "sight.png")
    shutil.copyfile(folder / "poster.png", IMAGES / "poster.png")


BEGINS = {"attractor": ("dotted", "some board has an attractor, a cell from which the sum does not want to leave"),
          "stable": ("dashed", "some board has a stable one, at a wall where Pac-Boy can stay"),
          "stuck": ("solid", "half of all episodes with exact values get stuck")}  # fmt: skip


def phases(folder: Path, evidence: Evidence) -> None:
    """The boundary and the map."""
    found = phase_diagram.boundary(evidence, "sum")
    rows = [(line, f"{found[name]:.4f}", text) for name, (line, text) in BEGINS.items()]
    put(DOCS / "phase-diagram.md", "boundary", markdown_table([("line", "gamma", "what begins there"), *rows]))
    others = [one.as_dict() for one in phase_diagram.findings(evidence)]
    put(DOCS / "phase-diagram.md", "judged", markdown_table([
        ("claim", "measured", "holds if", "value", "verdict"),
        *((one["claim"], one["statistic"], one["test"], f"{one['value']:.2f}", one["verdict"]) for one in others),
    ]))  # fmt: skip
    made = json.loads((folder / "machine.json").read_bytes())
    about = {"command": " ".join(["multiadvisor", *made["command"][1:]]), "machine": made["machine"]}
    about |= phase_diagram.data(evidence)
    (DOCS / "phase-diagram.json").write_text(json.dumps(about, separators=(",", ":")) + "\n", "utf-8")
    for name, image in (("terminated", "diagram"), ("zoom", "zoom"), ("mazes", "mazes"), ("epsilon", "epsilon"),
                        ("alpha", "alpha")):  # fmt: skip
        shutil.copyfile(folder / "figures" / f"phase-{name}.png", IMAGES / f"phase-{image}.png")


def linear(evidence: Evidence) -> None:
    """Linear Q-learning in other settings."""
    figure = sweep_figure(evidence)
    put(DOCS / "results.md", "linear", f"{figure.text}\n\n{markdown_table(figure.table)}")


def dqn(evidence: Evidence) -> None:
    """How DQN-clipped was made, and how it learns."""
    curves = {measure: dqn_curve(evidence, measure) for measure in MEASURES}
    last = curves["score"].shape[1]
    rows = [("epoch", "score", "steps", "all fruit eaten", "touches")]
    for epoch in sorted({epoch for epoch in (1, 5, *range(10, last, 10)) if epoch < last} | {last}):
        rows.append((str(epoch), *(str(estimate(curve[:, epoch - 1])) for curve in curves.values())))
    origin = f"{shipped().origin}."
    put(DOCS / "results.md", "dqn", f"DQN-clipped is shipped, not trained there: {origin}")
    put(DOCS / "dqn-studies.md", "differences", markdown_table(differences()))
    put(DOCS / "dqn-studies.md", "curve", f"{origin}\n\n{markdown_table(rows)}")


def mazes(evidence: Evidence) -> None:
    """The paper's conclusions in other mazes."""
    figures = maze_figures(evidence)
    told = "\n\n".join(f"{figure.text}\n\n{markdown_table(figure.table)}" for figure in figures)
    put(DOCS / "results.md", "mazes", told)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "report"))
    except BadInput as error:
        raise SystemExit(str(error)) from None
