"""Pictures and text of states."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.envs import render
from refusal import refused

START = """\
██████████████████████████
██· · · · ██· ██· · · · ██
██· ████· ██· ██· ████· ██
██· · · · · · · · · · · ██
██· ██· ████· ████· ██· ██
██· ██· ████· ████· ██· ██
██G·██· · G·· · · · ██· ██
██· ██████· ██· ██████· ██
██· · · · · · · · · · · ██
████████· ██████· ████████
██· · · · ██████· · · · ██
██· ████· · · · · ████P ██
██████████████████████████"""


@pytest.fixture(scope="module")
def pac_boy():
    return mad.make("pac-boy")


@pytest.fixture
def start(pac_boy):
    """The start of an episode with fruit everywhere."""
    return np.array([*pac_boy.initial_state()[:3], *[1] * 75])


def tile(image, board, cell, size=24):
    row, column = board.cells[cell] * size
    return image[row : row + size, column : column + size]


def test_the_start_of_an_episode_as_text(pac_boy, start):
    assert render.text(pac_boy, start) == START


def test_eaten_fruit_is_gone_and_a_touch_shows_both(pac_boy, start):
    start[1], start[3:] = start[0], 0
    lines = render.text(pac_boy, start).splitlines()
    assert "·" not in "".join(lines)
    assert lines[11].endswith("PG██")
    assert lines[6] == "██  ██    G         ██  ██"


def test_the_gadgets_as_text_and_as_pictures():
    assert render.text(mad.make("two-goal", r2=2.0), [0]).splitlines()[1] == "██+1P +2██"
    bridge = mad.make("bridge")
    assert render.text(bridge, [1]).splitlines()[1:4] == [
        "██" + row + "██" for row in ("██≈≈≈≈≈≈██", "  P     +1", "██≈≈≈≈≈≈██")
    ]
    image = render.picture(bridge, [1])[12::24, 12::24]
    assert tuple(image[0, 1]) == render.WATER
    assert tuple(image[1, 4]) == render.GOAL
    assert (image[:, 0] == render.WALL).all(axis=1).tolist() == [True, False, True]


def test_a_picture_has_the_boards_shape_and_everyone_in_their_cell(pac_boy, start):
    board, image = pac_boy.board, render.picture(pac_boy, start)
    assert image.shape == (11 * 24, 11 * 24, 3)
    assert image.dtype == np.uint8
    assert (tile(image, board, start[0]) == render.PAC_BOY).all(axis=2).sum() > 150
    for ghost in start[1:3]:
        assert (tile(image, board, ghost) == render.GHOST).all(axis=2).sum() > 150
    free = [c for c in board.item_cells if c not in start[1:3]]
    assert all(tuple(tile(image, board, c)[12, 12]) == render.FRUIT for c in free)
    walls = image[12::24, 12::24]
    assert ((walls == render.WALL).all(axis=2) == board.walls).all()


def test_only_what_changed_is_drawn_anew(pac_boy, start):
    board, before = pac_boy.board, render.picture(pac_boy, start)
    start[3 + 20] = 0
    changed = (render.picture(pac_boy, start) != before).any(axis=2)
    assert changed.any()
    inside = tile(changed, board, board.item_cells[20])
    assert inside.sum() == changed.sum()


def test_the_mouth_steps(pac_boy, start):
    board = pac_boy.board
    mouths = {"E": (12, 18), "W": (12, 5), "N": (5, 12), "S": (18, 12)}
    for facing in mouths:
        shown = tile(render.picture(pac_boy, start, facing=facing), board, start[0])
        dark = {way for way, at in mouths.items() if tuple(shown[at]) == render.FLOOR}
        assert dark == {facing}


def test_a_ghost_on_pac_boys_cell_hides_neither(pac_boy, start):
    alone = render.picture(pac_boy, start)
    start[1] = start[0]
    both = tile(render.picture(pac_boy, start), pac_boy.board, start[0])
    assert (both != tile(alone, pac_boy.board, start[0])).any()
    assert (both == render.PAC_BOY).all(axis=2).any()


def test_cells_of_any_size_and_big_boards_shrink(pac_boy, start):
    assert render.picture(pac_boy, start, cell=7).shape == (77, 77, 3)
    long = mad.make("fruit-grid", width=1000, height=2, fruits=1)
    assert render.picture(long, np.zeros(2001, int)).shape == (8, 4000, 3)


def test_the_same_state_gives_a_picture_of_ones_own(pac_boy, start):
    first = render.picture(pac_boy, start)
    kept = first.copy()
    first[:] = 0
    assert (render.picture(pac_boy, start) == kept).all()


def test_numbered_states_as_text_and_as_circles():
    assert render.text(mad.make("random-mdp"), [3]) == "random-mdp: state 3 of 10"
    image = render.picture(mad.make("random-mdp"), [0])
    assert image.shape == (24, 240, 3)
    assert tuple(image[12, 12]) == render.PAC_BOY
    image = render._states_picture(3, 20, 24)
    assert image.shape == (48, 16 * 24, 3)
    filled = (image[12::24, 12::24] == render.PAC_BOY).all(axis=2)
    assert np.argwhere(filled).tolist() == [[0, 3]]


def test_what_cannot_be_drawn_is_refused_in_a_sentence(pac_boy, start):
    refused("'Q'", render.picture, pac_boy, start, facing="Q")
    refused("0 pixels", render.picture, pac_boy, start, cell=0)
    bare = dataclasses.replace(pac_boy, board=None)
    refused("'pac-boy' has no board", render.picture, bare, start)
    assert render.text(bare, [1, 2]) == "pac-boy: state [1, 2]"
