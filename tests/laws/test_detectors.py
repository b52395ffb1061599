"""What holds for every detector, whoever wrote it: found by looking into the family, judged by its examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden_cases import GOLDEN
from reenact.contracts.detector import Detector
from reenact.redact.engine import Engine
from reenact.redact.plan import discovered

SALT = "00" * 16
KEY = b"a secret that never travels, of these tests"
DETECTORS = discovered()
NAMES = sorted({detector.name for detector in DETECTORS})
ROWS = [pytest.param(row, id=f"{row.name}-{number}") for number, row in enumerate(DETECTORS)]


def _examples() -> dict[str, dict[str, Any]]:
    held: dict[str, dict[str, Any]] = {}
    for path in sorted((GOLDEN / "detectors").glob("*.json")):
        held |= json.loads(path.read_text(encoding="utf-8"))
    return held


EXAMPLES = _examples()
each_class = pytest.mark.parametrize("name", NAMES)


def spelled(item: dict[str, str]) -> tuple[str, str]:
    """Give an example's text and the value in it; values are kept in two parts, so that no file holds one."""
    value = item["prefix"] + item["rest"]
    return item.get("before", "") + value + item.get("after", ""), value


def found(name: str) -> Iterator[tuple[str, str, str]]:
    """Give the examples of a class: which one it is, its text, and the value in it."""
    for number, item in enumerate(EXAMPLES[name]["found"]):
        yield (f"{name} {number}", *spelled(item))


def engine() -> Engine:
    return Engine(key=KEY, salt=SALT, shared=False)


def test_there_are_at_least_a_hundred_token_formats_of_services() -> None:
    generic = {
        "assignment",
        "authorization",
        "cookie",
        "url_secret",
        "url_password",
        "command_secret",
        "connection_password",
    }
    services = {detector.name for detector in DETECTORS if detector.group == "credentials"} - generic
    assert len(services) >= 150


@each_class
def test_every_class_has_examples_and_lookalikes(name: str) -> None:
    assert len(EXAMPLES[name]["found"]) >= 2
    assert len(EXAMPLES[name]["not"]) >= 2
    assert re.fullmatch(r"[a-z0-9_]{2,40}", name)


def test_no_examples_are_left_behind() -> None:
    assert set(EXAMPLES) == set(NAMES)


@pytest.mark.parametrize("row", ROWS)
def test_every_row_keeps_the_contract(row: Detector) -> None:
    assert row.anchors, "nothing would ever look for it"
    assert all(anchor.isascii() and (len(anchor) >= 2 or anchor == "@") for anchor in row.anchors)
    assert row.run in {"", "shapes"}
    assert row.run == "" or all("0" in anchor for anchor in row.anchors), "a text without a digit has no shape"
    assert not re.search(r"\(\?P=|\\[1-9]", row.pattern), "a backreference is not linear"
    bare = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", row.pattern)
    assert not re.search(r"[*+]|\{\d*,\}", bare), "every repeat has a bound"
    re.compile(row.pattern, re.ASCII)


SURROUNDINGS = {
    "alone": "{}",
    "in a sentence": "It is {} , keep it.",
    "at the start": "{} is what I got",
    "at the end": "what I got is\n{}",
    "in Chinese": "密钥是{}。好的",
    "in brackets": "({})",
    "behind a tab": "\t{}\r\nnext",
    "in Markdown": "- `{}`\n- next",
}


@pytest.mark.sample(4)
@each_class
def test_every_example_is_found_wherever_it_stands(name: str) -> None:
    for example, text, value in found(name):
        for where, around in SURROUNDINGS.items():
            told = engine()
            whole = around.replace("{}", text)
            clean = told.text(whole)
            assert value not in clean, (example, where)
            assert told.replaced[name] >= 1, (example, where, told.replaced)
            assert told.text(clean) == clean, (example, where)


@pytest.mark.sample(4)
@each_class
def test_every_example_is_found_in_json_and_urls(name: str) -> None:
    for example, text, value in found(name):
        document = {"note": text, "list": [{"inner": json.dumps({"deep": text})}], text: 1}
        plain = json.dumps(document, ensure_ascii=False)
        for spelling in (json.dumps(document), plain, json.dumps(document, indent=1)):
            told = engine()
            clean = json.loads(told.text(spelling))
            shown = json.dumps(clean, ensure_ascii=False).encode().decode("unicode_escape", "replace")
            assert value not in shown, example
            assert value not in str(clean), example
            assert told.replaced[name] >= 1, example
            assert set(clean) - {"note", "list"}, (example, "the key is there, under another name")
        told = engine()
        line = f"GET https://host.example/search?q={quote(text)} HTTP/1.1"
        assert quote(value) not in told.text(line), example


BEFORE = ["\n", "\N{GRINNING FACE}", "\t", "\r\n", "\b", "é", '"', "\\", "/", "<"]
"""What JSON spells otherwise, so that in a document a value has other characters in front than in its text."""
SPELLED_OUT = ["\\n", "\\t", "\\r\\n", "\\\\n", "\\x0a"]


def first_alone(marks: list[str]) -> pytest.MarkDecorator:
    """Parametrize a test by what stands before a value: by default the first, all others in a slow one."""
    others = pytest.param(marks[1:], marks=pytest.mark.slow, id="the others")
    return pytest.mark.parametrize("before", [pytest.param(marks[:1], id="the first"), others])


