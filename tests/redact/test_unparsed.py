from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.redact.engine import Engine
from reenact.redact.rules import KEYWORDS, SENSITIVE_KEYS
from reenact.redact.unparsed import Unparsed

SECRET = "ghp_" + "aB3d" * 9
SALT = "00" * 16
NAMES = st.sampled_from(["role", "content", "arguments", "PassWord", "cookie", "apiKey", "K", "prompt_tokens"])
LEAVES = st.sampled_from(
    [
        "It was checked line by line. " * 40,
        SECRET,
        f"curl -H 'Authorization: Bearer {SECRET}'",
        "https://example.test/a?b=c",
        "https://user:pa55word@example.test/",
        "my-own secret",
        "hunter2hunter2",
        "Überweisung 中文",
        json.dumps({"cookie": "a=b", "path": "/"}),
        json.dumps(json.dumps({"token": SECRET})),
        "",
    ]
)
DOCUMENTS = st.recursive(
    LEAVES | st.integers(-99, 99) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict | list))
SPELLINGS = st.sampled_from(
    [
        lambda value: orjson.dumps(value).decode(),
        json.dumps,
        lambda value: json.dumps(value, indent=1),
        lambda value: json.dumps(value).replace("/", "\\/"),
        lambda value: json.dumps(value).replace("ghp", "\\u0067hp"),
    ]
)
TURNS = st.lists(st.tuples(DOCUMENTS, SPELLINGS), min_size=1, max_size=6)


@settings(deadline=None)
@given(turns=TURNS)
def test_what_is_replaced_never_depends_on_what_was_seen_before(turns: list[tuple[Any, Any]]) -> None:
    engine = Engine(salt=SALT, known={"API_KEY": "my-own secret"})
    growing: list[Any] = []
    for value, spell in turns:
        growing.append(value)
        for text in (spell(value), spell(growing)):
            alone = Engine(salt=SALT, known={"API_KEY": "my-own secret"})
            alone._unparsed._usable = False  # every text is parsed
            assert engine.text(text) == alone.text(text)


@settings(deadline=None)
@given(value=DOCUMENTS, spell=SPELLINGS)
def test_what_passes_holds_nothing_to_replace(value: Any, spell: Any) -> None:
    text = spell(value)
    parsing = Engine(salt=SALT)
    parsing._unparsed._usable = False
    if Unparsed(KEYWORDS, SENSITIVE_KEYS).passes(text):
        assert parsing.text(text) == text


def test_a_secret_that_begins_where_the_known_beginning_ends_is_found() -> None:
    unparsed = Unparsed(KEYWORDS, SENSITIVE_KEYS)
    history = orjson.dumps(["It was checked line by line. " * 100]).decode()[:-2]
    assert unparsed.passes(history + ' ghp"]')
    assert unparsed.passes(history + ' ghp"]')
    assert not unparsed.passes(history + f" {SECRET}" + '"]')
    assert not unparsed.passes(history + '"], "cook' + 'ie": "a=b"')


def test_a_secret_that_json_spells_otherwise_is_not_looked_for_unparsed() -> None:
    assert not Unparsed((*KEYWORDS, 'quote"inside1'), SENSITIVE_KEYS).passes("[1]")
    assert not Unparsed((*KEYWORDS, "line\nbreak1"), SENSITIVE_KEYS).passes("[1]")


def test_many_conversations_do_not_push_out_the_one_that_is_heard_of() -> None:
    unparsed = Unparsed(KEYWORDS, SENSITIVE_KEYS)
    history = f'["{"a long beginning " * 150}'
    for number in range(100):
        assert unparsed.passes(f'{history}{number}"]')
        assert unparsed.passes(f'["{number} {"another " * 300}"]')
        assert any(cut.shared(history) == len(history) for cut in unparsed._last.values())
    assert len(unparsed._last) == 16
