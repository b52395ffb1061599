"""What is remembered of spans and bodies changes nothing: each is read as if it were met for the first time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from golden_cases import GOLDEN
from reenact.boundary.reading import answered
from reenact.discover import surest
from reenact.graph.build import build
from reenact.graph.interpret import dialects, likely
from reenact.read.open import open_spans
from reenact.values.call import Body, Call, CallKind, Chunk, HttpReply, HttpRequest, Outcome, Returned, Streamed
from reenact.values.run import Node
from reenact.values.span import SpanEvent, SpanRecord

SPAN = SpanRecord(trace_id="a" * 32, span_id="b" * 16, parent_id=None, name="chat", start_ns=1, end_ns=2)


@pytest.mark.parametrize("path", sorted((GOLDEN / "foreign").glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_likely_dialects_hold_the_surest_of_all(path: Path) -> None:
    for span in [span for run in build(open_spans(path)) for span in (node.span for node in run.nodes)]:
        assert surest(likely(span), span) == surest(dialects(), span)


def test_spans_of_equal_names_are_told_apart_by_values_scopes_and_events() -> None:
    marks = [each.marks for each in dialects() if each.marks is not None]
    (name, value), *_ = [pair for each in marks for pair in each.values]  # type: ignore[attr-defined]
    plain = replace(SPAN, attributes={name: "another"})
    told = replace(plain, attributes={name: value})
    noted = replace(plain, events=(SpanEvent(name="gen_ai.choice", time_ns=1),))
    for span in (plain, told, noted, plain):
        assert [each for each in likely(span) if each.sure(span)] == [each for each in dialects() if each.sure(span)]
    assert len(likely(told)) > len(likely(plain))


def test_a_stream_that_its_client_read_as_a_whole_says_the_same() -> None:
    data = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}\n\ndata: [DONE]\n\n'
    request = HttpRequest(shape="openai.chat", method="POST", url="", body=Body(b'{"model":"m"}'))
    call = Call(kind=CallKind.LLM, name="chat", request=request)

    def node(outcome: Outcome) -> Node:
        return Node(id="1", trace_id="2", parent=None, number=1, call=call, outcome=outcome, span=SPAN)

    streamed = node(Streamed(status=200, headers=(), chunks=(Chunk(offset_us=0, order=1, data=data),)))
    whole = node(Returned(payload=HttpReply(status=200, headers=(), body=Body(data))))
    for _ in range(2):
        assert answered(whole) == answered(streamed)
        reply = answered(streamed)
        assert reply is not None
        assert reply.messages
