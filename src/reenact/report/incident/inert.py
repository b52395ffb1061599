"""The one way of trace text into the page: no markup, no reference, and nothing that acts on its reader unseen."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from reenact.values.json import Json, compact

HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 less tab and line feed, DEL, C1
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # directions, invisible
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # lone surrogates, noncharacters
    "\U000e0000-\U000e01ef"  # tag characters and selectors: text that no one sees
)
"""Characters that a browser shows as nothing, or by turning what stands beside them. `text.js` has the same list."""
_HIDDEN = re.compile(f"[{HIDDEN}]+")
_BREAKS = re.compile("\r\n?")
_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def escape(character: str) -> str:
    r"""Spell one character as it is written in source code: `\x1b`, `\u202e`, `\U000e0041`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Split a text into what is shown as it is (False) and spelled escapes (True). Line ends become line feeds."""
    text = _BREAKS.sub("\n", text)
    at = 0
    for match in _HIDDEN.finditer(text):
        if match.start() > at:
            yield False, text[at : match.start()]
        yield True, "".join(map(escape, match[0]))
        at = match.end()
    if at < len(text):
        yield False, text[at:]


def flat(text: str) -> str:
    """Bring a text into one line, any white space as one blank; hidden characters stay, to be spelled where shown."""
    return " ".join(text.split())


def visible(text: str) -> str:
    """Give a text with every hidden character spelled out, for an attribute or a title."""
    return "".join(piece for _, piece in pieces(text))


def as_html(text: str) -> str:
    """Give a text as HTML that shows it and is nothing but text; escapes are marked as such."""
    return "".join(
        f'<span class="esc">{html.escape(piece)}</span>' if hidden else html.escape(piece)
        for hidden, piece in pieces(text)
    )


def as_attribute(text: str) -> str:
    """Give a text as the value of a quoted attribute."""
    return html.escape(visible(text), quote=True)


def as_script_json(value: Json) -> str:
    """Spell JSON so that it can stand in a `script` element: it holds no `<`, and so neither its end nor a comment.

    HTML standard, section 4.12.1.3, "Restrictions for contents of script elements". Lone surrogates are escaped.
    """
    text = compact(value)
    for character, spelled in _IN_SCRIPT.items():
        text = text.replace(character, spelled)
    return text
