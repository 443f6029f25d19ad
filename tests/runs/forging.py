"""Checkpoints forged with values out of range and checksums that are right, and what becomes of those who load them.

A checksum is no signature: whoever knows the format can seal anything. Each forgery is loaded, evaluated and resumed in
a child process, where a crash, a hang or a hunger for memory is seen from outside.
"""

import contextlib
import dataclasses
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import gymnasium
import numpy as np
from safetensors.numpy import load, save

import multiadvisor as mad
from agents import LEARNED
from corridor import LENGTH, Corridor
from multiadvisor.agent import load_with_record
from multiadvisor.core.identity import difference
from multiadvisor.envs.registry import make
from multiadvisor.learners.gvf.gvf_spec import Aims, Goals
from multiadvisor.runs.child_process import Child, messages
from multiadvisor.runs.training import begin, table_digest
from multiadvisor.settings import Schedule, Settings
from multiadvisor.storage.checkpoint import read_checkpoint, seal_header
from multiadvisor.storage.sealed import digest
from multiadvisor.task import BY_ADVISOR
from patience import PATIENCE

MOST_SECONDS = 10.0  # of computing, for one forgery
MOST_MEMORY = 1 << 30  # bytes
_EACH_CHILD = 200  # forgeries for a child, as caches grow

QUICK = {
    "name": "dqn", "hidden": (8,), "learning_starts": 32, "batch_size": 16, "buffer_size": 300, "train_freq": 2,
    "updates_at_once": 4, "n_envs": 2, "target_update_interval": 10, "epsilon_steps": 300, "n_step": 2,
}  # fmt: skip
ACTOR = {
    "name": "sac", "hidden": (8,), "learning_starts": 32, "batch_size": 16, "buffer_size": 300, "train_freq": 4,
    "updates_at_once": 2, "n_envs": 2,
}  # fmt: skip
SCHEDULE = {"steps": 90, "eval_every": 45, "eval_episodes": 2}


def bank():
    """A task of general value functions, which is put together by hand."""

    def aim(x, look):
        return Aims(np.where(look.met, np.where(x[1:] == 1, (0, LENGTH - 1), -1), -1), np.ones(2))

    goals = Goals(LENGTH, np.arange(LENGTH), lambda x: int(x[0]), aim, lambda x, y, r: (x - y)[1:] * 1.0, sweeps=2)
    env = gymnasium.wrappers.TimeLimit(Corridor(), 30)
    return dataclasses.replace(mad.Task.from_gymnasium(env, [mad.Advisor("left"), mad.Advisor("right")]), goals=goals)


TREASURE = "deep-sea-treasure-v0"
FRUITS = {"width": 3, "height": 3, "fruits": 2}
# every kind of learner, and every aggregation that learns, in a compiled world and in an environment
VICTIMS = {
    "maze": ("pac-boy", {}, {}),
    "linear": ("three-fruits", {}, {"learner": "linear"}),
    "estimate": ("fruit-grid", FRUITS, {"planning": "estimate"}),
    "finite": ("resource-scheduling", {}, {"planning": "agnostic"}),
    "mapped": ("tile-chain", {}, {}),
    "lake": ("FrozenLake-v1", {}, {}),
    "cards": ("Blackjack-v1", {}, {"planning": "egocentric"}),
    "bank": (bank, {}, {"planning": "agnostic"}),
    "deep world": ("three-fruits", {}, {"learner": QUICK}),
    "deep numbers": ("random-mdp", {"states": 4}, {"learner": {**QUICK, "split": "none"}}),
    "deep cart pole": ("CartPole-v1", {}, {"learner": QUICK}),
    "deep correction": ("three-fruits", {}, {"learner": QUICK, "aggregation": "correction"}),
    "actor": ("Pendulum-v1", {}, {"learner": ACTOR}),
    "actor shared": (
        "Pendulum-v1",
        {},
        {"learner": {**ACTOR, "critics": "shared", "n_envs": 1}},
    ),
    **{f"{name} world": ("fruit-grid", FRUITS, {"aggregation": name}) for name in LEARNED},
    **{f"{name} sea": (TREASURE, {}, {"aggregation": name}) for name in LEARNED},
}


