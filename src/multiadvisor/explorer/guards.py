"""Who may speak to the explorer: nobody but its own page, opened from the address that was printed.

Three guards stand before every handler, in this order. *Host*: the request names this server by its loopback address,
so that a foreign name that was made to point here (DNS rebinding) gets nowhere. *Origin*: it comes from this page, or
is a person opening it; no other site may send, embed or frame anything. *Token*: data and sockets need the secret of
this server, in a header that no foreign page can set; it is never in a cookie, which all ports of a machine share.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

SCHEME = "http"
PROTOCOL = "multiadvisor"  # of the socket; the token is offered as a second protocol, as sockets carry no headers
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_OWN_HEADERS = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class Keys:
    """The secret of this server, and tickets that are exchanged for it once.

    A ticket stands in the fragment of an address, which a browser may keep in its history; by then it is worthless.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._tickets: set[str] = set()

    def ticket(self) -> str:
        """A new one."""
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """The token, once."""
        for known in self._tickets:
            if secrets.compare_digest(known.encode(), ticket.encode()):
                self._tickets.discard(known)
                return self.token
        return None

    def knows(self, token: str) -> bool:
        """Whether this is the secret."""
        return secrets.compare_digest(self.token.encode(), token.encode())


class Guard:
    """An application behind the guards; what does not pass is answered here and reaches no handler."""

    def __init__(self, app: App, keys: Keys, hosts: set[str]) -> None:
        self.app, self.keys, self.hosts = app, keys, hosts
        self.guards = {"host": self._names_server, "origin": self._own, "token": self._knows_token}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Look at the request, then pass it on or turn it away."""
        fields: dict[str, str] = {}
        for raw, value in scope["headers"]:
            name = raw.decode("latin-1").lower()
            fields[name] = f"{fields[name]},{value.decode('latin-1')}" if name in fields else value.decode("latin-1")
        guard = self.stopped_by(scope, fields)
        if guard is None:
            await self.app(scope, receive, _with_headers(send))
            return
        text = _tunnel(self.hosts) if guard == "host" else "not for you\n"
        await _refuse(scope, receive, send, {"host": 421, "origin": 403, "token": 401}[guard], text)

    def stopped_by(self, scope: Scope, fields: dict[str, str]) -> str | None:
        """The first guard that does not let this request with these headers pass."""
        return next((name for name, passes in self.guards.items() if not passes(scope, fields)), None)

    def _names_server(self, scope: Scope, fields: dict[str, str]) -> bool:
        """Whether the server is called by one of its own names."""
        return fields.get("host") in self.hosts

    def _own(self, scope: Scope, fields: dict[str, str]) -> bool:
        """Whether the request comes from this page, from a program, or from a person who opens the page."""
        origin, site = fields.get("origin"), fields.get("sec-fetch-site")
        if origin is not None and origin not in {f"{SCHEME}://{host}" for host in self.hosts}:
            return False
        if scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD"):
            return origin is not None
        if site in (None, "same-origin", "none"):
            return True
        opened = fields.get("sec-fetch-mode") == "navigate" and fields.get("sec-fetch-dest") == "document"
        return opened and scope["path"] == "/"

    def _knows_token(self, scope: Scope, fields: dict[str, str]) -> bool:
        if scope["type"] == "websocket":
            offered = [one.strip() for one in fields.get("sec-websocket-protocol", "").split(",")]
            return len(offered) == 2 and offered[0] == PROTOCOL and self.keys.knows(offered[1])
        if not scope["path"].startswith("/api/") or scope["path"] == "/api/enter":
            return True  # the empty page, which holds nothing of anybody's
        kind, _, token = fields.get("authorization", "").partition(" ")
        return kind == "Bearer" and self.keys.knows(token)


def _with_headers(send: Any) -> Any:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *_OWN_HEADERS]}
        await send(message)

    return sending


def _tunnel(hosts: set[str]) -> str:
    """What to do where the page is asked for by another name: nearly always a tunnel on another port of one's own."""
    own = next(host for host in sorted(hosts) if host[0].isdigit())
    port = own.rpartition(":")[2]
    return (
        f"this page is served as {own} only, and was asked for by another name or port: through SSH give it the same "
        f"port on both sides, ssh -L {port}:127.0.0.1:{port} HOST, and open the address that the terminal shows; where "
        f"port {port} is taken on your side, start the explorer with another --port\n"
    )


async def _refuse(scope: Scope, receive: Any, send: Any, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_OWN_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
