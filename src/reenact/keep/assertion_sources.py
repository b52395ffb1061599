"""Assertions as they are given: texts, files of them, and what Python code makes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reenact.assess.check import placed
from reenact.assess.language import parse
from reenact.disk import private
from reenact.errors import InputError
from reenact.values.assertion import Assertion, Placed
from reenact.values.limits import max_record_bytes


def asserted(sources: Iterable[str | Path | Placed | Assertion]) -> tuple[Placed, ...]:
    """Read all of them: a text is read as assertions, one a line; a path names a file that holds some.

    Raises `errors.AssertionInvalid`, and `errors.InputError` for a file that cannot be read or holds none.
    """
    assertions: list[Placed] = []
    for each in sources:
        assertions += _of_file(each) if isinstance(each, Path) else placed([each])
    return tuple(assertions)


def _of_file(path: Path) -> tuple[Placed, ...]:
    try:
        text = private.read_regular(path, most=max_record_bytes()).decode()
    except OSError as error:
        raise InputError(str(path), f"the assertions cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(str(path), "this is no text file of assertions") from error
    assertions = parse(text, source=str(path))
    if not assertions:
        raise InputError(str(path), "holds no assertion", hint="write one a line: never called delete_accounts")
    return assertions