def made(kind):
    """The task of a victim."""
    task, options, _ = VICTIMS[kind]
    return task() if callable(task) else make(task, **options)


def train(folder, kind, evaluations=0):
    """Begin or resume a run, for so many evaluations more than the schedule has."""
    schedule = Schedule(**{**SCHEDULE, "steps": SCHEDULE["steps"] + evaluations * SCHEDULE["eval_every"]})
    begin(made(kind), Settings(**VICTIMS[kind][2]), schedule, folder, resume=True).run()


def reseal(folder, change=lambda tensors: None, change_header=lambda header: None):
    """Change arrays and the header of a checkpoint, and make all checksums right again."""
    header = json.loads((folder / "agent.json").read_text())
    header.pop("sha256")
    path = folder / header["values"]["file"]
    tensors = {name: array.copy() for name, array in load(path.read_bytes()).items()}
    change(tensors)
    content = save(tensors)
    path.unlink()
    header["values"] = {"file": "values-x.safetensors", "sha256": digest(content)}
    (folder / "values-x.safetensors").write_bytes(content)
    change_header(header)
    (folder / "agent.json").write_bytes(seal_header(header))


def flipped(content, bit):
    """The same bytes with another bit at this place."""
    return content[: bit // 8] + bytes([content[bit // 8] ^ (1 << bit % 8)]) + content[bit // 8 + 1 :]


# ---- forging ---------------------------------------------------------------------------------------------------------
WHOLE = [-1, -2, 1, 2, 3, 7, 255, 1_000, 10**6, 10**9, -(10**9), 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)]
REAL = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e30, 5e-324, -1.0, 0.5]
JUNK = [
    None, True, False, -1, 0, 1, 7, 10**6, 10**9, 1 << 62, 1 << 70, -(1 << 63), 10**400, 0.5, 1e308, -1e308, "", "x",
    "x" * 5000, "pac-boy", "two-goal", "os.system", "../../x", "/dev/zero", "\x00", [], {}, [[]], {"a": 1}, [1] * 2000,
    [10**9], [10**9, 10**9], {"tuple": [1]}, [0.5, None],
]  # fmt: skip


def forge_array(array, generator):
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


def forge_data(data, generator):
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
    "hidden": [[10**6, 10**6], [10**9], [1] * 20_000, [1 << 62]],
    "n_envs": [100_000, 3, 1],
    "n_step": [1 << 60],
    "batch_size": [100_000, 10**9, 1],
    "buffer_size": [10**8, 10**12, 1 << 62],
    "updates_at_once": [10**6, 1 << 40, 1],
    "target_update_interval": [1 << 40, 1],
    "train_freq": [1, 1 << 60],
    "learning_starts": [0, 1 << 62],
    "convolutions": [[3], [10**6]],
}
OPTIONS = [
    {"width": 1000, "height": 1000}, {"states": 5000, "actions": 100, "advisors": 500, "outcomes": 100},
    {"maze": "/dev/zero"}, {"limit": 1 << 70}, {"limit": 1 << 62}, {"limit": 0.5}, {"limit": "x"}, {"fruits": 1},
    {"jobs": 8, "work": 100}, {"weights": {"fruits": 1e308}}, {"weights": []}, {"desc": ["S" * 100] * 100},
]  # fmt: skip


SOUND = [  # other settings that an agent may have: whoever claims them has to act and learn by them
    {"gamma": 0.5}, {"gamma": 0.0}, {"alpha": 1.0}, {"epsilon": 0.9}, {"seed": 7}, {"noise": 2.0}, {"alpha_half": 3},
    {"epsilon_half": 5}, {"planning": "egocentric"}, {"planning": "agnostic"}, {"planning": "sarsa"},
    {"learner": {"name": "linear"}}, {"planning": "estimate"},
    *({"aggregation": name} for name in ("sum", "max", *LEARNED)),
    {"learner": {"name": "tabular"}}, {"learner": {"name": "gvf"}}, {"learner": {"name": "auto"}},
]  # fmt: skip


