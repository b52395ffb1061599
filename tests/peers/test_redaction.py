"""Values planted wherever an instrumented program can let one slip, and what of them leaves by each pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest

from desk import Desk
from receivers import http_receiver
from reenact.demo.provider import StandIn

HERE = Path(__file__).resolve().parent

if find_spec("logfire") is None or find_spec("openinference.instrumentation.anthropic") is None:
    pytest.skip(
        "the other instrumentations live in an environment of their own: make test-peers", allow_module_level=True
    )

PLACES = (
    "prompt",
    "system",
    "tool schema",
    "tool argument",
    "tool result",
    "reply",
    "streamed reply",
    "metadata",
    "user",
    "client key",
    "header",
    "query",
    "URL user info",
    "error reply",
    "exception",
    "cause",
    "status",
    "span name",
    "attribute",
    "key",
    "JSON in JSON",
    "sequence",
    "bytes",
    "event",
    "link",
    "baggage",
    "trace state",
    "scope",
    "resource",
    "langfuse input",
    "langfuse output",
)
PIPES = ("none", "logfire", "langfuse", "ours")
PEERS = (
    ("openai", "openinference"),
    ("openai", "openllmetry"),
    ("anthropic", "openinference"),
    ("anthropic", "openllmetry"),
    ("anthropic", "native"),
)
"""The last is the SDK's own tracing, with content."""


BARE = {"client key", "query", "URL user info", "key", "trace state"}
"""Places whose form leaves no room for a text around the value."""


def token(place: str) -> str:
    """A token of GitHub's form, another for each place."""
    letters = "".join(word.capitalize() for word in place.split())
    return "ghp_" + (letters * 16)[:32] + f"{PLACES.index(place):04}"


def mail(place: str) -> str:
    """An address of the place's own."""
    return f"{place.replace(' ', '.').lower()}@canary.example.com"


def password(place: str) -> str:
    """A password of the place's own, of a form that nothing but its name tells."""
    return f"Tr0ub4dor-{PLACES.index(place):02}-zq"


KINDS: dict[str, Callable[[str], str]] = {"token": token, "e-mail": mail, "password": password}
TEXTS: dict[str, Callable[[str], str]] = {
    "token and e-mail": lambda place: token(place) if place in BARE else f"{token(place)} of {mail(place)}",
    "password": lambda place: password(place) if place in BARE else f"password={password(place)}",
}
"""What is planted. A password stands by itself: who masks a text for that word masks all of it."""


