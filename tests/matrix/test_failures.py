"""What goes wrong on the way to a provider, and what comes of it in a replay: the same class, the same words."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import openai
import pytest

import reenact
from matrix.asking import Seen, drive, each, fields, outcome, settled, take
from matrix.passing import Passed, client, ran, record, replay, there_and_back
from matrix.passing import carried as carry
from matrix.serving import Breaks, Provider, Reply, closed_port
from reenact.boundary import cancelled
from reenact.errors import Miss
from reenact.values.call import HttpReply, HttpRequest, Raised, Returned, Streamed, StreamEnd

pytestmark = [pytest.mark.older, pytest.mark.sample(5)]
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])

ASKED: dict[str, Any] = {"model": "small-1", "messages": [{"role": "user", "content": "Where is parcel 4711?"}]}
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "small-1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "In hall 7."}}],
    }
).encode()
EVENT_STREAM = "text/event-stream; charset=utf-8"


def event(text: str) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000, "model": "small-1"}
    said = {**chunk, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    return f"data: {json.dumps(said)}\n\n".encode()


EVENTS = (*(event(word) for word in ("In ", "hall ", "7", ".")), b"data: [DONE]\n\n")


def error_body(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "t", "param": None, "code": "c"}}).encode()


def passed(
    provider: Provider, folder: Path, program: Callable[[], Any], *, asynchronous: bool, whole: bool = True
) -> Passed:
    """Send a program there and back, and see that it is the same on both ways."""
    found = there_and_back(lambda: ran(program(), asynchronous=asynchronous), provider, folder)
    assert found.again == found.live
    assert not whole or found.is_whole(), (found.ledger, found.unconsumed)
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


async def asked(opened: Any, **options: Any) -> Seen:
    """Ask once; give what was answered, or the error in full."""

    async def ask() -> Seen:
        given = await settled(opened.chat.completions.create(**ASKED, **options))
        return {"object": given, "fields": fields(given)}

    return await outcome(ask)


async def read(opened: Any) -> Seen:
    """Read a stream to its end, or to where it breaks."""
    seen: list[Any] = []

    async def ask() -> None:
        stream = await settled(opened.chat.completions.create(**ASKED, stream=True))
        seen.append(type(stream))
        await take(stream, seen)

    return {"error": await outcome(ask), "seen": seen}


@both
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 503])
def test_a_refusal_is_the_same_error(tmp_path: Path, status: int, *, asynchronous: bool) -> None:
    with Provider() as provider:
        headers = (("x-request-id", "req_1"), ("retry-after", "7"), ("x-ratelimit-remaining-requests", "0"))
        url = provider.answer("chat", Reply(status=status, body=error_body("no"), headers=headers))

        async def program() -> list[Seen]:
            opened = client(url, asynchronous=asynchronous)
            return [await asked(opened), await read(opened)]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    plain, streamed = found.again
    assert plain["status_code"] == streamed["error"]["status_code"] == status
    assert plain["class"] is streamed["error"]["class"]
    assert (plain["request_id"], plain["body"]["code"], plain["text"]) == ("req_1", "c", error_body("no").decode())


@both
def test_every_attempt_is_a_call_of_its_own(tmp_path: Path, *, asynchronous: bool) -> None:
    half = Reply(status=429, body=b'{"error": {"message": "slow do', headers=(("retry-after-ms", "5"),))
    wrong = Reply(status=500, body=b"<html>oops</html>", content_type="text/html", headers=(("retry-after-ms", "5"),))
    with Provider() as provider:
        url = provider.answer("whole", half, wrong, Reply(body=ANSWER))
        other = provider.answer("stream", half, wrong, Reply(pieces=EVENTS, content_type=EVENT_STREAM))

        async def program() -> list[Seen]:
            opened = client(url, asynchronous=asynchronous, max_retries=2)
            return [await asked(opened), await read(opened.with_options(base_url=other))]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
        assert [len(provider.asked[name]) for name in ("whole", "stream")] == [3, 3]
    assert attempts(found) == [(0, 429), (1, 500), (2, 200)] * 2
    assert found.again[0]["object"].choices[0].message.content == "In hall 7."
    assert len(found.again[1]["seen"]) == 5


@both
def test_a_reply_that_stays_half_is_the_same_error(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        half = b'{"error": {"message": "slow do'
        url = provider.answer("chat", Reply(status=429, body=half, headers=(("retry-after-ms", "5"),)))

        async def program() -> Seen:
            return await asked(client(url, asynchronous=asynchronous, max_retries=1))

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert attempts(found) == [(0, 429), (1, 429)]
    assert found.again["class"] is openai.RateLimitError
    assert found.again["text"] == half.decode()


@both
def test_a_whole_reply_that_is_no_json_is_the_same_error(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        url = provider.answer("chat", Reply(body=ANSWER[:60]))

        async def program() -> Seen:
            return await asked(client(url, asynchronous=asynchronous))

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert issubclass(found.again["class"], ValueError | openai.APIError)


@both
def test_nobody_listens_then_as_now(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:

        async def program() -> Seen:
            url = f"http://127.0.0.1:{port}/v1"
            opened = client(url, asynchronous=asynchronous, max_retries=1)
            return await asked(opened)

        port = closed_port()
        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert attempts(found) == [(0, "ConnectError"), (1, "ConnectError")]
    assert found.again["class"] is openai.APIConnectionError


@both
def test_a_silent_provider_times_out_again_at_once(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        url = provider.answer("chat", Reply(breaks=Breaks.SILENT))
        other = provider.answer(
            "stream", Reply(pieces=EVENTS, content_type=EVENT_STREAM, breaks=Breaks.SILENT, after=2)
        )

        async def program() -> list[Seen]:
            opened = client(url, asynchronous=asynchronous, timeout=openai.Timeout(20, read=0.5))
            return [await asked(opened), await read(opened.with_options(base_url=other))]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert attempts(found) == [(0, "ReadTimeout"), (0, "ReadTimeout")]
    assert found.again[0]["class"] is openai.APITimeoutError
    assert len(found.again[1]["seen"]) == 3
    assert "ReadTimeout" in repr(found.again[1]["error"])


@both
@pytest.mark.parametrize("how", [Breaks.CLOSED, Breaks.RESET], ids=lambda how: how.name.lower())
def test_a_reply_that_breaks_off_breaks_off_at_the_same_byte(
    tmp_path: Path, how: Breaks, *, asynchronous: bool
) -> None:
    with Provider() as provider:
        url = provider.answer("chat", Reply(body=ANSWER, breaks=how, after=50))
        pieces = (*EVENTS[:2], EVENTS[2][:40], EVENTS[2][40:], *EVENTS[3:])
        other = provider.answer("stream", Reply(pieces=pieces, content_type=EVENT_STREAM, breaks=how, after=3))

        async def program() -> list[Seen]:
            opened = client(url, asynchronous=asynchronous)
            return [await asked(opened), await read(opened.with_options(base_url=other))]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    assert {attempt for attempt, _ in attempts(found)} == {0}
    assert found.again[0]["class"] is openai.APIConnectionError
    assert len(found.again[1]["seen"]) == 3
    assert found.again[1]["error"] is not None
    streamed = found.calls[1].outcome
    assert isinstance(streamed, Streamed)
    assert b"".join(chunk.data or b"" for chunk in streamed.chunks) == b"".join(pieces[:3])
    assert streamed.end is StreamEnd.RAISED


async def left(opened: Any, after: int, *, closes: bool) -> list[Any]:
    """Take a few events of a stream and leave it, in good order or not."""
    stream = await settled(opened.chat.completions.create(**ASKED, stream=True))
    seen = []
    async for item in each(stream):
        seen.append(item)
        if len(seen) == after:
            break
    if closes:
        await settled(stream.close())
    return seen


def slow_events(provider: Provider) -> str:
    """Serve a stream whose end never comes, so that what is left unread is left unread for certain."""
    return provider.answer("chat", Reply(pieces=EVENTS, content_type=EVENT_STREAM, breaks=Breaks.SILENT, after=2))


@both
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "dropped"])
def test_a_stream_may_be_left_again_where_it_was_left(tmp_path: Path, *, closes: bool, asynchronous: bool) -> None:
    with Provider() as provider:
        url = slow_events(provider)
        whole = provider.answer("whole", Reply(body=ANSWER))

        async def program() -> list[Any]:
            opened = client(url, asynchronous=asynchronous)
            seen: list[Any] = [await left(opened, 2, closes=closes)]
            gc.collect()
            seen.append(await asked(opened.with_options(base_url=whole)))
            return seen

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    streamed = found.calls[0].outcome
    assert isinstance(streamed, Streamed)
    assert (streamed.end, len(streamed.chunks)) == (StreamEnd.ABANDONED, 2)


@both
def test_a_stream_that_nobody_read_is_left_unread_again(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        url = slow_events(provider)
        whole = provider.answer("whole", Reply(body=ANSWER))

        async def program() -> list[Any]:
            opened = client(url, asynchronous=asynchronous)
            seen: list[Any] = [type(await settled(opened.chat.completions.create(**ASKED, stream=True)))]
            gc.collect()
            return [*seen, await asked(opened.with_options(base_url=whole))]

        found = passed(provider, tmp_path, program, asynchronous=asynchronous)
    streamed = found.calls[0].outcome
    assert isinstance(streamed, Streamed)
    assert (streamed.end, streamed.chunks) == (StreamEnd.ABANDONED, ())


def test_a_replay_that_leaves_a_stream_unread_is_told_of(tmp_path: Path) -> None:
    with Provider() as provider:
        url = provider.answer("chat", Reply(pieces=EVENTS, content_type=EVENT_STREAM))

        def leaves() -> None:
            client(url).chat.completions.create(**ASKED, stream=True)
            gc.collect()

        found = there_and_back(
            lambda: list(client(url).chat.completions.create(**ASKED, stream=True)), provider, tmp_path, again=leaves
        )
    assert [entry["t"] for entry in found.ledger] == ["answered", "left"]


def test_it_does_not_matter_when_a_left_stream_is_noticed(tmp_path: Path) -> None:
    with Provider() as provider:
        url = slow_events(provider)
        whole = provider.answer("whole", Reply(body=ANSWER))

        def program(*, late: bool) -> list[Seen]:
            opened = client(url)
            stream: Any = opened.chat.completions.create(**ASKED, stream=True)
            seen: list[Any] = [next(stream)]
            other = opened.with_options(base_url=whole)
            seen.append(drive(asked(other)))
            if not late:
                stream.close()
            seen.append(drive(asked(other)))
            stream.close()
            return seen

        found = there_and_back(lambda: program(late=False), provider, tmp_path, again=lambda: program(late=True))
    assert found.again == found.live
    assert found.is_whole(), found.ledger


@both
def test_reading_on_where_a_stream_was_left_is_a_miss(tmp_path: Path, *, asynchronous: bool) -> None:
    with Provider() as provider:
        url = slow_events(provider)

        async def program(after: int) -> list[Any]:
            return await left(client(url, asynchronous=asynchronous), after, closes=True)

        live, spans, _ = record(lambda: ran(program(2), asynchronous=asynchronous), tmp_path)
    assert len(live) == 2
    run = carry(spans, tmp_path, "otlp-json")
    misses: list[str] = []

    def reads_on() -> None:
        try:
            ran(program(3), asynchronous=asynchronous)
        except Miss as miss:
            misses.append(str(miss))

    _, ledger, _ = replay(reads_on, run, tmp_path)
    assert [entry["t"] for entry in ledger] == ["answered", "miss"]
    assert "reads on" in misses[0]


@both
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "dropped"])
def test_leaving_a_stream_that_was_read_to_its_end_is_told(tmp_path: Path, *, closes: bool, asynchronous: bool) -> None:
    with Provider() as provider:
        url = provider.answer("chat", Reply(pieces=EVENTS, content_type=EVENT_STREAM))

        def program(after: int) -> list[Any]:
            opened = client(url, asynchronous=asynchronous)
            taken = ran(left(opened, after, closes=closes), asynchronous=asynchronous)
            gc.collect()
            return taken

        found = there_and_back(lambda: program(9), provider, tmp_path, again=lambda: program(2))
    assert found.again == found.live[:2]
    assert [entry["t"] for entry in found.ledger] == ["answered", "left"]


def test_a_call_that_the_agent_gave_up_is_given_up_again(tmp_path: Path) -> None:
    with Provider() as provider:
        url = provider.answer("chat", Reply(breaks=Breaks.SILENT))
        other = slow_events(provider)
        whole = provider.answer("whole", Reply(body=ANSWER))

        async def program() -> list[Any]:
            opened = client(url, asynchronous=True)
            seen: list[Any] = []
            try:
                async with asyncio.timeout(1):
                    await asked(opened)
            except TimeoutError:
                seen.append("gave up")
            taken: list[Any] = []
            try:
                stream = await opened.with_options(base_url=other).chat.completions.create(**ASKED, stream=True)
                await asyncio.wait_for(take(stream, taken), 1)
            except TimeoutError:
                seen.append(taken)
            return [*seen, await asked(opened.with_options(base_url=whole))]

        found = passed(provider, tmp_path, program, asynchronous=True)
    assert found.again[0] == "gave up"
    assert len(found.again[1]) == 2
    assert attempts(found) == [(0, "CancelledError"), (0, "CancelledError"), (0, 200)]


def test_a_lost_race_stays_lost(tmp_path: Path) -> None:
    with Provider() as provider:
        silent = provider.answer("chat", Reply(breaks=Breaks.SILENT))
        quick = provider.answer("whole", Reply(body=ANSWER))

        async def program() -> list[str]:
            opened = client(silent, asynchronous=True)
            racers = {
                asyncio.create_task(asked(opened), name="silent"),
                asyncio.create_task(asked(opened.with_options(base_url=quick)), name="quick"),
            }
            done, pending = await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
            return [task.get_name() for task in done]

        found = passed(provider, tmp_path, program, asynchronous=True)
    assert found.again == ["quick"]


def test_waiting_on_for_what_was_given_up_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancelled, "PATIENCE_S", 0.1)
    with Provider() as provider:
        url = provider.answer("chat", Reply(breaks=Breaks.SILENT))

        async def program(seconds: float) -> Any:
            try:
                async with asyncio.timeout(seconds):
                    await asked(client(url, asynchronous=True))
            except (TimeoutError, Miss) as error:
                return type(error)

        live, spans, _ = record(lambda: asyncio.run(program(1)), tmp_path)
    assert live is TimeoutError
    again, ledger, _ = replay(lambda: asyncio.run(program(30)), carry(spans, tmp_path, "otlp-json"), tmp_path)
    assert again is Miss
    assert [entry["t"] for entry in ledger] == ["answered", "miss"]
    assert "gave this call up" in ledger[1]["reason"]


def test_a_tool_that_the_agent_gave_up_is_given_up_again(tmp_path: Path) -> None:
    started: list[str] = []

    @reenact.tool
    async def slow(order: int) -> None:
        started.append(f"slow {order}")
        await asyncio.sleep(30)

    @reenact.tool
    async def steps(count: int) -> AsyncIterator[int]:
        started.append(f"steps {count}")
        for step in range(count):
            yield step
        await asyncio.sleep(30)

    async def program() -> list[Any]:
        seen: list[Any] = []
        for work in (slow(1), take(steps(2), seen)):
            try:
                await asyncio.wait_for(work, 0.1)
            except TimeoutError:
                seen.append("gave up")
        return seen

    with Provider() as provider:
        found = there_and_back(lambda: asyncio.run(program()), provider, tmp_path)
    assert found.again == found.live == ["gave up", 0, 1, "gave up"]
    assert found.counts == {"answered": 2}
    assert started == ["slow 1", "steps 2"]
