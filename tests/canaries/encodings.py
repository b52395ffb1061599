"""How a value may be spelled, by accident or by somebody who means it. One row an encoding."""

from __future__ import annotations

import base64
import codecs
import gzip
import html
import json
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way to spell a value."""

    name: str
    spell: Callable[[str], str]
    """Gives the spelling of a value."""
    alone: bool = False
    """It is a whole document: nothing may stand around it."""
    not_promised: str = ""
    """Why no rule can promise to find a value that is spelled so; empty where it is promised."""


def _each(spelled: Callable[[str], str]) -> Callable[[str], str]:
    return lambda value: "".join(map(spelled, value))


def _between(mark: str, every: int = 1) -> Callable[[str], str]:
    return lambda value: mark.join(value[at : at + every] for at in range(0, len(value), every))


def _special(spelled: Callable[[str], str]) -> Callable[[str], str]:
    """Spell otherwise what is no letter or digit; where there is no such character, the second one."""

    def spell(value: str) -> str:
        if value.isalnum():
            return value[0] + spelled(value[1]) + value[2:]
        return "".join(each if each.isalnum() else spelled(each) for each in value)

    return spell


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _sentence(value: str) -> bytes:
    return f"Use {value} for this account, please.".encode()


def _escaped(value: str) -> str:
    return "".join(f"\\u{ord(each):04x}" for each in value)


def _nested(value: str, depth: int) -> str:
    spelled = json.dumps({"note": value})
    for _ in range(depth - 1):
        spelled = json.dumps({"inner": spelled})
    return spelled


_CYRILLIC = str.maketrans("aceopxyijsAEKMHOPCTXBIJS", "асеорхуіјѕАЕКМНОРСТХВІЈЅ")  # noqa: RUF001
_WIDE = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
_BOLD = str.maketrans(
    {chr(ord("a") + n): chr(0x1D41A + n) for n in range(26)}
    | {chr(ord("A") + n): chr(0x1D400 + n) for n in range(26)}
    | {chr(ord("0") + n): chr(0x1D7CE + n) for n in range(10)}
)


def _tags(value: str) -> str:
    """Characters that nobody sees: the block of Unicode that was made for language tags."""
    return "".join(chr(0xE0000 + ord(each)) if ord(each) < 0x80 else each for each in value)


def _gz(value: str) -> bytes:
    return gzip.compress(_sentence(value), mtime=0)


def _lines(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def _url(value: str) -> str:
    return f"https://shop.example/r?note={quote(value, safe='')}&page=2"


def _entity(value: str) -> str:
    """Name the marks that HTML has names for."""
    named = {"_": "&lowbar;", "@": "&commat;", ".": "&period;", "-": "&hyphen;", "+": "&plus;", " ": "&nbsp;"}
    return "".join(named.get(each, each) for each in value) if not value.isalnum() else html.escape(f"<{value}>")


_RULES = "a rule sees neither half as a value"
_SPOKEN = "it is said in words; that takes a reader, not a rule"
_CIPHER = "any text could be one such; nothing tells it from others"

ENCODINGS: tuple[Encoding, ...] = (
    Encoding("plain", str),
    Encoding("in quotes", lambda value: f'"{value}"'),
    Encoding("JSON value", lambda value: json.dumps({"note": value}), alone=True),
    Encoding("JSON key", lambda value: json.dumps({value: 1}), alone=True),
    Encoding("JSON list", lambda value: json.dumps([["a", value], {"b": [value]}]), alone=True),
    Encoding("JSON in JSON", lambda value: _nested(value, 2), alone=True),
    Encoding("JSON in JSON, 4 deep", lambda value: _nested(value, 4), alone=True),
    Encoding("JSON, all \\u", lambda value: f'{{"note": "{_escaped(value)}"}}', alone=True),
    Encoding("JSON, one \\u", lambda value: f'{{"note": "{_special(_escaped)(value)}"}}', alone=True),
    Encoding("JSON in JSON, all \\u", lambda value: json.dumps({"a": f'{{"n": "{_escaped(value)}"}}'}), alone=True),
    Encoding("JSON with \\/", lambda value: f'{{"u": "https:\\/\\/shop.example\\/{quote(value)}\\/x"}}', alone=True),
    Encoding("JSON beside prose", lambda value: f"Here it is:\n```json\n{_nested(value, 1)}\n```\nDone."),
    Encoding("\\u in plain text", _escaped),
    Encoding("\\x in plain text", _each(lambda each: "".join(f"\\x{byte:02x}" for byte in each.encode()))),
    Encoding("\\u{…}", _each(lambda each: f"\\u{{{ord(each):x}}}")),
    Encoding("percent, what needs it", lambda value: quote(value, safe="")),
    Encoding("percent, all", _each(lambda each: "".join(f"%{byte:02X}" for byte in each.encode()))),
    Encoding("percent, twice", lambda value: quote(_special(lambda each: f"%{ord(each):02X}")(value), safe="")),
    Encoding("URL query", _url),
    Encoding("URL user", lambda value: f"https://{quote(value, safe='')}@shop.example/x"),
    Encoding("HTML, decimal", _each(lambda each: f"&#{ord(each)};")),
    Encoding("HTML, hexadecimal", _each(lambda each: f"&#x{ord(each):X};")),
    Encoding("HTML, named", _entity),
    Encoding("XML CDATA", lambda value: f"<note><![CDATA[{value}]]></note>"),
    Encoding("CSV", lambda value: f'4711,"{value}",open'),
    Encoding("YAML", lambda value: f"note: '{value}'\nstate: open"),
    Encoding("Markdown code", lambda value: f"`{value}`"),
    Encoding("Markdown link", lambda value: f"[here](https://shop.example/#{quote(value, safe='')})"),
    Encoding("Python repr of bytes", lambda value: repr(value.encode())),
    Encoding("base64 of the value", lambda value: _b64(value.encode())),
    Encoding("base64 of a sentence", lambda value: _b64(_sentence(value))),
    Encoding("base64, URL-safe, no padding", lambda v: base64.urlsafe_b64encode(_sentence(v)).rstrip(b"=").decode()),
    Encoding("base64 of JSON", lambda value: _b64(_nested(value, 2).encode())),
    Encoding("base64, twice", lambda value: _b64(_b64(_sentence(value)).encode())),
    Encoding("base64 in lines", lambda value: _lines(_b64(_sentence(value) * 3), 76)),
    Encoding("data URL", lambda value: f"data:text/plain;base64,{_b64(_sentence(value))}"),
    Encoding("data URL, percent", lambda value: f"data:text/plain,{quote(_sentence(value))}"),
    Encoding("hexadecimal", lambda value: _sentence(value).hex()),
    Encoding("gzip, base64", lambda value: _b64(_gz(value))),
    Encoding("zlib, base64", lambda value: _b64(zlib.compress(_sentence(value)))),
    Encoding("quoted-printable", _each(lambda each: "".join(f"={byte:02X}" for byte in each.encode()))),
    Encoding("zero-width space between all", _between("\u200b")),
    Encoding("zero-width joiner, one", lambda value: value[:6] + "\u200d" + value[6:]),
    Encoding("soft hyphens", _between("\u00ad", 4)),
    Encoding("bidi marks", lambda value: f"\u202e{_between(chr(0x2060), 3)(value)}\u202c"),
    Encoding("variation selectors", _between("\ufe0f", 2)),
    Encoding("Cyrillic look-alikes", lambda value: value.translate(_CYRILLIC)),
    Encoding("full width", lambda value: value.translate(_WIDE)),
    Encoding("mathematical bold", lambda value: value.translate(_BOLD)),
    Encoding("combining marks taken apart", lambda value: unicodedata.normalize("NFD", f"für {value} und Ähnliches")),
    Encoding("Unicode tags", _tags),
    Encoding("no-break spaces around", lambda value: f"\u00a0{value}\u202f"),
    Encoding("in Chinese text", lambda value: f"请使用{value}登录"),
    Encoding("Markdown-split", _between("**", 7), not_promised=_RULES),
    Encoding("joined by code", lambda value: f'"{value[:9]}" + "{value[9:]}"', not_promised=_RULES),
    Encoding("folded over lines", _between("\n  ", 9), not_promised=_RULES),
    Encoding("spaced out", _between(" "), not_promised=_RULES),
    Encoding("backwards", lambda value: value[::-1], not_promised=_CIPHER),
    Encoding("rot13", lambda value: codecs.encode(value, "rot13"), not_promised=_CIPHER),
    Encoding("base32", lambda value: base64.b32encode(_sentence(value)).decode(), not_promised=_CIPHER),
    Encoding("base85", lambda value: base64.b85encode(_sentence(value)).decode(), not_promised=_CIPHER),
    Encoding("UTF-16 read as Latin-1", lambda v: v.encode("utf-16-le").decode("latin-1"), not_promised=_CIPHER),
    Encoding("spelled out", lambda value: " ".join(_SAID.get(each, each) for each in value), not_promised=_SPOKEN),
)

_SAID = {"@": "at", ".": "dot", "-": "dash", "_": "underscore", "+": "plus"}
BY_NAME = {each.name: each for each in ENCODINGS}
assert len(BY_NAME) == len(ENCODINGS)
