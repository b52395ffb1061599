from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import BackgroundTasks, FastAPI, WebSocket
from fastapi.responses import StreamingResponse
from openinference.instrumentation import suppress_tracing
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

import reenact
from reenact.boundary import inbound
from reenact.graph.verdict import judge
from reenact.integrations import asgi
from reenact.values import unit
from reenact.values.run import Run

get = partial(httpx.get, timeout=60)
post = partial(httpx.post, timeout=60)

Scope = MutableMapping[str, Any]


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


@reenact.tool
async def look_up_later(item: str) -> str:
    await asyncio.sleep(0.005)
    return f"{item} is there"


service = FastAPI()
late: list[asyncio.Task[str]] = []


@service.get("/health")
async def health() -> str:
    return "ok"


@service.post("/items/{kind}")
async def items(kind: str, wanted: dict[str, str]) -> dict[str, str]:
    return {"found": await look_up_later(f"{kind} {wanted['item']}")}


@service.post("/threaded")
def threaded(wanted: dict[str, str]) -> dict[str, str]:
    return {"found": look_up(wanted["item"])}


@service.post("/gathered")
async def gathered(wanted: dict[str, str]) -> list[str]:
    return await asyncio.gather(*(look_up_later(f"{wanted['item']} {n}") for n in range(3)))


@service.post("/streamed")
async def streamed(wanted: dict[str, str]) -> StreamingResponse:
    async def words() -> AsyncIterator[str]:
        for n in range(3):
            found = await look_up_later(f"{wanted['item']} {n}")
            yield f"data: {found}\n\n"

    return StreamingResponse(words(), media_type="text/event-stream")


@service.post("/background")
async def background(wanted: dict[str, str], tasks: BackgroundTasks) -> str:
    tasks.add_task(look_up, wanted["item"])
    return "later"


@service.post("/accepted", status_code=202)
async def accepted(wanted: dict[str, str]) -> str:
    async def work() -> str:
        await asyncio.sleep(0.05)
        return look_up(wanted["item"])

    late.append(asyncio.create_task(work()))
    return "accepted"


@service.post("/named")
async def named(wanted: dict[str, str]) -> str:
    with reenact.run("support", user=wanted["item"], session="s-1", input={"asked": 1}):
        look_up("a")
    return look_up("b")


@service.post("/broken")
async def broken(wanted: dict[str, str]) -> str:
    raise LookupError(look_up(wanted["item"]))


