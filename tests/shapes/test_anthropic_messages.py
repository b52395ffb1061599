from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from golden_cases import case_name, cases
from made import Made
from matrix import cassettes
from matrix.passing import client, record
from matrix.serving import Provider, Reply
from reenact.compare.align import compare
from reenact.contracts.shape import Shape
from reenact.dialects.openinference import WRITING
from reenact.discover import members
from reenact.shapes.anthropic_messages import COUNT_TOKENS, SHAPE
from reenact.values import sse
from reenact.values.call import Body, Call, HttpReply, HttpRequest, Returned

STREAMS = [
    case for case in cases("shapes") if case.parent.name == "anthropic_messages" and (case / "stream.txt").exists()
]
BEYOND_THE_SDK = {
    "stream_error_event": "the SDK raises",
    "stream_cut_off": "the SDK guesses the rest of a tool's input; here the text stays as it came",
}


def said_by_the_sdk(provider: Provider, body: bytes) -> Any:
    url = provider.answer("stream", Reply(body=body, content_type="text/event-stream"))
    asked: Any = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "?"}]}
    with client(url, sdk="anthropic") as opened, opened.messages.stream(**asked) as stream:
        return stream.get_final_message().to_dict(mode="json", exclude_unset=False)


def without_nulls(value: Any) -> Any:
    """Drop what the SDK adds by itself: nulls, and empty lists of citations."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None and item != []}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", [case for case in STREAMS if case.name not in BEYOND_THE_SDK], ids=case_name)
def test_a_folded_stream_is_what_the_sdk_makes_of_it(case: Path) -> None:
    body = (case / "stream.txt").read_bytes()
    with Provider() as provider:
        assert without_nulls(SHAPE.fold(sse.json_events(body))) == without_nulls(said_by_the_sdk(provider, body))


def test_real_streams_fold_to_what_the_sdk_makes_of_them(shared_data: Path) -> None:
    found = [each for each in cassettes.discovered("anthropic", shared_data / "cassettes") if each.streamed]
    run = [each for each in found if not each.excluded]
    with Provider() as provider:
        for each in run:
            folded = SHAPE.fold(sse.json_events(each.body))
            provider.answer("stream", Reply(body=each.body, content_type="text/event-stream"))
            provider.next_reply("stream")
            final = said_by_the_sdk(provider, each.body)
            assert without_nulls(folded) == without_nulls(final), each.name
    assert len(run) >= 3


def test_a_tool_input_that_was_cut_off_stays_as_it_came() -> None:
    (case,) = [case for case in STREAMS if case.name == "stream_cut_off"]
    reply = SHAPE.read_reply(SHAPE.fold(sse.json_events((case / "stream.txt").read_bytes())))
    assert getattr(reply.messages[0].parts[0], "arguments", None) == '{"parcel": 47'


ADDRESSES = [
    ("/v1/messages", b'{"messages":[]}', "anthropic.messages"),
    ("/v1/messages?beta=true", b'{"messages":[]}', "anthropic.messages"),
    ("/gateway/anthropic/v1/messages", b'{"messages":[]}', "anthropic.messages"),
    ("/v1/messages/count_tokens", b'{"messages":[]}', "anthropic.count_tokens"),
    ("/v1/messages/batches", b'{"requests":[]}', "anthropic.batches"),
    ("/v1/messages/batches/msgbatch_01/cancel", b"", ""),
    ("/v1/messages", b'{"from":"ACME","to":"4711","text":"an SMS by another API of this path"}', ""),
    ("/v1/threads/thread_1/messages", b'{"role":"user","content":"messages"}', ""),
    ("/v1/complete", b'{"prompt":"?"}', ""),
]


def test_each_call_is_read_by_its_own_shape(tmp_path: Path) -> None:
    import httpx

    with Provider() as provider:
        urls = {
            provider.answer(f"n{number}", Reply()).removesuffix("/v1") + path: (body, shape)
            for number, (path, body, shape) in enumerate(ADDRESSES)
        }

        def program() -> None:
            for url, (body, _) in urls.items():
                assert httpx.post(url, content=body).status_code == 200

        _, spans, _ = record(program, tmp_path)
    shapes = {span.attributes.get("url.full"): span.attributes.get("reenact.shape") for span in spans}
    spoken = {url: shape for url in urls if str(shape := shapes.get(url, "")).startswith("anthropic.")}
    assert spoken == {url: shape for url, (_, shape) in urls.items() if shape}


def flattened(case: Path) -> dict[str, Any]:
    shape = next(s for s in members("shapes", Shape) if s.name.replace(".", "_") == case.parent.name)
    body = Body((case / "request.json").read_bytes())
    url = f"https://api.anthropic.com{shape.paths[0]}"
    request = HttpRequest(shape=shape.name, method="POST", url=url, body=body)
    call = Call(kind=shape.kind, name=shape.span_name, request=request)
    reply = HttpReply(status=200, headers=(), body=Body((case / "reply.json").read_bytes()))
    return {**WRITING.encode_call(call), **WRITING.flatten(call, Returned(payload=reply))}


def golden(name: str) -> Path:
    return next(case for case in cases("shapes") if case_name(case) == name)


def test_a_round_of_tools_is_shown_as_openinference_spells_it() -> None:
    shown = flattened(golden("anthropic_messages/tool_round"))
    assert shown["llm.system"] == shown["llm.provider"] == shown["gen_ai.provider.name"] == "anthropic"
    assert shown["llm.input_messages.0.message.role"] == "system"
    called = "llm.input_messages.2.message.tool_calls.1.tool_call"
    assert shown[f"{called}.id"] == "toolu_2"
    assert json.loads(shown[f"{called}.function.arguments"]) == {"parcel": 4712}
    assert shown["llm.input_messages.4.message.tool_call_id"] == "toolu_2"
    assert shown["llm.input_messages.4.message.content"] == "no such parcel"
    assert shown["llm.output_messages.0.message.tool_calls.0.tool_call.function.name"] == "locate"
    assert json.loads(shown["llm.tools.0.tool.json_schema"])["name"] == "locate"
    counts = {key.removeprefix("llm.token_count."): n for key, n in shown.items() if key.startswith("llm.token_count.")}
    assert counts == {
        "prompt": 1231,
        "completion": 12,
        "total": 1243,
        "prompt_details.cache_read": 1000,
        "prompt_details.cache_write": 200,
    }


def test_thinking_is_shown_with_what_seals_it() -> None:
    shown = flattened(golden("anthropic_messages/thinking"))
    said = "llm.output_messages.0.message.contents"
    assert shown[f"{said}.0.message_content.type"] == shown[f"{said}.1.message_content.type"] == "reasoning"
    assert shown[f"{said}.0.message_content.signature"] == "c2lnbmVkLTI="
    assert shown[f"{said}.1.message_content.data"] == "c2VhbGVkLTI="
    assert shown["llm.token_count.completion_details.reasoning"] == 9


def test_stop_sequences_and_temperature_are_shown() -> None:
    shown = flattened(golden("anthropic_messages/text"))
    assert shown["gen_ai.request.stop_sequences"] == ["END"]
    assert (shown["gen_ai.request.temperature"], shown["gen_ai.request.max_tokens"]) == (0.2, 512)


def test_counting_tokens_is_no_usage() -> None:
    shown = flattened(golden("anthropic_count_tokens/with_tools"))
    assert shown["gen_ai.operation.name"] == COUNT_TOKENS.operation == "count_tokens"
    assert not [
        name for name in shown if name.startswith(("llm.token_count.", "llm.output_messages.", "gen_ai.usage."))
    ]


def test_two_runs_in_which_other_tokens_were_counted_differ() -> None:
    def counted(tokens: int) -> Any:
        made = Made()
        body = Body((golden("anthropic_count_tokens/with_tools") / "request.json").read_bytes())
        url = "https://api.anthropic.com/v1/messages/count_tokens"
        reply = HttpReply(status=200, headers=(), body=Body(b'{"input_tokens":%d}' % tokens))
        asked = HttpRequest(shape=COUNT_TOKENS.name, method="POST", url=url, body=body)
        made.add(COUNT_TOKENS.kind, COUNT_TOKENS.span_name, asked, Returned(payload=reply))
        return made.run()

    assert compare(counted(403), counted(403)).same
    different = compare(counted(403), counted(404))
    assert not different.same
    assert different.first is not None
    assert different.first.field.endswith("input_tokens")
