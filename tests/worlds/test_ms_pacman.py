"""Atari's Ms. Pac-Man: the memory, the emulator, the advisors, and what the commands make of them."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.envs.worlds.atari import atari_picture, ms_pacman, ram
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.gvf_spec import FRONTIER, KnownModel
from multiadvisor.runs import side_by_side
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.pictures import Painting, pixels
from multiadvisor.runs.trace import record
from multiadvisor.studies import ms_pacman_study as study
from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Plan


# ---- the memory (no emulator needed) ---------------------------------------------------------------------------------
def memory(**changes):
    """An observation with nothing but Ms. Pac-Man in it, and some columns changed."""
    seen = ram.read(np.zeros(128, np.uint8), 3)
    seen[ram.GHOST_STATE] = ram.AWAY
    for name, value in changes.items():
        seen[getattr(ram, name)] = value
    return seen


def test_every_pellet_has_a_bit_and_a_cell_of_its_own():
    seen = set()
    for byte in range(59, 101):
        for bit in range(8):
            bytes_ = np.zeros(128, np.uint8)
            bytes_[byte] = 1 << bit
            seen.update(np.flatnonzero(ram.read(bytes_, 3)[ram.PELLET]).tolist())
    assert seen == set(range(ram.PELLETS))
    assert len(set(ram.PELLET_CELL.tolist())) == ram.PELLETS
    assert set(ram.PILL_CELL.tolist()) < set(ram.PELLET_CELL.tolist())


def test_the_states_of_a_ghost():
    """Eyes and the house are away; 0x50 hunts, and most lives are lost to it."""
    bytes_ = np.zeros(128, np.uint8)
    for code, state in (
        (0x00, 0),
        (0x30, 0),
        (0x50, 0),
        (0x80, 1),
        (0xD0, 1),
        (0x40, 2),
        (0x60, 2),
        (0x70, 2),
        (0xF0, 2),
    ):
        bytes_[1] = code
        assert ram.read(bytes_, 3)[ram.GHOST_STATE][0] == state, hex(code)


def look(met=(), steps=0):
    known = np.zeros(ms_pacman.N, bool)
    known[list(met)] = True
    return KnownModel(
        known,
        steps,
        lambda states, places: np.zeros((len(states), len(places))),
        lambda states: np.zeros((len(states), ram.CELLS)),
    )


def test_who_points_where():
    seen = memory(PELLET=1, PILL=1, FRUIT=40, FRUIT_POINTS=500, GHOST_CELL=[1, 2, 3, 4], TIMER=50)
    seen[ram.GHOST_STATE] = [ram.HUNTING, ram.EDIBLE, ram.AWAY, ram.EDIBLE]
    place, voice = ms_pacman.aim(100, True, 0, seen, look(met=[7]))
    at = ms_pacman.AT
    assert np.flatnonzero(place[at["pellets"]] >= 0).tolist() == [7], "a pellet speaks once one was eaten there"
    assert (place[at["pills"]] == -1).all(), "pills are spared while there is a ghost to be eaten"
    assert ms_pacman.aim(100, False, 0, seen, look()).place[at["pills"]].tolist() == ram.PILL_CELL.tolist()
    assert (place[at["fruit"]].item(), voice[at["fruit"]].item()) == (40, 500)
    assert place[at["edible"]].tolist() == [-1, 2, -1, 4]
    assert place[at["ghosts"]].tolist() == [1, -1, -1, -1]
    assert place[at["frontier"]].item() == FRONTIER
    assert ms_pacman.aim(100, True, 0, seen, look(steps=100)).place[at["frontier"]].item() == -1
    seen[ram.TIMER] = 1
    assert ms_pacman.aim(100, True, 0, seen, look()).place[at["pills"]].tolist() == ram.PILL_CELL.tolist()
    assert ms_pacman.aim(100, True, 0, seen, look()).place[at["ghosts"]].tolist() == [1, 2, -1, 4], (
        "they are about to turn"
    )


def test_a_pill_waits_until_ghosts_are_near():
    seen, at = memory(PILL=1, GHOST_CELL=[1, 2, 3, 4], CELL=7), ms_pacman.AT["pills"]
    seen[ram.GHOST_STATE] = [ram.HUNTING, ram.HUNTING, ram.AWAY, ram.HUNTING]
    far = {1: 3, 2: 40, 4: 40}

    def steps(states):
        return np.array([[far[int(state) // 4]] * ram.CELLS for state in states], float)

    known = look()._replace(distances=steps)
    assert ms_pacman.near(seen, known) == 1
    assert (ms_pacman.aim(0, True, 2, seen, known).voice[at] == ms_pacman.UNTIMELY).all()
    assert (ms_pacman.aim(0, True, 1, seen, known).voice[at] == 1.0).all()
    far[4] = ms_pacman.NEAR
    assert (ms_pacman.aim(0, True, 2, seen, known).voice[at] == 1.0).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [({"lure": 5}, "lure is 5"), ({"doubt": -1.0}, "doubt is -1"), ({"without": "fruit,fears"}, "'fears'")],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(BadInput, match=said):
        mad.make("ms-pacman", **options)


def test_ghosts_close_cells_and_pills_are_havens():
    seen = memory(PILL=[0, 1, 0, 0], GHOST_CELL=[1, 2, 3, 4], TIMER=10)
    seen[ram.GHOST_STATE] = [ram.HUNTING, ram.EDIBLE, ram.AWAY, ram.AWAY]
    asked = []

    def steps(states):
        asked.append([int(state) for state in states])
        return np.full((len(states), ram.CELLS), 43.0 if int(states[0]) == 4 else 20.0)

    found = ms_pacman.threat(4.0, seen, look()._replace(distances=steps))
    assert asked == [[4], [8, 9, 10, 11]], "who hunts does not turn back; who can be eaten may"
    slow = 10 + (20 - 10 * ms_pacman.FLEES) / ms_pacman.HUNTS
    assert found.closed[5] == pytest.approx(min(43 / ms_pacman.HUNTS, slow))
    plain = ms_pacman.threat(0.0, seen, look()._replace(distances=steps))
    assert found.closed[5] - plain.closed[5] == pytest.approx(ms_pacman.LATER)
    assert found.doubt == 4.0 > plain.doubt
    assert np.flatnonzero(found.haven).tolist() == [ram.PILL_CELL[1]]


def test_points_are_told_apart():
    before = memory(PELLET=1, PILL=1, FRUIT=40, FRUIT_POINTS=500)
    before[ram.GHOST_STATE] = [ram.EDIBLE, 0, 0, 0]
    after = before.copy()
    after[ram.PELLET.start + 9] = after[ram.PILL.start + 2] = 0
    after[ram.GHOST_STATE.start] = ram.AWAY
    found = ms_pacman.earned(before, after, 460.0)
    assert (found["pellets"], found["pills"], found["edible"], found["eaten"], found["levels"]) == (10, 50, 400, 1, 0)
    after[ram.FRUIT] = -1
    assert ms_pacman.earned(before, after, 960.0)["fruit"] == 500
    bare = memory(PELLET=0, PILL=0)
    assert ms_pacman.earned(bare, before, 10.0)["levels"] == 1, "the board is full again"


def test_who_is_paid_for_what():
    at, before = ms_pacman.AT, memory(PELLET=1, PILL=1, FRUIT=40, FRUIT_POINTS=500)
    after = before.copy()
    after[ram.PELLET.start + 9] = after[ram.PILL.start + 2] = 0
    paid = ms_pacman.paid(before, after, 60.0)
    assert np.flatnonzero(paid).tolist() == [at["pellets"].start + 9, at["pills"].start + 2]
    after = before.copy()
    after[ram.FRUIT] = -1
    assert np.flatnonzero(ms_pacman.paid(before, after, 500.0)).tolist() == [at["fruit"].start]
    assert not ms_pacman.paid(before, after, 0.0).any(), "it went away by itself"
    before[ram.GHOST_STATE], before[ram.GHOST_CELL] = [0, 0, 2, 2], [5 * 37, 1, 0, 0]
    after = before.copy()
    after[ram.LIVES] -= 1
    assert np.flatnonzero(ms_pacman.paid(before, after, 0.0)).tolist() == [at["ghosts"].start + 1], "the nearest"
    assert ms_pacman.is_new_life(before, after)


def test_wishes_and_fears_are_drawn_where_their_cell_is():
    blank = np.zeros((210, 160, 3), np.uint8)
    atari_picture.mark(blank, ram.cell_of(88, 98), -1.0)
    rows, columns = np.nonzero(blank.any(axis=2))
    assert (rows.mean(), columns.mean()) == (98 + atari_picture.DOWN, 88 + atari_picture.LEFT)
    assert set(map(tuple, blank[rows, columns].tolist())) == {atari_picture.FEAR}


# ---- the study -------------------------------------------------------------------------------------------------------
def faked(score, seed):
    scores = (score + 100 * np.random.default_rng(seed).standard_normal(30)).tolist()
    return {"learning": scores * 10, "scores": scores, "mazes": [2] * 30, "frames": 1000, "steps": 10, "goals": 5}


@pytest.mark.slow
def test_the_report_claims_only_what_the_runs_show(tmp_path):
    summed = [f"{study.PLAIN}: {planning}, gamma 0.99, sum" for planning in ("agnostic", "egocentric")]
    level = {study.BASE: 15_600, summed[0]: 9_000, summed[1]: 4_000}
    lines = [
        {"id": study.job(name, seed).id, "result": faked(score, seed)}
        for name, score in level.items()
        for seed in range(3)
    ]
    given = tmp_path / "runs.jsonl"
    given.write_text("\n".join(map(json.dumps, lines)))
    found = reproduce(Plan.of("ms-pacman"), tmp_path / "out", given=given).as_dict()
    assert [one["verdict"] == "holds" for one in found["judged"]] == [True, False, False, True, True]
    assert set(found["table"]) == set(level)
    assert study.CAVEAT in (tmp_path / "out" / "report.md").read_text()
    assert (tmp_path / "out" / "figures" / "ms-pacman.png").stat().st_size > 10_000
    with pytest.raises(BadInput, match="holds no runs"):
        study.given_runs(tmp_path / "out" / "figures" / "ms-pacman.png")


def test_settings_of_the_study_can_all_be_made():
    for name in study.SETTINGS:
        assert study.job(name, 0).config["episodes"] == study.EPISODES


# ---- the emulator ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few steps, saved in the middle of an episode."""
    pytest.importorskip("ale_py")
    folder = tmp_path_factory.mktemp("pacman") / "run"
    flags = ["--steps", "700", "--eval-every", "700", "--eval-episodes", "1", "--limit", "900"]
    assert main(["train", "ms-pacman", *flags, "--out", str(folder), "--json"]) == 0
    return folder


