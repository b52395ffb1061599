"""What a page of `reenact ls` costs where many runs are: every filter, first and again, on an index that is made here.

A part of `make bench`. Runs are made up, 31 spans and ten tool calls in each as in the mix of `collecting`; only what
the index is told of them exists. Milliseconds for 20 rows: the first look, and the median of six more.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures import table

from reenact.disk.run_index import Entry
from reenact.stores.directory import DirectoryStore
from reenact.values.finding import Filters, ToolUse

SPANS, SPANS_PER_RUN = 1_000_000, 31
_FIRST_NS = 1_700_000_000_000_000_000
_S = 10**9
_PAGE, _AGAIN = 20, 6


def _use(drawn: random.Random, run: int, call: int) -> ToolUse:
    tool = drawn.randrange(30)
    arguments = {
        "target": "staging" if tool == 3 else "production",
        "id": f"a-{drawn.randrange(5000)}",
        "n": str(drawn.randrange(50)),
        "dry_run": drawn.choice(("true", "false")),
        "note": f"{run} {call}",
    }
    return ToolUse(id=f"{run}-{call}", tool=f"tool_{tool}", arguments=frozenset(arguments.items()))


def entries(runs: int) -> Iterator[Entry]:
    """Give what the index is told of so many runs."""
    drawn = random.Random(5)
    for run in range(runs):
        started = _FIRST_NS + run * _S
        yield Entry(
            id=f"{run:032x}", name=f"POST /orders/{run % 200}", started=started, ended=started + 5 * _S,
            status=drawn.choice(("ok", "ok", "ok", "error")), session=f"s-{run % 9000}", user=f"u-{run % 3000}",
            tenant=f"t-{run % 40}", recording=f"{run // 10:016x}", summary=f'{{"about": "{"x" * 600}"}}',
            models=(drawn.choice(("gpt-4o", "claude-4", "small-1")),), entries=(f"POST /orders/{run % 200}", "shop"),
            commits=(f"{run % 25:040x}",), uses=tuple(_use(drawn, run, call) for call in range(10)),
        )  # fmt: skip


def _asked(runs: int) -> dict[str, Filters]:
    middle = _FIRST_NS + runs // 2 * _S
    hour = (middle - 1800 * _S, middle + 1800 * _S)
    production = (("target", "production"),)
    return {
        "the newest": Filters(),
        "user": Filters(user="u-17"),
        "tenant, model, status": Filters(tenant="t-3", model="claude", status="error"),
        "an hour": Filters(window=hour),
        "tool": Filters(tool="tool_5"),
        "argument, rare": Filters(arguments=(("id", "a-77"),)),
        "tool and argument, rare": Filters(tool="tool_5", arguments=(("id", "a-77"),)),
        "tool and argument, common": Filters(tool="tool_5", arguments=production),
        "tool and argument that never meet": Filters(tool="tool_3", arguments=production),
        "two arguments that never meet": Filters(arguments=(("target", "staging"), *production)),
        "user, an hour, tool, argument": Filters(user="u-17", window=hour, tool="tool_5", arguments=production),
        "entry point, commit": Filters(entry="orders/12", commit="0" * 38),
    }


def measured(spans: int = SPANS) -> dict[str, Any]:
    """Make an index, and time every search."""
    runs = spans // SPANS_PER_RUN
    with tempfile.TemporaryDirectory(prefix="reenact-finding-") as folder:
        store = DirectoryStore(Path(folder))
        store.prepare()
        began, batch = time.perf_counter(), list[Entry]()
        for entry in entries(runs):
            batch.append(entry)
            if len(batch) == 1000:
                store.index(batch)
                batch.clear()
        store.index(batch)
        took = time.perf_counter() - began
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        searches = {name: _timed(store, filters) for name, filters in _asked(runs).items()}
    return {"runs": runs, "spans": spans, "noted_s": round(took, 1), "index_mb": size / 1e6, "searches": searches}


def _timed(store: DirectoryStore, filters: Filters) -> dict[str, float]:
    times: list[float] = []
    rows = 0
    for _ in range(1 + _AGAIN):
        began = time.perf_counter()
        rows = len(store.search(filters, newest=_PAGE))
        times.append((time.perf_counter() - began) * 1e3)
    return {"first_ms": times[0], "again_ms": statistics.median(times[1:]), "rows": rows}


def laid_out(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    rows = [
        [name, f"{each['first_ms']:.1f}", f"{each['again_ms']:.1f}", f"{each['rows']:.0f}"]
        for name, each in found["searches"].items()
    ]
    said = f"  {found['runs']:,} runs of {found['spans']:,} spans, noted in {found['noted_s']} s"
    said += f", {found['index_mb']:.0f} MB"
    return f"{table(['asked for', 'first ms', 'again ms', 'rows'], rows)}\n\n{said}"
