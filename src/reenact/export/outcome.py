"""What became of one request: a closed union, so that nothing can end without having been judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reenact.values.limits import spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The backend accepted every span."""

    count: int
    note: str = ""
    """What it wanted to say all the same (`partial_success.error_message` with no span rejected)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The backend refused spans for good; sending them again would change nothing."""

    count: int
    reason: str
    delivered: int = 0
    """How many spans of the same request it accepted (`partial_success`)."""
    whole: bool = field(default=False, compare=False)
    """The request was refused as a whole: one span of it may be the cause, and the others be taken without it."""
    cure: Literal["", "setting", "time", "absent"] = field(default="", compare=False)
    """What would let the very same spans in: another endpoint or credential, or perhaps time (a 5xx of its own).

    `absent`: the endpoint that is not there may be one that this backend has not.
    """
    code: str = field(default="", compare=False)
    """The status that it answered with, as HTTP or gRPC spell it; empty where it was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The backend could not be reached or asked to be left alone for a while; nothing is known to have arrived."""

    reason: str
    after_s: float | None = None
    """How many seconds it asked for (`Retry-After`, `RetryInfo`), or None where it did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLarge:
    """The request as a whole is over a limit; its halves may not be."""

    reason: str


def over(size: int, count: int, most: int) -> TooLarge | None:
    """Judge a request of so many bytes before it is made; None where it may be: one span alone always is."""
    if count > 1 and size > most:
        return TooLarge(reason=f"{spelled(size)} is over our limit of {spelled(most)}")
    return None


Outcome: TypeAlias = Delivered | Rejected | Retry | TooLarge
