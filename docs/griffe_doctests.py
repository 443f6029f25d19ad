"""An extension of griffe: examples in docstrings become blocks of code; in Markdown `>>>` would be a quotation."""

from __future__ import annotations

from typing import Any

import griffe


def fenced(text: str) -> str:
    """The same docstring, with a fence around each example.

    >>> print(fenced("One.\\n\\n>>> 1 + 1\\n2\\n\\nTwo."))
    One.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    Two.
    """
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```pycon\n{one}\n```" if one.lstrip().startswith(">>>") else one for one in paragraphs)


class Doctests(griffe.Extension):
    """Changes docstrings before they are shown."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Every object, once it is loaded."""
        if not obj.is_alias and obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
