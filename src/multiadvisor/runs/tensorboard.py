"""TensorBoard files by tensorboardX. The only module with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.core.optional_dependencies import needed
from multiadvisor.errors import BadInput
from multiadvisor.runs.logs import Progress, figures
from multiadvisor.storage.files import check_writable, plainly

_SUFFIX = ".multiadvisor"
"""How the files of a training end, so that a resumed one finds its own."""


def _put_all(writer: Any, evaluation: dict[str, Any]) -> None:
    """The figures of an evaluation, under their very names: `add_scalar` would make one curve of "a b" and "a_b"."""
    from tensorboardX.proto.summary_pb2 import Summary

    for name, value in figures(evaluation).items():
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
        writer.file_writer.add_summary(summary, evaluation["steps"], walltime=float(evaluation["steps"]))


class TensorBoardLog:
    """Every evaluation of a training, at its number of steps, as soon as it is there."""

    def __init__(self, folder: Path, evaluations: Sequence[dict[str, Any]], resume: bool, begun: int = 0) -> None:
        """`begun`: what an agent that goes on had learned from; its files up to there stay."""
        with needed("tensorboard"):
            from tensorboardX import SummaryWriter
        check_writable(folder)
        before = list(folder.glob(f"events.*{_SUFFIX}")) if folder.is_dir() else []
        if before and not resume and not begun:
            raise BadInput(f"{str(folder)!r} holds the log of a run already: name another folder, or add --resume")
        with plainly(f"write {str(folder)!r}"):
            for file in [] if begun else before:  # what they hold is in the evaluations, or is made again
                file.unlink()
            self._writer = SummaryWriter(str(folder), filename_suffix=f".{begun}{_SUFFIX}", write_to_disk=True)
        for evaluation in evaluations:
            _put_all(self._writer, evaluation)
        self._writer.flush()

    def __call__(self, now: Progress) -> None:
        """The figures of an evaluation, at once."""
        if now.evaluation is not None:
            _put_all(self._writer, now.evaluation)
            self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
