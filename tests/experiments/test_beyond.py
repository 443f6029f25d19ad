"""Beyond the paper: each claim holds in a made-up world and falls in the contrary one; what is chosen and what is
reported have nothing in common; walks and tours on boards; the report, from runs of its own and from a file."""

import itertools
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from told import Told

from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.commands.reproduce import run
from multiadvisor.core.aggregations import AGGREGATIONS, aggregation_named
from multiadvisor.core.plannings import TEMPERATURE, bootstrap, egocentric, tempered
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.board import parse_maze
from multiadvisor.errors import BadInput
from multiadvisor.studies import claims, reproduction
from multiadvisor.studies.paper import tours
from multiadvisor.studies.study import Evidence, Plan, chosen
from refusal import refused
from studies import beyond, mazes, schemes

PLAN = Plan("beyond", full=True, seeds=4, first_seed=1000)
SHORT = replace(PLAN, full=False, seeds=3)


# ---- what is run -----------------------------------------------------------------------------------------------------
def test_what_is_chosen_on_is_never_reported_on():
    chosen = {(one.config["run"]["options"]["maze"], one.config["run"]["settings"]["seed"])
              for one in (schemes.run_job(schemes.EMP_MAX, case, seed, PLAN)
                          for case in schemes.choice_cases() for seed in schemes.choice_seeds(PLAN))}  # fmt: skip
    reported = {(one.config["run"]["options"].get("maze"), one.config["run"]["settings"]["seed"])
                for one in (schemes.run_job(schemes.EMP_MAX, case, seed, PLAN)
                            for case in beyond.report_cases(PLAN) for seed in PLAN.each)}  # fmt: skip
    assert not {maze for maze, _ in chosen} & {maze for maze, _ in reported}
    assert not {seed for _, seed in chosen} & {seed for _, seed in reported}


def test_the_mazes_are_what_they_are_called():
    found = {name: parse_maze(maze.text) for name, maze in mazes.report_mazes().items() if maze.text}
    assert found["large"].shape == (21, 21)
    assert found["open"].shape == (11, 11)
    assert not found["open"].walls.any()
    corridor = (found["corridor"].walls.sum(axis=0) == found["corridor"].shape[0] - 1).sum()
    assert corridor == 12
    for maze in (*mazes.report_mazes().values(), *mazes.choice_mazes().values()):
        task = make("pac-boy", **maze.options)
        assert maze.holds == len(task.grid.item_cells) / 2
        assert task.limit == maze.limit
    assert mazes.carved(7, 9, 2, 1) == mazes.carved(7, 9, 2, 1) != mazes.carved(8, 9, 2, 1)


@pytest.mark.slow
def test_the_short_plan_is_a_part_of_the_full_one_and_the_papers_report_has_none_of_it():
    short, full = schemes.all_runs(SHORT), schemes.all_runs(PLAN)
    assert set(short) < set(full)
    assert len(short) < 400
    assert "beyond" not in [study.name for study in chosen()]
    assert [study.name for study in chosen("beyond")] == ["beyond"]
    assert [Plan.of("beyond", full).seeds for full in (False, True)] == [3, 10]
    assert {case.rules for case in schemes.other_rules(PLAN)} == {"hra"}


# ---- new ways to hear and to plan ------------------------------------------------------------------------------------
def test_max_plus_is_between_the_strongest_wish_and_the_sum():
    advice, weights = np.array([[1.0, 3.0], [2.0, -4.0], [9.0, 9.0]]), np.array([1.0, 0.5, 0.0])
    assert AGGREGATIONS["max_plus"](advice, weights, 0.5).tolist() == [1.0 + 0.5 * 2.0, 3.0 + 0.5 * 3.0]
    assert (AGGREGATIONS["max_plus"](advice, weights, 0.0) == AGGREGATIONS["max"](advice, weights)).all()
    away = AGGREGATIONS["max_plus"](advice[:2], weights[:2], -0.25)  # from crowds
    assert away.tolist() == [1.0 - 0.25 * 2.0, 3.0 - 0.25 * 3.0]
    refused("share of the sum", aggregation_named, "max_plus:-1.5")


