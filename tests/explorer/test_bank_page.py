"""The page on Ms. Pac-Man, whose advisors point at goals: her own picture, and bars by group."""

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.pages import PHONE, fits, site, until
from multiadvisor.explain.decisions import decider_of

pytest.importorskip("ale_py")
pytestmark = pytest.mark.slow
STEP = 80  # somebody speaks: she has been here before


@pytest.fixture(scope="module")
def cabinet(browser):
    agent = mad.MultiAdvisor(mad.make("ms-pacman"), seed=1).learn(600, progress=False)
    with site(browser, {"ms-pacman": agent}, episodes=1) as one:
        yield one
        assert one.complaints == []


def test_bars_picture_and_groups_and_a_phone_is_wide_enough(cabinet):
    agent = cabinet.run().agent
    trace, episode = cabinet.recorded()
    seen, aggregator = trace.step(episode, STEP), decider_of(agent).combined
    place = {advisor.name: j for j, advisor in enumerate(decider_of(agent).asked)}
    who = np.array([place[name] for name in seen.names])
    wanted = aggregator._replace(of=aggregator.of[who]).prefer(seen.advice, seen.weights)  # [A]
    assert np.ptp(wanted) > 0
    with cabinet.tab(f"step={STEP}") as page:
        page.wait_for_selector(f".picturebox canvas[data-step='{STEP}']", state="attached")
        numbers = page.locator(".bar .number")
        expect(numbers).to_have_count(len(agent.task.actions))
        for a, total in enumerate(wanted.tolist()):
            until(
                page, f"Math.abs(Number(document.querySelectorAll('.bar .number')[{a}].dataset.exact) - {total}) < 1e-9"
            )
        page.locator("#moments").scroll_into_view_if_needed()
        for group in ("pellets", "ghosts"):
            expect(page.locator("#drives tbody tr", has_text=group).first).to_be_visible()
        page.set_viewport_size(PHONE)
        fits(page)
