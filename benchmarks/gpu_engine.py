"""Everything that is said of the GPU engine, measured by one program on a machine with a GPU, in some eight minutes.

    python benchmarks/gpu_engine.py --out gpu.json            all parts below
    python benchmarks/gpu_engine.py --compile-only            without a GPU: does every world compile for it (needs the
                                                              extra gpu: numba-cuda with the CUDA toolkit's wheels;
                                                              with ptxas on the path: registers, memory, spills)
    python benchmarks/gpu_engine.py --emulated --runs 2 4 --steps 200 --seeds 1 --paper-steps 400
                                                              without a GPU: the program itself, on emulated lanes

In the order of what is most wanted, each with its own part of the time; what fails is noted and the rest goes on, and
the file is written again after every measurement.

speed: Pac-Boy, transitions learned from in a second, the launches alone, by number of runs and planning, for groups of
threads and for a thread each. parity: runs that differ in seed, gamma, planning and noise, on every built-in compiled
world, compared with the same runs on the processor, bit by bit. paper: its four settings of Pac-Boy at full length, all
seeds in one launch, with all evaluations. threads: the speed by the number of threads for each run, of registers for
each thread, and of bits of the tables.
"""

import argparse
import gc
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from shutil import which

import numpy as np

import multiadvisor as mad
from emulated_device import Emulated
from multiadvisor.core import rng
from multiadvisor.envs.registry import TASKS
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.lane_batch import LaneBatch, company, lane_learner
from multiadvisor.learners.tabular.lanes import check_lanes, clear_lanes, play_lanes, start_lanes
from multiadvisor.learners.tabular.thread_groups import group_loop, memory_of
from multiadvisor.runs.engines.cuda_device import find_device, group_kernel_of, kernel_of, uncontracted

PLANNINGS = ("egocentric", "agnostic", "empathic")
PAPER = [{"planning": p, "gamma": g} for p, g in
         (("egocentric", 0.4), ("egocentric", 0.9), ("agnostic", 0.9), ("empathic", 0.9))]  # fmt: skip
RUNS = [2112, 8448, 33_792, 135_168]
WORLDS = [name for name in TASKS if mad.make(name).world is not None]
FIRST_WORLDS = ("pac-boy", "two-goal", "mountain-car")
SHARES = {"speed": 0.3, "parity": 0.4, "paper": 0.15, "threads": 0.15}  # of the time


class Record:
    """What was found, on disk after every measurement."""

    def __init__(self, out, seconds):
        self.found, self.out, self.start, self.seconds = {}, out, time.perf_counter(), seconds
        self.until = self.start

    def begin(self, part):
        """A part has its share of the time; what another one has left is left for the later ones."""
        self.until = max(time.perf_counter(), self.until) + SHARES[part] * self.seconds

    def measure(self, part, name, function, *arguments):
        """Note what a function finds, or how it fails; nothing once the time of the part is over."""
        begun = time.perf_counter()
        if begun > self.until:
            found = "not measured: no time left"
        else:
            try:
                found = function(*arguments)
            except Exception as error:  # of the compiler, of the driver, of the memory
                traceback.print_exc()
                found = {"failed": f"{type(error).__name__}: {error}"[:600]}
        self.found.setdefault(part, {})[name] = dict(found) if isinstance(found, dict) else found
        print(f"{begun - self.start:6.1f} s  {part}: {name}: {str(found)[:400]}", flush=True)
        self.write()
        return found

    def write(self):
        """The file, whole or not at all."""
        text = json.dumps({**self.found, "seconds": time.perf_counter() - self.start}, indent=1) + "\n"
        if self.out is None:
            return
        beside = self.out.with_suffix(".part")
        beside.write_text(text)
        beside.replace(self.out)


def learners(task, settings):
    """Of runs that lanes take."""
    return [lane_learner(mad.MultiAdvisor(task, **how)) for how in settings]


