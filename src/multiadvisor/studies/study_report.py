"""Evidence in, a report's files out: figures, episodes, results, claims, a page and its twin; the same bytes always."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from multiadvisor.core.progress import Status
from multiadvisor.errors import BadInput
from multiadvisor.runs.jobs import Job
from multiadvisor.storage.files import write_atomically
from multiadvisor.studies.claims import PARTLY, JudgedClaim, counts, judge_all, verdict
from multiadvisor.studies.page import Page, Section, html, markdown
from multiadvisor.studies.paper.dqn_clipped import ON_FEATURES, SHIPPED, shipped
from multiadvisor.studies.study import (
    ALL,
    FULL_EPOCHS,
    Evidence,
    Plan,
    Study,
    chosen,
    epochs_of_job,
    many,
    stretch,
    unique,
)
from multiadvisor.version import VERSION

MARK = "report.json"
PACKAGES = ("numpy", "numba", "matplotlib", "pillow", "jax", "optax")
TITLE = "Multi-Advisor Reinforcement Learning, checked"
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


def command(study: Study, plan: Plan) -> str:
    """The command that makes this report again; where it is written to is no part of it."""
    what = study.name if study.literature else plan.what
    words = ["multiadvisor", "reproduce", what, *["--full"] * plan.full, "--seeds", str(plan.seeds)]
    for flag in ("epochs", "rules", "first_seed", "reading"):
        if flag in study.flags and getattr(plan, flag) != "":
            words += [f"--{flag.replace('_', '-')}", str(getattr(plan, flag))]
    return " ".join(words)


# ---- files -----------------------------------------------------------------------------------------------------------
def results_lines(evidence: Evidence, studies: Sequence[Study]) -> bytes:
    """The raw results, one line for each job: study, kind, config, result."""
    lists = {study.name: study.jobs(evidence.plan) for study in studies}
    first = {job: name for name in reversed(lists) for job in lists[name]}
    lines = []
    for job in unique(job for jobs in lists.values() for job in jobs if job.id in evidence.results):
        result = evidence.result(job)
        if job.kind == "train":  # which repeats its config
            result = {key: result[key] for key in ("evaluations", "advisors", "sha256")}
        entry = {"experiment": first[job], "kind": job.kind, "config": job.config, "result": result}
        lines.append(json.dumps(entry, allow_nan=False) + "\n")
    return "".join(lines).encode()


def read_report(folder: Path) -> Evidence:
    """The evidence of a finished report, from its own files."""
    try:
        plan = Plan(**json.loads((folder / MARK).read_bytes())["plan"])
        lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
        return Evidence(plan, {Job(line["kind"], line["config"]).id: line["result"] for line in lines})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{str(folder)!r} holds no finished report: {error}") from None


def _section(study: Study, evidence: Evidence, out: Path, tell: Status) -> Section:
    from multiadvisor.viz import plots

    drawn, episodes = [], []
    for figure in study.figures(evidence):
        tell(f"the report: {figure.name}")
        if figure.panels:
            svg, png = plots.both(plots.several(*figure.panels, size=figure.size, across=figure.across), figure.name)
            write_atomically(out / "figures" / f"{figure.name}.svg", svg)
            write_atomically(out / "figures" / f"{figure.name}.png", png)
            figure = replace(figure, svg=svg.decode())
        if figure.episode is not None:
            from multiadvisor.envs.registry import make
            from multiadvisor.viz import video

            base = out / "videos" / figure.name
            episodes.append(video.save_episode(make("pac-boy"), figure.episode, figure.title, base))
            figure = replace(figure, gif=Path(f"{base}.gif").read_bytes())
        drawn.append(figure)
    if episodes:
        write_atomically(out / "poster.png", video.poster(episodes))
    return study, drawn


# ---- words -----------------------------------------------------------------------------------------------------------
def paper_summary(findings: Sequence[JudgedClaim], plan: Plan, studies: Sequence[Study]) -> list[str]:
    """The first words of a report on the paper, or on what is beyond it."""
    found, jobs = counts(findings), unique(job for study in studies for job in study.jobs(plan))
    jobs = [job for job in jobs if job.config.get("file") != ON_FEATURES.name]  # whose length no flag changes
    left = sum(one.judgement is None for one in findings)
    words = ", ".join(f"{count} {word}" for word, count in found.items())
    whose = "of the paper that were" if studies[0].report == ALL else "that are not the paper's and were"
    lines = [f"Of {sum(found.values())} claims {whose} put to the test here: {words}."]
    if left:
        lines.append(f"{many(left, 'more claim')} could not be judged here; the list says what each of them needs.")
    if plan.what == "value-function":
        return lines
    lines.append(
        f"Tabular settings: {many(plan.seeds, 'seed')} of {many(plan.epochs, 'epoch')} of {plan.transitions:,} "
        f"transitions, {many(plan.episodes, 'greedy episode')} after each. What is called final is the mean of "
        f"{stretch('last', plan.last, plan.epochs)}."
    )
    if any(job.config.get("file") == SHIPPED.name for job in jobs):
        few = " So few seeds have intervals that are too narrow." if len(shipped().runs) < FEW else ""
        lines.append(f"DQN-clipped is not trained here: {shipped().origin}. With --full it is trained again.{few}")
    if plan.seeds < FEW:
        lines.append(f"{plan.seeds} seeds are few: intervals from fewer than {FEW} are too narrow to be trusted.")
    lines += _shortened(plan, jobs, studies[0].shortened)
    lines.append("Intervals are 95% bootstrap intervals over seeds unless said otherwise; comparisons are paired by "
                 "seed. Verdicts and texts are computed from the results.")  # fmt: skip
    return lines


def _shortened(plan: Plan, jobs: Sequence[Job], besides: str) -> list[str]:
    """What ends before the paper's runs did or is left out, what that means, and how to have it at full length."""
    found = Counter(length for job in jobs if (length := epochs_of_job(job)) is not None)
    lengths = sorted((had, full) for had, full in found if had < full)
    short = [f"{many(found[length], 'job')} with {length[0]} of {length[1]} epochs" for length in lengths]
    short += [besides] * bool(besides and not plan.full)
    if not short:
        return []
    ways = ["give --full"] * (not plan.full) + ["leave out --epochs"] * (plan.epochs < FULL_EPOCHS)
    sooner = f' What is said about the end of learning is "{PARTLY}" reproduced at most by runs that end sooner.'
    return [f"Shortened: {'; '.join(short)}. For the full length {' and '.join(ways)}.{sooner * bool(lengths)}"]


