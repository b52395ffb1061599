"""The walk: texts, JSON inside texts, attributes; each secret becomes a keyed token, the rest stays byte for byte.

Speed comes from not looking twice, for a conversation is sent whole with every turn: JSON is parsed only where a
keyword occurs in what is new in it (`unparsed`), a leaf that was found clean once is known by its hash, and one that is
new is scanned only where a keyword occurs (`gate`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from reenact.redact.gate import Gate
from reenact.redact.pieces import Found, scrubbed
from reenact.redact.rules import KEYWORDS, OPAQUE_KEYS, RULES, SENSITIVE_KEYS, TOKEN_MARK, Rule
from reenact.redact.unparsed import Unparsed

_REMEMBERED = 100_000
_POLICY = "credentials/1"
KNOWN = "known_secret"
"""The class of secrets that are known exactly, whatever the variables are called that hold them."""
_DEEPEST = 16
"""How often JSON is looked into that is inside a string of JSON; each time doubles its backslashes."""
_TOKEN = re.compile(TOKEN_MARK + r"[a-z0-9_]+_[0-9a-f]{20}")
_SCHEMES = frozenset({"", "bearer", "basic", "token"})
"""What may stand beside a token in a value that is all secret."""
_SHORT = 256
"""Up to this length a text is hashed before anything else is asked."""
_TOGETHER = 4096
"""Up to this length a text is looked at together with the others of its span: what clears all of them clears each."""


class Engine:
    """The default policy: credentials, in any text, JSON, URL or attribute.

    `key` keys the tokens; without one, a random salt of this run does, which travels with the trace so that the
    replay gives the same tokens. That is safe for credentials, which cannot be guessed, and would not be for a phone
    number. `known` are exact secrets, such as the values of `*_API_KEY` variables, replaced wherever they occur.
    """

    def __init__(self, *, key: bytes | None = None, salt: str = "", known: Mapping[str, str] | None = None) -> None:
        self.salt = "" if key else salt or os.urandom(16).hex()
        self._key = hashlib.blake2b(key or bytes.fromhex(self.salt), digest_size=32).digest()
        secrets = {value for value in (known or {}).values() if looks_secret(value)}
        self._known = sorted(secrets, key=lambda secret: (-len(secret), secret))  # one may begin another
        self._gate = Gate((*KEYWORDS, *self._known))
        self._unparsed = Unparsed((*KEYWORDS, *self._known), SENSITIVE_KEYS)
        self.replaced: Counter[str] = Counter()
        self._clean: set[int] = set()
        self._plain: set[str] = set()
        self._keys: set[str] = set()
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Renew the locks, in a forked process: another thread of the original may have held them."""
        self._lock = threading.Lock()
        self._unparsed.renew()

    @property
    def policy_digest(self) -> str:
        """Name the policy by its rules, not by its key."""
        spelled = _POLICY + "".join(f"{rule.name}\0{rule.pattern.pattern}\0" for rule in RULES)
        return hashlib.blake2b(spelled.encode(), digest_size=16).hexdigest()

    def token(self, name: str, secret: str) -> str:
        """Give the token of a secret: equal secrets, equal tokens; 80 bits of keyed BLAKE2b."""
        mark = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._key, digest_size=10).hexdigest()
        return f"{TOKEN_MARK}{name}_{mark}"

    def text(self, text: str) -> str:
        """Scrub one text: JSON is walked leaf by leaf, anything else scanned as it stands."""
        if text[:1] in ("{", "[") and (walked := self._json_text(text, 0)) is not None:
            return walked
        return self._scan(text)

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Scrub every string of a span's attributes, keys and nested values included."""
        if not attributes.keys() <= self._keys:
            return {self._plain_key(key): self._value(key, value) for key, value in attributes.items()}
        redacted, clean = dict(attributes), self._clean
        short: list[str] = []
        for key, value in attributes.items():
            if type(value) is str:
                if len(value) >= _SHORT or hash(value) not in clean:
                    if len(value) < _TOGETHER:
                        short.append(key)
                    else:
                        redacted[key] = self.text(value)
            elif type(value) is not int:
                redacted[key] = self._value(key, value)
        if short and not self._unparsed.passes("\n".join(map(attributes.__getitem__, short))):
            for key in short:
                redacted[key] = self.text(attributes[key])
        return redacted

    def pieces(self, pieces: Sequence[bytes]) -> list[bytes]:
        """Scrub the pieces of a stream as one text; without a secret they stay as they are, to the byte."""
        return scrubbed(pieces, self._find, lambda text: not self._gate.holds(text))

    def _find(self, text: str) -> list[Found]:
        """Say where the secrets of a text are, each place once: the rule that comes first has it."""
        found: list[Found] = []
        for secret in self._known:
            token = self.token(KNOWN, secret)
            found += [Found(*match.span(), token) for match in re.finditer(re.escape(secret), text)]
        for rule in RULES:
            if not any(map(text.__contains__, rule.keywords)):
                continue
            group = "secret" if "secret" in rule.pattern.groupindex else 0
            for match in rule.pattern.finditer(text):
                start, end = match.span(group)
                free = all(end <= other.start or start >= other.end for other in found)
                if free and not match[group].startswith(TOKEN_MARK) and not text[:start].endswith(TOKEN_MARK):
                    found.append(Found(start, end, self.token(rule.name, match[group])))
                    self._count(rule.name)
        return sorted(found)

    def _plain_key(self, key: str) -> str:
        if key in self._keys:
            return key
        safe = key if len(key) < 64 and "." in key else self.text(key)  # convention names are dotted
        if safe == key and not _is_sensitive(key):
            _remember(self._keys, key)
        return safe

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._under_sensitive_key(value) if _is_sensitive(key) else self.text(value)
        if isinstance(value, bytes):
            return self._bytes(value)
        if isinstance(value, Mapping):
            return {str(k): self._value(str(k), v) for k, v in cast("Mapping[Any, Any]", value).items()}
        if isinstance(value, list | tuple):
            return tuple(self._value(key, item) for item in cast("Iterable[Any]", value))
        return value

    def _bytes(self, value: bytes) -> bytes:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return value
        return self.text(text).encode()

    def _json_text(self, text: str, depth: int) -> str | None:
        if self._unparsed.passes(text):
            return text
        try:
            value = orjson.loads(text)
        except ValueError:
            return None
        if self._all_clean(value, depth):
            return text
        changes: list[tuple[str, str]] = []
        walked = self._walk(value, "", changes, depth)
        if not changes:
            return text
        for before, after in changes:  # the text keeps its own spelling where a plain replacement can be made
            for spelled in (orjson.dumps(before).decode(), json.dumps(before)):
                if spelled in text:
                    text = text.replace(spelled, orjson.dumps(after).decode())
                    break
            else:
                return orjson.dumps(walked).decode()
        return text if orjson.loads(text) == walked else orjson.dumps(walked).decode()

    def _all_clean(self, value: Any, depth: int) -> bool:
        """Tell whether nothing is to be replaced, at a glance; False where a closer look is needed."""
        clean, plain = self._clean, self._plain
        stack = [value]
        while stack:
            item = stack.pop()
            if type(item) is str:
                if hash(item) not in clean and not self._leaf_passes(item, depth):
                    return False
            elif type(item) is dict:
                members = cast("dict[str, Any]", item)
                for name, inner in members.items():
                    if name not in plain and not self._name_passes(name, inner):
                        return False
                stack += members.values()
            elif type(item) is list:
                stack += cast("list[Any]", item)
        return True

    def _leaf_passes(self, leaf: str, depth: int) -> bool:
        if self._gate.holds(leaf):
            return False
        if leaf[:1] in ("{", "[") and depth < _DEEPEST:
            try:
                within = orjson.loads(leaf)
            except ValueError:
                within = None
            if not self._all_clean(within, depth + 1):
                return False
        _remember(self._clean, hash(leaf))
        return True

    def _name_passes(self, name: str, value: Any) -> bool:
        """Tell whether a key in JSON holds nothing itself and says nothing about its value."""
        lowered = name.lower()
        if lowered in OPAQUE_KEYS or lowered in SENSITIVE_KEYS:
            return isinstance(value, dict) and not self._gate.holds(name)
        if self._gate.holds(name):
            return False
        _remember(self._plain, name)
        return True

    def _walk(self, value: Any, key: str, changes: list[tuple[str, str]], depth: int) -> Any:
        if isinstance(value, str):
            return self._leaf(value, key, changes, depth)
        if isinstance(value, dict):
            walked: dict[str, Any] = {}
            for name, item in cast("dict[str, Any]", value).items():
                safe = self._leaf(name, "", changes, depth)
                walked[safe] = self._walk(item, name, changes, depth)
            return walked
        if isinstance(value, list):
            return [self._walk(item, key, changes, depth) for item in cast("list[Any]", value)]
        return value

    def _leaf(self, value: str, key: str, changes: list[tuple[str, str]], depth: int) -> str:
        lowered = key.lower()
        if lowered in OPAQUE_KEYS:
            return value
        if lowered in SENSITIVE_KEYS:
            after = self._under_sensitive_key(value)
        elif hash(value) in self._clean:
            return value
        elif depth < _DEEPEST and value[:1] in ("{", "["):
            after = self._json_text(value, depth + 1) or self._scan(value)
        else:
            after = self._scan(value)
        if after != value:
            changes.append((value, after))
        return after

    def _under_sensitive_key(self, value: str) -> str:
        scanned = self._scan(value)
        if not value or _TOKEN.sub("", scanned).strip().lower() in _SCHEMES:
            return scanned
        self._count("keyed_value")
        return self.token("keyed_value", value)

    def _scan(self, text: str) -> str:
        """Apply every rule whose keyword occurs."""
        mark = hash(text)
        if mark in self._clean:
            return text
        before = text
        if self._gate.holds(text):
            for secret in self._known:
                if secret in text:
                    text = text.replace(secret, self.token(KNOWN, secret))
                    self._count(KNOWN)
            for rule in RULES:
                if any(map(text.__contains__, rule.keywords)):
                    text = self._apply(rule, text)
        if text is before and text[:1] not in ("{", "["):  # as JSON it may yet hold something
            _remember(self._clean, mark)
        return text

    def _apply(self, rule: Rule, text: str) -> str:
        pieces: list[str] = []
        at = 0
        grouped = "secret" in rule.pattern.groupindex
        for found in rule.pattern.finditer(text):
            secret = found["secret"] if grouped else found[0]
            if secret.startswith(TOKEN_MARK) or text[: found.start()].endswith(TOKEN_MARK):
                continue
            start, end = found.span("secret") if grouped else found.span()
            pieces += (text[at:start], self.token(rule.name, secret))
            at = end
            self._count(rule.name)
        return "".join((*pieces, text[at:])) if pieces else text

    def _count(self, name: str) -> None:
        with self._lock:
            self.replaced[name] += 1


def _is_sensitive(key: str) -> bool:
    """Tell whether an attribute's key, or the last part of it, says that the value is a secret."""
    lowered = key.lower()
    return lowered in SENSITIVE_KEYS or lowered.rpartition(".")[2] in SENSITIVE_KEYS


def _remember(known: set[Any], item: object) -> None:
    if len(known) > _REMEMBERED:
        known.clear()
    known.add(item)


def credentials_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Pick the variables whose names say that they hold a secret."""
    return {name: value for name, value in environ.items() if value and names_a_secret(name)}


def looks_secret(value: str) -> bool:
    """Tell a secret from a placeholder or a word that ordinary text may hold."""
    if value.startswith(TOKEN_MARK) or len(value) < 12:
        return False
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed or len(value) >= 24


def names_a_secret(name: str) -> bool:
    """Tell whether a variable's name says that it holds a secret."""
    upper = name.upper()
    return upper.endswith(_SECRET_ENDINGS) or any(word in upper for word in _SECRET_WORDS)


_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PWD", "_CREDENTIALS", "_PAT")
_SECRET_WORDS: Iterable[str] = ("API_KEY", "APIKEY", "SECRET_", "PASSWORD", "ACCESS_KEY")
