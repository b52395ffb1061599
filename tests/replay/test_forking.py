from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

import reenact
from held import Did, Held, attempted
from matrix.serving import Provider, Reply
from reenact.errors import Miss
from reenact.facade import replay
from reenact.find.altering import Altered, Branch
from reenact.replay.forking import Fork
from reenact.values.call import Body, Call, CallKind, HttpRequest
from reenact.values.change import Change
from reenact.values.json import Json
from reenact.values.run import Run


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def fetch(item: str) -> str:
    return f"{item} is there"


def chat(text: str) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Reply(body=json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}).encode())


def ask(url: str, prompt: str) -> str:
    with OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content or ""


def fork(
    did: Did,
    held: Held,
    work: Callable[[], Any],
    *changes: tuple[str, str, Json],
    at: tuple[str, ...] = (),
    sent: tuple[str, ...] = (),
    parameters: dict[str, Json] | None = None,
    **policies: str,
) -> tuple[Any, BaseException | None, Run]:
    """Fork a run inside this process: what the work gave or raised, and the fork's own run."""
    made = tuple(Change(call=call, path=path, value=value) for call, path, value in changes)
    asks = {change.call: (change,) for change in made if change.path.startswith("request")}
    branch = Branch(
        fork=Fork(
            marker=Path(),
            at=frozenset([*at, *(change.call for change in made)]),
            sent=frozenset([*sent, *asks]),
            requests=asks,
            parameters=parameters or {},
        ),
        root={"reenact.fork.parent": did.runs[0].id},
    )
    altered = Altered(changes=tuple(change for change in made if change.call not in asks), branch=branch)
    with replay(replace(did.found, altered=altered), strict=False, store=held.store, **policies) as handle:  # type: ignore[arg-type]
        value, error = attempted(work)
    assert handle.result is not None
    assert handle.result.replay is not None
    (run,) = [run for run in _runs(held) if run.id == handle.result.replay]
    return value, error, run


def _runs(held: Held) -> list[Run]:
    from reenact.graph.build import build
    from reenact.stores.directory import DirectoryStore

    store = DirectoryStore(held.store)
    return [run for trace_id in store.trace_ids() for run in build(store.spans(trace_id))]


def marks(run: Run, name: str) -> list[object]:
    return [node.span.attributes[name] for node in run.nodes if name in node.span.attributes]


def test_a_fork_names_its_parent_and_what_was_changed(held: Held) -> None:
    did = held.record(lambda: [fetch("tea"), fetch("milk")])
    changed = did.calls[0].id
    value, error, run = fork(did, held, lambda: [fetch("tea"), fetch("milk")], (changed, "result", "no tea"))
    assert (value, error) == (["no tea", "milk is there"], None)
    assert marks(run, "reenact.fork.parent") == [did.runs[0].id]
    assert marks(run, "reenact.replay.of") == []
    assert [node.call.name for node in run.nodes if node.span.attributes.get("reenact.fork.changed")] == ["fetch"]
    assert len(marks(run, "reenact.fork.changed")) == 1


def test_what_nobody_recorded_stops_it_before_the_change_and_is_for_the_policy_behind_it(held: Held) -> None:
    did = held.record(lambda: [fetch("tea"), fetch("milk")])
    last = did.calls[1].id

    def before() -> list[str]:
        return [fetch("coffee"), fetch("milk")]

    _, error, _ = fork(did, held, before, (last, "result", "x"), after="nearest")
    assert isinstance(error, Miss)

    def behind() -> list[str]:
        return [fetch("tea"), fetch("milk"), fetch("rum")]

    value, error, _ = fork(did, held, behind, (last, "result", "x"), tools="live")
    assert (value, error) == (["tea is there", "x", "rum is there"], None)


def test_models_are_live_behind_the_change_alone(held: Held) -> None:
    with Provider() as provider:
        url = provider.answer("p", chat("one"), chat("two"), chat("three"), chat("new"))

        def work() -> list[str]:
            return [ask(url, "1"), ask(url, "2"), ask(url, "3")]

        did = held.record(work)
        assert did.value == ["one", "two", "three"]
        middle = did.calls[1].id
        value, error, run = fork(did, held, work, (middle, "text", "set"), models="live")
        assert (value, error) == (["one", "set", "new"], None)
        value, _, run = fork(did, held, work, at=(middle,), sent=(middle,), models="live")
        assert value == ["one", "new", "new"]
        assert marks(run, "reenact.fork.sent_for") == [middle]
        assert len(marks(run, "reenact.replay.live")) == 2