@pytest.mark.slow
def test_it_learns_advisors_as_it_meets_their_goals(run):
    agent = mad.load(run)
    bank = agent.decider
    assert agent.settings.planning == "agnostic"
    assert (agent.settings.gamma, agent.settings.aggregation, agent.settings.epsilon) == (0.99, "normalised", 0.03)
    room = bank.rooms[0]
    assert room.states > 80
    assert 10 < room.paid[ms_pacman.AT["pellets"]].sum() < 160
    assert bank.kinds == [("agnostic", 0.99), ("egocentric", pytest.approx(0.7))]


@pytest.mark.slow
def test_a_saved_episode_goes_on_bit_for_bit(run, tmp_path):
    first, second = mad.load(run), mad.load(run)
    first.learn(60, progress=False)
    second.learn(25, progress=False).save(tmp_path / "half")
    second = mad.load(tmp_path / "half").learn(35, progress=False)
    one, other = first._learner.tensors(), second._learner.tensors()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_episodes_side_by_side_are_those_that_are_played_in_step(run, capsys):
    agent = mad.load(run)
    plain, split = agent.decider.evaluate(2, 5), side_by_side.evaluate(run, 2, 5, workers=0)
    for one, other in zip(plain, split, strict=True):
        assert np.array_equal(one, other)
    assert len(set(plain.score)) > 1, "the episodes are different ones"
    assert main(["evaluate", str(run), "--episodes", "1", "--workers", "2", "--report"]) == 2
    assert "--workers plays episodes for their scores" in capsys.readouterr().err


