"""Speed, measured as ratios in one run: short blocks in turn, CPU time, one thread, medians over the rounds."""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.compiling import compiled
from multiadvisor.core.optional_dependencies import install, require
from multiadvisor.core.rng import TRAINING, WORLD, below, draw, stream_key
from multiadvisor.envs.registry import make
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task, World


def machine() -> str:
    """The processor, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def seconds_of(work: Callable[..., Any], *arguments: Any) -> float:
    """The CPU time of a call."""
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start


# ---- the kernel against C --------------------------------------------------------------------------------------------
KERNEL_CASES = {
    "egocentric": ("egocentric", 0.4, 0.0),
    "agnostic": ("agnostic", 0.9, 0.0),
    "empathic": ("empathic", 0.9, 0.0),
    "noisy": ("empathic", 0.9, 0.1),
}
_BLOCK = 400_000  # transitions


def native_source() -> Path:
    """The C loop."""
    return Path(__file__).resolve().parents[1] / "pacboy.c"


def build_native(folder: Path) -> ctypes.CDLL:
    """Compile the C loop with the system's compiler."""
    compiler = os.environ.get("CC") or next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        raise BadInput("no C compiler was found for the native reference: install one, or set CC")
    library = folder / "pacboy.so"
    flags = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
    done = subprocess.run(
        [compiler, *flags, "-o", str(library), str(native_source()), "-lm"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BadInput(f"{compiler} could not build {native_source().name}: {done.stderr.strip().splitlines()[-1]}")
    return ctypes.CDLL(str(library))


_NATIVE = ("egocentric", "agnostic", "empathic")  # its own codes


class Native:
    """The C loop on the built-in Pac-Boy."""

    def __init__(self, library: ctypes.CDLL, task: Task, planning: str, gamma: float) -> None:
        assert task.world is not None
        self.constants, self.planning, self.gamma = task.world.constants, _NATIVE.index(planning), gamma
        cells, fruits = len(self.constants.neighbour), len(self.constants.fruit_cell)
        self.table = np.zeros((cells * cells + cells * fruits, 4))  # the rows in the kernel's own order
        self._ghost_rows = cells * cells
        self._play = library.play
        pointer, whole, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
        self._play.argtypes = [
            pointer, pointer, whole, pointer, pointer, pointer, ctypes.c_uint64, real, real, real, whole, ctypes.c_int,
        ]  # fmt: skip
        self._play.restype = whole

    def run(self, steps: int) -> None:
        """Learn from scratch, with the draws of seed 0."""
        self.table[:] = 0.0
        world = self.constants
        self._play(
            world.neighbour.ctypes.data, world.fruit_at.ctypes.data, world.start, world.ghost_start.ctypes.data,
            self.table.ctypes.data, self.table[self._ghost_rows :].ctypes.data, int(stream_key(0, TRAINING)),
            self.gamma, 0.1, 0.05, steps, self.planning,
        )  # fmt: skip


def kernel(rounds: int = 9) -> dict[str, Any]:
    """Transitions a second of the general kernel, and the ratio to the C loop; the tables must agree bit for bit."""
    task = make("pac-boy")
    speed, ratio, native_speed = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        library = build_native(Path(folder))
        for name, (planning, gamma, noise) in KERNEL_CASES.items():
            native = Native(library, task, planning, gamma)
            pairs = []
            for _ in range(rounds + 1):
                agent = MultiAdvisor(task, planning=planning, gamma=gamma, noise=noise, seed=0)._prepare()
                pairs.append((seconds_of(native.run, _BLOCK), seconds_of(agent._learner.run, _BLOCK)))
            if noise == 0 and not np.array_equal(native.table, agent.tables.table):
                raise BadInput(f"the C loop and the kernel differ for {name}: their speeds cannot be compared")
            c, own = np.array(pairs[1:]).T  # the first round only warms up
            speed[name], native_speed[name] = _BLOCK / float(np.median(own)), _BLOCK / float(np.median(c))
            ratio[name] = float(np.median(c / own))
    return {
        "machine": machine(), "steps_per_second": speed, "ratio_to_native": ratio,
        "native_steps_per_second": native_speed, "identical_tables": True, "rounds": rounds,
    }  # fmt: skip


# ---- what learning adds to a step of a Python environment ------------------------------------------------------------
ENVIRONMENTS = ("deep-sea-treasure-v0", "resource-gathering-v0", "four-room-v0")
_STEPS = 10_000


def _replay(env: Any, actions: list[int]) -> None:
    env.reset(seed=1)
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()


def _record(env: Any) -> list[int]:
    """Remember every action the environment is given from now on."""
    actions: list[int] = []
    inner = env.step

    def step(action: int) -> Any:
        actions.append(action)
        return inner(action)

    env.step = step
    return actions


def gymnasium(rounds: int = 9) -> dict[str, Any]:
    """Microseconds that acting and learning add to a step of MO-Gymnasium environments, beside MOQLearning's."""
    require("mo")
    import mo_gymnasium

    peer = _peer()
    result: dict[str, Any] = {"machine": machine(), "environments": {}, "rounds": rounds}
    if peer is None:
        result["note"] = f"MORL-Baselines is not installed: {install('benchmarks')} to compare with it"
    for name in ENVIRONMENTS:
        env = mo_gymnasium.make(name)
        agent = MultiAdvisor(Task.from_gymnasium(env), gamma=0.95, epsilon=0.1)._prepare()
        runs: dict[str, tuple[Any, Callable[[], None]]] = {"multiadvisor": (env, partial(agent._learner.run, _STEPS))}
        if peer is not None:
            other = mo_gymnasium.make(name)
            runs["moqlearning"] = (other, peer(other))
        recorded = {key: _record(world) for key, (world, _) in runs.items()}
        added: dict[str, list[float]] = {key: [] for key in runs}
        bare: list[float] = []
        for _ in range(rounds + 1):
            for key, (world, work) in runs.items():
                recorded[key].clear()
                whole = seconds_of(work)
                actions = list(recorded[key])
                alone = seconds_of(_replay, world, actions)
                if key == "multiadvisor":
                    agent.evaluate(1)  # whereupon it goes back to its own episode, outside the clock
                    agent.learn(1, progress=False)
                    bare.append(alone / len(actions) * 1e6)
                added[key].append((whole - alone) / len(actions) * 1e6)
        entry = {f"{key}_us": float(np.median(values[1:])) for key, values in added.items()}
        entry["environment_us"] = float(np.median(bare[1:]))
        if "moqlearning_us" in entry:
            entry["ratio"] = entry["moqlearning_us"] / entry["multiadvisor_us"]
        result["environments"][name] = entry
    return result


def _peer() -> Callable[[Any], Callable[[], None]] | None:
    """MORL-Baselines' scalarised Q-learning, or None where it is not installed."""
    try:
        from morl_baselines.single_policy.ser.mo_q_learning import MOQLearning
    except ImportError:
        return None

    def prepare(env: Any) -> Callable[[], None]:
        weights = np.ones(env.unwrapped.reward_space.shape[0])
        learner = MOQLearning(
            env, weights=weights, gamma=0.95, initial_epsilon=0.1, final_epsilon=0.1, log=False, seed=0
        )
        return lambda: learner.train(start_time=time.time(), total_timesteps=_STEPS)

    return prepare


# ---- the cost of a step against the number of advisors ---------------------------------------------------------------
class CrowdConstants(NamedTuple):
    """A ring of places; every `every`-th of n advisors is active and is paid at a place of its own."""

    places: int
    every: int
    n: int


@compiled
def _crowd_reset(world, x, key):
    x[0] = below(draw(key, WORLD), world.places)


@compiled
def _crowd_begin(world, x, advisors):
    m = 0
    for j in range(0, world.n, world.every):
        advisors[m] = j
        m += 1
    return m


@compiled
def _crowd_local_states(world, x, advisors, m, local):
    place = x[0]
    for i in range(m):
        local[i] = place


@compiled
def _crowd_step(world, x, action, key, advisors, m, reward, ended):
    x[0] = (x[0] + action + world.places - 1) % world.places
    reward[x[0] % m] = 1.0
    return False


def crowd(n: int, active: int) -> Task:
    """A task of n advisors of which so many are active."""
    places = 76
    constants = CrowdConstants(places, n // active, n)
    advisors = tuple(Advisor(f"advisor {j}", state="place", states=places) for j in range(n))
    world = World(constants, 1, _crowd_reset, _crowd_begin, _crowd_local_states, _crowd_step)
    return Task(f"crowd of {n}", ("back", "stay", "on", "leap"), advisors, world, limit=300, endless=True)


def advisors(rounds: int = 9) -> dict[str, Any]:
    """Nanoseconds a step for n = 77, 770, 7,700 advisors: all of them active, and 77 of them active."""
    cases = {(n, active): MultiAdvisor(crowd(n, active), planning="empathic")._prepare()
             for n in (77, 770, 7700) for active in (77, n)}  # fmt: skip
    times: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    for _ in range(rounds + 1):
        for (n, active), agent in cases.items():
            steps = max(15_000_000 // active // 10, 300)
            times[n, active].append(seconds_of(agent._learner.run, steps) / steps * 1e9)
    rows = [
        {"n": n, "active": active, "ns_per_step": float(np.median(values[1:])),
         "ns_per_step_and_active_advisor": float(np.median(values[1:])) / active}
        for (n, active), values in sorted(times.items(), key=lambda item: (item[0][1], item[0][0]))
    ]  # fmt: skip
    return {"machine": machine(), "rows": rows, "rounds": rounds}


# ---- the size of what the theory lab solves --------------------------------------------------------------------------
def theory(rounds: int = 9) -> dict[str, Any]:
    """Seconds for the exact values of 1,000 fruits on 100 x 100 cells, and of Pac-Boy's ghost advisor (76^2 states)."""
    from multiadvisor.analysis.theory.boards import Maze, local_values
    from multiadvisor.analysis.theory.solver import solve_local

    grid = make("fruit-grid", width=100, height=100, fruits=1000)
    maze, pac_boy = Maze(grid), make("pac-boy")
    lying = np.flatnonzero(maze.fruit(grid.initial_state())).tolist()
    rows = []
    for planning in ("egocentric", "agnostic"):
        next(local_values(pac_boy, planning, 0.9))  # compiled
        for name, solutions in (
            ("1,000 fruits, 100 x 100 cells", (solve_local(maze.fruit_mdp(j), 0.9, planning)[:2] for j in lying)),
            ("ghost advisor, 76^2 states", itertools.islice(local_values(pac_boy, planning, 0.9), 1)),
        ):
            start = time.process_time()
            residual = max(off for _, off in solutions)
            taken = time.process_time() - start
            rows.append({"what": name, "planning": planning, "seconds": taken, "residual": residual})
    return {"machine": machine(), "gamma": 0.9, "rows": rows, "rounds": 1}


BENCHMARKS: dict[str, Callable[[int], dict[str, Any]]] = {
    "kernel": kernel,
    "gymnasium": gymnasium,
    "advisors": advisors,
    "theory": theory,
}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}, medians of {result['rounds']} rounds"]
    if what == "kernel":
        for name, speed in result["steps_per_second"].items():
            native = result["native_steps_per_second"][name]
            share = result["ratio_to_native"][name]
            lines.append(f"  {name:11} {speed / 1e6:6.2f} M steps/s, {share:.2f} of the C loop's {native / 1e6:.2f} M")
        lines.append("  (the C loop learns without noise in every row; both give the same tables, bit for bit)")
    elif what == "gymnasium":
        for name, entry in result["environments"].items():
            other = f", MOQLearning {entry['moqlearning_us']:.1f} us" if "moqlearning_us" in entry else ""
            own = f"learning adds {entry['multiadvisor_us']:.2f} us"
            lines.append(f"  {name:22} {entry['environment_us']:.1f} us a step; {own}{other}")
        lines += [f"  {result['note']}"] if "note" in result else []
    elif what == "theory":
        for row in result["rows"]:
            lines.append(
                f"  {row['what']}, {row['planning']}: {row['seconds']:.2f} s, Bellman residual {row['residual']:.0e}"
            )
    else:
        for row in result["rows"]:
            lines.append(f"  {row['n']:5} advisors, {row['active']:5} active: {row['ns_per_step']:9.0f} ns a step, "
                         f"{row['ns_per_step_and_active_advisor']:.2f} ns for each active one")  # fmt: skip
    return "\n".join(lines)
