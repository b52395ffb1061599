"""What a run printed, in lines for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from reenact.values.json import Json
from reenact.values.output import Stream, outputs
from reenact.values.run import Run

_SHOWN = 3
"""Lines of a stream that a tree shows."""
_WIDTH = 100


def of_run(run: Run) -> list[Json]:
    """Describe what a run printed as `reenact show --json` does: part by part, stream by stream."""
    described: list[Json] = []
    for (lane, _), part in outputs([run]).items():
        for name, stream in part.streams.items():
            whole = not (stream.is_cut or stream.rest or stream.lost)
            document: dict[str, Json] = {"lane": lane, "stream": name, "text": stream.text, "size": stream.size}
            described.append({**document, "whole": whole})
    return described


def in_short(run: Run) -> Iterator[str]:
    """Say in short what a run printed: the last lines of each stream."""
    for part in outputs([run]).values():
        for name, stream in part.streams.items():
            yield from _tail(name, stream)


def _tail(name: str, stream: Stream) -> Iterator[str]:
    lines = stream.text.rstrip("\n").split("\n")
    if not stream.text.strip():
        return
    yield f"{name}: {len(lines)} line{'' if len(lines) == 1 else 's'}{' and more' if stream.is_cut else ''}"
    for line in lines[-_SHOWN:]:
        yield f"  {line if len(line) <= _WIDTH else f'{line[:_WIDTH]}…'}"