def forge_header(header, generator):
    """Something in the header, its settings, its record or the task's options."""
    what = generator.choice(("settings", "sound", "deep", "task", "options", "record", "any"))
    if what == "deep" and header["settings"]["learner"]["name"] in ("dqn", "sac"):
        name = generator.choice(sorted(GREEDY))
        header["settings"]["learner"][name] = generator.choice(GREEDY[name])
    elif what == "options":
        header["task"]["options"].update(generator.choice(OPTIONS))
        with contextlib.suppress(Exception):  # as far as anybody gets who makes the identity right as well
            header["task"]["identity"] = _identity(header["task"])
    elif what == "sound":
        header["settings"] |= generator.choice(SOUND)
    elif what in ("settings", "task", "record"):
        header[what] = forge_data(header[what], generator)
    else:
        key = generator.choice(sorted(header))
        header[key] = forge_data(header[key], generator)


def _identity(task):
    return make(task["name"], **task["options"]).identity


def forge_counted(content, generator):
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


def forge(folder, to, generator):
    """A copy of a checkpoint with one thing changed or several, sealed again; what was changed."""
    header = json.loads((folder / "agent.json").read_text())
    header.pop("sha256")
    tensors = load((folder / header["values"]["file"]).read_bytes())
    changed, raw = [], None
    for _ in range(generator.choice((1, 1, 1, 2))):
        how = generator.random()
        name = generator.choice(sorted(tensors))
        if how < 0.6 or (how < 0.95 and changed and changed[0].startswith("header")):
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
    known = digest(content)
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    values = to / f"values-{known[:16]}.safetensors"
    values.write_bytes(content)
    if header.get("values") == json.loads((folder / "agent.json").read_text())["values"]:
        header["values"] = {"file": values.name, "sha256": known}
    (to / "agent.json").write_bytes(seal_header(header))
    return ", ".join(changed)


def forge_shapes(content, generator):
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
def _status(name):
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10 if found else 0


def suffer(folder, kind):
    """What playing, learning and `train --resume` do with a folder: "fine", "refused", or what is wrong with it."""
    said = set()
    for use in (compare, train):
        try:
            use(folder, kind, *((1,) if use is train else ()))
            said.add("fine")
        except mad.BadInput as error:
            if "\n" in str(error) or len(str(error)) > 600:
                return f"no short line: {str(error)[:700]!r}"
            said.add("refused")
        except Exception:
            return traceback.format_exc()
    return "fine" if "fine" in said else "refused"


def compare(folder, kind):
    """Whoever is taken for what he claims to be is that: an honest agent of these settings, with these numbers."""
    by_hand = callable(VICTIMS[kind][0])
    agent, record = load_with_record(folder, made(kind) if by_hand else None)
    header, tensors = read_checkpoint(folder)
    again = folder.parent / "again"
    agent.save(again, record)  # nothing was left out, nothing was read as something else
    kept, values = read_checkpoint(again)
    apart = {"version": 0, "values": 0}
    if by_hand:  # whose numbers by advisor are what they are in its identity, however they were given
        for each in (header, kept):
            each["task"]["options"] = {k: v for k, v in each["task"]["options"].items() if k not in BY_ADVISOR}
    told = difference({**header, **apart}, {**kept, **apart})
    assert not told, told
    assert tensors.keys() == values.keys()
    assert [name for name, array in tensors.items() if not _equal(array, values[name])] == []
    task = header["task"]
    own = made(kind) if by_hand else dataclasses.replace(make(task["maker"], **task["options"]), name=task["name"])
    honest = mad.MultiAdvisor(own, Settings(**header["settings"]))
    honest._learner.restore({name: array.copy() for name, array in tensors.items()})
    assert [name for name, array in honest._learner.tensors().items() if not _equal(array, tensors[name])] == []
    played = [each.evaluate(1).played for each in (agent, honest)]
    assert all(map(_equal, *played)), "it plays otherwise"
    digests = {table_digest(each.learn(40, progress=False)) for each in (agent, honest)}
    assert len(digests) == 1, "it learns otherwise"


