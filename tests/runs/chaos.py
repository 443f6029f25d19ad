"""Kills, flipped bits, mutated and forged inputs, in any number: a few in the tests, all of them in `make chaos`."""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from unittest import mock

from forging import flipped, forge_data, forged_checkpoints

import multiadvisor as mad
from multiadvisor import cli
from multiadvisor.runs.ledger import finished_ids, read_log, read_running
from multiadvisor.runs.training import train_config
from multiadvisor.storage.checkpoint import seal_header
from multiadvisor.storage.sealed import canonical, with_checksum
from processes import children

GRID = """
task = "pac-boy"
seeds = {seeds}
[settings]
planning = ["egocentric", "agnostic", "empathic"]
gamma = [0.4, 0.9]
[schedule]
steps = {steps}
eval_every = {every}
eval_episodes = 5
"""


STORM = GRID.replace("{steps}", "1_000_000").replace("{every}", "100_000")  # a second or two for each run


# ---- kills -----------------------------------------------------------------------------------------------------------
def sweep(file, folder, **more):
    environment = {**os.environ, "MULTIADVISOR_SAVE_SECONDS": "0.1"}
    words = ["sweep", str(file), "--out", str(folder), "--workers", "2", "--resume"]
    line = [sys.executable, "-m", "multiadvisor", *words]
    return subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)


def looked_at(folder):
    """Every finished run: its file, its bytes, and how often it was begun."""
    log = read_log(folder)
    paths = {name: folder / "results" / f"{name}.json" for name in finished_ids(folder) if name in log}
    return {
        name: (path.stat().st_ino, path.read_bytes(), log[name].starts) for name, path in paths.items()
        if log[name].done
    }  # fmt: skip