def system_summary(study: Study, findings: Sequence[JudgedClaim], plan: Plan) -> list[str]:
    """The first words of the page of a system."""
    assert study.literature is not None
    of = study.literature
    return [
        f"{of.source}. {of.behaviour}",
        f"Advisor: {of.advisor}. State view: {of.view}. Planning: {of.planning}. Aggregator: {of.aggregator}. "
        f"Guarantee: {of.guarantee}.",
        f"{verdict(findings)[0].upper()}{verdict(findings)[1:]}, {many(plan.seeds, 'seed')}.",
    ]


# ---- the whole -------------------------------------------------------------------------------------------------------
class StudyReport(NamedTuple):
    """A report that was written."""

    page: Path
    findings: list[JudgedClaim]
    summary: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    """The first of the page."""
    data: dict[str, Any]


def build(studies: Sequence[Study], evidence: Evidence, out: Path) -> StudyReport:
    """Write the report of these studies: one page for all of them."""
    plan, first = evidence.plan, studies[0]
    findings = judge_all(evidence) if first.report == ALL else first.findings(evidence)
    papers = first.report == ALL or first.papers
    if first.literature:
        summary = system_summary(first, findings, plan)
    else:
        summary = [
            *(paper_summary(findings, plan, studies) if papers else ()),
            *(first.summary(evidence) * (len(studies) == 1)),
        ]
    with Status() as tell:
        sections = tuple(_section(study, evidence, out, tell) for study in studies)
    chosen_here = first.literature.choices if first.literature else ()
    facts = (
        *(("chosen here", choice) for choice in chosen_here),
        ("command", command(first, plan)), ("plan", json.dumps(asdict(plan))),
        ("versions", ", ".join(f"{name} {number}" for name, number in versions().items())),
        ("platform", f"{platform.system()} {platform.machine()}"),
        ("seeds", f"{plan.each[0]} to {plan.each[-1]}; everything random follows from them"),
        ("raw results", "results.jsonl, a line for each run; claims.json, a row for each claim"),
        ("machine and times", "machine.json, and runs/ with the journal of the runs: the only files that differ "
         "from one invocation to the next"),
    )  # fmt: skip
    page = Page(TITLE if papers else first.title, tuple(summary), tuple(findings), sections, facts, papers)
    rows = [one.as_dict() for one in findings if one.judgement is not None]
    write_atomically(out / "results.jsonl", results_lines(evidence, studies))
    claims = json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(out / "claims.json", claims.encode())
    write_atomically(out / "report.md", markdown(page).encode())
    write_atomically(out / "report.html", html(page).encode())
    tables = (item.table for _, items in sections for item in items if item.table)
    data = {key: value for study in studies for key, value in study.data(evidence).items()}
    return StudyReport(out / "report.html", findings, page.summary, next(tables, ()), data)


def reports(what: str) -> dict[str, list[Study]]:
    """The studies of each page, by the folder it lies in; a system has one of its own."""
    studies = chosen(what)
    return {one.name: [one] for one in studies} if studies[0].literature else {"": studies}
