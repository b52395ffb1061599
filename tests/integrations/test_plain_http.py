"""HTTP that no declared boundary covers, through every client library: recorded once, answered as that library does."""

from __future__ import annotations

import asyncio
import functools
import http.client
import importlib
import io
import json
import re
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests
import urllib3
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

import reenact
from fetching import CLIENTS, attempted, by_requests, by_urllib
from held import Did, Held
from outside import HALF, Outside, closed_port
from reenact.boundary.reading import reply_data
from reenact.errors import Miss, SideEffectRefused
from reenact.graph.verdict import judge
from reenact.integrations import aiohttp_client, http_client, httpx_transports, urllib3_pools
from reenact.values.call import CallKind, Raised, Returned, Streamed
from reenact.values.run import Grade, Node

pytestmark = pytest.mark.sample(5)

PATHS = (
    "ticket?a=1",
    "nowhere",
    "half",
    "half/zipped",
    "moved",
    "zipped",
    "zipped/pieces",
    "pieces",
    "cut/pieces",
    "no/end",
    "old",
    "large",
    "bytes",
    "hangs/up",
    "slow",
    "slow/body",
)


AS_IT_COMES = ("half", "pieces", "cut/pieces", "no/end", "slow/body")
"""What a client that takes a body in pieces, or in an event loop, may see otherwise than its library's plainest one."""
PLAINEST = ("requests", "urllib3", "urllib", "http.client", "httpx", "httpx2", "aiohttp")
"""One client of each library."""
IN_ITS_OWN_WAY = ("requests-pieces", "httpx-async")
"""Of the other clients those that take a body as no client of another library here does."""


@dataclass(frozen=True)
class Turn:
    """A client, and what it asks for in one recording."""

    client: str
    paths: tuple[str, ...]
    slow: bool = False

    def __str__(self) -> str:
        return (
            f"{self.client}{', the rest' if len(self.paths) > len(AS_IT_COMES) and self.client not in PLAINEST else ''}"
        )

    @property
    def marks(self) -> tuple[pytest.MarkDecorator, ...]:
        """The marks of the tests of this turn."""
        return (pytest.mark.slow,) if self.slow else ()


def turns() -> Iterator[Turn]:
    """Divide clients and paths: each library asks for every path, its other clients for what comes in pieces."""
    whole = (*PATHS, "dead")
    for client in CLIENTS:
        some = client in PLAINEST or client in IN_ITS_OWN_WAY
        yield Turn(client, whole if client in PLAINEST else AS_IT_COMES, slow=not some)
        if client not in PLAINEST:
            yield Turn(client, tuple(path for path in whole if path not in AS_IT_COMES), slow=True)


TURNS = list(turns())
each_turn = pytest.mark.parametrize("turn", [pytest.param(turn, marks=turn.marks, id=str(turn)) for turn in TURNS])
each_path = pytest.mark.parametrize(
    ("turn", "path"),
    [pytest.param(turn, path, marks=turn.marks, id=f"{turn}-{path}") for turn in TURNS for path in turn.paths],
)


@dataclass
class Seen:
    """What one client saw of the paths of a turn: without us, recorded, replayed."""

    bare: dict[str, Any]
    did: Did
    again: Did
    asked: Counter[str] = field(default_factory=Counter[str])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Turn], Seen]:
    return functools.cache(lambda turn: taken(turn, tmp_path_factory.mktemp("plain")))


def taken(turn: Turn, folder: Path) -> Seen:
    """Take a turn bare, recorded and replayed."""
    get, held = CLIENTS[turn.client], Held(folder)
    with Outside() as outside:
        dead = f"http://127.0.0.1:{closed_port()}/dead"
        urls = {path: dead if path == "dead" else f"{outside.url}/{path}" for path in turn.paths}

        def work() -> dict[str, Any]:
            # The slow ones are waited for together, but for aiohttp, whose own clock runs in a replay as well.
            with ThreadPoolExecutor(1 if "aiohttp" in turn.client else len(urls)) as pool:
                found = {path: pool.submit(attempted, lambda url=url: get(url)) for path, url in urls.items()}
                return {path: future.result() for path, future in found.items()}

        bare = work()
        outside.asked.clear()
        did = held.record(work)
        asked = outside.asked.copy()
    return Seen(bare, did, held.replay(did, work), asked)


