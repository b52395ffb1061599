"""ClickHouse's HTTP interface over chdb, which is ClickHouse in process and has no listener of its own.

    python serving.py FOLDER [SCHEMA.sql ...]

Run with the Python of an environment that has chdb. Prints the port that it listens on. Queries, bound parameters,
formats and inserts are ClickHouse's own work; this hands them on, one at a time. `X-ClickHouse-Summary` says what was
read.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from chdb import session

_ONE = threading.Lock()
_ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0"}
_FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*$", re.IGNORECASE)
_INSERT = re.compile(r"\s*INSERT\b", re.IGNORECASE)


class Database:
    """One chdb session; a process has one path, a path one process."""

    def __init__(self, folder: str) -> None:
        self._session: Any = session.Session(folder)
        self._settings: dict[str, str] = {}

    def script(self, text: str) -> None:
        """Run statements that give nothing."""
        for statement in re.sub(r"--[^\n]*", "", text).split(";"):
            if statement.strip():
                self._session.query(statement)

    def asked(self, query: str, told: dict[str, str]) -> tuple[bytes, dict[str, str]]:
        """Give the answer, and how much was read for it."""
        settings = dict(told)
        database = settings.pop("database", "default")
        given = {name.removeprefix("param_"): _read(settings.pop(name)) for name in told if name.startswith("param_")}
        named = _FORMAT.search(query)
        wanted = named[1] if named else settings.pop("default_format", "TabSeparated")
        settings.pop("default_format", None)
        for name, value in settings.items():
            if name not in {"readonly", "query_id", "session_id", "compress", "decompress", "client_protocol_version"}:
                self._session.query(f"SET {name} = {value if value.isdigit() else repr(value)}")
        self._session.query(f"USE `{database}`")
        blocks = wanted == "Native" and int(told.get("client_protocol_version", "0")) > 0
        found = self._session.query(_FORMAT.sub("", query), "JSONCompact" if blocks else wanted, params=given)
        read = {"read_rows": str(found.storage_rows_read()), "read_bytes": str(found.storage_bytes_read())}
        data = found.bytes()
        data = _block(json.loads(data)) if blocks and data else data
        return data, {**read, "elapsed_ns": str(int(found.elapsed() * 1e9))}

    def insert(self, query: str, told: dict[str, str], data: bytes) -> None:
        """Insert what follows a query, in the format it names."""
        self._session.query(f"USE `{told.get('database', 'default')}`")
        named = _FORMAT.search(query)
        sql = _FORMAT.sub("", query).strip()
        stream = self._session.send_insert(sql, named[1] if named else "JSONEachRow")
        stream.append(data)
        stream.finish()


def _read(value: str) -> str:
    return re.sub(r"\\[\\tnr0]", lambda found: _ESCAPES[found[0]], value)


def _block(found: dict[str, Any]) -> bytes:
    """Spell a small answer as one block of a native connection, which has a header that the format alone has not."""
    columns, rows = found["meta"], found["data"]
    out = bytearray(b"\x01\x00\x02\xff\xff\xff\xff\x00") + _count(len(columns)) + _count(len(rows))
    for at, column in enumerate(columns):
        kind = column["type"] if column["type"] in _WIDTHS else "String"
        out += _text(column["name"]) + _text(kind) + b"\x00"
        for row in rows:
            out += _text(str(row[at])) if kind == "String" else int(row[at]).to_bytes(_WIDTHS[kind], "little")
    return bytes(out)


_WIDTHS = {"UInt8": 1, "UInt32": 4, "UInt64": 8}


def _text(text: str) -> bytes:
    return _count(len(text.encode())) + text.encode()


def _count(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


class Handler(BaseHTTPRequestHandler):
    """Requests as ClickHouse takes them: the query in `query`, in the body, or begun in one and ended in the other."""

    protocol_version = "HTTP/1.1"
    database: Database

    def do_POST(self) -> None:
        told = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = self._chunks()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = told.pop("query", "")
        if form := self.headers.get("X-ClickHouse-Format", ""):
            told["default_format"] = form
        try:
            with _ONE:
                if query and _INSERT.match(query):
                    self.database.insert(query, told, body)
                    self._reply(200, b"", {})
                else:
                    self._reply(200, *self.database.asked(query or body.decode(), told))
        except Exception as failure:  # noqa: BLE001 - whatever it is, the client is told
            self._reply(500 if "DB::Exception" not in str(failure) else 404, str(failure).encode(), {})

    do_GET = do_POST  # noqa: N815 - the name is http.server's

    def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _reply(self, status: int, data: bytes, summary: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-ClickHouse-Server-Display-Name", "chdb")
        self.send_header("X-ClickHouse-Summary", json.dumps(summary))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def main() -> None:
    """Serve until killed."""
    database = Database(sys.argv[1])
    for script in sys.argv[2:]:
        database.script(Path(script).read_text(encoding="utf-8"))
    Handler.database = database
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