def _equal(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def child():
    """Answer for one folder after the other; where there is none it is a copy of a sound run, made at its place."""
    pipe, asked = messages(*sys.argv[1:])
    for content in asked:
        folder, kind, place = json.loads(content)
        if not Path(place).exists():
            train(Path(place), kind)
        if not Path(folder).exists():
            shutil.copytree(place, folder)
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
        start, before = time.process_time(), _status("VmRSS")
        outcome = suffer(Path(folder), kind)
        pipe.send_bytes(json.dumps([outcome, time.process_time() - start, _status("VmHWM") - before]).encode())


class Loader:
    """A process that loads forgeries; it may die of one."""

    def __init__(self, home):
        self.home, self.child, self.asked, self.kind = home, None, 0, ""

    def whole(self, kind):
        """A sound run, which the process has begun, saved in the middle of an episode where that can be, and gone on
        with.

        So it has compiled what there is to compile.
        """
        if self.child is None or self.child.process.poll() is not None or self.asked >= _EACH_CHILD:
            self.close()
            self.child = Child("forging", subprocess.DEVNULL)
            self.asked, self.kind = 0, ""
        place, copy = self.home / "victims" / kind, self.home / "whole"
        if self.kind != kind:
            shutil.rmtree(copy, ignore_errors=True)
            answer = self.ask(copy, kind)
            assert answer[0] == "fine", answer
            self.kind = kind
        return place

    def ask(self, folder, kind):
        """What becomes of a folder, after how many seconds, with how many bytes more than before."""
        self.asked += 1
        pipe = self.child.pipe
        try:
            pipe.send_bytes(json.dumps([str(folder), kind, str(self.home / "victims" / kind)]).encode())
            if pipe.poll(PATIENCE):
                return tuple(json.loads(pipe.recv_bytes()))
        except (EOFError, OSError):
            return self.child.last_words(), 0.0, 0
        self.child.close()
        return "hangs", 0.0, 0

    def suffers(self, folder, kind):
        """`ask` of a copy; again where it took long, as settings of its own may have been compiled for it, once."""
        answer = ("", 2 * MOST_SECONDS, 0)
        for _ in range(2):
            if answer[1] > MOST_SECONDS:
                shutil.rmtree(self.home / "copy", ignore_errors=True)
                shutil.copytree(folder, self.home / "copy")
                answer = self.ask(self.home / "copy", kind)
        return answer

    def close(self):
        if self.child is not None:
            self.child.close()


def forged_checkpoints(home, count, seed, kinds=tuple(VICTIMS)):
    """So many forgeries, each of which is refused in a line or is what it claims to be; as many of every kind."""
    seen, slowest, most = Counter(), 0.0, 0
    loader, faults = Loader(home), []
    try:
        for place, kind in enumerate(kinds):
            generator = random.Random(f"{seed} {kind}")
            for number in range(count // len(kinds) + (place < count % len(kinds))):
                changed = forge(loader.whole(kind), home / "forged", generator)
                outcome, seconds, memory = loader.suffers(home / "forged", kind)
                seen[f"{kind}: {outcome if outcome in ('fine', 'refused') else 'FAULT'}"] += 1
                slowest, most = max(slowest, seconds), max(most, memory)
                if outcome not in ("fine", "refused") or seconds > MOST_SECONDS or memory > MOST_MEMORY:
                    told = f"{outcome} ({seconds:.1f} s, {memory >> 20} MiB)"
                    faults.append(f"{kind}, number {number}, {changed}: {told}")
    finally:
        loader.close()
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:20])
    return {**dict(sorted(seen.items())), "slowest, seconds": round(slowest, 2), "most memory, MiB": most >> 20}


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    child()
