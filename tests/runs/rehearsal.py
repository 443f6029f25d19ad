"""A kind of job that does nothing of use, and ends in every way that a job can end."""

import os
import signal
import time

from multiadvisor.runs.jobs import Job, kind

_DIARY = "MULTIADVISOR_REHEARSAL_DIARY"  # a file to which every execution adds a line, for those who count them


@kind("rehearsal")
def rehearse(config, folder, tell):
    """Wait `seconds` in `steps`, then end as `then` says; `faults` limits that to so many times, kept in the folder."""
    number, steps, then = config["number"], config.get("steps", 1), config.get("then", "return")
    if (diary := os.environ.get(_DIARY)) is not None:
        with open(diary, "a", encoding="ascii") as file:
            file.write(f"{number} {os.getpid()}\n")
    for step in range(steps):
        time.sleep(config.get("seconds", 0.0) / steps)
        tell((step + 1) / steps)
    if _due(config.get("faults"), folder):
        _fault(then)
    return {"number": number, "square": number**2}


def rehearsals(count, **config):
    return [Job("rehearsal", {"number": k, **config}) for k in range(count)]


def executed(diary):
    """The numbers of the jobs that were executed, in order."""
    return [int(line.split()[0]) for line in diary.read_text().splitlines()] if diary.exists() else []


def _due(faults, folder):
    if faults is None:
        return True
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    earlier = len(list(folder.iterdir()))
    (folder / str(earlier)).touch()
    return earlier < faults


def _fault(how):
    if how == "raise":
        raise RuntimeError("as rehearsed")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(3)
    while how == "hang":
        time.sleep(1.0)
