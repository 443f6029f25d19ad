"""Evidence in, the report's files out: figures, episodes, results, claims, a page and its twin; the same bytes
always."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from multiadvisor.core.progress import Status
from multiadvisor.envs.builtin import make
from multiadvisor.errors import BadInput
from multiadvisor.runs.jobs import Job
from multiadvisor.storage.files import write_atomically
from multiadvisor.studies.claims import PARTLY, ClaimResult, counts, judge_all
from multiadvisor.studies.pac_boy_study import dqn_jobs
from multiadvisor.studies.page import Item, Page, Section, html, markdown
from multiadvisor.studies.parts import FULL_EPOCHS, Evidence, Part, Plan, many, parts, stretch, unique
from multiadvisor.studies.schemes import report_seeds
from multiadvisor.version import VERSION

PACKAGES = ("numpy", "numba", "matplotlib", "pillow", "jax", "optax", "equinox")
POSTER = "poster.png"
FEW = 5  # seeds: with fewer the page warns of its intervals


def versions() -> dict[str, str]:
    """What the results were computed with."""
    found = {"multiadvisor": VERSION, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def command(plan: Plan) -> str:
    """The command that makes this report again; where it is written to is no part of it."""
    words = ["multiadvisor", "reproduce", plan.what]
    words += ["--full"] if plan.full else []
    return " ".join([*words, "--seeds", str(plan.seeds), "--epochs", str(plan.epochs), "--rules", plan.rules])


def results_lines(evidence: Evidence, shown: list[Part]) -> bytes:
    """The raw results, one line for each job: experiment, kind, config, result."""
    first = {job: part.name for part in reversed(shown) for job in part.jobs(evidence.plan)}
    lines = []
    for job in unique(job for part in shown for job in part.jobs(evidence.plan)):
        entry = {"experiment": first[job], "kind": job.kind, "config": job.config}
        result = evidence.result(job)
        if job.kind == "train":  # which repeats its config
            result = {key: result[key] for key in ("evaluations", "advisors", "sha256")}
        lines.append(json.dumps({**entry, "result": result}, allow_nan=False))
    return ("\n".join(lines) + "\n").encode()


def claims_file(judged: list[ClaimResult]) -> bytes:
    """claims.json: a list with a row for each claim that could be judged."""
    rows = [one.as_dict() for one in judged if one.judgement is not None]
    return (json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _section(part: Part, evidence: Evidence, out: Path, tell: Status) -> Section:
    from multiadvisor.viz import plots, video

    items, task = [], make("pac-boy")
    for figure in part.figures(evidence):
        tell(f"the report: {figure.name}")
        svg, png = (b"", b"") if figure.draw is None else plots.both(figure.draw(), figure.name)
        if svg:
            write_atomically(out / "figures" / f"{figure.name}.svg", svg)
            write_atomically(out / "figures" / f"{figure.name}.png", png)
        items.append(Item(figure.name, figure.title, figure.text, svg.decode(), figure.table))
    episodes = []
    for one in part.videos(evidence):
        tell(f"the report: {one.name}")
        base = out / "videos" / one.name
        episodes.append(video.save_episode(task, one.trace, one.title, base))
        items.append(Item(one.name, one.title, one.text, gif=Path(f"{base}.gif").read_bytes()))
    if episodes:
        write_atomically(out / POSTER, video.poster(episodes))
    return Section(part.name, part.title, tuple(items))


def summary(judged: list[ClaimResult], plan: Plan) -> tuple[str, ...]:
    """The first words of the report."""
    found = counts(judged)
    total, left = sum(found.values()), sum(one.judgement is None for one in judged)
    words = ", ".join(f"{count} {verdict}" for verdict, count in found.items())
    own = plan.what == "beyond"
    whose = "that are not the paper's and were" if own else "of the paper that were"
    lines = [f"Of {total} claims {whose} put to the test here: {words}."]
    if left:
        lines.append(f"{many(left, 'more claim')} could not be judged here; the list says what each of them needs.")
    lines.append(
        f"Tabular settings: {many(plan.seeds, 'seed')} of {many(plan.epochs, 'epoch')} of {plan.transitions:,} "
        f"transitions, {many(plan.episodes, 'greedy episode')} after each. What is called final is the mean of "
        f"{stretch('last', plan.last, plan.epochs)}"
        + (f", for DQN-clipped of {stretch('last', plan.dqn_last, plan.dqn_epochs)}." if _deep(plan) else ".")
    )
    if plan.seeds < FEW:
        lines.append(f"{plan.seeds} seeds are few: intervals from fewer than {FEW} are too narrow to be trusted.")
    lines += _shortened(plan)
    lines.append("Intervals are 95% bootstrap intervals over seeds unless said otherwise; comparisons are paired by "
                 "seed. Verdicts and texts are computed from the results.")  # fmt: skip
    return tuple(lines)


def seeds_said(plan: Plan) -> str:
    """Which seeds were run."""
    first = report_seeds(plan)[0] if plan.what == "beyond" else 0
    return f"{first} to {first + plan.seeds - 1}; everything random follows from them"


def _deep(plan: Plan) -> bool:
    """DQN-clipped is part of the report."""
    return plan.what in ("all", "pac-boy", "videos") and bool(dqn_jobs(plan))


def _shortened(plan: Plan) -> list[str]:
    """What is not at full length, what that means, and how to have it at full length."""
    deep = _deep(plan)
    short = [f"tabular settings end after {plan.epochs} of {FULL_EPOCHS} epochs"] * (plan.epochs < FULL_EPOCHS)
    if plan.what == "beyond" and not plan.full:
        short.append("only some of the settings, noises and gammas were run, and nothing was searched for")
    if plan.what == "all" and not plan.full:
        readings = f"({plan.literal_seeds} read literally)"
        short.append(f"the value-function experiment has {many(plan.value_seeds, 'seed')} {readings}")
    if deep and (not plan.full or plan.dqn_epochs < FULL_EPOCHS):
        ends = f"ends after {plan.dqn_epochs} of {FULL_EPOCHS} epochs"
        short.append(f"DQN-clipped has {many(plan.dqn_seeds, 'seed')} and {ends}")
    if not short:
        return []
    ways = ["give --full"] * (not plan.full) + ["leave out --epochs"] * (plan.epochs < FULL_EPOCHS)
    lines = [f"Shortened: {'; '.join(short)}. For the full length {' and '.join(ways)}."]
    if plan.epochs < FULL_EPOCHS or (deep and plan.dqn_epochs < FULL_EPOCHS):
        lines.append(
            f'What is said about the end of learning is "{PARTLY}" reproduced at most by runs that end sooner.'
        )
    return lines


def build(evidence: Evidence, out: Path) -> list[ClaimResult]:
    """Write the report; the claims as judged."""
    plan = evidence.plan
    shown = parts(plan.what)
    judged = judge_all(evidence)
    with Status() as tell:
        sections = tuple(_section(part, evidence, out, tell) for part in shown)
    known = versions()
    facts = (
        ("command", command(plan)), ("plan", json.dumps(asdict(plan))),
        ("versions", ", ".join(f"{name} {number}" for name, number in known.items())),
        ("platform", f"{platform.system()} {platform.machine()}"),
        ("seeds", seeds_said(plan)),
        ("raw results", "results.jsonl, a line for each run; claims.json, a row for each claim"),
        ("machine and times", "machine.json, and runs/ with the journal of the runs: the only files that differ "
         "from one invocation to the next"),
    )  # fmt: skip
    page = Page("Multi-Advisor Reinforcement Learning, checked", summary(judged, plan), tuple(judged), sections, facts)
    write_atomically(out / "results.jsonl", results_lines(evidence, shown))
    write_atomically(out / "claims.json", claims_file(judged))
    write_atomically(out / "report.md", markdown(page).encode())
    write_atomically(out / "report.html", html(page).encode())
    return judged


def read_report(folder: Path) -> Evidence:
    """The evidence of a finished report, from its own files."""
    try:
        plan = Plan(**json.loads((folder / "report.json").read_bytes())["plan"])
        lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
        return Evidence(plan, {Job(line["kind"], line["config"]).id: line["result"] for line in lines})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{str(folder)!r} holds no finished report: {error}") from None
