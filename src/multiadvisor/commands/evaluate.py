"""`multiadvisor evaluate`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.agent import Evaluation, MultiAdvisor, load
from multiadvisor.analysis.episode_report import report_on, table_of
from multiadvisor.analysis.episodes import play, record
from multiadvisor.analysis.moments import moments
from multiadvisor.analysis.trace_file import check_place
from multiadvisor.commands.parsing import Parser, add_named_task, named_task, number, parse, show, table
from multiadvisor.core.optional_dependencies import require
from multiadvisor.core.rng import evaluation_seed
from multiadvisor.diagnosis.kept import answered, answers_for
from multiadvisor.errors import BadInput
from multiadvisor.explorer.curves import weights_text
from multiadvisor.learners.gvf.gvf_spec import mark_of
from multiadvisor.runs.pictures import with_pictures
from multiadvisor.runs.trace import record_evaluation
from multiadvisor.settings import whole_number
from multiadvisor.storage.files import check_writable, write_atomically

_AROUND = 6  # steps before and after a moment
FILM = 15  # steps a second, where wishes are drawn in
_FILMED = 1 << 30  # bytes of pictures: a film keeps all of them
_WIDE = 5  # so many advisors have columns in the table of several runs


def parser() -> Parser:
    """The flags."""
    flags = Parser(
        "evaluate",
        "Let a trained agent play greedily, without learning; means with 95% bootstrap intervals over the episodes.\n"
        "With --trace the episodes are kept step by step, to be viewed and explained later. With --report: which\n"
        "advisor drives the agent, whose values are right, and where it gets stuck; several runs side by side.",
        "multiadvisor evaluate runs/a --episodes 80 --json\n"
        "  multiadvisor evaluate runs/a --episodes 3 --trace episodes.trace\n"
        "  multiadvisor evaluate runs/a runs/b --report --csv agents.csv",
    )
    flags.add_argument("run", type=Path, metavar="RUN", nargs="+", help="the folder of a saved run, or several")
    flags.flag("--episodes", int, "episodes to play", 10)
    flags.flag("--seed", int, "seed of the episodes", 0)
    flags.flag("--trace", Path, "record the episodes, step by step, in this file")
    flags.flag("--frames", bool, "with --trace: a picture of every step, 10 MB at most")
    flags.flag("--video", Path, "an episode as .mp4 or .gif, or with --moments the scenes around them (needs "
               "multiadvisor[video])")  # fmt: skip
    flags.flag("--report", bool, "each advisor's influence and calibration, and where it is stuck")
    flags.flag("--moments", int, "the N most decisive steps")
    flags.add_argument(
        "--branches", action=argparse.BooleanOptionalAction, default=True,
        help="with --moments of networks, where states are restored: try these steps out, as explain does "
        "(--no-branches leaves it out)",
    )  # fmt: skip
    flags.flag("--csv", Path, "with --report: a row for each run in this file")
    add_named_task(flags)
    return flags


def run(arguments: Sequence[str]) -> int:
    """Evaluate saved agents."""
    given = parse(parser(), arguments)
    _check(given)
    seen = [_evaluated(given, folder) for folder in given.run]
    if given.csv is not None:
        write_atomically(given.csv, table_of([result for result, _ in seen]).encode())
    if len(seen) == 1:
        show(seen[0][0], given.json, seen[0][1])
        return 0
    results = [result for result, _ in seen]
    texts = "\n\n".join(f"{result['run']}\n{text}" for result, text in seen)
    show({"runs": results}, given.json, f"{texts}\n\n{_side_by_side(results)}")
    return 0


def _check(given: Any) -> None:
    """Refuse what does not go together, and files that cannot be written, before any episode is played."""
    if len(given.run) > 1 and given.trace is not None:
        raise BadInput("--trace keeps the episodes of one run: name one")
    if given.frames and given.trace is None:
        raise BadInput("--frames puts pictures into the file of --trace: name one")
    if given.video is not None:
        if len(given.run) > 1:
            raise BadInput("--video shows the episodes of one run: name one")
        if given.video.suffix.lower() not in (".mp4", ".gif") or given.video.is_dir():
            raise BadInput(f"{str(given.video)!r} is not the name of a video: end it in .mp4 or .gif")
        require("video")
        check_writable(given.video.parent)
    if given.csv is not None:
        if not given.report:
            raise BadInput("--csv is a table of reports: add --report")
        if given.csv.is_dir():
            raise BadInput(f"cannot write {str(given.csv)!r}: it is a folder, name a file")
        check_writable(given.csv.parent)
    if given.moments is not None:
        whole_number("moments", given.moments, 1)
    if given.trace is not None:
        check_place(given.trace)


def _evaluated(given: Any, folder: Path) -> tuple[dict[str, Any], str]:
    """One run: the result, and the same as text."""
    agent = load(folder, named_task(given, folder))
    looked = None
    if given.report or given.moments is not None:
        looked = play(agent, given.episodes, given.seed)
    if given.trace is not None:
        seen, traced = record_evaluation(agent, given.episodes, given.seed)
        if given.frames:
            traced = with_pictures(traced, agent.task)
        traced.save(given.trace)
    else:
        seen = Evaluation.of(agent.task, looked.played) if looked else agent.evaluate(given.episodes, seeds=given.seed)
    result = _result(folder, agent, seen, given.report)
    text = [str(seen)]
    if looked is not None and given.report:
        found = report_on(looked)
        result["report"] = found.as_dict()
        text.append(str(found))
    else:
        text.append(_returns(seen))
    if looked is not None and given.moments is not None:
        picked = moments(looked, given.moments)
        result["moments"] = [one.as_dict() for one in picked]
        text += ["the most decisive steps:", *(f"  {one}" for one in picked), *filter(None, [agent.settings.caveat])]
        if given.branches and agent.settings.caveat:
            text.append(_tried_out(folder, agent, looked, picked, result["moments"]))
    if given.trace is not None:
        result["trace"] = str(given.trace)
        text.append(f"trace in {given.trace}")
        if given.frames:
            result["frames"] = traced.header["pictures"]
            text.append(f"with {result['frames']['different']} pictures, {result['frames']['bytes'] / 1e6:.1f} MB")
    if given.video is not None:
        text.append(_film(agent, given, result.get("moments")))
        result["video"] = str(given.video)
    return result, "\n".join(text)


def _tried_out(
    folder: Path, agent: MultiAdvisor, looked: Any, picked: Sequence[Any], told: list[dict[str, Any]]
) -> str:
    """What branches in the environment show of these steps, in words; added to what is `told` of each."""
    lines = []
    try:
        asked = answers_for(folder, agent, slow=False)
        for one, data in zip(picked, told, strict=True):
            begun = evaluation_seed(looked.header["draws"], looked.header["seed"], one.episode)
            actions = looked.actions_of(one.episode)[: one.step + 1]
            found = answered(asked, agent, begun, actions, looked.seen(one.episode, one.step))
            data["branches"] = found.as_dict()
            lines.append(f"  episode {one.episode}, step {one.step}: {found.sentence}")
    except BadInput as error:
        return f"(not tried out: {error})"
    return "\n".join([*lines, f"({asked})"])


def _film(agent: MultiAdvisor, given: Any, picked: list[dict[str, Any]] | None) -> str:
    """The first episode as a video, or the best where wishes are drawn in; or some steps around each moment."""
    from multiadvisor.viz.video import SPEED, save_video, trace_frames

    marked = mark_of(agent.task) is not None
    trace = record(agent, given.episodes if picked or marked else 1, given.seed)
    trace = with_pictures(trace, agent.task, _FILMED)
    best, speed = int(trace.score.argmax()), FILM if marked else SPEED
    if picked is None:
        save_video(trace_frames(trace, best), given.video, speed)
        return f"video in {given.video}" + (f", of episode {best}, {trace.score[best]:,.0f} points" if marked else "")
    scenes = []
    for one in picked:
        last = int(trace.length[one["episode"]])
        near = range(max(one["step"] - _AROUND, 0), min(one["step"] + _AROUND, last) + 1)
        scenes.append(trace_frames(trace, one["episode"], near, f"episode {one['episode']}, "))
    save_video((picture for scene in scenes for picture in scene), given.video, speed)
    return f"video in {given.video}"


def _result(folder: Path, agent: MultiAdvisor, seen: Evaluation, full: bool) -> dict[str, Any]:
    settings = agent.settings
    more: dict[str, Any] = {"aggregation": settings.aggregation, "gamma": settings.gamma} if full else {}
    if agent.task.options.get("weights"):
        more["weights"] = agent.task.options["weights"]
    return {"run": str(folder), "task": agent.task.name, "planning": settings.planning, **more, **seen.as_dict()}


def _returns(seen: Evaluation) -> str:
    best = sorted(seen.advisors.items(), key=lambda item: -abs(item[1]))
    shown = "\n".join(f"  {name:24} {value:8.2f}" for name, value in best[:8])
    more = f"\n  and {len(best) - 8} more (--json has all)" if len(best) > 8 else ""
    return f"mean return of the advisors, largest magnitude first:\n{shown}{more}"


def _side_by_side(results: list[dict[str, Any]]) -> str:
    """Runs by row; each advisor's return and influence by column, where they are few."""
    head = ["run", "score", "length", "terminated"]
    rows = [[str(one["run"]), *(number(one[name]) for name in ("reward", *head[2:]))] for one in results]
    if any("weights" in one for one in results):  # scores are all by the weights that the task came with
        head += ["own score", "weights"]
        for row, one in zip(rows, results, strict=True):
            row += [number(one["score"]), weights_text(one.get("weights", {}))]
    if all("report" in one for one in results):
        names = list(dict.fromkeys(name for one in results for name in one["report"]["advisors"]))
        head.append("stuck")
        for row, one in zip(rows, results, strict=True):
            row.append(number(len(one["report"]["stuck"]) / one["episodes"]))
            for name in names if len(names) <= _WIDE else ():
                said = one["report"]["advisors"].get(name)
                row += ["", "", ""] if said is None else _cells(said)
        if len(names) <= _WIDE:
            head += [word for name in names for word in (name, "drives", "bias")]
    caveats = {one["report"]["caveat"]: None for one in results if one.get("report", {}).get("caveat")}
    return "\n".join([table(head, rows), *caveats])


def _cells(said: dict[str, Any]) -> list[str]:
    known, drives = said["calibration"], said["influence"]
    share = drives.get("push", drives["changed"])
    bias = None if known is None else known["bias"]
    return [number(said["return"]), "" if share is None else f"{share:.0%}", number(bias)]
