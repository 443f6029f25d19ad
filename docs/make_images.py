"""Makes the pictures of the documents: `python docs/make_images.py`, a few minutes.

Everything comes from a seed, so that a second run writes the same pictures. With names, only these of the page:
`python docs/make_images.py hopper cart-pole`.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import gymnasium
import matplotlib.image
import numpy as np
from PIL import Image

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.envs.render import picture

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from multiadvisor.explorer.server import Explorer

IMAGES = Path(__file__).parent / "images"
SOLVED = {  # the figures of docs/will-it-get-stuck.md, each from one command
    "gamma-sweep.png": "three-fruits --sweep-gamma",
    "board.png": "pac-boy --no-ghosts --board 3 --gamma 0.6",
    "traps.png": "pac-boy --no-ghosts --boards 2000",
}


def save(name: str, image: np.ndarray) -> None:
    """Write a picture, without anything in it that changes from machine to machine."""
    matplotlib.image.imsave(IMAGES / name, image, metadata={"Software": None})
    print(f"{name}: {(IMAGES / name).stat().st_size / 1000:.0f} KB")


def pac_boy(planning: str, gamma: float, steps: int) -> np.ndarray:
    """The board after so many greedy steps of a trained agent, always in the same episode."""
    task = mad.make("pac-boy")
    agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, seed=0).learn(1_000_000, progress=False)
    env = gymnasium.make("multiadvisor/PacBoy-v0")
    x, _ = env.reset(seed=4)
    facing = "W"
    for _ in range(steps):
        action = agent.act(x)
        facing = task.actions[action]
        x, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    return picture(task, x, facing=facing)


def side_by_side(*images: np.ndarray) -> np.ndarray:
    """Pictures of one height in a row, with a white gap."""
    gap = np.full((images[0].shape[0], 16, 3), 255, np.uint8)
    parts = [part for image in images for part in (image, gap)][:-1]
    return np.concatenate(parts, axis=1)


def mazes() -> np.ndarray:
    """The maze of docs/mazes.md in its first episode: with fruit at random, and with an F in two corners."""
    lines = (IMAGES.parents[1] / "examples" / "maze.txt").read_text().splitlines()
    fixed = [lines[0][:-1] + "F", *lines[1:-1], "F" + lines[-1][1:]]
    images = []
    with tempfile.TemporaryDirectory() as folder:
        for text in (lines, fixed):
            file = Path(folder) / "maze.txt"
            file.write_text("\n".join(text))
            task = mad.make("pac-boy", maze=str(file))
            images.append(picture(task, task.initial_state(), cell=40, facing="E"))
    return side_by_side(*images)


def solved(name: str, command: str) -> None:
    """The figure that `multiadvisor solve` saves."""
    with tempfile.TemporaryDirectory() as folder:
        if main(["solve", *command.split(), "--out", str(Path(folder) / name)]) == 0:
            shutil.copyfile(Path(folder) / name, IMAGES / name)


def explained(name: str, *flags: str) -> None:
    """The figure that `multiadvisor explain` saves, of the agent of docs/why-did-it-do-that.md."""
    agent = mad.MultiAdvisor(mad.make("pac-boy"), planning="empathic", gamma=0.9, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        agent.learn(1_000_000, progress=False).save(Path(folder) / "run")
        if main(["explain", f"{folder}/run", *flags, "--out", str(Path(folder) / name)]) == 0:
            shutil.copyfile(Path(folder) / name, IMAGES / name)


# the figures of docs/explorer.md: name, state of the page, height in pixels, colours
EXPLORED: dict[str, tuple[str, int, Literal["light", "dark"]]] = {
    "explorer.png": ("step=60&attractors=exact", 1480, "light"),
    "explorer-compare.png": ("view=compare&step=13", 1180, "dark"),
    "explorer-gallery.png": ("view=gallery&exhibit=three-fruits&gamma=0.51", 640, "light"),
}


@contextmanager
def opened(explorer: Explorer, state: str, width: int, height: int, scheme: Literal["light", "dark"]) -> Iterator[Page]:
    """A state of the page in a browser."""
    from playwright.sync_api import sync_playwright

    from multiadvisor.explorer.server import address, serving

    with serving(explorer) as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
        page.goto(f"{address(port, explorer.keys.ticket())}&{state}")
        page.wait_for_selector('html[data-drawn]:not([data-drawn=""])', state="attached")
        yield page
        browser.close()


def explored(agents: dict[str, mad.MultiAdvisor]) -> None:
    """The explorer's page, photographed in a browser."""
    from multiadvisor.explorer.library import Library
    from multiadvisor.explorer.server import Explorer

    library = Library()
    for name, agent in agents.items():
        library.recorded(library.add_agent(agent, name).id, 0)
    explorer = Explorer(library)
    for name, (state, height, scheme) in EXPLORED.items():
        with opened(explorer, state, 1200, height, scheme) as page:
            page.wait_for_timeout(1000)  # attractors and the second run come a little later
            page.screenshot(path=IMAGES / name)
            print(f"{name}: {(IMAGES / name).stat().st_size / 1000:.0f} KB")


