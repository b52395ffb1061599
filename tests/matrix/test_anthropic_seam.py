"""Anthropic's SDK on both HTTP clients, there and back: own cases, helpers, and what goes wrong on the way."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import pydantic
import pytest

from matrix import cassettes
from matrix.asking import Seen, drive, each, entered, fields, outcome, settled, take
from matrix.exchange import Exchange
from matrix.passing import Passed, client, ran, there_and_back
from matrix.serving import Breaks, Provider, Reply, closed_port
from matrix.whole import Share, Whole, census, each_exchange, each_share, in_turn, shares, wrong
from reenact.values.call import HttpReply, HttpRequest, Raised, Returned, Streamed, StreamEnd

pytestmark = [pytest.mark.older, pytest.mark.sample(9)]
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])

FOUND = cassettes.golden("anthropic")
SHARES = shares(FOUND, one_in=2)
ASKED: dict[str, Any] = {
    "model": "stand-in-large-1",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Where is parcel 4711?"}],
}
EVENT_STREAM = "text/event-stream; charset=utf-8"


def message(text: str) -> bytes:
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in-large-1"}
    usage = {"input_tokens": 9, "output_tokens": 4}
    content = [{"type": "text", "text": text}]
    return json.dumps({**said, "content": content, "stop_reason": "end_turn", "usage": usage}).encode()


def event(**said: Any) -> bytes:
    return f"event: {said['type']}\ndata: {json.dumps(said)[:-1]}      }}\n\n".encode()


def delta(text: str) -> bytes:
    return event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def streamed(*texts: str) -> tuple[bytes, ...]:
    return (
        event(type="message_start", message={**json.loads(message("")), "content": [], "stop_reason": None}),
        event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event(type="ping"),
        *(delta(text) for text in texts),
        event(type="content_block_stop", index=0),
        event(
            type="message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 4}
        ),
        event(type="message_stop"),
    )


EVENTS = streamed("In ", "hall ", "7", ".")
SEEN = len(EVENTS) - 1
"""How many events the SDK hands out: all but the ping."""


def error_body(kind: str, message: str = "no") -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}).encode()


def opened(url: str, *, asynchronous: bool, **options: Any) -> Any:
    return client(url, asynchronous=asynchronous, sdk="anthropic", **options)


def at(made: Any, url: str) -> Any:
    return made.with_options(base_url=url.removesuffix("/v1"))


def passed(provider: Provider, folder: Path, program: Callable[[], Any], *, asynchronous: bool) -> Passed:
    """Send a program there and back, and see that it is the same on both ways."""
    found = there_and_back(lambda: ran(program(), asynchronous=asynchronous), provider, folder)
    assert found.again == found.live
    assert found.is_whole(), (found.ledger, found.unconsumed)
    return found


def attempts(found: Passed) -> list[tuple[int, int | str]]:
    """Give each recorded call's attempt number, with its status or the class of its error."""
    told: list[tuple[int, int | str]] = []
    for node in found.calls:
        assert isinstance(node.call.request, HttpRequest)
        match node.outcome:
            case Returned(payload=HttpReply(status=status)) | Streamed(status=status, exception=None):
                told.append((node.call.request.attempt, status))
            case Raised(exception=exception) | Streamed(exception=exception) if exception is not None:
                told.append((node.call.request.attempt, exception.qualname))
            case other:
                raise AssertionError(other)
    return told


async def asked(made: Any) -> Seen:
    """Ask once; give what was answered, or the error in full."""

    async def ask() -> Seen:
        given = await settled(made.messages.create(**ASKED))
        return {"object": given, "fields": fields(given), "id": given._request_id}

    return await outcome(ask)


async def read(made: Any) -> Seen:
    """Read a stream to its end, or to where it breaks."""
    seen: list[Any] = []

    async def ask() -> None:
        stream = await settled(made.messages.create(**ASKED, stream=True))
        seen.append(type(stream))
        await take(stream, seen)

    return {"error": await outcome(ask), "seen": seen}


# own cases


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
    record_property("counted", f"own cases on anthropic {anthropic.__version__} ({share.way})")
    assert wrong(exchange, went(share)) == []


@each_share(SHARES)
def test_every_call_of_a_recording_is_answered_once(went: Callable[[Share], Whole], share: Share) -> None:
    whole = went(share)
    assert whole.passed.is_whole(), (whole.passed.counts, whole.passed.unconsumed)


