"""TensorBoard files, of finished runs and of one that is training, by tensorboardX. The only module with it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.core.optional_dependencies import lacking
from multiadvisor.errors import BadInput
from multiadvisor.runs.grid_sweep import RunResult, name_of
from multiadvisor.runs.logs import figures
from multiadvisor.storage.files import check_writable

_SUFFIX = ".multiadvisor"
"""How the files of a training end, so that a resumed one finds its own."""


def write_tensorboard(folder: Path, done: list[RunResult]) -> int:
    """A folder under `tensorboard/` for each run that has none yet; how many were written.

    The figures of every evaluation, and the advisors' returns by name: of every evaluation where the grid says
    `record = "every"`, else of the last.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise lacking("tensorboard", error) from None
    home, written = folder / "tensorboard", 0
    for item in done:
        words = re.sub(r"[^\w.,= -]", "_", f"{name_of(item.run.labels)}, seed {item.run.seed}")[:120]
        place = home / f"{words} {item.run.job.id[:8]}"
        if place.exists():
            continue
        try:
            home.mkdir(exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=home))
            try:
                with SummaryWriter(str(part), write_to_disk=True) as writer:
                    _write(writer, item.result)
                part.chmod(0o755)
                part.rename(place)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        except OSError as error:
            raise BadInput(f"cannot write {str(home)!r}: {error.strerror}") from None
        written += 1
    return written


def _write(writer: Any, result: dict[str, Any]) -> None:
    for number, evaluation in enumerate(result["evaluations"], 1):
        last = number == len(result["evaluations"])
        _put_all(writer, {**evaluation, "advisors": evaluation.get("advisors") or (result["advisors"] if last else {})})


def _put_all(writer: Any, evaluation: dict[str, Any]) -> None:
    """The figures of an evaluation, under their very names: `add_scalar` would make one curve of "a b" and "a_b"."""
    from tensorboardX.proto.summary_pb2 import Summary

    for name, value in figures(evaluation).items():
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
        writer.file_writer.add_summary(summary, evaluation["steps"], walltime=float(evaluation["steps"]))


class TensorBoardLog:
    """Every evaluation of a training, at its number of steps, as soon as it is there."""

    def __init__(self, folder: Path, evaluations: Sequence[dict[str, Any]], resume: bool) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise lacking("tensorboard", error) from None
        check_writable(folder)
        before = list(folder.glob(f"events.*{_SUFFIX}")) if folder.is_dir() else []
        if before and not resume:
            raise BadInput(f"{str(folder)!r} holds the log of a run already: name another folder, or add --resume")
        try:
            for file in before:  # all that it holds is in the evaluations, but for those that are made again
                file.unlink()
            self._writer = SummaryWriter(str(folder), filename_suffix=_SUFFIX, write_to_disk=True)
        except OSError as error:
            raise BadInput(f"cannot write {str(folder)!r}: {error.strerror}") from None
        for evaluation in evaluations:
            _put_all(self._writer, evaluation)
        self._writer.flush()

    def add(self, evaluation: dict[str, Any]) -> None:
        """The figures of an evaluation, at once."""
        _put_all(self._writer, evaluation)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
