"""`multiadvisor sweep`, with `status`, `results` and `plot`."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.commands.parsing import Parser, number, parse, show, table
from multiadvisor.core.optional_dependencies import needed, require
from multiadvisor.core.plugins import IMPORTED
from multiadvisor.errors import BadInput, unknown
from multiadvisor.runs.driver import describe_failures
from multiadvisor.runs.engines.engine import ENGINES, Crew, engine_class
from multiadvisor.runs.grid_sweep import (
    figure_of,
    finished,
    groups,
    metrics_of,
    read_frozen,
    run_sweep,
    status,
    summary,
    tidy,
    write_tensorboard,
)
from multiadvisor.runs.logs import MEASURES
from multiadvisor.runs.search import search
from multiadvisor.runs.sweep_grid import read_grid
from multiadvisor.settings import whole_number
from multiadvisor.storage.files import check_writable, write_atomically

FORMATS = ("table", "json", "csv", "parquet")


def parser() -> Parser:
    """The flags of the sweep itself."""
    flags = Parser(
        "sweep",
        "Run a grid of training runs, described in one TOML file: lists are axes, single values are fixed.\n"
        "Ctrl-C, a crash or a power cut lose nothing that is finished: the same command with --resume goes on, and\n"
        "runs only what is missing. With more seeds or values in the file, --resume runs what is new.\n"
        "  multiadvisor sweep status FOLDER    how far it is, what failed and why\n"
        "  multiadvisor sweep results FOLDER   as a table, JSON, CSV or Parquet\n"
        "  multiadvisor sweep plot FOLDER      learning curves with 95% bootstrap bands",
        "multiadvisor sweep grid.toml --workers 8 --out sweeps/first",
    )
    flags.add_argument("file", type=Path, metavar="FILE", help="the grid")
    flags.flag("--out", Path, "output folder (default sweeps/NAME of the file)", metavar="FOLDER")
    flags.flag("--workers", int, "processes (default: one per core)")
    flags.flag("--engine", str, f"what executes the runs: {', '.join(ENGINES)}", "local")
    flags.flag("--address", str, "ray: the cluster's address (default RAY_ADDRESS, else local)")
    flags.flag("--resume", bool, "continue the sweep in the folder, or extend it")
    flags.flag("--lease", float, "seconds of silence after which a run is hung (default 600)", metavar="SECONDS")
    flags.add_argument(
        "--search", choices=("optuna",), metavar="STR", help="optuna: look for the best values in the grid's ranges"
    )
    flags.flag("--trials", int, "of a search (default 32)")
    flags.flag("--search-seed", int, "of a search (default 0)")
    flags.flag("--tensorboard", bool, "also write TensorBoard files of every run")
    return flags


def run(arguments: Sequence[str]) -> int:
    """Start or resume a sweep, or look at one."""
    if arguments and arguments[0] in LOOKS:
        return LOOKS[arguments[0]][1](arguments[1:])
    if len(arguments) > 1 and "-" not in (arguments[0][:1], arguments[1][:1]) and not Path(arguments[0]).exists():
        raise unknown("part of sweep", arguments[0], LOOKS)
    given = parse(parser(), arguments)

    crew = Crew(given.workers, given.engine, given.address, given.lease)
    engine_class(crew)
    engine = ENGINES[given.engine]
    if engine.cluster and IMPORTED:
        raise BadInput("--import is for workers on this machine, a cluster does not have the file: leave --engine out")
    if given.address is not None and not engine.cluster:
        raise BadInput("--address is a Ray cluster's: add --engine ray, or leave it out")
    for name, least in (("workers", 0), ("trials", 1), ("search_seed", 0)):
        if getattr(given, name) is not None:
            whole_number(name, getattr(given, name), least)
    for name in ("trials", "search_seed"):
        if given.search is None and getattr(given, name) is not None:
            raise BadInput(f"--{name.replace('_', '-')} is a search's: add --search optuna, or leave it out")
    if given.lease is not None and not 1 <= given.lease < 1e9:
        raise BadInput(f"lease is {given.lease}: give a number of seconds, 1 or more")
    wanted = {"tensorboard": given.tensorboard, "search": given.search is not None, engine.extra: engine.extra}
    require(*(extra for extra, asked in wanted.items() if asked))
    grid = read_grid(given.file)
    folder = given.out or Path("sweeps") / given.file.stem
    try:
        if given.search is not None:
            return _search(given, folder, grid, crew)
        results = run_sweep(folder, grid, crew, resume=given.resume)
    except KeyboardInterrupt:
        print(
            f"multiadvisor sweep: interrupted; finished runs are in {folder}, continue with --resume", file=sys.stderr
        )
        return 130
    done = finished(folder)
    rows = summary(done)
    found = {"folder": str(folder), "runs": len(results) + len(results.failed), "done": len(results),
             "failed": results.failed, "table": rows}  # fmt: skip
    words = f"{len(results)} runs in {folder}" + _tensorboard(given, folder)
    show(found, given.json, f"{_table(rows)}\n{words}" if rows else words)
    if results.failed:
        print(f"multiadvisor sweep: {describe_failures(results)}", file=sys.stderr)
    return 1 if results.failed else 0


def _tensorboard(given: argparse.Namespace, folder: Path) -> str:
    """Write the files if asked to; what to say of it."""
    if not given.tensorboard:
        return ""

    write_tensorboard(folder, finished(folder))
    return f"; TensorBoard files in {folder / 'tensorboard'}"


def _search(given: argparse.Namespace, folder: Path, grid: Any, crew: Any) -> int:
    found = search(folder, grid, crew, trials=given.trials or 32, seed=given.search_seed or 0, resume=given.resume)
    names = [name for name in found["trials"][0] if name not in ("trial", "score")]
    ranked = sorted(found["trials"], key=lambda row: -1e300 if row["score"] is None else row["score"], reverse=True)
    body = [[str(row["trial"]), *(f"{v:.4g}" if isinstance(v, float) else str(v) for v in map(row.get, names)),
             number(row["score"])] for row in ranked[:10]]  # fmt: skip
    words = f"the best of {len(ranked)} trials first; all of them in {folder}" + _tensorboard(given, folder)
    show(found, given.json, table(["trial", *names, "score"], body) + f"\n{words}")
    if found["failed"]:
        print(f"multiadvisor sweep: {found['failed']} trials failed, see `sweep status {folder}`", file=sys.stderr)
    return 1 if found["failed"] else 0


def _table(rows: list[dict[str, Any]]) -> str:
    """The rows of a summary: what differs, the score with its interval, the other measures, the tasks' metrics."""
    found = ("seeds", "score", "score_interval", "length", "terminated", "metrics")
    labels = [name for name in rows[0] if name not in found]
    metrics = list(dict.fromkeys(name for row in rows for name in row["metrics"]))
    body = []
    for row in rows:
        span = "" if row["score_interval"] is None else "[{:.2f}, {:.2f}]".format(*row["score_interval"])
        numbers = [number(row["score"]), span, number(row["length"]), number(row["terminated"])]
        numbers += [number(row["metrics"].get(name)) for name in metrics]
        body.append([*(str(row.get(name, "")) for name in labels), str(row["seeds"]), *numbers])
    return table([*labels, "seeds", "score", "95% interval", "length", "terminated", *metrics], body)


