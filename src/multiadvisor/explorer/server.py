"""The server of the explorer: a page, the runs by opaque id, and one socket for what takes the library itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import socket
import sys
import threading
import time
import traceback
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episodes import Episodes
from multiadvisor.analysis.theory.boards import has_tables
from multiadvisor.diagnosis.taught import Taught
from multiadvisor.errors import BadInput
from multiadvisor.explorer import gallery, onefile
from multiadvisor.explorer.answers import command, named_weights, preview
from multiadvisor.explorer.branching import Branching, alternatives, consequence, unplayed
from multiadvisor.explorer.following import RunWatchers
from multiadvisor.explorer.guards import PROTOCOL, SCHEME, Guard, Keys
from multiadvisor.explorer.insights import STATIC, TIPS, Albums, Answering, Insights, answers_of, whole
from multiadvisor.explorer.library import Entry, Library
from multiadvisor.explorer.maps import maps, trained, trained_again
from multiadvisor.explorer.questions import CONTINUATIONS, Reasons, advisors_of, attractor_layer, reweighted, what_if
from multiadvisor.runs.artists import end_idle

HOST = "127.0.0.1"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_PORTS = 50  # tried one after the other where the first is taken
_LARGEST_MESSAGE = 1 << 20
_LARGEST_TICKET = 200
_LEAST_PACKED = 1000  # bytes: less is sent as it is
_MOST_AT_ONCE = 8  # questions of one page that wait for their answers


class Explorer:
    """A library of runs behind the guards."""

    def __init__(self, library: Library) -> None:
        self.library, self.keys = library, Keys()
        self.insights, self.watchers = Insights(library, Albums(library)), RunWatchers(library)
        self.on_enter: Callable[[str], None] = lambda ticket: None
        # whatever takes the processor for long is done once at a time, whoever asks
        self._training, self._playing, self._diagnosing = threading.Lock(), threading.Lock(), threading.Lock()
        # read once: a request names one of these, never a path
        self._files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _TYPES}
        # so that a browser hears of all modules at once, and need not find them one behind the other
        early = "".join(f'<link rel="modulepreload" href="/static/{name}">\n' for name in onefile.modules())
        self._files["index.html"] = self._files["index.html"].replace(b"<!-- modules -->\n", early.encode())

    def warm(self) -> None:
        """Play the first episodes in the background, so that the page finds them there: the first one compiles."""

        def work() -> None:
            for name in list(self.library.entries)[:2]:
                with contextlib.suppress(BadInput):
                    self.library.recorded(name, 0)

        threading.Thread(target=work, daemon=True).start()

    def app(self, port: int) -> Guard:
        """The application as it listens on this port."""
        routes = [
            Route("/", self._file),
            Route("/static/{name}", self._file),
            Route("/api/enter", self._enter, methods=["POST"]),
            *(Route(f"/api/{path}", self._asked(work)) for path, work in self._works().items()),
            WebSocketRoute("/api/socket", self._socket),
        ]
        hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        # at the lowest level, which is quick: tables of many advisors are large
        packing = Middleware(GZipMiddleware, minimum_size=_LEAST_PACKED, compresslevel=1)
        return Guard(Starlette(routes=routes, middleware=[packing]), self.keys, hosts)

    # ---- pages ---------------------------------------------------------------------------------------------------
    def _file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            return Response("there is no such file\n", 404, media_type="text/plain")
        return Response(self._files[name], media_type=_TYPES[Path(name).suffix])

    async def _enter(self, request: Request) -> Response:
        """A ticket for the token."""
        body = b""
        async for part in request.stream():  # anybody may send something here: no more than a ticket is read
            body += part
            if len(body) > _LARGEST_TICKET:
                return _problem("that is no ticket", 400)
        ticket = body.decode("utf-8", "replace")
        token = self.keys.redeem(ticket)
        if token is None:
            return _problem("this address was used before: open the newest one that the terminal shows", 401)
        self.on_enter(ticket)
        return Response(_text({"token": token}), media_type="application/json")

    # ---- data ----------------------------------------------------------------------------------------------------
    def _asked(self, work: Answering) -> Callable[[Request], Response]:
        def handle(request: Request) -> Response:  # in a thread of its own, as it is no coroutine
            try:
                result = work({**request.query_params, **request.path_params})
            except BadInput as error:
                return _problem(str(error), 400)
            if isinstance(result, dict):
                return Response(_text(result), media_type="application/json")
            return Response(result, media_type="text/html" if isinstance(result, str) else "application/octet-stream")

        return handle

    def _works(self) -> dict[str, Answering]:
        """What answers a request, by its path."""
        library, insights, watchers = self.library, self.insights, self.watchers
        return {
            **answers_of(library, insights=insights),
            "runs": lambda given: {**library.listing(), **gallery.listing(), "tips": TIPS},
            "maps": lambda given: {"maps": maps(library.records)},
            "compare/{id}/{other}": lambda given: insights.compare(given["id"], given["other"]),
            "live": lambda given: watchers.all(),
            "live/{id}/{since}": lambda given: watchers.one(given["id"], whole(given["since"])),
            "gallery/{id}": lambda given: gallery.exhibit(
                given["id"], given.get("planning", ""), _real(given.get("gamma")), _real(given.get("noise", "0"))
            ),
            "export": lambda given: onefile.html(
                library, [one for one in given.get("runs", "").split(",") if one][:2], whole(given.get("episode", "0"))
            ),
        }

    # ---- the socket ----------------------------------------------------------------------------------------------
    async def _socket(self, socket: WebSocket) -> None:
        await socket.accept(subprotocol=PROTOCOL)
        gone = threading.Event()
        running: set[asyncio.Task[None]] = set()
        try:
            while (message := await socket.receive())["type"] != "websocket.disconnect":
                task = asyncio.create_task(self._reply(socket, message.get("text"), gone, len(running)))
                running.add(task)
                task.add_done_callback(running.discard)
        except RuntimeError:
            pass
        finally:
            gone.set()

    async def _reply(self, socket: WebSocket, text: str | None, gone: threading.Event, before: int) -> None:
        number: Any = None
        loop = asyncio.get_running_loop()

        def tell(share: float) -> None:
            if gone.is_set():
                raise BadInput("the page is gone")
            asyncio.run_coroutine_threadsafe(socket.send_text(_text({"id": number, "share": share})), loop)

        try:
            asked = _message(text)
            number = asked.get("id")
            if before >= _MOST_AT_ONCE:
                raise BadInput("too much is asked at once: wait for an answer")
            result = await run_in_threadpool(self._do, asked, tell)
            reply = {"id": number, "result": result}
        except BadInput as error:
            reply = {"id": number, "error": str(error)}
        except Exception:
            traceback.print_exc()  # a fault of ours: the page must not wait for ever, and somebody should hear of it
            reply = {"id": number, "error": "the explorer failed: the terminal says why"}
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await socket.send_text(_text(reply))

    def _do(self, asked: dict[str, Any], tell: Callable[[float], None]) -> dict[str, Any]:
        if asked.get("do") == "watch":
            record = self.library.record(str(asked.get("run")))
            with _once(self._training, "another training is going on: wait for its end"):
                return {"id": self.library.add_agent(trained_again(record, tell), record.label).id}
        entry = self.library.entry(str(asked.get("run")))
        weights = None if asked.get("weights") is None else _weights(entry.agent, asked["weights"])
        if asked.get("do") == "diagnose":
            with _once(self._diagnosing, "another diagnosis is going on: wait for its end"):
                return self.insights.diagnose(entry.id)
        if asked.get("do") == "preview":
            return self._preview(entry, weights or [float(one.weight) for one in advisors_of(entry.agent)])
        if asked.get("do") == "retrain":
            with _once(self._training, "another training is going on: wait for its end"):
                return {"id": self._retrain(entry.agent, entry.name, weights, tell)}
        trace, episode = self.library.recorded(entry.id, whole(asked.get("episode")))
        step, last = whole(asked.get("step")), int(trace.length[episode])
        if not 0 <= step <= last:
            raise BadInput(f"the episode has {last} steps, and so no step {step}")
        if asked.get("do") == "explain":
            against = asked.get("against")
            reasons = Reasons(entry.agent, trace, episode)
            return reasons.one(step, weights, None if against is None else whole(against))
        if asked.get("do") == "what-if":
            with self._playing:
                return self._what_if(entry, trace, episode, step, whole(asked.get("action")), weights, tell)
        if asked.get("do") == "attractors" and trace.x is not None:
            return attractor_layer(entry.agent, trace.states(episode)[step], weights)
        raise BadInput("the explorer cannot do that")

    def _preview(self, entry: Entry, weights: list[float]) -> dict[str, str]:
        """What would be done under other weights, and how to train with them."""
        task, agent = entry.agent.task, entry.agent
        text = preview(self.insights.report(entry.id), weights)
        changed = named_weights(task.advisors, reweighted(agent, weights).weights, task.yardstick)
        return {"text": text, "command": command(agent, entry.folder, changed)}

    def _what_if(
        self, entry: Entry, trace: Episodes, episode: int, step: int, number: int, weights: list[float] | None,
        tell: Callable[[float], None],
    ) -> dict[str, Any]:  # fmt: skip
        """How the episode goes on after another action: in the compiled world, or in the environment itself."""
        agent, tries = entry.agent, len(alternatives(entry.agent.task))
        if step >= int(trace.length[episode]):
            raise BadInput("the episode is over: nothing is done in this step")
        if not 0 <= number < tries:
            raise BadInput(f"action {number} is not among the {tries} that can be tried")
        if weights is not None and (trace.x is None or not has_tables(agent)):
            raise BadInput("an agent without tables plays with its own weights only: reset them to try another action")
        done = trace.actions_of(episode)[step]
        if trace.x is not None:
            tried = (done,) if done == number else (done, number)
            found = what_if(agent, trace.states(episode)[step], step, tried, weights, tell=tell)
        else:
            try:
                branching: Branching = entry.once("branching", lambda: Branching(agent))
                found = branching.what_if(trace, episode, step, number, CONTINUATIONS)
            except BadInput as error:
                taught = self.insights.consequences(entry)
                if not isinstance(taught, Taught):
                    raise
                return unplayed(step, consequence(taught, agent, trace, episode, step, number), f"{error}.")
        if weights is None and len(found["actions"]) > 1:
            try:
                asked = self.insights.consequences(entry)
                more = "" if asked is None else consequence(asked, agent, trace, episode, step, number)
            except BadInput as error:
                more = f"({error})"
            found["note"] += f" {more}" * bool(more)
        return found

    def _retrain(
        self, agent: MultiAdvisor, name: str, weights: list[float] | None, tell: Callable[[float], None]
    ) -> str:
        """The same agent from the start, under other weights."""
        task = reweighted(agent, weights)
        if not task.weights.any():
            raise BadInput("all weights are 0, so no advisor has a say: raise one of them to train again")
        again = trained(MultiAdvisor(task, agent.settings), max(agent.steps, 1), tell)
        return self.library.add_agent(again, f"{name}, trained again").id


@contextlib.contextmanager
def _once(lock: threading.Lock, otherwise: str) -> Iterator[None]:
    """Hold the lock, or say why not."""
    if not lock.acquire(blocking=False):
        raise BadInput(otherwise)
    try:
        yield
    finally:
        lock.release()


def _message(text: str | None) -> dict[str, Any]:
    """What was asked; None stands for bytes that are no text."""
    try:
        asked = json.loads(text) if text is not None and len(text) < _LARGEST_MESSAGE else None
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("id", 0), int):
        raise BadInput("that is no message of this page")
    return asked


def _text(message: dict[str, Any]) -> str:
    """JSON in ASCII: half a character in somebody's message, or in the name of a file, can be sent like any other."""
    return json.dumps(message, separators=(",", ":"))