@service.websocket("/socket")
async def socket(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(look_up(await websocket.receive_text()))
    await websocket.close()


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on a thread; gives its address, for clients whose own requests are not recorded."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with suppress_tracing():
        yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


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


def test_a_request_is_a_run_with_its_input_and_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_USER_HEADER", "X-User-Id")
    monkeypatch.setenv("REENACT_SESSION_HEADER", "x-conversation")
    headers = {"x-user-id": "u-17", "x-conversation": "c-2", "x-odd": "1", "authorization": "Bearer " + "s3cret" * 4}
    headers |= {"x-odd-token": "2", "accept-encoding": "gzip"}

    def work() -> None:
        with served(service) as url:
            reply = post(f"{url}/items/b%C3%BCcher?page=2", json={"item": "tea"}, headers=headers)
            assert reply.json() == {"found": "bücher tea is there"}

    (run,) = recorded(tmp_path, work)
    assert (run.name, run.user, run.session) == ("POST /items/{kind}", "u-17", "c-2")
    request = unit.request_of(run)
    assert request is not None
    assert (request.method, request.path, request.query) == ("POST", "/items/bücher", "page=2")
    assert request.body == b'{"item":"tea"}'
    kept = dict(request.headers)
    assert kept["x-user-id"] == "u-17"
    assert "s3cret" not in kept["authorization"]
    assert "REDACTED_" in kept["authorization"]
    inbound = unit.inbound(run)
    assert inbound is not None
    assert (kept["x-odd"], kept["accept-encoding"], kept["content-length"]) == ("1", "gzip", "14")
    assert inbound["left_out"] == ["x-odd-token"]
    answer = unit.answer_of(run)
    assert answer is not None
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert json.loads(answer.body or b"") == {"found": "bücher tea is there"}
    assert unit.app(run)["import"] == f"{__name__}:service"
    assert run.root is not None
    assert [node.parent for node in run.nodes] == [None, run.root.id]


def test_a_request_in_which_nobody_is_called_is_no_run(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            assert get(f"{url}/health").json() == "ok"
            assert get(f"{url}/nowhere").status_code == 404

    assert recorded(tmp_path, work) == []


@pytest.mark.slow
@pytest.mark.sample(5)
@pytest.mark.parametrize("path", ["/items/x", "/threaded", "/gathered", "/streamed", "/background"])
def test_fifty_users_at_once_each_have_a_run_of_their_own(tmp_path: Path, path: str) -> None:
    async def users(url: str) -> list[str]:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            replies = await asyncio.gather(*(client.post(path, json={"item": f"u{n}"}) for n in range(50)))
        return [reply.text for reply in replies]

    def work() -> None:
        with served(service) as url:
            texts = asyncio.run(users(url))
            assert path == "/background" or all(f"u{n}" in text for n, text in enumerate(texts))

    runs = recorded(tmp_path, work)
    assert len(runs) == 50
    seen: set[str] = set()
    for run in runs:
        items = {each.removeprefix("x ").split()[0] for each in asked(run)}
        assert len(items) == 1, "a run holds calls of somebody else's"
        seen |= items
        assert items == {json.loads((unit.request_of(run) or pytest.fail("no request")).body or b"")["item"]}
    assert len(seen) == 50
    assert len({tuple(sorted(node.lane for node in run.nodes)) for run in runs}) == 1, "lanes differ between users"


def test_the_answer_of_a_stream_is_kept_whole(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            post(f"{url}/streamed", json={"item": "tea"})

    (run,) = recorded(tmp_path, work)
    answer = unit.answer_of(run)
    assert answer is not None
    assert answer.body == b"".join(f"data: tea {n} is there\n\n".encode() for n in range(3))


def test_a_task_that_outlives_its_request_belongs_to_it(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            assert post(f"{url}/accepted", json={"item": "tea"}).status_code == 202
            time.sleep(0.2)

    (run,) = recorded(tmp_path, work)
    assert asked(run) == ["tea"]
    answer = unit.answer_of(run)
    assert answer is not None
    assert (answer.status, answer.body) == (202, b'"accepted"')


def test_a_unit_of_work_inside_a_request_is_that_request(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            post(f"{url}/named", json={"item": "u-3"})

    (run,) = recorded(tmp_path, work)
    assert (run.name, run.user, run.session) == ("support", "u-3", "s-1")
    assert asked(run) == ["a", "b"]
    assert unit.request_of(run) is not None


def test_what_an_application_dies_of_ends_its_run(tmp_path: Path) -> None:
    def work() -> None:
        with served(service) as url:
            assert post(f"{url}/broken", json={"item": "tea"}).status_code == 500

    (run,) = recorded(tmp_path, work)
    assert run.root is not None
    attributes = run.root.span.attributes
    assert (attributes["reenact.outcome"], attributes["exception.type"]) == ("raised", "LookupError")
    assert attributes["http.response.status_code"] == 500


def test_an_application_within_another_is_one_run(tmp_path: Path) -> None:
    async def outer(request: Any) -> JSONResponse:
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://inner") as client:
            reply = await client.post("/items/x", json={"item": request.query_params["item"]})
        return JSONResponse(reply.json())

    app = Starlette(routes=[Mount("/inner", service), Route("/outer", outer)])

    def work() -> None:
        with served(app) as url:
            assert post(f"{url}/inner/items/x", json={"item": "tea"}).json() == {"found": "x tea is there"}
            assert get(f"{url}/outer?item=milk").json() == {"found": "x milk is there"}

    runs = recorded(tmp_path, work)
    assert [asked(run) for run in runs] == [["x tea"], ["x milk"]]
    requests = [unit.request_of(run) for run in runs]
    assert [request.path for request in requests if request] == ["/inner/items/x", "/outer"]
    assert [unit.app(run)["import"] for run in runs] == [None, None]  # it is a local variable


class _Server:
    """Takes an answer, as a server does: it is no function of the agent's own."""

    def __init__(self) -> None:
        self.units: list[object] = []

    async def __call__(self, message: Scope) -> None:
        assert message["type"].startswith("http.response.")
        self.units.append(inbound.current())


@pytest.mark.parametrize("owned", [False, True], ids=["a server", "a middleware of the agent's own"])
def test_what_a_server_does_with_an_answer_is_none_of_the_unit(tmp_path: Path, *, owned: bool) -> None:
    server = _Server()

    async def passed_on(message: Scope) -> None:
        await server(message)

    async def receive() -> Scope:
        return {"type": "http.request", "body": b""}

    scope: Scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    with reenact.record(store=tmp_path):
        asyncio.run(asgi.serve(plain, scope, receive, passed_on if owned else server))
    assert [unit is not None for unit in server.units] == [owned, owned]


def test_an_application_called_by_a_script_s_run_belongs_to_it(tmp_path: Path) -> None:
    def work() -> None:
        with reenact.run("script"):
            TestClient(service).post("/items/x", json={"item": "tea"})
        TestClient(service).post("/items/x", json={"item": "milk"})

    runs = recorded(tmp_path, work)
    assert [(run.name, asked(run)) for run in runs] == [("script", ["x tea"]), ("POST /items/{kind}", ["x milk"])]


def test_what_a_websocket_calls_belongs_to_the_process(tmp_path: Path) -> None:
    def work() -> None:
        with TestClient(service).websocket_connect("/socket") as connected:
            connected.send_text("tea")
            assert connected.receive_text() == "tea is there"

    (run,) = recorded(tmp_path, work)
    assert unit.inbound(run) is None
    assert asked(run) == ["tea"]


async def plain(scope: Scope, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": look_up("tea").encode()})


def test_an_application_without_a_framework_is_cut_at_the_server(tmp_path: Path) -> None:
    def work() -> None:
        with served(plain) as url:
            assert post(url, content=b"\xff\x00").text == "tea is there"

    (run,) = recorded(tmp_path, work)
    request = unit.request_of(run)
    assert request is not None
    assert request.body == b"\xff\x00"
    assert unit.app(run)["import"] == f"{__name__}:plain"


async def driven(
    app: Any, body: list[bytes], sent: list[MutableMapping[str, Any]], *, gone_after: int | None = None
) -> None:
    """Serve one request by hand; the client goes away after so many messages."""
    pieces, over = iter(body), asyncio.Event()

    async def receive() -> MutableMapping[str, Any]:
        piece = next(pieces, None)
        if piece is not None:
            return {"type": "http.request", "body": piece, "more_body": piece is not body[-1]}
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)
        if len(sent) == gone_after:
            over.set()
            await asyncio.sleep(0.01)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/streamed", "headers": headers, "query_string": b""}
    await asgi.Served(app)({"asgi": {"version": "3.0", "spec_version": "2.3"}, **scope}, receive, send)


def test_a_client_that_goes_away_is_noted_with_what_it_had(tmp_path: Path) -> None:
    sent: list[MutableMapping[str, Any]] = []
    (run,) = recorded(tmp_path, lambda: asyncio.run(driven(service, [b'{"item": "tea"}'], sent, gone_after=3)))
    request, answer = unit.request_of(run), unit.answer_of(run)
    assert request is not None
    assert answer is not None
    assert answer.body == b"data: tea 0 is there\n\ndata: tea 1 is there\n\n"
    assert request.left_after == len(answer.body)
    assert request.left_at is not None


def test_a_body_that_comes_in_pieces_is_kept_whole(tmp_path: Path) -> None:
    sent: list[MutableMapping[str, Any]] = []
    (run,) = recorded(tmp_path, lambda: asyncio.run(driven(service, [b'{"item"', b': "te', b'a"}'], sent)))
    assert (unit.request_of(run) or pytest.fail("no request")).body == b'{"item": "tea"}'


def test_what_is_read_after_the_first_call_is_kept_too(tmp_path: Path) -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        del scope
        look_up("before")
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})

    (run,) = recorded(tmp_path, lambda: asyncio.run(driven(app, [b"on", b"e"], [])))
    assert (unit.request_of(run) or pytest.fail("no request")).body == b"one"


def test_a_request_begun_in_the_context_of_another_is_its_own(tmp_path: Path) -> None:
    """Servers begin a pipelined request while they send the answer before it."""
    pending: list[asyncio.Task[None]] = []

    async def app(_scope: Scope, _receive: Any, send: Any) -> None:
        look_up("one")
        if not pending:
            again = driven(app, [b""], [])
            pending.append(asyncio.create_task(again, context=contextvars.copy_context()))
        await send({"type": "http.response.start", "status": 204, "headers": []})

    async def both() -> None:
        await driven(app, [b""], [])
        await pending[0]

    assert [asked(run) for run in recorded(tmp_path, lambda: asyncio.run(both()))] == [["one"], ["one"]]


def test_a_task_that_outlives_its_request_may_work_for_later_ones_and_that_is_said(tmp_path: Path) -> None:
    """The queue of a web framework, begun by the first request, does what every request hands over."""
    jobs: list[tuple[asyncio.Queue[str], asyncio.Task[None]]] = []

    async def work(queue: asyncio.Queue[str]) -> None:
        while (item := await queue.get()) != "over":
            look_up(item)

    async def app(_scope: Scope, _receive: Any, send: Any) -> None:
        if not jobs:
            queue = asyncio.Queue[str]()
            jobs.append((queue, asyncio.create_task(work(queue))))
        look_up("the request")
        jobs[0][0].put_nowait("its job")
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await asyncio.sleep(0)

    async def requests(count: int) -> None:
        jobs.clear()
        for _ in range(count):
            await driven(app, [b""], [])
        jobs[0][0].put_nowait("over")
        await jobs[0][1]

    (alone,) = recorded(tmp_path / "one", lambda: asyncio.run(requests(1)))
    first, *_ = recorded(tmp_path / "three", lambda: asyncio.run(requests(3)))
    assert asked(alone) == ["the request", "its job"]
    assert "unit" not in [reason.field for reason in judge(alone).reasons]
    assert asked(first) == ["the request", "its job", "its job", "its job"]
    assert [reason.call for reason in judge(first).reasons if reason.field == "unit"] == [
        "tool look_up #4",
        "tool look_up #5",
    ]


def test_too_large_a_body_is_let_go_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reenact.boundary.web.LARGEST_BODY", 10)

    (run,) = recorded(tmp_path, lambda: asyncio.run(driven(service, [b'{"item": "tea"}'], [])))
    assert (unit.request_of(run) or pytest.fail("no request")).body is None
    assert (unit.answer_of(run) or pytest.fail("no answer")).body is None


def test_without_a_recorder_nothing_stands_in_between() -> None:
    seen: list[object] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        del scope
        seen.extend((receive, send))

    async def receive() -> MutableMapping[str, Any]:
        return {}

    async def send(_: MutableMapping[str, Any]) -> None: ...

    asyncio.run(asgi.Served(app)({"type": "http"}, receive, send))
    assert seen == [receive, send]


def test_start_up_calls_belong_to_the_process(tmp_path: Path) -> None:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        look_up("start")
        yield

    app = FastAPI(lifespan=lifespan)
    app.post("/x")(items)

    def work() -> None:
        with served(app) as url:
            post(f"{url}/x?kind=y", json={"item": "tea"})

    process, request = recorded(tmp_path, work)
    assert (asked(process), unit.inbound(process)) == (["start"], None)
    assert asked(request) == ["y tea"]
