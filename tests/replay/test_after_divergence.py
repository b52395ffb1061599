"""What happens after the first divergence, with real SDKs, threads and a stand-in provider."""

from __future__ import annotations

import itertools
import wave
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

import reenact
from held import Did, Held, attempted
from reenact.boundary.door import doorman
from reenact.demo.provider import StandIn
from reenact.errors import Diverged, InputError, Miss
from reenact.facade import Replay
from reenact.values.call import Unfinished
from reenact.values.judgement import Word

wave.ticket = itertools.count(1)  # type: ignore[attr-defined]  # no state of the agent's, which an answer would put back


def ticket() -> int:
    return next(wave.ticket)  # type: ignore[attr-defined]


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def provider() -> Iterator[StandIn]:
    with StandIn(seed=7, max_delay_ms=2) as standing:  # two questions may have one answer by chance
        yield standing


@reenact.tool
def fetch(item: str) -> str:
    return f"{item} {ticket()}"


@reenact.tool
def sell(item: str) -> str:
    return f"sold {item} {ticket()}"


def ask(url: str, prompt: str, *, stream: bool = False) -> str:
    messages: list[Any] = [{"role": "user", "content": prompt}]
    with OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        if stream:
            with client.chat.completions.stream(model="stand-in-everything", messages=messages) as events:
                return events.get_final_completion().choices[0].message.content or ""
        reply = client.chat.completions.create(model="stand-in-everything", messages=messages)
    return reply.choices[0].message.content or ""


def again(held: Held, did: Did, work: Callable[[], Any], **how: Any) -> tuple[Any, BaseException | None, Replay]:
    with reenact.replay(did.found, strict=False, store=held.store, **how) as handle:
        value, error = attempted(work)
    assert handle.result is not None
    return value, error, handle


def test_a_missed_question_is_shown_in_the_replay_s_own_run(held: Held) -> None:
    did = held.record(lambda: fetch("tea"))
    _, error, replay = again(held, did, lambda: fetch("coffee"))
    assert isinstance(error, Miss)
    assert replay.run is not None
    (asked,) = [node for node in replay.run.nodes if node is not replay.run.root]
    assert (asked.call.name, asked.call.request.arguments) == ("fetch", {"item": "coffee"})  # type: ignore[union-attr]
    assert isinstance(asked.outcome, Unfinished)
    assert asked.span.attributes["reenact.replay.missed"] == did.call("fetch").id


def test_nearest_answers_are_given_once_each_and_marked(held: Held) -> None:
    did = held.record(lambda: [fetch("tea"), fetch("milk"), sell("tea")])
    value, error, replay = again(held, did, lambda: [fetch("tea"), fetch("oats"), sell("tea")], after="nearest")
    assert (value, error) == (did.value, None)
    assert replay.result is not None
    assert replay.run is not None
    assert (replay.result.result, replay.result.beyond) == ("diverged", 2)
    assert [miss["onward"] for miss in replay.result.misses] == ["nearest"]
    marks = [node.span.attributes.get("reenact.evidence") for node in replay.run.nodes if node is not replay.run.root]
    assert marks == [None, "nearest", "nearest"], "what comes after is no evidence either, though it was recorded"


def test_where_nothing_recorded_is_left_the_replay_stops_at_last(held: Held) -> None:
    did = held.record(lambda: [fetch("tea"), fetch("milk")])

    def forever() -> None:
        for _ in range(100):
            fetch("oats")

    _, error, replay = again(held, did, forever, after="nearest")
    assert isinstance(error, Miss)
    assert replay.result is not None
    assert [miss.get("onward") for miss in replay.result.misses] == ["nearest", "nearest", None]


def test_no_tool_is_answered_by_another_one(held: Held) -> None:
    did = held.record(lambda: [fetch("tea"), sell("tea")])
    value, error, _ = again(held, did, lambda: [fetch("tea"), fetch("milk")], after="nearest")
    assert value is None
    assert isinstance(error, Miss)


def test_a_stream_is_no_answer_for_who_wants_a_whole_reply(held: Held, provider: StandIn) -> None:
    did = held.record(lambda: ask(provider.base_url, "Name a place.", stream=True))
    value, _, _ = again(held, did, lambda: ask("http://127.0.0.1:9/v1", "Name a thing.", stream=True), after="nearest")
    assert value == did.value
    _, error, _ = again(held, did, lambda: ask("http://127.0.0.1:9/v1", "Name a thing."), after="nearest")
    assert isinstance(error, Miss)


def test_models_go_live_behind_the_first_divergence_and_no_tool_does(held: Held, provider: StandIn) -> None:
    def work(prompt: str) -> list[str]:
        first = ask(provider.base_url, prompt)
        return [fetch("tea"), ask(provider.base_url, first), ask(provider.base_url, "Name a thing.")]

    did = held.record(lambda: work("Name a place."))
    before, sold = provider.served.requests, ticket()
    value, error, replay = again(held, did, lambda: work("Name a town."), after="live-models")
    assert error is None
    assert (value[0], value[2]) == (did.value[0], did.value[2]), "recorded questions are answered from the recording"
    assert replay.result is not None
    assert (replay.result.live, provider.served.requests - before) == (2, 2)
    _, error, _ = again(held, did, lambda: [work("Name a town."), sell("tea")], after="live-models")
    assert isinstance(error, Miss)
    assert ticket() == sold + 1, "no tool was run"


def test_a_live_replay_of_many_threads_waits_for_nothing_recorded(held: Held, provider: StandIn) -> None:
    def work(prompt: str) -> list[str]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda n: ask(provider.base_url, f"{prompt} {n}"), range(8)))

    did = held.record(lambda: work("Name a place"))
    value, error, replay = again(held, did, lambda: work("Name a town"), after="live-models")
    assert error is None
    assert len(value) == 8
    assert replay.result is not None
    assert (replay.result.live, replay.result.released_out_of_order) == (8, [])


def test_a_block_of_code_is_judged_by_its_assertions(held: Held, tmp_path: Path) -> None:
    did = held.record(lambda: [fetch("tea"), sell("tea")])
    (tmp_path / "shop.check").write_text("never called sell\n")
    with pytest.raises(Diverged, match="reproduced: `never called sell` fails as recorded"):
        _strictly(held, did, lambda: [fetch("tea"), sell("tea")], "never called sell")
    replay = _strictly(held, did, lambda: fetch("tea"), tmp_path / "shop.check")
    assert replay.judgement is not None
    assert (replay.judgement.word, replay.judgement.exit_code) == (Word.FIXED, 0)
    assert replay.judgement.replay[0].place.endswith("shop.check:1")
    with pytest.raises(Diverged, match="broken: something changed: tool fetch"):
        _strictly(held, did, lambda: [fetch("tea"), fetch("milk")], 'never called sell where item = "milk"')
    with pytest.raises(InputError, match="cannot be read"):
        _strictly(held, did, lambda: None, tmp_path / "nowhere.check")
    assert doorman() is None, "nothing was put in charge"


def _strictly(held: Held, did: Did, work: Callable[[], Any], check: str | Path) -> Replay:
    with reenact.replay(did.found, check=[check], store=held.store) as handle:
        attempted(work)
    return handle
