"""What is said of Ms. Pac-Man is what the runs in the repository say."""

import runpy
from pathlib import Path

import pytest

from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Evidence, Plan
from studies import ms_pacman

ROOT = Path(__file__).parents[2]


def findings(shipped, agnostic, frames):
    """What is found where every episode of the agent as shipped, and of plain agnostic advisors, has this score."""
    egocentric, far_sighted = (f"{ms_pacman.PLAIN}: {name}, gamma 0.99, sum" for name in ("egocentric", "agnostic"))
    plan = Plan("ms-pacman", seeds=2)
    told = {ms_pacman.BASE: shipped, egocentric: 3_000.0, far_sighted: agnostic}
    results = {ms_pacman.job(name, seed).id: {"scores": [score + k for k in range(5)], "mazes": [1] * 5,
                                              "learning": [score] * 300, "frames": frames}
               for name, score in told.items() for seed in plan.each}  # fmt: skip
    return ms_pacman.findings(Evidence(plan, results))


def test_every_claim_holds_in_one_world_and_falls_in_another():
    good, bad = findings(30_000.0, 6_100.0, 4_000_000), findings(9_000.0, 5_900.0, 4_600_000)
    assert [one.claim.id for one in good] == ["every-seed", "above-human", "above-hra", "frames", "agnostic"]
    assert [{one.holds for one in found} for found in (good, bad)] == [{True}, {False}]


@pytest.mark.slow
def test_the_documents_say_what_the_runs_say(tmp_path):
    maker = runpy.run_path(str(ROOT / "docs" / "from_ms_pacman.py"))
    reproduce(maker["plan"](), tmp_path / "out", given=ROOT / "docs" / "ms-pacman-study.jsonl", workers=0)
    said = maker["body"]((tmp_path / "out" / "report.md").read_text("utf-8"))
    assert said in (ROOT / "docs" / "ms-pacman-results.md").read_text("utf-8"), "run python docs/from_ms_pacman.py"
    shipped = next(line for line in said.splitlines() if line.startswith("| as shipped |"))
    assert shipped.split(" | ")[1] in (ROOT / "README.md").read_text("utf-8")
