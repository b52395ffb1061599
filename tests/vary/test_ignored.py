"""Ignored fields: which there are, and that varying one leaves every question what it was."""

from __future__ import annotations

from random import Random

from made import Made, called, reported, user
from reenact.boundary.question import question
from reenact.boundary.reading import reply_body
from reenact.graph.build import build
from reenact.values.json import Json
from reenact.values.lenient import at
from reenact.values.run import Run
from reenact.values.variation import Variation
from reenact.vary.edits import applied
from reenact.vary.ignored import IGNORED


def rows(run: Run) -> dict[str, Variation]:
    assert IGNORED.of_run is not None
    return {each.path: each for each in IGNORED.of_run(run, Random(1))}


def conversation() -> Run:
    made = Made(5)
    made.llm([user("hi")], tools=[("quote", {})], body={"user": "u-17", "metadata": {"a": "b"}})
    text = str(made.spans[0].attributes["output.value"])
    name = next(part for part in text.split('"') if part.startswith("call_"))
    made.tool("quote", {}, 9)
    made.llm([user("hi"), called(name, "quote", {}), reported(name, "9")], "nine", stream=True, body={"stream": True})
    return made.run()


def keys(run: Run) -> list[str]:
    (read,) = build([node.span for node in run.nodes])
    return [question(node.call).key for node in read.nodes]


def test_the_fields_of_replies_and_requests_are_listed() -> None:
    assert rows(conversation()).keys() == {
        "reply.created",
        "reply.id",
        "reply.model",
        "reply.tool_calls[].id",
        "reply.usage",
        "request.metadata",
        "request.url",
        "request.user",
    }


def test_only_ids_that_the_program_gives_back_change_a_question_and_those_in_both_places() -> None:
    run = conversation()
    for name, variation in rows(run).items():
        changed = keys(applied(run, [variation]))
        if name == "reply.tool_calls[].id":
            assert changed[1] == keys(run)[1]
            assert changed[3] != keys(run)[3]
        else:
            assert changed == keys(run), name


def test_a_value_is_varied_in_the_reply_itself() -> None:
    run = conversation()
    for name, path in (("reply.created", ("created",)), ("reply.id", ("id",)), ("reply.usage", ("usage",))):
        varied = applied(run, [rows(run)[name]])
        (read,) = build([node.span for node in varied.nodes])
        before, after = (at(reply_body(each.nodes[1]), *path) for each in (run, read))
        assert before is not None
        assert after != before


def test_calls_that_only_an_ignored_field_tells_apart_exchange_their_answers() -> None:
    made = Made(2)
    for who, says in (("u-1", "yes"), ("u-2", "no")):
        made.llm([user("may I?")], says, body={"user": who})
    run = made.run()
    assert len(set(keys(run)[1:])) == 1
    assert IGNORED.of_run is not None
    (exchanged,) = [each for each in IGNORED.of_run(run, Random(1)) if "exchanged" in each.description]
    says: list[Json] = [reply_body(node) for node in applied(run, [exchanged]).nodes[1:]]
    assert says == [reply_body(node) for node in reversed(run.nodes[1:])]
    assert exchanged.path == "request.user"
