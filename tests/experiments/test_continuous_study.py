"""The study of continuous actions: what its statistics say of made-up runs, and a small run of its own."""

import json
from pathlib import Path

import numpy as np
import pytest

from multiadvisor.cli import main
from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Evidence, Plan
from studies.continuous import figures, findings, fits_of, late
from studies.continuous_runs import Run, results, task_of

SEEDS = [0, 1, 2, 3, 4]


def made(kind, level, evaluations=4, environment="E"):
    """A run whose returns rise to a level, a little higher from seed to seed."""
    rise = np.linspace(0, level, evaluations)
    return {"environment": environment, "kind": kind, "seeds": SEEDS, "steps": 100, "of_steps": 100,
            "evaluations": evaluations, "returns": [(rise + seed).tolist() for seed in SEEDS]}  # fmt: skip


def fitted(correlation, bias, share=0.9):
    fit = {"predicted": 0.0, "followed": 0.0, "correlation": correlation, "bias": bias, "share": share}
    return {**made("separate", 10.0), "calibration": [{"term": fit, "small": {**fit, "share": 0.01}} for _ in SEEDS]}


def evidence_of(runs):
    return Evidence(Plan("continuous"), dict(enumerate(runs)))


def held(found):
    return {one.claim.id: one.holds for one in findings(evidence_of(found))}


def test_who_is_behind_is_found_behind():
    found = held([made("separate", 10.0), made("shared", 4.0), made("sbx", 10.0)])
    assert found == {"E-sbx": True, "E-shared": False}
    assert held([made("separate", 4.0), made("sbx", 10.0)]) == {"E-sbx": False}


def test_runs_are_compared_as_far_as_both_have_come():
    one, other = late([made("separate", 10.0, 4), made("sbx", 30.0, 2)], "E", "separate", "sbx")
    assert one[0] == pytest.approx(10 / 3)  # the second of two
    assert other[0] == pytest.approx(30.0)
    assert late([made("separate", 10.0)], "E", "separate", "sbx") is None


def test_a_seed_that_was_stopped_early_does_not_shorten_the_others():
    short = {**made("separate", 10.0, 2), "seeds": [7], "returns": [[0.0, 10.0]]}
    found = [made("separate", 10.0, 4), made("sbx", 30.0, 4), short, {**short, "kind": "sbx"}]
    one, other = late(found, "E", "separate", "sbx")
    assert one[0] == pytest.approx((10 * 2 / 3 + 10) / 2)  # the later two of four
    assert one[-1] == other[-1] == 10.0


def test_runs_that_came_to_their_end_are_compared_by_themselves_too():
    stopped = [{**made(kind, level, 2), "seeds": [5, 6, 7, 8, 9], "evaluations": 4} for kind, level in
               (("separate", 4.0), ("sbx", 90.0))]  # fmt: skip
    ended = [made("separate", 10.0), made("sbx", 8.0)]
    assert held([*stopped, *ended]) == {"E-sbx": False, "E-100-sbx": True}
    assert held(ended) == {"E-sbx": True}


@pytest.mark.parametrize(("correlation", "bias", "holds"), [(0.9, -0.4, True), (0.7, 0.0, False), (0.9, 0.6, False)])
def test_calibration_needs_both_and_leaves_small_terms_out(correlation, bias, holds):
    runs = [fitted(correlation, bias), made("shared", 10.0)]
    assert held(runs) == {"E-shared": True, "E-term-calibrated": holds}
    _, large, small = figures(evidence_of(runs))[1].table
    assert large[:4] == ("E", "separate", "term", "90%")
    assert large[4].startswith(f"{correlation:.2f} ")
    assert small[-1] == "small"


def test_a_seed_in_whose_episodes_a_term_never_came_says_nothing_of_it():
    run = fitted(0.9, 0.1)
    fits = run["calibration"]
    fits[0] = {"term": {**fits[0]["term"], "correlation": 0.0, "bias": 0.0, "share": 0.0}}
    assert held([run, made("shared", 10.0)])["E-term-calibrated"]
    assert fits_of([run])[0].correlation.value == pytest.approx(0.9)