ENVIRONMENTS = {  # the pictures of environments in docs/explorer.md: task, options, transitions, settings, step
    "lunar-lander": ("mo-lunar-lander-v3", {}, 40_000, {"learner": "dqn", "gamma": 0.99}, 60),
    "cart-pole": ("CartPole-v1", {"bins": "-2.4:2.4:3,-3:3:4,-0.21:0.21:6,-3:3:6"}, 60_000, {}, 40),
    "mountain-car": ("mo-mountaincar-v0", {"bins": "18,14"}, 200_000, {"gamma": 0.99}, 50),
    "frozen-lake": ("FrozenLake-v1", {}, 60_000, {}, 6),
    "taxi": ("Taxi-v4", {}, 200_000, {"gamma": 0.95}, 5),
    "deep-sea-treasure": ("deep-sea-treasure-v0", {}, 40_000, {"gamma": 0.98}, 2),
    "minecart": ("minecart-deterministic-v0", {"bins": "5,5,3,3,3,2,2", "max_episode_steps": 200}, 60_000,
                 {}, 12),
}  # fmt: skip


def environments(only: Collection[str] = ()) -> None:
    """The page on environments that draw themselves, on a laptop; one of them on a phone, and all in one table."""
    from multiadvisor.explorer.library import Library
    from multiadvisor.explorer.server import Explorer

    library, names = Library(episodes=3), [name for name in ENVIRONMENTS if not only or name in only]
    for name in names:
        task, options, transitions, settings, _ = ENVIRONMENTS[name]
        agent = mad.MultiAdvisor(mad.make(task, **options), **{"gamma": 0.9, "seed": 0, **settings})
        library.add_agent(agent.learn(transitions, progress=False), f"runs/{name}")
    if names:
        photographs(Explorer(library), _shots(names))
    if only and "agents" not in only:
        return
    library = Library(episodes=5)
    for planning in ("egocentric", "agnostic", "empathic"):
        agent = mad.MultiAdvisor(mad.make("deep-sea-treasure-v0"), planning=planning, gamma=0.98, epsilon=0.3)
        library.add_agent(agent.learn(40_000, progress=False), f"runs/{planning}")
    photographs(Explorer(library), {"explorer-agents": ("view=agents", 1200, 520, "#agents")})


LEARNERS = {  # learners that choose otherwise: task, options, transitions, settings, step
    "hopper": ("Hopper-v5", {"advisors": "info:reward_*"}, 4_000, {"hidden": (64, 64), "learning_starts": 500}, 36),
    "ms-pacman": ("ms-pacman", {}, 24_000, {}, 240),
    "highway": ("mo-highway-fast-v0", {}, 1_000, {"gamma": 0.9, "learner": mad.DQN()}, 4),
}


def learners(only: Collection[str] = ()) -> None:
    """The page on an actor (multiadvisor[mujoco]), a bank of general value functions, and a highway (highway-env)."""
    from multiadvisor.explorer.library import Library
    from multiadvisor.explorer.server import Explorer

    library, shots = Library(episodes=2), {}
    for name in (name for name in LEARNERS if not only or name in only):
        task, options, transitions, settings, step = LEARNERS[name]
        agent = mad.MultiAdvisor(mad.make(task, **options), **settings, seed=0).learn(transitions, progress=False)
        shots[f"explorer-{name}"] = (f"run={len(library.entries)}&step={step}", 1280, 1160, "")
        library.add_agent(agent, f"runs/{name}")
    if "explorer-hopper" in shots:
        shots["explorer-hopper-phone"] = (shots["explorer-hopper"][0], 390, 844, "")
    if "explorer-ms-pacman" in shots:
        shots["explorer-ms-pacman-moments"] = (shots["explorer-ms-pacman"][0], 1280, 800, "#moments")
    if shots:
        photographs(Explorer(library), shots)


THERE = {"#rewards": "tr.now", "#moments": "li img", "#agents": "td.first"}  # what to wait for


