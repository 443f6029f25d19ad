"""Hostile pages, strangers on the same machine, and ways out of the folder: nothing reaches what it should not."""

import base64
import contextlib
import itertools
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from explorer.pages import DRAWN, site
from explorer.typed import ask
from multiadvisor.explorer.guards import Keys
from multiadvisor.explorer.library import Library
from patience import PATIENCE

pytestmark = pytest.mark.slow

# A page of another site that tries everything a browser lets it try.
ATTACK = (Path(__file__).parent / "hostile.html").read_text("utf-8")

# what a page that holds the address but not the secret could ask for
FROM_WITHIN = """(paths) => Promise.allSettled([
  ...paths.map((path) => fetch(path)),
  ...[[], ["multiadvisor", "guess"]].map((protocols) => new Promise((end) => {
    const socket = new WebSocket(`ws://${location.host}/api/socket`, protocols);
    socket.onopen = socket.onerror = socket.onclose = end;
  })),
])"""


@contextlib.contextmanager
def hostile_server(port):
    page = ATTACK.replace("PORT", str(port)).replace("SCHEME", "http").encode()

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def from_another_site(served):
    """What a page of another site, or of another port of this machine, reaches while the explorer is open."""
    with hostile_server(served.port) as port, served.tab() as own:
        for host in ("evil.test", "127.0.0.1"):
            served.explorer.reached.clear()
            page = own.context.new_page()
            page.goto(f"http://{host}:{port}/")
            page.wait_for_selector("body[data-done]", timeout=1000 * PATIENCE)
            page.close()
            if served.explorer.reached:
                break
    return list(served.explorer.reached)


def by_rebinding(served):
    """What a foreign name that was made to point here reaches."""
    context = served.browser.new_context()
    page = context.new_page()
    served.explorer.reached.clear()
    page.goto(f"http://rebind.test:{served.port}/")
    page.evaluate(FROM_WITHIN, ["/static/app.js", "/api/runs", "/api/enter"])
    context.close()
    return list(served.explorer.reached)


def by_a_stranger(served):
    """What another program or user of this machine reaches without the secret, the empty page aside."""
    served.explorer.reached.clear()
    for headers in (
        {},
        {"authorization": "Bearer guess"},
        {"authorization": served.explorer.keys.token},
        {"cookie": "token=x"},
    ):
        for path in ("/api/runs", "/api/export?runs=x", "/api/gallery/bridge"):
            ask(served.port, path, **headers)
    context = served.browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{served.port}/")
    page.evaluate(FROM_WITHIN, ["/api/runs"])
    context.close()
    return [path for path in served.explorer.reached if path.startswith("/api/")]


@pytest.fixture(scope="module")
def served(browser, agents):
    with site(browser, agents, episodes=1) as one:
        yield one


KNOCKED = {  # what must have been tried, and by which guard it was turned away
    from_another_site: {("origin", path) for path in ("/", "/static/app.js", "/api/runs", "/api/enter", "/api/socket")},
    by_rebinding: {("host", path) for path in ("/", "/static/app.js", "/api/runs", "/api/enter", "/api/socket")},
    by_a_stranger: {("token", path) for path in ("/api/runs", "/api/export", "/api/gallery/bridge")},
}


@pytest.mark.parametrize("attack", list(KNOCKED))
def test_no_hostile_request_reaches_a_handler(served, attack):
    served.explorer.refused.clear()
    assert attack(served) == []
    assert set(served.explorer.refused) >= KNOCKED[attack]


@pytest.mark.parametrize(
    ("guard", "attack"), [("origin", from_another_site), ("host", by_rebinding), ("token", by_a_stranger)]
)
def test_without_its_guard_each_attack_gets_through(browser, agents, guard, attack):
    with site(browser, agents, episodes=1, without=guard) as unguarded:
        assert attack(unguarded) != []


def test_it_listens_on_loopback_only(served):
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [line[1] for line in lines if line[3] == "0A" and int(line[1].split(":")[1], 16) == served.port]
    assert listening == [f"0100007F:{served.port:04X}"]