def kill_storm(home, grid, drivers, workers, seed, longest=1.0):
    """A sweep whose driver and workers are killed at random moments, against one that is left alone.

    `grid` has a place for its number of seeds: whenever all is done before all are killed, there is more to do.
    """
    generator = random.Random(seed)
    finished = {}
    killed, seeds, folder, file = Counter(), 1, home / "storm", home / "grid.toml"
    file.write_text(grid.format(seeds=seeds))
    while True:
        last = killed["drivers"] == drivers
        quota = -(-(workers - killed["workers"]) // (drivers - killed["drivers"] + 1))
        process = sweep(file, folder)
        while process.poll() is None and (quota or not last):
            # anywhere, also while everything starts; or, more often, in the middle of the work
            at_work = generator.random() < 0.7
            while at_work and process.poll() is None:
                if read_running(folder):
                    break
                time.sleep(0.02)
            time.sleep(generator.uniform(0.0, longest))
            if not quota:
                break
            if found := children(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(generator.choice(found), signal.SIGKILL)
                    killed["workers"] += 1
                    killed["workers at work"] += at_work
                    quota -= 1
        if not last and process.poll() is None:
            process.kill()
        error = process.communicate()[1]
        killed["drivers"] += process.returncode == -signal.SIGKILL
        now = looked_at(folder)
        for name, was in finished.items():
            assert now[name] == was, f"the finished run {name} was touched or begun again"
        finished = now
        assert process.returncode in (0, -signal.SIGKILL), error
        if process.returncode == 0:
            if (killed["drivers"], killed["workers"]) == (drivers, workers):
                break
            seeds += 1
            file.write_text(grid.format(seeds=seeds))
    code, _, error = command("sweep", file, "--out", home / "quiet", "--workers", "0")
    assert code == 0, error
    one, other = (
        {path.name: path.read_bytes() for path in (home / name / "results").iterdir()} for name in ("quiet", "storm")
    )
    assert one == other, "the results differ from those of the sweep that was left alone"
    assert not list((folder / "scratch").glob("*"))
    return {"runs": len(other), **killed, "starts": sum(one.starts for one in read_log(folder).values())}


# ---- mutations -------------------------------------------------------------------------------------------------------
TOKENS = [
    b"nan", b"NaN", b"Infinity", b"1e999", b"-1", b"0", b"99999999999999999999", b"\x00", b"\xff\xfe", b'"', b"'", b"{",
    b"[" * 3000, b"]", b"}", b"=", b",", b"\n", b"null", b"true", b"[]", b"{}", b"1" * 5000, b"../../x", b"os.system",
    b'"gamma": 2', b"gamma = -0.5", b"\xe2\x80\xae", b"low", b"!!python/object", b"__import__", b'{"a":1,"a":2}',
]  # fmt: skip


def mutate(content, generator):
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        place = generator.randrange(len(content) + 1)
        length = generator.choice((0, 1, 1, 4, 30))
        how = generator.randrange(6)
        if how == 0:
            content = content[:place] + generator.choice(TOKENS) + content[place + length :]
        elif how == 1:
            content = content[:place] + content[place + length :]
        elif how == 2:
            content = (
                content[:place] + bytes(generator.randrange(256) for _ in range(length)) + content[place + length :]
            )
        elif how == 3:
            content = content[:place] + content[place - length : place] * 2 + content[place:]
        elif how == 4:
            content = content[:place]
        else:
            content = flipped(content, generator.randrange(8 * len(content))) if content else content
    return content


def sealed_junk(content, generator):
    """Junk with a checksum that is right: the hand of somebody who knows the format."""
    data = json.loads(content)
    data.pop("sha256")
    changed = forge_data(data, generator)
    if not isinstance(changed, dict):
        return canonical(changed)
    return seal_header(changed) if b"\n" in content.strip() else with_checksum(changed)


def forged_line(path, generator):
    """A line of the log with junk in it and a checksum that is right."""
    lines = [line for line in path.read_bytes().splitlines() if line]
    place = generator.randrange(len(lines))
    content = canonical(forge_data(json.loads(lines[place][9:]), generator))
    lines[place] = b"%08x %s" % (zlib.crc32(content), content)
    path.write_bytes(b"\n".join(lines) + b"\n")


# ---- inputs ----------------------------------------------------------------------------------------------------------
class Artefacts:
    """A sweep and an agent on disk, to be damaged and made whole again."""

    def __init__(self, home):
        self.home, self.folder, self.agent = home, home / "s", home / "agent"
        self.grid = home / "grid.toml"
        self.grid.write_text(GRID.format(seeds=2, steps=100, every=50))
        assert command("sweep", self.grid, "--out", self.folder, "--workers", "0")[0] == 0
        mad.MultiAdvisor(mad.make("three-fruits"), seed=0).learn(500, progress=False).save(self.agent)
        self.scratch = home / "scratch"
        with mock.patch.dict(os.environ, MULTIADVISOR_SAVE_SECONDS="0"):
            train_config(TRAIN, self.scratch, lambda fraction: None)
        self.copy = home / "copy"
        shutil.copytree(self.folder, self.copy)
        self.kept = {path: path.read_bytes() for top in (self.agent, self.scratch) for path in top.iterdir()}
        self.text = self.grid.read_bytes()

    def mend(self):
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)
        self.grid.write_bytes(self.text)
        for top in (self.agent, self.scratch):
            shutil.rmtree(top, ignore_errors=True)
            top.mkdir()
        for path, content in self.kept.items():
            path.write_bytes(content)

    def sealed(self):
        return [self.folder / "sweep.json", *sorted((self.folder / "results").iterdir())]


TRAIN = {
    "task": "three-fruits",
    "settings": {"seed": 1},
    "schedule": {"steps": 100, "eval_every": 50, "eval_episodes": 2},
}


def command(*arguments):
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = cli.main([str(argument) for argument in arguments])
    return code, out.getvalue(), error.getvalue()


def mutated_inputs(home, count, seed):
    """Grids, results, frozen grids, logs, checkpoints: each ends with 0 or 2, one line, no traceback."""
    generator, seen = random.Random(seed), Counter()
    artefacts = Artefacts(home)
    looks = [("status",), ("results",), ("results", "--format", "csv"), ("results", "--json")]
    for number in range(count):
        what = generator.choice(("grid", "grid", "sealed", "sealed junk", "log", "forged line", "agent", "scratch"))
        if what == "grid":
            artefacts.grid.write_bytes(mutate(artefacts.text, generator))
            line = ["sweep", artefacts.grid, "--out", "/proc/nowhere"]  # a grid that is fine gets as far as that
            code, _, error = command(*line)
            code = 0 if "cannot write '/proc/nowhere'" in error else code
            error = error if code else ""
        else:
            if what in ("sealed", "sealed junk"):
                path = generator.choice(artefacts.sealed())
                change = mutate if what == "sealed" else sealed_junk
                path.write_bytes(change(path.read_bytes(), generator))
            elif what == "log":
                path = artefacts.folder / "jobs.log"
                path.write_bytes(mutate(path.read_bytes(), generator))
            elif what == "forged line":
                forged_line(artefacts.folder / "jobs.log", generator)
            else:
                path = generator.choice(sorted((artefacts.agent if what == "agent" else artefacts.scratch).iterdir()))
                change = sealed_junk if path.suffix == ".json" and generator.random() < 0.5 else mutate
                path.write_bytes(change(path.read_bytes(), generator))
            if what == "agent":
                line = ["evaluate", artefacts.agent, "--episodes", "1"]
            elif what == "scratch":
                line = ["train_config"]
            elif generator.random() < 0.3:
                line = ["sweep", artefacts.grid, "--out", artefacts.folder, "--resume", "--workers", "0"]
            else:
                first, *rest = generator.choice(looks)
                line = ["sweep", first, artefacts.folder, *rest]
            if what == "scratch":  # a damaged checkpoint inside a run costs time, never the result
                code, error = 0, ""
                assert train_config(TRAIN, artefacts.scratch, lambda fraction: None)["steps"] == 100
            else:
                code, _, error = command(*line)
        assert code in (0, 2), (number, what, line, error)
        assert len(error.splitlines()) == (code == 2), (number, what, line, error)
        assert len(error) < 1000, (number, what, line, error)
        seen[f"{what}: exit {code}"] += 1
        if what != "grid":
            artefacts.mend()
    return seen


def bit_flips(home, count, seed):
    """Single bits of results, of the frozen grid and of checkpoints: every one is refused."""
    generator, seen = random.Random(seed), Counter()
    artefacts = Artefacts(home)
    paths = [*artefacts.sealed(), *(path for path in artefacts.kept if path.parent == artefacts.agent)]
    for _ in range(count):
        path = generator.choice(paths)
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, generator.randrange(8 * len(whole))))
        agent = path.parent == artefacts.agent
        line = ("evaluate", artefacts.agent, "--episodes", "1") if agent else ("sweep", "results", artefacts.folder)
        code, out, error = command(*line)
        assert (code, out, len(error.splitlines())) == (2, "", 1), (path, error)
        path.write_bytes(whole)
        seen[path.name if agent or path.name == "sweep.json" else "result"] += 1
    return seen


def main():
    """Everything in full."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for what, part, count in (
            ("forged checkpoints", forged_checkpoints, 2000),
            ("flipped bits, all refused", bit_flips, 1000),
            ("mutated inputs", mutated_inputs, 5000),
            ("kills", lambda home, count, seed: kill_storm(home, STORM, 20, count, seed), 50),
        ):
            start = time.monotonic()
            home = Path(folder) / part.__name__.strip("<>")
            home.mkdir()
            seen = dict(part(home, count, seed))
            print(f"{what} ({time.monotonic() - start:.0f} s): {seen}", flush=True)


if __name__ == "__main__":
    main()
