"""The report as a page: one HTML file with everything inside, and its twin in Markdown. Pure text in, text out."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from multiadvisor.studies.claims import FAILS, HOLDS, NOT, PARTLY, REPRODUCED, Finding
from multiadvisor.studies.study import Table

SIGNS = {REPRODUCED: "✓", HOLDS: "✓", PARTLY: "≈", NOT: "✗", FAILS: "✗"}
_CLASSES = {REPRODUCED: "yes", HOLDS: "yes", PARTLY: "half", NOT: "no", FAILS: "no", None: "open"}
PAPER = 'R. Laroche, M. Fatemi, J. Romoff, H. van Seijen: "Multi-Advisor Reinforcement Learning", 2017'
PAPER_ID = "arXiv:1704.00756"
PAPER_LINK = "https://arxiv.org/abs/1704.00756"  # for readers to follow; the page itself loads nothing


class Item(NamedTuple):
    """A figure, a table or an episode in its place on the page."""

    name: str
    title: str
    text: str
    svg: str = ""
    table: Table = ()
    gif: bytes = b""


class Section(NamedTuple):
    """A study on the page."""

    name: str
    title: str
    items: tuple[Item, ...]


class Page(NamedTuple):
    """All that the page says."""

    title: str
    summary: tuple[str, ...]
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...]
    """How it was made: names and values."""
    papers: bool = True
    """It is about the paper, and names it."""

    @property
    def lead(self) -> Item | None:
        """The figure that is shown first, above all else that is said: the paper's main one, as measured."""
        return next((item for item in self.sections[0].items if item.svg), None) if self.papers else None


def number(value: float) -> str:
    """A statistic for a reader: as many figures as it takes, or a power of ten where it is very small."""
    if value != 0 and abs(value) < 0.001:
        return f"{value:.1e}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3f}"


def measured(one: Finding) -> str:
    """The value with its interval."""
    assert one.judgement is not None
    ends = one.judgement.interval
    least = "at least " if one.judgement.at_least else ""
    return least + number(one.judgement.value) + (f" [{number(ends[0])}, {number(ends[1])}]" if ends else "")


def sign(verdict: str | None) -> str:
    """A verdict with its sign."""
    return "not judged" if verdict is None else f"{SIGNS[verdict]} {verdict}"


def _if(one: Finding) -> str:
    """What goes before the test of a claim."""
    return "reproduced if" if one.claim.papers else "holds if"


