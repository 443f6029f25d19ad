"""The server of the explorer: a page, the runs by opaque id, and one socket for what takes the library itself."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import json
import math
import socket
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from multiadvisor.agent import MultiAdvisor
from multiadvisor.errors import BadInput
from multiadvisor.explorer import gallery, onefile
from multiadvisor.explorer.albums import Albums
from multiadvisor.explorer.attractor_layers import attractor_layer
from multiadvisor.explorer.following import RunWatchers
from multiadvisor.explorer.guards import GUARDS, PROTOCOL, Guard, Keys
from multiadvisor.explorer.insights import Insights
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.playing import own_weights, reweighted, what_if
from multiadvisor.explorer.reasons import Reasons
from multiadvisor.explorer.tips import TIPS

HOST = "127.0.0.1"
STATIC = Path(__file__).parent / "static"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_PORTS = 50  # tried one after the other where the first is taken
_LARGEST_MESSAGE = 1 << 20
_LARGEST_TICKET = 200
_PIECES = 50  # of a training, between which the page hears how far it is
_LEAST_PACKED = 1000  # bytes: less is sent as it is
_MOST_AT_ONCE = 8  # questions of one page that wait for their answers


_Work = Callable[[dict[str, str]], "bytes | str | dict[str, Any]"]


class Explorer:
    """A library of runs behind the guards."""

    def __init__(self, library: Library, *, guards: frozenset[str] = GUARDS) -> None:
        self.library, self.keys, self.guards = library, Keys(), guards
        self.albums, self.watchers = Albums(library), RunWatchers(library)
        self.insights = Insights(library, self.albums)
        self.reached: deque[str] = deque(maxlen=1000)
        """The paths that reached a handler, the last ones."""
        self.refused: deque[tuple[str, str]] = deque(maxlen=1000)
        """(guard, path) of what was turned away, the last ones."""
        self.on_enter: Callable[[str], None] = lambda ticket: None
        # whatever takes the processor for long is done once at a time, whoever asks
        self._training, self._playing = threading.Lock(), threading.Lock()
        # read once: a request names one of these, never a path
        self._files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _TYPES}
        # told of all modules at once, a browser need not find them one behind the other
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
            Route("/", self._page),
            Route("/static/{name}", self._file),
            Route("/api/enter", self._enter, methods=["POST"]),
            *(Route(f"/api/{path}", self._asked(work)) for path, work in self._works().items()),
            WebSocketRoute("/api/socket", self._socket),
        ]
        hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        turned_away = self.refused
        return Guard(Starlette(routes=routes), self.keys, hosts, self.guards, lambda *what: turned_away.append(what))

    # ---- pages ---------------------------------------------------------------------------------------------------
    async def _page(self, request: Request) -> Response:
        return await self._send("index.html", request)

    async def _file(self, request: Request) -> Response:
        return await self._send(request.path_params["name"], request)

    async def _send(self, name: str, request: Request) -> Response:
        self.reached.append(request.url.path)
        if name not in self._files:
            return Response("there is no such file\n", 404, media_type="text/plain")
        return _packed(request, self._files[name], _TYPES[Path(name).suffix])

    async def _enter(self, request: Request) -> Response:
        """A ticket for the token."""
        self.reached.append(request.url.path)
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
        return _json({"token": token})

    # ---- data ----------------------------------------------------------------------------------------------------
    async def _answer(self, request: Request, work: Callable[[], bytes | str | dict[str, Any]]) -> Response:
        self.reached.append(request.url.path)

        def answer() -> Response:
            result = work()
            if isinstance(result, dict):
                return _packed(request, _text(result).encode(), "application/json")
            if isinstance(result, str):
                return _packed(request, result.encode(), "text/html")
            return _packed(request, result, "application/octet-stream")

        try:
            return await run_in_threadpool(answer)
        except BadInput as error:
            return _problem(str(error), 400)

    def _asked(self, work: _Work) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            return await self._answer(request, lambda: work({**request.query_params, **request.path_params}))

        return handle

    def _works(self) -> dict[str, _Work]:
        """What answers a request, by its path; each takes what was given in path and query."""
        library, albums, insights, watchers = self.library, self.albums, self.insights, self.watchers
        return {
            "runs": lambda given: {**library.listing(), **gallery.listing(), "tips": TIPS},
            "curves": lambda given: {"curves": library.curves()},
            "runs/{id}": lambda given: library.run(given["id"]),
            "runs/{id}/episodes/{episode}": lambda given: library.episode(given["id"], _whole(given["episode"])),
            "pictures/{id}/{episode}/{first}": lambda given: albums.pictures(
                given["id"], _whole(given["episode"]), _whole(given["first"])
            ),
            "stuck/{id}/{episode}": lambda given: insights.stuck(given["id"], _whole(given["episode"])),
            "insight/{id}": lambda given: insights.of(given["id"]),
            "live": lambda given: watchers.all(),
            "live/{id}/{since}": lambda given: watchers.one(given["id"], _whole(given["since"])),
            "gallery/{id}": lambda given: gallery.exhibit(
                given["id"], given.get("planning", ""), _real(given.get("gamma")), _real(given.get("noise", "0"))
            ),
            "export": lambda given: onefile.html(
                library, [one for one in given.get("runs", "").split(",") if one][:2], _whole(given.get("episode", "0"))
            ),
        }

    # ---- the socket ----------------------------------------------------------------------------------------------
    async def _socket(self, socket: WebSocket) -> None:
        self.reached.append("/api/socket")
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
        entry = self.library.entry(str(asked.get("run")))
        weights = asked.get("weights")
        if weights is not None:
            weights = [_real(one) for one in weights] if isinstance(weights, list) else [math.nan]
        if asked.get("do") == "retrain":
            with _once(self._training, "another training is going on: wait for its end"):
                return {"id": self._retrain(entry.agent, entry.name, weights, tell)}
        trace, episode = self.library.recorded(entry.id, _whole(asked.get("episode")))
        step, last = _whole(asked.get("step")), int(trace.length[episode])
        if not 0 <= step <= last:
            raise BadInput(f"the episode has {last} steps, and so no step {step}")
        if asked.get("do") == "explain":
            against = asked.get("against")
            reasons = Reasons(entry.agent, trace, episode)
            return reasons.one(step, weights, None if against is None else _whole(against))
        if trace.x is None:
            raise BadInput("this task is a Python environment: it cannot be put back into an earlier state")
        states = trace.states(episode)
        if asked.get("do") == "attractors":
            return attractor_layer(entry.agent, states[step], weights)
        if asked.get("do") == "what-if":
            actions = asked.get("actions")
            if not isinstance(actions, list):
                raise BadInput("no action was named to try")
            with self._playing:
                tried = tuple(_whole(action) for action in actions)
                return what_if(entry.agent, states[step], step, tried, weights, tell=tell)
        raise BadInput("the explorer cannot do that")

    def _retrain(
        self, agent: MultiAdvisor, name: str, weights: list[float] | None, tell: Callable[[float], None]
    ) -> str:
        """The same agent from the start, under other weights."""
        task = reweighted(agent.task, own_weights(agent, weights))
        if not task.weights.any():
            raise BadInput("all weights are 0, so no advisor has a say: raise one of them to train again")
        own = {field.name: getattr(agent.settings, field.name) for field in dataclasses.fields(agent.settings)}
        again = MultiAdvisor(task, **own)
        total = max(agent.steps, 1)
        for piece in range(_PIECES):
            again.learn((piece + 1) * total // _PIECES - again.steps, progress=False)
            tell((piece + 1) / _PIECES)
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


def _packed(request: Request, content: bytes, kind: str) -> Response:
    """Packed at the lowest level, which is quick, where the asker can unpack it: tables of many advisors are large."""
    if len(content) < _LEAST_PACKED or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(content, media_type=kind)
    return Response(gzip.compress(content, 1, mtime=0), media_type=kind, headers={"content-encoding": "gzip"})


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(_text(content), status, media_type="application/json")


def _problem(sentence: str, status: int) -> Response:
    return _json({"error": sentence}, status)


def _whole(value: Any) -> int:
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return int(value)
    return -1


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
    scheme = "http"
    return f"{scheme}://{HOST}:{port}/#ticket={ticket}"


def server_on(explorer: Explorer, listening: socket.socket) -> uvicorn.Server:
    """uvicorn, quiet."""
    config = uvicorn.Config(
        explorer.app(listening.getsockname()[1]), log_level="error", access_log=False, lifespan="off",
        ws="websockets-sansio", ws_max_size=_LARGEST_MESSAGE, server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    return uvicorn.Server(config)


@contextlib.contextmanager
def serving(explorer: Explorer, port: int = 0) -> Iterator[int]:
    """Serve in a thread of its own while the block runs; the port."""
    listening = listen(port)
    server = server_on(explorer, listening)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


__all__ = ["HOST", "Explorer", "address", "listen", "server_on", "serving"]
