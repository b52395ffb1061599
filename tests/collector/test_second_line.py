"""What the gateway masks of spans that came without our redaction; of those that came with it, it touches nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.probing import PROTOBUF, Target, ask, one_span
from collector.real import Collector, needs_collector, running
from desk import Desk
from reenact.find.sources import runs_in
from reenact.formats.otlp_proto import to_request
from reenact.read.open import open_spans
from reenact.values.span import SpanRecord

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs_collector]

MASK = "****"
SECRETS = {
    "OpenAI, of a project": "sk-" + "proj-" + "Zx9" * 20,
    "OpenAI, of before": "sk-" + "a1B2c3D4e5F6g7H8i9J0" + "T3BlbkFJ" + "a1B2c3D4e5F6g7H8i9J0",
    "Anthropic": "sk-" + "ant-api03-" + "q7_" * 31,
    "AWS": "AKIA" + "QWERTYUIOPASDFGH",
    "Google": "AIza" + "Sy" + "D3x-K_9" * 4 + "abcde",
    "GitHub": "ghp_" + "a1B2c3D4e5F6" * 3,
    "GitHub, fine-grained": "github_pat_" + "11ABCDEFG0" * 5,
    "GitLab": "glpat-" + "x9Y8-z7W6_v5U4t3S2r1",
    "Slack": "xoxb-" + "1234567890-" * 2 + "AbCdEfGhIjKl",
    "Stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "key": "-----BEGIN RSA PRIVATE KEY-----\n" + ("MIIEpAIBAAKCAQEA" * 4 + "\n") * 5 + "-----END RSA PRIVATE KEY-----",
}
INNOCENT = (
    "the task-force-of-the-north-and-the-south-met at risk-adjusted-return-on-capital-2026",
    "REDACTED_openai_key_0123456789abcdef0123 and REDACTED_e_mail_0123456789abcdef0123@redacted.invalid",
    "mask-REDACTED_github_token_0123456789abcdef0123, sk-REDACTED_openai_key_0123456789abcdef0123",
    "an AKIA in a sentence, ghp_ in another, xoxb-1, a eyJ, -----BEGIN CERTIFICATE-----",
    json.dumps({"api_key": "REDACTED_generic_0123456789abcdef0123", "max_tokens": 7}),
    "4111 1111 1111 1111, +49 30 123456, somebody@example.com",  # the first line's business
)


def through(folder: Path, *requests: tuple[str, bytes]) -> Iterator[Any]:
    """Send requests, each with its path, through the gateway, and give the records of its archive."""
    with running(Collector(folder)) as collector:
        target = Target(name="gateway", http=collector.http)
        for path, body in requests:
            reply = ask(target, body, PROTOBUF, path=path)
            assert reply.status == 200, reply.body
    return iter(list(open_spans(collector.archive)))


def test_credentials_are_masked_in_every_place(tmp_path: Path) -> None:
    places: dict[str, str] = {}
    for name, secret in SECRETS.items():
        places[f"input.value.{name}"] = f"before {secret} after"
        places[f"output.value.{name}"] = json.dumps({"a": [f"x={secret}"]})
    request = one_span(**places)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.events.add(name="exception").attributes.add(key="exception.message").value.string_value = SECRETS["AWS"]
    request.resource_spans[0].resource.attributes.add(key="of").value.string_value = SECRETS["GitHub"]
    (found,) = through(tmp_path / "gateway", ("/v1/traces", request.SerializeToString()))
    text = repr(found)
    for name, secret in SECRETS.items():
        assert secret not in text, name
        assert secret[8:] not in text, name
        assert found.attributes[f"input.value.{name}"].startswith(f"before {MASK}")
        assert json.loads(found.attributes[f"output.value.{name}"]), "still JSON"
    assert found.attributes["input.value.AWS"] == f"before {MASK} after"
    assert found.events[0].attributes["exception.message"] == MASK
    assert found.resource.attributes["of"] == MASK


def test_attributes_are_masked_by_name_and_counters_are_not(tmp_path: Path) -> None:
    secret = ("http.request.header.authorization", "api_key", "db.password", "x-api-key", "my.session_token", "SECRET")
    plain = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "user.id", "session.id", "max_tokens", "secretary")
    plain += ("reenact.redaction.replaced.private_key",)
    request = one_span(**dict.fromkeys(secret, "hunter2"), **dict.fromkeys(plain, 7))
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.attributes.add(key="http.request.header.cookie").value.array_value.values.add().string_value = "a=hunter2"
    (found,) = through(tmp_path / "gateway", ("/v1/traces", request.SerializeToString()))
    assert "hunter2" not in repr(found)
    assert {name: found.attributes[name] for name in secret} == dict.fromkeys(secret, MASK)
    assert {name: found.attributes[name] for name in plain} == dict.fromkeys(plain, 7)
    assert found.attributes["http.request.header.cookie"] == MASK


def test_what_the_recorder_put_in_and_ordinary_text_pass_unchanged(tmp_path: Path) -> None:
    request = one_span(**{f"input.value.{number}": text for number, text in enumerate(INNOCENT)})
    (found,) = through(tmp_path / "gateway", ("/v1/traces", request.SerializeToString()))
    assert dict(found.attributes) == {f"input.value.{number}": text for number, text in enumerate(INNOCENT)}


def test_bodies_of_log_events_are_masked_too(tmp_path: Path) -> None:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add(event_name="gen_ai.user.message")
    record.trace_id, record.span_id = b"\x01" * 16, b"\x02" * 8
    record.body.string_value = f"my key is {SECRETS['GitHub']}"
    inner = record.attributes.add(key="content")
    inner.value.string_value = SECRETS["AWS"]
    found = list(through(tmp_path / "gateway", ("/v1/logs", request.SerializeToString())))
    assert found
    assert SECRETS["GitHub"] not in repr(found)
    assert SECRETS["AWS"] not in repr(found)


AGENT = """
import os
import reenact

