"""Training runs as jobs: data only, the same bytes on any number of workers, resumed bit for bit."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import multiadvisor as mad
from multiadvisor.core.interrupt import AtOnce
from multiadvisor.runs.child_process import environment
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.training import RunConfig, table_digest, train_config
from refusal import refused

SHORT = {"steps": 1200, "eval_every": 400, "eval_episodes": 3}


def config(**changes):
    return {"task": "pac-boy", "settings": {"seed": 1}, "schedule": SHORT, **changes}


def quiet(fraction):
    pass


def test_a_job_is_the_run_that_the_library_makes():
    result = train_config(config(settings={"planning": "agnostic", "gamma": 0.5, "seed": 4}), None, quiet)
    agent = mad.MultiAdvisor(mad.make("pac-boy"), planning="agnostic", gamma=0.5, seed=4).learn(1200, progress=False)
    assert result["sha256"] == table_digest(agent)
    seen = agent.evaluate(3, seeds=(3,))
    assert result["advisors"] == seen.advisors
    assert result["evaluations"][-1]["score"] == seen.score
    assert result["steps"] == 1200
    assert len(result["evaluations"]) == 3
    assert result == json.loads(json.dumps(result, allow_nan=False))


def test_weights_and_signs_of_life(monkeypatch):
    plain = train_config(config(task="bridge"), None, quiet)
    heavy = train_config(config(task="bridge", weights={"water": 5}), None, quiet)
    assert set(plain["advisors"]) == {"goal", "water"}
    assert "advisors" not in heavy["evaluations"][0]
    assert heavy["weights"] == {"water": 5.0}
    assert heavy["sha256"] != plain["sha256"]
    monkeypatch.setattr("multiadvisor.agent._PIECE_SECONDS", 0.0)  # every piece takes too long: they get smaller
    shares = []
    assert train_config(config(task="bridge"), None, shares.append) == plain
    assert len(shares) > 20
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.slow
def test_same_seed_same_bytes_on_1_2_and_8_workers(tmp_path):
    """Every planning x 3 seeds; the files themselves are compared."""
    jobs = [
        Job("train", config(settings={"planning": planning, "seed": seed}))
        for planning in ("egocentric", "agnostic", "empathic")
        for seed in range(3)
    ]
    found = []
    for workers in (1, 2, 8):
        results = run_jobs(tmp_path / str(workers), jobs, workers=workers)
        found.append([results.path(job).read_bytes() for job in jobs])
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 9


def test_a_killed_run_goes_on_from_where_it_was_saved(tmp_path, monkeypatch):
    """Killed twice in the middle, where nothing more is saved: the same bytes in the end."""
    monkeypatch.setenv("MULTIADVISOR_SAVE_SECONDS", "0")
    folder, reached = tmp_path / "scratch", []
    for least in (0.4, 0.7):

        def die(share, least=least):
            if share > least:
                raise AtOnce

        with pytest.raises(AtOnce):
            train_config(config(), folder, die)
        reached.append(json.loads((folder / "agent.json").read_text())["steps"])
    assert 0 < reached[0] < reached[1] < SHORT["steps"]
    assert train_config(config(), folder, quiet) == train_config(config(), None, quiet)


def test_a_checkpoint_that_cannot_be_used_is_begun_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIADVISOR_SAVE_SECONDS", "0")
    whole = train_config(config(), None, quiet)
    folder = tmp_path / "scratch"
    train_config(config(), folder, quiet)
    (folder / "agent.json").write_bytes((folder / "agent.json").read_bytes()[:-50])
    assert train_config(config(), folder, quiet) == whole
    (folder / "agent.json").unlink()  # only values, or what a killed write leaves
    (folder / ".agent.json.x.part").write_text("{")
    assert train_config(config(), folder, quiet) == whole


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tusk": 1}, "unknown key of a run 'tusk': did you mean 'task'"),
        ({"task": "os:Path-v0"}, "names a module"),
        ({"settings": {"gamma": "0.5"}}, "gamma is '0.5'"),
        ({"settings": {"planning": ["empathic"]}}, "planning is \\[.empathic.\\]: give its name"),
        ({"settings": {"seed": -1}}, "seed is -1"),
        ({"settings": []}, "settings of a run is"),
        ({"options": {"rules": 3}}, "unknown rules '3': choose one of hra, paper"),
        ({"options": {"limit": True}}, "option limit"),
        ({"options": {"limit": 0}}, "limit is 0"),
        ({"options": {"rulez": "hra"}}, "did you mean 'rules'"),
        ({"weights": {"water": "x"}}, "weight of 'water'"),
        ({"weights": {"nobody": 1}}, "no advisor or group"),
        ({"options": {"maze": "/nowhere"}}, "'/nowhere', the name of a file: give its text"),
    ],
)
def test_what_no_grid_says_is_refused_by_name_as_well(change, words):
    refused(words, train_config, config(**change), None, quiet)


def test_planted_modules_are_never_imported(tmp_path, monkeypatch):
    """Gymnasium imports what stands before a colon in a name: no config and no checkpoint may use that."""
    from multiadvisor.storage.checkpoint import read_checkpoint, write_checkpoint

    (tmp_path / "planted_here.py").write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    name = "planted_here:Thing-v0"
    refused("module to import", train_config, config(task=name), None, quiet)
    mad.MultiAdvisor(mad.make("bridge")).save(tmp_path / "agent")
    header, tensors = read_checkpoint(tmp_path / "agent")
    header["task"] = {**header["task"], "name": name, "maker": name}
    write_checkpoint(tmp_path / "agent", header, tensors)
    refused("module to import", mad.load, tmp_path / "agent")
    refused("and not of 'other:Thing-v0'", mad.load, tmp_path / "agent", "other:Thing-v0")
    assert not (tmp_path / "ran").exists()
    refused("Thing-v0", mad.make, name)  # what a user types himself is another matter
    assert (tmp_path / "ran").exists(), "the plant works: the test could have failed"


def test_defaults_do_not_change_who_a_run_is():
    complete = RunConfig.parse(config()).as_config()
    assert RunConfig.parse(complete).as_config() == complete
    assert RunConfig.parse(config(settings={"seed": 1, "gamma": 0.9})).as_config() == complete
    assert RunConfig.parse({**config(), "options": {"rules": "paper"}}).as_config() == complete
    whole = RunConfig.parse(config(settings={"gamma": 1})).as_config()
    assert whole["settings"]["gamma"] == 1.0
    assert isinstance(whole["settings"]["gamma"], float)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
NAMES = ("task", "options", "settings", "schedule", "weights", "title")
INNER = (
    "rules", "maze", "limit", "ghosts", "gamma", "alpha", "seed", "planning", "learner", "evaluations", "episodes",
    "noise",
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(NAMES), JUNK | st.dictionaries(st.sampled_from(INNER), JUNK, max_size=3)),
    st.sampled_from(("pac-boy", "bridge", "fruit-grid", None)),
)
def test_junk_is_refused_in_one_line(junk, task):
    with suppress(mad.BadInput):
        RunConfig.parse({**junk, **({"task": task} if task else {})}).make_task()


def test_a_worker_has_one_thread(tmp_path):
    program = "import os, numba, numpy; print(numba.config.NUMBA_NUM_THREADS, os.environ['OMP_NUM_THREADS'])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]
    assert Path(environment()["PYTHONPATH"].split(os.pathsep)[0], "multiadvisor").is_dir()
