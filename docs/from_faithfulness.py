"""Put the table of what is said, from the rows of `multiadvisor benchmark faithfulness --json`, into its page."""

import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "benchmarks"))

from measures.faithfulness import said_table  # noqa: E402

BEGIN, END = "<!-- faithfulness -->", "<!-- end of faithfulness -->"


def written() -> str:
    """The page with the table in it."""
    result = json.loads((DOCS / "faithfulness.json").read_text("utf-8"))
    text = (DOCS / "why-did-it-do-that.md").read_text("utf-8")
    inside = f"{BEGIN}\n\n{said_table(result['rows'])}\n\nMachine: {result['machine']}.\n\n{END}"
    return re.sub(f"{BEGIN}.*{END}", lambda _: inside, text, flags=re.DOTALL)


if __name__ == "__main__":
    (DOCS / "why-did-it-do-that.md").write_text(written(), "utf-8")
