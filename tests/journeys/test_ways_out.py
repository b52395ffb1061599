"""A sealed replay with live calls: its policy says who is talked to, everybody else hears nothing."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from desk import Desk
from reenact.demo.provider import StandIn
from reenact.values.effects import Seal

AGENT = """
import ctypes, os, socket, sys
import openai
import reenact

@reenact.tool
def look_up(item):
    if raw := os.environ.get("RAW"):
        socket.create_connection(("127.0.0.1", int(raw))).close()
    return f"{item} is there"

print(look_up("tea"))
if stock := os.environ.get("STOCK"):
    from urllib.request import urlopen
    with urlopen(stock) as answer:
        print(answer.status)
client = openai.OpenAI(base_url=os.environ.get("ASKED", sys.argv[1]) + "/v1", api_key="k", max_retries=0)
answer = client.chat.completions.create(
    model="stand-in-cleanup", messages=[{"role": "user", "content": "hi"}]
)
print(answer.choices[0].message.role)
if native := os.environ.get("NATIVE"):
    address = (2).to_bytes(2, "little") + int(native).to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
    libc = ctypes.CDLL(None)
    libc.connect(libc.socket(2, 1, 0), address, 16)
if other := os.environ.get("OTHER"):
    socket.create_connection(("127.0.0.1", int(other))).close()
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[StandIn]:
    with StandIn(seed=1, slip=0.0, max_delay_ms=1) as serving:
        yield serving


@pytest.fixture
def stranger() -> Iterator[tuple[int, list[None]]]:
    """Somebody on another port, and an entry for everyone who came."""
    heard: list[None] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    heard.append(None)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1], heard
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def recorded(desk: Desk, provider: StandIn) -> Desk:
    done = desk.reenact("run", "-q", "--", "python", desk.write("agent.py", AGENT), provider.origin)
    assert done.returncode == 0, done.stderr
    return desk


def replayed(desk: Desk, *words: str, **environ: object) -> dict[str, Any]:
    settings = {**desk.settings(), **{name: str(value) for name, value in environ.items()}}
    done = desk.reenact("replay", *(words if words[:1] else ("last",)), "--json", environ=settings)
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    if said["world"].get("network") != Seal.ENFORCED:
        pytest.skip("no sealed world can be made here: tests/seal says why")
    return said


def place(provider: StandIn) -> str:
    return provider.origin.removeprefix("http://")


def test_live_models_are_reached_and_a_stranger_on_another_port_hears_nothing(
    recorded: Desk, provider: StandIn, stranger: tuple[int, list[None]]
) -> None:
    port, heard = stranger
    before = provider.served.requests
    said = replayed(recorded, "last", "--models", "live", NATIVE=port)
    assert (said["live"], said["answered"]) == (1, {"tool": 1})
    assert all("live" in each or "stream" in each for each in said["divergences"]), (
        "a live model may say something else"
    )
    assert (said["ways_out"], said["reached"]) == ([place(provider)], {place(provider): 1})
    assert said["world"]["files"] == Seal.COPIED
    assert (provider.served.requests - before, heard) == (1, [])
    told = recorded.reenact("replay", "last", "--models", "live").stderr
    assert f"; network: enforced but for {place(provider)}\n" in told
    assert f"reached: {place(provider)} (1 connection)\n" in told


@pytest.mark.slow
def test_python_that_reaches_further_is_told_the_option_and_passes_with_it(
    recorded: Desk, stranger: tuple[int, list[None]]
) -> None:
    port, heard = stranger
    said = replayed(recorded, "last", "--models", "live", OTHER=port)
    assert said["result"] == "diverged"
    (refused,) = said["refused"]
    assert f"--allow-host 127.0.0.1:{port}" in refused["hint"]
    assert "agent.py" in refused["where"]
    assert heard == []
    said = replayed(recorded, "last", "--allow-host", f"127.0.0.1:{port}", OTHER=port)
    assert (said["result"], said["live"], said["answered"]) == ("same", 0, {"llm": 1, "tool": 1})
    assert said["reached"] == {f"127.0.0.1:{port}": 1}
    assert heard == [None]


