from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pydantic
import pytest

import reenact
from golden_cases import GOLDEN
from matrix import cassettes
from matrix.asking import Seen, ask, each, entered, fields, outcome, settled, take
from matrix.exchange import Exchange
from matrix.passing import Passed, Program, client, ran, there_and_back
from matrix.serving import Provider, Reply
from matrix.whole import WAYS, Share, Whole, census, each_exchange, each_share, every, in_turn, shares, wrong

pytestmark = [pytest.mark.older, pytest.mark.sample(8)]

FOUND = cassettes.golden()
SHARES = shares(FOUND, one_in=2)
ASKED: dict[str, Any] = {"model": "small-1", "messages": [{"role": "user", "content": "Where is parcel 4711?"}]}
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


@pytest.fixture(scope="module")
def went(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Share], Whole]:
    return in_turn(tmp_path_factory.mktemp("stores"))


@each_exchange(SHARES)
def test_an_exchange_replays_as_it_was(
    went: Callable[[Share], Whole],
    share: Share,
    exchange: Exchange,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("counted", f"own cases on openai {openai.__version__} ({share.way})")
    assert wrong(exchange, went(share)) == []


@each_share(SHARES)
def test_every_call_of_a_recording_is_answered_once(went: Callable[[Share], Whole], share: Share) -> None:
    whole = went(share)
    assert whole.passed.is_whole(), (whole.passed.counts, whole.passed.unconsumed)


def test_every_kind_of_exchange_is_among_the_cases(record_property: Callable[[str, object], None]) -> None:
    record_property("figure", f"own cases on openai {openai.__version__}: {census(FOUND)}")
    assert {(each.api, each.streamed, each.status >= 400) for each in FOUND} >= {
        ("chat", False, False),
        ("chat", True, False),
        ("chat", False, True),
        ("responses", False, False),
        ("responses", True, False),
        ("responses", False, True),
        ("embeddings", False, False),
    }


def test_a_body_that_changed_on_the_way_is_seen(tmp_path: Path) -> None:
    exchange = next(each for each in FOUND if each.name == "openai_chat/unknown_fields")
    whole = every([exchange], WAYS[0], tmp_path)
    again = whole.passed.again[exchange.name]
    again["raw"]["body"] = again["raw"]["body"].replace(b"Halle 7", b"Halle 8")
    again["created"]["object"].usage.total_tokens += 1
    found = wrong(exchange, whole)
    assert len(found) == 3
    assert found[0] == "raw: the body is not what was sent, less redactions"
    assert sorted(line.partition(":")[0] for line in found) == ["created", "raw", "raw"]


class Place(pydantic.BaseModel):
    city: str
    hall: int


def completion(content: str, **more: Any) -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1790000000, "model": "small-1"}
    return json.dumps({**body, "choices": [choice], **more}).encode()


def response(text: str) -> bytes:
    case = GOLDEN / "shapes" / "openai_responses" / "text_input" / "reply.json"
    body = json.loads(case.read_text(encoding="utf-8"))
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
    return json.dumps({**body, "output": [message]}).encode()


def passed(provider: Provider, folder: Path, program: Callable[[], Any], *, asynchronous: bool) -> Passed:
    """Send a program there and back, and see that it is the same on both ways."""
    run: Program = lambda: ran(program(), asynchronous=asynchronous)  # noqa: E731
    found = there_and_back(run, provider, folder)
    assert found.again == found.live
    assert found.is_whole(), (found.counts, found.unconsumed)
    return found


@both
def test_structured_replies_are_parsed_as_they_were(tmp_path: Path, *, asynchronous: bool) -> None:
    place = '{"city": "Köln", "hall": 7}'
    with Provider() as provider:
        chat = provider.answer("chat", Reply(body=completion(place)))
        responses = provider.answer("responses", Reply(body=response(place)))

        async def program() -> Seen:
            asked = client(chat, asynchronous=asynchronous).chat.completions
            parsed = await settled(asked.parse(**ASKED, response_format=Place))
            other = client(responses, asynchronous=asynchronous).responses
            answered = await settled(other.parse(model="small-1", input="Where?", text_format=Place))
            return {
                "chat": parsed,
                "chat fields": fields(parsed),
                "chat place": parsed.choices[0].message.parsed,
                "responses": answered,
                "responses fields": fields(answered),
                "responses place": answered.output_parsed,
            }

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert found.again["chat place"] == found.again["responses place"] == Place(city="Köln", hall=7)


