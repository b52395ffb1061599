"""Secrets that are spelled otherwise, or encoded; and what rules cannot reach, which is not promised."""

from __future__ import annotations

import base64
import codecs
import gzip
import json
import quopri
import urllib.parse
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.engine import Engine
from reenact.redact.fields import TOKEN_MARK

SECRET = "ghp_" + "aB3dE5gH7j" * 3 + "aB3dE5"
MAIL = "jane.doe@corp-example.org"
ENGINE = Engine(salt="00" * 16, key=b"the store's own key", shared=False)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def nested(text: str, depth: int) -> str:
    for _ in range(depth):
        text = json.dumps({"body": text})
    return text


def shifted(text: str, by: int) -> str:
    return "".join(chr(ord(c) + by) for c in text)


def split(text: str, by: str) -> str:
    return text[:10] + by + text[10:]


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a sentence": lambda text: f"It is {text}, keep it.",
    "in Chinese": lambda text: f"密钥是{text}。",
    "JSON": lambda text: json.dumps({"a": [text]}),
    "JSON, all escaped": lambda text: '{"a":"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"}',
    "JSON in JSON": lambda text: nested(text, 2),
    "JSON, ten deep": lambda text: nested(text, 10),
    "a key of JSON": lambda text: json.dumps({text: 1}),
    "JSON in a fence": lambda text: f'```json\n{{"a": "{text}"}}\n```',
    "a Python value": lambda text: repr({"a": [text]}),
    "JSON cut off": lambda text: json.dumps({"a": text, "b": 1})[:-4],
    "JSON in a string that is cut off": lambda text: json.dumps(json.dumps({"a": text}))[:-3],
    "unicode escapes in text": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "unicode escapes in braces": lambda text: "".join(f"\\u{{{ord(c):x}}}" for c in text),
    "hexadecimal escapes": lambda text: "".join(f"\\x{ord(c):02x}" for c in text),
    "percent, where it must": lambda text: urllib.parse.quote(f"a {text} b", safe=""),
    "percent, all": lambda text: "".join(f"%{ord(c):02X}" for c in text),
    "percent twice": lambda text: urllib.parse.quote("".join(f"%{ord(c):02X}" for c in text)),
    "entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "entities in hexadecimal": lambda text: "".join(f"&#x{ord(c):x};" for c in text),
    "base64": b64,
    "base64 of a sentence": lambda text: b64(f"It is {text}, keep it."),
    "base64 without padding": lambda text: b64(f"It's {text}").rstrip("="),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(f"?~>>?? {text}".encode()).decode(),
    "base64 twice": lambda text: b64(b64(f"It is {text}.")),
    "base64 in lines": lambda text: base64.encodebytes(f"{'x y ' * 12}{text}{' z' * 90}".encode()).decode(),
    "base64 of JSON": lambda text: json.dumps({"body": b64(json.dumps({"a": text}))}),
    "base64 of UTF-16": lambda text: base64.b64encode(f"It is {text}".encode("utf-16-le")).decode(),
    "a data URL": lambda text: "data:text/plain;base64," + b64(f"It is {text}"),
    "a data URL in percent": lambda text: "data:text/plain," + urllib.parse.quote(f"It is {text}", safe=""),
    "gzip in base64": lambda text: base64.b64encode(gzip.compress(f"It is {text}".encode())).decode(),
    "zlib in base64": lambda text: base64.b64encode(zlib.compress(f"It is {text}".encode())).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal of a sentence": lambda text: f"It is {text}, keep it.".encode().hex().upper(),
    "quoted-printable": lambda text: quopri.encodestring(f"ü {text} ü {'and on ' * 20}".encode()).decode(),
    "quoted-printable, all": lambda text: "".join(f"={ord(c):02X}" for c in text),
    "quoted-printable, folded": lambda text: split(text, "=\r\n"),
    "folded by a backslash": lambda text: split(text, "\\\n"),
    "zero-width space": lambda text: split(text, "\u200b"),
    "zero-width joiner between all": "\u200d".join,
    "word joiner": lambda text: split(text, "\u2060"),
    "soft hyphen": lambda text: split(text, "\u00ad"),
    "soft hyphen in a Python value": lambda text: repr(["ü", split(text, "\u00ad")]),
    "no-break spaces in a Python value": lambda text: repr(("ü", f"\u00a0{text}\u00a0")),
    "variation selector": lambda text: split(text, "\ufe0f"),
    "byte order mark": lambda text: split(text, "\ufeff"),
    "bidi override": lambda text: f"\u202d{split(text, chr(0x202D))}\u202c",
    "fullwidth": lambda text: shifted(text, 0xFEE0),
    "mathematical": lambda text: "".join(chr(0x1D41A + ord(c) - 97) if "a" <= c <= "z" else c for c in text),
    "tags": lambda text: shifted(text, 0xE0000),
    "Cyrillic": lambda text: text.replace("p", "\u0440").replace("a", "\u0430", 1).replace("o", "\u043e"),
    "Greek": lambda text: text.replace("o", "\u03bf").replace("B", "\u0392").replace("p", "\u03c1", 1),
    "NUL around": lambda text: f"\0{text}\0",
    "lone surrogates around": lambda text: f"\udce9 {text} \ud800",
    "a URL's query": lambda text: f"https://host.example.org/path?note={urllib.parse.quote(text)}&page=2",
    "server-sent events": lambda text: f"data: {json.dumps({'a': text})}\n\n",
}
OUT_OF_REACH: dict[str, Callable[[str], str]] = {
    "backwards": lambda text: text[::-1],
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "spelled out": " ".join,
    "in two sentences": lambda text: f"It begins with {text[:12]} and goes on with {text[12:]}.",
}