def left(
    folder: Path, sdk: str, peer: str, pipe: str, texts: dict[str, str], *further: str
) -> tuple[set[tuple[str, str]], int]:
    """Run the program; give the kinds and places whose value is in what was received, and how many spans were."""
    file = folder / f"{pipe}.json"
    file.write_text(json.dumps(texts), encoding="utf-8")
    with http_receiver() as receiver:
        address = receiver.url.removesuffix("/v1/traces")
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_CLIENT_REQUEST": ".*",
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_CLIENT_RESPONSE": ".*",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.note=" + quote(texts["resource"]),
        }
        done = subprocess.run(
            [sys.executable, str(HERE / "leaking.py"), sdk, peer, pipe, address, str(file), *further],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        wire = receiver.wire("/logs" if further else "") + str(receiver.headers).encode()
        found = {(kind, place) for kind, made in KINDS.items() for place in PLACES if made(place).encode() in wire}
        return found, len(receiver.names)


needs_langfuse = pytest.mark.skipif(
    find_spec("langfuse") is None, reason="langfuse is not installed: make test-peers installs it"
)


def by_pipe(
    folder: Path, sdk: str, peer: str, what: str, pipes: Iterable[str]
) -> tuple[dict[str, set[tuple[str, str]]], dict[str, int]]:
    """Give what leaks by each pipe, and how many spans arrive."""
    texts = {place: TEXTS[what](place) for place in PLACES}
    installed = [pipe for pipe in pipes if find_spec("langfuse") is not None or not pipe.startswith("langfuse")]
    with ThreadPoolExecutor(2) as pool:
        got = dict(zip(installed, pool.map(lambda pipe: left(folder, sdk, peer, pipe, texts), installed), strict=True))
    return {pipe: leaks for pipe, (leaks, _) in got.items()}, {pipe: spans for pipe, (_, spans) in got.items()}


def table(leaks: dict[str, set[tuple[str, str]]]) -> Iterator[str]:
    """Spell what leaks, place by place."""
    yield "  ".join(f"{word:15}" for word in ("", *leaks))
    for place in PLACES:
        cells = [",".join(kind for kind in KINDS if (kind, place) in each) or "-" for each in leaks.values()]
        yield "  ".join(f"{word:15}" for word in (place, *cells))
    told = [str(len({place for _, place in each})) for each in leaks.values()]
    yield "  ".join(f"{word:15}" for word in (f"of {len(PLACES) - 2}, leak", *told))  # two are Langfuse's alone


@pytest.mark.parametrize(
    ("sdk", "peer", "what"),
    [*((sdk, peer, "token and e-mail") for sdk, peer in PEERS), ("openai", "openinference", "password")],
)
def test_nothing_planted_leaves_by_our_pipe(
    tmp_path: Path, sdk: str, peer: str, what: str, record_property: Callable[[str, object], None]
) -> None:
    leaks, spans = by_pipe(tmp_path, sdk, peer, what, PIPES)
    lines = [f"redaction: {sdk} {peer}, planted: {what}", *table(leaks)]
    record_property("figure", "\n".join(line.rstrip() for line in lines))
    kind = "password" if what == "password" else "token"
    assert {(kind, place) for place in ("prompt", "reply", "exception", "span name", "scope")} <= leaks["none"]
    assert {each for each in leaks["ours"] if is_promised(*each)} == set()
    assert spans["ours"] == spans["none"] > 0


@pytest.mark.parametrize(("sdk", "peer"), [("openai", "openinference"), ("anthropic", "native")])
@pytest.mark.parametrize(
    ("pipe", "without"),
    [
        ("exporter", "none"),
        ("logfire+ours", "logfire"),
        pytest.param("langfuse+ours", "langfuse", marks=needs_langfuse),
    ],
)
def test_nor_by_pipes_of_others_that_we_stand_before(
    tmp_path: Path, sdk: str, peer: str, pipe: str, without: str
) -> None:
    leaks, spans = by_pipe(tmp_path, sdk, peer, "token and e-mail", (pipe, without))
    assert ("token", "prompt") in leaks[without]
    assert leaks[pipe] == set()
    assert spans[pipe] == spans[without] > 0, "every span arrives"


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_nothing_planted_leaves_in_log_events(
    tmp_path: Path, sdk: str, record_property: Callable[[str, object], None]
) -> None:
    texts = {place: TEXTS["token and e-mail"](place) for place in PLACES}
    plain, _ = left(tmp_path, sdk, "openllmetry", "none", texts, "events")
    ours, spans = left(tmp_path, sdk, "openllmetry", "ours", texts, "events")
    assert {("token", "prompt"), ("e-mail", "reply"), ("token", "tool argument")} <= plain
    assert ours == set()
    assert spans > 0
    record_property("figure", f"redaction: {sdk} openllmetry, log events: {len(plain)} leak, with ours {len(ours)}")


AGENT = """
import sys
from pathlib import Path
import openai
import reenact
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(reenact.RedactionSpanProcessor(SimpleSpanProcessor(exporter)))
OpenAIInstrumentor().instrument(tracer_provider=provider)
client = openai.OpenAI(base_url=sys.argv[1], api_key="x", max_retries=0)
with provider.get_tracer("application").start_as_current_span("agent"):
    messages = [{"role": "user", "content": sys.argv[2]}]
    for _ in range(2):
        made = client.chat.completions.create(model="stand-in-everything", messages=messages)
        reply = made.choices[0].message.content
        print(reply)
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": "Again, " + sys.argv[2]}]
if sys.argv[3:]:
    Path(sys.argv[3]).write_bytes(encode_spans(exporter.get_finished_spans()).SerializeToString())
"""


@pytest.mark.parametrize(
    ("key", "kinds"),
    [("", ("token",)), ("a key that both of them have", ("token", "e-mail"))],
    ids=["credentials by the salt of the trace", "all by a key"],
)
def test_a_trace_of_another_s_that_was_redacted_replays(tmp_path: Path, key: str, kinds: tuple[str, ...]) -> None:
    desk = Desk(tmp_path, cold=True)
    desk.environ |= {"REENACT_REDACTION_KEY": key} if key else {}
    name = desk.write("agent.py", AGENT)
    said = f"I am {' of '.join(KINDS[kind]('prompt') for kind in kinds)}, who are you?"
    with StandIn(max_delay_ms=0) as provider:
        url = provider.base_url
        done = desk.run([sys.executable, name, url, said, "trace.otlp"])
    assert done.returncode == 0, done.stderr
    trace = (tmp_path / "trace.otlp").read_bytes()
    assert not [kind for kind in kinds if KINDS[kind]("prompt").encode() in trace]
    assert b"I am REDACTED_" in trace
    replayed = desk.reenact("replay", "trace.otlp", "--", "python", name, url, said)
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == done.stdout
    other = desk.reenact("replay", "trace.otlp", "--", "python", name, url, said.replace("ghp_", "ghp_9"))
    assert other.returncode == 1, "another secret is another question"


def is_promised(kind: str, place: str) -> bool:
    """A password that nothing stands beside is a word like any other."""
    return kind != "password" or place not in BARE