@pytest.mark.sample(4)
@first_alone(BEFORE)
@each_class
def test_every_example_is_found_behind_what_json_escapes(name: str, before: list[str]) -> None:
    for example, text, value in found(name):
        for mark in before:
            said = f"It is this:{mark}{text}"
            if value not in engine().text(said):  # behind `é`, or a slash, it is part of a word
                behind(example, said, value)


def behind(example: str, said: str, value: str) -> None:
    """See that a value is found in a document, and in a turn of a conversation."""
    spoken = {"role": "user", "content": said}
    for ascii_only in (True, False):
        told = engine()
        told.attributes({"input.value": "{}"})
        held = told.attributes({"input.value": json.dumps(spoken, ensure_ascii=ascii_only)})["input.value"]
        assert value not in json.loads(held)["content"], (example, said, "in a document")
        told = engine()
        turns = [{"role": "user", "content": "Once more, in a long conversation. " * 60}]
        told.attributes({"input.value": json.dumps({"messages": turns})})
        asked = json.dumps({"messages": [*turns, spoken]}, ensure_ascii=ascii_only)
        held = told.attributes({"input.value": asked})["input.value"]
        assert value not in json.loads(held)["messages"][1]["content"], (example, said, "in a turn of a conversation")


@pytest.mark.sample(4)
@each_class
def test_every_example_is_found_where_documents_are_opened_first(name: str) -> None:
    reply = {"created": 1760000000, "content": "Two amounts do not agree."}
    for example, text, value in found(name):
        told = engine()
        for number in range(3):  # what does not clear such attributes as they stand
            plain = {"output.value": json.dumps({**reply, "id": number})}
            assert told.attributes(plain) == plain
        for said in (json.dumps({**reply, "content": text}), f"It is {text}", json.dumps(json.dumps({"deep": text}))):
            assert value not in told.attributes({"output.value": said})["output.value"], (example, said)


@pytest.mark.sample(4)
@first_alone(SPELLED_OUT)
@each_class
def test_every_example_is_found_behind_a_line_s_end_that_is_spelled_out(name: str, before: list[str]) -> None:
    """As in what Python prints of a text, and in arguments that were cut off."""
    for example, text, value in found(name):
        for mark in before:
            assert value not in engine().text(f"['It is this:{mark}{text} indeed', 'and"), (example, mark)


@each_class
def test_no_lookalike_is_taken(name: str) -> None:
    for number, text in enumerate(EXAMPLES[name]["not"]):
        for around in ("{}", "It is {} there.", "Here:\\n{}\\n"):
            told = engine()
            told.text(around.replace("{}", text))
            assert told.replaced[name] == 0, (number, text, around)


LETTERS = str.maketrans(
    {**dict.fromkeys("0123456789", "0"), **{chr(c): "A" for c in (*range(65, 91), *range(97, 123))}}
)


def admits(row: Detector, text: str, start: int, end: int) -> bool:
    """Tell whether the gate opens a window that holds a match, as the contract says."""
    searched = text.translate(LETTERS) if row.run else text.lower() if row.any_case else text
    for anchor in row.anchors:
        wanted = anchor.lower() if row.any_case and not row.run else anchor
        at = searched.find(wanted)
        while at >= 0:
            inside = row.apart and at > 0 and searched[at - 1] in "0A"
            if not inside and at - row.before <= start <= at and end <= at + len(anchor) + row.after:
                return True
            at = searched.find(wanted, at + 1)
    return False


def shortened(pattern: str) -> str:
    """Describe some of what a pattern describes: each repeat at most six times more than it must."""
    return re.sub(r"\{([0-9]+),([0-9]+)\}", lambda m: f"{{{m[1]},{min(int(m[2]), int(m[1]) + 6)}}}", pattern)


_AHEAD = re.compile(r"\(\?=(?:[^()\\[]|\\.|\[(?:[^\]\\]|\\.)*\]|\((?:[^()\\[]|\\.|\[(?:[^\]\\]|\\.)*\])*\))*\)")


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
@settings(max_examples=4, suppress_health_check=list(HealthCheck), deadline=None, derandomize=True)
@given(data=st.data())
def test_the_gate_lets_every_match_through(row: Detector, data: st.DataObject) -> None:
    """Whatever the pattern describes has an anchor near enough; else the pattern would never be tried."""
    pattern = re.compile(shortened(row.pattern), re.ASCII)
    # A look ahead would be met by chance alone: it is left out where texts are made, and kept where they are judged.
    made = re.compile(_AHEAD.sub("", shortened(row.pattern)), re.ASCII)
    least = 1 if made.pattern == pattern.pattern else 40
    texts = st.lists(st.from_regex(made, alphabet=st.characters(codec="ascii")), min_size=least, max_size=least)
    for text in data.draw(texts):
        for match in pattern.finditer(text):
            assert admits(row, text, *match.span()), match[0]


@pytest.mark.sample(4)
@pytest.mark.parametrize("row", ROWS)
def test_the_window_is_as_long_as_the_longest_match(row: Detector) -> None:
    longest = re._parser.parse(row.pattern).getwidth()[1]  # type: ignore[attr-defined]  # no public name tells it
    assert longest <= row.before + row.after + min(map(len, row.anchors))
