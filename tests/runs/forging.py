"""Checkpoints forged with values out of range and checksums that are right, and what becomes of those who load them.

A checksum is no signature: whoever knows the format can seal anything. Each forgery is loaded, evaluated and resumed in
a child process, where a crash, a hang or a hunger for memory is seen from outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import selectors
import shutil
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

MOST_SECONDS = 10.0  # of computing, for one forgery
MOST_MEMORY = 1 << 30  # bytes
_PATIENCE = 300.0  # seconds, after which it is a hang; as in `patience`, which a program by itself does not find
_EACH_CHILD = 100  # forgeries for a child, as caches grow

QUICK = {
    "hidden": (8,), "starts": 32, "batch": 16, "replay": 300, "update_every": 2, "updates_at_once": 4, "envs": 2,
    "target_every": 10, "epsilon_turns": 300, "n_step": 2,
}  # fmt: skip
SCHEDULE = {"epochs": 2, "transitions": 45, "games": 2}
VICTIMS = {
    "maze": ("pac-boy", {}, {}),
    "linear": ("three-fruits", {}, {"learner": "linear"}),
    "estimate": ("fruit-grid", {"width": 3, "height": 3, "fruits": 2}, {"foresight": "estimate"}),
    "finite": ("resource-scheduling", {}, {"planning": "agnostic"}),
    "lake": ("gymnasium:FrozenLake-v1", {}, {}),
    "cards": ("gymnasium:Blackjack-v1", {}, {"planning": "egocentric"}),
    "deep world": ("three-fruits", {}, {"deep": QUICK}),
    "deep numbers": ("random-mdp", {"states": 4}, {"deep": {**QUICK, "split": "none"}}),
    "deep cart pole": ("gymnasium:CartPole-v1", {}, {"deep": QUICK}),
}


def train(folder: Path, task: str, options: dict, settings: dict, epochs: int = 0) -> None:
    """Begin or resume a run, for so many epochs more than the schedule has."""
    from multiadvisor.runs.training import begin
    from multiadvisor.settings import Schedule, Settings
    from multiadvisor.worlds.builtin import make

    schedule = Schedule(**{**SCHEDULE, "epochs": SCHEDULE["epochs"] + epochs})
    begin(make(task, **options), Settings(**settings), schedule, folder, resume=True).run()


def victims(home: Path) -> dict[str, Path]:
    """A run of every kind that there is, saved in the middle of a game where that can be."""
    for name, victim in VICTIMS.items():
        train(home / name, *victim)
    return {name: home / name for name in VICTIMS}


# ---- forging ---------------------------------------------------------------------------------------------------------
WHOLE = [-1, -2, 1, 2, 3, 7, 255, 1_000, 10**6, 10**9, -(10**9), 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)]
REAL = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e30, 5e-324, -1.0, 0.5]
JUNK = [
    None, True, False, -1, 0, 1, 7, 10**6, 10**9, 1 << 62, 1 << 70, -(1 << 63), 10**400, 0.5, 1e308, -1e308, "", "x",
    "x" * 5000, "pac-boy", "two-goal", "os.system", "../../x", "/dev/zero", "\x00", [], {}, [[]], {"a": 1}, [1] * 2000,
    [10**9], [10**9, 10**9], {"tuple": [1]}, [0.5, None],
]  # fmt: skip


def forge_array(array: np.ndarray, generator: random.Random) -> np.ndarray:
    """The same array with a few values, or its shape or type, changed."""
    array, how = array.copy(), generator.random()
    if how < 0.75 and array.size:
        values = REAL if array.dtype.kind == "f" else WHOLE
        with np.errstate(all="ignore"):
            bad = np.array(generator.choice(values)).astype(array.dtype)
        if generator.random() < 0.2:
            array[...] = bad
        else:
            for _ in range(generator.choice((1, 1, 2, 5))):
                array.reshape(-1)[generator.randrange(array.size)] = bad
        return array
    return generator.choice(
        [
            array.astype(np.float64), array.astype(np.int64), array.astype(np.uint8), array.astype(np.int16),
            array[..., None], array.reshape(-1), array.reshape(-1)[:1], array[:0], array[:-1], np.zeros((0, 0)),
            np.concatenate([array, array]), np.concatenate([array.reshape(-1)] * 3), array[::-1], np.roll(array, 1),
            np.broadcast_to(array, (2, *array.shape)), np.zeros((10**6,), array.dtype),
        ]
    )  # fmt: skip


def forge_data(data, generator: random.Random):
    """The same data with something inside replaced, removed, renamed or added."""
    if isinstance(data, dict) and data and generator.random() < 0.9:
        key, how = generator.choice(sorted(data)), generator.randrange(12)
        others = {name: value for name, value in data.items() if name != key}
        if how == 0:
            return others
        if how == 1:
            return {**others, f"{key}x": data[key]}
        return {**data, key: forge_data(data[key], generator)}
    if isinstance(data, list) and data and generator.random() < 0.9:
        place = generator.randrange(len(data))
        return [*data[:place], forge_data(data[place], generator), *data[place + 1 :]]
    if isinstance(data, int) and generator.random() < 0.3:
        return data + generator.choice((-1, 1, 1000))
    return generator.choice(JUNK)


GREEDY = {  # what would take terabytes, or for ever
    "hidden": [[10**6, 10**6], [10**9], [1] * 20_000, [1 << 62]], "envs": [100_000, 3, 1], "n_step": [1 << 60],
    "batch": [100_000, 10**9, 1], "replay": [10**8, 10**12, 1 << 62], "updates_at_once": [10**6, 1 << 40, 1],
    "target_every": [1 << 40, 1], "update_every": [1, 1 << 60], "starts": [0, 1 << 62], "convolutions": [[3], [10**6]],
}  # fmt: skip
OPTIONS = [
    {"width": 1000, "height": 1000}, {"states": 5000, "actions": 100, "advisors": 500, "outcomes": 100},
    {"maze": "/dev/zero"}, {"limit": 1 << 70}, {"limit": 1 << 62}, {"limit": 0.5}, {"limit": "x"}, {"fruits": 1},
    {"jobs": 8, "work": 100}, {"weights": {"fruits": 1e308}}, {"weights": []}, {"desc": ["S" * 100] * 100},
]  # fmt: skip


def forge_header(header: dict, generator: random.Random) -> None:
    """Something in the header, its settings, its record or the task's options."""
    what = generator.choice(("settings", "settings", "deep", "task", "options", "record", "record", "any"))
    if what == "deep" and header["settings"]["deep"]:
        name = generator.choice(sorted(GREEDY))
        header["settings"]["deep"][name] = generator.choice(GREEDY[name])
    elif what == "options":
        header["task"]["options"].update(generator.choice(OPTIONS))
        with contextlib.suppress(Exception):  # as far as anybody gets who makes the identity right as well
            header["task"]["identity"] = _identity(header["task"])
    elif what in ("settings", "task", "record"):
        header[what] = forge_data(header[what], generator)
    else:
        key = generator.choice(sorted(header))
        header[key] = forge_data(header[key], generator)


