"""The report as a page: one HTML file with everything inside, and its twin in Markdown. Pure text in, text out."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from multiadvisor.studies.claims import FAILS, HOLDS, NOT, PARTLY, REPRODUCED, JudgedClaim
from multiadvisor.studies.study import Figure, Study

SIGNS = {REPRODUCED: "✓", HOLDS: "✓", PARTLY: "≈", NOT: "✗", FAILS: "✗"}
_CLASSES = {REPRODUCED: "yes", HOLDS: "yes", PARTLY: "half", NOT: "no", FAILS: "no", None: "open"}
PAPER = 'R. Laroche, M. Fatemi, J. Romoff, H. van Seijen: "Multi-Advisor Reinforcement Learning", 2017'
PAPER_ID = "arXiv:1704.00756"
PAPER_LINK = "https://arxiv.org/abs/1704.00756"  # for readers to follow; the page itself loads nothing


Section = tuple[Study, list[Figure]]
"""A study on the page, and its figures as drawn."""


class Page(NamedTuple):
    """All that the page says."""

    title: str
    summary: tuple[str, ...]
    findings: tuple[JudgedClaim, ...]
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...]
    """How it was made: names and values."""
    papers: bool = True
    """It is about the paper, and names it."""

    @property
    def lead(self) -> Figure | None:
        """The figure that is shown first, above all else that is said: the paper's main one, as measured."""
        return next((item for item in self.sections[0][1] if item.svg), None) if self.papers else None


def number(value: float) -> str:
    """A statistic for a reader: as many figures as it takes, or a power of ten where it is very small."""
    if value != 0 and abs(value) < 0.001:
        return f"{value:.1e}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3f}"


def measured(one: JudgedClaim) -> str:
    """The value with its interval."""
    assert one.judgement is not None
    ends = one.judgement.interval
    least = "at least " if one.judgement.at_least else ""
    return least + number(one.judgement.value) + (f" [{number(ends[0])}, {number(ends[1])}]" if ends else "")


def sign(verdict: str | None) -> str:
    """A verdict with its sign."""
    return "not judged" if verdict is None else f"{SIGNS[verdict]} {verdict}"


def _if(one: JudgedClaim) -> str:
    """What goes before the test of a claim."""
    return "reproduced if" if one.claim.papers else "holds if"


def by_place(findings: Sequence[JudgedClaim]) -> dict[str, list[JudgedClaim]]:
    """The claims by the part of the paper they stand in, in its order."""
    found: dict[str, list[JudgedClaim]] = {}
    for one in findings:
        found.setdefault(one.claim.where, []).append(one)
    return found


def _counted(findings: Sequence[JudgedClaim]) -> list[tuple[str | None, int]]:
    """Each verdict that occurs, None for not judged, and how often."""
    verdicts = [one.verdict for one in findings]
    return [(verdict, verdicts.count(verdict)) for verdict in (*SIGNS, None) if verdict in verdicts]


# ---- HTML ------------------------------------------------------------------------------------------------------------


def inline(svg: str, title: str) -> str:
    """An SVG file as part of a page: no prolog, no fixed size, a name for those who cannot see it."""
    body = svg[svg.index("<svg") :]
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(title, quote=True)}">{rest}'


def prose(text: str) -> str:
    """A text for the page: what stands between backticks is code, as in its twin."""
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(text))


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row is the head."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows[1:])
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _html_finding(one: JudgedClaim) -> str:
    found, kind = one.judgement, _CLASSES[one.verdict]
    if found is None:
        body = f"<small>{prose(one.reason)}</small>"
    else:
        what = f"{escape(one.claim.statistic)}: " if one.claim.statistic else ""
        body = f"<small>{what}<b>{measured(one)}</b></small>"
        body += f"<small>{_if(one)}: {escape(one.claim.test)}</small>" if one.claim.test else ""
        body += f'<p class="seen">{prose(found.explanation)}</p>' if found.explanation else ""
    mark = f'<span class="verdict {kind}">{sign(one.verdict)}</span>'
    return f'<li id="{one.claim.id}" class="is-{kind}">{mark}<div>{escape(one.claim.claim)}{body}</div></li>'


def _html_findings(findings: Sequence[JudgedClaim]) -> str:
    """A filter by verdict, without a script, and the claims by the parts of the paper."""
    choices = [("all", f"all {len(findings)}")]
    choices += [(_CLASSES[verdict], f"{sign(verdict)} {count}") for verdict, count in _counted(findings)]
    picks = "".join(
        f'<input type="radio" class="pick" name="only" id="only-{name}"{" checked" * (name == "all")}>'
        for name, _ in choices
    )
    labels = "".join(f'<label for="only-{name}">{text}</label>' for name, text in choices)
    places = "\n".join(
        f'<div class="place"><h3>{escape(where[0].upper() + where[1:])}<small>'
        + ", ".join(f"{count} {verdict or 'not judged'}" for verdict, count in _counted(group))
        + '</small></h3>\n<ul class="claims">\n' + "\n".join(map(_html_finding, group)) + "\n</ul></div>"
        for where, group in by_place(findings).items()
    )  # fmt: skip
    return f'{picks}\n<div class="filter" role="group" aria-label="show claims">{labels}</div>\n{places}\n'