@pytest.mark.parametrize("name", ["max_plus:0.3", "p_norm:8", "p_norm:2.5", "p_norm:2000"])
def test_the_twins_fill_what_the_array_forms_say(name):
    found, parameter = aggregation_named(name)
    generator = np.random.default_rng(1)
    for _ in range(20):
        table, rows, weights = generator.normal(size=(9, 4)), generator.integers(9, size=6), generator.normal(size=6)
        weights[generator.random(6) < 0.2] = 0.0
        got = np.full(4, np.nan)
        found.fill(table, rows, weights, 6, parameter, got)
        np.testing.assert_allclose(got, found(table[rows], weights, parameter), rtol=1e-9, atol=1e-12)


def test_tempered_planning_is_egocentric_where_one_action_is_much_better_and_a_mean_where_all_are_equal():
    far = np.array([[0.0, 50 * TEMPERATURE, 0.0]])
    assert bootstrap(tempered, far)[0] == pytest.approx(bootstrap(egocentric, far)[0])
    noisy = np.random.default_rng(0).normal(size=(2000, 4)) * 0.01
    assert abs(bootstrap(tempered, noisy).mean()) < 0.1 * bootstrap(egocentric, noisy).mean()


# ---- boards ----------------------------------------------------------------------------------------------------------
def test_the_tour_is_the_shortest_of_all_on_small_boards():
    task = make("pac-boy", ghosts=False)
    steps, world = Maze(task).distances, task.world.constants
    generator = np.random.default_rng(0)
    for _ in range(10):
        places = generator.choice(len(steps), 6, replace=False)
        away = steps[places][:, [world.start, *world.fruit_cell[places]]]
        best = min(
            away[order[0], 0] + sum(away[a, 1 + b] for a, b in itertools.pairwise(order))
            for order in itertools.permutations(range(6))
        )
        assert tours.tour(away, 10, generator) == best


def test_walks_end_and_are_never_shorter_than_the_tour():
    task = make("pac-boy", ghosts=False)
    boards, found = Maze(task).random_boards(5, tours.FIRST_BOARD), tours.tours_work(tours.tours_job(5).config)
    assert found["fruits"] == boards.sum(axis=1).tolist()
    for (name, _), steps in zip(tours.WALKS, found["walks"], strict=True):
        assert (np.array(steps) >= np.array(found["tours"])).all()
        assert name != "max" or max(steps) < task.limit
    assert (np.array(found["walks"][tours.WALKS.index(("sum", 0.9))]) == task.limit).any()  # attractors


