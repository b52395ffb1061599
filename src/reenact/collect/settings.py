"""How the collector is set up."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from reenact.collect.intake import Decoding

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, with its defaults."""

    decoding: Decoding
    host: str = "127.0.0.1"
    http_port: int | None = 4318
    """0 for any that is free, None for none."""
    grpc_port: int | None = 4317
    most_bytes: int = 64 * MEBIBYTE
    """Of one request, before and after decompression."""
    in_flight_bytes: int = 256 * MEBIBYTE
    """Of all requests that are being received or written; what is over it is told to come again."""
    connections: int = 2000
    token: str = field(default="", repr=False)
    hosts: tuple[str, ...] = ()
    """Further names of this collector that a request may ask for, `name` or `name:port`."""
    origins: tuple[str, ...] = ()
    """Origins that browsers may send from; `*` for all."""
    tls: ssl.SSLContext | None = None
    head_s: float = 10.0
    """For the head of a request, from its first byte on, and for a TLS handshake."""
    idle_s: float = 120.0
    """How long a connection is kept open on which nothing is asked."""
    stall_s: float = 15.0
    """How long nothing may come of a request that is under way."""
    least_rate: int = 4096
    """Bytes a second that a body must bring on average, after its first `stall_s`."""
    drain_s: float = 10.0
    """How long the requests under way may take once the collector is told to end."""
    more_metrics: Callable[[], str] = lambda: ""