def _identity(task: dict) -> dict:
    from multiadvisor.worlds.builtin import make

    return make(task["name"], **task["options"]).identity


def forge_counted(content: bytes, generator: random.Random) -> bytes:
    """The list of local states with a line changed."""
    lines = content.split(b"\n")
    place = generator.randrange(len(lines))
    how = generator.randrange(5)
    if how == 0:
        lines[place] = b"[0," + b'{"tuple":[' * 2000 + b"]}" * 2000 + b",0]"
    elif how == 1:
        lines[place] = generator.choice((b"[]", b"", b"[0,[],0]", b"NaN", b"\xff", b'[0,{"bytes":"x"},0]', b"[-1,0,0]"))
    elif how == 2:
        lines = lines[::-1]
    elif how == 3:
        lines.append(lines[place])
    else:
        with contextlib.suppress(ValueError):
            lines[place] = json.dumps(forge_data(json.loads(lines[place]), generator)).encode()
    return b"\n".join(lines)


def forge(folder: Path, to: Path, generator: random.Random) -> str:
    """A copy of a checkpoint with one thing changed or several, sealed again; what was changed."""
    from multiadvisor.storage.checkpoint import _canonical, _digest

    header = json.loads((folder / "agent.json").read_text())
    header.pop("sha256")
    tensors = load((folder / header["values"]["file"]).read_bytes())
    changed, raw = [], None
    for _ in range(generator.choice((1, 1, 1, 2))):
        how = generator.random()
        name = generator.choice(sorted(tensors))
        if how < 0.6:
            if name == "counted" and tensors[name].size:
                content = forge_counted(tensors[name].tobytes(), generator)
                tensors[name] = np.frombuffer(content, np.uint8)
            else:
                tensors[name] = forge_array(tensors[name], generator)
            changed.append(name)
        elif how < 0.65:
            tensors[f"{name} more"] = tensors[name]
            if generator.random() < 0.7:
                del tensors[name]
            changed.append(f"names of {name}")
        elif how < 0.95:
            before = json.dumps(header)
            forge_header(header, generator)
            pairs = [k for k, v in json.loads(before).items() if header.get(k) != v]
            changed.append(f"header {pairs}")
        else:
            raw = generator
            changed.append("the header of the values")
    content = save({name: np.ascontiguousarray(array) for name, array in tensors.items()})
    if raw:
        content = forge_shapes(content, generator)
    digest = _digest(content)
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    values = to / f"values-{digest[:16]}.safetensors"
    values.write_bytes(content)
    if header.get("values") == json.loads((folder / "agent.json").read_text())["values"]:
        header["values"] = {"file": values.name, "sha256": digest}
    header["sha256"] = _digest(_canonical(header))
    (to / "agent.json").write_bytes(_canonical(header))
    return ", ".join(changed)