@both
def test_a_stream_is_followed_to_a_structured_reply(tmp_path: Path, *, asynchronous: bool) -> None:
    pieces = ['{"city": "K', "öln", '", "hall"', ": 7}"]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000, "model": "small-1"}
    deltas = [
        ({"role": "assistant", "content": ""}, None),
        *(({"content": each}, None) for each in pieces),
        ({}, "stop"),
    ]
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    with Provider() as provider:
        url = provider.answer("chat", Reply(body=body.encode(), content_type="text/event-stream", seed=1))

        async def program() -> Seen:
            asked = client(url, asynchronous=asynchronous).chat.completions
            async with entered(asked.stream(**ASKED, response_format=Place)) as stream:
                events = [event async for event in each(stream)]
                final = await settled(stream.get_final_completion())
            return {"type": type(stream), "events": events, "final": final, "fields": fields([events, final])}

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert found.again["final"].choices[0].message.parsed == Place(city="Köln", hall=7)
    assert {event.type for event in found.again["events"]} >= {"chunk", "content.delta", "content.done"}


@both
def test_calls_that_share_a_connection_replay_without_one(tmp_path: Path, *, asynchronous: bool) -> None:
    bodies = [completion(f"in hall {hall}") for hall in range(5)]
    with Provider() as provider:
        url = provider.answer("chat", *(Reply(body=body) for body in bodies))

        async def program() -> list[str]:
            opened = client(url, asynchronous=asynchronous)
            said = [(await settled(opened.chat.completions.create(**ASKED))).choices[0].message.content for _ in bodies]
            await settled(opened.close())
            return said

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
        assert provider.connections == 1
    assert found.again == [f"in hall {hall}" for hall in range(5)]


@both
def test_an_agents_own_httpx_client_is_cut_as_well(tmp_path: Path, *, asynchronous: bool) -> None:
    import httpx

    heard: list[str] = []

    async def note_async(said: Any) -> None:
        heard.append(type(said).__name__)

    def note(said: Any) -> None:
        heard.append(type(said).__name__)

    with Provider() as provider:
        url = provider.answer("chat", Reply(body=completion("in hall 7"), headers=(("x-request-id", "req_1"),)))

        async def program() -> Seen:
            hook: Any = note_async if asynchronous else note
            made: Any = httpx.AsyncClient if asynchronous else httpx.Client
            own = made(event_hooks={"request": [hook], "response": [hook]})
            opened = client(url, asynchronous=asynchronous, http_client=own)
            answer = await settled(opened.chat.completions.with_raw_response.create(**ASKED))
            response = answer.http_response
            return {"class": type(response), "body": response.content, "id": answer.request_id, "client": type(own)}

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert found.again["class"] is httpx.Response
    assert heard == ["Request", "Response"] * 2


@both
@pytest.mark.parametrize(("coding", "seed"), [("gzip", None), ("", 3)], ids=["gzip", "chunked"])
def test_all_headers_come_again_but_those_that_may_hold_a_secret(
    tmp_path: Path, coding: str, seed: int | None, *, asynchronous: bool
) -> None:
    sent = (("x-own", "1"), ("via", "1.1 gate"), ("set-cookie", "session=s3cr3t-of-a-cookie"), ("x-auth-token", "t0p"))
    with Provider() as provider:
        url = provider.answer("chat", Reply(body=completion("in hall 7"), headers=sent, coding=coding, seed=seed))

        async def program() -> Seen:
            made = client(url, asynchronous=asynchronous).chat.completions
            answer = await settled(made.with_raw_response.create(**ASKED))
            response = answer.http_response
            return {"headers": response.headers.multi_items(), "said": response.content, "text": response.text}

        run: Program = lambda: ran(program(), asynchronous=asynchronous)  # noqa: E731
        found = there_and_back(run, provider, tmp_path)
    assert found.is_whole(), found.ledger
    live, again = dict(found.live["headers"]), dict(found.again["headers"])
    assert {"server", "date", "content-encoding" if coding else "transfer-encoding", "x-own", "via"} <= {*again}
    assert again == {name: value for name, value in live.items() if name not in {"set-cookie", "x-auth-token"}}
    assert (found.again["said"], found.again["text"]) == (found.live["said"], found.live["text"])
    assert b"s3cr3t-of-a-cookie" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@both