def test_a_critic_kept_that_is_better_is_seen():
    ways = {"policy as it was": [0.0] * 5, "from scratch, after 20": [5.0] * 5}
    for when, (anew, kept) in {"after 10": (3.0, 1.0), "after 20": (2.0, 4.0)}.items():
        ways |= {f"critic anew, {when}": [anew] * 5, f"critic kept, {when}": [kept] * 5}
    found = held([{**made("reweight", 0.0), **ways, "kind": "reweight"}])
    assert found == {"E-anew-after-10": True, "E-anew-after-20": False, "E-going-on": True, "E-scratch": False}
    other = {**ways, "policy as it was": [9.0] * 5, "from scratch, after 20": [1.0] * 5}
    found = held([{**made("reweight", 0.0), **other, "kind": "reweight"}])
    assert (found["E-going-on"], found["E-scratch"]) == (False, True)


def test_the_rest_of_the_pendulums_reward_is_the_cost_of_torque():
    task = task_of("Pendulum-v1")
    reader, draw = task.adapter.fresh(table=False), np.random.default_rng(0)
    reader.reset(3)
    for _ in range(100):
        push = draw.uniform(-1, 1, 1).astype(np.float32)
        reader.step(push)
        assert reader.paid[2] == pytest.approx(-0.001 * (2 * push[0]) ** 2, abs=1e-5)


def test_the_rest_of_the_landers_reward_is_a_difference_of_shapings():
    task = task_of("LunarLanderContinuous-v3")
    reader, draw = task.adapter.fresh(table=False), np.random.default_rng(0)
    reader.reset(3)

    def shaping(x):
        return -100 * (np.hypot(x[0], x[1]) + np.hypot(x[2], x[3]) + abs(x[4])) + 10 * (x[6] + x[7])

    over = False
    while not over:
        before = shaping(np.asarray(reader.observation, float))
        over = any(reader.step(draw.uniform(-1, 1, 2).astype(np.float32)))
        if not over:
            assert reader.paid[0] == pytest.approx(shaping(np.asarray(reader.observation, float)) - before, abs=1e-3)
    assert reader.paid.tolist() == [0.0, -100.0, 0.0, 0.0]


@pytest.mark.slow
def test_a_small_run_and_its_report(tmp_path, capsys):
    pytest.importorskip("jax")
    short = {"steps": 96, "evaluations": 2, "episodes": 1, "units": 8, "batch": 8, "starts": 32}
    runs = []
    for kind in ("separate", "shared"):
        *_, found = results(Run("Pendulum-v1", kind, (0, 1), **short))
        assert np.shape(found["returns"]) == (2, 2)
        assert sum(list(found["influence"][0].values())[:-1]) == pytest.approx(1.0)
        runs.append(found)
    *_, halted = results(Run("Pendulum-v1", "separate", (0, 1), **short), lambda: True)
    assert (halted["steps"], np.shape(halted["returns"]), "influence" in halted) == (48, (2, 1), True)
    (tmp_path / "study.json").write_text(json.dumps({"runs": runs}))
    assert (
        main(
            ["reproduce", "continuous", "--from", str(tmp_path / "study.json"), "--out", str(tmp_path / "o"), "--json"]
        )
        == 0
    )
    assert {"name", "verdict", "judged"} <= json.loads(capsys.readouterr().out).keys()
    assert (tmp_path / "o" / "figures" / "continuous.png").is_file()
    assert "2 seeds, 96 transitions" in (tmp_path / "o" / "report.md").read_text()


def test_the_documents_say_what_the_runs_say(tmp_path):
    documents = Path(__file__).parents[2] / "docs"
    reproduce(Plan.of("continuous"), tmp_path / "out", given=documents / "continuous-study.json")
    parts = (tmp_path / "out" / "report.md").read_text("utf-8").split("\n\n")
    tables = [part for part in parts if part.startswith("|")]
    text = (documents / "continuous-study.md").read_text("utf-8")
    assert len(tables) == 2
    assert all(table in text for table in tables)


def test_bad_input_is_one_line(tmp_path, capsys):
    (tmp_path / "no.json").write_text("[]")
    for arguments, said in (
        (["--from", str(tmp_path / "no.json")], "no.json' holds no runs: give a file"),
        (["--from", str(tmp_path / "none.json")], "none.json': No such file or directory; give a file"),
        (["--from", "x", "--seeds", "3"], "--seeds"), (["--rules", "hra"], "--rules"),
    ):  # fmt: skip
        assert main(["reproduce", "continuous", *arguments, "--out", str(tmp_path / "o")]) == 2
        told = capsys.readouterr().err.strip()
        assert (len(told.splitlines()), said in told, "Errno" in told) == (1, True, False), told
