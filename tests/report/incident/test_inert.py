from __future__ import annotations

import html
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from incidents import HIDDEN, SCRIPTS
from reenact.report.incident import inert
from reenact.report.incident.markup import Html, el, joined, text

TEXTS = st.text(st.characters() | st.sampled_from("<>&\"'\x00\x1b\u202e\ud800\ufeff\r\n")) | st.sampled_from(
    (*SCRIPTS, *HIDDEN)
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
TAGS = re.compile(r'<span class="esc">|</span>')


@given(TEXTS)
def test_any_text_is_text_and_is_read_back_from_what_is_shown(given_text: str) -> None:
    shown = inert.as_html(given_text)
    assert "<" not in TAGS.sub("", shown)
    assert html.unescape(TAGS.sub("", shown)) == inert.visible(given_text)


@given(TEXTS)
def test_nothing_hidden_is_left(given_text: str) -> None:
    assert not re.search(f"[{inert.HIDDEN}]", inert.visible(given_text))
    inert.visible(given_text).encode()


@given(JSON)
def test_json_in_a_script_is_the_same_json_and_cannot_end_it(value: object) -> None:
    spelled = inert.as_script_json(value)  # type: ignore[arg-type]
    assert json.loads(spelled) == value
    assert not set("<>&\u2028\u2029") & set(spelled)
    spelled.encode()


def test_hidden_characters_are_spelled_as_in_source_code() -> None:
    assert inert.visible("a\x1b[31m\u202eb\U000e0041\ud800\r\nc") == "a\\x1b[31m\\u202eb\\U000e0041\\ud800\nc"
    assert inert.as_html("\x00") == '<span class="esc">\\x00</span>'
    joiner = "👩\u200d🚀 \u200c"
    assert inert.visible(joiner) == joiner  # what emoji and Persian are written with


@given(TEXTS, TEXTS)
def test_attributes_stay_inside_their_quotes(name: str, value: str) -> None:
    made = el("p", name, title=value)
    inside = re.fullmatch(r'<p title="([^"]*)">(.*)</p>', made, re.DOTALL)
    assert inside is not None
    assert html.unescape(inside[1]) == inert.visible(value)


def test_only_what_was_made_here_is_markup() -> None:
    made = el("ul", [el("li", "<b>"), None, "&"], hidden=True, id=None, class_="a b", aria_label=3)
    assert made == '<ul hidden class="a b" aria-label="3"><li>&lt;b&gt;</li>&amp;</ul>'
    assert joined(["<", Html("<i></i>")], " ") == "&lt; <i></i>"
    assert text("<") == "&lt;"
    assert el("meta", charset="utf-8") == '<meta charset="utf-8">'
