"""Plans: which action a class gets at a place, and what is payload."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact import policy
from reenact.redact.plan import DEFAULT, GROUPS, Place, Rule, Where, compiled
from reenact.redact.policy import Policy

PARTS = st.sampled_from(["messages", "content", "text", "role", "id", "args", "a.b", "", 0, 1, 17])
PLACES = st.builds(
    Place,
    attribute=st.sampled_from(["", "input.value", "output.value", "llm.model_name", "metadata", "llm.x.content"]),
    path=st.lists(PARTS, max_size=5).map(tuple),
    tool=st.sampled_from(["", "crm_find", "search"]),
    kind=st.sampled_from(["", "LLM", "TOOL", "CHAIN"]),
    boundary=st.sampled_from(["", "http", "function"]),
)
WHERES = st.builds(
    Where,
    attribute=st.sampled_from(["", "input.*", "*.value", "metadata"]),
    path=st.sampled_from(["", "messages", "messages.*", "**.text", "messages.*.content", "*"]),
    tool=st.sampled_from(["", "crm_*", "search"]),
    kind=st.sampled_from(["", "tool", "LLM"]),
    boundary=st.sampled_from(["", "http", "function"]),
)
NAMES = ["e_mail", "openai_key", "known_secret", "phone"]
RULES = st.builds(
    Rule,
    action=st.sampled_from(["pseudonymise", "mask", "drop", "keep"]),
    names=st.frozensets(st.sampled_from(NAMES), max_size=2),
    groups=st.frozensets(st.sampled_from(GROUPS), min_size=1),
    whole=st.booleans(),
    where=WHERES,
)


@given(st.lists(RULES, max_size=5), st.sampled_from(NAMES), PLACES)
def test_the_last_rule_that_fits_decides(rules: list[Rule], name: str, place: Place) -> None:
    plan = compiled("x", DEFAULT.detectors, rules)
    fitting = [r for r in rules if not r.whole and r.means(name, plan.group(name)) and r.where.fits(place)]
    assert plan.action(name, place) == (fitting[-1].action if fitting else "pseudonymise")
    taking = [r for r in rules if r.whole and r.where.fits(place)]
    wanted = None if not taking or taking[-1].action == "keep" else taking[-1].action
    assert plan.whole(place) == wanted


@given(st.lists(RULES, max_size=4), PLACES)
def test_a_plan_that_says_it_is_uniform_is(rules: list[Rule], place: Place) -> None:
    plan = compiled("x", DEFAULT.detectors, rules)
    if plan.uniform:
        assert plan.whole(place) is None
        for name in NAMES:
            assert plan.action(name, place) == plan.action(name, Place())


@given(WHERES, PLACES)
def test_what_a_path_leads_to_includes_what_is_below(where: Where, place: Place) -> None:
    below = Place(
        attribute=place.attribute,
        path=(*place.path, "more", 3),
        tool=place.tool,
        kind=place.kind,
        boundary=place.boundary,
    )
    if where.fits(place):
        assert where.fits(below)


@given(st.lists(RULES, max_size=4), st.lists(RULES, max_size=4))
def test_the_digest_names_what_a_plan_does(a: list[Rule], b: list[Rule]) -> None:
    first, second = (compiled("x", DEFAULT.detectors, rules) for rules in (a, b))
    assert (first.digest == second.digest) == (a == b)


@given(
    st.sampled_from(["scan", "pseudonymise", "mask", "drop"]),
    st.lists(RULES.filter(lambda rule: not (rule.whole and rule.where.everywhere)), max_size=4),
)
def test_a_policy_goes_through_its_own_source(payloads: str, rules: list[Rule]) -> None:
    plain = [
        Rule(
            action=r.action,
            names=r.names if not r.whole else frozenset(),
            where=r.where,
            whole=r.whole,
            groups=frozenset(GROUPS) if r.names or r.whole else r.groups,
        )
        for r in rules
    ]
    known = {"e_mail", "openai_key", "known_secret", "phone"} & {
        *(each.name for each in DEFAULT.detectors),
        "known_secret",
    }
    plain = [r for r in plain if r.names <= known]
    made = Policy(name="x", payloads=payloads, rules=tuple(plain))  # type: ignore[arg-type]
    if source := made.source():
        assert policy.parse(source).plan().digest == made.plan().digest


def test_the_digest_is_the_same_in_every_process() -> None:
    code = (
        "from reenact.redact import policy; from reenact.redact.plan import DEFAULT\n"
        'rule = \'[[rule]]\\nclass=["phone","e_mail"]\\ntool="x"\\ndo="keep"\'\n'
        "print(DEFAULT.digest, policy.parse(rule).plan().digest)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    assert next(iter(said)).split()[0] == DEFAULT.digest


def test_the_default_looks_for_credentials_and_personal_data_everywhere() -> None:
    assert DEFAULT.uniform
    assert not DEFAULT.takes_whole
    groups = {detector.group for detector in DEFAULT.detectors}
    assert groups == set(GROUPS)
    assert {DEFAULT.action(detector.name, Place()) for detector in DEFAULT.detectors} == {"pseudonymise"}
    assert len({detector.name for detector in DEFAULT.detectors if detector.group == "credentials"}) >= 100


CHAT = {"attribute": "input.value", "kind": "LLM", "boundary": "http"}
REPLY = {**CHAT, "attribute": "output.value"}
STREAM = {**CHAT, "attribute": "reenact.stream.chunks"}
TOOL = {"attribute": "input.value", "kind": "TOOL", "boundary": "function"}
RESULT = {**TOOL, "attribute": "output.value"}
EVERYTHING = policy.parse('payloads = "pseudonymise"').plan()


@pytest.mark.parametrize(
    ("where", "path"),
    [
        (CHAT, ("messages", 0, "content")),
        (CHAT, ("messages", 1, "content", 0, "text")),
        (CHAT, ("messages", 2, "content", "name")),  # a tool's result, JSON in a string
        (CHAT, ("messages", 1, "tool_calls", 0, "function", "arguments", "city")),
        (CHAT, ("messages", 1, "content", 0, "input", "name")),
        (CHAT, ("input",)),
        (CHAT, ("input", 0, "content")),
        (CHAT, ("instructions",)),
        (CHAT, ("system",)),
        (CHAT, ("metadata", "id")),
        (CHAT, ("messages", 1, "content", 0, "input", "schema", "type")),
        (CHAT, ("messages", 1, "tool_calls", 0, "function", "parsed_arguments", "account_ids", 0)),
        (CHAT, ("somebody", "type")),
        (CHAT, ("contents", 0, "parts", 0, "text")),
        (CHAT, ("contents", 0, "parts", 0, "functionCall", "args", "name")),
        (CHAT, ("contents", 0, "parts", 0, "functionResponse", "response", "status")),
        (REPLY, ("choices", 0, "message", "content")),
        (REPLY, ("error", "message")),
        (STREAM, ("choices", 0, "delta", "content")),
        (STREAM, (0, 2, "delta", "text")),
        ({**TOOL, "attribute": "reenact.stream.chunks"}, ("name",)),
        (TOOL, ("name",)),
        (TOOL, ("id",)),
        (RESULT, ()),
        (RESULT, (0, "type")),
        (RESULT, ("$dict", 0, 1)),
        (RESULT, ("$dataclass", "fields", "name")),
        ({"attribute": "input.value", "kind": "UNKNOWN", "boundary": "http"}, ("params", "arguments", "name")),
        ({"attribute": "input.value"}, ()),
        ({"attribute": "llm.input_messages.0.message.content", "kind": "LLM"}, ()),
        ({"attribute": "exception.message"}, ()),
        ({"attribute": "reenact.exception"}, ("args", 0)),
        ({"attribute": "reenact.inbound"}, ("query",)),
        ({"attribute": "reenact.inbound"}, ("headers", "x-tenant", 0)),
        ({"attribute": "status"}, ()),
        ({"attribute": "somebody.elses.attribute"}, ()),
    ],
)
def test_what_was_said_is_payload(where: dict[str, Any], path: tuple[str | int, ...]) -> None:
    assert EVERYTHING.whole(replace(Place(path=path), **where)) == "pseudonymise"


@pytest.mark.parametrize(
    ("where", "path"),
    [
        (CHAT, ("model",)),
        (CHAT, ("messages", 0, "role")),
        (CHAT, ("messages", 2, "tool_call_id")),
        (CHAT, ("messages", 1, "tool_calls", 0, "function", "name")),
        (CHAT, ("messages", 1, "content", 0, "type")),
        (CHAT, ("messages", 1, "content", 0, "signature")),
        (CHAT, ("tools", 0, "function", "description")),
        (CHAT, ("text", "format", "schema", "required", 0)),
        (CHAT, ("contents", 0, "role")),
        (CHAT, ("content", "role")),
        (CHAT, ("messages", 0, "content", 0, "source", "media_type")),
        (STREAM, ("choices", 0, "delta", "role")),
        (STREAM, (0, 2)),
        (STREAM, (0, 2, "choices", 0, "delta", "tool_calls", 0, "id")),
        (CHAT, ("reasoning", "effort")),
        (REPLY, ("choices", 0, "finish_reason")),
        (REPLY, ("output", 0, "type")),
        (REPLY, ("output", 0, "encrypted_content")),
        (REPLY, ("system_fingerprint",)),
        (RESULT, ("$datetime",)),
        (RESULT, ("$dataclass",)),
        (RESULT, ("items", 0, "$uuid")),
        ({"attribute": "input.value", "kind": "UNKNOWN", "boundary": "http"}, ("method",)),
        ({"attribute": "llm.model_name", "kind": "LLM"}, ()),
        ({"attribute": "llm.input_messages.0.message.role", "kind": "LLM"}, ()),
        ({"attribute": "llm.tools.0.tool.json_schema", "kind": "LLM"}, ()),
        ({"attribute": "tool.name", "kind": "TOOL"}, ()),
        ({"attribute": "openinference.span.kind"}, ()),
        ({"attribute": "exception.type"}, ()),
        ({"attribute": "reenact.exception"}, ("qualname",)),
        ({"attribute": "reenact.lane"}, ()),
        ({"attribute": "reenact.draws"}, ("x",)),
        ({"attribute": "url.full", "kind": "LLM", "boundary": "http"}, ()),
        ({"attribute": "name"}, ()),
        ({"attribute": "service.name"}, ()),
    ],
)
def test_what_a_trace_is_read_by_is_no_payload(where: dict[str, Any], path: tuple[str | int, ...]) -> None:
    assert EVERYTHING.whole(replace(Place(path=path), **where)) is None
