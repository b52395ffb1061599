"""The walk: texts, JSON inside texts, attributes; each secret becomes what the policy says, the rest stays as it is.

Speed comes from not looking twice, for a conversation is sent whole with every turn: of a document only what is new is
looked at (`heads`), a text that was looked at once is known by its hash, and in one that is new patterns are tried only
where the gate names a place (`gate`, `scan`). What cannot be searched is replaced whole: nothing here lets through what
it failed on, and nothing but a signal's handler makes it raise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from reenact.redact import decode
from reenact.redact.fields import is_sensitive
from reenact.redact.plan import KNOWN, UNSCANNED, WHOLE, Place
from reenact.redact.split_secrets import scrubbed
from reenact.redact.text_redactor import ANYWHERE, IN_CONTEXT, LONG, OPENS, Leaves, Work, remember
from reenact.redact.tokens import mask
from reenact.redact.whole_document_scan import BETWEEN
from reenact.values import alarms, known_secrets
from reenact.values.evidence import chunk_from_json, chunk_to_json
from reenact.values.json import compact, parsed_or_none
from reenact.values.known_secrets import credentials_in, looks_secret, names_a_secret
from reenact.values.pieces import bytes_of, with_bytes

__all__ = ["KNOWN", "Engine", "credentials_in", "looks_secret", "names_a_secret"]

_DEEPEST_VALUE: Final = 64
_SHORT: Final = 256
"""Up to this length a text is hashed before anything else is asked."""
_BODIES: Final = frozenset({"reenact.http.request.body", "reenact.http.response.body"})
"""Attributes that hold a body as it came, in base64 where it is no text."""
_TOGETHER: Final = 4096
"""Up to this length a text is looked at together with the others of its span: what clears all of them clears each."""
_OPENED: Final = 100
"""So often documents are opened at once, before it is tried again without."""
_LARGE_NUMBER: Final = 10_000_000
_CHUNKS: Final = "reenact.stream.chunks"
_STREAM: Final = Place(attribute=_CHUNKS, kind="LLM")
_APART: Final = _BODIES | {_CHUNKS}
"""Attributes that are looked at by themselves."""


class Engine(Leaves):
    """A policy, at work with a key. Shared by threads.

    `key` is a secret that never travels. With `shared` it keys the tokens of all classes; else those of personal data
    alone, and credentials, which cannot be guessed, are keyed by `salt`, which is drawn where it is empty and travels
    with the trace so that the replay gives the same tokens. Without a key, tokens of personal data are keyed by a
    random one of this engine's own. `known_secrets` are exact secrets, such as the values of `*_API_KEY` variables,
    replaced wherever they occur.
    """

    @property
    def policy_digest(self) -> str:
        """Name the policy by its rules, not by its key."""
        return self.plan.digest

    @property
    def salt(self) -> str:
        """Keys the tokens of credentials and travels with the trace, in hex; empty where a key does."""
        return self._tokens.salt

    @property
    def key_id(self) -> str:
        """Name the key without telling it; empty for none."""
        return self._tokens.key_id

    def keyed(self, name: str) -> bool:
        """Tell whether tokens of a class are keyed by a secret that does not travel with the trace."""
        return self._tokens.keyed(name)

    def group(self, name: str) -> str:
        """Give the group of a class."""
        return self.plan.group(name)

    def token(self, name: str, secret: str) -> str:
        """Give the token of a secret: equal secrets, equal tokens."""
        return self._tokens.token(name, secret)

    @contextmanager
    def counting(self) -> Generator[Counter[str]]:
        """Count, by class, what this thread replaces inside."""
        counters = self._local.__dict__.setdefault("counters", [])
        counter: Counter[str] = Counter()
        counters.append(counter)
        try:
            yield counter
        finally:
            counters.remove(counter)

    def text(self, text: str, *, place: Place = ANYWHERE) -> str:
        """Scrub one text: JSON is looked at leaf by leaf, anything else searched as it stands. Never raises."""
        if self._fast and len(text) < LONG and hash(text) in self._clean:
            return text
        return self._guarded(text, place, self._redact)

    def _guarded(self, text: str, place: Place, redact: Callable[[str, int, Work], str]) -> str:
        try:
            work = Work(len(text), place)
            new = redact(text, 0, work)
            names: Sequence[str] = work.names
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            new, names = self._stands_for(UNSCANNED, text, place), (UNSCANNED,)
        if names:
            self._count(names)
        return new

    def _count(self, names: Iterable[str]) -> None:
        with self._lock:
            self.replaced.update(names)
        for counter in self._local.__dict__.get("counters", ()):
            counter.update(names)

    # Attributes

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:  # noqa: C901, PLR0912 - the hot path
        """Scrub every string of a span's attributes, keys and nested values included. Never raises."""
        if known_secrets.are_known():
            attributes = {key: _without_secrets(value) for key, value in attributes.items()}
        if not self._fast:
            return self._placed(attributes)
        if not attributes.keys() <= self._keys:
            return {self._plain_key(key): self._value(key, value) for key, value in attributes.items()}
        redacted, clean = dict(attributes), self._clean
        if not _APART.isdisjoint(attributes):
            return self._with_bodies(attributes)
        short: list[str] = []
        for key, value in attributes.items():
            kind = cast("type[Any]", type(value))
            if kind is str:
                if len(value) >= _SHORT or hash(value) not in clean:
                    if len(value) < _TOGETHER:
                        short.append(key)
                    else:
                        redacted[key] = self.text(value)
            elif kind is int:
                if not -_LARGE_NUMBER < value < _LARGE_NUMBER:
                    redacted[key] = self._value(key, value)
            elif kind is not bool:
                redacted[key] = self._value(key, value)
        if short and not self._all_clean(short[-1], [attributes[key] for key in short]):
            for key in short:
                redacted[key] = self.text(attributes[key])
        return redacted

    def _with_bodies(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Scrub attributes of which some may be bytes in base64, or the pieces of a stream."""
        bodies = {key: attributes[key] for key in _APART & attributes.keys()}
        others = self.attributes({key: value for key, value in attributes.items() if key not in bodies})
        clean = {key: self._value(key, value) for key, value in bodies.items()}
        return {key: clean[key] if key in clean else others[key] for key in attributes}

    def _all_clean(self, last: str, texts: list[str]) -> bool:
        """Tell at little cost that nothing is to be found in some attributes, of which `last` is the last one's name.

        Texts as they stand are searched fastest. Where that did not clear attributes that ended so the last time
        (replies hold a number of ten digits: when they were made), their documents are opened first, and searched
        together. False says nothing.
        """
        left = self._openings_by_name.get(last, 0)
        clean = self._are_clean(texts, opened=left > 0)
        if left:
            self._openings_by_name[last] = left - 1 if clean else 0
        elif not clean:
            self._openings_by_name[last] = _OPENED
        return clean

    def _are_clean(self, texts: list[str], *, opened: bool = False) -> bool:
        """Tell at a glance that nothing can be found in any of some texts; False says nothing."""
        try:
            return self._nothing_in(texts) if opened else self._scanner.is_clean(BETWEEN.join(texts))
        except Exception:  # noqa: BLE001 - each is looked at by itself
            alarms.pass_on()
            return False

    def _placed(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Scrub attributes where what becomes of a value depends on where it stands."""
        kind, tool, boundary = (
            str(attributes.get(name) or "") for name in ("openinference.span.kind", "tool.name", "reenact.boundary")
        )
        redacted: dict[str, Any] = {}
        for key, value in attributes.items():
            place = Place(attribute=key, kind=kind, tool=tool, boundary=boundary)
            how = self.plan.whole(place)
            if how in {"drop", "mask"} and value is not None:
                self._count((WHOLE,))
                if how == "mask":
                    redacted[self._plain_key(key)] = mask(WHOLE)
                continue
            redacted[self._plain_key(key)] = self._value(key, value, place)
        return redacted

    def _plain_key(self, key: str) -> str:
        if key in self._keys:
            return key
        is_clean = len(key) < 64 and "." in key and self._are_clean([key])
        safe = key if is_clean else self._guarded(key, ANYWHERE, lambda text, _, work: self._plain(text, work))
        if safe == key and not is_sensitive(key) and not self._is_context(key.rpartition(".")[2]):
            remember(self._keys, key)
        return safe

    def _value(self, key: str, value: Any, place: Place = ANYWHERE, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._string(key, value, place)
        if isinstance(value, bytes):
            return self._bytes(value, place)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return self._numeric(key, value, place)
        if depth > _DEEPEST_VALUE:
            return self._guarded(_whole_of(value), place, _fail)
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {self._plain_key(str(k)): self._value(str(k), v, place, depth + 1) for k, v in items}
        if isinstance(value, list | tuple | set | frozenset):
            return tuple(self._value(key, item, place, depth + 1) for item in cast("Iterable[Any]", value))
        return value

    def _string(self, key: str, value: str, place: Place) -> str:
        if key == _CHUNKS:
            return self._chunks(value, place)
        if key in _BODIES and value[:1] not in OPENS and (content := decode.unpacked(value)) is not None:
            new = self._bytes(content, place)
            return value if new == content else decode.pack(content, new, value)
        last = key.rpartition(".")[2]
        if is_sensitive(key) or (len(value) <= IN_CONTEXT and self._is_context(last)):
            return self._guarded(value, place, lambda text, depth, work: self._leaf(text, last, depth, work))
        return self.text(value, place=place)

    def _numeric(self, key: str, value: float, place: Place) -> Any:
        if "token" in key.lower() or not abs(value) >= _LARGE_NUMBER or value != value // 1 or abs(value) > 1e39:
            return value
        spelled = str(int(value))
        last = key.rpartition(".")[2]
        new = self._guarded(spelled, place, lambda text, _, work: self._number(text, last, work))
        return value if new == spelled else new

    def _bytes(self, value: bytes, place: Place) -> bytes:
        value = known_secrets.bytes_without_secrets(value)
        try:
            work = Work(len(value), place)
            new = self._bytes_in(value, 0, work)
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            self._count((UNSCANNED,))
            return self._stands_for(UNSCANNED, value.decode("latin-1"), place).encode()
        if work.names:
            self._count(work.names)
        return new

    # Streams

    def _chunks(self, value: str, place: Place) -> str:
        """Scrub what `reenact.stream.chunks` holds as one text: a piece alone may look like what it is not."""
        listing = parsed_or_none(value)
        chunks = [chunk_from_json(each) for each in listing] if isinstance(listing, list) else []
        valid_chunks = [chunk for chunk in chunks if chunk is not None]
        if not valid_chunks or len(valid_chunks) < len(chunks):
            return self.text(value, place=place)
        pieces = [bytes_of(chunk) for chunk in valid_chunks]
        clean = self.pieces(pieces, place=_STREAM if place is ANYWHERE else place)
        if clean == pieces:
            return value
        changed = zip(valid_chunks, pieces, clean, strict=True)
        return compact([chunk_to_json(chunk if old == new else with_bytes(chunk, new)) for chunk, old, new in changed])

    def pieces(self, pieces: Sequence[bytes], *, place: Place = _STREAM) -> list[bytes]:
        """Scrub the pieces of a stream as one text; without a secret they stay as they are, to the byte."""
        pieces = [known_secrets.bytes_without_secrets(each) for each in pieces]
        try:
            work = Work(sum(map(len, pieces)), place)
            new = scrubbed(pieces, self._means(0, work))
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            self._count((UNSCANNED,))
            whole = b"".join(pieces).decode("utf-8", "replace")
            return [self._stands_for(UNSCANNED, whole, place).encode(), *[b""] * (len(pieces) - 1)] if pieces else []
        if work.names:
            self._count(work.names)
        return new


def _fail(text: str, depth: int, work: Work) -> str:  # noqa: ARG001 - a way to redact that never does
    raise RecursionError


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return known_secrets.without_secrets(value)
    if isinstance(value, tuple | list):
        return [_without_secrets(each) for each in cast("Sequence[Any]", value)]
    return value


def _whole_of(value: object) -> str:
    return f"{type(value).__name__} of {len(cast('Any', value))}"