@reenact.tool
def credentials(of: str) -> dict:
    return {"key": os.environ["A_SECRET"], "of": of}

@reenact.tool
def use(key: str) -> str:
    return "with " + key[-4:]

print(use(credentials("acme")["key"]) and "used")
"""


@pytest.mark.parametrize("name", ["AWS", "GitHub", "Anthropic", "key"])
def test_a_run_with_secrets_replays_from_behind_the_gateway(name: str, tmp_path: Path) -> None:
    with running(Collector(tmp_path / "gateway")) as collector:
        desk = Desk(tmp_path, {"REENACT_EXPORT": f"{collector.http}/v1/traces", "A_SECRET": SECRETS[name]})
        done = desk.reenact("run", "--", "python", desk.write("agent.py", AGENT))
        assert done.stdout == "used\n", done.stderr
        assert desk.reenact("status", "--send", "--within", "20").returncode == 0
    archived = b"".join(file.read_bytes() for file in collector.archive.iterdir())
    assert SECRETS[name].encode() not in archived
    assert b"REDACTED_" in archived
    (run,) = runs_in(collector.archive)
    masked = [name for node in run.nodes for name, value in node.span.attributes.items() if MASK in str(value)]
    assert not masked, "nothing is left to mask"
    assert not any("redaction.masked.count" in node.span.attributes for node in run.nodes)
    environ = {**desk.bare(), "A_SECRET": SECRETS[name]}
    replayed = desk.reenact("replay", "--trust", str(collector.archive), "--store", "elsewhere", environ=environ)
    assert (replayed.returncode, replayed.stdout) == (0, "used\n"), replayed.stderr
    assert "same: 2 tool" in replayed.stderr


def test_real_traces_pass_with_nothing_changed_but_credentials(
    shared_data: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Traces that others recorded: a value that the gateway changed must have held what it masks."""
    sent: dict[tuple[str, str], SpanRecord] = {}
    for file in sorted((shared_data / "traces").rglob("*.json*"))[:400]:
        if file.stat().st_size > 3_000_000:
            continue
        try:
            spans = [each for each in open_spans(file) if isinstance(each, SpanRecord)]
        except Exception:  # noqa: BLE001 - not every file is a trace, and that is tested elsewhere
            continue
        sent |= {(each.trace_id, each.span_id): each for each in spans}
    bodies = [
        ("/v1/traces", to_request(list(sent.values())[at : at + 100]).SerializeToString())
        for at in range(0, len(sent), 100)
    ]
    found = [each for each in through(tmp_path / "gateway", *bodies) if isinstance(each, SpanRecord)]
    assert len(found) == len(sent) > 500
    changed = [
        (name, value, each.attributes.get(name))
        for each in found
        for name, value in sent[each.trace_id, each.span_id].attributes.items()
        if each.attributes.get(name) != value
    ]
    assert all(MASK in str(after) for _, _, after in changed), changed[:3]
    values = sum(len(each.attributes) for each in sent.values())
    record_property("figure", f"gateway: {values:,} attributes of {len(sent):,} real spans, {len(changed)} masked")
    assert len(changed) < values / 1000, changed[:5]
