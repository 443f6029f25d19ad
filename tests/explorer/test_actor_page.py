"""The page on an agent whose actions are real numbers."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.pages import PHONE, as_sentence, fits, no_barrier, site, until
from multiadvisor.runs.trace import explain_step
from multiadvisor.settings import CAVEAT

pytestmark = pytest.mark.slow


class Winch(gymnasium.Env[Any, Any]):
    """A load on two ropes: height is paid, and pulling costs."""

    action_names = ("left rope of the winch", "right rope")
    observation_names = ("height",)

    def __init__(self):
        self.action_space = gymnasium.spaces.Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32))
        self.observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.height, self.elapsed = np.float32(self.np_random.normal()), 0
        return np.array([self.height]), {}

    def step(self, action):
        self.height = np.float32(np.clip(self.height + 0.1 * action[0], -9, 9))
        self.elapsed += 1
        terms = {"lift": float(self.height), "pull": -float(action[1])}
        return np.array([self.height]), sum(terms.values()), False, self.elapsed == 12, terms


gymnasium.register("tests/Winch-v0", Winch)


def actor(seed):
    task = mad.Task.from_gymnasium("tests/Winch-v0", "info:lift,info:pull")
    small = {"hidden": (16, 16), "batch_size": 32, "learning_starts": 1_000, "buffer_size": 1_000}
    return mad.MultiAdvisor(task, gamma=0.9, seed=seed, learner=mad.SAC(**small))


@pytest.fixture(scope="module")
def winches(browser):
    with site(browser, {"winch": actor(1), "other": actor(2)}, episodes=2) as one:
        for name in one.explorer.library.entries:
            one.explorer.insights.of(name)
        yield one
        assert one.complaints == []


def test_an_action_is_shown_number_by_number_beside_its_values(winches):
    trace, episode = winches.recorded()
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
        why = explain_step(winches.run().agent, trace, episode, 3).sentence
        assert "(0.00, 2.00)" in why
        expect(page.locator("#sentence")).to_have_text(as_sentence(why))
        expect(page.locator("#caveat")).to_have_text(as_sentence(CAVEAT))
        pair = zip(seen.advice[2], ("the action taken,", "the centre of the box."), strict=True)
        entropy = " ".join(f"{'+' if v > 0 else '−'}{abs(v):.2f} for {what}" for v, what in pair)
        expect(page.locator(".entropy")).to_contain_text(f"Beside the advisors, entropy: {entropy} It is no advisor")
        for part in (".parts", ".weights", ".bars + details", "#drives"):  # set apart: no bar, no slider, no empty row
            expect(page.locator(part).first).not_to_contain_text("entropy")
        expect(page.get_by_label("Compared with")).to_be_hidden()
        expect(page.get_by_role("img", name="Observation in step 3: height")).to_be_visible()  # it cannot draw itself
        page.locator("#moments").scroll_into_view_if_needed()
        expect(page.locator("#drives thead")).to_contain_text("share of the push")
        share = winches.explorer.insights.of(winches.run().id)["advisors"]["lift"]["influence"]["push"]
        expect(page.locator("#drives tbody tr", has_text="lift")).to_contain_text(f"{round(100 * share)}%")
        for place in ("#moments .hint", "#drives .answer .hint"):
            expect(page.locator(place)).to_contain_text(CAVEAT[1:])
        page.get_by_label("Another action").select_option("left rope of the winch, lowest")
        page.get_by_role("button", name="Try it").click()
        expect(page.get_by_role("img", name="Branches from step 3: Left rope of the winch, lowest")).to_be_visible()
        no_barrier(page)
        winches.go(page, "view=compare")
        expect(page.locator("#divergence")).to_contain_text("They diverge in step 0: the first chooses (")
        winches.go(page, "step=3")
        page.set_viewport_size(PHONE)
        expect(page.locator(".action-numbers")).to_be_visible()
        fits(page)
