"""A ClickHouse that the Collector writes to, asked over HTTP: `clickhouse://[USER@]HOST:8123/DATABASE`.

User and password are those of the URL, else CLICKHOUSE_USER and CLICKHOUSE_PASSWORD. With the tables of
`collector/clickhouse/schema.sql`, one trace is read by the primary key, and a list of runs from `otel_runs`, where
time, user, session, tenant, and of our own recordings model and tool, are left to ClickHouse. Tables that the exporter
made by itself serve as well: a trace is then found by their bloom filter, and a list from the spans without a parent.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from reenact.contracts.backend import Backend
from reenact.errors import InputError, UsageError
from reenact.foreign.http_exchange import fetch_reply, printable_url, user_of
from reenact.formats import clickhouse_rows
from reenact.values.finding import Filters
from reenact.values.json import Json, parse
from reenact.values.lenient import as_object, as_text
from reenact.values.log import LogRecord, Record

_SETTINGS: Final[Mapping[str, str]] = {
    "default_format": "JSONEachRow",
    "output_format_json_quote_64bit_integers": "0",
    "date_time_output_format": "iso",  # in UTC, whatever the server's time zone
    "readonly": "2",
}
_PAGE: Final = 200
_FEW: Final = 6
_MOST_STRAYS: Final = 10_000
_LARGEST: Final = 1 << 30
_NAME = re.compile(r"[A-Za-z_]\w*")
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(r"[0-9a-f]{1,32}")
_TABLES: Final = ("otel_traces", "otel_runs", "otel_logs")
_SCHEMES: Final = {"clickhouse": "http", "clickhouse+http": "http", "clickhouse+https": "https"}
_WITHIN: Final = {
    "user": "has(Users, {user:String})",
    "session": "has(Sessions, {session:String})",
    "tenant": "has(Tenants, {tenant:String})",
    "tool": "(has(Tools, {tool:String}) OR Foreign)",
    "model": "(arrayExists(name -> position(name, {model:String}) > 0, Models) OR Foreign)",
}
"""What `otel_runs` can be asked for. Nothing that a filter may want is left out by it."""
_RUNS: Final = """
SELECT TraceId, min(Start) AS Start, max(End) AS End, max(Recording) AS Recording, max(Foreign) AS Foreign,
    groupUniqArrayArray(Users) AS Users, groupUniqArrayArray(Sessions) AS Sessions,
    groupUniqArrayArray(Tenants) AS Tenants, groupUniqArrayArray(Models) AS Models, groupUniqArrayArray(Tools) AS Tools
FROM otel_runs GROUP BY TraceId"""
"""A row a trace, whatever is merged by now."""

_STRAYS: Final = """
SELECT * FROM otel_logs WHERE TraceId = ''
    AND Timestamp >= fromUnixTimestamp64Nano({first:Int64}) AND Timestamp <= fromUnixTimestamp64Nano({last:Int64})