def _shots(names: list[str]) -> dict[str, tuple[str, int, int, str]]:
    """State of the page, its size, and which part of it."""
    shots = {
        f"explorer-{name}": (f"run={k}&step={ENVIRONMENTS[name][-1]}", 1200, 760, "") for k, name in enumerate(names)
    }
    if "lunar-lander" not in names:
        return shots
    shots["explorer-phone"] = (shots["explorer-lunar-lander"][0], 390, 844, "")
    shots["explorer-rewards"] = (shots["explorer-lunar-lander"][0], 1200, 560, "#rewards")
    shots["explorer-moments"] = (shots["explorer-lunar-lander"][0], 1200, 560, "#moments")
    return shots


def photographs(explorer: Explorer, shots: dict[str, tuple[str, int, int, str]]) -> None:
    """These states of the page as pictures."""
    from playwright.sync_api import expect

    for name, (state, width, height, part) in shots.items():
        with opened(explorer, state, width, height, "light") as page:
            if part:
                page.locator(part).scroll_into_view_if_needed()
                page.wait_for_selector(f"{part} {THERE[part]}", timeout=300_000)
            else:
                step = state.partition("step=")[2]
                page.wait_for_selector(f".picturebox canvas[data-step='{step}']", timeout=300_000)
            expect(page.locator("main")).not_to_contain_text("Playing", timeout=300_000)
            page.wait_for_timeout(500)
            small(name, page.locator(part).screenshot() if part else page.screenshot())


def in_training() -> None:
    """The page in the middle of a training."""
    from multiadvisor.explorer.library import Library
    from multiadvisor.explorer.server import Explorer
    from multiadvisor.runs.live import LiveLog
    from multiadvisor.runs.logs import Progress
    from multiadvisor.runs.training import LOCK, Training
    from multiadvisor.settings import Schedule
    from multiadvisor.storage.folder_lock import locked

    agent = mad.MultiAdvisor(mad.make("mo-lunar-lander-v3"), gamma=0.99, learner=mad.DQN())
    with tempfile.TemporaryDirectory() as home, locked(folder := Path(home) / "lander", LOCK):
        training = Training(agent, Schedule(100_000, 1_000, 3), out=folder, by_advisor=True)
        training.save()
        library, log = Library(episodes=1), LiveLog(training)
        library.add_folder(folder, "runs/lander")
        explorer = Explorer(library)
        (run,) = library.entries
        training.schedule = Schedule(40_000, 1_000, 3)

        def tell(now: Progress) -> None:
            log(now)
            if now.evaluation is not None and len(training.evaluations) % 4 == 0:
                training.save()
                explorer.watchers.one(run, 0)

        training.run(tell)
        with opened(explorer, "view=learning", 1200, 620, "light") as page:
            page.locator("#live-kind").select_option("returns")
            page.wait_for_timeout(500)
            small("explorer-training", page.locator("#training").screenshot())
        log.close()


def small(name: str, picture: bytes) -> None:
    """A photograph of the page as WebP, below 60 KB."""
    for quality in (85, 75, 60, 40, 25, 15):
        Image.open(io.BytesIO(picture)).convert("RGB").save(IMAGES / f"{name}.webp", quality=quality, method=6)
        size = (IMAGES / f"{name}.webp").stat().st_size
        if size < 60_000:
            break
    print(f"{name}.webp: {size / 1000:.0f} KB")


def trained(planning: str) -> mad.MultiAdvisor:
    """The agent of the pictures."""
    return mad.MultiAdvisor(mad.make("pac-boy"), planning=planning, gamma=0.9, seed=0).learn(1_000_000, progress=False)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    if only := [word for word in sys.argv[1:] if not word.startswith("--")]:  # of the page, these: hopper cart-pole
        learners(only)
        environments(only)
        if "page" in only:
            explored({f"runs/{planning}": trained(planning) for planning in ("egocentric", "empathic")})
        sys.exit()
    learners()
    environments()
    in_training()
    if "--environments" in sys.argv:  # only these
        sys.exit()
    save("pac-boy.png", pac_boy("empathic", 0.9, 0))
    save("attractor.png", side_by_side(pac_boy("egocentric", 0.9, 100), pac_boy("empathic", 0.9, 100)))
    save("three-fruits.png", picture(mad.make("three-fruits"), [12, 1, 1, 1], cell=40, facing="N"))
    save("maze.png", mazes())
    for name, command in SOLVED.items():
        solved(name, command)
    agents = {f"runs/{planning}": trained(planning) for planning in ("egocentric", "empathic")}
    explored(agents)
    explained("why.png", "--seed", "3", "--step", "41")
