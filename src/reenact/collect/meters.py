"""What the collector says of itself: counters, as Prometheus text and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from time import time

from reenact.values.json import Json


@dataclass(slots=True)
class Meters:
    """Counters since the start. Written by one thread each; read by anybody."""

    accepted_spans: int = 0
    accepted_log_records: int = 0
    rejected_records: int = 0
    requests: dict[str, int] = field(default_factory=dict[str, int])
    """By transport and status, as `http 200` or `grpc 0`."""
    received_bytes: int = 0
    written_bytes: int = 0
    commits: int = 0
    commit_seconds: float = 0.0
    write_failures: int = 0
    note_failures: int = 0
    connections: int = 0
    refused_connections: int = 0
    in_flight_bytes: int = 0
    started: float = field(default_factory=time)

    def answered(self, transport: str, status: int) -> None:
        """Count an answer."""
        name = f"{transport} {status}"
        self.requests[name] = self.requests.get(name, 0) + 1

    def as_json(self) -> dict[str, Json]:
        """Give everything."""
        return asdict(self)

    def as_text(self) -> str:
        """Spell everything in Prometheus' text format 0.0.4."""
        lines: list[str] = []
        for name, (kind, about) in _TOLD.items():
            value = getattr(self, name)
            full = f"reenact_collector_{name}{'_total' if kind == 'counter' else ''}"
            lines += [f"# HELP {full} {about}", f"# TYPE {full} {kind}"]
            if isinstance(value, dict):
                for key, count in sorted(self.requests.items()):
                    transport, _, status = key.partition(" ")
                    lines.append(f'{full}{{transport="{transport}",status="{status}"}} {count}')
            else:
                lines.append(f"{full} {value}")
        return "\n".join(lines) + "\n"


_TOLD = {
    "accepted_spans": ("counter", "Spans that are on disk and were acknowledged."),
    "accepted_log_records": ("counter", "Log records that are on disk and were acknowledged."),
    "rejected_records": ("counter", "Spans and log records of accepted requests that were rejected."),
    "requests": ("counter", "Requests by transport and status."),
    "received_bytes": ("counter", "Bytes of request bodies as they came over the wire."),
    "written_bytes": ("counter", "Bytes of frames on disk."),
    "commits": ("counter", "Writes to disk, each of what many requests brought."),
    "commit_seconds": ("counter", "Seconds that those took."),
    "write_failures": ("counter", "Writes to disk that failed; their requests were told to try again."),
    "note_failures": ("counter", "Times that the index could not be told at once."),
    "connections": ("gauge", "Open connections."),
    "refused_connections": ("counter", "Connections over the limit, closed at once."),
    "in_flight_bytes": ("gauge", "Bytes of requests that are being received or written."),
    "started": ("gauge", "When the collector started, in seconds since the epoch."),
}