def test_every_kind_of_exchange_is_among_the_cases(record_property: Callable[[str, object], None]) -> None:
    record_property("figure", f"own cases on anthropic {anthropic.__version__}: {census(FOUND)}")
    assert {(each.api, each.streamed, each.status >= 400) for each in FOUND} >= {
        ("messages", False, False),
        ("messages", True, False),
        ("messages", False, True),
        ("count_tokens", False, False),
        ("batches", False, False),
    }


# helpers of the SDK


class Place(pydantic.BaseModel):
    city: str
    hall: int


@both
def test_structured_replies_are_parsed_as_they_were(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        url = provider.answer("whole", Reply(body=message('{"city": "Köln", "hall": 7}')))
        pieces = streamed('{"city": "K', "öln", '", "hall"', ": 7}")
        other = provider.answer("stream", Reply(body=b"".join(pieces), content_type=EVENT_STREAM, seed=1))

        async def program() -> Seen:
            made = opened(url, asynchronous=asynchronous)
            parsed = await settled(made.messages.parse(**ASKED, output_format=Place))
            async with entered(at(made, other).messages.stream(**ASKED, output_format=Place)) as stream:
                events = [item async for item in each(stream)]
                final = await settled(stream.get_final_message())
            held = {"parsed": parsed, "final": final, "events": events}
            return {**held, "fields": fields(held), "types": [type(stream), type(parsed)]}

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert found.again["parsed"].parsed_output == found.again["final"].parsed_output == Place(city="Köln", hall=7)


@both
def test_the_text_of_a_stream_comes_in_the_same_pieces(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        url = provider.answer("stream", Reply(pieces=EVENTS, content_type=EVENT_STREAM))

        async def program() -> Seen:
            made = opened(url, asynchronous=asynchronous)
            async with entered(made.messages.stream(**ASKED)) as stream:
                texts = [text async for text in each(stream.text_stream)]
                return {"texts": texts, "text": await settled(stream.get_final_text()), "id": stream.request_id}

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert found.again["texts"] == ["In ", "hall ", "7", "."]
    (call,) = found.calls
    assert isinstance(call.outcome, Streamed)
    assert call.outcome.end is StreamEnd.FINISHED


# what goes wrong


@both
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_a_refusal_is_the_same_error(tmp_path: Path, status: int, kind: str, *, asynchronous: bool) -> None:
    headers = (("request-id", "req_1"), ("retry-after", "7"), ("anthropic-ratelimit-tokens-remaining", "0"))
    with Provider() as provider:
        url = provider.answer("refused", Reply(status=status, body=error_body(kind), headers=headers))

        async def program() -> list[Seen]:
            made = opened(url, asynchronous=asynchronous)
            return [await asked(made), await read(made)]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    plain, stream = found.again
    assert plain["status_code"] == stream["error"]["status_code"] == status
    assert plain["class"] is stream["error"]["class"]
    assert (plain["request_id"], plain["body"]["error"]["type"]) == ("req_1", kind)
    assert plain["text"] == error_body(kind).decode()


@both
def test_every_attempt_is_a_call_of_its_own(tmp_path: Path, *, asynchronous: bool) -> None:
    soon = (("retry-after-ms", "5"),)
    overloaded = Reply(status=529, body=error_body("overloaded_error", "Overloaded"), headers=soon)
    wrong = Reply(status=500, body=b"<html>oops</html>", content_type="text/html", headers=soon)
    with Provider() as provider:
        url = provider.answer("whole", overloaded, wrong, Reply(body=message("In hall 7.")))
        other = provider.answer("stream", overloaded, wrong, Reply(pieces=EVENTS, content_type=EVENT_STREAM))

        async def program() -> list[Seen]:
            made = opened(url, asynchronous=asynchronous, max_retries=2)
            return [await asked(made), await read(at(made, other))]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
        assert [len(provider.asked[name]) for name in ("whole", "stream")] == [3, 3]
    assert attempts(found) == [(0, 529), (1, 500), (2, 200)] * 2
    assert found.again[0]["object"].content[0].text == "In hall 7."
    assert len(found.again[1]["seen"]) == 1 + SEEN


@both
def test_nobody_listens_then_as_now(tmp_path: Path, *, asynchronous: bool) -> None:
    port = closed_port()
    with Provider() as provider:

        async def program() -> Seen:
            return await asked(opened(f"http://127.0.0.1:{port}/v1", asynchronous=asynchronous, max_retries=1))

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert attempts(found) == [(0, "ConnectError"), (1, "ConnectError")]
    assert found.again["class"] is anthropic.APIConnectionError


@both
def test_a_silent_provider_times_out_again_at_once(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        url = provider.answer("whole", Reply(breaks=Breaks.SILENT))
        stuck = Reply(pieces=EVENTS, content_type=EVENT_STREAM, breaks=Breaks.SILENT, after=4)
        other = provider.answer("stream", stuck)

        async def program() -> list[Seen]:
            made = opened(url, asynchronous=asynchronous, timeout=anthropic.Timeout(20, read=0.5))
            return [await asked(made), await read(at(made, other))]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert attempts(found) == [(0, "ReadTimeout"), (0, "ReadTimeout")]
    assert found.again[0]["class"] is anthropic.APITimeoutError
    assert len(found.again[1]["seen"]) == 1 + 3
    assert found.again[1]["error"] is not None


@both
@pytest.mark.parametrize("how", [Breaks.CLOSED, Breaks.RESET], ids=lambda how: how.name.lower())
def test_a_stream_that_breaks_off_breaks_off_at_the_same_byte(
    tmp_path: Path, how: Breaks, *, asynchronous: bool
) -> None:
    pieces = (*EVENTS[:4], EVENTS[4][:40], *EVENTS[5:])
    with Provider() as provider:
        url = provider.answer("s", Reply(pieces=pieces, content_type=EVENT_STREAM, breaks=how, after=5))

        async def program() -> Seen:
            return await read(opened(url, asynchronous=asynchronous))

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    (call,) = found.calls
    assert isinstance(call.outcome, Streamed)
    assert call.outcome.end is StreamEnd.RAISED
    assert b"".join(chunk.data or b"" for chunk in call.outcome.chunks) == b"".join(pieces[:5])
    assert found.again["error"] is not None


@both
def test_an_error_in_the_middle_of_a_stream_is_the_same_error(tmp_path: Path, *, asynchronous: bool) -> None:
    broken = (*EVENTS[:4], event(**json.loads(error_body("overloaded_error", "Overloaded"))))
    with Provider() as provider:
        url = provider.answer("s", Reply(pieces=broken, content_type=EVENT_STREAM))

        async def program() -> Seen:
            return await read(opened(url, asynchronous=asynchronous))

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert len(found.again["seen"]) == 1 + 3
    assert issubclass(found.again["error"]["class"], anthropic.APIStatusError)
    assert found.again["error"]["body"]["error"]["type"] == "overloaded_error"


# streams that nobody reads to their end


async def left(made: Any, after: int, *, closes: bool) -> list[Any]:
    """Take a few events of a stream and leave it, in good order or not."""
    stream = await settled(made.messages.create(**ASKED, stream=True))
    seen: list[Any] = []
    async for item in each(stream):
        seen.append(item)
        if len(seen) == after:
            break
    if closes:
        await settled(stream.close())
    return seen


def held(provider: Provider, after: int) -> str:
    """Serve a stream whose connection never ends, so that nobody comes to its end by chance."""
    pieces = Reply(pieces=EVENTS, content_type=EVENT_STREAM, breaks=Breaks.SILENT, after=after)
    return provider.answer("held", pieces)


@both
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "dropped"])
@pytest.mark.parametrize(
    ("after", "end"), [(4, StreamEnd.ABANDONED), (len(EVENTS), StreamEnd.FINISHED)], ids=["early", "at the last event"]
)
def test_a_stream_may_be_left_again_where_it_was_left(
    tmp_path: Path, after: int, end: StreamEnd, *, closes: bool, asynchronous: bool
) -> None:
    with Provider() as provider:
        url = held(provider, after)
        other = provider.answer("whole", Reply(body=message("In hall 7.")))

        async def program() -> list[Any]:
            made = opened(url, asynchronous=asynchronous)
            seen: list[Any] = [await left(made, after - 1, closes=closes)]
            gc.collect()
            return [*seen, await asked(at(made, other))]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    stream = found.calls[0].outcome
    assert isinstance(stream, Streamed)
    assert (stream.end, len(stream.chunks)) == (end, after)


def test_a_text_that_names_the_last_event_is_not_taken_for_it(tmp_path: Path) -> None:
    pieces = (*EVENTS[:3], delta("\nevent: message_stop"), *EVENTS[3:])
    with Provider() as provider:
        url = provider.answer("s", Reply(pieces=pieces, content_type=EVENT_STREAM, breaks=Breaks.SILENT, after=4))
        program = lambda: drive(left(opened(url, asynchronous=False), 3, closes=True))  # noqa: E731
        found = there_and_back(program, provider, tmp_path)
    (call,) = found.calls
    assert isinstance(call.outcome, Streamed)
    assert call.outcome.end is StreamEnd.ABANDONED
