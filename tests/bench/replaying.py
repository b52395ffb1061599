"""The replay benchmark, in a process of its own: the same SDK calls on a mock transport and answered by a replay.

    python replaying.py CALLS PROMPTS

PROMPTS is `distinct` or `identical`. Prints one JSON document, in microseconds a call. Short runs are gone through
several times, so that every length gives as many samples.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import conversation
import serving

MESSAGES = 4
_SAMPLES = 500
_REPLY_HEADERS = {"content-type": "application/json", "x-request-id": "req_bench"}


def _client(calls: int) -> Any:
    """Make the SDK's client on a transport that answers from memory, each call with the next reply."""
    import httpx2
    from openai import OpenAI

    replies: Iterator[bytes] = iter([serving.completion(number) for number in range(calls)])

    def answer(request: httpx2.Request) -> httpx2.Response:
        del request
        return httpx2.Response(200, headers=_REPLY_HEADERS, content=next(replies))

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0, http_client=transport)


def _mocked(calls: int) -> Any:
    """Make such a client that no replay reaches: its own method stands before that of its class."""
    client = _client(calls)
    client._client.send = client._client.send
    return client


def _timed(client: Any, messages: list[conversation.Message]) -> int:
    began = time.perf_counter_ns()
    client.chat.completions.create(model="bench-1", messages=messages, temperature=0.2)
    return time.perf_counter_ns() - began


def _recorded(turns: list[list[conversation.Message]], store: str) -> str:
    import reenact

    client = _client(len(turns))
    with reenact.record(store=store) as recorder:
        for messages in turns:
            _timed(client, messages)
    (run,) = recorder.runs
    return run.id


def _replayed(
    run: str, store: str, turns: list[list[conversation.Message]], mocked: Any
) -> tuple[list[tuple[int, int]], int]:
    """Replay once, each call next to a mocked one, and give both times, and how long it took until the first."""
    import reenact

    client, began, pairs = _client(0), time.perf_counter_ns(), list[tuple[int, int]]()
    with reenact.replay(run, store=store) as replay:
        loaded = time.perf_counter_ns() - began
        for number, messages in enumerate(turns):
            if number % 2:
                took = _timed(client, messages)
                pairs.append((took, _timed(mocked, messages)))
            else:
                took = _timed(mocked, messages)
                pairs.append((_timed(client, messages), took))
    if replay.result is None or replay.result.result != "same":
        raise SystemExit("the replay is not what was recorded")
    return pairs, loaded


def measure(calls: int, prompts: str, store: str) -> dict[str, float]:
    """Measure both ways."""
    turns = conversation.turns(MESSAGES, calls, fresh=False)
    if prompts == "identical":
        turns = [turns[0]] * calls
    few, passes = turns[:10], max(1, _SAMPLES // calls)
    mocked = _mocked(len(few) + passes * calls)
    run, warm = _recorded(turns, store), _recorded(few, store)
    _replayed(warm, store, few, mocked)
    passed = [_replayed(run, store, turns, mocked) for _ in range(passes)]
    pairs = [pair for each, _ in passed for pair in each]
    return {
        "mocked": statistics.median(mock for _, mock in pairs) / 1e3,
        "added": statistics.median(replay - mock for replay, mock in pairs) / 1e3,
        "added_mean": statistics.fmean(replay - mock for replay, mock in pairs) / 1e3,
        "load": statistics.median(loaded for _, loaded in passed) / 1e3 / calls,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(int(sys.argv[1]), sys.argv[2], folder)
    json.dump(figures, sys.stdout)
