"""A real Phoenix: what it shows of our spans, what it keeps of them, and replays of what it gives back."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from desk import EXAMPLES, ROOT, Desk
from reenact.demo.provider import StandIn
from reenact.find.sources import runs_in
from reenact.values.span import SpanRecord

SERVER = ROOT / ".venv-phoenix" / "bin" / "phoenix"
ADDED = {"llm.provider", "reenact.lost"}
"""What Phoenix fills in by itself, and what reading its file says that it lacks."""
SHOWN = {"llm.system"}
"""What a backend is shown beside what the store holds; the parameters of tools as well, which Phoenix parts."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not SERVER.exists(), reason="Phoenix lives in an environment of its own: make test-phoenix"),
]


@dataclass(frozen=True)
class Phoenix:
    """A running Phoenix."""

    url: str

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=20) as reply:
            return reply.read()  # type: ignore[no-any-return]

    def asked(self, query: str) -> Any:
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.loads(reply.read())["data"]

    def shown(self, trace_id: str) -> dict[str, dict[str, Any]]:
        """Give what its screen says of the spans of one trace, by span id."""
        fields = (
            "name spanKind statusCode parentId context { spanId traceId } tokenCountTotal tokenCountPrompt "
            "tokenCountCompletion input { value } output { value } attributes"
        )
        spans = f"spans(first: 1000) {{ edges {{ node {{ {fields} }} }} }}"
        found = self.asked(f"{{ projects {{ edges {{ node {{ name {spans} }} }} }} }}")
        nodes = [edge["node"] for project in found["projects"]["edges"] for edge in project["node"]["spans"]["edges"]]
        return {node["context"]["spanId"]: node for node in nodes if node["context"]["traceId"] == trace_id}

    def exported(self, trace_id: str, form: str, to: Path, count: int) -> Path:
        """Write its own export of one trace to a file, page by page, once it has stored `count` spans."""
        until = time.monotonic() + 30
        while len(self.shown(trace_id)) < count and time.monotonic() < until:
            time.sleep(0.2)
        pages: list[bytes] = []
        cursor = ""
        while True:
            asked = f"/v1/projects/default/{form}?limit=40&trace_id={trace_id}{cursor}"
            pages.append(self.get(asked))
            following = json.loads(pages[-1])["next_cursor"]
            if not following:
                to.write_bytes(b"\n".join(pages))
                return to
            cursor = f"&cursor={following}"


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    folder = tmp_path_factory.mktemp("phoenix")
    ports = [free_port(), free_port()]
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(ports[0]),
        "PHOENIX_GRPC_PORT": str(ports[1]),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [str(SERVER), "serve"], env=settings, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    made = Phoenix(f"http://127.0.0.1:{ports[0]}")
    until = time.monotonic() + 120
    while True:
        try:
            made.get("/healthz")
            break
        except (urllib.error.URLError, OSError):
            if server.poll() is not None or time.monotonic() > until:
                server.kill()
                pytest.fail(f"Phoenix did not start:\n{(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.3)
    yield made
    server.terminate()
    server.wait(20)


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


@dataclass(frozen=True)
class Recorded:
    """A run that Phoenix has got, and what the program printed."""

    desk: Desk
    id: str
    stdout: str
    spans: dict[str, SpanRecord]
    """As they were exported, by id."""


@pytest.fixture(scope="module", params=["cleanup_agent.py", "everything.py"])
def recorded(request: pytest.FixtureRequest, phoenix: Phoenix, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Record an agent; one sends its spans while it runs, the other afterwards."""
    folder = tmp_path_factory.mktemp("desk")
    with StandIn(slip=1.0, max_delay_ms=5) as provider:
        environ = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "x", "CLEANUP_DATA": str(folder / "data")}
        at_once = request.param == "everything.py"
        if at_once:
            environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = phoenix.url
        desk = Desk(folder, environ)
        words = ("run", "--user", "u-17", "--session", "s-1", "--", "python", str(EXAMPLES / request.param))
        done = desk.reenact(*words)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    if not at_once:
        sent = desk.reenact("export", "last", "--to", phoenix.url)
        assert sent.returncode == 0, sent.stderr
    assert desk.reenact("export", "last", "-o", "ours.jsonl").returncode == 0
    (ours,) = runs_in(folder / "ours.jsonl")
    return Recorded(desk, run["id"], done.stdout, {node.id: node.span for node in ours.nodes})


def test_phoenix_shows_every_span_with_its_kind_messages_tool_calls_and_tokens(
    phoenix: Phoenix, recorded: Recorded, record_property: Callable[[str, object], None]
) -> None:
    phoenix.exported(recorded.id, "spans", recorded.desk.folder / "all.json", len(recorded.spans))
    shown = phoenix.shown(recorded.id)
    assert shown.keys() == recorded.spans.keys(), "no span dropped"
    tokens = asked = 0
    for span_id, span in recorded.spans.items():
        said, attributes = shown[span_id], span.attributes
        assert said["name"] == span.name
        assert said["spanKind"] == str(attributes["openinference.span.kind"]).lower()
        assert said["parentId"] == span.parent_id
        assert said["statusCode"] == ("UNSET", "OK", "ERROR")[span.status]
        for side in ("input", "output"):
            value = attributes.get(f"{side}.value")
            if value is not None or span.parent_id is not None:  # of a run, backends are shown what it printed
                assert (said[side] or {}).get("value") == value
        for field, name in (("tokenCountPrompt", "prompt"), ("tokenCountCompletion", "completion")):
            if said["spanKind"] == "llm":  # it shows no count of embeddings, whose attribute it keeps
                count = attributes.get(f"llm.token_count.{name}")
                assert (said[field] or 0) == (count or 0)
                tokens += int(count or 0)  # type: ignore[arg-type]
        told = json.loads(said["attributes"])
        for direction in ("input", "output"):
            assert messages(told, direction) == flat_messages(attributes, direction)
            asked += sum(len(message["tool_calls"]) for message in messages(told, direction))
    kinds = Counter(said["spanKind"] for said in shown.values())
    assert kinds["llm"] >= 3
    assert tokens > 0 or not any("llm.token_count.prompt" in span.attributes for span in recorded.spans.values())
    assert asked > 0
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    record_property(
        "figure",
        f"Phoenix shows {len(shown)} of {len(recorded.spans)} spans: {counted}; {tokens} tokens, {asked} tool calls",
    )


def messages(told: dict[str, Any], direction: str) -> list[dict[str, Any]]:
    """Give role, text and tool calls of the messages that Phoenix holds of one span."""
    found = told.get("llm", {}).get(f"{direction}_messages", [])
    return [message_of(each["message"]) for each in found]


def message_of(message: dict[str, Any]) -> dict[str, Any]:
    calls = [call["tool_call"] for call in message.get("tool_calls", [])]
    spelled = [(call.get("id"), call["function"]["name"], call["function"].get("arguments")) for call in calls]
    return {"role": message.get("role"), "content": message.get("content"), "tool_calls": spelled}


def flat_messages(attributes: Any, direction: str) -> list[dict[str, Any]]:
    """Give the same of our own attributes."""
    prefix = f"llm.{direction}_messages."
    nested: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            place = nested
            *above, last = name.removeprefix(prefix).split(".")
            for step in above:
                place = place.setdefault(step, {})
            place[last] = value

    def listed(value: Any) -> Any:
        if isinstance(value, dict):
            if value and all(key.isdecimal() for key in value):
                return [listed(value[key]) for key in sorted(value, key=int)]
            return {key: listed(item) for key, item in value.items()}
        return value

    return [message_of(each["message"]) for each in listed(nested) or []]


@pytest.mark.parametrize("form", ["spans", "spans/otlpv1"])
def test_phoenix_keeps_every_attribute(
    phoenix: Phoenix, recorded: Recorded, form: str, record_property: Callable[[str, object], None]
) -> None:
    file = recorded.desk.folder / f"{form.replace('/', '-')}.json"
    (back,) = runs_in(phoenix.exported(recorded.id, form, file, len(recorded.spans)))
    assert {node.id for node in back.nodes} == recorded.spans.keys()
    added: set[str] = set()
    for node in back.nodes:
        ours, theirs = recorded.spans[node.id], node.span
        added |= theirs.attributes.keys() - ours.attributes.keys()
        kept = {name: value for name, value in ours.attributes.items() if name in theirs.attributes}
        # a span that was sent while its process ran cannot say how that process ended
        assert ours.attributes.keys() - kept.keys() <= {"process.exit.code"}
        assert {name: theirs.attributes[name] for name in kept} == kept
        assert [(event.name, event.attributes) for event in theirs.events] == [
            (e.name, e.attributes) for e in ours.events
        ]
        assert (theirs.status, theirs.status_message) == (ours.status, ours.status_message)
        assert abs(theirs.start_ns - ours.start_ns) < 2000, "to the microsecond"
    assert {name for name in added if not name.startswith("tool.parameters")} <= ADDED | SHOWN
    count = sum(len(span.attributes) for span in recorded.spans.values())
    figure = f"Phoenix {form}: {count} attributes of {len(recorded.spans)} spans unaltered, added {sorted(added)}"
    record_property("figure", figure)


@pytest.mark.parametrize("form", ["spans", "spans/otlpv1"])
def test_what_phoenix_gives_back_is_replayed(phoenix: Phoenix, recorded: Recorded, form: str) -> None:
    desk = recorded.desk
    name = f"{form.replace('/', '-')}.json"
    phoenix.exported(recorded.id, form, desk.folder / name, len(recorded.spans))
    judged = json.loads(desk.reenact("doctor", name, "--json").stdout)
    lost = {reason["field"] for reason in judged["verdict"]["reasons"]}
    assert (judged["verdict"]["grade"], lost) == ("partial", {"resource", "times"}), "Phoenix keeps neither"
    replayed = desk.reenact("replay", "--trust", name, "--store", "elsewhere", environ=desk.bare())
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    assert "same: " in replayed.stderr
    assert ", 0 live" in replayed.stderr


def test_a_changed_agent_diverges_from_what_phoenix_gives_back(phoenix: Phoenix, recorded: Recorded) -> None:
    if "DELETED FROM PRODUCTION" not in recorded.stdout:
        pytest.skip("the guard is the other agent's")
    phoenix.exported(recorded.id, "spans", recorded.desk.folder / "guarded.json", len(recorded.spans))
    words = ("replay", "guarded.json", "--store", "elsewhere", "--", "python", str(EXAMPLES / "cleanup_agent.py"))
    replayed = recorded.desk.reenact(*words, "--guarded")
    assert replayed.returncode == 1
    assert "diverged: tool delete_accounts" in replayed.stderr


def place(phoenix: Phoenix) -> str:
    return f"phoenix+{phoenix.url}"


def test_runs_are_found_in_a_running_phoenix(phoenix: Phoenix, recorded: Recorded) -> None:
    desk = recorded.desk
    phoenix.exported(recorded.id, "spans", desk.folder / "awaited.json", len(recorded.spans))

    def ids(*words: str) -> list[str]:
        done = desk.reenact("ls", place(phoenix), "--json", *words)
        assert done.returncode == 0, done.stderr
        return [run["id"] for run in json.loads(done.stdout)["runs"]]

    assert recorded.id in ids()
    of_a_session = [each for name in ("s-1", "s-5") for each in ids("--user", "u-17", "--session", name)]
    assert recorded.id in of_a_session, "Phoenix keeps one session of a trace; that of a run inside may be the one"
    assert ids("--session", "nobody's") == ids("--until", "2020-01-01") == ids("--tool", "no-such-tool") == []
    assert len(ids("-n", "1")) == 1
    (told,) = [
        run
        for run in json.loads(desk.reenact("ls", place(phoenix), "--json").stdout)["runs"]
        if run["id"] == recorded.id
    ]
    assert told["source"] == f"{place(phoenix)}/default"
    assert told["calls"]["llm"] >= 3
    for named in (recorded.id, recorded.id[:14], recorded.id[:14].upper()):
        shown = desk.reenact("show", f"{place(phoenix)}#{named}", "--json")
        assert shown.returncode == 0, shown.stderr
        assert json.loads(shown.stdout)["run"]["id"] == recorded.id
        assert {call["id"] for call in json.loads(shown.stdout)["calls"]} <= recorded.spans.keys()


def test_a_run_is_replayed_and_exported_straight_from_a_running_phoenix(phoenix: Phoenix, recorded: Recorded) -> None:
    desk, named = recorded.desk, f"{place(phoenix)}/default#{recorded.id}"
    phoenix.exported(recorded.id, "spans", desk.folder / "awaited.json", len(recorded.spans))
    replayed = desk.reenact("replay", "--trust", named, "--store", "elsewhere", environ=desk.bare())
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    assert ", 0 live" in replayed.stderr
    assert desk.reenact("export", named, "-o", "from-phoenix.jsonl").returncode == 0
    (back,) = runs_in(desk.folder / "from-phoenix.jsonl")
    assert {node.id for node in back.nodes} == recorded.spans.keys()


@pytest.mark.parametrize(
    ("named", "code", "said"),
    [
        ("{}#ffffffffffff", 3, "holds no run 'ffffffffffff'"),
        ("{}/nowhere", 3, "answered 404"),
        ("{}/v1/projects/default", 3, "v1"),
        ("{}?limit=3", 2, "names no Phoenix"),
        ("phoenix+http://user:secret@127.0.0.1:1", 3, "cannot be asked"),
        ("gopher://127.0.0.1:1", 2, "no backend is known by gopher://"),
    ],
)
def test_what_phoenix_cannot_give_is_said(
    phoenix: Phoenix, recorded: Recorded, named: str, code: int, said: str
) -> None:
    done = recorded.desk.reenact("show", named.format(place(phoenix)))
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "secret" not in done.stderr
