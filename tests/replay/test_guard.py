from __future__ import annotations

import asyncio
import linecache
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from reenact.boundary import lanes
from reenact.boundary.patching import Patches
from reenact.errors import SideEffectRefused
from reenact.replay import guard
from reenact.replay.ledger import Ledger


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Keep the guard up for a test, in a context of its own."""
    patches, told = Patches(), Ledger()
    lanes.install(patches)
    with guard.shut(told):
        yield told
    patches.undo()


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    listening = socket.create_server(("127.0.0.1", 0))
    yield listening.getsockname()
    listening.close()


def connect(address: tuple[str, int]) -> None:
    with socket.socket() as tried:
        tried.connect(address)


def udp(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.sendto(b"x", address)


TRIES: dict[str, Callable[[tuple[str, int]], Any]] = {
    "connect": connect,
    "sendto": udp,
    "getaddrinfo": lambda _: socket.getaddrinfo("localhost", 80),
    "gethostbyname": lambda _: socket.gethostbyname("localhost"),
    "create_connection": socket.create_connection,
    "subprocess": lambda _: subprocess.run(["/bin/true"], check=True),
    "a shell": lambda _: subprocess.run("true", shell=True, check=True),
    "os.system": lambda _: os.system("true"),
    "os.posix_spawn": lambda _: os.posix_spawn("/bin/true", ["true"], {}),
    "popen": lambda _: os.popen("true"),
}


@pytest.mark.parametrize("attempt", TRIES.values(), ids=TRIES)
def test_the_outside_world_is_refused_and_the_line_named(
    ledger: Ledger, server: tuple[str, int], attempt: Callable[[tuple[str, int]], Any]
) -> None:
    with pytest.raises(SideEffectRefused) as refused:
        attempt(server)
    (entry,) = ledger.entries
    assert entry["t"] == "refused"
    path, _, line = str(entry["where"]).rpartition(":")
    assert Path(path) == Path(__file__)
    assert linecache.getline(path, int(line)).strip()
    assert entry["where"] in str(refused.value)
    assert "@reenact.tool" in str(entry["hint"])


def test_what_it_raises_is_no_exception_that_an_agent_swallows(ledger: Ledger, server: tuple[str, int]) -> None:
    def agent() -> None:
        try:
            connect(server)
        except Exception:  # noqa: BLE001 - as agents and retry loops do
            pytest.fail("it was swallowed")

    with pytest.raises(SideEffectRefused):
        agent()
    assert len(ledger.entries) == 1


def test_inside_a_live_call_the_network_is_open(ledger: Ledger, server: tuple[str, int]) -> None:
    with guard.allowed():
        connect(server)
        socket.getaddrinfo("localhost", 80)
    assert ledger.entries == []
    with pytest.raises(SideEffectRefused):
        connect(server)


def test_a_live_call_may_use_threads_and_pools_for_its_work(ledger: Ledger, server: tuple[str, int]) -> None:
    """asyncio looks names up on a pool's thread."""

    async def asynchronous() -> None:
        _, writer = await asyncio.open_connection("localhost", server[1], family=socket.AF_INET)
        writer.close()
        await asyncio.to_thread(connect, server)

    with guard.allowed():
        asyncio.run(asynchronous())
        with ThreadPoolExecutor(1) as pool:
            pool.submit(connect, server).result()
        thread = threading.Thread(target=connect, args=(server,))
        thread.start()
        thread.join()
    assert ledger.entries == []
    with ThreadPoolExecutor(1) as pool, pytest.raises(SideEffectRefused):
        pool.submit(connect, server).result()


def test_what_is_live_in_one_task_is_not_in_another(ledger: Ledger, server: tuple[str, int]) -> None:
    async def live(opened: asyncio.Event, over: asyncio.Event) -> None:
        with guard.allowed():
            opened.set()
            await over.wait()
            connect(server)

    async def main() -> None:
        opened, over = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(live(opened, over))
        await opened.wait()
        with pytest.raises(SideEffectRefused):
            connect(server)
        over.set()
        await task

    asyncio.run(main())
    assert len(ledger.entries) == 1