@pytest.mark.slow
def test_reproduce_runs_what_no_file_has(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ale_py")

    def tiny(name, seed):
        config = {**study.SETTINGS[name], "options": {"limit": 200}, "seed": seed, "episodes": 10, "evaluation": 2}
        return Job("ms-pacman", config)

    monkeypatch.setattr(study, "job", tiny)
    flags = ["--seeds", "1", "--workers", "0", "--out", str(tmp_path / "out"), "--json"]
    assert main(["reproduce", "ms-pacman", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    row = found["table"][study.BASE]
    assert (row["episodes"], row["learned"]) == (2, [10])
    assert sum(row["sources"][what] for what in ("pellets", "pills", "fruit", "edible")) == row["score"]
    assert "| as shipped |" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.slow
def test_the_commands_work_on_it(run, tmp_path, capsys):
    film = tmp_path / "episode.gif"
    assert main(["evaluate", str(run), "--episodes", "1", "--video", str(film), "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["score"] > 0
    assert film.read_bytes().startswith(b"GIF89a")
    assert main(["explain", str(run), "--step", "40", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert any(name.startswith(("pellet", "pill")) for name in found["differences"])
    assert main(["evaluate", str(run), "--episodes", "1", "--trace", str(tmp_path / "a.trace"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["score"] == seen["score"]
    assert main(["explain", str(run), "--trace", str(tmp_path / "a.trace"), "--step", "40", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["differences"] == pytest.approx(found["differences"])
    assert main(["check", "ms-pacman"]) == 2
    assert "general value functions" in capsys.readouterr().err


@pytest.mark.slow
def test_wishes_and_fears_are_drawn_into_the_pictures_of_a_trace(run):
    agent = mad.load(run)
    trace = record(agent, longest=30)
    drawn, plain = (Painting(one, 0, agent.task) for one in (trace, replace(trace, goals=None)))
    for painting in (drawn, plain):
        painting.advance(29)
        assert not painting.reason
    marked = [np.any(pixels(drawn.content[drawn.of[t]]) != pixels(plain.content[plain.of[t]])) for t in range(30)]
    seen = [trace.step(0, step) for step in range(30)]
    said = [one.advice[one.goals >= 0, one.action].any() for one in seen]  # of the action that is taken
    assert marked == said
    assert any(marked)


@pytest.mark.slow
@pytest.mark.skipif("MULTIADVISOR_ATARI" not in os.environ, reason="some minutes: set MULTIADVISOR_ATARI=1")
def test_sixty_episodes_are_enough_for_5000_points():
    pytest.importorskip("ale_py")
    config = {**study.SETTINGS[study.BASE], "seed": 1, "episodes": 60, "evaluation": 10}
    assert np.mean(study.work(config)["scores"]) >= 5_000