def through(pieces, most=None):
    """Seconds of all launches together; stops early after so many seconds."""
    start = time.perf_counter()
    for _ in pieces:
        if most is not None and time.perf_counter() - start > most:
            break
    return time.perf_counter() - start


# ---- parity ----------------------------------------------------------------------------------------------------------
def settings_of_parity(lanes, noise):
    """Runs that differ."""
    return [{"seed": k, "planning": PLANNINGS[k % 3], "gamma": (0.4, 0.9)[k % 2], "epsilon": 0.1, "noise": noise}
            for k in range(lanes)]  # fmt: skip


class Alone(dict):
    """The same runs on the processor, and the seconds it took."""

    def __init__(self, task, settings, steps):
        start = time.perf_counter()
        self.tensors = [mad.MultiAdvisor(task, **how).learn(steps, progress=False).tensors() for how in settings]
        super().__init__(seconds=time.perf_counter() - start)


def parity(device, task, alone, settings, steps, threads):
    """How many of the runs are the processor's to the last bit; the largest gap, and where the first run differs."""
    batch = LaneBatch(learners(task, settings), 0, device, threads)
    through(batch.run(steps))
    gaps, first = [], None
    for lane, (mine, theirs) in enumerate(zip((batch.take_back(k).tensors() for k in range(len(settings))), alone,
                                              strict=True)):  # fmt: skip
        wrong = {key: float(np.abs(mine[key].astype(float) - theirs[key]).max(initial=0)) for key in theirs}
        gaps.append(max(wrong.values()))
        if first is None and gaps[-1] > 0:
            first = {"run": lane, "settings": settings[lane], "gaps": wrong}
    return {"threads": batch.threads, "equal": gaps.count(0.0), "runs": len(gaps), "largest gap": max(gaps),
            **({} if first is None else {"first": first})}  # fmt: skip


def all_parity(record, device, steps, lanes):
    """Every world, with and without noise, for groups and for a thread each; the most wanted worlds first."""
    record.begin("parity")
    for name in sorted(WORLDS, key=lambda name: name not in FIRST_WORLDS):
        task = mad.make(name)
        for noise in (0.0, 0.1):
            settings = settings_of_parity(lanes, noise)
            label = f"{name}, noise {noise:g}"
            alone = record.measure("alone", label, Alone, task, settings, steps)
            for threads in (8, 1) if isinstance(alone, Alone) else ():
                own = f"{label}, {'a group' if threads > 1 else 'one thread'}"
                record.measure("parity", own, parity, device, task, alone.tensors, settings, steps, threads)


# ---- speed -----------------------------------------------------------------------------------------------------------
class Held(dict):
    """So many runs of Pac-Boy, and the seconds it took; on this side one learner stands for all, to save memory."""

    def __init__(self, device, count, threads=None, dtype=np.float64):
        start = time.perf_counter()
        self.batch = LaneBatch(learners(mad.make("pac-boy"), [{}]) * count, 0, device, threads, dtype)
        super().__init__(seconds=time.perf_counter() - start, threads=self.batch.threads)


def speed_of(device, count, threads, dtype, steps):
    """Of runs that are made for it."""
    return speed(Held(device, count, threads, dtype).batch, "egocentric", 0.0, steps, 0.7)