def by_place(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """The claims by the part of the paper they stand in, in its order."""
    found: dict[str, list[Finding]] = {}
    for one in findings:
        found.setdefault(one.claim.where, []).append(one)
    return found


def _counted(findings: Sequence[Finding]) -> list[tuple[str | None, int]]:
    """Each verdict that occurs, None for not judged, and how often."""
    verdicts = [one.verdict for one in findings]
    return [(verdict, verdicts.count(verdict)) for verdict in (*SIGNS, None) if verdict in verdicts]


# ---- HTML ------------------------------------------------------------------------------------------------------------


_STYLE = """
:root { color-scheme: light; --ink: #1b1e28; --quiet: #5a6070; --line: #d9dce3; --yes: #00684b; --half: #8a5a00;
  --no: #a33a00; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(.8rem, 3vw, 2.5rem) 4rem; max-width: 76rem; color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; background: #fff; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1rem 0 .5rem; }
h2 { margin: 2.4rem 0 .6rem; padding-top: .6rem; border-top: 2px solid var(--line); font-size: 1.3rem; }
h3 { margin: 0 0 .3rem; font-size: 1.02rem; }
p { margin: .3rem 0 .8rem; max-width: 70ch; }
nav { margin: .4rem 0 1rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
a { color: #0060a0; }
.items { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1.6rem; }
.episodes { grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr)); }
figure, .item { margin: 0; min-width: 0; }
.item.wide { grid-column: 1 / -1; }
.item p { font-size: .92rem; color: var(--quiet); }
svg { width: 100%; height: auto; display: block; }
.episode img { width: 100%; max-width: 22rem; image-rendering: pixelated; border: 1px solid var(--line); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
td { white-space: nowrap; }
.bar { display: flex; flex-wrap: wrap; gap: 2px; max-width: 46rem; margin: .6rem 0 .8rem; font-size: .88rem; }
.bar span { padding: .35rem .5rem; min-width: max-content; color: #fff; background: #5a6070; }
.bar .yes { background: var(--yes); } .bar .half { background: var(--half); } .bar .no { background: var(--no); }
.bar .yes, .bar .half, .bar .no { color: #fff; }
.lead { max-width: 34rem; }
@media (min-width: 64rem) {
  .lead { max-width: none; }
  .lead .item { display: grid; grid-template-columns: 34rem 1fr; column-gap: 2rem; align-items: center; }
  .lead h3 { grid-column: 1 / -1; }
}
.filter { display: flex; flex-wrap: wrap; gap: .5rem; margin: .6rem 0 1rem; }
.filter label { padding: .2rem .8rem; border: 1px solid var(--line); border-radius: 1rem; cursor: pointer; }
.pick { position: absolute; opacity: 0; pointer-events: none; }
.place h3 { margin: 1.4rem 0 .2rem; }
.place h3 small { font-weight: 400; color: var(--quiet); margin-left: .6rem; }
.claims { list-style: none; padding: 0; margin: 0; }
.claims li { display: grid; grid-template-columns: 9.8rem 1fr; gap: .2rem 1rem; padding: .6rem 0;
  border-bottom: 1px solid var(--line); }
.verdict { font-weight: 600; white-space: nowrap; }
.yes { color: var(--yes); } .half { color: var(--half); } .no { color: var(--no); }
.claims small { color: var(--quiet); display: block; overflow-wrap: anywhere; }
.claims .seen { margin: .3rem 0 0; font-size: .92rem; }
dl { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: .2rem 1rem; font-size: .92rem; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { .claims li { grid-template-columns: 1fr; } dl { grid-template-columns: 1fr; }
  dd { margin-bottom: .4rem; } }
"""


def _filter_style() -> str:
    """What a chosen verdict hides: the other claims, and the parts of the paper that have none of it."""
    rules = [
        f"#only-{name}:checked ~ .place li:not(.is-{name}), #only-{name}:checked ~ .place:not(:has(li.is-{name})) "
        "{ display: none; }"
        for name in dict.fromkeys(_CLASSES.values())
    ]
    for name in ("all", *dict.fromkeys(_CLASSES.values())):
        chosen, focused = (
            f'#only-{name}:{state} ~ .filter label[for="only-{name}"]' for state in ("checked", "focus-visible")
        )
        rules.append(f"{chosen} {{ background: var(--ink); color: #fff; }} {focused} {{ outline: 3px solid #0060a0; }}")
    return "\n".join(rules)


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


def _html_finding(one: Finding) -> str:
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


def _html_findings(findings: Sequence[Finding]) -> str:
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


def _bar(findings: Sequence[Finding]) -> str:
    """The verdicts as a bar: each as wide as there are claims."""
    counted = _counted(findings)
    parts = "".join(
        f'<span class="{_CLASSES[verdict]}" style="flex:{count}">{count} {verdict or "not judged"}</span>'
        for verdict, count in counted
    )
    label = ", ".join(f"{count} {verdict or 'not judged'}" for verdict, count in counted)
    return f'<div class="bar" role="img" aria-label="{label}">{parts}</div>\n' if counted else ""


def _html_item(item: Item) -> str:
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
    names = [*((s.name, s.title) for s in page.sections), *[("claims", "The claims")] * bool(page.findings),
             ("made", "How this was made")]  # fmt: skip
    links = "".join(f'<a href="#{name}">{escape(title)}</a> ' for name, title in names)
    lines = [f"<p>{prose(line)}</p>\n" for line in page.summary]
    first, rest = "".join(lines[:1]), "".join(lines[1:])
    link = f'<p>The paper: {escape(PAPER)}, <a href="{PAPER_LINK}" rel="noreferrer">{PAPER_ID}</a>.</p>\n'
    paper = link if page.papers else ""
    lead = f'<div class="lead">{_html_item(page.lead)}</div>\n' if page.lead else ""
    parts = "".join(
        f'<h2 id="{s.name}">{escape(s.title)}</h2>\n'
        + f'<div class="items{" episodes" if any(i.gif for i in s.items) else ""}">'
        + "\n".join(_html_item(item) for item in s.items if item is not page.lead) + "</div>\n"
        for s in page.sections
    )  # fmt: skip
    claims = f'<h2 id="claims">The claims</h2>\n{_html_findings(page.findings)}' if page.findings else ""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>\n" for name, value in page.facts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(page.title)}</title>\n<style>{_STYLE}{_filter_style()}</style>\n</head>\n<body>\n"
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


def findings_markdown(findings: Sequence[Finding]) -> str:
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


def _markdown_item(item: Item) -> list[str]:
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
    for section in page.sections:
        lines += [f"## {section.title}", ""]
        lines += [part for item in section.items if item is not page.lead for part in _markdown_item(item)]
    lines += ["## The claims", "", findings_markdown(page.findings), ""] if page.findings else []
    lines += ["## How this was made", "", *(f"- {name}: {value}" for name, value in page.facts)]
    return "\n".join(lines) + "\n"
