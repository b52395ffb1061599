"""Each golden exchange, recorded and replayed: the reply to the byte, and none of another model's."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from golden_cases import case_name, cases, plain
from held import Held
from reenact.boundary.reading import answered, asked
from reenact.contracts.shape import Shape
from reenact.discover import members
from reenact.errors import Miss
from reenact.values.call import CallKind
from reenact.values.event_stream import event_frame
from reenact.values.form_data import fields_or_none
from reenact.values.json import parse

SHAPES = {shape.name.replace(".", "_"): shape for shape in members("shapes", Shape)}
CASES = cases("shapes")


class Provider(BaseHTTPRequestHandler):
    reply: tuple[str, bytes] = "", b""
    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).asked += 1
        kind, data = self.reply
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def place(shape: Shape, model: str) -> str:
    """Where a shape is asked of a model: in most of these APIs the path names it."""
    path = shape.paths[0]
    if path.startswith(":"):
        return f"/v1/projects/p-1/locations/l-1/publishers/google/models/{model}{path}"
    if shape.before and not re.fullmatch(shape.before, "v1"):
        return f"/model/{'embed-' if 'embed' in shape.before else ''}{model}%3A0{path}"
    return f"/v1{path}"


def reply_of(case: Path, shape: Shape) -> tuple[str, bytes]:
    if (case / "reply.json").exists():
        return "application/json", (case / "reply.json").read_bytes()
    if (case / "frames.jsonl").exists():
        lines = (case / "frames.jsonl").read_text(encoding="utf-8").splitlines()
        return shape.framing.media_type, b"".join(event_frame(*parse(line)) for line in lines)  # type: ignore[misc]
    return shape.framing.media_type, (case / "stream.txt").read_bytes()


def post(url: str, body: bytes, media_type: str = "application/json") -> bytes:
    return requests.post(url, data=body, headers={"content-type": media_type}, timeout=30).content


def form_of(fields: dict[str, Any]) -> tuple[bytes, str]:
    """Spell the fields of a golden request as the form that holds them."""
    pairs = [(name, each) for name, value in fields.items() for each in (value if isinstance(value, list) else [value])]
    parts = [
        (name, (each["filename"], b"x" * each["bytes"], each["content_type"]))
        if isinstance(each, dict)
        else (name, (None, each))
        for name, each in pairs
    ]
    prepared = requests.Request("POST", "http://nobody", files=parts).prepare()
    assert isinstance(prepared.body, bytes)
    return prepared.body, prepared.headers["content-type"]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_golden_exchange_is_recorded_as_it_reads_and_answered_to_the_byte(
    case: Path, base: str, tmp_path: Path
) -> None:
    shape, held = SHAPES[case.parent.name], Held(tmp_path)
    body, media_type = (case / "request.json").read_bytes(), "application/json"
    if shape.decode_request is fields_or_none:
        body, media_type = form_of(json.loads(body))
    Provider.reply = reply_of(case, shape)
    url = base + place(shape, "small")
    did = held.record(lambda: post(url, body, media_type))
    assert did.value == Provider.reply[1]
    [node] = did.calls
    assert (node.kind, getattr(node.call.request, "shape", "")) == (shape.kind, shape.name)
    expected = json.loads((case / "read.json").read_text(encoding="utf-8"))
    question, reply = asked(node), answered(node)
    assert plain(reply) == expected["answered"]
    assert question is not None
    in_path = (
        url.split("/")[-2].replace("%3A", ":") if "/model/" in url else "small" if shape.paths[0][0] == ":" else None
    )
    named = in_path if expected["asked"].get("model") is None else None
    assert plain(question) == {**expected["asked"], **({"model": named} if named else {})}
    system = None if node.kind is CallKind.EMBEDDING else shape.system  # OpenInference has it on calls of LLMs alone
    assert node.span.attributes.get("llm.system") == system

    live = Provider.asked
    again = held.replay(did, lambda: post(url, body, media_type))
    assert again.result is not None
    assert (again.value, again.result.result) == (did.value, "same")
    if in_path is not None:
        other = held.replay(did, lambda: post(base + place(shape, "large"), body))
        assert isinstance(other.error, Miss)
    assert Provider.asked == live


def test_a_name_of_amazons_with_slashes_in_it_is_one_model(base: str, tmp_path: Path) -> None:
    Provider.reply = "application/json", b'{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}}}'
    arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fsmall"
    body = b'{"messages": [{"role": "user", "content": [{"text": "hi"}]}]}'
    did = Held(tmp_path).record(lambda: post(f"{base}/model/{arn}/converse", body))
    question = asked(did.calls[0])
    assert question is not None
    assert question.model == "arn:aws:bedrock:us-east-1:123456789012:inference-profile/small"


SECRET = "write to kim.doe@example.org at once"


@pytest.mark.parametrize("chunked", [False, True], ids=["converse", "invoke"])
def test_a_secret_in_pieces_over_amazons_frames_is_in_no_byte_and_every_checksum_is_right(
    chunked: bool,  # noqa: FBT001
    base: str,
    tmp_path: Path,
) -> None:
    import zlib

    from reenact.values.event_stream import frames

    pieces = [SECRET[at : at + 5] for at in range(0, len(SECRET), 5)]
    if chunked:
        events: list[tuple[str, Any]] = [
            ("chunk", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
            for piece in pieces
        ]
        path, body = "/model/small/invoke-with-response-stream", b'{"anthropic_version": "b", "messages": []}'
    else:
        events = [("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}) for piece in pieces]
        path, body = "/model/small/converse-stream", b'{"messages": []}'
    Provider.reply = "application/vnd.amazon.eventstream", b"".join(event_frame(*each) for each in events)

    def read() -> bytes:
        with requests.post(base + path, data=body, stream=True, timeout=30) as reply:
            return b"".join(reply.iter_content(math.ceil(len(Provider.reply[1]) / 3)))

    held = Held(tmp_path)
    did = held.record(read)
    reply = answered(did.calls[0])
    assert reply is not None
    assert "REDACTED_e_mail" in str(reply.messages)
    stored = b"".join(file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file())
    assert not any(word in stored for word in (b"kim.doe", b"example.org"))
    again = held.replay(did, read)
    assert again.result is not None
    assert again.result.result == "same"
    got = frames(again.value)
    assert got[-1].end == len(again.value)
    assert len(got) == len(events)
    for frame in got:
        told = again.value[frame.start : frame.end]
        assert zlib.crc32(told[:-4]) == int.from_bytes(told[-4:])
    assert b"kim.doe" not in b"".join(
        json.dumps(event).encode()
        for event in SHAPES["anthropic_bedrock_stream" if chunked else "aws_bedrock_converse_stream"].framing.events(
            again.value
        )
    )
