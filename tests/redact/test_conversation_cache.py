from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.conversation_cache import Heads
from reenact.redact.engine import Engine

SECRET = "ghp_" + "aB3dE5gH7j" * 3 + "aB3dE5"
MAIL = "jane.doe@corp-example.org"
SALT, KEY = "00" * 16, b"the store's own key"
NAMES = st.sampled_from(
    ["role", "content", "arguments", "PassWord", "cookie", "apiKey", "K", "prompt_tokens", "signature", "phone", "id"]
)
LEAVES = st.sampled_from(
    [
        "It was checked line by line. " * 40,
        SECRET,
        f"curl -H 'Authorization: Bearer {SECRET}'",
        "https://example.test/a?b=c",
        "https://user:pa55word99@example.test/",
        "my-own secret",
        "hunter2hunter2",
        "Überweisung 中文 – “quoted” ❤️",
        f"write to {MAIL}.",
        "415-555-2671",
        'a\\b "quoted" line\nbreak\ttab / slash',
        json.dumps({"cookie": "a=b", "path": "/"}),
        json.dumps(json.dumps({"token": SECRET, "to": MAIL})),
        json.dumps(["plain", {"deep": [MAIL, 4012888888881881]}]),
        "{not json} " + MAIL,
        "[also not",
        "jane%2Edoe%40corp-example.org",
        "",
    ]
)
NUMBERS = st.sampled_from([0, -7, 3.25, 4012888888881881, 4012888888881881.0, 1732272000, 1e30])
DOCUMENTS = st.recursive(
    LEAVES | NUMBERS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict | list))
SPELLINGS = st.sampled_from(
    [
        lambda value: orjson.dumps(value).decode(),
        json.dumps,
        lambda value: json.dumps(value, indent=1),
        lambda value: json.dumps(value, separators=(" , ", " : ")),
        lambda value: json.dumps(value).replace("/", "\\/"),
        lambda value: json.dumps(value).replace("ghp", "\\u0067hp").replace("jane", "j\\u0061ne"),
    ]
)
TURNS = st.lists(st.tuples(DOCUMENTS, SPELLINGS), min_size=1, max_size=6)


def engine(*, walking: bool = False) -> Engine:
    """Make an engine; one that goes through all of every document, leaf by leaf, if asked to."""
    made = Engine(salt=SALT, key=KEY, shared=False, known_secrets={"API_KEY": "my-own secret"})
    made._fast = not walking
    return made


@given(turns=TURNS)
def test_what_is_replaced_never_depends_on_what_was_seen_before_or_on_the_way_it_took(
    turns: list[tuple[Any, Any]],
) -> None:
    remembers, walks = engine(), engine(walking=True)
    growing: list[Any] = []
    for value, spell in turns:
        growing.append(value)
        for text in (spell(value), spell(growing)):
            clean = remembers.text(text)
            assert clean == engine().text(text) == walks.text(text)
            assert remembers.text(clean) == clean
            json.loads(clean)
    assert remembers.replaced == walks.replaced


@given(turns=TURNS)
def test_of_a_conversation_that_grows_the_same_is_counted_every_time(turns: list[tuple[Any, Any]]) -> None:
    remembers = engine()
    growing: list[Any] = ["It was checked line by line. " * 100]
    for value, spell in turns:
        growing.append(value)
        with remembers.counting() as first:
            remembers.text(spell(growing))
        with remembers.counting() as again, engine().counting():
            remembers.text(spell(growing))
        alone = engine()
        alone.text(spell(growing))
        assert first == again == alone.replaced


@pytest.mark.parametrize("secret", [SECRET, MAIL])
def test_a_secret_that_begins_where_the_known_beginning_ends_is_found(secret: str) -> None:
    history = json.dumps([{"role": "user", "content": "It was checked line by line. " * 100}])[:-3]
    for at in range(1, len(secret)):
        made = engine()
        for text in (f'{history} {secret[:at]}"}}]', f'{history} {secret}"}}]', f'{history} {secret} and on"}}]'):
            clean = made.text(text)
            assert secret not in clean
            assert clean == engine().text(text)


def test_a_key_that_stood_at_the_end_is_read_with_what_follows() -> None:
    history = json.dumps([{"role": "user", "content": "It was checked line by line. " * 100}])[:-2]
    made = engine()
    for text in (f'{history}, "cookie": ""}}]', f'{history}, "cookie": "a=b"}}]', f'{history}, "cookie": ["a=b"]}}]'):
        assert "a=b" not in made.text(text)


def test_many_conversations_do_not_push_out_the_one_that_is_heard_of() -> None:
    heads = Heads()
    history = f'["{"a long beginning " * 150}'
    for number in range(100):
        for text in (f'{history}{number}"]', f'["{number} {"another " * 300}"]'):
            known = heads.known(text)
            assert known is not None
            heads.looked_at(text, known, ())
        assert any(head.text.shared(history) == len(history) for head in heads._last.values())
    assert len(heads._last) == 16
