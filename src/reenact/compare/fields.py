"""Where two contents differ, field by field, and whether that changes the path or only the wording.

Prose is what a model or a person wrote: the text of messages, instructions and reasoning. All else is structure: which
tool, which arguments, what it returned, model, parameters, schemas, the number of messages, an error's class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reenact.compare.content import Content, same_json
from reenact.values.call import CallKind
from reenact.values.difference import ABSENT, Absent, FieldDifference
from reenact.values.json import Json

_TEXT = re.compile(
    r"body\.(?:"
    r"(?:messages|input|contents|system)\b.*\.(?:content|text|thinking|reasoning|reasoning_content|summary|refusal|output)"
    r"(?:\[\d+\])*"
    r"|(?:system|instructions|input|prompt)"
    r")"
    r"|reply\.messages\[\d+\]\.(?:reasoning|content(?:\[\d+\])*(?:\.\w+)*)"
)
_PROSE_OF_FUNCTIONS = re.compile(
    r"returned|yielded\[\d+\]|arguments(?:\.(?:.*\.)?(?:content|text|prompt|system)(?:\[\d+\])*)?"
)
_NUMBERS = re.compile(r"reply\.vectors\[\d+\]\[\d+\]")
_TOOL_CALLS = re.compile(r"\.(?:tool_calls|arguments|args|input|function(?:_call|Call|Response)?)\b")


def field_differences(a: Json, b: Json, path: str = "") -> Iterator[FieldDifference]:
    """Yield the leaves in which `a` and `b` differ, in document order.

    Unlike `values.difference.differences` lists are aligned at both ends, so that a message put in or taken out in the
    middle is one difference and does not shift those behind it.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for name in [*a, *(name for name in b if name not in a)]:
            inner = f"{path}.{name}" if path else name
            if name not in a or name not in b:
                yield FieldDifference(path=inner, a=a.get(name, ABSENT), b=b.get(name, ABSENT))
            else:
                yield from field_differences(a[name], b[name], inner)
    elif isinstance(a, list) and isinstance(b, list):
        yield from _of_lists(a, b, path)
    elif type(a) is not type(b) or a != b:
        yield FieldDifference(path=path, a=a, b=b)


def _of_lists(a: list[Json], b: list[Json], path: str) -> Iterator[FieldDifference]:
    end_a, end_b = len(a), len(b)
    if end_a != end_b:
        while end_a and end_b and same_json(a[end_a - 1], b[end_b - 1]):
            end_a, end_b = end_a - 1, end_b - 1
        start = 0
        while start < min(end_a, end_b) and same_json(a[start], b[start]):
            start += 1
    else:
        start = 0
    for place in range(start, max(end_a, end_b)):
        inner = f"{path}[{place}]"
        if place >= end_a or place >= end_b:
            left = a[place] if place < end_a else ABSENT
            yield FieldDifference(path=inner, a=left, b=b[place] if place < end_b else ABSENT)
        else:
            yield from field_differences(a[place], b[place], inner)


def question_differences(a: Content, b: Content) -> list[FieldDifference]:
    """List the fields of the question that differ."""
    return list(field_differences(a.asked, b.asked))


def outcome_differences(a: Content, b: Content) -> list[FieldDifference]:
    """List the fields of the outcome that differ. One that returned against one that raised is one difference."""
    if isinstance(a.outcome, dict) and isinstance(b.outcome, dict) and next(iter(a.outcome)) != next(iter(b.outcome)):
        return [FieldDifference(path="outcome", a=a.outcome, b=b.outcome)]
    return list(field_differences(a.outcome, b.outcome))


def is_structural(difference: FieldDifference, kind: CallKind) -> bool:
    """Tell a change of the path from a change of wording."""
    if _NUMBERS.fullmatch(difference.path):
        return False  # the same text embedded twice need not give the same last digit
    return not _is_prose(difference.path, kind) or not (_is_text(difference.a) and _is_text(difference.b))


def _is_text(value: Json | Absent) -> bool:
    """Tell text, or the absence of text beside a tool call, from anything else."""
    return isinstance(value, str | Absent) or value is None


def _is_prose(path: str, kind: CallKind) -> bool:
    if kind is CallKind.EMBEDDING:
        return False
    if _TEXT.fullmatch(path):
        return not _TOOL_CALLS.search(path.removeprefix("body.input"))
    return kind is CallKind.LLM and bool(_PROSE_OF_FUNCTIONS.fullmatch(path))
