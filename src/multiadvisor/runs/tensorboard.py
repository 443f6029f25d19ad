"""TensorBoard files by tensorboardX. The only module with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from multiadvisor.core.optional_dependencies import needed
from multiadvisor.errors import BadInput
from multiadvisor.runs.logs import Keep, figures
from multiadvisor.storage.files import check_writable, plainly

_SUFFIX = ".multiadvisor"
"""How the files of a training end, so that a resumed one finds its own."""


@contextmanager
def tensorboard_log(
    folder: Path, evaluations: Sequence[dict[str, Any]], resume: bool, begun: int = 0
) -> Iterator[Keep]:
    """Every evaluation of a training, at its number of steps, as soon as it is there.

    `begun`: what an agent that goes on had learned from; its files up to there stay.
    """
    with needed("tensorboard"):
        from tensorboardX import SummaryWriter
        from tensorboardX.proto.summary_pb2 import Summary
    check_writable(folder)
    before = list(folder.glob(f"events.*{_SUFFIX}")) if folder.is_dir() else []
    if before and not resume and not begun:
        raise BadInput(f"{str(folder)!r} holds the log of a run already: name another folder, or add --resume")
    with plainly(f"write {str(folder)!r}"):
        for file in [] if begun else before:  # what they hold is in the evaluations, or is made again
            file.unlink()
        writer = SummaryWriter(str(folder), filename_suffix=f".{begun}{_SUFFIX}", write_to_disk=True)

    def keep(evaluation: dict[str, Any]) -> None:
        step = evaluation["steps"]
        for name, value in figures(evaluation).items():  # `add_scalar` would make one curve of "a b" and "a_b"
            summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
            writer.file_writer.add_summary(summary, step, walltime=float(step))
        writer.flush()

    with closing(writer):
        for evaluation in evaluations:
            keep(evaluation)
        yield keep