def forge_shapes(content: bytes, generator: random.Random) -> bytes:
    """Shapes, types and places in the values' own header that its bytes do not bear out."""
    size = struct.unpack("<Q", content[:8])[0]
    if generator.random() < 0.2:
        return struct.pack("<Q", generator.choice((0, 1 << 40, (1 << 64) - 1, len(content)))) + content[8:]
    shapes = json.loads(content[8 : 8 + size])
    entry = shapes[generator.choice(sorted(shapes))]
    how = generator.randrange(3)
    if how == 0:
        entry["shape"] = generator.choice(([1 << 40], [1 << 32, 1 << 32], [-1], [0], [1 << 62, 4], [1] * 3000))
    elif how == 1:
        entry["dtype"] = generator.choice(("F64", "F16", "BF16", "I8", "U64", "BOOL", "F8_E4M3", "X"))
    else:
        entry["data_offsets"] = generator.choice(([0, 1 << 60], [8, 0], [-1, 8], [0, 0]))
    text = json.dumps(shapes).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


# ---- whoever loads them ----------------------------------------------------------------------------------------------
def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10 if found else 0


def suffer(folder: Path, kind: str) -> str:
    """What playing, learning and `train --resume` do with a folder: "fine", "refused", or a traceback."""
    import multiadvisor as mad

    said = set()
    for use in (
        lambda: mad.load(folder).evaluate(1),
        lambda: mad.load(folder).learn(40, progress=False),
        lambda: train(folder, *VICTIMS[kind], epochs=1),
    ):
        try:
            use()
            said.add("fine")
        except mad.BadInput as error:
            if "\n" in str(error) or len(str(error)) > 600:
                return f"no short line: {str(error)[:700]!r}"
            said.add("refused")
        except Exception:
            return traceback.format_exc()
    return "fine" if said == {"fine"} else "refused"


def child() -> None:
    """Answer for one folder after the other; the first of each kind is whole, and compiles what there is to compile."""
    for line in sys.stdin:
        folder, kind = json.loads(line)
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
        start = time.process_time()
        outcome = suffer(Path(folder), kind)
        seconds = time.process_time() - start
        print(json.dumps([outcome, seconds, _status("VmHWM")]), flush=True)


class Child:
    """A process that loads forgeries; it may die of one."""

    def __init__(self, whole: dict[str, Path], home: Path) -> None:
        self.whole, self.home, self.warm, self.process = whole, home, set(), None

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.asked, self.warm = 0, set()

    def ask(self, folder: Path, kind: str) -> tuple[str, float, int]:
        """What becomes of a folder, after how many seconds, with how many bytes at most."""
        if self.process is None or self.process.poll() is not None or self.asked >= _EACH_CHILD:
            self.close()
            self._start()
        if kind not in self.warm:
            copy = self.home / "whole"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.whole[kind], copy)
            answer = self._exchange(copy, kind)
            assert answer[0] == "fine", answer
            self.warm.add(kind)
        self.asked += 1
        return self._exchange(folder, kind)

    def _exchange(self, folder: Path, kind: str) -> tuple[str, float, int]:
        self.process.stdin.write(json.dumps([str(folder), kind]).encode() + b"\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            heard = selector.select(_PATIENCE)
        line = self.process.stdout.readline() if heard else b""
        if line:
            return tuple(json.loads(line))
        if not heard:
            self.process.kill()
        return ("hangs" if not heard else f"dies with {self.process.wait()}"), 0.0, 0

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


def forged_checkpoints(home: Path, count: int, seed: int, kinds: tuple[str, ...] = tuple(VICTIMS)) -> dict:
    """So many forgeries, each of which is refused in a line or does no harm."""
    home.mkdir(parents=True, exist_ok=True)
    generator, seen, slowest, most = random.Random(seed), Counter(), 0.0, 0
    whole = victims(home / "victims")
    child, faults = Child(whole, home), []
    try:
        for number in range(count):
            kind = generator.choice(kinds)
            changed = forge(whole[kind], home / "forged", generator)
            outcome, seconds, memory = child.ask(home / "forged", kind)
            seen[f"{kind}: {outcome if outcome in ('fine', 'refused') else 'FAULT'}"] += 1
            slowest, most = max(slowest, seconds), max(most, memory)
            if outcome not in ("fine", "refused") or seconds > MOST_SECONDS or memory > MOST_MEMORY:
                faults.append(f"number {number}, {kind}, {changed}: {outcome} ({seconds:.1f} s, {memory >> 20} MiB)")
    finally:
        child.close()
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:20])
    return {**dict(sorted(seen.items())), "slowest, seconds": round(slowest, 2), "most memory, MiB": most >> 20}


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    child()
