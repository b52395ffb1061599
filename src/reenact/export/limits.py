"""How much goes out at once and how long an exit waits for it, from the environment.

    REENACT_EXPORT_BATCH_SPANS     512          spans in one request, at most
    REENACT_EXPORT_BATCH_BYTES     4000000      bytes of one request before compression, at most, but for a single span
    REENACT_EXPORT_EXIT_SECONDS    0.6          how long a program's end waits for backends; the rest goes out next time

The bytes are just under what a gRPC receiver takes by default (4 MiB, 4,194,304 bytes, counted after decompression).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reenact.errors import InputError

_SPANS, _BYTES, _EXIT = "REENACT_EXPORT_BATCH_SPANS", "REENACT_EXPORT_BATCH_BYTES", "REENACT_EXPORT_EXIT_SECONDS"
BATCH_SPANS, BATCH_BYTES, EXIT_S = 512, 4_000_000, 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The settings, with their defaults."""

    spans: int = BATCH_SPANS
    size: int = BATCH_BYTES
    exit_s: float = EXIT_S


def limits_from(environ: Mapping[str, str]) -> Limits:
    """Read the settings. Raises `InputError`, its place the name of the variable, on a number that makes no sense."""
    return Limits(
        spans=int(_number(environ, _SPANS, BATCH_SPANS, whole=True)),
        size=int(_number(environ, _BYTES, BATCH_BYTES, whole=True)),
        exit_s=_number(environ, _EXIT, EXIT_S, whole=False),
    )


def _number(environ: Mapping[str, str], variable: str, default: float, *, whole: bool) -> float:
    text = environ.get(variable, "").strip()
    if not text:
        return default
    try:
        number = float(int(text)) if whole else float(text)
    except ValueError:
        number = -1.0
    if not (whole <= number < 1e15):
        kind = "a positive whole number" if whole else "a number of seconds"
        raise InputError(f"${variable}", f"{text[:40]!r} is not {kind}", hint=f"Unset it for {default:g}.")
    return number
