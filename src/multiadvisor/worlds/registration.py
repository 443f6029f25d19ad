"""The environments' names in Gymnasium; light, as Gymnasium imports this whenever it is imported itself."""

from __future__ import annotations


def register() -> None:
    """Called by Gymnasium through the package's entry point, inside the namespace `multiadvisor`."""