@pytest.mark.sample(40)
@each_path
def test_the_agent_sees_in_a_recording_and_a_replay_what_it_sees_without(
    seen: Callable[[Turn], Seen], turn: Turn, path: str
) -> None:
    took = seen(turn)
    assert took.did.value[path] == took.again.value[path]
    assert steady(took.did.value[path]) == steady(took.bare[path])


def steady(value: Any) -> str:
    """Leave out numbers, which the outside world draws anew, and how a body fell into pieces in time."""
    joined = b"".join(value) if isinstance(value, list) and all(isinstance(each, bytes) for each in value) else value
    return re.sub(r"\d+|[A-Z][a-z]{2}, \S+ [A-Z][a-z]{2}", "#", repr(joined))


@each_turn
def test_a_replay_is_the_same_and_one_request_is_one_call(seen: Callable[[Turn], Seen], turn: Turn) -> None:
    took = seen(turn)
    assert took.again.result is not None
    assert took.again.result.result == "same"
    calls = [node for node in took.did.calls if not node.call.request.url.endswith("/dead")]
    assert Counter(f"{node.call.request.method} {path_of(node)}" for node in calls) == took.asked
    assert all(node.kind is CallKind.UNKNOWN and node.call.request.shape == "http" for node in took.did.calls)


def path_of(node: Node) -> str:
    return "/" + node.call.request.url.removeprefix("http://").partition("/")[2]


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def outside() -> Iterator[Outside]:
    with Outside() as standing:
        yield standing


def test_what_is_written_down_of_a_reply(held: Held, outside: Outside) -> None:
    did = held.record(lambda: [requests.get(f"{outside.url}/{path}", timeout=5) for path in ("nowhere", "moved")])
    missing, moved, ticket = did.calls
    assert isinstance(missing.outcome, Returned)
    assert missing.outcome.payload.status == 404
    assert missing.outcome.payload.body.data == b'{"error": "nothing here"}'
    assert {("Content-Length", "25"), (":reason", "Nothing Here")} <= set(missing.outcome.payload.headers)
    assert missing.label == "http GET 127.0.0.1 #2"
    assert {name.lower() for name, _ in moved.outcome.payload.headers} >= {"location", "server", "date"}
    cookies = [name for name, _ in moved.outcome.payload.headers if "cookie" in name.lower()]
    assert cookies == [":Set-Cookie"]  # under which the gate knows it
    assert ("X-Total-Count", "41") in ticket.outcome.payload.headers


def test_a_reply_that_breaks_off_is_kept_as_far_as_it_came(held: Held, outside: Outside) -> None:
    did = held.record(lambda: attempted(lambda: requests.get(f"{outside.url}/half", timeout=5)))
    (half,) = did.calls
    assert isinstance(half.outcome, Streamed)
    assert half.outcome.status == 429
    assert ("Retry-After", "0") in half.outcome.headers
    assert reply_data(half) == HALF
    assert "IncompleteRead(32 bytes read, 368 more expected)" in did.value[1]


@pytest.mark.parametrize("library", ["httpx", "httpx2", "requests", "urllib"])
def test_failures_are_the_library_s_own(held: Held, library: str) -> None:
    url = f"http://127.0.0.1:{closed_port()}/"
    did = held.record(lambda: attempted(lambda: CLIENTS[library](url)))
    assert all(isinstance(node.outcome, Raised) for node in did.calls)
    assert did.value[0].startswith({"urllib": "urllib.error.URLError"}.get(library, f"{library}."))


# requests of other kinds


