"""The explorer as it is typed, in a process of its own, asked by HTTP without a browser."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import Any


class Server:
    """`multiadvisor explore` in a process of its own, asked by HTTP."""

    def __init__(self, process: Any, address: str) -> None:
        self.process = process
        self._base, ticket = re.match(r"(.+)/#ticket=([^&]+)", address).groups()  # type: ignore[union-attr]
        self._headers = {"Origin": self._base}
        self._headers["Authorization"] = f"Bearer {json.loads(self.ask('enter', ticket.encode()))['token']}"
        self.runs = [one["id"] for one in json.loads(self.ask("runs"))["runs"]]

    def ask(self, path: str, body: bytes | None = None) -> bytes:
        """The answer, also where it is a refusal."""
        asked = urllib.request.Request(f"{self._base}/api/{path}", body, self._headers)
        try:
            with urllib.request.urlopen(asked) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            return error.read()

    def pictures(self, run: int, episode: int, first: int = 0) -> dict[str, Any]:
        body = self.ask(f"pictures/{self.runs[run]}/{episode}/{first}")
        found: dict[str, Any] = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
        return found
