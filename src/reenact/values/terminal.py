"""The one way of text to a terminal.

A trace is written by strangers: it may hold escape sequences that move the cursor, set the clipboard or hide lines, and
direction marks that make text read backwards (CVE-2021-42574). What a command prints is therefore cleaned where it is
printed, by `reenact.cli.options`, and what a recorded process says on its stderr by `tell`. A call that prints by
itself is a fault, which a test looks for.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache
from typing import Final


@cache
def _sequences() -> re.Pattern[str]:
    """ECMA-48, sections 5.4 and 8.3. One that never ends loses only its introducer, lest it swallow what follows."""
    return re.compile(
        r"(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,64}[@-~]"  # CSI: colours, cursor
        r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
        r"|\x1b[ -/]{0,16}[0-~]"  # two-character sequences
    )


_INVISIBLE: Final = (
    "\u061c\u200b\u200e\u200f\u2060-\u2064\u202a-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"  # directions, without width
    "\U000e0000-\U000e007f"  # tag characters: text that no one sees
)


@cache
def _controls() -> re.Pattern[str]:
    return re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_INVISIBLE}]")  # C0 less tab and line feed, DEL, C1


@cache
def _in_json() -> re.Pattern[str]:
    """As `_controls`, less what JSON has escaped already."""
    return re.compile(f"[\x7f-\x9f\u2028\u2029{_INVISIBLE}\ud800-\udfff]")


@cache
def _breaks() -> re.Pattern[str]:
    return re.compile("\r\n?|[\u2028\u2029\x0b\x0c\x85]")


@cache
def _surrogates() -> re.Pattern[str]:
    return re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Take out whatever a terminal could act on; line feeds and tabs stay. Applied twice it changes nothing more."""
    text = _sequences().sub("", _breaks().sub("\n", text))
    return _surrogates().sub("\ufffd", _controls().sub("", text))


def clean_lines(text: str) -> str:
    """Clean a text of several lines, and set those after the first in, so that none passes for a line of ours."""
    first, *rest = clean(text).split("\n")
    return "\n".join([first, *(line if line.startswith("  ") or not line else f"  {line}" for line in rest)])


def escaped(document: str) -> str:
    """Spell what a terminal could act on, in a JSON document, by its escapes: the document says the same."""
    return _in_json().sub(lambda match: _escapes(match[0]), document)


def _escapes(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2))


def tell(line: str) -> None:
    """Say something on stderr, in the process of a program that is recorded. Never raises.

    It goes past the stream's buffer where there is a descriptor: a line that nobody can take would stay in the buffer,
    and Python ends with 120 where a buffer cannot be flushed, whatever the program's own exit code is.
    """
    with suppress(Exception):  # a closed stderr, or one that knows no such letter
        data = f"reenact: {clean_lines(line)}\n"
        try:
            descriptor = sys.stderr.fileno()
        except (AttributeError, OSError, ValueError):  # none, or one in memory
            sys.stderr.write(data)
        else:
            sys.stderr.flush()
            os.write(descriptor, data.encode(sys.stderr.encoding, "backslashreplace"))
