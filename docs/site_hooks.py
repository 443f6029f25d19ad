"""What MkDocs is told beyond mkdocs.yml: pages and files from outside docs/, notebooks as pages, and an episode to
play.

Documents link to each other as files of the repository, so that they can be read there. In the site the pages of the
root stand beside those of docs/, and links are changed to lead to them.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

import multiadvisor as mad
from multiadvisor.explorer import export

ROOT = Path(__file__).parents[1]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FILES = ("CITATION.cff", "LICENSE")
EPISODE = "pac-boy.html"


def inside(text: str, depth: int) -> str:
    """Links of a page that lies so many folders below docs/ (-1: in the root), as they are in the site.

    >>> inside("[a](../examples/a.py) [b](docs/b.md#c) [d](e.md)", 0)
    '[a](examples/a.py) [b](docs/b.md#c) [d](e.md)'
    >>> inside("[b](docs/b.md#c) [n](notebooks/n.ipynb)", -1)
    '[b](b.md#c) [n](notebooks/n.md)'
    """
    if depth < 0:
        text = text.replace("](docs/", "](")
    else:
        up, names = "../" * (depth + 1), "|".join(["examples/", "notebooks/", *map(re.escape, (*PAGES, *FILES))])
        text = re.sub(rf"\]\({re.escape(up)}({names})", rf"]({'../' * depth}\1", text)
    return re.sub(r"\]\(([^)\s]*notebooks/[^)\s]+)\.ipynb\)", r"](\1.md)", text)


def as_page(notebook: dict[str, Any]) -> str:
    """A notebook's cells in order: its text as it is, its programs with what they print."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        printed = "".join(line for output in cell.get("outputs", ()) for line in output.get("text", ()))
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def one_episode() -> bytes:
    """An episode of Pac-Boy's egocentric agent as a file: made here, so that it is never older than the page."""
    agent = mad.MultiAdvisor(mad.make("pac-boy"), planning="egocentric", gamma=0.9, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        export({"runs/egocentric": agent.learn(1_000_000, progress=False)}, Path(folder) / EPISODE)
        return (Path(folder) / EPISODE).read_bytes()


def on_files(files: Any, config: Any) -> Any:
    """Add what lies outside docs/, and an episode."""
    files.append(File.generated(config, EPISODE, content=one_episode()))
    for name in PAGES:
        text = inside((ROOT / name).read_text("utf-8"), -1)
        files.append(File.generated(config, name, content=text))
    for path in [*(ROOT / name for name in FILES), *sorted((ROOT / "examples").glob("*.*"))]:
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), content=path.read_bytes()))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        note = f"[This notebook as a file]({path.name}).\n\n"
        title, _, rest = as_page(json.loads(path.read_text("utf-8"))).partition("\n")
        text = title + "\n\n" + note + inside(rest, 0).replace("](../docs/", "](../")
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        files.append(File.generated(config, f"notebooks/{path.name}", content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Change the links of the pages of docs/, and link the episode."""
    if page.file.generated_by:
        return markdown
    if page.file.src_uri in ("explorer.md", "index.md"):  # in the repository this file has only its name
        markdown = markdown.replace(f"`{EPISODE}`", f"[{EPISODE}]({EPISODE})")
    return inside(markdown, page.file.src_uri.count("/"))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Names for screen readers that the theme leaves out; lists within a table of contents are no landmarks."""
    search = 'data-md-component="search" role="dialog"'
    output = output.replace(search, f'{search} aria-label="Search"')
    numbered = r'<nav (class="md-nav" data-md-level="[1-9]") aria-labelledby="__nav_(\w+)_label"'
    output = re.sub(numbered, r'<nav \1 aria-label="Pages of part \2"', output)
    output = re.sub(r'<nav class="md-nav" aria-label="[^"]+">', '<nav class="md-nav" role="none">', output)
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", output)  # the empty corner of a table is no heading


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The same for the page that says that there is no such page."""
    return on_post_page(output_content, None, config) if template_name == "404.html" else output_content