def test_requests_with_bodies_of_every_kind(held: Held, outside: Outside) -> None:
    def work() -> list[Any]:
        at = f"{outside.url}/echo"
        file = io.BytesIO(b"from a file")
        file.read(5)
        session = requests.Session()
        got: list[Any] = []
        session.hooks["response"].append(lambda reply, **_: got.append(reply.status_code))
        return [
            session.post(at, json={"a": [1, None]}, timeout=5).json(),
            session.put(at, data="text ü".encode(), timeout=5).json(),
            session.post(at, data={"form": "1"}, timeout=5).json(),
            session.post(at, data=file, timeout=5).json(),
            session.post(at, files={"f": ("a.txt", b"content")}, timeout=5).json()["at"],
            importlib.import_module("httpx").post(at, files={"f": io.BytesIO(b"content")}).json()["at"],
            json.load(urllib.request.urlopen(urllib.request.Request(at, data=b"\xff\x00", method="DELETE"), timeout=5)),
            asyncio.run(posted(at)),
            got,
        ]

    async def posted(at: str) -> list[Any]:
        form = aiohttp.FormData()
        form.add_field("f", b"content", filename="a.txt")
        async with aiohttp.ClientSession() as session:
            got: list[Any] = []
            for given in ({"json": {"b": 2}}, {"data": {"c": "3"}}, {"data": form}, {"data": io.BytesIO(b"file")}):
                async with session.post(at, **given) as reply:
                    got.append((await reply.json())["at"])
            return got

    did = held.record(work)
    assert did.error is None
    assert did.value[3]["got"] == "a file"
    assert sum(outside.asked.values()) == len(did.calls) == 11
    outside.shutdown()
    again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert again.result.result == "same"


def test_each_attempt_of_a_retry_is_a_call(held: Held, outside: Outside) -> None:
    def work() -> Any:
        session = requests.Session()
        retries = urllib3.Retry(5, status_forcelist=[503], backoff_factor=0)
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        reply = session.get(f"{outside.url}/busy", timeout=5)
        return reply.json(), [each.status for each in reply.raw.retries.history]

    did = held.record(work)
    assert did.value == ({"tries": 3}, [503, 503])
    assert [node.outcome.payload.status for node in did.calls if isinstance(node.outcome, Returned)][-1] == 200
    assert len(did.calls) == 3
    assert held.replay(did, work).value == did.value


def test_connections_that_are_used_again(held: Held, outside: Outside) -> None:
    def work() -> Any:
        connection = http.client.HTTPConnection(outside.url.removeprefix("http://"), timeout=5)
        got: list[Any] = []
        for method, path in (("HEAD", "/large"), ("GET", "/ticket"), ("GET", "/pieces"), ("HEAD", "/zipped")):
            connection.request(method, path)
            reply = connection.getresponse()
            got.append((reply.status, reply.getheader("content-length"), reply.read()))
        pool = urllib3.HTTPConnectionPool("127.0.0.1", outside.server_port, maxsize=1)
        got += [pool.request(method, "/ticket").data for method in ("GET", "HEAD", "GET")]
        return got

    did = held.record(work)
    assert did.error is None
    assert len(did.calls) == 7
    again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert again.result.result == "same"


def test_what_the_agent_leaves_unread_is_left_in_the_replay(held: Held, outside: Outside) -> None:
    def work() -> Any:
        with requests.get(f"{outside.url}/pieces", stream=True, timeout=5) as reply:
            line = next(reply.iter_lines())
        library = importlib.import_module("httpx2")
        with library.stream("GET", f"{outside.url}/pieces") as reply:
            return line, next(reply.iter_lines()), library.get(f"{outside.url}/ticket").json()

    did = held.record(work)
    assert did.error is None
    assert did.calls[0].outcome.end == "abandoned"
    again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert (again.result.result, again.result.left) == ("same", 0)


def test_to_read_on_where_the_recorded_run_left_is_a_miss(held: Held, outside: Outside) -> None:
    def work(lines: int) -> Any:
        with requests.get(f"{outside.url}/pieces", stream=True, timeout=5) as reply:
            found = reply.iter_lines(chunk_size=None)
            return [next(found) for _ in range(lines)]

    did = held.record(lambda: work(1))
    again = held.replay(did, lambda: work(8))
    assert isinstance(again.error, Miss)
    assert "the agent reads on where the recorded run left this reply" in str(again.error)