def test_a_stream_with_a_coding_is_read_again(tmp_path: Path, *, asynchronous: bool) -> None:
    events = b"".join(
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"content":"%d "}}]}\n\n' % number
        for number in range(40)
    )
    with Provider() as provider:
        body = events + b"data: [DONE]\n\n"
        url = provider.answer("chat", Reply(body=body, content_type="text/event-stream", coding="gzip", seed=3))

        async def program() -> Seen:
            seen: list[Any] = []
            stream = await settled(client(url, asynchronous=asynchronous).chat.completions.create(**ASKED, stream=True))
            return {
                "error": await outcome(lambda: take(stream, seen)),
                "coding": stream.response.headers["content-encoding"],
            }

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert found.again["coding"] == "gzip"


@both
def test_a_secret_in_a_reply_is_replayed_as_its_token(tmp_path: Path, *, asynchronous: bool) -> None:
    secret = "sk-" + "golden0" * 5
    with Provider() as provider:
        url = provider.answer("chat", Reply(body=completion(f"your key is {secret}")))

        async def program() -> str:
            asked: Any = {**ASKED, "messages": [{"role": "user", "content": f"is {secret} mine?"}]}
            answer = await settled(client(url, asynchronous=asynchronous).chat.completions.create(**asked))
            return answer.choices[0].message.content

        run: Program = lambda: ran(program(), asynchronous=asynchronous)  # noqa: E731
        found = there_and_back(run, provider, tmp_path)
    assert found.is_whole(), found.ledger
    assert found.live == f"your key is {secret}"
    assert found.again == found.engine.text(found.live) != found.live
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@both
def test_a_reply_in_a_broken_coding_fails_as_it_did(tmp_path: Path, *, asynchronous: bool) -> None:
    sent = Reply(body=b"data: {}\n\n" * 200, content_type="text/event-stream", coding="gzip", seed=3)
    spoilt = sent.cut()
    spoilt[len(spoilt) // 2] = b"\0" * len(spoilt[len(spoilt) // 2])
    with Provider() as provider:
        answer = Reply(pieces=tuple(spoilt), content_type="text/event-stream", coding="gzip")
        url = provider.answer("chat", answer)

        async def program() -> Seen:
            seen: list[Any] = []
            stream = await settled(client(url, asynchronous=asynchronous).chat.completions.create(**ASKED, stream=True))
            return {"error": await outcome(lambda: take(stream, seen)), "events": seen}

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert "DecodingError" in repr(found.again["error"])


@pytest.mark.slow
@both
def test_a_replay_of_everything_is_judged_the_same(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        urls = [
            provider.answer(f"n{number}", Reply(body=each.body, status=each.status, content_type=each.content_type))
            for number, each in enumerate(FOUND)
        ]

        async def program() -> list[Seen]:
            opened = client("http://127.0.0.1:9", asynchronous=asynchronous)
            asked = zip(FOUND, urls, strict=True)
            return [await ask(opened.with_options(base_url=url), exchange) for exchange, url in asked]

        with reenact.record(store=tmp_path):
            live = ran(program(), asynchronous=asynchronous)
    with reenact.replay("last", store=tmp_path) as handle:
        again = ran(program(), asynchronous=asynchronous)
    assert again == live
    assert handle.result is not None
    assert (handle.result.result, handle.result.divergences, handle.result.unconsumed) == ("same", [], [])
    assert sum(handle.result.answered.values()) > 3 * len(FOUND)
