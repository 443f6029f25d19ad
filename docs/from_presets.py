"""Makes docs/defaults.md, what is learned without choosing anything: `python docs/from_presets.py`.

With names of environments, these are measured first, on seeds 0 to 2, and kept in docs/presets.json:
`python docs/from_presets.py CartPole-v1 Taxi-v4`.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import multiadvisor as mad
from multiadvisor.envs.presets import GYMNASIUM, PRESETS
from multiadvisor.envs.registry import TASKS, defaults_of
from multiadvisor.settings import Schedule, Settings

DOCS = Path(__file__).parent
PAGE, DATA = DOCS / "defaults.md", DOCS / "presets.json"
SEEDS, EPISODES = (0, 1, 2), 100
ROBOTS = [name for name in PRESETS if defaults_of(name).get("steps", 0) >= 1_000_000]
BRIEF = {"steps": 30_000, "episodes": 20, "sac": {"hidden": (64, 64), "learning_rate": 1e-3, "learning_starts": 1_000}}
"""What robots are measured with: a million steps would take an hour of a core or more."""
RETIRED = {"Taxi-v3": "Taxi-v4"}
SCHEDULE = [field.name for field in dataclasses.fields(Schedule)]
TABLE = """| environment | learner | steps | score | each seed | CPU seconds a run |
|---|---|---|---|---|---|
"""
BRIEFLY = """
## Robots, briefly

