"""Cassettes of strangers: what they may hold beside what recorders write, and what must not harm."""

from __future__ import annotations

import base64
import builtins
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from reenact.errors import InputError
from reenact.formats import vcr_cassette
from reenact.graph.build import interpret
from reenact.values.call import HttpReply, HttpRequest, Returned, Streamed, Unfinished
from reenact.values.span import SpanRecord

ASKED = '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}'
ANSWERED = '{"id":"c","object":"chat.completion","model":"m","choices":[]}'


def cassette(**changed: Any) -> dict[str, Any]:
    request = {"method": "POST", "uri": "https://api.openai.com/v1/chat/completions", "body": ASKED, "headers": {}}
    response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": ANSWERED}}
    request |= changed.pop("request", {})
    response |= changed.pop("response", {})
    return {"interactions": [{"request": request, "response": response, **changed}], "version": 1}


def read(data: bytes | str | dict[str, Any]) -> list[SpanRecord]:
    text = json.dumps(data) if isinstance(data, dict) else data
    raw = text.encode() if isinstance(text, str) else text
    return list(vcr_cassette.FORMAT.decode(io.BytesIO(raw), Path("c.yaml")))  # type: ignore[arg-type]


def call(data: bytes | str | dict[str, Any]) -> tuple[HttpRequest, Any, list[dict[str, str]]]:
    asked, outcome = interpret(read(data)[0])
    assert isinstance(asked.request, HttpRequest)
    lost = asked.attributes.get("reenact.lost")
    return asked.request, outcome, lost if isinstance(lost, list) else []  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"body": {"string": ANSWERED}}, ANSWERED.encode()),
        ({"body": ANSWERED}, ANSWERED.encode()),
        ({"body": {"base64_string": base64.b64encode(b"\xff\x00").decode()}}, b"\xff\x00"),
        ({"content": ANSWERED, "body": None}, b""),
        ({"body": {"answer": 42}}, b'{"answer":42}'),
        ({"body": 42}, b"42"),
        (
            {
                "headers": {"content-encoding": ["gzip"]},
                "body": {"base64_string": base64.b64encode(gzip.compress(b"{}")).decode()},
            },
            b"{}",
        ),
        ({"headers": {"Content-Encoding": ["gzip"]}, "body": {"string": "{}"}}, b"{}"),
        ({"headers": {"Content-Encoding": ["br"]}, "body": {"string": "{}"}}, b"{}"),
    ],
)
def test_bodies_of_every_spelling(told: dict[str, Any], expected: bytes) -> None:
    told = {"headers": {}, **told}
    told["headers"] = {**told["headers"], "Content-Type": ["application/octet-stream"]}
    _, outcome, _ = call(cassette(request={"uri": "https://example.com/x"}, response=told))
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.payload, HttpReply)
    assert outcome.payload.body.data == expected
    assert not {"content-encoding", "content-length"} & {name.lower() for name, _ in outcome.payload.headers}


@pytest.mark.parametrize(
    ("status", "expected"),
    [({"code": 429}, 429), (503, 503), ("404 Not Found", 404), ({"code": "201"}, 201), (True, None), ({}, None)],
)
def test_statuses_of_every_spelling(status: Any, expected: int | None) -> None:
    _, outcome, _ = call(cassette(response={"status": status}))
    if expected is None:
        assert isinstance(outcome, Unfinished)
    else:
        assert isinstance(outcome, Returned)
        assert isinstance(outcome.payload, HttpReply)
        assert outcome.payload.status == expected


def test_the_exact_bytes_of_a_model_call_are_evidence() -> None:
    request, outcome, lost = call(cassette(response={"headers": {"Content-Type": ["application/json"]}}))
    assert (request.shape, request.body.data) == ("openai.chat", ASKED.encode())
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.payload, HttpReply)
    assert outcome.payload.body.data == ANSWERED.encode()
    assert lost == []


