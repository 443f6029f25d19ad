"""The phase diagram: the solver's boundary, every run a training run that a GPU could take, and the report of few."""

import numpy as np
import pytest

from multiadvisor.analysis.theory.boards import Maze, exact_agent, peaks
from multiadvisor.envs.registry import make
from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Evidence, Plan
from studies import phase_diagram as phase


@pytest.fixture
def few(monkeypatch):
    """Two gammas and noises, two plannings, four mazes, runs of no length."""
    for name, value in (
        ("GAMMAS", {False: (0.4, 0.9)}), ("NOISES", {False: (0.0, 0.1)}), ("PAPERS", ("egocentric", "empathic")),
        ("EPSILONS", (0.05, 0.1)), ("ALPHAS", (0.1, 0.2)), ("ZOOM", (0.6, 0.7)), ("ZOOM_SEEDS", 2), ("MAZES", range(1)),
        ("COARSE", {"steps": 400, "eval_every": 200, "eval_episodes": 2}), ("BOARDS", 20), ("MAZE_BOARDS", 5),
    ):  # fmt: skip
        monkeypatch.setattr(phase, name, value)
    monkeypatch.setattr(phase.Sheet.__init__, "__defaults__", (("egocentric", "empathic"), ("sum",), False))


def test_the_boundary_is_where_attractors_begin():
    found = phase.boundary_work({"boards": 30, "shares": [0.3, 0.9]})
    task = make("pac-boy", ghosts=False)
    maze = Maze(task)
    boards = maze.random_boards(30, 0)
    assert 1 / 3 < found["attractor"] <= found["stable"] < found["stuck"] < 1  # the paper's bound, 1/(|A| - 1)
    for name, stable in (("attractor", 0), ("stable", 1)):
        below, above = (peaks(maze, boards, found[name] + step, "sum")[stable].any() for step in (-1e-3, 1e-3))
        assert (below, above) == (False, True)
    below, above = (
        exact_agent(task, "egocentric", found["stuck"] + step).evaluate(30).terminated for step in (-1e-3, 1e-3)
    )
    assert above < 0.5 <= below
    assert found["shares"]["stuck"][0] == found["shares"]["stable"][0] == 0.0
    assert found["shares"]["stuck"][1] > found["shares"]["stable"][1] > 0.5  # boards that come about get stuck as well
    assert not peaks(maze, boards[:5], 0.95, "max")[0].any(), "the nearest fruit is nearer from a cell next door"


@pytest.mark.slow
def test_the_report_of_few_runs(few, tmp_path):
    made = reproduce(Plan.of("phase-diagram", seeds=2), tmp_path / "out", workers=0)
    [report] = made.reports.values()
    assert [one.claim.id for one in report.findings] == ["phase-free", "phase-held", "phase-mazes"]
    page = report.page.read_text("utf-8")
    assert "first board with an attractor" in page
    assert sorted(path.name for path in (tmp_path / "out" / "figures").glob("*.png")) == [
        "phase-alpha.png", "phase-epsilon.png", "phase-length.png", "phase-mazes.png", "phase-score.png",
        "phase-terminated.png", "phase-touches.png", "phase-zoom.png",
    ]  # fmt: skip


LINES = {"attractor": 0.45, "stable": 0.5, "stuck": 0.65}


def made_up(plan, finishes, stuck=0.65):
    """Results in which a share of episodes is finished at each gamma; and the solver's line in each maze."""
    results = {phase.boundary_job().id: {**LINES, "shares": {}}}
    results |= {phase.boundary_job(maze).id: {"stuck": stuck} for maze in phase.mazes()}
    for one in phase.jobs(plan):
        if one.kind == "train":
            share = finishes(one.config["settings"]["gamma"])
            results[one.id] = {"evaluations": [{"score": 1.0, "length": 9.0, "terminated": share, "metrics": {}}]}
    return Evidence(plan, results)


@pytest.mark.parametrize(
    ("finishes", "stuck", "verdicts"),
    [
        (lambda gamma: float(gamma < 0.5), 0.65, [True, True, True]),
        (lambda gamma: float(gamma < 0.5), 0.75, [True, True, False]),  # the runs are held earlier
        (lambda gamma: float(gamma < 0.5), None, [True, True, False]),
        (lambda gamma: 1.0, 0.65, [True, False, False]),  # or never
        (lambda gamma: float(gamma > 0.5), 0.65, [False, False, False]),
    ],
)
def test_runs_are_judged_by_the_boundary(few, finishes, stuck, verdicts):
    """Made-up results, which keep to the boundary or do not."""
    plan = Plan.of("phase-diagram")
    assert [one.holds for one in phase.findings(made_up(plan, finishes, stuck))] == verdicts


def test_where_runs_are_held_and_what_a_map_shows(few):
    plan = Plan.of("phase-diagram")
    noise = phase.sheets(plan)["noise"]
    early = made_up(plan, lambda gamma: float(gamma < 0.5))
    assert phase.crossings(early, noise) == [0.65, 0.65]  # between 0.4, where all are finished, and 0.9, where none is
    assert phase.crossings(made_up(plan, lambda gamma: 1.0), noise) == [None, None]
    lines = [list(phase.boundary(early, aggregation).values()) for aggregation in ("sum", "max")]
    assert lines == [list(LINES.values()), [None] * 3]  # dotted, dashed, solid
    grown = made_up(plan, lambda gamma: gamma)
    assert np.array_equal(phase.field(grown, noise, "empathic", "max", "terminated"), [[0.4, 0.9]] * 2)


def test_each_sheet_changes_what_it_says():
    sheets = phase.sheets(Plan.of("phase-diagram"))
    jobs = {name: phase.cell_jobs(Plan.of("phase-diagram"), sheet, "egocentric", "sum", 0.5, list(sheet.rows)[-1])
            for name, sheet in sheets.items()}  # fmt: skip
    changed = {name: found[0].config["settings"] for name, found in jobs.items()}
    assert [changed["noise"]["noise"], changed["epsilon"]["epsilon"], changed["alpha"]["alpha"]] == [0.5, 0.5, 1.0]
    assert jobs["mazes"][0].config["options"]["maze"] == phase.mazes()["scattered walls 15"]
    assert len(phase.mazes()) == 32
