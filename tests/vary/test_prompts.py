"""The user's input: found where it was given, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

from made import Made, user
from reenact.values.run import Run
from reenact.values.unit import request_of
from reenact.values.variation import Variation
from reenact.vary.edits import applied
from reenact.vary.prompts import PROMPT


def prompts(run: Run) -> list[Variation]:
    assert PROMPT.of_run is not None
    return [*PROMPT.of_run(run, Random(1))]


def asked(*argv: str) -> Run:
    made = Made(1)
    made.llm([user("Where is my order?")], "There.")
    return replace(made.run(), entry={"argv": ["python", *argv]})


def test_a_word_of_the_command_line_that_reached_a_model_is_varied() -> None:
    found = prompts(asked("desk.py", "-v", "--user", "u-17", "Where is my order?"))
    assert {each.path for each in found} == {"argv[5]"}
    assert all(
        each.argv is not None and each.argv[:5] == ("python", "desk.py", "-v", "--user", "u-17") for each in found
    )
    assert "" in {each.after for each in found}


def test_an_option_keeps_its_name() -> None:
    (first, *_) = prompts(asked("desk.py", "--ask=Where is my order?"))
    assert first.argv is not None
    assert first.argv[2].startswith("--ask=")


def test_a_command_line_that_no_model_saw_is_left_alone() -> None:
    assert prompts(asked("desk.py", "--user", "u-17")) == []


def test_the_body_of_a_request_is_varied_and_stays_json() -> None:
    made = Made(1)
    made.llm([user("Where is my order?")], "There.")
    run = made.run()
    assert run.root is not None
    inbound = json.dumps({"protocol": "http", "interface": "asgi", "method": "POST", "path": "/ask", "headers": {}})
    body = json.dumps({"question": "Where is my order?", "lang": "en"})
    attributes: dict[str, Any] = {**run.root.span.attributes, "reenact.inbound": inbound, "input.value": body}
    root = replace(run.root, span=replace(run.root.span, attributes=attributes))
    run = replace(run, root=root, nodes=(root, *run.nodes[1:]))
    found = prompts(run)
    assert {each.path for each in found} >= {"input.question", "input.lang"}
    for each in found:
        request = request_of(applied(run, [each]))
        assert request is not None
        changed = json.loads(request.body or b"")
        assert changed != json.loads(body)