@pytest.mark.parametrize("secret", [SECRET, MAIL], ids=["credential", "personal"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_found_in_every_spelling(spelling: str, secret: str) -> None:
    text = SPELLINGS[spelling](secret)
    clean = ENGINE.text(text)
    assert clean != text
    assert secret not in clean
    assert secret[8:20] not in clean
    assert ENGINE.text(clean) == clean
    again = SPELLINGS[spelling](clean) if spelling == "as it is" else clean
    assert ENGINE.text(again) == again
    if text.startswith("{") and spelling not in {"a Python value", "JSON cut off"}:
        json.loads(clean)


@pytest.mark.parametrize(
    "spelling", ["percent, all", "hexadecimal escapes", "fullwidth", "zero-width space", "entities"]
)
def test_a_secret_spelled_otherwise_has_the_token_that_it_always_has(spelling: str) -> None:
    assert ENGINE.text(SPELLINGS[spelling](SECRET)) == ENGINE.token("github_token", SECRET)


@pytest.mark.parametrize(
    "spelling", ["base64 of a sentence", "base64 twice", "hexadecimal of a sentence", "gzip in base64"]
)
def test_what_is_encoded_stays_readable_apart_from_the_secret(spelling: str) -> None:
    token = ENGINE.token("github_token", SECRET)
    expected = SPELLINGS[spelling](token)
    clean = ENGINE.text(SPELLINGS[spelling](SECRET))
    if spelling == "gzip in base64":
        assert gzip.decompress(base64.b64decode(clean)).decode() == f"It is {token}"
    else:
        assert clean == expected


@pytest.mark.parametrize("spelling", OUT_OF_REACH)
def test_what_rules_cannot_reach_is_not_promised(spelling: str) -> None:
    """If one of these fails, it is found after all, and the promise may grow."""
    text = OUT_OF_REACH[spelling](SECRET)
    assert ENGINE.text(text) == text


ORDINARY = [
    "call_9Zq2xYwVtS8rQpOnMlKjIhGf",
    "chatcmpl-9Zq2xYwVtS8rQpOnMlKjIhGfEdCbA",
    "0af7651916cd43dd8448eb211c80319c",
    "550e8400-e29b-41d4-a716-446655440000",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "2026-11-22T10:22:11.123456789Z",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    json.dumps({"created": 1732272000, "created_ms": 1732272000123, "n": 12345678901234567890}),
    json.dumps({"embedding": [0.0123456789012345, -0.9876543210987654, 1.5e-7] * 40}),
    json.dumps({"usage": {"prompt_tokens": 123456789, "total_tokens": 4012888888881881}}),
    json.dumps(
        {"type": "image_url", "url": "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 20).decode()}
    ),
    json.dumps({"signature": b64(SECRET), "encrypted_content": SECRET, "thought_signature": b64(MAIL)}),
    "Привет, мир! Это обычный текст — без секретов.",
    "\u4e2d\u6587\uff0c\u6ca1\u6709\u79d8\u5bc6\u3002 \U0001f469\u200d\U0001f4bb \u2764\ufe0f",
    "\u201cquoted\u201d \u2013 dash, 5\u00a0000 kg, H\u2082O, x\u00b2",
    "for x in y:\n    z = a\\\n        + b  # 100%25\n",
    "https://host.example.org/a%20b/c?page=2&sort=%2Bname",
    "internationalization interoperabilityrequirements AbstractSingletonProxyFactoryBean",
]


@pytest.mark.parametrize("text", ORDINARY, ids=lambda text: text[:24])
def test_what_is_no_secret_stays_to_the_byte(text: str) -> None:
    assert ENGINE.text(text) == text
    if not text.startswith("{"):
        assert ENGINE.text(f"Look: {text} .") == f"Look: {text} ."


WRITTEN = st.text(max_size=60) | st.sampled_from(
    ["%40", "\\u0040", "&#64;", "=\n", "=40", "\u200b", "\u0430", "\\", '"', "{", "["]
)


@given(pieces=st.lists(WRITTEN | st.sampled_from([SECRET, MAIL, b64(f"to {MAIL}")]), max_size=8))
def test_redaction_is_idempotent_and_deterministic_and_never_raises(pieces: list[str]) -> None:
    text = "".join(pieces)
    once = ENGINE.text(text)
    assert Engine(salt="00" * 16, key=b"the store's own key", shared=False).text(text) == once
    assert ENGINE.text(once) == once
    if once == text:
        assert TOKEN_MARK in text or SECRET not in text.split()