def test_every_answer_forbids_framing_sniffing_and_inline_code(served):
    for path in ("/", "/static/app.js", "/api/runs", "/nothing"):
        _, headers, _ = ask(served.port, path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_ticket_is_good_once():
    keys = Keys()
    ticket = keys.ticket()
    assert keys.redeem("guess") is None
    assert keys.redeem(ticket) == keys.token
    assert keys.redeem(ticket) is None
    assert not keys.knows(ticket)


def test_nonsense_on_the_socket_is_answered_with_a_sentence(served):
    from websockets.sync.client import connect

    name = next(iter(served.explorer.library.entries))
    good = {"id": 1, "do": "what-if", "run": name, "episode": 0, "step": 0, "action": 0}
    bad = [None, [], 7, "x", {}, {"do": "retrain"}, {"do": "attractors", "run": "../.."}]
    for key, values in {
        "do": ["", None, "exec", 3], "run": [None, 5, "x" * 1000, {"a": 1}], "episode": [-1, 9, "x", None, 1e99],
        "step": [-1, 10**9, None, "3; drop"], "action": [None, [], 99, -1, "x", [0] * 1000],
        "weights": [[], [1.0], "x", [None] * 77, ["nan"] * 77, [1e400] * 77],
    }.items():  # fmt: skip
        bad += [{**good, key: value} for value in values]
    bad += [{**good, "id": number} for number in ("\ud800", "x", [1], 1.5)]
    bad += [{**good, "weights": ["\udfff"] * 77}, {**good, "run": "\ud800"}, {**good, "do": "\ud800"}]
    texts = [json.dumps(one) for one in bad] + ["", "{", "[" * 5000, "\x00", '{"id": NaN}']
    texts += [b"", b"\x00\xff", json.dumps(good).encode()]
    host = f"127.0.0.1:{served.port}"
    with connect(
        f"ws://{host}/api/socket", origin=f"http://{host}", subprotocols=["multiadvisor", served.explorer.keys.token]
    ) as socket:
        for text in texts:
            socket.send(text)
            reply = json.loads(socket.recv(timeout=PATIENCE))
            assert set(reply) == {"id", "error"}, text
            assert "the explorer failed" not in reply["error"], text
        socket.send(json.dumps(good))
        while "share" in (reply := json.loads(socket.recv(timeout=PATIENCE))):  # how far it is
            assert 0 <= reply["share"] <= 1
        assert len(reply["result"]["actions"][0]["paths"]) == 20


# ---- out of the folder -----------------------------------------------------------------------------------------------
def traversals():
    """500 and more ways to write a path that leaves the folder."""
    ups = [
        "../", "..%2f", "..%2F", "%2e%2e/", "%2e%2e%2f", "..%5c", "..\\", "....//", "..;/", "%252e%252e%252f", ".%2e/",
        "..%c0%af", "..%00/", "%uff0e%uff0e/", "..//", "./../", "..%09/",
    ]  # fmt: skip
    targets = ["server.py", "planted.txt", "agent.json", "etc/passwd", "proc/self/environ"]
    starts = ["/static/", "/api/runs/", "/api/runs/ID/episodes/", "/api/gallery/", "/"]
    forms = [
        start + up * depth + target
        for start, up, depth, target in itertools.product(starts, ups, (1, 2, 7), targets[:2])
    ]
    for target in targets:
        absolute = f"/{target}"
        forms += [start + form for start in starts for form in (
            absolute, quote(absolute, safe=""), f"file://{absolute}", f"C:{absolute}", f"//{target}", f"{target}%00.js",
            base64.urlsafe_b64encode(absolute.encode()).decode(), f"~/{target}", f"\\\\{target}",
        )]  # fmt: skip
    return forms


def test_500_ways_out_of_the_folder_lead_nowhere(browser, tmp_path, agents):
    secret = "planted-5f1d"
    run = tmp_path / "runs" / "a"
    agents["jobs"].save(run, {"note": secret})
    (tmp_path / "planted.txt").write_text(secret)
    (run.parent / "planted.txt").write_text(secret)
    library = Library(episodes=1)
    library.add_folder(run, "a")
    forms = traversals()
    assert len(forms) >= 500
    forbidden = [secret.encode(), b"root:", b"class Explorer", os.fsencode(str(tmp_path)), b"PATH="]
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with site(browser, {}, library=library) as served:
            bearer = {"authorization": f"Bearer {served.explorer.keys.token}"}
            name = next(iter(library.entries))
            for form in forms:
                path = "".join(c if 32 < ord(c) < 127 else quote(c) for c in form.replace("ID", name))
                status, _, body = ask(served.port, path, **bearer)
                assert status in (400, 404), f"{path}: {status}"
                assert not any(word in body for word in forbidden), path
            assert ask(served.port, "/api/runs", **bearer)[0] == 200
            assert name not in str(run)
    finally:
        os.chdir(before)


# ---- nothing leaves the machine --------------------------------------------------------------------------------------
def test_the_page_asks_nobody_but_its_own_server(served):
    asked = set()
    context = served.browser.new_context()
    page = context.new_page()
    page.on("request", lambda request: asked.add(request.url))
    page.route(lambda url: not url.startswith(f"http://127.0.0.1:{served.port}/"), lambda route: route.abort())
    page.goto(served.address("attractors=exact"))
    page.wait_for_selector(DRAWN, state="attached")
    for key, view in (("2", "compare"), ("3", "agents"), ("4", "gallery"), ("5", "learning"), ("1", "episode")):
        page.keyboard.press(key)
        page.wait_for_selector(f'html[data-drawn^="{view} "]', state="attached")
    context.close()
    outside = {url for url in asked if not url.startswith((f"http://127.0.0.1:{served.port}/", "data:"))}
    assert outside == set()
    assert len(asked) > 20
