"""The page on an agent whose actions are real numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.pages import Site, entry, site, until
from multiadvisor.runs.trace import explain_step
from multiadvisor.settings import CAVEAT

pytestmark = pytest.mark.slow


class Winch(gymnasium.Env[Any, Any]):
    """A load on two ropes: height is paid, and pulling costs."""

    action_names = ("left rope of the winch", "right rope")
    observation_names = ("height",)

    def __init__(self) -> None:
        self.action_space = gymnasium.spaces.Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32))
        self.observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.height, self.elapsed = np.float32(self.np_random.normal()), 0
        return np.array([self.height]), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.height = np.float32(np.clip(self.height + 0.1 * action[0], -9, 9))
        self.elapsed += 1
        terms = {"lift": float(self.height), "pull": -float(action[1])}
        return np.array([self.height]), sum(terms.values()), False, self.elapsed == 12, terms


gymnasium.register("tests/Winch-v0", Winch)


def actor(seed: int) -> mad.MultiAdvisor:
    task = mad.Task.from_gymnasium("tests/Winch-v0", "info:lift,info:pull")
    small = {"hidden": (16, 16), "batch_size": 32, "learning_starts": 1_000, "buffer_size": 1_000}
    return mad.MultiAdvisor(task, gamma=0.9, seed=seed, learner=mad.SAC(**small))


@pytest.fixture(scope="module")
def winches(browser: Any) -> Iterator[Site]:
    with site(browser, {"winch": actor(1), "other": actor(2)}, episodes=2) as one:
        for name in one.explorer.library.entries:
            one.explorer.insights.of(name)
        yield one
        assert one.complaints == []


def test_an_action_is_shown_number_by_number_beside_its_values(winches: Site) -> None:
    trace, episode = winches.explorer.library.recorded(entry(winches, 0).id, 0)
    with winches.tab("step=3") as page:
        numbers = page.locator(".action-numbers > div")
        expect(numbers).to_have_count(2)
        for k, value in enumerate(trace.action[3].tolist()):
            shown = f"{'+' if value > 0 else '−'}{abs(value):.3f}"
            expect(numbers.nth(k)).to_have_text(f"{('left rope of the winch', 'right rope')[k]}{shown}")
        seen = trace.step(episode, 3)
        for a, name in enumerate(("action taken", "centre of the box")):
            bar = page.locator(".bar", has_text=name)
            total = float((seen.weights * seen.advice[:, a])[:2].sum())
            until(
                page, f"Math.abs(Number(document.querySelectorAll('.bar .number')[{a}].dataset.exact) - {total}) < 1e-9"
            )
            expect(bar).to_be_visible()
        why = explain_step(entry(winches, 0).agent, trace, episode, 3).sentence
        assert "(0.00, 2.00)" in why
        expect(page.locator("#sentence")).to_have_text(f"{why[0].upper()}{why[1:]}.")
        expect(page.locator("#caveat")).to_have_text(f"{CAVEAT[0].upper()}{CAVEAT[1:]}.")
        pair = zip(seen.advice[2], ("the action taken,", "the centre of the box."), strict=True)
        entropy = " ".join(f"{'+' if v > 0 else '−'}{abs(v):.2f} for {what}" for v, what in pair)
        expect(page.locator(".entropy")).to_contain_text(f"Beside the advisors, entropy: {entropy} It is no advisor")
        for part in (".parts", ".weights", ".bars + details", "#drives"):  # set apart: no bar, no slider, no empty row
            expect(page.locator(part).first).not_to_contain_text("entropy")
        expect(page.get_by_label("Compared with")).to_be_hidden()
        expect(page.get_by_text("Its actions are real numbers")).to_be_visible()
        expect(page.get_by_role("button", name="Try it")).to_be_hidden()
        expect(page.get_by_role("img", name="Observation in step 3: height")).to_be_visible()  # it cannot draw itself
        page.locator("#moments").scroll_into_view_if_needed()
        expect(page.locator("#drives thead")).to_contain_text("share of the push")
        share = winches.explorer.insights.of(entry(winches, 0).id)["advisors"]["lift"]["influence"]["push"]
        expect(page.locator("#drives tbody tr", has_text="lift")).to_contain_text(f"{round(100 * share)}%")
        for place in ("#moments .hint", "#drives .hint >> nth=0"):
            expect(page.locator(place)).to_contain_text(CAVEAT[1:])
        assert not Axe().run(page).response["violations"]
        winches.go(page, "view=compare")
        expect(page.locator("#divergence")).to_contain_text("They diverge in step 0: the first chooses (")


def test_a_phone_is_wide_enough(winches: Site) -> None:
    with winches.tab("step=3", viewport={"width": 390, "height": 844}) as page:
        expect(page.locator(".action-numbers")).to_be_visible()
        until(page, "document.documentElement.scrollWidth <= window.innerWidth")
