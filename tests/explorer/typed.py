"""The explorer as it is typed, in a process of its own, asked by HTTP without a browser."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

from patience import PATIENCE


def ask(port, path, body=None, **headers):
    """(status, headers, body) of the answer, also where it is a refusal; the path is sent as it is."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.putrequest("GET" if body is None else "POST", path, skip_host="host" in headers,
                              skip_accept_encoding=True)  # fmt: skip
        for name, value in {**headers, **({} if body is None else {"content-length": str(len(body))})}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        with connection.getresponse() as answer:
            return answer.status, answer.headers, answer.read()


class Server:
    """`multiadvisor explore` in a process of its own, at this address."""

    def __init__(self, process, address):
        self.process = process
        port, ticket = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#ticket=([\w-]{20,})(?:&.*)?", address.strip()).groups()
        self.port = int(port)
        entered = ask(self.port, "/api/enter", ticket.encode(), origin=f"http://127.0.0.1:{port}")
        self._token = json.loads(entered[2])["token"]
        self.runs = [one["id"] for one in json.loads(self.ask("runs"))["runs"]]

    def ask(self, path):
        """The body of the answer."""
        return ask(self.port, f"/api/{path}", authorization=f"Bearer {self._token}")[2]

    def pictures(self, run, episode, first=0):
        """What is said of some pictures of an episode."""
        body = self.ask(f"pictures/{self.runs[run]}/{episode}/{first}")
        return json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])


@contextlib.contextmanager
def explored(*words, **environment):
    """`multiadvisor explore WORDS` on a port that is free: the process and what it prints first. In the end it is
    interrupted, if nobody did so before; `process.told` is then what it said on stderr, unless it was killed."""
    command = [sys.executable, "-m", "multiadvisor", "explore", *map(str, words)]
    environment = {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": "", "PYTHONUNBUFFERED": "1", **environment}
    with (
        tempfile.TemporaryFile("w+") as messages,  # a full pipe would hold it up
        subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=messages) as process,
    ):
        try:
            yield process, process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) in (0, -signal.SIGKILL)
            messages.seek(0)
            process.told = messages.read()
        finally:
            process.kill()


@contextlib.contextmanager
def served(*words):
    """A server of these runs that has been entered."""
    with explored(*words, "--port", "0", "--json") as (process, line):
        yield Server(process, json.loads(line)["address"])
