"""Makes "The paper, item by item": `python docs/from_paper.py`.

docs/paper-items.csv lists what the paper has and what it is here; the verdicts are those of docs/claims.json. A key is
a label, a displayed equation, a citation, a footnote or a named paragraph of the paper, or the symbols and numbers that
the row is about. `missing` compares the list with the LaTeX of the paper.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
PAGE = DOCS / "the-paper-item-by-item.md"
GROUPS = {  # by the first word of a key; what has none of these is in the last one
    "sec:": "Sections", "sup:": "Sections", "section:": "Sections", "paragraph:": "Sections", "footnote": "Sections",
    "symbol:": "Symbols", "ass:": "Assumption",
    "def:": "Definitions", "th:": "Theorems", "eq": "Displayed equations", "fig:": "Figures, tables, videos",
    "tables": "Figures, tables, videos", "videos": "Figures, tables, videos", "setting:": "Settings",
    "parameter:": "Parameters", "cite:": "Cited systems and methods",
}  # fmt: skip
SHOWN = r"\\begin\{(?:equation\*?|align\*?|dmath\*?)\}(?P<shown>.*?)\\end\{"
PLACES = re.compile(
    r"\\(?P<level>(?:sub)*section)\{|(?P<appendix>\\appendix)\b|\\label\{(?P<label>.*?)\}|" + SHOWN
    + r"|(?P<footnote>\\footnote)\{|\\textbf\{(?P<paragraph>[^{}]*)\}\s*--(?!\s*\\label)"
    r"|\\cite\w*(?:\[[^]]*\])*\{(?P<cited>.*?)\}",
    re.DOTALL,
)  # fmt: skip
FORMULA = re.compile(r"\$(?P<inline>.+?)\$|" + SHOWN, re.DOTALL)
SYMBOL = re.compile(r"\\(?:hat|bm|mathcal|mathbb)\{[A-Za-z]\}|\{[A-Za-z]{2,}\}|\\[A-Za-z]+|[A-Za-z]")
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)(?!\.?\d)")
LAYOUT = re.compile(
    r"\\(?:begin|end|label|ref|cite\w*|href|url|\w*space|setcounter|includegraphics|subfloat|text\w*)\*?"
    r"(?:\[[^]]*\])?(?:\{[^{}]*\})?|\{(?:r\}\{)?[\d.]+\\\w+\}|\{ll\}"
)


class Item(NamedTuple):
    """Something of the paper, and what it is here."""

    key: str
    section: str
    item: str
    ours: str
    module: str
    command: str
    claims: str
    note: str

    @property
    def group(self) -> str:
        """The part of the page that it stands in."""
        return next(group for start, group in GROUPS.items() if self.key.startswith(start))


def items() -> list[Item]:
    """The list."""
    with (DOCS / "paper-items.csv").open(encoding="utf-8", newline="") as file:
        return [Item(*row) for row in list(csv.reader(file, delimiter="|", strict=True))[1:]]


def keys_of(latex: str) -> dict[str, str]:
    r"""What a LaTeX text numbers, labels, displays and cites, and its named paragraphs, as the keys of items; and the
    section in which each stands first.

    >>> keys_of(r"\section{A} \begin{align*} a \end{align*} \subsection{B} \citep{X,Y} \appendix \section{C} \label{z}")
    {'section 1': '1', 'eq 1': '1', 'section 1.1': '1.1', 'cite:X': '1.1', 'cite:Y': '1.1', 'section A': 'A', 'z': 'A'}
    >>> keys_of(r"\section{A} \textbf{Setup} -- It is so.\footnote{Nearly.}")
    {'section 1': '1', 'paragraph:Setup': '1', 'footnote 1': '1'}
    """
    counts, letters, shown, notes, here = [0, 0, 0], False, 0, 0, ""
    where: dict[str, str] = {}
    for match in PLACES.finditer(latex.partition(r"\begin{document}")[2] or latex):
        if match["level"]:
            depth = match["level"].count("sub")
            counts = [*counts[:depth], counts[depth] + 1, *[0] * (2 - depth)]
            here = ".".join(map(str, filter(None, [chr(64 + counts[0]) if letters else counts[0], *counts[1:]])))
            where[f"section {here}"] = here
        elif match["appendix"]:
            counts, letters = [0, 0, 0], True
        elif match["shown"]:
            shown += 1
            own = re.search(r"\\label\{(.*?)\}", match["shown"])
            where[own[1] if own else f"eq {shown}"] = here
        elif match["label"]:
            where[match["label"]] = here
        elif match["footnote"]:
            notes += 1
            where[f"footnote {notes}"] = here
        elif match["paragraph"]:
            where[f"paragraph:{match['paragraph']}"] = here
        else:
            for key in match["cited"].split(","):
                where.setdefault(f"cite:{key.strip()}", here)
    return where


def greek(name: str) -> bool:
    """Whether a LaTeX command is a letter."""
    try:
        return bool(unicodedata.lookup(f"GREEK {'SMALL' if name.islower() else 'CAPITAL'} LETTER {name}"))
    except KeyError:
        return False


def symbols_of(latex: str) -> set[str]:
    r"""The letters of the formulas, with their accents but without what is above and below; and superscript words.

    >>> sorted(symbols_of(r"$\hat{f}_j \in \gamma$ and \begin{align*} \max_a Q^{ego} \end{align*}"))
    ['Q', '\\gamma', '\\hat{f}', 'a', 'j', '{ego}']
    """
    body = latex.partition(r"\maketitle")[2] or latex
    formulas = [LAYOUT.sub(" ", match["inline"] or match["shown"]) for match in FORMULA.finditer(body)]
    signs = {sign for formula in formulas for sign in SYMBOL.findall(formula)}
    return {sign for sign in signs if not sign.startswith("\\") or "{" in sign or greek(sign[1:])}


def numbers_of(latex: str) -> set[str]:
    """The numbers of two characters or more, which are its settings and results.

    >>> sorted(numbers_of("20,000 steps in {0.3\\\\textwidth}, 0.01,0.1 and 11x11; 2"))
    ['0.01', '0.1', '11', '20,000']
    """
    text = LAYOUT.sub(" ", latex.partition(r"\maketitle")[2] or latex)
    return {number for number in NUMBER.findall(text.replace("x", " x ")) if len(number) > 1}


def missing(latex: str) -> set[str]:
    """What the paper has and the list lacks, or has in another section."""
    listed = {item.key: item.section for item in items()}
    listed |= {f"section {item.section}": item.section for item in items() if item.group == "Sections"}
    told = {part.lstrip("-") for key in listed for part in key.partition(":")[2].split()}
    wrong = {key for key, place in keys_of(latex).items() if listed.get(key) != place}
    return wrong | (symbols_of(latex) | numbers_of(latex)) - told


def found(module: str) -> object:
    """The module, or the name in it, that an item points at."""
    path, _, name = module.partition(":")
    home = import_module(f"multiadvisor.{path}")
    return getattr(home, name) if name else home


def row(item: Item, verdicts: dict[str, str]) -> str:
    """An item as a row of its table."""
    claims = ", ".join(f"{name} (*{verdicts.get(name, 'not judged')}*)" for name in item.claims.split())
    ours = " ".join(part for part in (f"{item.ours}." if item.note else item.ours, item.note) if part)
    place = f"`{item.module.partition(':')[0]}`" if item.module else ""
    command = f"`{item.command}`" if item.command else ""
    cells = (item.section, item.item, ours, place, command, claims)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def page() -> str:
    """The whole page."""
    verdicts = {one["id"]: one["verdict"] for one in json.loads((DOCS / "claims.json").read_bytes())}
    groups: dict[str, list[Item]] = {}
    for item in items():
        groups.setdefault(item.group, []).append(item)
    lines = [
        "# The paper, item by item", "",
        "For a reader who has the paper, *Multi-Advisor Reinforcement Learning* (MAd-RL, [arXiv:1704.00756]"
        "(https://arxiv.org/abs/1704.00756)), and nothing else: what each of its symbols, definitions, equations, "
        "theorems, figures, parameters and cited systems is called here, where it is, and what became of it. Verdicts "
        "are those of [The paper, checked](the-paper-checked.md); section numbers are the paper's. Theorems, figures "
        "and displayed equations are numbered in the order in which they appear.", "",
        "Made by `python docs/from_paper.py`; a test compares it with the paper's LaTeX.", "",
    ]  # fmt: skip
    for group in dict.fromkeys(GROUPS.values()):
        lines += [f"## {group}", "", "| section | the paper | here | module | command | claims and verdicts |",
                  "|---|---|---|---|---|---|", *(row(item, verdicts) for item in groups[group]), ""]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(PAGE.name)
