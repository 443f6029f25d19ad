"""Makes docs/gallery.md from the registered tasks and systems, and from what was measured: `python docs/from_tasks.py`.

With --measure an agent is trained on every task first, on seeds 0 to 2, drawn at play, and kept in docs/gallery.json. A
system's own figure is copied from a folder of `multiadvisor reproduce systems`, where one is named.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np

import multiadvisor as mad
from multiadvisor.analysis.episodes import record
from multiadvisor.envs.registry import TASKS
from multiadvisor.envs.render import picture
from multiadvisor.studies.study import Study, systems

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
HEIGHT = 240  # of a picture, in pixels, at most where its cells can be drawn smaller
LARGEST = 48  # of a cell
PAGES = {  # where more is said of a task
    "bridge": "concepts.md#agnostic-fear", "dollars-and-euros": "will-it-get-stuck.md",
    "dyna-maze": "systems/ensembles.md", "fishery": "systems/q-decomposition.md", "four-fruits": "will-it-get-stuck.md",
    "fruit-grid": "results.md#values-that-are-easier-to-learn", "hra-fruits": "systems/hra.md",
    "bunny": "systems/arbi-q.md", "mountain-car": "systems/shaping.md", "ms-pacman": "ms-pacman.md",
    "pac-boy": "mazes.md",
    "racetrack": "systems/q-decomposition.md", "random-mdp": "systems/gm-sarsa.md",
    "resource-scheduling": "will-it-get-stuck.md", "three-fruits": "concepts.md#egocentric-attractors",
    "tile-chain": "systems/value-mapping.md", "two-goal": "concepts.md#egocentric-attractors",
}  # fmt: skip
DRAWN = {"ms-pacman": "images/ms-pacman.png"}  # made elsewhere: these need an extra, and are not made here
SHOWN = {  # environments, and their pictures
    "CartPole-v1": "explorer-cart-pole", "MountainCar-v0": "explorer-mountain-car", "LunarLander-v3":
    "explorer-lunar-lander", "FrozenLake-v1": "explorer-frozen-lake", "Taxi-v4": "explorer-taxi",
    "deep-sea-treasure-v0": "explorer-deep-sea-treasure",
}  # fmt: skip
DATA, STEPS, SEEDS, EPISODES = DOCS / "gallery.json", 200_000, (0, 1, 2), 100
HEAD = """# Gallery

Trained agents, with their scores, and the systems of the literature. Environments have the settings of [What you get
without choosing](defaults.md), which has more of them; the pictures are of other agents. A built-in task is learned for
{steps:,} steps with all defaults, and pictured halfway through an episode of the first agent. Scores are those of
{episodes} greedy episodes, the mean of three seeds and each of them. This page is made by `python docs/from_tasks.py`;
its agents were trained on {machine}.

## Environments

| at play, in [the explorer](explorer.md) | environment | score |
|---|---|---|
{environments}

## Tasks
"""


def about(name: str) -> str:
    """What a task is, in a line: the first of its maker's docstring."""
    return (TASKS[name].__doc__ or "").strip().splitlines()[0]


def scored(scores: list[float]) -> str:
    """The mean of the seeds, and each."""
    return f"**{np.mean(scores):.1f}** ({', '.join(f'{score:.1f}' for score in scores)})"


def environment_row(name: str, measured: dict[str, Any]) -> str:
    """An environment with its picture."""
    return f"| ![{name} at play](images/{SHOWN[name]}.webp) | `{name}` | {scored(measured[name]['scores'])} |"


def task_entry(name: str) -> str:
    """A task with its picture, and what was reached."""
    more = f" [More]({PAGES[name]})." if name in PAGES else ""
    if name in DRAWN:
        told, shown = "", f"![An episode of {name}]({DRAWN[name]})"
    else:
        found = json.loads(DATA.read_text("utf-8"))[name]
        told = f" {found['advisors']} advisors: score {scored(found['scores'])}, {found['length']:.0f} steps."
        shown = f"![A trained agent in {name}](images/task-{name}.png)"
    mark = "<!-- not run: minutes -->\n\n" if name in DRAWN else ""
    return f"### {name}\n\n{shown}\n\n{about(name)}{told}{more}\n\n{mark}    multiadvisor train {name}\n"


def system_entry(system: Study) -> str:
    """A system, with its figure where there is one."""
    assert system.literature is not None
    file = f"images/system-{system.name}.png"
    shown = f"![What was seen of {system.title}]({file})\n\n" if (DOCS / file).exists() else ""
    link = f"[{system.title}](systems/{system.name}.md)"
    command = f"<!-- not run: minutes -->\n\n    multiadvisor reproduce {system.name}\n"
    return (
        f"### {system.title}\n\n{shown}{system.literature.behaviour} ({system.literature.source}; {link})\n\n{command}"
    )


def page() -> str:
    """The gallery."""
    measured = json.loads((DOCS / "presets.json").read_text("utf-8"))
    head = HEAD.format(
        steps=STEPS, episodes=EPISODES, machine=json.loads(DATA.read_text("utf-8"))["machine"],
        environments="\n".join(environment_row(name, measured) for name in SHOWN if name in measured),
    )  # fmt: skip
    parts = [head, *map(task_entry, sorted(TASKS)), "## Systems\n", *map(system_entry, systems().values())]
    return "\n".join(parts)


def measure(name: str) -> dict[str, Any]:
    """What agents with all defaults reach on fresh seeds; the first one is drawn."""
    agents = [mad.MultiAdvisor(name, seed=seed).learn(STEPS, progress=False) for seed in SEEDS]
    seen = [agent.evaluate(EPISODES, seeds=(seed,)) for agent, seed in zip(agents, SEEDS, strict=True)]
    draw(name, agents[0])
    return {
        "advisors": agents[0].task.n, "scores": [round(one.score, 2) for one in seen],
        "length": round(float(np.mean([one.length for one in seen])), 1),
    }  # fmt: skip


def draw(name: str, agent: mad.MultiAdvisor) -> None:
    """An agent halfway through its first episode."""
    episode = record(agent, episodes=1, seed=0)
    state = episode.step(0, int(episode.length[0]) // 2).state
    image = picture(agent.task, state, cell=24)  # [rows, columns, 3]
    cell = min(max(24 * HEIGHT // image.shape[0], 8), LARGEST)
    image = picture(agent.task, state, cell=cell)
    matplotlib.image.imsave(IMAGES / f"task-{name}.png", image, metadata={"Software": None})


def main(words: list[str]) -> None:
    """The measurements, the systems' figures, and the page, as far as they are asked for."""
    if "--measure" in words:
        from from_presets import machine  # beside this file, which is run as a program then

        found = {name: measure(name) for name in sorted(TASKS.keys() - DRAWN.keys())}
        DATA.write_text(json.dumps({"machine": machine(), **found}, indent=1) + "\n", "utf-8")
    for folder in map(Path, [word for word in words if word != "--measure"]):
        for name in systems():
            figure = folder / name / "figures" / f"{name}.png"
            if figure.exists():
                shutil.copyfile(figure, IMAGES / f"system-{name}.png")
    (DOCS / "gallery.md").write_text(page(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