def test_connections_that_stand_and_pairs_are_left_alone(ledger: Ledger) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendmsg([b"hello"])
        assert right.recv(5) == b"hello"
    assert ledger.entries == []


class Connects(SpanExporter):
    """An exporter with a backend that it cannot do without."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        connect(self._address)
        return SpanExportResult.SUCCESS


@pytest.mark.parametrize("processor", [SimpleSpanProcessor, BatchSpanProcessor])
def test_the_application_s_telemetry_stays_in_and_is_held_against_nobody(
    ledger: Ledger,
    server: tuple[str, int],
    caplog: pytest.LogCaptureFixture,
    processor: Callable[[SpanExporter], SpanProcessor],
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(processor(Connects(server)))
    with provider.get_tracer("application").start_as_current_span("request"):
        pass
    provider.force_flush()
    provider.shutdown()
    assert ledger.entries == []
    assert caplog.records == []


def test_outside_of_a_replay_the_guard_does_nothing(server: tuple[str, int]) -> None:
    told = Ledger()
    with guard.shut(told):
        pass
    connect(server)
    subprocess.run(["/bin/true"], check=True)
    assert told.entries == []


# children


JOINED = {"REENACT_REPLAY": "plan", "PYTHONPATH": "hook"}


@pytest.mark.parametrize(
    ("argv", "environ", "joins"),
    [
        ([sys.executable, "-c", ""], JOINED, True),
        ([sys.executable, "-u", "-c", "", "-I"], JOINED, True),
        ([sys.executable, "-m", "site"], JOINED, True),
        ([sys.executable, "-c", ""], {}, False),
        ([sys.executable, "-c", ""], {"REENACT_REPLAY": "plan"}, False),
        ([sys.executable, "-I", "-c", ""], JOINED, False),
        ([sys.executable, "-uE", "-c", ""], JOINED, False),
        ([sys.executable, "-S", "-c", ""], JOINED, False),
        (["/bin/true"], JOINED, False),
        (["uname"], {}, True),
    ],
)
def test_a_python_that_will_join_the_replay_may_start_and_no_other(
    ledger: Ledger, argv: list[str], environ: dict[str, str], *, joins: bool
) -> None:
    def start() -> None:
        subprocess.run(argv, env=environ | {"PATH": os.environ["PATH"]}, capture_output=True, check=False)

    if joins:
        start()
    else:
        with pytest.raises(SideEffectRefused):
            start()
    assert len(ledger.entries) == (not joins)


def test_a_child_inherits_the_plan_or_it_may_not_start(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SideEffectRefused):
        subprocess.run([sys.executable, "-c", ""], check=True)
    for name, value in JOINED.items():
        monkeypatch.setenv(name, value)
    subprocess.run([sys.executable, "-c", ""], check=False, capture_output=True)
    assert len(ledger.entries) == 1


def test_the_line_is_a_file_s_where_there_is_one(ledger: Ledger, server: tuple[str, int]) -> None:
    """Code that libraries make up (`<string>`) is passed over."""
    code = compile("socket.create_connection(address)", "<string>", "exec")
    with pytest.raises(SideEffectRefused):
        exec(code, {"address": server, "socket": socket})
    assert str(ledger.entries[0]["where"]).startswith(f"{__file__}:")


TYPED_IN = """
import socket
from reenact.replay import guard
from reenact.replay.ledger import Ledger
ledger = Ledger()
with guard.shut(ledger):
    try:
        socket.create_connection(("127.0.0.1", 1))
    except BaseException:
        print(ledger.entries[0]["where"])
"""


def test_the_line_of_code_that_was_typed_in() -> None:
    done = subprocess.run([sys.executable, "-c", TYPED_IN], capture_output=True, text=True, check=True)
    assert done.stdout == "<string>:8\n"
