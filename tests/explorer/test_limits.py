"""What a page may ask for: one long piece of work at a time, within limits. What is sent is packed."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import multiadvisor as mad
from multiadvisor.errors import BadInput
from multiadvisor.explorer import gallery, playing, server
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, serving
from patience import PATIENCE


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    library = Library(episodes=1)
    library.add_agent(mad.MultiAdvisor(mad.make("three-fruits")).learn(2_000, progress=False), "a")
    return Explorer(library)


@pytest.fixture(scope="module")
def port(explorer: Explorer) -> Iterator[int]:
    with serving(explorer) as number:
        yield number


def ask(explorer: Explorer, port: int, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("GET", path, headers={"authorization": f"Bearer {explorer.keys.token}", **headers})
        with connection.getresponse() as answer:
            return answer, answer.read()


def run_id(explorer: Explorer) -> str:
    return next(iter(explorer.library.entries))


def test_what_is_large_is_packed_for_whoever_can_unpack_it(explorer: Explorer, port: int) -> None:
    for path in (f"/api/runs/{run_id(explorer)}", "/api/runs", "/static/app.js"):
        plain, whole = ask(explorer, port, path, **{"accept-encoding": "identity"})
        packed, small = ask(explorer, port, path, **{"accept-encoding": "gzip"})
        assert plain.headers["content-encoding"] is None
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(small) == whole
        assert len(small) < len(whole)
        assert packed.headers["cache-control"] == "no-store"


def test_another_port_of_a_tunnel_is_told_what_to_do(explorer: Explorer, port: int) -> None:
    answer, told = ask(explorer, port, "/", host="localhost:1")
    assert answer.status == 421
    assert f"ssh -L {port}:127.0.0.1:{port} HOST" in told.decode()


def test_gamma_is_capped_where_solving_would_take_long(explorer: Explorer, port: int) -> None:
    answer, told = ask(explorer, port, "/api/gallery/three-fruits?planning=empathic&gamma=0.9999")
    assert answer.status == 400
    assert "choose it at most 0.999" in json.loads(told)["error"]
    assert ask(explorer, port, "/api/gallery/two-goal?planning=egocentric&gamma=0.999")[0].status == 200


def most_at_once(works: list[Callable[[], Any]], inside: Callable[[Callable[[], None]], None]) -> int:
    """How many of these were inside at the same time, where each would wait there for the others."""
    barrier, lock, now, most = threading.Barrier(len(works)), threading.Lock(), [0], [0]

    def enter() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait(0.3)  # all of them, unless some have to wait outside
        with lock:
            now[0] -= 1

    inside(enter)
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most[0]


def test_one_exhibit_is_solved_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def patch(enter: Callable[[], None]) -> None:
        monkeypatch.setattr(gallery, "_shown", lambda *_: enter())

    works = [lambda: gallery.exhibit("two-goal", "egocentric", 0.5, 0.0)] * 3
    assert most_at_once(works, patch) == 1


def test_one_what_if_is_played_at_a_time(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def patch(enter: Callable[[], None]) -> None:
        monkeypatch.setattr(server, "what_if", lambda *_, **__: enter())

    asked = {"do": "what-if", "run": run_id(explorer), "episode": 0, "step": 0, "actions": [0]}
    works = [lambda: explorer._do(asked, lambda share: None)] * 3
    assert most_at_once(works, patch) == 1


def test_a_what_if_tries_a_few_actions_and_stops_where_nobody_waits(explorer: Explorer) -> None:
    asked = {"do": "what-if", "run": run_id(explorer), "episode": 0, "step": 0, "actions": [0, 1, 2, 3, 0]}
    with pytest.raises(BadInput, match="5 actions were named to try: name 1 to 4"):
        explorer._do(asked, lambda share: None)

    def gone(share: float) -> None:
        raise BadInput("the page is gone")

    with pytest.raises(BadInput, match="the page is gone"):
        explorer._do({**asked, "actions": [0]}, gone)


def test_one_training_at_a_time(explorer: Explorer) -> None:
    asked = {"do": "retrain", "run": run_id(explorer), "weights": [1.0, 2.0, 1.0]}
    told: list[str] = []

    def tell(share: float) -> None:  # in the middle of the first
        if not told:
            with pytest.raises(BadInput) as refused:
                explorer._do(asked, tell)
            told.append(str(refused.value))

    name = explorer._do(asked, tell)["id"]
    assert told == ["another training is going on: wait for its end"]
    assert explorer.library.entry(name).agent.task.weights.tolist() == [1.0, 2.0, 1.0]


def test_a_page_asks_only_so_much_at_once(explorer: Explorer, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from websockets.sync.client import connect

    go_on = threading.Event()
    monkeypatch.setattr(server, "what_if", lambda *_, **__: {"waited": go_on.wait(PATIENCE)})
    asked = {"do": "what-if", "run": run_id(explorer), "episode": 0, "step": 0, "actions": [0]}
    host = f"127.0.0.1:{port}"
    protocols: Any = ["multiadvisor", explorer.keys.token]
    with connect(f"ws://{host}/api/socket", origin=f"http://{host}", subprotocols=protocols) as socket:
        for number in range(10):
            socket.send(json.dumps({"id": number, **asked}))
        for number in (8, 9):
            reply = json.loads(socket.recv(timeout=PATIENCE))
            assert reply == {"id": number, "error": "too much is asked at once: wait for an answer"}
        go_on.set()
        replies = [json.loads(socket.recv(timeout=PATIENCE)) for _ in range(8)]
    assert sorted(reply["id"] for reply in replies) == list(range(8))
    assert all(reply["result"] == {"waited": True} for reply in replies)


def test_weights_of_a_networks_own_advisors_are_those_of_its_task() -> None:
    task = mad.make("pac-boy").with_weights(ghosts=2.0)
    groups: Any = SimpleNamespace(task=task, advisors=(mad.Advisor("ghosts"), mad.Advisor("fruits")))
    assert playing.own_weights(groups, [3.0, 0.5]) == [6.0, 6.0, *[0.5] * 75]
    one: Any = SimpleNamespace(task=task, advisors=(mad.Advisor("reward"),))
    assert playing.own_weights(one, [2.0]) == [4.0, 4.0, *[2.0] * 75]
    same: Any = SimpleNamespace(task=task, advisors=(*task.advisors, mad.Advisor("correction")))
    assert playing.own_weights(same, [7.0] * 78) == [7.0] * 77
    assert playing.own_weights(groups, [1.0] * 5) == [1.0] * 5  # refused by whoever uses them
    assert playing.own_weights(groups, None) is None
