"""Any Python value in a payload, a name or an error: it costs itself at most, is marked, and never a neighbour."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

import reenact
from held import Held
from reenact.boundary.wrapping import boundary
from reenact.dialects.openinference import WRITING
from reenact.formats import otlp_json, otlp_proto
from reenact.graph.build import interpret
from reenact.values.call import CallKind, Raised, Returned, Value
from reenact.values.run import Node
from reenact.values.span import SpanRecord


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: Any


class Hostile:
    """Raises from everything that somebody may ask of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __bool__(self) -> bool:
        raise RuntimeError("neither")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __iter__(self) -> Any:
        raise RuntimeError("no items")


class Liar:
    """Says that it is of another class, or raises when it is asked."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no class")


class LyingDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")

    def copy(self) -> Any:
        raise RuntimeError("no copy")


class LyingText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise RuntimeError("no bytes")


def _recursive() -> Any:
    value: dict[str, Any] = {"list": []}
    value["list"].append(value)
    return value


def _deep(levels: int, make: Callable[[Any], Any]) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = make(value)
    return value


VALUES: dict[str, Callable[[], Any]] = {
    "lone surrogate": lambda: "cut \ud83d in the middle",
    "lone surrogate as a key": lambda: {"\ud83d": 1},
    "surrogate pair, spelled apart": lambda: "\ud83d\ude00",
    "NUL and controls": lambda: "a\x00b\x1b[31m\x7f\x9b",
    "bidi and separators": lambda: "\u202eabc\u2028\u2029\ufeff",
    "NaN": lambda: math.nan,
    "infinities, nested": lambda: {"a": [math.inf, -math.inf]},
    "integers over 64 bit": lambda: {"n": 2**64, "m": -(2**70), "edge": 2**63},
    "an integer of 5,000 digits": lambda: 10**5000,
    "bytes": lambda: b"\xff\x00\xfe",
    "bytearray": lambda: bytearray(b"\xff"),
    "memoryview": lambda: memoryview(b"\xff\x00"),
    "set": lambda: {1, "a", (2, 3)},
    "tuple, range, complex": lambda: (1, range(3), 1j),
    "Decimal": lambda: Decimal("1.10"),
    "datetime": lambda: datetime(2026, 1, 2, tzinfo=UTC),
    "UUID": lambda: uuid.UUID(int=5),
    "Enum": lambda: Colour.RED,
    "dataclass that holds one that raises": lambda: Point(1, Hostile()),
    "keys that are no strings": lambda: {1: "a", None: "b", (1, 2): "c"},
    "recursive": _recursive,
    "2,000 lists deep": lambda: _deep(2000, lambda value: [value]),
    "2,000 dicts deep": lambda: _deep(2000, lambda value: {"a": value}),
    "100,000 deep": lambda: _deep(100_000, lambda value: [value]),
    "raises from everything": Hostile,
    "a list of such": lambda: [1, Hostile(), "last"],
    "raises from its class": Liar,
    "a dict that raises": lambda: LyingDict(a=1),
    "a text that raises": lambda: LyingText("a"),
    "a lock": threading.Lock,
    "a generator": lambda: (each for each in "abc"),
    "a function and a class": lambda: [len, Point, lambda: 1],
    "a module": lambda: json,
    "an exception": lambda: ValueError("cut \ud83d", Hostile()),
    "3 MB of text": lambda: "x" * 3_000_000,
    "100,000 items": lambda: list(range(100_000)),
}


@reenact.tool
def good(name: str) -> dict[str, object]:
    return {"said": name, "items": [1, 2.5, None, "ü🦊"]}


@reenact.tool
def takes(value: Any) -> str:
    del value
    return "took it"


@reenact.tool
def gives(make: Any) -> Any:
    return make()


@reenact.tool
def pieces(make: Any) -> Any:
    yield make()
    yield "after"


def _exported(spans: list[SpanRecord]) -> None:
    """Both ways out are valid, and hold every span."""
    flat = [_flattened(span) for span in spans]
    for line in otlp_json.encode(flat).splitlines():
        json.loads(line.decode("utf-8"), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert otlp_proto.FORMAT.encode is not None
    packed = otlp_proto.FORMAT.encode(flat)
    read = TracesData.FromString(packed)
    names = [span.name for each in read.resource_spans for scope in each.scope_spans for span in scope.spans]
    assert sorted(names) == sorted(re.sub("[\ud800-\udfff]", "\ufffd", span.name) for span in spans)


def _flattened(span: SpanRecord) -> SpanRecord:
    if "reenact.boundary" not in span.attributes:
        return span
    call, outcome = interpret(span)
    return dataclasses.replace(span, attributes={**WRITING.flatten(call, outcome), **span.attributes})


def _neighbours_are_whole(calls: list[Node]) -> None:
    said = [node.outcome for node in calls if node.call.name == "good"]
    assert said == [
        Returned(payload=Value(json={"said": name, "items": [1, 2.5, None, "ü🦊"]})) for name in ("before", "after")
    ]


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", VALUES)
def test_a_value_costs_itself_at_most(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    value, got = VALUES[name](), []

    def work() -> None:
        good("before")
        got.append(takes(value))
        got.append(gives(lambda: value))
        got.extend(pieces(lambda: value))
        good("after")

    did = Held(tmp_path).record(work)
    assert did.error is None
    assert got[0] == "took it"
    assert got[1] is value
    assert got[2] is value
    assert got[3] == "after"
    assert [node.call.name for node in did.calls] == ["good", "takes", "gives", "pieces", "good"]
    assert not any(node.orphan for node in did.calls)
    _neighbours_are_whole(did.calls)
    assert all(node.outcome.__class__.__name__ in {"Returned", "Streamed"} for node in did.calls)
    assert not [record for record in caplog.records if record.name == "reenact"], "nothing of ours failed"
    _exported([node.span for run in did.runs for node in run.nodes])


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS: dict[str, Callable[[], BaseException]] = {
    "lone surrogate": lambda: RuntimeError("cut \ud83d here"),
    "NUL": lambda: RuntimeError("a\x00b"),
    "hostile argument": lambda: RuntimeError(Hostile()),
    "raises from its text": Odd,
    "5 MB of text": lambda: RuntimeError("x" * 5_000_000),
    "a name with lone surrogates": lambda: _named("Cut\ud83d"),
    "a group": lambda: ExceptionGroup("both", [ValueError("\ud83d"), Odd()]),
    "a cause in a circle": lambda: _circle(),  # noqa: PLW0108 - it is defined below
    "base exception": lambda: GeneratorExit("\ud83d"),
}


def _named(name: str) -> BaseException:
    kind = type("Cut", (Exception,), {})
    kind.__qualname__ = name
    return kind("a")


def _circle() -> BaseException:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    return one


@pytest.mark.slow
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_costs_itself_at_most(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    error = ERRORS[name]()

    @reenact.tool
    def fails() -> None:
        raise error

    caught: list[BaseException] = []

    def work() -> None:
        good("before")
        try:
            with reenact.run("unit \ud83d"):
                fails()
        except BaseException as failure:  # noqa: BLE001 - it is compared
            caught.append(failure)
        good("after")

    did = Held(tmp_path).record(work)
    assert did.error is None
    assert caught == [error]
    assert caught[0] is error
    _neighbours_are_whole(did.calls)
    assert [type(node.outcome) for node in did.calls if node.call.name == "fails"] == [Raised]
    assert not [record for record in caplog.records if record.name == "reenact"]
    _exported([node.span for run in did.runs for node in run.nodes])


@pytest.mark.parametrize("name", ["cut \ud83d", "", "a\x00b", "x" * 100_000, "a/b#c\n\x1b[1m"])
def test_a_name_costs_itself_at_most(tmp_path: Path, name: str) -> None:
    odd = boundary(CallKind.TOOL, lambda: 5, name=name)

    def work() -> None:
        good("before")
        with reenact.run(name or "unit", user=name, session=name, tenant=name, input={name: name}):
            assert odd() == 5
        good("after")

    did = Held(tmp_path).record(work)
    assert did.error is None
    _neighbours_are_whole(did.calls)
    assert [node.outcome for node in did.calls if node.call.name != "good"] == [Returned(payload=Value(json=5))]
    _exported([node.span for run in did.runs for node in run.nodes])
