"""The assertion language: one assertion a line, `#` begins a comment.

    never called delete_accounts where target = "production"
    called list_inactive_accounts before delete_accounts
    answer contains "done"

`docs/assertions.md` has all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reenact.assess.assertion_text import spelled
from reenact.errors import AssertionInvalid, InputError
from reenact.values.assertion import Assertion, Placed

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput

_MOST_EXPECTED = 20
_LONGEST: Final = 100_000
_MOST_BRACKETS: Final = 200
"""Their levels are walked by recursion."""
_READABLE: Final = {
    "NAME": "a name",
    "STRING": "a string in quotes",
    "FIELD": "a field",
    "NUMBER": "a number",
    "KIND": "a kind of call (tool, llm, http, …)",
    "TYPE": "a type (string, number, …)",
    "$END": "the end of the line",
}


def parse(text: str, *, source: str = "") -> tuple[Placed, ...]:
    """Read assertions, one a line; empty lines and comments are passed over.

    `source` is the file they stand in; each is placed at `source:line`, or nowhere without one. Raises
    `errors.AssertionInvalid`, which names line and column and what was expected there.
    """
    entries: list[Placed] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            entries.append(Placed(assertion=_read(line, source, number), place=f"{source}:{number}" if source else ""))
    return tuple(entries)


def spell(assertion: Assertion) -> str:
    """Spell an assertion, so that `parse` reads the same again."""
    return spelled(assertion)


def _read(line: str, source: str, number: int) -> Assertion:
    from lark.exceptions import UnexpectedInput, VisitError

    from reenact.assess.assertion_builder import Making, Refused
    from reenact.assess.grammar import parser

    if len(line) > _LONGEST or sum(map(line.count, "([{")) > _MOST_BRACKETS:
        raise InputError(f"{source or 'assertion'}:{number}", "this assertion is too long, or nested too deep")
    try:
        assertion: Assertion = Making().transform(parser().parse(line))
    except UnexpectedInput as error:
        column = _column(error, line)
        raise _invalid(line, source, number, column, _expected(error, line, column)) from None
    except VisitError as error:
        if isinstance(error.orig_exc, Refused):
            raise _invalid(line, source, number, error.orig_exc.column, str(error.orig_exc)) from None
        raise
    return assertion


def _column(error: UnexpectedInput, line: str) -> int:
    token = getattr(error, "token", None)
    column = error.column if getattr(token, "type", "") != "$END" else None
    return column if isinstance(column, int) and column > 0 else len(line.rstrip()) + 1


def _expected(error: UnexpectedInput, line: str, column: int) -> str:
    from reenact.assess.grammar import parser

    wanted = getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None)
    labels = {_readable(name, {each.name: each.pattern.value for each in parser().terminals}) for name in wanted or ()}
    listed = sorted(labels - {""})
    more = " …" if len(listed) > _MOST_EXPECTED else ""
    rest = line[column - 1 :].split()
    return f"{f'{rest[0]!r} is not' if rest else 'the line ends before'} {_joined(listed[:_MOST_EXPECTED])}{more}"


def _readable(name: str, patterns: dict[str, str]) -> str:
    return _READABLE.get(name) or f"`{patterns[name]}`" if name in patterns else _READABLE.get(name, "")


def _joined(words: list[str]) -> str:
    return (
        words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if words else "what can stand here"
    )


def _invalid(line: str, source: str, number: int, column: int, problem: str) -> AssertionInvalid:
    place = f"{source or 'assertion'}:{number}:{column}"
    return AssertionInvalid(place, problem, hint=f"{line.rstrip()}\n  {' ' * (column - 1)}^")