def _problem(sentence: str, status: int) -> Response:
    return Response(_text({"error": sentence}), status, media_type="application/json")


def _weights(agent: Any, given: Any) -> list[float]:
    """One number for each advisor."""
    found = [_real(one) for one in given] if isinstance(given, list) else []
    if len(found) != len(advisors_of(agent)):
        raise BadInput(f"{len(found)} weights were given for {len(advisors_of(agent))} advisors")
    return found


def _real(value: Any) -> float:
    with contextlib.suppress(TypeError, ValueError):
        if math.isfinite(float(value)):
            return float(value)
    raise BadInput(f"{str(value)[:40]!r} is not a number")


# ---- running ---------------------------------------------------------------------------------------------------------
def listen(port: int) -> socket.socket:
    """A socket on the loopback address: this port or, where it is taken, the next one that is free."""
    last = min(port + _PORTS, 65536)
    for number in range(port, last):
        # named TCP, or asyncio would not switch off the delay that waits 40 ms for more to send
        taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, number))
            taken.listen(128)
            return taken
        except OSError:
            taken.close()
    raise BadInput(f"no port from {port} to {last - 1} is free: choose another one with --port")


def address(port: int, ticket: str) -> str:
    """What to open: the ticket is in the fragment, which no browser sends anywhere."""
    return f"{SCHEME}://{HOST}:{port}/#ticket={ticket}"


