"""JSON documents read one by one into records, with every wrong shape told by its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from reenact.errors import InputError
from reenact.foreign.documents import documents, wrong
from reenact.values.log import Record

_WRONG = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


def each_document(
    stream: BinaryIO, path: Path, of: Callable[[object], Iterable[Record]], what: str
) -> Iterator[Record]:
    """Read every JSON document of `stream` with `of`, and give its records.

    Raises `InputError`, its place `path:line`, where `of` fails on the shape of a document; `what` says what was
    expected, such as `a trace of Jaeger`.
    """
    for line, document in documents(stream, str(path)):
        try:
            records = list(of(document))
        except _WRONG as refusal:
            raise InputError(f"{path}:{line}", f"this is not shaped like {what} ({wrong(refusal)})") from None
        except RecursionError:
            raise InputError(f"{path}:{line}", "a value is nested too deep to be read") from None
        yield from records


def as_objects(document: object, what: str) -> list[dict[str, Any]]:
    """Give a document as a list of objects, one where it is an object. Raises `ValueError` where it holds others."""
    items = cast("list[object]", document) if isinstance(document, list) else [document]
    if not all(isinstance(item, dict) for item in items):
        raise ValueError(f"expected {what} to be an object")
    return cast("list[dict[str, Any]]", items)
