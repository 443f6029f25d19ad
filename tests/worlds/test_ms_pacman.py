"""Atari's Ms. Pac-Man: the memory, the emulator, the advisors, and what the commands make of them."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import multiadvisor as mad
from agents import in_pieces, same
from command_line import printed, typed
from multiadvisor.analysis.episodes import record
from multiadvisor.cli import main
from multiadvisor.envs.worlds.atari import ms_pacman, ram
from multiadvisor.learners.gvf.gvf_spec import FRONTIER, KnownModel
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.pictures import Painting, pixels
from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Plan
from refusal import refused
from studies import ms_pacman as study


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
    states = {0: (0x00, 0x30, 0x50), 1: (0x80, 0xD0), 2: (0x40, 0x60, 0x70, 0xF0)}
    for state, code in ((state, code) for state, codes in states.items() for code in codes):
        bytes_[1] = code
        assert ram.read(bytes_, 3)[ram.GHOST_STATE][0] == state, hex(code)


def look(met=(), steps=0):
    known = np.zeros(ms_pacman.N, bool)
    known[list(met)] = True
    worth, ways = (lambda x, y: np.zeros((len(x), len(y)))), (lambda x: np.zeros((len(x), ram.CELLS)))
    return KnownModel(known, steps, worth, ways)


def test_who_points_where():
    seen = memory(PELLET=1, PILL=1, FRUIT=40, FRUIT_POINTS=500, GHOST_CELL=[1, 2, 3, 4], TIMER=50)
    seen[ram.GHOST_STATE] = [ram.HUNTING, ram.EDIBLE, ram.AWAY, ram.EDIBLE]
    place, voice = ms_pacman.aim(100, True, seen, look(met=[7]))
    at = ms_pacman.AT
    assert np.flatnonzero(place[at["pellets"]] >= 0).tolist() == [7], "a pellet speaks once one was eaten there"
    assert (place[at["pills"]] == -1).all(), "pills are spared while there is a ghost to be eaten"
    assert ms_pacman.aim(100, False, seen, look()).place[at["pills"]].tolist() == ram.PILL_CELL.tolist()
    assert (place[at["fruit"]].item(), voice[at["fruit"]].item()) == (40, 500)
    assert place[at["edible"]].tolist() == [-1, 2, -1, 4]
    assert place[at["ghosts"]].tolist() == [1, -1, -1, -1]
    assert place[at["frontier"]].item() == FRONTIER
    assert ms_pacman.aim(100, True, seen, look(steps=100)).place[at["frontier"]].item() == -1
    seen[ram.TIMER] = 1
    assert ms_pacman.aim(100, True, seen, look()).place[at["pills"]].tolist() == ram.PILL_CELL.tolist()
    assert ms_pacman.aim(100, True, seen, look()).place[at["ghosts"]].tolist() == [1, 2, -1, 4], "about to turn"


def test_options_that_make_no_sense_are_refused():
    refused("sweeps of task 'ms-pacman' is -1", mad.make, "ms-pacman", sweeps=-1)
    refused("'fears'", mad.make, "ms-pacman", without="fruit,fears")


def test_ghosts_close_cells_and_pills_are_havens():
    seen = memory(PILL=[0, 1, 0, 0], GHOST_CELL=[1, 2, 3, 4], TIMER=10)
    seen[ram.GHOST_STATE] = [ram.HUNTING, ram.EDIBLE, ram.AWAY, ram.AWAY]
    asked = []

    def steps(states):
        asked.append([int(state) for state in states])
        return np.full((len(states), ram.CELLS), 43.0 if int(states[0]) == 4 else 20.0)

    found = ms_pacman.threat(seen, look()._replace(distances=steps))
    assert asked == [[4], [8, 9, 10, 11]], "who hunts does not turn back; who can be eaten may"
    slow = 10 + (20 - 10 * ms_pacman.FLEES) / ms_pacman.HUNTS
    assert found.closed[5] == pytest.approx(min(43 / ms_pacman.HUNTS, slow) - ms_pacman.LATER)
    assert np.flatnonzero(found.haven).tolist() == [ram.PILL_CELL[1]]


def test_points_are_told_apart():
    before = memory(PELLET=1, PILL=1, FRUIT=40, FRUIT_POINTS=500)
    before[ram.GHOST_STATE] = [ram.EDIBLE, 0, 0, 0]
    after = before.copy()
    after[ram.PELLET.start + 9] = after[ram.PILL.start + 2] = 0
    after[ram.GHOST_STATE.start] = ram.AWAY
    found = study.points_of(before, after, 460.0)
    assert (found["pellets"], found["pills"], found["edible"], found["eaten"], found["levels"]) == (10, 50, 400, 1, 0)
    after[ram.FRUIT] = -1
    assert study.points_of(before, after, 960.0)["fruit"] == 500
    bare = memory(PELLET=0, PILL=0)
    assert study.points_of(bare, before, 10.0)["levels"] == 1, "the board is full again"


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
    ms_pacman.mark(blank, ram.cell_of(88, 98), -1.0)
    rows, columns = np.nonzero(blank.any(axis=2))
    assert (rows.mean(), columns.mean()) == (98 + ms_pacman.DOWN, 88 + ms_pacman.LEFT)
    assert set(map(tuple, blank[rows, columns].tolist())) == {ms_pacman.FEAR}


# ---- the study -------------------------------------------------------------------------------------------------------
def faked(score, seed):
    scores = (score + 100 * np.random.default_rng(seed).standard_normal(30)).tolist()
    return {"learning": scores * 10, "scores": scores, "mazes": [2] * 30, "frames": 1000, "steps": 10, "goals": 5}


@pytest.mark.slow
def test_the_report_claims_only_what_the_runs_show(tmp_path):
    summed = [f"{study.PLAIN}: {planning}, gamma 0.99, sum" for planning in ("agnostic", "egocentric")]
    level = {study.BASE: 15_600, summed[0]: 9_000, summed[1]: 4_000}
    lines = [{"id": study.job(name, seed).id, "result": faked(score, seed)}
             for name, score in level.items() for seed in range(3)]  # fmt: skip
    given = tmp_path / "runs.jsonl"
    given.write_text("\n".join(map(json.dumps, lines)))
    found = reproduce(Plan.of("ms-pacman"), tmp_path / "out", given=given).as_dict()
    assert [one["verdict"] == "holds" for one in found["judged"]] == [True, False, False, True, True]
    assert set(found["table"]) == set(level)
    assert study.CAVEAT in (tmp_path / "out" / "report.md").read_text()
    assert (tmp_path / "out" / "figures" / "ms-pacman.png").stat().st_size > 10_000
    refused("holds no runs", study.STUDY.given, tmp_path / "out" / "figures" / "ms-pacman.png")


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
    assert same(in_pieces(mad.load(run), None, tmp_path, 25, 35), mad.load(run).learn(60))


@pytest.mark.slow
def test_reproduce_runs_what_no_file_has(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ale_py")

    def tiny(name, seed):
        config = {**study.SETTINGS[name], "options": {"limit": 200}, "seed": seed, "episodes": 10, "evaluation": 2}
        return Job("ms-pacman", config)

    monkeypatch.setattr(study, "job", tiny)
    flags = ["--seeds", "1", "--workers", "0", "--out", tmp_path / "out"]
    found = printed(capsys, "reproduce", "ms-pacman", *flags)
    row = found["table"][study.BASE]
    assert (row["episodes"], row["learned"]) == (2, [10])
    assert sum(row["sources"][what] for what in ("pellets", "pills", "fruit", "edible")) == row["score"]
    assert "| as shipped |" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.slow
def test_the_commands_work_on_it(run, tmp_path, capsys):
    film, one = tmp_path / "episode.gif", ["evaluate", run, "--episodes", "1"]
    seen = printed(capsys, *one, "--video", film)
    assert seen["score"] > 0
    assert film.read_bytes().startswith(b"GIF89a")
    found = printed(capsys, "explain", run, "--step", "40")
    assert any(name.startswith(("pellet", "pill")) for name in found["differences"])
    assert printed(capsys, *one, "--trace", tmp_path / "a.trace")["score"] == seen["score"]
    again = printed(capsys, "explain", run, "--trace", tmp_path / "a.trace", "--step", "40")
    assert again["differences"] == pytest.approx(found["differences"])
    code, _, error = typed(capsys, "check", "ms-pacman")
    assert (code, "general value functions" in error) == (2, True)


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
    assert np.mean(study.run(config)["scores"]) >= 5_000