@contextlib.contextmanager
def serving(explorer: Explorer, port: int = 0) -> Iterator[int]:
    """Serve in a thread of its own while the block runs; the port."""
    listening = listen(port)
    taken = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(
        explorer.app(taken), log_level="error", access_log=False, lifespan="off", ws="websockets-sansio",
        ws_max_size=_LARGEST_MESSAGE, server_header=False, proxy_headers=False, timeout_graceful_shutdown=1,
    ))  # fmt: skip
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def serve(library: Library, port: int, browser: bool, as_json: bool = False, view: str | None = None) -> None:
    """Print the address, open it at this view, and serve until Ctrl-C."""
    explorer = Explorer(library)
    shown: list[str] = []
    where = f"&view={view}" if view else ""

    def tell(used: str = "") -> None:
        if not shown or used == shown[-1]:
            shown.append(explorer.keys.ticket())
            page = address(taken, shown[-1]) + where
            print(json.dumps({"address": page, "port": taken}) if as_json else page, flush=True)

    explorer.on_enter = tell
    # the server has a thread of its own, so that this works inside a notebook's event loop as well
    with contextlib.suppress(KeyboardInterrupt), serving(explorer, port) as taken:
        if port not in (0, taken):
            print(f"port {port} is in use: took {taken}", file=sys.stderr)
        tell()
        explorer.warm()
        print("each address opens the page once, then the next one is shown here; Ctrl-C ends", file=sys.stderr)
        if os.environ.get("SSH_CONNECTION"):
            print(f"from your own machine: ssh -L {taken}:127.0.0.1:{taken} HOST, the same port twice", file=sys.stderr)
        if browser and has_display():
            own = address(taken, explorer.keys.ticket()) + where
            # some browsers only return when they are closed
            threading.Thread(target=webbrowser.open, args=(own,), daemon=True).start()
        while True:
            time.sleep(0.5)
    end_idle()  # in a notebook nothing else would, before it ends


def has_display() -> bool:
    """Whether there is a screen to open a browser on."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