ORDER BY Timestamp LIMIT {most:UInt64}"""


class _Database:
    """The tables of one database."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._database = unquote(parts.path.strip("/")) or "default"
        if not parts.hostname or parts.query or not _NAME.fullmatch(self._database):
            raise UsageError(f"{printable_url(url)} names no database: it is spelled {BACKEND.usage}")
        self._scheme, self._place = parts.scheme, parts.netloc.rpartition("@")[2]
        user, password = user_of(url)
        user = user or os.environ.get("CLICKHOUSE_USER", "")
        password = password or os.environ.get("CLICKHOUSE_PASSWORD", "")
        credentials = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}
        self._headers = {name: value for name, value in credentials.items() if value}
        self._table_names: frozenset[str] | None = None

    @property
    def name(self) -> str:
        return f"{self._scheme}://{self._place}/{quote(self._database)}"

    def newest(self, filters: Filters) -> Iterator[str]:
        if "otel_runs" in self._tables():
            wanted = {name: value for name in _WITHIN if (value := getattr(filters, name)) is not None}
            conditions = [_WITHIN[name] for name in wanted]
            if filters.window is not None:
                first, last = filters.window
                wanted |= {"first": str(first), "last": str(last)}
                conditions += [
                    "End >= fromUnixTimestamp64Nano({first:Int64})",
                    "Start <= fromUnixTimestamp64Nano({last:Int64})",
                ]
            source = f"SELECT TraceId, Start FROM ({_RUNS}) WHERE {' AND '.join(conditions or ['1'])}"  # noqa: S608 - nothing but this module's
        else:
            wanted = {}
            source = "SELECT TraceId, min(Timestamp) AS Start FROM otel_traces WHERE ParentSpanId = '' GROUP BY TraceId"
        return self._paged(source, wanted)

    def _paged(self, source: str, wanted: Mapping[str, str]) -> Iterator[str]:
        """Give ids page by page, each asked for behind the last one of the page before: what arrives now moves none."""
        after, parameters = "", dict(wanted)
        while True:
            ask = f"SELECT TraceId, toUnixTimestamp64Nano(Start) AS At FROM ({source}){after}"  # noqa: S608 - as above
            rows = list(self._rows(f"{ask} ORDER BY At DESC, TraceId DESC LIMIT {_PAGE}", parameters))
            yield from (as_text(row.get("TraceId")) for row in rows)
            if len(rows) < _PAGE:
                return
            after = " WHERE (At, TraceId) < ({at:Int64}, {id:String})"
            parameters |= {"at": str(rows[-1].get("At")), "id": as_text(rows[-1].get("TraceId"))}

    def resolve(self, prefix: str) -> list[str]:
        if not _PREFIX.fullmatch(prefix):
            return []
        table = "otel_runs" if "otel_runs" in self._tables() else "otel_traces"
        condition = "TraceId = {id:String}" if _TRACE_ID.fullmatch(prefix) else "startsWith(TraceId, {id:String})"
        ask = f"SELECT DISTINCT TraceId FROM {table} WHERE {condition} LIMIT {_FEW}"  # noqa: S608 - values are bound
        rows = self._rows(ask, {"id": prefix})
        return [as_text(row.get("TraceId")) for row in rows]

    def recorded_with(self, recording: str) -> list[str]:
        if "otel_runs" not in self._tables():
            return []
        ask = "SELECT DISTINCT TraceId FROM otel_runs WHERE Recording = {recording:String} LIMIT 1000"
        return [as_text(row.get("TraceId")) for row in self._rows(ask, {"recording": recording})]

    def records(self, trace_id: str) -> Iterator[Record]:
        for table in ("otel_traces", "otel_logs"):
            if table in self._tables():
                ask = f"SELECT * FROM {table} WHERE TraceId = {{id:String}} ORDER BY Timestamp"  # noqa: S608 - as above
                rows = self._fetch(ask, {"id": trace_id})
                yield from clickhouse_rows.FORMAT.decode(io.BytesIO(rows), Path(f"{self.name}/{table}"))

    def strays(self, first_ns: int, last_ns: int) -> Iterator[LogRecord]:
        if "otel_logs" in self._tables():
            rows = self._fetch(_STRAYS, {"first": str(first_ns), "last": str(last_ns), "most": str(_MOST_STRAYS)})
            for record in clickhouse_rows.FORMAT.decode(io.BytesIO(rows), Path(f"{self.name}/otel_logs")):
                if isinstance(record, LogRecord):
                    yield record

    def _tables(self) -> frozenset[str]:
        if self._table_names is None:
            ask = "SELECT name FROM system.tables WHERE database = {database:String} AND name IN {names:Array(String)}"
            spelled = "[" + ",".join(f"'{name}'" for name in _TABLES) + "]"
            rows = self._rows(ask, {"database": self._database, "names": spelled})
            self._table_names = frozenset(as_text(row.get("name")) for row in rows)
            if "otel_traces" not in self._table_names:
                hint = "make it with collector/clickhouse/schema.sql, or name another database"
                raise InputError(self.name, "has no table otel_traces", hint=hint)
        return self._table_names

    def _rows(self, ask: str, wanted: Mapping[str, str]) -> Iterator[dict[str, Json]]:
        for line in self._fetch(ask, wanted).splitlines():
            try:
                yield as_object(parse(line))
            except ValueError as refusal:
                raise InputError(self.name, f"answered with no row: {refusal}") from None

    def _fetch(self, ask: str, wanted: Mapping[str, str]) -> bytes:
        parameters = {f"param_{name}": value.translate(_ESCAPED) for name, value in wanted.items()}
        query = urlencode({"database": self._database, **_SETTINGS, **parameters})
        url = f"{_SCHEMES[self._scheme]}://{self._place}/?{query}"
        return fetch_reply(url, self._headers, ask.encode(), most=_LARGEST)


_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
"""A parameter is read as a tab-separated field."""


BACKEND = Backend(
    name="clickhouse", schemes=tuple(_SCHEMES), usage="clickhouse://[USER@]HOST:8123/DATABASE[#RUN]", open=_Database
)
