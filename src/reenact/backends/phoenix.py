"""A running Phoenix, asked over its REST API: `phoenix+http://HOST:PORT[/PROJECT]`.

The project is `default` unless named. An API key is taken from PHOENIX_API_KEY. Traces are found by
`GET /v1/projects/{project}/traces`, with time and session left to Phoenix; the spans of one trace, and no others, come
from `…/spans?trace_id=`, page by page. What Phoenix does not keep is said by the format (`formats.phoenix_json`).
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from reenact.contracts.backend import Backend
from reenact.errors import InputError, UsageError
from reenact.foreign.http_exchange import fetch_reply, printable_url
from reenact.formats import phoenix_json
from reenact.values.finding import Filters
from reenact.values.json import parse
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.log import LogRecord, Record

_PREFIX = "phoenix+"
_PROJECT = "default"
_TRACES, _SPANS = 100, 100
"""How many of a page: a span may hold megabytes."""
_LARGEST_PAGE = 1 << 30
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_FEW = 6


class _Project:
    """One project of a Phoenix."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url.removeprefix(_PREFIX))
        below, _, project = parts.path.rstrip("/").rpartition("/")
        if not parts.hostname or parts.query:
            raise UsageError(f"{printable_url(url)} names no Phoenix: it is spelled {BACKEND.usage}")
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=below, fragment="").geturl()
        self._project = unquote(project) or _PROJECT
        key = os.environ.get("PHOENIX_API_KEY", "")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    @property
    def name(self) -> str:
        return f"{_PREFIX}{printable_url(self._url)}/{quote(self._project, safe='')}"

    def newest(self, filters: Filters) -> Iterator[str]:
        wanted: dict[str, str] = {}
        if filters.session is not None:
            wanted["session_identifier"] = filters.session
        if filters.window is not None:  # a run that began long before may still have been under way
            last = datetime.fromtimestamp(filters.window[1] // 1_000_000_000 + 1, UTC)
            wanted["end_time"] = last.isoformat()
        return self._traces(wanted)

    def _traces(self, wanted: dict[str, str]) -> Iterator[str]:
        for page in self._pages("traces", {"sort": "start_time", "order": "desc", "limit": str(_TRACES), **wanted}):
            traces = as_list(as_object(parse(page)).get("data"))
            yield from (as_text(as_object(each).get("trace_id")) for each in traces)

    def resolve(self, prefix: str) -> list[str]:
        if _TRACE_ID.fullmatch(prefix):
            return [prefix] if any(True for _ in self.records(prefix)) else []
        return list(islice((each for each in self._traces({}) if each.startswith(prefix)), _FEW))

    def recorded_with(self, recording: str) -> list[str]:
        del recording  # a resource is nothing that Phoenix keeps
        return []

    def records(self, trace_id: str) -> Iterator[Record]:
        pages = self._pages("spans", {"trace_id": trace_id, "limit": str(_SPANS)})
        # the last page alone says that there is no other, and lines of pages are what the format reads
        yield from phoenix_json.FORMAT.decode(io.BytesIO(b"\n".join(pages)), Path(self.name))

    def strays(self, first_ns: int, last_ns: int) -> Iterator[LogRecord]:
        del first_ns, last_ns  # Phoenix keeps no log events
        return iter(())

    def _pages(self, what: str, wanted: dict[str, str]) -> Iterator[bytes]:
        place = f"{self._url}/v1/projects/{quote(self._project, safe='')}/{what}"
        cursor = ""
        while True:
            query = urlencode({**wanted, "cursor": cursor} if cursor else wanted)
            data = fetch_reply(f"{place}?{query}", self._headers, most=_LARGEST_PAGE)
            page: Any = _page(data, self.name)
            yield data
            cursor = as_text(page.get("next_cursor"))
            if not cursor:
                return


def _page(data: bytes, name: str) -> Any:
    try:
        return as_object(parse(data))
    except ValueError as refusal:
        hint = "the URL is that of Phoenix itself, without /v1"
        raise InputError(name, f"answered with no JSON: {refusal}", hint=hint) from None


BACKEND = Backend(
    name="phoenix",
    schemes=("phoenix+http", "phoenix+https"),
    usage="phoenix+http://HOST:PORT[/PROJECT][#RUN]",
    open=_Project,
)
