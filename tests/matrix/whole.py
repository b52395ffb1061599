"""A list of exchanges, all in one recording: asked live, carried through a file, asked again with the provider gone."""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from matrix import cassettes
from matrix.asking import ask, settled
from matrix.exchange import Exchange
from matrix.passing import Passed, client, ran, there_and_back
from matrix.serving import SEED, Provider, Reply


@dataclass(frozen=True, slots=True)
class Way:
    """How exchanges are asked for, sent and carried."""

    asynchronous: bool
    in_pieces: bool
    """Event streams go out in irregular pieces, everything as gzip."""
    carrier: str

    def __str__(self) -> str:
        sent = "gzip in pieces" if self.in_pieces else "as recorded"
        return f"{'async' if self.asynchronous else 'sync'}, {sent}, {self.carrier}"


WAYS = (
    Way(asynchronous=False, in_pieces=False, carrier="otlp-json"),
    Way(asynchronous=True, in_pieces=False, carrier="otlp-json"),
    Way(asynchronous=False, in_pieces=True, carrier="otlp-proto"),
    Way(asynchronous=True, in_pieces=True, carrier="otlp-proto"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """The exchanges of a list that go one way, all in one recording."""

    way: Way
    exchanges: tuple[Exchange, ...]
    slow: bool
    others: bool = False
    """It has what this way does not go by default."""

    def __str__(self) -> str:
        return f"{self.way}{', the others' if self.others and self.way in (WAYS[0], WAYS[3]) else ''}"

    @property
    def marks(self) -> tuple[pytest.MarkDecorator, ...]:
        """The marks of the tests of this share."""
        return (pytest.mark.slow,) if self.slow else ()


def shares(exchanges: Sequence[Exchange], one_in: int = 1) -> list[Share]:
    """Divide a list, so that every exchange goes one way, and of each kind of exchange every other goes the other way.

    In the two ways each choice of a way is made once. The first of them is tried by default; all else that exchange and
    way can be put together to is slow, and so are all but one in `one_in` exchanges of a kind.
    """
    kinds = sorted(exchanges, key=lambda each: (each.api, each.streamed, each.status >= 400))
    some = kinds[::one_in]
    quick = {WAYS[0]: tuple(some[::2]), WAYS[3]: tuple(some[1::2])}
    others = {way: tuple(each for each in kinds if each not in quick.get(way, ())) for way in WAYS}
    first, *more = [*quick.items()]
    rest = [
        *(Share(*each, slow=True) for each in more),
        *(Share(*each, slow=True, others=True) for each in others.items()),
    ]
    return [Share(*first, slow=False), *rest]


def each_share(divided: Sequence[Share]) -> pytest.MarkDecorator:
    """Parametrize a test by `share`."""
    return pytest.mark.parametrize("share", [pytest.param(each, marks=each.marks, id=str(each)) for each in divided])


def each_exchange(divided: Sequence[Share]) -> pytest.MarkDecorator:
    """Parametrize a test by `share` and by `exchange`, one of the share's."""
    pairs = [(share, exchange) for share in divided for exchange in share.exchanges]
    params = [pytest.param(*pair, marks=pair[0].marks, id=f"{pair[1].name}-{pair[0]}") for pair in pairs]
    absent = pytest.param(None, None, marks=pytest.mark.skip(reason=cassettes.ABSENT), id="absent")
    return pytest.mark.parametrize(("share", "exchange"), params or [absent])


def in_turn(folder: Path) -> Callable[[Share], Whole]:
    """Give what asks for the exchanges of a share when it is asked for the first time."""
    numbers = itertools.count()
    return functools.cache(lambda share: every(share.exchanges, share.way, folder / f"store-{next(numbers)}"))


@dataclass(frozen=True, slots=True)
class Whole:
    """What came of a list of exchanges."""

    way: Way
    passed: Passed
    asked: dict[str, list[Any]]
    """The JSON that the provider was sent, by name of the exchange."""


def every(
    exchanges: Sequence[Exchange], way: Way, folder: Path, *, policy: str = "", elsewhere: Path | None = None
) -> Whole:
    """Ask for every exchange in every way that the SDK has."""
    with Provider() as provider:
        urls = {
            exchange.name: provider.answer(f"n{number}", _reply(exchange, way, number))
            for number, exchange in enumerate(exchanges)
        }

        async def program() -> dict[str, Any]:
            sdks = {each.sdk for each in exchanges}
            opened = {sdk: client("http://127.0.0.1:9", asynchronous=way.asynchronous, sdk=sdk) for sdk in sdks}
            seen = {each.name: await ask(_at(opened[each.sdk], urls[each.name], each), each) for each in exchanges}
            for each in opened.values():
                await settled(each.close())
            return seen

        def run() -> Any:
            return ran(program(), asynchronous=way.asynchronous)

        passed = there_and_back(run, provider, folder, carrier=way.carrier, policy=policy, elsewhere=elsewhere)
    names = {f"n{number}": exchange.name for number, exchange in enumerate(exchanges)}
    asked = {names[name]: [json.loads(body) for body in bodies] for name, bodies in provider.asked.items()}
    return Whole(way, passed, asked)


def _at(opened: Any, url: str, exchange: Exchange) -> Any:
    return opened.with_options(base_url=url.removesuffix("/v1") if exchange.sdk == "anthropic" else url)


def _reply(exchange: Exchange, way: Way, number: int) -> Reply:
    return Reply(
        body=exchange.body,
        status=exchange.status,
        content_type=exchange.content_type,
        headers=exchange.headers,
        coding="gzip" if way.in_pieces else "",
        seed=SEED + number if way.in_pieces and exchange.streamed else None,
    )


def wrong(exchange: Exchange, whole: Whole) -> list[str]:
    """Say what is not as it must be after an exchange went there and back; nothing is, where the replay is faithful."""
    live, again = whole.passed.live[exchange.name], whole.passed.again[exchange.name]
    clean = whole.passed.engine.text
    text = exchange.body.decode("utf-8", "replace")
    found = list(_unasked(exchange, whole))
    asked = [(way, seen) for way, seen in live.items() if way != "helper"]
    found += [f"{way} was not asked rightly: {seen}" for way, seen in asked if seen.get("class") in _OURS]
    redacted = clean(text).encode() if clean(text) != text else exchange.body
    for way in ("raw", "streaming"):
        if _body(again.get(way, {})) not in (None, redacted):
            found.append(f"{way}: the body is not what was sent, less redactions")
    for way in live.keys() | again.keys():
        if live.get(way) != again.get(way) and redacted == exchange.body:
            found.append(f"{way}: {difference(live.get(way), again.get(way))}")
    return found


_OURS = (TypeError, AttributeError, AssertionError, NameError, LookupError)
"""Errors that tell of a test that does not know how to ask. What the SDK objects to is its own business."""


def _body(seen: dict[str, Any]) -> bytes | None:
    """Give the bytes that an agent saw, or None where it saw them as events."""
    if "class" in seen:
        return seen["text"].encode() if "text" in seen else None
    return seen.get("body")


def _unasked(exchange: Exchange, whole: Whole) -> list[str]:
    """Find fields of the recorded request that the SDK did not send as they are."""
    return [
        f"{name} was not asked for as recorded"
        for sent in whole.asked[exchange.name][:3]
        for name, value in exchange.request.items()
        if sent.get(name) != value
    ]


def difference(a: Any, b: Any, path: str = "") -> str:
    """Name the first place at which two things that were seen differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *b]:
            if a.get(key) != b.get(key):
                return difference(a.get(key), b.get(key), f"{path}.{key}")
    if isinstance(a, list) and isinstance(b, list):
        for place, (one, other) in enumerate(zip(a, b, strict=False)):
            if one != other:
                return difference(one, other, f"{path}[{place}]")
        if len(a) != len(b):
            return f"{path}: {len(a)} live, {len(b)} in the replay"
    return f"{path}: {a!r} live, {b!r} in the replay"


def census(exchanges: Sequence[Exchange]) -> str:
    """Count what was found, what is run, and what is excluded for which reason."""
    excluded = Counter(exchange.excluded for exchange in exchanges if exchange.excluded)
    kinds = Counter(
        f"{each.api}{' stream' if each.streamed else ''}{f' {each.status}' if each.status >= 400 else ''}"
        for each in exchanges
        if not each.excluded
    )
    why = "; ".join(f"{count} because {reason}" for reason, count in excluded.items()) or "none"
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    run = len(exchanges) - excluded.total()
    return f"found {len(exchanges)}, run {run} ({told}), excluded {excluded.total()} ({why})"