@pytest.mark.slow
def test_replies_come_in_the_recorded_order(held: Held, outside: Outside) -> None:
    async def work() -> list[Any]:
        async with (
            importlib.import_module("httpx2").AsyncClient(timeout=30) as client,
            aiohttp.ClientSession() as session,
        ):

            async def one(number: int) -> Any:
                url = f"{outside.url}/ticket?{number % 3}"
                if number % 2:
                    return (await client.get(url)).json()
                async with session.get(url) as reply:
                    return await reply.json()

            return [await done for done in asyncio.as_completed([one(number) for number in range(10)])]

    did = held.record(lambda: asyncio.run(work()))
    assert sorted(each["ticket"] for each in did.value) == [*range(1, 11)]
    for _ in range(5):
        assert held.replay(did, lambda: asyncio.run(work())).value == did.value


@pytest.mark.parametrize("library", ["httpx", "httpx2", "aiohttp"])
def test_a_request_that_the_agent_gave_up(held: Held, outside: Outside, library: str) -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0.2):
                if library == "aiohttp":
                    async with aiohttp.ClientSession() as session, session.get(f"{outside.url}/slow"):
                        return "answered"
                async with importlib.import_module(library).AsyncClient(timeout=5) as client:
                    await client.get(f"{outside.url}/slow")
        except TimeoutError:
            return "gave up"
        return "answered"

    did = held.record(lambda: asyncio.run(work()))
    again = held.replay(did, lambda: asyncio.run(work()))
    assert did.value == again.value == "gave up"
    assert again.result is not None
    assert again.result.result == "same"


# what belongs to somebody else


@pytest.mark.parametrize("library", ["requests", "urllib", "httpx", "httpx2-async", "aiohttp"])
@pytest.mark.parametrize("declare", [reenact.tool, reenact.retriever])
def test_inside_a_declared_boundary_its_result_stands_for_all(
    held: Held, outside: Outside, library: str, declare: Callable[..., Any]
) -> None:
    @declare
    def look() -> int:
        CLIENTS[library](f"{outside.url}/ticket")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(CLIENTS[library], f"{outside.url}/ticket").result()
        return sum(outside.asked.values())

    did = held.record(look)
    assert did.value >= 2
    assert [node.call.name for node in did.calls] == ["look"]
    again = held.replay(did, look)
    assert again.value == did.value
    assert sum(outside.asked.values()) == did.value


def test_inside_structure_it_hangs_below(held: Held, outside: Outside) -> None:
    @reenact.agent
    def work() -> bytes:
        return by_urllib(f"{outside.url}/ticket")[2]

    did = held.record(work)
    agent, call = did.calls
    assert (agent.call.name, call.parent) == ("work", agent.id)
    assert held.replay(did, work).value == did.value


def test_a_model_s_function_that_asks_by_itself_is_answered_whole(held: Held, outside: Outside) -> None:
    @reenact.llm
    def ask(question: str) -> str:
        return requests.post(f"{outside.url}/echo", json={"question": question}, timeout=5).text

    did = held.record(lambda: ask("why?"))
    assert [node.kind.value for node in did.calls] == ["LLM", "UNKNOWN"]
    again = held.replay(did, lambda: ask("why?"))
    assert again.value == did.value
    assert again.result is not None
    assert (again.result.result, again.result.answered) == ("same", {"llm": 1})


