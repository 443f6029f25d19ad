"""What a page may ask for: one long piece of work at a time, within limits. What is sent is packed."""

import contextlib
import gzip
import json
import threading
from types import SimpleNamespace

import pytest

import multiadvisor as mad
from explorer.typed import ask
from multiadvisor.core.aggregator import aggregator_of
from multiadvisor.core.learned import TABLES
from multiadvisor.errors import BadInput
from multiadvisor.explorer import gallery, questions, server
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, serving
from patience import PATIENCE


@pytest.fixture(scope="module")
def explorer():
    library = Library(episodes=1)
    library.add_agent(mad.MultiAdvisor(mad.make("three-fruits")).learn(2_000, progress=False), "a")
    return Explorer(library)


@pytest.fixture(scope="module")
def port(explorer):
    with serving(explorer) as number:
        yield number


@pytest.fixture
def bearer(explorer):
    return {"authorization": f"Bearer {explorer.keys.token}"}


def run_id(explorer):
    return next(iter(explorer.library.entries))


def test_what_is_large_is_packed_for_whoever_can_unpack_it(explorer, port, bearer):
    for path in (f"/api/runs/{run_id(explorer)}", "/api/runs", "/static/app.js"):
        _, plain, whole = ask(port, path, **bearer)
        _, packed, small = ask(port, path, **bearer, **{"accept-encoding": "gzip"})
        assert plain["content-encoding"] is None
        assert packed["content-encoding"] == "gzip"
        assert gzip.decompress(small) == whole
        assert len(small) < len(whole)
        assert packed["cache-control"] == "no-store"


def test_another_port_of_a_tunnel_is_told_what_to_do(port):
    status, _, told = ask(port, "/", host="localhost:1")
    assert status == 421
    assert f"ssh -L {port}:127.0.0.1:{port} HOST" in told.decode()


def test_gamma_is_capped_where_solving_would_take_long(port, bearer):
    status, _, told = ask(port, "/api/gallery/three-fruits?planning=empathic&gamma=0.9999", **bearer)
    assert status == 400
    assert "choose it at most 0.999" in json.loads(told)["error"]
    assert ask(port, "/api/gallery/two-goal?planning=egocentric&gamma=0.999", **bearer)[0] == 200


def most_at_once(works, inside):
    """How many of these were inside at the same time, where each would wait there for the others."""
    barrier, lock, now, most = threading.Barrier(len(works)), threading.Lock(), [0], [0]

    def enter():
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


@pytest.mark.parametrize("what", ["exhibit", "what-if"])
def test_one_long_piece_of_work_is_done_at_a_time(explorer, monkeypatch, what):
    def patch(enter):
        place, name = {"exhibit": (gallery, "_shown"), "what-if": (server, "what_if")}[what]
        monkeypatch.setattr(place, name, lambda *_, **__: enter() or {"actions": []})

    asked = {"do": "what-if", "run": run_id(explorer), "episode": 0, "step": 0, "action": 0}
    work = {
        "exhibit": lambda: gallery.exhibit("two-goal", "egocentric", 0.5, 0.0),
        "what-if": lambda: explorer._do(asked, lambda share: None),
    }[what]
    assert most_at_once([work] * 3, patch) == 1


def test_a_what_if_tries_an_action_and_stops_where_nobody_waits(explorer):
    asked = {"do": "what-if", "run": run_id(explorer), "episode": 0, "step": 0, "action": 7}
    with pytest.raises(BadInput, match="action 7 is not among the"):
        explorer._do(asked, lambda share: None)

    def gone(share):
        raise BadInput("the page is gone")

    with pytest.raises(BadInput, match="the page is gone"):
        explorer._do({**asked, "action": 0}, gone)


@pytest.mark.parametrize("do", ["explain", "what-if", "preview", "retrain", "attractors"])
def test_weights_are_one_number_for_each_advisor(explorer, do):
    asked = {"do": do, "run": run_id(explorer), "episode": 0, "step": 0, "action": 0}
    for weights, told in (([1.0] * 5, "5 weights were given for 3 advisors"), ([1.0, None, 1.0], "is not a number")):
        with pytest.raises(BadInput, match=told):
            explorer._do({**asked, "weights": weights}, lambda share: None)


def test_one_training_at_a_time(explorer):
    asked = {"do": "retrain", "run": run_id(explorer), "weights": [1.0, 2.0, 1.0]}
    told = []

    def tell(share):  # in the middle of the first
        if not told:
            with pytest.raises(BadInput) as refused:
                explorer._do(asked, tell)
            told.append(str(refused.value))

    name = explorer._do(asked, tell)["id"]
    assert told == ["another training is going on: wait for its end"]
    assert explorer.library.entry(name).agent.task.weights.tolist() == [1.0, 2.0, 1.0]


def test_a_page_asks_only_so_much_at_once(explorer, port, monkeypatch):
    from websockets.sync.client import connect

    go_on = threading.Event()
    monkeypatch.setattr(server, "what_if", lambda *_, **__: {"waited": go_on.wait(PATIENCE), "actions": []})
    asked = {"do": "what-if", "run": run_id(explorer), "episode": 0, "step": 0, "action": 0}
    host = f"127.0.0.1:{port}"
    protocols = ["multiadvisor", explorer.keys.token]
    with connect(f"ws://{host}/api/socket", origin=f"http://{host}", subprotocols=protocols) as socket:
        for number in range(10):
            socket.send(json.dumps({"id": number, **asked}))
        for number in (8, 9):
            reply = json.loads(socket.recv(timeout=PATIENCE))
            assert reply == {"id": number, "error": "too much is asked at once: wait for an answer"}
        go_on.set()
        replies = [json.loads(socket.recv(timeout=PATIENCE)) for _ in range(8)]
    assert sorted(reply["id"] for reply in replies) == list(range(8))
    assert all(reply["result"]["waited"] for reply in replies)


def test_weights_of_a_networks_own_advisors_are_those_of_its_task():
    task = mad.make("pac-boy").with_weights(ghosts=2.0)
    plain, corrected = aggregator_of(task, "sum"), aggregator_of(task, "correction", TABLES)
    many = tuple(mad.Advisor(name) for name in (*task.names, "correction"))
    for aggregator, advisors, weights, own in (
        (plain, [mad.Advisor("ghosts"), mad.Advisor("fruits")], [3.0, 0.5], [6.0, 6.0, *[0.5] * 75]),
        (plain, [mad.Advisor("reward")], [2.0], [4.0, 4.0, *[2.0] * 75]),
        (corrected, many, [7.0] * 78, [7.0] * 77),
        (corrected, many, None, task.weights.tolist()),
    ):
        agent = SimpleNamespace(task=task, aggregator=aggregator, advisors=advisors)
        assert questions.reweighted(agent, weights).weights.tolist() == own
