"""Opens a file of spans, whatever it is: its compression and its format are told by content, never by name."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import InputError
from reenact.read.unpack import looked_at, unpacked
from reenact.values.span import SpanRecord

_HEAD_BYTES = 64 << 10
_LEAST_CERTAINTY = 0.01


def open_spans(path: Path) -> Iterator[SpanRecord]:
    """Open a file of spans, or standard input for `-`, and read its spans one at a time, in the order of the file.

    gzip (RFC 1952), Zstandard (RFC 8878) and the Collector's framed Zstandard are unpacked on the way. The formats are
    the members of `reenact.formats`. The file is opened and its format settled before this returns; the spans follow
    as they are asked for.

    Raises `InputError`, at once or from the iterator, whose place is the path with line or byte: for a file that
    cannot be opened, is empty, is no trace file, is damaged or cut off, or holds no spans; and for packed data that
    expands without bounds.
    """
    with contextlib.ExitStack() as opened:
        shown = Path("<stdin>") if str(path) == "-" else path
        try:
            head, stream = looked_at(unpacked(opened.enter_context(_source(path)), str(shown)), _HEAD_BYTES)
        except OSError as failure:
            raise InputError(str(shown), f"reading failed: {failure.strerror or failure}") from None
        if not head:
            raise InputError(str(shown), "the file is empty", hint=_expected())
        chosen = _format_of(head, str(shown))
        return _spans(chosen, stream, shown, opened.pop_all())


def _source(path: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(str(path), "there is no such file") from None
    except IsADirectoryError:
        raise InputError(str(path), "this is a directory, not a trace file", hint="Name a file in it.") from None
    except PermissionError:
        raise InputError(str(path), "permission to read this file is denied") from None
    except (OSError, ValueError) as refusal:
        raise InputError(str(path), f"the file cannot be opened: {refusal}") from None


def _spans(chosen: Format, stream: BinaryIO, shown: Path, opened: contextlib.ExitStack) -> Iterator[SpanRecord]:
    found = False
    with opened:
        try:
            for span in chosen.decode(stream, shown):
                found = True
                yield span
        except OSError as failure:
            raise InputError(str(shown), f"reading failed: {failure.strerror or failure}") from None
    if not found:
        raise InputError(str(shown), f"the file is {chosen.name} and holds no spans", hint=_expected())


def _format_of(head: bytes, shown: str) -> Format:
    families = members("formats", Format)
    certainties = [(member.recognises(head), member) for member in families]
    certainty, chosen = max(certainties, key=lambda pair: pair[0], default=(0.0, None))
    if chosen is None or certainty < _LEAST_CERTAINTY:
        raise InputError(shown, f"this is not a trace file: it begins with {_shown(head)}", hint=_expected())
    return chosen


def _expected() -> str:
    return f"Expected one of: {', '.join(member.name for member in members('formats', Format))}; plain, gzip or zstd."


def _shown(head: bytes) -> str:
    text = head[:24].decode("utf-8", "backslashreplace")
    return repr(text) + (" …" if len(head) > 24 else "")