def test_what_a_cassette_lacks_is_said() -> None:
    _, outcome, lost = call(cassette(response={"body": {"string": ""}}))
    assert isinstance(outcome, Unfinished)
    assert any("empty body" in each["lost"] for each in lost)
    _, _, lost = call(cassette())
    assert [each["field"] for each in lost] == ["headers"]
    _, streamed, lost = call(cassette(response={"body": {"string": "data: {}\n\ndata: [DONE]\n\n"}}))
    assert isinstance(streamed, Streamed)
    assert {"stream", "headers"} == {each["field"] for each in lost}
    gemini = {"uri": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.0-flash:generateContent"}
    request, outcome, lost = call(cassette(request=gemini))
    assert request.shape == "http"
    assert isinstance(outcome, Returned)
    assert any("does not read" in each["lost"] for each in lost)


def test_credentials_of_a_cassette_stay_in_it() -> None:
    spans = read(
        cassette(
            request={
                "headers": {"Authorization": ["Bearer sk-secret"], "x-stainless-retry-count": ["2"]},
                "uri": "https://user:hidden@api.openai.com/v1/chat/completions",
            },
            response={"headers": {"Set-Cookie": ["session=hidden"], "x-request-id": ["r"]}},
        )
    )
    told = repr(spans)
    assert "secret" not in told
    assert "hidden" not in told
    assert spans[0].attributes["http.request.resend_count"] == 2


def test_equal_cassettes_are_one_run_and_others_are_not() -> None:
    one, two, other = read(cassette()), read(cassette()), read(cassette(request={"body": "{}"}))
    assert one == two
    assert one[0].trace_id != other[0].trace_id
    assert len({span.span_id for span in one}) == len(one)


def test_tags_of_languages_build_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    text = f"""interactions:
- request: !!python/object:vcr.request.Request
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    body: !!python/object/apply:os.system ["touch {canary}"]
    headers: !!python/object/new:http.cookies.Morsel {{}}
  response: !ruby/object:VCR::Response
    status: {{code: 200}}
    body: {{string: !!python/unicode '{ANSWERED}'}}
    headers: {{}}
version: 1
"""
    spans = read(text)
    assert len(spans) == 2
    assert not canary.exists()


def test_aliases_that_multiply_are_left_out() -> None:
    levels = "\n".join(f"    l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10))
    text = f"""interactions:
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    l0: &l0 [x, x, x, x]
{levels}
    parsed_body: *l9
  response: {{status: {{code: 200}}, headers: {{}}, body: {{string: '{ANSWERED}'}}}}
version: 1
"""
    spans = read(text)
    assert spans[0].attributes["input.value"] == ""


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("interactions:\n- request: {a: [b\nversion: 1\n", "c.yaml:", "not YAML"),
        ("interactions:\n- request: 5\n", "c.yaml", "no object with a `request`"),
        ("interactions:\n- 5\n", "c.yaml", "no object with a `request`"),
        ("interactions: 5\n", "c.yaml", "no list of interactions"),
        ('{"interactions": [', "c.yaml", "not JSON"),
        ("interactions:\n- request: " + "[" * 3000 + "\n", "c.yaml", "nested deeper than"),
        ("interactions: *nowhere\n", "c.yaml:1", "not YAML"),
        ("interactions: !!timestamp 9999-99-99\n", "c.yaml", ""),
    ],
)
def test_what_is_no_cassette_is_refused_with_its_place(text: str, place: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(text)
    assert refused.value.place.startswith(place)
    assert said in str(refused.value)


def test_without_pyyaml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError) as refused:
        read("interactions: []\n")
    assert "reenact[vcr]" in str(refused.value)
    assert read(cassette())  # JSON needs nothing


def test_it_is_known_by_its_content() -> None:
    recognises = vcr_cassette.FORMAT.recognises
    assert recognises(b"interactions:\n- request:\n") > 0.9
    assert recognises(b"---\nversion: 2\ninteractions:\n    - id: 0\n") > 0.9
    assert recognises(b"# made by hand\n---\nhttp_interactions:\n- request:\n") > 0.9
    assert recognises(b"---\nversion: 1\nrwmutex: {}\ninteractions:\n- request:\n") > 0.9
    assert recognises(b"name: x\nsteps:\n  - interactions:\n") == 0
    assert recognises(b"a: b\n" * 10_000) == 0
    assert recognises(b"-\n    request:\n        method: GET\n") > 0.9
    assert recognises(b'{"http_interactions": [{"request": {}}]}') > 0.9
    assert recognises(b"services:\n  web:\n    image: x\n") == 0
    assert recognises(b'{"resourceSpans": [], "interactions": 5}') == 0
