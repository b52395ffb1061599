"""What members of families say of themselves before they are loaded holds once they are, so none is missed."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from types import ModuleType
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


# -------------------------------------------------------------------- what a member's own source may make it look for


def module_of(member: Format | Dialect) -> ModuleType:
    return sys.modules[member.recognises.__module__]


def texts_in(value: object) -> Iterator[str]:
    """Give the texts in a piece of source, or in a constant as it is made of some."""
    if isinstance(value, ast.AST):
        for node in ast.walk(value):
            if isinstance(node, ast.Constant):
                yield from texts_in(node.value)
    elif isinstance(value, str | bytes) and 0 < len(value) <= 200:
        yield value if isinstance(value, str) else value.decode("latin-1")
    elif isinstance(value, tuple | list | set | frozenset):
        for each in value:
            yield from texts_in(each)


def groups_in(module: ModuleType) -> set[tuple[str, ...]]:
    """Give the texts that stand together in a module's source: in a tuple, a call, a condition, or alone."""
    wholes = (ast.Tuple, ast.List, ast.Set, ast.Call, ast.Constant, ast.BoolOp, ast.Assign)
    found: list[object] = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, wholes)]
    for value in vars(module).values():
        found += [value, *(value if isinstance(value, tuple) else ())]
    groups = {tuple(dict.fromkeys(texts_in(each))) for each in found}
    return {group for group in groups if 0 < len(group) <= 12}


def nested(paths: Iterable[str]) -> dict[str, Any]:
    """Make a document that has all of these paths, `a.b[].c`, as far as one does not stand in the other's way."""
    document: dict[str, Any] = {}
    for path in paths:
        at: Any = document
        *above, last = path.split(".")
        for part in above:
            if not isinstance(at, dict):
                break
            held = at.setdefault(part.removesuffix("[]"), [{}] if part.endswith("[]") else {})
            at = held[0] if isinstance(held, list) else held
        if isinstance(at, dict):
            at.setdefault(last, "x")
    return document


def heads_of(group: tuple[str, ...]) -> Iterator[bytes]:
    """Give files that hold the texts of a group: as keys, as a line of columns, as they are; each of alternatives."""
    alternatives = [text.split("|") for text in group]
    first = [each[0] for each in alternatives]
    others = (
        [*first[:place], other, *first[place + 1 :]] for place, each in enumerate(alternatives) for other in each[1:]
    )
    for paths in [first, *others]:
        document = nested(paths)
        yield json.dumps(document).encode()
        yield json.dumps([document]).encode()
        yield json.dumps([[document]]).encode()
        yield json.dumps(dict.fromkeys(paths, "x")).encode()
        yield (",".join(paths) + "\n").encode("utf-8", "replace")
        spelled = (path if '"' in path else f'"{path}":' for path in paths)
        yield ("{" + "".join(spelled) + "}").encode("utf-8", "replace")


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


@pytest.mark.sample(6)
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


@every_format
def test_a_format_s_own_words_are_among_its_marks(member: Format) -> None:
    """A word that the source looks for and no mark names shows in a file that has that word and little else."""
    heads = {head for group in groups_in(module_of(member)) for head in heads_of(group)}
    assert heads
    for head in heads:
        hold_format(member, head)


PATTERNS = [
    (member, value)
    for member in FORMATS
    for value in vars(module_of(member)).values()
    if isinstance(value, re.Pattern) and isinstance(value.pattern, bytes)
]


@given(data=st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
def test_what_a_format_s_patterns_match_shows_its_marks(data: st.DataObject) -> None:
    member, pattern = data.draw(st.sampled_from(PATTERNS))
    words = sorted({text for group in groups_in(module_of(member)) for text in group if len(text) < 40})
    beside = data.draw(st.lists(st.sampled_from(words), max_size=4))
    matched = data.draw(st.from_regex(pattern))
    tail = "".join(f'"{word}": ' for word in beside).encode("utf-8", "replace")
    for head in (matched + tail, b"{" + matched + b"\n" + tail, matched + b"{" + tail):
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


def words_of(member: Dialect) -> list[str]:
    """Give the words that a dialect's source may look for in names: whole texts, and the pieces of its patterns."""
    module = module_of(member)
    found = {text for group in groups_in(module) for text in group}
    for value in vars(module).values():
        for each in value if isinstance(value, tuple) else (value,):
            patterns = [each, *(getattr(each, name, None) for name in getattr(type(each), "__slots__", ()))]
            for pattern in patterns:
                if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                    plain = re.sub(r"\(\?P?<?\w*>?|[()\\?*+\[\]^$]", " ", pattern.pattern)
                    found |= {plain.replace(" ", ""), *plain.split(), *re.sub(r"[ |]+", "x", plain).split()}
                    found |= {each.replace(" a-z_", "x").replace(" ", "") for each in plain.split("|")}
    return sorted(word for word in found if len(word) <= 60 and not re.search(r"\s", word))


def spans_of(words: list[str]) -> Iterator[SpanRecord]:
    """Give spans that hold one word or two of a list, in every place where a dialect may look."""
    bare = span_of({"name": "", "attributes": {}})
    for word in words:
        event = SpanEvent(name=word, time_ns=1, attributes={})
        yield replace(bare, name=word)
        yield replace(bare, name=f"{word}x")
        yield replace(bare, scope=Scope(name=word))
        yield replace(bare, scope=Scope(name=f"{word}.x"))
        yield replace(bare, events=(event,))
        yield replace(bare, events=(replace(event, name=f"{word}message"),))
        for value in ("x", '{"input": {"messages": []}}'):
            yield replace(bare, attributes={word: value})
            yield replace(bare, attributes={f"{word}x": value})
            yield replace(bare, events=(SpanEvent(name="x", time_ns=1, attributes={word: value}),))
    names = [word for word in words if re.search(r"[._:]", word)]
    for one, other in product(names, words):
        yield replace(bare, attributes={one: other})
    for one, other in permutations(names, 2):
        yield replace(bare, attributes={one: "x", f"{other}x": "x"})
        yield replace(bare, attributes={one: "x", other: "x"})
        yield replace(bare, name=one, attributes={other: "x"})
        yield replace(bare, scope=Scope(name=one), attributes={other: "x"})
        yield replace(bare, attributes={one: "x"}, events=(SpanEvent(name=f"{other}x", time_ns=1, attributes={}),))
        yield replace(bare, events=(SpanEvent(name="x", time_ns=1, attributes={one: f"{other}x"}),))


@pytest.mark.sample(6)
@every_dialect
def test_a_dialect_s_own_words_are_among_its_marks(member: Dialect) -> None:
    """A word that the source looks for and no mark names shows in a span that has that word and little else."""
    recognised = 0
    for span in spans_of(words_of(member)):
        hold_dialect(member, span)
        recognised += member.recognises(span) > 0
    assert recognised


NAMES = sorted({word for member in DIALECTS for word in words_of(member) if re.search(r"[._]", word)})
BEGUN = sorted({word for member in DIALECTS for word in words_of(member) if not word.startswith("_")})
VALUES = st.sampled_from(["x", "", '{"input": {"messages": []}}']) | st.booleans() | st.integers(0, 2)
SAID = st.dictionaries(st.sampled_from(NAMES), VALUES | st.sampled_from(BEGUN), max_size=5)
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
