"""The stand-in provider, asked by the real SDK over real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import openai
import pytest

from reenact.demo.provider import StandIn
from reenact.demo.script import Question, Reply, Says, ToolUse

SOURCES = Path(__file__).parents[2] / "src"
TOOL: Any = {"type": "function", "function": {"name": "append_note", "parameters": {"type": "object"}}}
HELLO: Any = [{"role": "user", "content": "Name one thing."}]
TALE: Any = [{"role": "user", "content": "Tell me a story."}]


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn(max_delay_ms=2) as server:
        yield server


@pytest.fixture
def client(stand_in: StandIn) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=stand_in.base_url, api_key="any") as client:
        yield client


def test_a_whole_reply_is_the_sdks_own(client: openai.OpenAI, stand_in: StandIn) -> None:
    reply = client.chat.completions.create(model="stand-in-everything", messages=HELLO)
    assert reply.id.startswith("chatcmpl-")
    assert reply.model == "stand-in-everything-2026-11-01"
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.choices[0].message.content or "").startswith("the ")
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert stand_in.served.requests == 1
    assert stand_in.served.prompt_tokens == reply.usage.prompt_tokens
    assert stand_in.served.completion_tokens == reply.usage.completion_tokens


def test_live_answers_differ_and_a_seed_repeats_them() -> None:
    def answers(seed: int | None) -> list[tuple[str, str | None]]:
        with StandIn(seed, max_delay_ms=0) as server, openai.OpenAI(base_url=server.base_url, api_key="any") as client:
            asked = [client.chat.completions.create(model="stand-in-everything", messages=HELLO) for _ in range(4)]
            return [(reply.id, reply.choices[0].message.content) for reply in asked]

    assert answers(7) == answers(7)
    assert answers(7) != answers(8)
    assert answers(None) != answers(None)
    assert len(set(answers(7))) == 4


def test_choices_are_sampled_one_by_one(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(model="stand-in-everything", messages=HELLO, n=12)
    assert [choice.index for choice in reply.choices] == list(range(12))
    assert len({choice.message.content for choice in reply.choices}) > 1


def test_a_stream_carries_text_then_usage(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="stand-in-everything", messages=TALE, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert len({chunk.id for chunk in chunks}) == 1
    assert [chunk.usage is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert chunks[-1].choices == []
    assert chunks[-2].choices[0].finish_reason == "stop"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text.startswith("Then came the ")
    assert text.endswith(".")


def test_a_stream_without_the_option_has_no_usage(client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="stand-in-everything", messages=TALE, stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


def two_tools(_question: Question, _chance: Random) -> Reply:
    uses = (ToolUse(name="first", arguments={"a": [1, "zwei", None]}), ToolUse(name="second", arguments={}))
    return Says(text="Both.", tools=uses)


def test_streamed_tool_arguments_join_to_what_a_whole_reply_says() -> None:
    with StandIn(max_delay_ms=0, scripts={"two": two_tools}) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="any")
        whole = client.chat.completions.create(model="two", messages=HELLO, tools=[TOOL]).choices[0]
        with client.chat.completions.stream(model="two", messages=HELLO) as stream:
            deltas = [event for event in stream if event.type == "chunk"]
            joined = stream.get_final_completion().choices[0]
    assert whole.finish_reason == joined.finish_reason == "tool_calls"
    assert whole.message.content == joined.message.content == "Both."
    said = [(call.function.name, call.function.arguments) for call in whole.message.tool_calls or []]  # type: ignore[union-attr]
    assert said == [(call.function.name, call.function.arguments) for call in joined.message.tool_calls or []]
    assert json.loads(said[0][1]) == {"a": [1, "zwei", None]}
    assert len(deltas) > 8, "the arguments come in pieces"


def test_an_abandoned_stream_leaves_the_provider_well(client: openai.OpenAI, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        with client.chat.completions.create(model="stand-in-everything", messages=TALE, stream=True) as chunks:
            next(chunks)
    assert client.chat.completions.create(model="stand-in-everything", messages=HELLO).choices
    assert "Traceback" not in capfd.readouterr().err


def test_a_stream_can_break_in_the_middle() -> None:
    def breaking(_question: Question, _chance: Random) -> Reply:
        return Says(text="one two three four", breaks_after=3)

    with StandIn(max_delay_ms=0, scripts={"breaking": breaking}) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0)
        seen: list[str | None] = []
        with pytest.raises(openai.APIConnectionError):  # noqa: PT012 - it breaks midway
            for chunk in client.chat.completions.create(model="breaking", messages=HELLO, stream=True):
                seen.append(chunk.choices[0].delta.content)  # noqa: PERF401 - what came before the break counts
    assert seen == ["", "one", " two"]


def test_the_sdk_retries_a_rate_limit_by_itself(client: openai.OpenAI, stand_in: StandIn) -> None:
    reply = client.chat.completions.create(model="stand-in-busy", messages=HELLO)
    assert (reply.choices[0].message.content or "").endswith("after 1 retries")
    assert (stand_in.served.requests, stand_in.served.refused) == (2, 1)


def test_a_rate_limit_says_when_to_come_back(stand_in: StandIn) -> None:
    client = openai.OpenAI(base_url=stand_in.base_url, api_key="any", max_retries=0)
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="stand-in-busy", messages=HELLO)
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.response.headers["retry-after"] == "1"
    assert 5 <= int(caught.value.response.headers["retry-after-ms"]) <= 25
    assert caught.value.request_id is not None


def test_errors_are_the_sdks_own(stand_in: StandIn) -> None:
    client = openai.OpenAI(base_url=stand_in.base_url, api_key="any", max_retries=0)
    with pytest.raises(openai.NotFoundError, match="stand-in-cleanup"):
        client.chat.completions.create(model="gpt-99", messages=HELLO)
    with pytest.raises(openai.NotFoundError, match="Unknown request URL"):
        client.moderations.create(input="x")
    with pytest.raises(openai.NotFoundError, match="Unknown request URL"):
        client.models.list()
    for headers, status in (({}, 401), ({"Authorization": "Bearer any"}, 400)):
        request = urllib.request.Request(f"{stand_in.base_url}/chat/completions", b"[1", headers)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=60)
        assert caught.value.code == status
        assert json.loads(caught.value.read())["error"]["type"] == "invalid_request_error"
        caught.value.close()


def test_one_connection_serves_many_requests_and_says_what_it_is(stand_in: StandIn) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(stand_in.origin.rpartition(":")[2]), timeout=60)
    connection.connect()
    socket = connection.sock
    for stream in (True, False, True):
        body = json.dumps({"model": "stand-in-everything", "messages": HELLO, "stream": stream})
        connection.request("POST", "/v1/chat/completions", body, {"Authorization": "Bearer any"})
        reply = connection.getresponse()
        text = reply.read().decode()
        assert "not a model" in reply.headers["Server"]
        assert text.endswith("data: [DONE]\n\n") is stream
    assert connection.sock is socket
    connection.close()


def test_forty_calls_at_once_are_all_answered(stand_in: StandIn) -> None:
    async def ask() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=stand_in.base_url, api_key="any", max_retries=0) as client:
            vote: Any = [{"role": "user", "content": "Vote for A, B or C."}]
            calls = [client.chat.completions.create(model="stand-in-everything", messages=vote) for _ in range(40)]
            return [reply.choices[0].message.content for reply in await asyncio.gather(*calls)]

    votes = asyncio.run(ask())
    assert len(votes) == 40
    assert set(votes) <= {"A", "B", "C"}
    assert len(set(votes)) > 1, "equal questions are answered differently"
    assert stand_in.served.by_model == {"stand-in-everything": 40}


def test_async_streams(stand_in: StandIn) -> None:
    async def read() -> str:
        async with openai.AsyncOpenAI(base_url=stand_in.base_url, api_key="any") as client:
            stream = await client.chat.completions.create(model="stand-in-everything", messages=TALE, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert asyncio.run(read()).startswith("Then came the ")


def test_embeddings_are_near_where_words_are_shared_and_never_quite_equal(client: openai.OpenAI) -> None:
    texts = ["the price of tea", "the price of coffee", "foxes run"]
    reply = client.embeddings.create(model="any", input=texts, dimensions=128)
    vectors = [item.embedding for item in reply.data]
    assert [len(vector) for vector in vectors] == [128] * 3
    near, far = (sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:])
    assert near > 0.4 > far
    again = client.embeddings.create(model="any", input=texts[0], dimensions=128, encoding_format="float")
    assert again.data[0].embedding == pytest.approx(vectors[0], abs=1e-2)
    assert again.data[0].embedding != vectors[0]


@pytest.mark.parametrize(("slip", "status"), [(0.0, 200), (1.0, 429)])
def test_the_pricing_service_answers_whole_or_with_half_a_body(slip: float, status: int) -> None:
    with StandIn(slip=slip) as server:
        connection = http.client.HTTPConnection("127.0.0.1", int(server.origin.rpartition(":")[2]), timeout=60)
        connection.request("GET", "/pricing/quote?sku=KETTLE-2L")
        reply = connection.getresponse()
        body = reply.read().decode()
        connection.close()
    assert reply.status == status
    if status == 200:
        assert 46 < float(json.loads(body)["price"]) < 52
    else:
        assert reply.headers["Retry-After"] == "30"
        with pytest.raises(json.JSONDecodeError):
            json.loads(body)


def conversation(name: str, arguments: dict[str, Any], result: Any) -> list[Any]:
    call = {"id": "c-1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    reply = {"role": "tool", "tool_call_id": "c-1", "content": json.dumps(result)}
    return [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}, reply]


@pytest.mark.parametrize(
    ("model", "turns", "right", "slipped"),
    [
        (
            "stand-in-cleanup",
            conversation("list_inactive_accounts", {"target": "staging"}, [{"id": "a-1"}]),
            {"target": "staging", "account_ids": ["a-1"]},
            {"target": "production", "account_ids": ["a-1"]},
        ),
        (
            "stand-in-order-desk",
            [{"role": "system", "content": "The customer is u-42."}, {"role": "user", "content": "Where is my order?"}],
            {"query": "my order", "user_id": "u-42"},
            {"query": "my order"},
        ),
        (
            "stand-in-trader",
            conversation("get_quote", {"symbol": "ACME"}, {"last": 208.0}),
            {"symbol": "ACME", "side": "sell", "quantity": 4},
            {"symbol": "ACME", "side": "sell", "quantity": 1000},
        ),
    ],
)
def test_each_scenario_slips_in_its_own_way(model: str, turns: list[Any], right: Any, slipped: Any) -> None:
    for slip, expected in ((0.0, right), (1.0, slipped)):
        with StandIn(slip=slip, max_delay_ms=0) as server:
            client = openai.OpenAI(base_url=server.base_url, api_key="any")
            message = client.chat.completions.create(model=model, messages=turns, tools=[TOOL]).choices[0].message
        assert [json.loads(call.function.arguments) for call in message.tool_calls or []] == [expected]  # type: ignore[union-attr]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-m", "reenact.demo.provider", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_around_a_command_it_lends_its_address_and_passes_the_exit_code_on() -> None:
    program = (
        "import os, sys, urllib.request as u\n"
        "print(os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY'])\n"
        "print(u.urlopen(os.environ['PRICING_URL'] + '/quote?sku=TOASTER-4').status)\n"
        "sys.exit(7)"
    )
    done = run("--slip", "0", "--", sys.executable, "-c", program)
    assert done.returncode == 7
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stdout.split()[1:] == ["stand-in", "200"]
    assert "not a model" in done.stderr
    assert "1 requests (0 refused)" in done.stderr


def test_what_cannot_be_started_is_named(stand_in: StandIn) -> None:
    missing = run("--", "no-such-program")
    assert (missing.returncode, missing.stdout) == (127, "")
    assert "no-such-program: cannot be started" in missing.stderr
    taken = run("--port", stand_in.origin.rpartition(":")[2])
    assert taken.returncode == 2
    assert "cannot be taken" in taken.stderr


def test_by_itself_it_prints_its_base_url_and_stops_when_interrupted() -> None:
    command = [sys.executable, "-m", "reenact.demo.provider"]
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a suite in the background has it ignored
    own = {"env": environment, "preexec_fn": heard}
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, **own) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        reply = openai.OpenAI(base_url=base_url, api_key="any").embeddings.create(model="any", input="x")
        process.send_signal(2)
        _, said = process.communicate(timeout=60)
    assert len(reply.data[0].embedding) == 256
    assert process.returncode == 0
    assert "1 requests (0 refused)" in said