def _bar(findings: Sequence[JudgedClaim]) -> str:
    """The verdicts as a bar: each as wide as there are claims."""
    counted = _counted(findings)
    parts = "".join(
        f'<span class="{_CLASSES[verdict]}" style="flex:{count}">{count} {verdict or "not judged"}</span>'
        for verdict, count in counted
    )
    label = ", ".join(f"{count} {verdict or 'not judged'}" for verdict, count in counted)
    return f'<div class="bar" role="img" aria-label="{label}">{parts}</div>\n' if counted else ""


def _html_item(item: Figure) -> str:
    wide = " wide" if item.table else ""
    inside = f"<h3>{escape(item.title)}</h3>\n"
    if item.svg:
        inside += inline(item.svg, item.title)
    if item.gif:
        picture = base64.b64encode(item.gif).decode()
        inside += f'<img alt="{escape(item.title)}: a recorded episode" src="data:image/gif;base64,{picture}">'
    if item.table:
        inside += html_table(item.table)
    episode = " episode" if item.gif else ""
    said = "".join(f"<p>{prose(line)}</p>" for line in item.text.splitlines())
    return f'<div class="item{wide}{episode}" id="{item.name}">{inside}{said}</div>'


def html(page: Page) -> str:
    """The whole page; nothing outside it is needed to read it."""
    names = [*((study.name, study.title) for study, _ in page.sections),
             *[("claims", "The claims")] * bool(page.findings), ("made", "How this was made")]  # fmt: skip
    links = "".join(f'<a href="#{name}">{escape(title)}</a> ' for name, title in names)
    lines = [f"<p>{prose(line)}</p>\n" for line in page.summary]
    first, rest = "".join(lines[:1]), "".join(lines[1:])
    link = f'<p>The paper: {escape(PAPER)}, <a href="{PAPER_LINK}" rel="noreferrer">{PAPER_ID}</a>.</p>\n'
    paper = link if page.papers else ""
    lead = f'<div class="lead">{_html_item(page.lead)}</div>\n' if page.lead else ""
    parts = "".join(
        f'<h2 id="{study.name}">{escape(study.title)}</h2>\n'
        + f'<div class="items{" episodes" if any(item.gif for item in items) else ""}">'
        + "\n".join(_html_item(item) for item in items if item is not page.lead) + "</div>\n"
        for study, items in page.sections
    )  # fmt: skip
    claims = f'<h2 id="claims">The claims</h2>\n{_html_findings(page.findings)}' if page.findings else ""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>\n" for name, value in page.facts)
    style = Path(__file__).with_suffix(".css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(page.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(page.title)}</h1>\n{_bar(page.findings)}{first}<nav>{links}</nav>\n{lead}{rest}{paper}{parts}"
        f"{claims}"
        f'<h2 id="made">How this was made</h2>\n<dl>\n{facts}</dl>\n</body>\n</html>\n'
    )


# ---- Markdown --------------------------------------------------------------------------------------------------------
def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row is the head."""
    head, *body = ([_cell(cell) for cell in row] for row in rows)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def findings_markdown(findings: Sequence[JudgedClaim]) -> str:
    """The table of claims, and a paragraph for each that does not wholly hold.

    What a claim says, where, and how it is tested share a cell: three columns fit on a phone.
    """
    rows = [("claim", "value", "verdict")]
    for one in findings:
        if one.judgement is not None:
            tested = f"<br>*{one.claim.where}, measured:* {one.claim.statistic}<br>*{_if(one)}:* {one.claim.test}"
            rows.append((one.claim.claim + tested * bool(one.claim.test), measured(one), sign(one.verdict)))
    table = markdown_table(rows).replace("| ---: | ---: |", "| --- | --- |")
    paragraphs = [
        f"- **{one.claim.claim}** *{one.verdict}.* {one.judgement.explanation}"
        for one in findings if one.judgement is not None and one.judgement.explanation
    ]  # fmt: skip
    left = [f"- **{one.claim.claim}** *Not judged:* {one.reason}." for one in findings if one.judgement is None]
    return "\n".join([table, "", *paragraphs, *left])


def _markdown_item(item: Figure) -> list[str]:
    lines = [f"### {item.title}", ""]
    lines += [f"![{item.title}](figures/{item.name}.svg)", ""] if item.svg else []
    lines += [f"![{item.title}](videos/{item.name}.gif)", ""] if item.gif else []
    lines += [markdown_table(item.table), ""] if item.table else []
    return lines + [part for line in item.text.splitlines() for part in (line, "")]


def markdown(page: Page) -> str:
    """The same as the HTML page; figures and episodes are files beside it."""
    first, *rest = ([line, ""] for line in page.summary) if page.summary else ([],)
    lines = [f"# {page.title}", "", *first, *(_markdown_item(page.lead) if page.lead else ())]
    lines += [part for line in rest for part in line]
    lines += [f"The paper: {PAPER}, [{PAPER_ID}]({PAPER_LINK}).", ""] * page.papers
    for study, items in page.sections:
        lines += [f"## {study.title}", ""]
        lines += [part for item in items if item is not page.lead for part in _markdown_item(item)]
    lines += ["## The claims", "", findings_markdown(page.findings), ""] if page.findings else []
    lines += ["## How this was made", "", *(f"- {name}: {value}" for name, value in page.facts)]
    return "\n".join(lines) + "\n"
