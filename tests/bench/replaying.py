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


def _timed(client: Any, turns: list[list[conversation.Message]]) -> list[int]:
    create, clock = client.chat.completions.create, time.perf_counter_ns
    times: list[int] = []
    for messages in turns:
        began = clock()
        create(model="bench-1", messages=messages, temperature=0.2)
        times.append(clock() - began)
    return times


def _recorded(turns: list[list[conversation.Message]], store: str) -> str:
    import reenact

    with reenact.record(store=store) as recorder:
        _timed(_client(len(turns)), turns)
    (run,) = recorder.runs
    return run.id


def _replayed(run: str, store: str, turns: list[list[conversation.Message]]) -> tuple[list[int], int]:
    """Replay once and give the times of the calls, and how long it took until the first could be made."""
    import reenact

    client, began = _client(0), time.perf_counter_ns()
    with reenact.replay(run, store=store) as replay:
        loaded = time.perf_counter_ns() - began
        times = _timed(client, turns)
    if replay.result is None or replay.result.result != "same":
        raise SystemExit("the replay is not what was recorded")
    return times, loaded


def measure(calls: int, prompts: str, store: str) -> dict[str, float]:
    """Measure both ways. The mock goes first: what a replay shuts stays watched for the rest of the process."""
    turns = conversation.turns(MESSAGES, calls, fresh=False)
    if prompts == "identical":
        turns = [turns[0]] * calls
    few = turns[:10]
    run, warm = _recorded(turns, store), _recorded(few, store)
    passes = max(1, _SAMPLES // calls)
    _timed(_client(len(few)), few)
    mocked = [each for _ in range(passes) for each in _timed(_client(calls), turns)]
    _replayed(warm, store, few)
    passed = [_replayed(run, store, turns) for _ in range(passes)]
    replayed = [each for times, _ in passed for each in times]
    return {
        "mocked": statistics.median(mocked) / 1e3,
        "mocked_mean": statistics.fmean(mocked) / 1e3,
        "replayed": statistics.median(replayed) / 1e3,
        "replayed_mean": statistics.fmean(replayed) / 1e3,
        "load": statistics.median(loaded for _, loaded in passed) / 1e3 / calls,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(int(sys.argv[1]), sys.argv[2], folder)
    json.dump(figures, sys.stdout)
