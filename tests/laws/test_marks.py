"""What members of families say of themselves before they are loaded holds once they are, so none is missed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden_cases import GOLDEN
from golden_spans import span_of
from reenact import discover
from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.formats import journal
from reenact.graph.interpret import dialects
from reenact.read.open import HEAD_BYTES, open_spans, surest
from reenact.read.unpack import ZIP, looked_at, unpacked
from reenact.values.span import Scope, SpanEvent, SpanRecord

FORMATS = discover.members("formats", Format)
DIALECTS = discover.members("dialects", Dialect)
patient = settings(deadline=None, suppress_health_check=list(HealthCheck))
every_format = pytest.mark.parametrize("member", FORMATS, ids=lambda member: member.name)
every_dialect = pytest.mark.parametrize("member", DIALECTS, ids=lambda member: member.name)


def golden_heads() -> Iterator[bytes]:
    """Give the first bytes of every golden file, of whatever family, unpacked, and of a journal."""
    yield journal.MAGIC + bytes(range(32))
    for path in sorted(GOLDEN.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                try:
                    head, _ = looked_at(unpacked(file, path.name), HEAD_BYTES)
                except InputError:  # damaged on purpose
                    continue
            if head and not head.startswith(ZIP):
                yield head


def golden_spans() -> Iterator[SpanRecord]:
    """Give every span of the golden cases: of dialects as they are written down there, of formats as they are read."""
    for path in sorted((GOLDEN / "dialects").rglob("*.json")):
        written = json.loads(path.read_bytes())
        for each in written if isinstance(written, list) else [written]:
            if isinstance(each, dict) and "name" in each:
                yield span_of(each)
    for folder in ("formats", "foreign", "twins"):
        for path in sorted((GOLDEN / folder).rglob("*")):
            if path.is_file():
                try:
                    yield from (record for record in open_spans(path) if isinstance(record, SpanRecord))
                except InputError:  # damaged on purpose, or notes beside a case
                    continue


@pytest.fixture(scope="module")
def heads() -> list[bytes]:
    return [*golden_heads()]


@pytest.fixture(scope="module")
def spans() -> list[SpanRecord]:
    return [*golden_spans()]


def test_the_index_says_what_the_members_say() -> None:
    written: Any = json.loads(discover.INDEX.read_bytes())
    assert written == json.loads(json.dumps(discover.outlines())), "run `make index`"


@pytest.mark.parametrize("family", discover.INDEXED)
def test_entries_are_the_members_in_their_order(family: str) -> None:
    kinds = {type(value) for told in vars_of(family) for value in told if type(value).__module__ in CONTRACTS}
    assert kinds
    for kind in kinds:
        assert [entry.load() for entry in discover.entries(family, kind)] == [*discover.members(family, kind)]


CONTRACTS = frozenset(
    f"reenact.contracts.{name}" for name in ("dialect", "format", "integration", "shape", "further", "blobs")
)


def vars_of(family: str) -> Iterator[list[object]]:
    from importlib import import_module
    from pkgutil import iter_modules

    package = import_module(f"reenact.{family}")
    for found in iter_modules(package.__path__):
        yield [*vars(import_module(f"{package.__name__}.{found.name}")).values()]


def test_marks_come_back_from_the_index() -> None:
    told: Any = json.loads(json.dumps({m.name: m.outline() for m in FORMATS}))
    assert all(m.marks is None or HeadMarks.read(told[m.name]["marks"]) == m.marks for m in FORMATS)
    told = json.loads(json.dumps({m.name: m.outline() for m in DIALECTS}))
    assert all(m.marks is None or SpanMarks.read(told[m.name]["marks"]) == m.marks for m in DIALECTS)


# ------------------------------------------------------------------------------------------------------------ formats


def hold_format(member: Format, head: bytes) -> None:
    sure = member.recognises(head)
    assert sure <= member.most
    assert not sure or member.marks is None or member.marks.on(head)


def blinded(head: bytes, marks: HeadMarks) -> bytes:
    """Take out of a head whatever the marks name: the last key of each path, and each text."""
    keys = [path.rpartition(".")[2] for signs in marks.keys for sign in signs for path in sign.split("|")]
    words = [f'{key}"'.encode() for key in keys]
    words += [sign.encode() for signs in (*marks.texts, *marks.plain) for sign in signs]
    for word in sorted(words, key=len, reverse=True):
        head = re.sub(re.escape(word), lambda found: re.sub(rb"\w", b"q", found[0]), head, flags=re.IGNORECASE)
    return head


@every_format
def test_a_format_recognises_no_file_without_its_marks(member: Format, heads: list[bytes]) -> None:
    for head in heads:
        hold_format(member, head)
        hold_format(member, head[: len(head) // 3])
    if member.marks is None:
        return
    known = [head for head in heads if member.recognises(head) > 0]
    assert known
    without = [head for head in (blinded(head, member.marks) for head in known) if not member.marks.on(head)]
    assert without
    assert [head[:80] for head in without if member.recognises(head) > 0] == []


WORDS = sorted(
    {
        word
        for member in FORMATS
        if member.marks is not None
        for signs in (*member.marks.keys, *member.marks.texts, *member.marks.plain)
        for sign in signs
        for path in sign.split("|")
        for word in (path, *re.split(r"\.|\[\]", path))
        if word
    }
)
KEYS = st.sampled_from(sorted({*WORDS, *(word.strip('":\\') for word in WORDS)} - {""}))
LEAVES = KEYS | st.integers(0, 2) | st.none() | st.sampled_from(["message", "user", "ModelInvocationLog", "https://h"])
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=12
)


@given(
    document=st.dictionaries(KEYS, DOCUMENTS, max_size=6) | st.lists(DOCUMENTS, max_size=3),
    indent=st.none() | st.just(1),
)
@patient
def test_of_any_json_no_format_recognises_what_shows_no_mark_of_its(document: Any, indent: int | None) -> None:
    head = json.dumps(document, indent=indent).encode()
    for member in FORMATS:
        hold_format(member, head)


@given(names=st.lists(KEYS, min_size=1, max_size=12), sign=st.sampled_from([",", ": ", ":\n- ", "\n", " "]))
@patient
def test_of_any_text_no_format_recognises_what_shows_no_mark_of_its(names: list[str], sign: str) -> None:
    head = (sign.join(names) + "\n1,2,3\n").encode()
    for member in FORMATS:
        hold_format(member, head)


def test_the_surest_format_is_that_of_asking_all(heads: list[bytes]) -> None:
    for head in heads:
        sure, chosen = max(((member.recognises(head), member) for member in FORMATS), key=lambda pair: pair[0])
        assert surest(head, 0.01) is (chosen if sure >= 0.01 else None)


# ----------------------------------------------------------------------------------------------------------- dialects


def hold_dialect(member: Dialect, span: SpanRecord) -> None:
    sure = member.recognises(span)
    assert sure <= member.most
    assert not sure or member.marks is None or member.marks.on(span)


def stripped(span: SpanRecord, marks: SpanMarks) -> SpanRecord:
    """Take off a span whatever the marks name, and leave the rest."""

    def marked(name: str, value: object) -> bool:
        return name in marks.attributes or name.startswith(marks.beginnings) or (name, value) in marks.values

    return replace(
        span,
        attributes={name: value for name, value in span.attributes.items() if not marked(name, value)},
        scope=replace(span.scope, name="") if span.scope.name.startswith(marks.scopes) else span.scope,
        name="" if span.name.startswith(marks.names) else span.name,
        events=tuple(
            event
            for event in span.events
            if not event.name.startswith(marks.event_names)
            and not any(name in event.attributes for name in marks.events)
        ),
    )


@every_dialect
def test_a_dialect_recognises_no_span_without_its_marks(member: Dialect, spans: list[SpanRecord]) -> None:
    assert member.marks is not None
    for span in spans:
        hold_dialect(member, span)
    assert any(member.recognises(span) > 0 for span in spans)
    for span in (stripped(span, member.marks) for span in spans):
        assert not member.marks.on(span)
        assert member.recognises(span) == 0


NAMES = sorted(
    {
        name
        for member in DIALECTS
        if member.marks is not None
        for name in (
            *member.marks.attributes,
            *(f"{each}{rest}" for each in member.marks.beginnings for rest in ("", "input", "0.role", "name")),
            *(name for name, _ in member.marks.values),
            *member.marks.events,
        )
    }
    | {"gen_ai.input.messages", "llm.openai.messages", "llm.request.messages", "db.system", "log.body", "tool_response"}
)
BEGUN = sorted(
    {name for m in DIALECTS if m.marks for name in (*m.marks.scopes, *m.marks.names, *m.marks.event_names)}
    | {"openai.chat", "gen_ai.choice", "gen_ai.user.message", "chat gpt", "codex.tool", "claude_code.tool", "voltagent"}
)
TOLD = sorted({value for m in DIALECTS if m.marks for _, value in m.marks.values} | {"chromadb", "", "codex.x", "x"})
VALUES = st.sampled_from([*TOLD, '{"input": {"messages": []}}', "claude_code.x"]) | st.booleans() | st.integers(0, 2)
SAID = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5)
EVENTS = st.lists(st.builds(SpanEvent, name=st.sampled_from(BEGUN), time_ns=st.just(1), attributes=SAID), max_size=2)


@given(said=SAID, name=st.sampled_from(BEGUN), scope=st.sampled_from(["", *BEGUN]), events=EVENTS)
@patient
def test_of_any_span_the_surest_dialect_is_that_of_asking_all(
    said: dict[str, Any], name: str, scope: str, events: list[SpanEvent]
) -> None:
    span = replace(span_of({"name": name, "attributes": said}), scope=Scope(name=scope), events=tuple(events))
    for member in DIALECTS:
        hold_dialect(member, span)
    the_surest_is_that_of_asking_all(span)


def test_of_every_golden_span_the_surest_dialect_is_that_of_asking_all(spans: list[SpanRecord]) -> None:
    for span in spans:
        the_surest_is_that_of_asking_all(span)


def the_surest_is_that_of_asking_all(span: SpanRecord) -> None:
    sure, chosen = max(((member.recognises(span), member) for member in DIALECTS), key=lambda pair: pair[0])
    assert discover.surest(dialects(), span) == ((sure, chosen) if sure > 0 else (0.0, None))


def test_a_member_that_the_index_does_not_name_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for index in (tmp_path / "missing.json", tmp_path / "damaged.json"):
        (tmp_path / "damaged.json").write_text('{"formats": ')
        monkeypatch.setattr(discover, "INDEX", index)
        discover._index.cache_clear()
        discover._entries.cache_clear()
        found = discover.entries("formats", Format)
        assert [entry.load() for entry in found] == [*FORMATS]
        assert [entry.outline for entry in found] == [member.outline() for member in FORMATS]
    monkeypatch.undo()
    discover._index.cache_clear()
    discover._entries.cache_clear()
