from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.util import FileWrapper

import flask
import httpx
import pytest
from openinference.instrumentation import suppress_tracing
from werkzeug.serving import make_server as make_werkzeug

import reenact
from reenact.boundary import databases
from reenact.boundary.question import question
from reenact.graph.verdict import judge
from reenact.integrations import wsgi
from reenact.replay.stubs import Stubs
from reenact.values import unit
from reenact.values.call import Returned, Value
from reenact.values.query import CONNECT, Query
from reenact.values.run import Run


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


service = flask.Flask(__name__)


@service.get("/health")
def health() -> str:
    return "ok"


@service.post("/items/<kind>")
def items(kind: str) -> dict[str, str]:
    return {"found": look_up(f"{kind} {flask.request.get_json()['item']}")}


@service.post("/streamed")
def streamed() -> flask.Response:
    item = flask.request.get_json()["item"]
    return flask.Response((f"data: {look_up(f'{item} {n}')}\n\n" for n in range(3)), mimetype="text/event-stream")


@service.post("/pooled")
def pooled() -> list[str]:
    item = flask.request.get_json()["item"]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(look_up, [f"{item} {n}" for n in range(3)]))


@service.post("/closing")
def closing() -> flask.Response:
    answer = flask.Response("ok")
    answer.call_on_close(lambda: look_up("closed"))
    return answer


@service.post("/broken")
def broken() -> str:
    raise LookupError(look_up("tea"))


post = partial(httpx.post, timeout=60)
held: list[databases.MadeConnection] = []
ASKED = ["SELECT 1"]


@service.post("/queried")
def queried() -> str:
    """Ask over a connection that a library holds for the thread."""
    if not held:
        query = Query(system="postgresql", operation=CONNECT, server="127.0.0.1:5432")
        databases.witness(query, lambda: 1, lambda _: {"db": "shop"})
        held.append(databases.MadeConnection(query, {"db": "shop"}))
    else:
        del ASKED[:-1]
    for text in ASKED:
        query = Query(system="postgresql", operation="query", text=text)
        databases.witness(query, lambda: 1, lambda one: {"results": [{"rows": [[one]]}]}, made=held[0])
    return "1"