def test_a_frozen_tool_says_once_more_what_it_said_and_nothing_new(held: Held) -> None:
    with Provider() as provider:
        url = provider.answer("p", chat("go"))
        did = held.record(lambda: (ask(url, "1"), fetch("tea")))
        first = did.calls[0].id
        for item, stops in (("tea", False), ("rum", True)):

            def work(item: str = item) -> list[str]:
                ask(url, "1")
                return [fetch("tea"), fetch(item)]

            value, error, run = fork(did, held, work, at=(first,), sent=(first,), models="live")
            assert isinstance(error, Miss) is stops
            if not stops:
                assert value == ["tea is there"] * 2
                assert marks(run, "reenact.evidence") == ["repeated"]


def test_what_goes_out_is_what_is_written_down_and_a_replay_knows_what_was_asked(held: Held) -> None:
    with Provider() as provider:
        url = provider.answer("p", chat("one"))
        did = held.record(lambda: ask(url, "1"))
        _, error, run = fork(did, held, lambda: ask(url, "1"), parameters={"temperature": 0.5}, models="live")
        assert error is None
        assert json.loads(provider.asked["p"][-1])["temperature"] == 0.5
    (call,) = (node for node in run.nodes if node.kind is CallKind.LLM)
    assert isinstance(call.call.request, HttpRequest)
    assert json.loads(call.call.request.body.data)["temperature"] == 0.5
    assert "temperature" not in json.loads(str(call.span.attributes["reenact.fork.asked"]))
    again = held.replay(Did(None, None, (run,)), lambda: ask(url, "1"))
    assert again.value == "one"
    assert again.result is not None
    assert again.result.result == "same"


def test_what_was_embedded_is_not_embedded_again(held: Held) -> None:
    with Provider() as provider:
        vector = {"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}
        url = provider.answer("p", Reply(body=json.dumps({"object": "list", "model": "e", "data": [vector]}).encode()))

        def embed(text: str) -> list[float]:
            with OpenAI(base_url=url, api_key="x", max_retries=0) as client:
                reply = client.embeddings.create(model="e", input=text, encoding_format="float")
            return reply.data[0].embedding

        did = held.record(lambda: embed("tea"))
        value, error, run = fork(
            did, held, lambda: [embed("tea"), embed("rum")], parameters={"model": "n"}, models="live"
        )
        assert (value, error) == ([[0.5, 0.25]] * 2, None)
        assert len(marks(run, "reenact.replay.live")) == 1
        assert [json.loads(body)["model"] for body in provider.asked["p"]] == ["e", "e"]


def request(shape: str, **body: Json) -> Call:
    asked = HttpRequest(shape=shape, method="POST", url="https://x.example/v1", body=Body(json.dumps(body).encode()))
    return Call(kind=CallKind.LLM, name="x", request=asked)


def rewritten(parameters: dict[str, Json], call: Call) -> tuple[Any, list[str]]:
    sent, unfit = Fork(marker=Path(), parameters=parameters).rewritten(call)
    assert isinstance(sent.request, HttpRequest)
    return json.loads(sent.request.body.data), unfit


def test_parameters_are_set_dropped_and_made_room_for() -> None:
    call = request("openai.chat", model="m", seed=1, messages=[{"role": "user", "content": "x"}])
    parameters: dict[str, Json] = {
        "model": "n",
        "seed": None,
        "reasoning.effort.level": "low",
        "messages[0].content": "y",
        "messages[5].content": "z",
    }
    assert rewritten(parameters, call) == (
        {
            "model": "n",
            "messages": [{"role": "user", "content": "y"}],
            "reasoning": {"effort": {"level": "low"}},
        },
        ["messages[5].content"],
    )


def test_what_answers_in_no_words_keeps_its_request() -> None:
    for shape in ("openai.embeddings", "anthropic.count_tokens", "unheard.of"):
        call = request(shape, model="m")
        assert Fork(marker=Path(), parameters={"model": "n"}).rewritten(call) == (call, [])


def test_a_plan_says_a_fork_whole() -> None:
    made = Fork(
        marker=Path("here"),
        at=frozenset("ab"),
        sent=frozenset("a"),
        requests={"a": (Change(call="a", path="request.model", value="n"),)},
        parameters={"x": 1},
    )
    assert Fork.from_json(json.loads(json.dumps(made.to_json()))) == made