def speed(batch, planning, noise, steps, seconds):
    """Seconds until the first launch is back, and transitions a second after the first steps."""
    device, count, task = batch.device, batch.lanes, mad.make("pac-boy")
    [one] = learners(task, [{"planning": planning, "noise": noise}])
    assert company(one) == company(batch.learners[0])
    settings = np.repeat(batch._settings([one.key], True)[:1], count)
    settings[:] = (*one._workspace(one.progress, one.key, True).run, 1)
    settings["key"] = [rng.stream_key(seed, rng.TRAINING) for seed in range(count)]
    batch._learning = batch._learning._replace(run=device.put(settings))
    for function in (batch._clear, batch._start):
        batch._launch(function, batch._learning)
    first = through(batch.run(1))  # compiles
    through(batch.run(max(1, steps // 4)), seconds / 2)
    before = int(device.get(batch._learning.progress)["step"].sum())
    took = through(batch.run(steps), seconds)
    made = int(device.get(batch._learning.progress)["step"].sum()) - before
    return {"threads": batch.threads, "first launch": first, "transitions": made, "seconds": took,
            "a second": made / took}  # fmt: skip


def all_speed(record, device, counts, steps):
    """Groups with 64 and 32 bits, and a thread each, by number of runs and planning; with noise."""
    record.begin("speed")
    for dtype, threads in ((np.float32, None), (np.float64, None), (np.float64, 1)):
        for count in counts:
            label = f"{count} runs, {np.dtype(dtype).name}, {'one thread' if threads else 'a group'}"
            held = record.measure("setup", label, Held, device, count, threads, dtype)
            for planning, noise in [*((planning, 0.0) for planning in PLANNINGS), ("egocentric", 0.1)]:
                if isinstance(held, Held):
                    name = f"{label}, {planning}, noise {noise:g}"
                    record.measure("speed", name, speed, held.batch, planning, noise, steps, 1.5)
            del held
            gc.collect()


def all_threads(record, device, counts, steps):
    """Which number of threads suits which number of runs, and how many registers."""
    record.begin("threads")
    for count in counts:
        for dtype in (np.float32, np.float64):
            for threads in (4, 8, 16, 32):
                for registers in (None, 96):
                    label = f"{count} runs, {np.dtype(dtype).name}, {threads} threads, {registers or 'any'} registers"
                    device.registers = registers
                    record.measure("threads", label, speed_of, device, count, threads, dtype, steps)
                    gc.collect()
    device.registers = None


# ---- the paper -------------------------------------------------------------------------------------------------------
def paper(device, seeds, steps, every, episodes, most):
    """The paper's four settings, learning and evaluating to the end: seconds, and each setting's final scores."""
    task, start = mad.make("pac-boy"), time.perf_counter()
    settings = [{**how, "seed": seed} for how in PAPER for seed in range(seeds)]
    batch = LaneBatch(learners(task, settings), episodes, device)
    assert len({company(one) for one in batch.learners}) == 1
    made, scores, done = time.perf_counter() - start, [], 0
    for number in range(1, steps // every + 1):
        through(batch.run(every))
        through(batch.evaluate(number))
        scores.append([np.nan if isinstance(one, BadInput) else float(one.score.mean()) for one in batch.played()])
        done = number * every
        if time.perf_counter() - start > most:
            break
    final = np.array(scores)[-10:].mean(axis=0).reshape(len(PAPER), seeds)
    return {"seeds": seeds, "threads": batch.threads, "steps": done, "of": steps, "episodes": episodes, "setup": made,
            "seconds": time.perf_counter() - start,
            "final scores": {f"{how['planning']} {how['gamma']}": {"mean": float(row.mean()), "runs": row.tolist()}
                             for how, row in zip(PAPER, final, strict=True)}}  # fmt: skip


# ---- without a GPU ---------------------------------------------------------------------------------------------------
def assembled(code):
    """What ptxas says of registers and memory, where it is installed."""
    if which("ptxas") is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.ptx").write_text(code)
        command = ["ptxas", "-v", "-arch=sm_90", "-fmad=false", "kernel.ptx", "-o", "kernel.cubin"]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if said.returncode:
        return {"ptxas": said.stderr[-400:]}
    numbers = {"registers": r"Used (\d+) registers", "shared bytes": r"(\d+) bytes smem",
               "spilt bytes": r"(\d+) bytes spill stores"}  # fmt: skip
    found = {name: re.search(pattern, said.stderr) for name, pattern in numbers.items()}
    return {name: int(match[1]) for name, match in found.items() if match}


def compiled_to_ptx(arguments, capability, make, *given):
    """Seconds, and what is in it: sums that may be contracted, waits of the whole warp, 16-byte loads, local memory."""
    from numba import cuda, typeof, types

    start = time.process_time()
    with uncontracted():
        code, _ = cuda.compile(
            make(cuda, *given).py_func,
            types.void(*map(typeof, arguments)),
            cc=capability,
            output="ptx",
            device=False,
            abi="numba",
        )
    wanted = {"may be contracted": r"\t(?:add|mul)\.f64 ", "waits": r"bar\.warp\.sync\s+-1", "votes": r"vote\.sync",
              "16-byte loads": r"ld\.global\.v4\.u32", "local memory": r"(?:ld|st)\.local"}  # fmt: skip
    counts = {name: len(re.findall(pattern, code)) for name, pattern in wanted.items()}
    seconds = round(time.process_time() - start, 1)
    return {"seconds of CPU": seconds, "lines": code.count("\n"), **counts, **assembled(code)}


def compile_only(record, names, capability=(9, 0)):
    """By world: its kernels for a GPU that is not here."""
    from numba.cuda import dispatcher

    dispatcher.get_current_device = lambda: argparse.Namespace(compute_capability=capability)
    record.until = np.inf
    for name in names:
        for how in ({}, {"planning": "estimate", "aggregation": "boltzmann_sum"})[: 1 + (name == names[0])]:
            [one] = learners(mad.make(name), [how])
            for dtype in (np.float64, np.float32):
                batch = LaneBatch([one], 3, Emulated(), 1, dtype)
                arguments = [batch._constants, batch._runs, batch._evaluation, 1, 1]
                kernels = {}
                for threads in (8, 32):
                    loop = group_loop(one, threads, dtype)
                    if loop is not None:
                        kernels[f"group of {threads}"] = (group_kernel_of, loop, memory_of(one, dtype), threads)
                if dtype == np.float64:
                    for function in (play_lanes, start_lanes, clear_lanes, check_lanes):
                        kernels[function.__name__] = (kernel_of, function, one._loop)
                for label, kernel in kernels.items():
                    label = ", ".join([name, *how.values(), np.dtype(dtype).name, label])
                    record.measure("compile", label, compiled_to_ptx, arguments, capability, *kernel)


def main():
    """What was asked for."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--out", type=Path, help="write the figures here, as JSON")
    flags.add_argument("--seconds", type=float, default=450.0, help="about so long for all of it")
    flags.add_argument("--emulated", action="store_true", help="on emulated lanes: figures say nothing of a GPU")
    flags.add_argument("--compile-only", nargs="*", metavar="WORLD", help="compile these worlds, or all")
    flags.add_argument("--runs", type=int, nargs="+", default=RUNS, help="of the measure of speed")
    flags.add_argument("--steps", type=int, default=1_000_000, help="of the measure of speed, at most")
    flags.add_argument("--seeds", type=int, default=1000, help="of the paper's settings")
    flags.add_argument("--paper-steps", type=int, default=1_000_000)
    flags.add_argument("--lanes", type=int, default=64, help="runs of the measure of parity")
    flags.add_argument("--parts", nargs="+", default=["speed", "parity", "paper", "threads"], choices=list(SHARES))
    given = flags.parse_args()
    every, most = min(20_000, given.paper_steps), SHARES["paper"] * given.seconds
    record = Record(given.out, given.seconds)
    record.found |= {"command": sys.argv[1:], "machine": f"{platform.machine()}, Python {platform.python_version()}"}
    if given.compile_only is not None:
        compile_only(record, given.compile_only or WORLDS)
        return
    device = Emulated(1 << 40) if given.emulated else find_device()
    record.found["device"] = "emulated on the processor" if given.emulated else device.name()
    for part in given.parts:
        if part == "parity":
            all_parity(record, device, min(2000, given.steps), given.lanes)
        elif part == "speed":
            all_speed(record, device, given.runs, given.steps)
        elif part == "threads":
            all_threads(record, device, given.runs[:3], given.steps)
        else:
            record.begin("paper")
            record.measure("paper", "four settings", paper, device, given.seeds, given.paper_steps, every, 80, most)


if __name__ == "__main__":
    main()
