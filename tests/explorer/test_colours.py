"""What a cell is worth, as a colour: zero is no value among the highest, and what nobody knows is no zero."""

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.conftest import trained
from explorer.pages import site

pytestmark = pytest.mark.slow

# how far from grey each value is painted, on the scale of all of them
STRENGTHS = """async (values) => {
  const { heatColour, paletteOf, scaleOf } = await import("/static/colours.js");
  const palette = paletteOf("light");
  return values.map((value) => {
    const colour = heatColour(value, scaleOf(values), palette).match(/\\d+/g).map(Number);
    return colour.reduce((sum, part, k) => sum + Math.abs(part - palette.neutral[k]), 0);
  });
}"""

# the colour in the corner of each cell of the board, where neither an arrow nor a fruit is
CORNERS = """() => {
  const { canvas, what } = explorer.episode.board;
  const { grid } = what.run;
  const size = canvas.width / grid.columns;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return grid.cells.map(([row, column]) => {
    const at = 4 * (Math.floor((row + 0.88) * size) * canvas.width + Math.floor((column + 0.88) * size));
    return [...data.slice(at, at + 3)];
  });
}"""


@pytest.mark.parametrize(
    "values", [[-5, -3, -0.5, 0], [0, 0.5, 3, 5], [-5, -1, 0, 1, 5], [-4, -2, -1], [1, 2, 4], [0, 0], [-3, 0, 0]]
)
def test_larger_values_are_further_from_grey_and_zero_is_grey(calm, values):
    with calm.tab() as page:
        found = page.evaluate(STRENGTHS, values)
    for value, strength in zip(values, found, strict=True):
        assert (strength == 0) == (value == 0)
    for sign in (-1, 1):
        one = sorted((abs(value), strength) for value, strength in zip(values, found, strict=True) if value * sign > 0)
        assert [strength for _, strength in one] == sorted({strength for _, strength in one})


def test_the_map_of_a_ghost_is_grey_where_it_fears_nothing(browser):
    agent = trained(mad.make("pac-boy"), 20_000, planning="agnostic")
    with site(browser, {"young": agent}) as served, served.tab("step=3&map=0&theme=light") as page:
        trace, episode = served.recorded()
        corners = page.evaluate(CORNERS)
    x = trace.states(episode)[3].copy()
    worth = []
    for cell in range(len(agent.task.board.cells)):
        x[0] = cell
        names, advice = agent.advice(x)
        worth.append(advice[names.index("ghost 1")].max())
    assert max(worth) == 0 > min(worth)
    zero = {tuple(corner) for corner, value in zip(corners, worth, strict=True) if value == 0}
    assert zero == {(243, 244, 247)}


def test_what_nobody_knows_is_hatched_and_said(browser):
    deep = mad.DQN(hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2, updates_at_once=4)
    agent = trained(mad.make("three-fruits"), 200, learner=deep)
    with site(browser, {"net": agent, "tables": trained(mad.make("three-fruits"), 2_000)}) as served:
        with served.tab("step=1&theme=light") as page:
            said = page.get_by_text("hatched: not known").first
            expect(said).to_be_visible()
            unknown = page.evaluate("explorer.episode.board.what.heights")
            known = np.flatnonzero(~np.isnan(np.array(unknown, float))).tolist()
            trace, episode = served.recorded()
            assert known == [trace.states(episode)[1][0]]
            corners = page.evaluate(CORNERS)
            for cell, corner in enumerate(corners):  # a line of the hatching: grey, and darker than any empty cell
                assert cell in known or (max(corner) - min(corner) < 12 and max(corner) < 243), cell
            served.go(page, "run=1")
            expect(said).to_be_hidden()
        assert served.complaints == []