def plain(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    write = start_response("201 Created", [("Content-Type", "text/plain")])
    write(b"written, ")
    lines = [environ["wsgi.input"].readline(int(environ["CONTENT_LENGTH"]))]
    return [look_up("tea").encode(), *lines]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def served(app: Any, kind: str = "werkzeug") -> Iterator[str]:
    """Serve an application on a thread; gives its address, for clients whose own requests are not recorded."""
    if kind == "werkzeug":
        server: Any = make_werkzeug("127.0.0.1", 0, app, threaded=True)
        server.daemon_threads = False  # its end waits for requests, which go on when the client has its answer
    else:
        server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with suppress_tracing():
        yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def recorded(folder: Path, work: Callable[[], object]) -> list[Run]:
    recorder = reenact.record(store=folder)
    try:
        work()
    finally:
        runs = recorder.stop()
    return sorted(runs, key=lambda run: run.started_ns)


def asked(run: Run) -> list[str]:
    """List what a run looked up."""
    return [node.call.request.arguments["item"] for node in run.nodes if node.kind == "TOOL"]  # type: ignore[union-attr,index,call-overload]


@pytest.mark.parametrize("kind", ["werkzeug", "wsgiref"])
def test_a_request_is_a_run_with_its_input_and_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("REENACT_USER_HEADER", "X-User-Id")

    def work() -> None:
        with served(service, kind) as url:
            reply = post(f"{url}/items/b%C3%BCcher?page=2", json={"item": "tea"}, headers={"x-user-id": "u-1"})
            assert reply.json() == {"found": "bücher tea is there"}

    (run,) = recorded(tmp_path, work)
    request, answer = unit.request_of(run), unit.answer_of(run)
    assert request is not None
    assert answer is not None
    assert (run.name, run.user) == ("POST /items/bücher", "u-1")
    assert (request.interface, request.path, request.query) == ("wsgi", "/items/bücher", "page=2")
    assert request.body == b'{"item":"tea"}'
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert b"tea is there" in (answer.body or b"")
    assert unit.app(run)["import"] == f"{__name__}:service"


def test_a_request_has_the_connection_that_an_earlier_one_made(tmp_path: Path) -> None:
    held.clear()

    def work() -> None:
        with served(service) as url:
            assert [post(f"{url}/queried").text for _ in range(3)] == ["1", "1", "1"]

    called = [[node.call.name for node in run.nodes if node.call.is_query] for run in recorded(tmp_path, work)]
    assert called == [["connect postgresql", "SELECT postgresql"]] * 3


def lost_of(run: Run) -> list[str]:
    return [reason.lost for reason in judge(run).reasons if reason.field == "connection"]


SETS_ZONE = Query(system="postgresql", operation="query", text="SET timezone = 'UTC'")


@pytest.mark.always
def test_what_an_earlier_request_asked_to_set_its_connection_up_is_kept_for_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.clear()
    monkeypatch.setattr(f"{__name__}.ASKED", [SETS_ZONE.text, "SELECT 1"])

    def work() -> None:
        with served(service) as url:
            assert [post(f"{url}/queried").text for _ in range(2)] == ["1", "1"]

    first, second = recorded(tmp_path, work)
    assert lost_of(second) == []
    assert Stubs([first]).ready(SETS_ZONE.call(), question(SETS_ZONE.call())) is None
    noted, answer = Stubs([second]).ready(SETS_ZONE.call(), question(SETS_ZONE.call())) or pytest.fail("no answer")
    assert answer == Returned(payload=Value(json={"results": [{"rows": [[1]]}]}))
    assert noted.is_handshake  # so that it is no call more than was recorded


def test_a_connection_that_an_earlier_request_set_up_in_a_transaction_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.clear()
    monkeypatch.setattr(f"{__name__}.ASKED", ["BEGIN", SETS_ZONE.text, "COMMIT", "SELECT 1"])

    def work() -> None:
        with served(service) as url:
            assert [post(f"{url}/queried").text for _ in range(2)] == ["1", "1"]

    _, second = recorded(tmp_path, work)
    assert lost_of(second) == [f"what was answered when another unit set the connection up: {SETS_ZONE.text}"]
    assert Stubs([second]).ready(SETS_ZONE.call(), question(SETS_ZONE.call())) is None


def test_a_request_in_which_nobody_is_called_is_no_run(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            assert httpx.get(f"{url}/health", timeout=30).text == "ok"

    assert recorded(tmp_path, work) == []


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("path", ["/items/x", "/streamed", "/pooled"])
def test_users_on_threads_each_have_a_run_of_their_own(tmp_path: Path, path: str) -> None:
    def work() -> None:
        with served(service) as url, ThreadPoolExecutor(20) as clients:

            def ask(n: int) -> str:
                with suppress_tracing():
                    return post(f"{url}{path}", json={"item": f"u{n}"}, timeout=30).text

            texts = list(clients.map(ask, range(50)))
        assert all(f"u{n}" in text for n, text in enumerate(texts))

    runs = recorded(tmp_path, work)
    assert len(runs) == 50
    assert {each.removeprefix("x ").split()[0] for run in runs for each in asked(run)} == {f"u{n}" for n in range(50)}
    assert all(len({each.removeprefix("x ").split()[0] for each in asked(run)}) == 1 for run in runs)
    assert len({tuple(sorted(node.lane for node in run.nodes)) for run in runs}) == 1, "lanes differ between users"


def test_what_is_called_while_the_answer_is_closed_belongs_to_the_request(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            post(f"{url}/closing")

    (run,) = recorded(tmp_path, work)
    assert asked(run) == ["closed"]
    assert (unit.answer_of(run) or pytest.fail("no answer")).body == b"ok"


def test_an_error_that_the_framework_answers_is_its_answer(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            assert post(f"{url}/broken").status_code == 500

    (run,) = recorded(tmp_path, work)
    assert (unit.answer_of(run) or pytest.fail("no answer")).status == 500


@pytest.mark.parametrize("kind", ["werkzeug", "wsgiref"])
def test_an_application_without_a_framework_is_cut_at_the_server(tmp_path: Path, kind: str) -> None:
    def work() -> None:
        with served(plain, kind) as url:
            assert post(url, content=b"a line\n").text == "written, tea is therea line\n"

    (run,) = recorded(tmp_path, work)
    request, answer = unit.request_of(run), unit.answer_of(run)
    assert request is not None
    assert answer is not None
    assert request.body == b"a line\n"
    assert (answer.status, answer.body) == (201, b"written, tea is therea line\n")


def environ(body: bytes = b"") -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "wsgi.input": io.BytesIO(body),
        "wsgi.file_wrapper": FileWrapper,
    }


def test_a_client_that_goes_away_is_noted_with_what_it_had(tmp_path: Path) -> None:
    def app(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [])
        for n in range(9):
            yield look_up(str(n)).encode()

    def work() -> None:
        pieces: Any = wsgi.Served(app)(environ(), lambda *_: None)
        assert [next(pieces), next(pieces)] == [b"0 is there", b"1 is there"]
        pieces.close()

    (run,) = recorded(tmp_path, work)
    request = unit.request_of(run)
    assert request is not None
    assert request.left_after == len(b"0 is there1 is there")
    assert asked(run) == ["0", "1"]


def test_a_file_is_handed_over_as_it_is(tmp_path: Path) -> None:
    file = FileWrapper(io.BytesIO(b"a picture"))

    def app(_: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        look_up("tea")
        start_response("200 OK", [])
        return file

    def work() -> None:
        assert wsgi.Served(app)(environ(), lambda *_: None) is file

    (run,) = recorded(tmp_path, work)
    assert asked(run) == ["tea"]


def test_what_an_application_dies_of_while_it_answers_ends_its_run(tmp_path: Path) -> None:
    def app(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [])
        yield look_up("tea").encode()
        raise LookupError("milk")

    def work() -> None:
        with pytest.raises(LookupError):
            b"".join(wsgi.Served(app)(environ(), lambda *_: None))

    (run,) = recorded(tmp_path, work)
    assert run.root is not None
    assert run.root.span.attributes["exception.type"] == "LookupError"


def test_the_input_reads_as_a_file_does(tmp_path: Path) -> None:
    body = b"one\ntwo\nthree\nfour\n"
    read: list[Any] = []

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        held = environ["wsgi.input"]
        read.extend((held.readline(), held.read(2), held.readlines(3), list(held), held.seekable()))
        look_up("tea")
        start_response("200 OK", [])
        return []

    (run,) = recorded(tmp_path, lambda: wsgi.Served(app)(environ(body), lambda *_: None))
    assert read == [b"one\n", b"tw", [b"o\n", b"three\n"], [b"four\n"], True]
    assert (unit.request_of(run) or pytest.fail("no request")).body == body