A robot's own settings are for 1,000,000 steps, an hour of a core or more for each seed, and nobody has measured that
here ([another study](continuous-study.md) has Hopper, HalfCheetah and Ant after 80,000 to 300,000). What half a minute
gives is measured, on virtual machines with two cores, most of them shared with other work: {steps:,} steps, then
{episodes} greedy episodes, with
`learner=mad.{settings}`. These are
beginners, and seeds differ much. The scores of those that begin with `mo-` are sums of components, which may [count one
part several times](which-term-drives-it.md#before-training).

"""
HEAD = """# What you get without choosing

`mad.MultiAdvisor("CartPole-v1")` and `multiadvisor train CartPole-v1` choose a learner by the task's actions and
observations: SAC for continuous actions, DQN for real-valued observations, tables for finite ones. Any environment of
Gymnasium gets {gymnasium}; the built-in
worlds, which are the paper's, keep the paper's
{paper}. Environments that many people try have
settings of their own, listed here. Whatever you give yourself always wins:

```python
import multiadvisor as mad

agent = mad.MultiAdvisor("FrozenLake-v1", gamma=0.95)
print(agent.settings.learner.name, agent.settings.gamma, agent.settings.alpha)
```

```text
{example}
```

The scores are those of {episodes} greedy episodes after the steps that are named, for each of the seeds {seeds}; the
settings were chosen on seeds from 100 on. Measured on {machine}, with Gymnasium
{version}, by `python docs/from_presets.py` and the names of environments; it also makes this page from
`multiadvisor/envs/presets.py`. With equal weights
`mo-mountaincar-v0` is best left at rest, at -200: each push costs 1 as each step does.

"""


def machine() -> str:
    """The processor that measures."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"one core of {model}"


def measure(name: str) -> dict[str, Any]:
    """What an environment's row gives on fresh seeds."""
    given: dict[str, Any] = {"learner": {"name": "sac", **BRIEF["sac"]}} if name in ROBOTS else {}
    steps, episodes = (BRIEF["steps"], BRIEF["episodes"]) if name in ROBOTS else (defaults_of(name)["steps"], EPISODES)
    scores, began = [], time.process_time()
    for seed in SEEDS:
        agent = mad.MultiAdvisor(name, seed=seed, **given).learn(steps, progress=False)
        scores.append(round(agent.evaluate(episodes, seeds=(seed,)).score, 2))
        print(f"{name}, seed {seed}: {scores[-1]}", file=sys.stderr, flush=True)
    return {
        "learner": agent.settings.learner_settings.name, "steps": steps, "scores": scores,
        "seconds": round((time.process_time() - began) / len(SEEDS)), "machine": machine(),
        "gymnasium": gymnasium.__version__, "preset": told(name),
    }  # fmt: skip


def told(name: str) -> dict[str, Any]:
    """A row as JSON has it: scores that were measured with another one do not count."""
    row = {**defaults_of(name), **BRIEF} if name in ROBOTS else defaults_of(name)
    found: dict[str, Any] = json.loads(json.dumps(row))
    return found


def shown(row: dict[str, Any]) -> str:
    """Settings as they are written."""
    parts = []
    for name, value in row.items():
        parts.append(f"{name}({shown(value)})" if isinstance(value, dict) else f"{name}={value!r}")
    return ", ".join(parts)


def entry(name: str, found: dict[str, Any]) -> str:
    """A row of the table."""
    scores = ", ".join(f"{score:.1f}" for score in found["scores"])
    cells = [f"`{name}`", found["learner"], f"{found['steps']:,}", f"**{np.mean(found['scores']):.1f}**", scores]
    return f"| {' | '.join([*cells, str(found['seconds'])])} |"


def listed(names: list[str]) -> str:
    """The settings of environments, those with the same ones together."""
    rows: dict[str, list[str]] = {}
    for name in names:
        given = {key: value for key, value in PRESETS[name].items() if key not in SCHEDULE}
        rows.setdefault(shown(given), []).append(f"`{name}`")
    return "\n".join(f"- {', '.join(names)}: `{settings}`" for settings, names in rows.items())


def page() -> str:
    """The page."""
    measured = json.loads(DATA.read_text("utf-8"))
    machines = sorted({found["machine"] for found in measured.values()})
    versions = sorted({found["gymnasium"] for found in measured.values()})
    settings, schedule = Settings(), Schedule()
    paper = (
        f"`gamma={settings.gamma}`, with {schedule.eval_episodes} episodes in an evaluation, every "
        f"{schedule.eval_every:,} of {schedule.steps:,} steps"
    )
    usual = (
        f"`gamma={GYMNASIUM['gamma']}`, with {GYMNASIUM['eval_episodes']} episodes in an evaluation, every "
        f"{GYMNASIUM['eval_every']:,} of {GYMNASIUM['steps']:,} steps"
    )
    lake = defaults_of("FrozenLake-v1")
    head = HEAD.format(
        gymnasium=usual, paper=paper, example=f"tabular 0.95 {lake['alpha']}", episodes=EPISODES,
        seeds=" and ".join([", ".join(map(str, SEEDS[:-1])), str(SEEDS[-1])]), machine=", ".join(machines),
        version=", ".join(versions),
    )  # fmt: skip
    names = [name for name in PRESETS if name not in TASKS]
    good = {name: found for name, found in measured.items() if found["preset"] == told(name)}
    missing = [f"`{name}`" for name in names if name not in good and name not in RETIRED]
    others = f"**Not measured:** {', '.join(missing)}.\n" if missing else ""
    for old, new in RETIRED.items():
        others += f"`{old}` is of an older Gymnasium, and has the settings of `{new}`.\n"
    rows = {name: f"{entry(name, good[name])}\n" for name in names if name in good}
    table = "".join(row for name, row in rows.items() if name not in ROBOTS)
    briefly = BRIEFLY.format(steps=BRIEF["steps"], episodes=BRIEF["episodes"], settings=shown({"SAC": BRIEF["sac"]}))
    robots = "".join(row for name, row in rows.items() if name in ROBOTS)
    tables = f"{TABLE}{table}{briefly}{TABLE}{robots}"
    return f"{head}{tables}\n{others}\n## The settings\n\n{listed(names)}\n"


def main(names: list[str]) -> None:
    """Measure what is named, and make the page."""
    measured = json.loads(DATA.read_text("utf-8")) if DATA.is_file() else {}
    for name in names:
        measured[name] = measure(name)
        DATA.write_text(json.dumps(dict(sorted(measured.items())), indent=1) + "\n", "utf-8")
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