def _of_a_folder(flags: Parser) -> Parser:
    flags.add_argument("folder", type=Path, metavar="FOLDER", help="a sweep's folder")
    return flags


def _status_parser() -> Parser:
    flags = Parser("sweep status", "How far a sweep is, while it runs or afterwards.", "multiadvisor sweep status s")
    return _of_a_folder(flags)


def _status(arguments: Sequence[str]) -> int:
    given = parse(_status_parser(), arguments)

    found = status(given.folder)
    states = ", ".join(f"{found[state]} {state}" for state in ("done", "running", "waiting", "failed"))
    lines = [f"{found['runs']} runs: {states}"]
    lines.append(f"driven by {found['driver']}" if found["driver"] else "no driver: continue with --resume")
    if found["driver"] is None and found["done"] == found["runs"]:
        lines[-1] = "complete"
    if found["done"]:
        lines.append(f"{found['seconds'] / found['done']:.2f} s of work in a run")
    skip = ("id", "fraction", "tries", "error")
    for row in found["now"]:
        words = ", ".join(f"{k} {v}" for k, v in row.items() if k not in skip)
        lines.append(f"  {row['id']}  {row['fraction']:4.0%}  {words}")
    for row in found["failures"]:
        words = ", ".join(f"{k} {v}" for k, v in row.items() if k not in skip)
        lines.append(f"  {row['id']}  failed after {row['tries']} tries: {words}")
        lines += [f"      {line}" for line in row["error"].splitlines()[-6:]]
    show(found, given.json, "\n".join(lines))
    return 0