# ---- claims ----------------------------------------------------------------------------------------------------------
EGO, EMP = "egocentric 0.9, max", "empathic 0.9, max"
SUM = "empathic 0.9, sum"
# What a world says in which all claims hold: (scheme, noise or None for any, figure) -> number
TRUE = {
    (EGO, None, "score"): 36.5, (EGO, None, "length"): 120.0, (EGO, None, "terminated"): 0.99, (EGO, 0.3, "score"): 2.0,
    (EMP, None, "score"): 36.4, (EMP, None, "length"): 125.0, (EMP, None, "terminated"): 0.98,
    (EGO, None, "early"): 29.0,
    ("egocentric 0.9, sum", None, "terminated"): 0.0,
}  # fmt: skip
OTHERS = {"score": 30.0, "length": 200.0, "terminated": 0.97, "touches": 0.1, "bad": 0.001, "early": 20.0}
# For each claim, what would refute it; and where that is in part only, what would refute it wholly.
REFUTED = {
    "max-without-noise": [{(EGO, 0.0, "terminated"): 0.5}, {(EGO, None, "score"): 0.0, (EGO, None, "length"): 300.0}],
    "max-with-noise": [{(EGO, 0.1, "length"): 200.0}, {(EGO, 0.1, "score"): 0.0, (EGO, 0.1, "length"): 300.0}],
    "empathic-max-with-much-noise": [
        {(EMP, 0.3, "terminated"): 0.3}, {(EMP, 0.3, "score"): 0.0, (EMP, 0.3, "terminated"): 0.0},
    ],
    "max-saves-steps": [{(EGO, 0.01, "length"): 201.0}, {(EGO, None, "length"): 300.0}],
    "empathic-max-saves-steps": [{(EMP, 0.1, "length"): 201.0}, {(EMP, None, "length"): 300.0}],
    "max-saves-steps-by-other-rules": [{(EMP, 0.0, "hra length"): 210.0}, {(EMP, None, "hra length"): 300.0}],
    "max-learns-faster": [{(SUM, None, "early"): 30.0}, {(EGO, None, "early"): 1.0}],
    "never-stuck": [
        {("egocentric 0.99, max", None, "terminated"): 0.4},
        {(f"egocentric {gamma:g}, max", None, "terminated"): 0.1 for gamma in schemes.GAMMAS},
    ],
    "max-and-bias": [{(EGO, 0.3, "score"): 35.0}, {(EGO, 0.3, "score"): 37.0}],
    "max-in-other-mazes": [{(EMP, 0.03, "large score"): 25.0}, {(EMP, None, "score"): 1.0}],
    "never-worse": [
        {("egocentric 0.4, sum", 0.1, "open score"): 50.0},
        {(scheme.name, None, "score"): 1.0 for scheme in schemes.CANDIDATES},
    ],
    "max-walks-shorter": [{("tours", "max", 0.9): 95.0}],
    "max-is-near-the-tour": [{("tours", "max", 0.9): 84.0}, {("tours", "max", 0.9): 95.0}],
    "max-away-from-crowds": [{("tours", "max_plus:-0.001", 0.9): 84.0}, {("tours", "max_plus:-0.001", 0.9): 95.0}],
    "max-avoids-bad-episodes": [{(EGO, 0.0, "bad"): 0.01}, {(EGO, 0.0, "bad"): 0.1, (EGO, 0.0, "score"): 30.0}],
}  # fmt: skip


def told(world, job):
    if job.kind == "tours":
        boards = job.config["boards"]
        steps = {("sum", 0.4): 90.0, ("max", 0.9): 75.0, ("max_plus:-0.001", 0.9): 74.0}
        walks = [world.get(("tours", *walk), steps.get(walk, 100.0)) for walk in tours.WALKS]
        shift = 0.01 * np.arange(boards)
        return {"walks": [(one + shift).tolist() for one in walks], "tours": [70.0] * boards, "limit": 300,
                "fruits": [37] * boards}  # fmt: skip
    run = job.config["run"]
    s, text = run["settings"], run["options"].get("maze")
    scheme = schemes.Scheme(s["planning"], s["gamma"], s["aggregation"], s["alpha_half"])
    maze = next(m.name for m in (*mazes.report_mazes().values(), *mazes.choice_mazes().values())
                if m.options.get("maze") == text)  # fmt: skip
    places = [maze, "hra"] if run["options"]["rules"] == "hra" else [maze]

    def figure(name):
        keys = [(scheme.name, noise, f"{prefix}{name}") for prefix in (*(f"{p} " for p in places), "")
                for noise in (s["noise"], None)]  # fmt: skip
        value = next((world[key] for key in keys if key in world), OTHERS[name])
        return value + 0.001 * (s["seed"] % 7) * (1 + len(scheme.name) % 3) * (0.01 if value < 1 else 1)

    last = {name: figure(name) for name in schemes.MEASURES}
    return {"last": last, "first": {**last, "score": figure("early")}, "scores": [last["score"]] * 50}


def by_id(jobs):
    return {job.id: job for job in jobs}


@pytest.fixture(scope="module")
def jobs():
    return by_id(beyond.jobs(PLAN))


def evidence_of(jobs, changes=None, plan=PLAN):
    return Evidence(plan, Told(partial(told, {**TRUE, **(changes or {})}), jobs))


def judged(jobs, changes=None, plan=PLAN):
    return {one.claim.id: one for one in claims.judge_all(evidence_of(jobs, changes, plan), papers=False)}


def verdict_of(jobs, name, changes):
    """The judgement of one claim in a changed world."""
    return claims.judged(claims.CLAIMS[name], evidence_of(jobs, changes))