@pytest.mark.slow
def test_a_model_at_a_host_that_nobody_recorded_is_refused_with_the_option(recorded: Desk) -> None:
    with StandIn(seed=1, slip=0.0, max_delay_ms=1) as other:
        said = replayed(recorded, "last", "--models", "live", ASKED=other.origin)
        assert (said["result"], said["live"], other.served.requests) == ("diverged", 0, 0)
        (refused,) = said["refused"]
        assert f"--allow-host {place(other)}" in refused["hint"]
        said = replayed(recorded, "last", "--models", "live", "--allow-host", place(other), ASKED=other.origin)
        assert (said["live"], other.served.requests, said["refused"]) == (1, 1, [])


def test_a_strangers_trace_names_no_host_that_is_dialled(recorded: Desk, provider: StandIn) -> None:
    recorded.reenact("export", "last", "-o", "trace.jsonl")
    own = ("trace.jsonl", "--models", "live")
    program = ("--", "python", "agent.py", provider.origin)
    before = provider.served.requests
    done = recorded.reenact("replay", *own, "--json", *program)
    said = json.loads(done.stdout)
    assert (said["ways_out"], said["reached"], said["live"]) == ([], {}, 0)
    assert f"--allow-host {place(provider)}" in said["refused"][0]["hint"]
    assert provider.served.requests == before
    for environ, words in (
        ({"OPENAI_BASE_URL": provider.base_url}, ()),
        ({}, ("--allow-host", place(provider))),
    ):
        done = recorded.reenact("replay", *own, *words, "--json", *program, environ={**recorded.settings(), **environ})
        assert json.loads(done.stdout)["live"] == 1, done.stdout
    assert provider.served.requests == before + 2


@pytest.mark.slow
def test_a_live_tool_reaches_what_it_reached_when_recorded_and_nobody_else(
    desk: Desk, provider: StandIn, stranger: tuple[int, list[None]]
) -> None:
    port, heard = stranger
    stock = f"{provider.origin}/pricing/quote?sku=TOASTER-4"
    environ = {**desk.settings(), "STOCK": stock}
    words = ("run", "-q", "--", "python", desk.write("agent.py", AGENT), provider.origin)
    assert desk.reenact(*words, environ=environ).returncode == 0
    said = replayed(desk, "last", "--tools", "live", STOCK=stock)
    assert (said["result"], said["answered"]) == ("same", {"llm": 1}), (said["divergences"], said["refused"])
    assert said["reached"] == {place(provider): 1}
    said = replayed(desk, "last", "--tools", "live", STOCK=stock, RAW=port)
    assert said["result"] == "diverged"
    assert f"--allow-host 127.0.0.1:{port}" in said["refused"][0]["hint"]
    assert heard == []
    said = replayed(desk, "last", "--tools", "live", "--allow-host", f"127.0.0.1:{port}", STOCK=stock, RAW=port)
    assert (said["result"], heard) == ("same", [None])


def test_what_names_no_host_is_a_fault_of_the_command_line(recorded: Desk) -> None:
    for text in ("a b", "host:0", "host:99999", "unix:relative", "http://", "-x:1"):
        done = recorded.reenact("replay", "last", "--allow-host", text)
        assert done.returncode == 2, (text, done.stderr)


@pytest.mark.slow
def test_a_live_tool_writes_to_the_copy(desk: Desk) -> None:
    source = (
        "import reenact\n@reenact.tool\ndef note(text):\n    open('notes.txt', 'a').write(text)\n    return text\n"
        "note('a')\nprint(open('notes.txt').read())\n"
    )
    desk.reenact("run", "-q", "--", "python", desk.write("notes.py", source))
    said = replayed(desk, "last", "--tools", "live")
    assert (said["live"], said["world"]["files"]) == (1, Seal.COPIED)
    assert Path(desk.folder, "notes.txt").read_text() == "a"
