"""Grows a big OTLP/JSON-lines file out of real ones: the same lines over and over, with fresh ids and later times.

    python grow.py OUT BYTES FILE...

Every pass over the lines gets trace and span ids of its own (one keyed digest of the id and the pass, so that spans
that belong together still do) and times a minute later. The same for the same arguments.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_FRESH = re.compile(rb'"(?:traceId|spanId|parentSpanId)"\s*:\s*"([0-9a-f]{16,32})"|UnixNano"\s*:\s*"(\d{19})"')
_STEP_NS = 60 * 10**9


def grown(sources: list[Path], size: int) -> Iterator[bytes]:
    """Give lines until they make `size` bytes."""
    lines = [_cut(line) for path in sources for line in path.read_bytes().splitlines() if line.strip()]
    made = number = 0
    while made < size:
        fresh: dict[bytes, bytes] = {}
        for pieces, ids in lines:
            told = [_told(each, number, fresh) for each in ids]
            line = b"".join(part for pair in zip(pieces, [*told, b"\n"], strict=True) for part in pair)
            made += len(line)
            yield line
            if made >= size:
                return
        number += 1


def _cut(line: bytes) -> tuple[list[bytes], list[bytes]]:
    """Cut a line into what stays and what is made anew in every pass."""
    pieces: list[bytes] = []
    ids: list[bytes] = []
    at = 0
    for found in _FRESH.finditer(line):
        group = 1 if found[1] is not None else 2
        pieces.append(line[at : found.start(group)])
        ids.append(found[group])
        at = found.end(group)
    return [*pieces, line[at:]], ids


def _told(value: bytes, number: int, fresh: dict[bytes, bytes]) -> bytes:
    if len(value) == 19:
        return b"%d" % (int(value) + number * _STEP_NS)
    known = fresh.get(value)
    if known is None:
        known = hashlib.blake2b(value, key=b"%d" % number, digest_size=len(value) // 2).hexdigest().encode()
        fresh[value] = known
    return known


def main() -> None:
    out, size, *sources = sys.argv[1:]
    with Path(out).open("wb") as file:
        file.writelines(grown(sorted(map(Path, sources)), int(size)))


if __name__ == "__main__":
    main()