@pytest.mark.slow
def test_in_such_a_world_every_claim_holds_and_each_has_its_own_refutation(jobs):
    found = judged(jobs)
    assert {name: one.judgement.verdict for name, one in found.items()} == dict.fromkeys(found, claims.HOLDS)
    assert set(found) == set(REFUTED)
    assert not set(found) & {one.id for one in claims.all_claims()}  # the paper's are kept apart
    assert claims.counts(list(found.values())) == {"holds": len(found), "partly": 0, "does not hold": 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUTED)
def test_a_verdict_flips_with_contrary_results_and_falls_all_the_way(jobs, name):
    found = verdict_of(jobs, name, REFUTED[name][0])
    assert found.verdict in (claims.PARTLY, claims.FAILS)
    assert any(letter.isdigit() for letter in found.explanation)
    assert verdict_of(jobs, name, REFUTED[name][-1]).verdict == claims.FAILS


@pytest.mark.slow
def test_the_choice_follows_the_choices_runs_and_not_the_reports(jobs):
    liked = schemes.aggregated(schemes.EMPATHIC, "p_norm:3")
    changes = {(liked.name, None, f"{maze} score"): 40.0 for maze in mazes.choice_mazes()}
    assert beyond.choice(evidence_of(jobs, changes)) == liked
    reported = {(liked.name, None, f"{maze} score"): 40.0 for maze in mazes.report_mazes()}
    assert beyond.choice(evidence_of(jobs, reported)) != liked


def test_the_short_plan_judges_what_it_can_and_says_what_the_rest_needs():
    found = judged(by_id(beyond.jobs(SHORT)), plan=SHORT)
    assert found["never-worse"].judgement is None
    assert found["never-worse"].reason == "needs `multiadvisor reproduce beyond --full`"
    assert sum(one.judgement is None for one in found.values()) == 1


def test_runs_that_were_cut_short_hold_nothing_about_the_end_of_learning():
    short = replace(SHORT, epochs=20)
    found = judged(by_id(beyond.jobs(short)), plan=short)["max-without-noise"].judgement
    assert found.verdict == claims.PARTLY
    assert "After 20 of 50 epochs" in found.explanation


# ---- the report ------------------------------------------------------------------------------------------------------
TINY = Plan("beyond", seeds=2, first_seed=1000, epochs=1, transitions=100, episodes=2, boards=3)


@pytest.mark.slow
def test_the_report_from_runs_and_from_a_file_is_the_same(tmp_path):
    first = reproduction.reproduce(TINY, tmp_path / "one", workers=0)
    lines = [json.loads(line) for line in (tmp_path / "one" / "results.jsonl").read_text().splitlines()]
    results = {schemes.Job(line["kind"], line["config"]).id: line["result"] for line in lines}
    (tmp_path / "beyond.json").write_text(json.dumps({"results": results}))
    again = reproduction.reproduce(TINY, tmp_path / "two", workers=0, given=tmp_path / "beyond.json")
    assert set(again.machine["stages"]) == {"report"}  # nothing was run
    assert first.as_dict()["judged"] == again.as_dict()["judged"]
    for name in ("report.html", "report.md", "claims.json", "results.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    text = (tmp_path / "one" / "report.md").read_text()
    assert "claims that are not the paper's" in text
    assert "1000 to 1001" in text
    assert "DQN" not in text
    assert (tmp_path / "one" / "figures" / "beyond-score.svg").exists()


def test_bad_files_and_flags_are_refused_in_one_line(tmp_path):
    (tmp_path / "bad.json").write_text('{"results": [1]}')
    with pytest.raises(BadInput, match=r"bad\.json' holds no runs: give a file that benchmarks/beyond_runs"):
        beyond.STUDY.given(tmp_path / "bad.json")
    with pytest.raises(BadInput, match=r"cannot read .*none\.json': No such file"):
        run(["beyond", "--from", str(tmp_path / "none.json"), "--out", str(tmp_path / "out")])
    refused("--from is for beyond", run, ["noise", "--from", str(tmp_path / "bad.json")])
    assert not (tmp_path / "out").exists()
