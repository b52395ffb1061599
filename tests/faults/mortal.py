"""An agent that is going to die, and the template process that forks one after the other, each fresh.

    python mortal.py template ARM       reads one JSON order a line, forks an agent for each, answers with its pid
    python mortal.py once ORDER         is that agent itself, from a cold start

It asks a provider on loopback by the real SDK, whole and streamed, and calls tools. What it was handed it writes to a
file of its own, right after: that is *acknowledged*. ARM is `reenact`, or `otel`: the stock SDK with a batch processor
and the OTLP exporter, a span around each of the same steps, by hand.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reaping import ended

import reenact

Order = dict[str, Any]
HANGS_S = 15.0
STOCK_HANGS_S = 4.0
_LETTERS = str.maketrans("0123456789", "abcdefghij")
"""A mark has no digits: a piece that ends in some waits for the next one, since a number may go on (`unwritten`)."""


@reenact.tool
def weigh(mark: str) -> str:
    return f"weighed {mark}" + "." * 2000


@reenact.tool
def count(mark: str) -> Iterator[str]:
    for number in range(4):
        yield f"{mark} {number}"


class Dying(RuntimeError):
    """What the agent dies of where it dies by an exception."""


@functools.cache
def _client() -> Any:
    """Make the SDK's client, which takes longer than most lives here last."""
    from openai import OpenAI

    return OpenAI(base_url="http://127.0.0.1:1/v1", api_key="x", max_retries=0)


class Agent:
    """One life."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.acks = os.open(order["acks"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.dying: Callable[[], None] | None = None

    def acknowledge(self, *said: object) -> None:
        """Note, past every buffer, that something was handed to the agent."""
        os.write(self.acks, (json.dumps(said) + "\n").encode())

    def begin(self) -> None:
        """Say that the recorder is in charge."""
        self.acknowledge("ready")
        if not self.order["from_birth"]:
            self.arm_death()

    def live(self, step: Callable[[str, str], Any]) -> None:
        """Make calls until death, or for as many rounds as are ordered."""
        client = _client().with_options(base_url=f"http://127.0.0.1:{self.order['provider']}/v1")
        for number in range(self.order.get("rounds", 10_000)):
            mark = f"m{self.order['trial']}-{number}-".translate(_LETTERS)
            asked: Any = {"model": "stand-in", "messages": [{"role": "user", "content": f"{mark} " + "word " * 200}]}
            self._go_on()
            with step("ask", mark):
                answer = client.chat.completions.create(**asked)
                self.acknowledge("answer", mark, answer.choices[0].message.content)
            self._go_on()
            with step("weigh", mark):
                self.acknowledge("weigh", mark, weigh(mark))
            with step("stream", mark):
                for event in client.chat.completions.create(**asked, stream=True):
                    self.acknowledge("event", mark, event.choices[0].delta.content)
            with step("count", mark):
                for item in count(mark):
                    self.acknowledge("item", mark, item)

    def _go_on(self) -> None:
        if self.dying is not None:
            self.dying()

    def arm_death(self) -> None:
        """Have death come after a while, on a thread of its own, or as a signal that raises."""
        death, after = self.order["death"], self.order["after"]
        if death in {"exception", "sys.exit"}:
            signal.signal(signal.SIGALRM, lambda _number, _frame: self._die(death))
            signal.setitimer(signal.ITIMER_REAL, after)
        elif death in _DEATHS:
            threading.Thread(target=lambda: (time.sleep(after), _DEATHS[death]()), daemon=True).start()

    def _die(self, death: str) -> None:
        self.dying = functools.partial(self._die, death)  # again, where somebody swallowed it
        if death == "sys.exit":
            sys.exit()
        raise Dying("at some instant")


_DEATHS: dict[str, Callable[[], Any]] = {
    "os._exit": lambda: os._exit(7),
    "segfault": lambda: ctypes.string_at(0),
    "exec": lambda: os.execv("/bin/true", ["/bin/true"]),
}


class _NoStep:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def recorded(order: Order) -> None:
    """Live, recorded by ours."""
    from reenact.pipeline import recording

    agent = Agent(order)
    if order["from_birth"]:
        agent.arm_death()
    _ = _client().chat.completions
    setup = recording.Setup(store=Path(order["store"]))
    recording.start(setup, {"REENACT_RECORDING": order["name"], **order.get("environ", {})})
    agent.begin()
    agent.live(lambda _name, _mark: _NoStep())


def traced(order: Order) -> None:
    """Live, traced by the stock SDK as its documentation says."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    agent = Agent(order)
    if order["from_birth"]:
        agent.arm_death()
    provider = TracerProvider()
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"http://127.0.0.1:{order['collector']}/v1/traces"))
    )
    tracer = provider.get_tracer("agent")
    agent.begin()
    with tracer.start_as_current_span(order["name"], attributes={"root": True}):
        agent.live(lambda name, mark: tracer.start_as_current_span(name, attributes={"mark": mark}))


def _silence(order: Order) -> None:
    """Send what a dying agent says to a file, so that it can be looked at; and let it die of what it is told to die of.

    Below `nohup` or a shell's background job some signals are ignored.
    """
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    said = os.open(order["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _warmed(provider: int) -> bool:
    """Ask once, so that what an SDK loads late is loaded in every agent."""
    from openai import OpenAI

    with OpenAI(base_url=f"http://127.0.0.1:{provider}/v1", api_key="x", max_retries=0) as client:
        asked: Any = {"model": "stand-in", "messages": [{"role": "user", "content": "warm up"}]}
        client.chat.completions.create(**asked)
        list(client.chat.completions.create(**asked, stream=True))
    return True


def template(arm: str) -> None:
    """Fork an agent for every order. Whatever ends it goes through the interpreter as in any program."""
    for name in ("httpcore2", "reenact.pipeline.recording"):  # loaded before, so that an agent begins at once
        importlib.import_module(name)
    from reenact.contracts.integration import Integration
    from reenact.discover import members
    from reenact.redact.text_redactor import compile_patterns

    members("integrations", Integration)
    compile_patterns()
    _ = _client().chat.completions
    warm = False
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        warm = warm or _warmed(order["provider"])
        pid = os.fork()
        if pid == 0:
            _silence(order)
            (recorded if arm == "reenact" else traced)(order)
            return  # to the end of the program
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{ended(pid, HANGS_S if arm == 'reenact' else STOCK_HANGS_S)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "template":
        template(sys.argv[2])
    else:
        alone = json.loads(sys.argv[2])
        _silence(alone)
        recorded(alone)
