"""Makes docs/gallery.md and its pictures from the registered tasks and systems: `python docs/from_tasks.py`.

A system's own figure is copied from a folder of `multiadvisor reproduce systems`, where one is named.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import matplotlib.image

import multiadvisor as mad
from multiadvisor.envs.builtin import TASKS
from multiadvisor.envs.render import picture
from multiadvisor.studies.study import Study, systems

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
HEIGHT = 240  # of a picture, in pixels, at most where its cells can be drawn smaller
LARGEST = 48  # of a cell
PAGES = {  # where more is said of a task
    "bridge": "will-it-get-stuck.md#the-bridge-and-agnostic-fear", "dollars-and-euros": "will-it-get-stuck.md",
    "dyna-maze": "systems/ensembles.md", "fishery": "systems/q-decomposition.md", "four-fruits": "will-it-get-stuck.md",
    "fruit-grid": "results.md#values-that-are-easier-to-learn", "hra-fruits": "systems/hra.md",
    "bunny": "systems/arbi-q.md", "mountain-car": "systems/shaping.md", "ms-pacman": "ms-pacman.md",
    "pac-boy": "mazes.md",
    "racetrack": "systems/q-decomposition.md", "random-mdp": "systems/gm-sarsa.md",
    "resource-scheduling": "will-it-get-stuck.md", "three-fruits": "concepts.md#egocentric-attractors",
    "tile-chain": "systems/value-mapping.md", "two-goal": "concepts.md#egocentric-attractors",
}  # fmt: skip
DRAWN = {"ms-pacman": "images/ms-pacman.png"}  # made elsewhere: these need an extra, and are not made here
HEAD = """# Gallery

The tasks that are shipped, each as its first episode begins, and the systems of the literature. `multiadvisor tasks`
lists the tasks with their options, `multiadvisor explore` shows agents in them. This page is made by
`python docs/from_tasks.py`.

## Tasks
"""


def about(name: str) -> str:
    """What a task is, in a line: the first of its maker's docstring."""
    return (TASKS[name].__doc__ or "").strip().splitlines()[0]


def task_entry(name: str) -> str:
    """A task with its picture."""
    advisors = "" if name in DRAWN else f" {mad.make(name).n} advisors."
    more = f" [More]({PAGES[name]})." if name in PAGES else ""
    words = f"An episode of {name}" if name in DRAWN else f"The first episode of {name} as it begins"
    shown = f"![{words}]({DRAWN.get(name, f'images/task-{name}.png')})"
    return f"### {name}\n\n{shown}\n\n{about(name)}{advisors}{more}\n\n    multiadvisor train {name}\n"


def system_entry(system: Study) -> str:
    """A system, with its figure where there is one."""
    assert system.literature is not None
    file = f"images/system-{system.name}.png"
    shown = f"![What was seen of {system.title}]({file})\n\n" if (DOCS / file).exists() else ""
    link = f"[{system.title}](systems/{system.name}.md)"
    command = f"    multiadvisor reproduce {system.name}\n"
    return (
        f"### {system.title}\n\n{shown}{system.literature.behaviour} ({system.literature.source}; {link})\n\n{command}"
    )


def page() -> str:
    """The gallery."""
    parts = [HEAD, *map(task_entry, sorted(TASKS)), "## Systems\n", *map(system_entry, systems().values())]
    return "\n".join(parts)


def draw(name: str) -> None:
    """The first episode of a task as it begins."""
    task = mad.make(name)
    image = picture(task, task.initial_state(), cell=24)  # [rows, columns, 3]
    cell = min(max(24 * HEIGHT // image.shape[0], 8), LARGEST)
    image = picture(task, task.initial_state(), cell=cell)
    matplotlib.image.imsave(IMAGES / f"task-{name}.png", image, metadata={"Software": None})


def main(folder: Path | None) -> None:
    """The pictures, and the page."""
    for name in TASKS.keys() - DRAWN.keys():
        draw(name)
    for name in systems() if folder else ():
        figure = folder / name / "figures" / f"{name}.png"
        if figure.exists():
            shutil.copyfile(figure, IMAGES / f"system-{name}.png")
    (DOCS / "gallery.md").write_text(page(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