@pytest.mark.parametrize("processor", [SimpleSpanProcessor, BatchSpanProcessor])
def test_telemetry_is_no_act_of_the_agent_s(held: Held, outside: Outside, processor: Any) -> None:
    def work() -> None:
        provider = TracerProvider()
        provider.add_span_processor(processor(OTLPSpanExporter(f"{outside.url}/v1/traces", timeout=1)))
        with provider.get_tracer("application").start_as_current_span("request"):
            by_urllib(f"{outside.url}/ticket")
        provider.shutdown()

    did = held.record(work)
    assert outside.asked["POST /v1/traces"] >= 1
    assert [node.call.name for node in did.calls] == ["GET 127.0.0.1"]
    assert not any(name in did.runs[0].root.span.attributes for name in ("reenact.suppressed", "reenact.unrecorded"))
    before = outside.asked.copy()
    again = held.replay(did, work)
    assert again.error is None
    assert again.result is not None
    assert (again.result.result, again.result.refused) == ("same", [])
    assert outside.asked == before


# what cannot be recorded, and what changed


def test_a_body_that_is_a_stream_is_not_recorded_and_is_refused(held: Held, outside: Outside) -> None:
    def work() -> Any:
        by_urllib(f"{outside.url}/ticket")
        return requests.post(f"{outside.url}/nowhere", data=iter([b"a", b"b"]), timeout=5).status_code

    did = held.record(work)
    assert did.value == 404
    assert len(did.calls) == 1
    verdict = judge(did.runs[0])
    assert verdict.grade is Grade.PARTIAL
    assert any(reason.lost.startswith("1 HTTP calls whose body is a stream") for reason in verdict.reasons)
    again = held.replay(did, work)
    assert isinstance(again.error, SideEffectRefused)
    assert f"{__file__}:" in str(again.error)


def test_a_changed_request_is_a_miss_that_names_the_field(held: Held, outside: Outside) -> None:
    def work(path: str, amount: int) -> Any:
        return requests.post(f"{outside.url}/{path}", json={"amount": amount}, timeout=5).status_code

    did = held.record(lambda: work("echo", 5))
    for path, amount, field_named in (("echo", 1000, "body.amount"), ("nowhere", 5, "url")):
        again = held.replay(did, lambda path=path, amount=amount: work(path, amount))
        assert isinstance(again.error, Miss)
        assert again.result is not None
        assert again.result.misses[0]["field"] == field_named


def test_secrets_are_written_nowhere_and_the_replay_still_matches(held: Held, outside: Outside) -> None:
    secret = "sk-proj-" + "A1b2C3d4" * 6

    def work() -> Any:
        url = f"{outside.url.replace('//', '//user:pa55word@')}/echo?api_key={secret}"
        return requests.post(url, json={"token": secret}, headers={"authorization": secret}, timeout=5).json()["at"]

    did = held.record(work)
    assert did.error is None
    written = b"".join(path.read_bytes() for path in held.store.rglob("*") if path.is_file())
    assert secret.encode() not in written
    assert b"pa55word" not in written
    again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert again.result.result == "same"


def test_live_tools_let_it_out(held: Held, outside: Outside) -> None:
    did = held.record(lambda: by_requests(f"{outside.url}/ticket")[2])
    again = held.replay(did, lambda: by_requests(f"{outside.url}/ticket")[2], tools="live")
    assert again.value != did.value
    assert outside.asked["GET /ticket"] == 2


def test_nothing_stays_behind(held: Held, outside: Outside) -> None:
    import httpx
    import requests.adapters
    import urllib3.connectionpool

    def cut() -> list[Any]:
        return [
            http.client.HTTPConnection.request,
            http.client.HTTPConnection.getresponse,
            urllib3.connectionpool.HTTPConnectionPool._make_request,
            requests.adapters.HTTPAdapter.send,
            httpx.HTTPTransport.handle_request,
            httpx.AsyncHTTPTransport.handle_async_request,
            aiohttp.connector.BaseConnector.connect,
            aiohttp.ClientResponse.start,
        ]

    before = cut()
    during: list[Any] = []
    held.record(lambda: during.extend(cut()))
    assert all(now is not then for now, then in zip(during, before, strict=True))
    assert cut() == before
    assert len({each.INTEGRATION.name for each in (aiohttp_client, http_client, httpx_transports, urllib3_pools)}) == 4
    assert by_urllib(f"{outside.url}/ticket")[0] == 200