def _results_parser() -> Parser:
    flags = Parser(
        "sweep results",
        "What came out so far. The table and JSON have one row for each combination, over its seeds (means of the\n"
        "last 10 evaluations, 95% bootstrap interval); JSON has every run too. CSV and Parquet have one row for each\n"
        "evaluation of each run.",
        "multiadvisor sweep results sweeps/first --format parquet --out curves.parquet",
    )
    flags.add_argument(
        "--format", default="table", choices=FORMATS, metavar="STR", help="table (default), json, csv or parquet"
    )
    flags.flag("--json", bool, "the same as --format json")
    flags.flag("--out", Path, "output file; required for parquet")
    return _of_a_folder(flags)


def _results(arguments: Sequence[str]) -> int:
    given = parse(_results_parser(), arguments)

    form = "json" if given.json else given.format
    if form == "parquet" and given.out is None:
        raise BadInput("Parquet is not text: name a file with --out FILE")
    if form == "parquet":
        require("parquet")
    if given.out is not None:
        check_writable(given.out.parent)
    done = finished(given.folder)
    if form == "parquet":
        content = _parquet(tidy(done))
    elif form == "csv":
        columns, text = tidy(done), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        content = text.getvalue().encode()
    elif form == "json":
        import json

        runs = [{"id": item.run.job.id, **item.run.labels, "seed": item.run.seed, "seconds": item.seconds,
                 "result": item.result} for item in done]  # fmt: skip
        content = json.dumps({"table": summary(done), "runs": runs}, allow_nan=False).encode() + b"\n"
    else:
        content = (_table(summary(done)) if done else "no run is done yet").encode() + b"\n"
    if given.out is None:
        sys.stdout.write(content.decode())
    else:
        write_atomically(given.out, content)
        print(given.out)
    return 0


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    with needed("parquet"):
        import pyarrow
        import pyarrow.parquet
    mixed = {name: len({type(value) for value in column if value is not None}) > 1 for name, column in columns.items()}
    plain = {
        name: [None if value is None else str(value) for value in column] if mixed[name] else column
        for name, column in columns.items()
    }
    content = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(plain), content)
    return content.getvalue()


def _plot_parser() -> Parser:
    flags = Parser(
        "sweep plot",
        "Learning curves: the mean over seeds with a 95% bootstrap band, one curve for each combination. PNG and SVG.",
        "multiadvisor sweep plot sweeps/first --out curves.png",
    )
    flags.add_argument("--out", type=Path, required=True, metavar="FILE", help="output file, as .png and .svg")
    flags.flag("--figure", str, "score, length, terminated, or one of the task's metrics", "score")
    return _of_a_folder(flags)


def _plot(arguments: Sequence[str]) -> int:
    given = parse(_plot_parser(), arguments)
    require("plots")
    from multiadvisor.viz import plots

    plots.check_place(given.out)
    done = finished(given.folder)
    if given.figure not in (known := (*MEASURES, *metrics_of(done))):
        raise unknown("figure", given.figure, known)
    curves = {
        name: [[(one["steps"], figure_of(one, given.figure)) for one in item.result["evaluations"]] for item in items]
        for name, items in groups(done).items()
    }
    curves = {name: runs for name, runs in curves.items() if all(value is not None for run in runs for _, value in run)}
    if not curves:
        raise BadInput(f"nothing to draw in {str(given.folder)!r}: no finished run has {given.figure!r}")
    title = read_frozen(given.folder).grid.title or given.folder.name
    path = plots.save(plots.one_axis(plots.sweep_curves, curves, given.figure, title), given.out)
    show({"figure": str(path), "curves": list(curves)}, given.json, str(path))
    return 0


LOOKS = {"status": (_status_parser, _status), "results": (_results_parser, _results), "plot": (_plot_parser, _plot)}
"""Looking at a sweep: the flags of each, and what it does."""
