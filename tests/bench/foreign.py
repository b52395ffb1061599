"""What a big file of somebody else's traces costs: listing its runs and taking one out, beside other tools.

    python foreign.py FILE [--python PYTHON]

FILE is OTLP/JSON lines, such as `grow.py` makes. Each arm is a process of its own, one after another on the same file:
a bare pass of orjson, pandas and duckdb (both find the trace ids of every line), `reenact ls FILE` with nothing known
of the file, again, and `reenact show FILE#RUN` for its oldest run with nothing known and again. Printed are seconds of
wall clock and of processor, and peak memory. Exit code 1 where `reenact` takes more than three times the bare pass, or
more than 300 MB. An arm whose library is not there is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MOST_TIMES, MOST_MB = 3.0, 300.0
BARE = """
import sys, orjson
count = 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        orjson.loads(line)
        count += 1
print(count, "lines")
"""
PANDAS = """
import sys, pandas
found = set()
for chunk in pandas.read_json(sys.argv[1], lines=True, chunksize=2000):
    for groups in chunk.get("resourceSpans", pandas.Series(dtype=object)).dropna():
        for group in filter(None, groups):
            for scope in filter(None, group.get("scopeSpans") or ()):
                found.update(str(span["traceId"]) for span in scope.get("spans") or () if span and "traceId" in span)
print(len(found), "traces")
"""
DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
rows = connection.execute(f\"\"\"
SELECT count(DISTINCT id) FROM (
  SELECT unnest(json_extract_string(json, '$.resourceSpans[*].scopeSpans[*].spans[*].traceId')) AS id
  FROM read_ndjson_objects('{sys.argv[1]}', maximum_object_size=67108864))
\"\"\").fetchall()
print(rows[0][0], "traces")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    said: str


def measured(command: list[str], environ: dict[str, str]) -> Took | None:
    """Run a command; None where it fails, which is said."""
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environ)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        out.seek(0)
        said = out.read().decode("utf-8", "replace").strip()
    if process.returncode:
        _say(f"  left out ({said.splitlines()[-1] if said else process.returncode})")
        return None
    return Took(wall_s=wall, cpu_s=used.ru_utime + used.ru_stime, peak_mb=used.ru_maxrss / 1024, said=said)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--python", default=sys.executable, help="the one that has reenact; pandas and duckdb if it can"
    )
    parser.add_argument("--peers", help="the one that has pandas and duckdb; default: --python")
    told = parser.parse_args()
    peers = told.peers or told.python
    with tempfile.TemporaryDirectory() as cache:
        return _compared(str(told.file), told.python, peers, {**os.environ, "XDG_CACHE_HOME": cache})


def _compared(file: str, python: str, peers: str, environ: dict[str, str]) -> int:
    size = Path(file).stat().st_size
    _say(f"{size / 1e6:,.0f} MB, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    ours = [python, "-m", "reenact"]
    listing = [*ours, "ls", "--json", "-n", "1", file]
    newest = ""
    arms: dict[str, list[str]] = {
        "bare orjson pass": [python, "-c", BARE, file],
        "pandas": [peers, "-c", PANDAS, file],
        "duckdb": [peers, "-c", DUCKDB, file],
        "reenact ls, first time": listing,
        "reenact ls, again": listing,
    }
    took: dict[str, Took] = {}
    for name, command in arms.items():
        one = measured(command, environ)
        if one is not None:
            took[name] = one
            _row(name, one, took)
    newest = json.loads(took["reenact ls, again"].said)["runs"][0]["id"]
    with tempfile.TemporaryDirectory() as empty:
        fresh = {**environ, "XDG_CACHE_HOME": empty}
        for name in ("reenact show, first time", "reenact show, again"):
            one = measured([*ours, "show", f"{file}#{newest}"], fresh)
            if one is not None:
                took[name] = one
                _row(name, one, took)
    return _judged(took)


def _row(name: str, one: Took, took: dict[str, Took]) -> None:
    bare = took["bare orjson pass"]
    times = f"{one.wall_s / bare.wall_s:5.2f} x wall {one.cpu_s / bare.cpu_s:5.2f} x cpu"
    last = one.said.splitlines()[-1][:60] if name in {"bare orjson pass", "pandas", "duckdb"} else ""
    _say(f"  {name:26} {one.wall_s:7.2f} s {one.cpu_s:7.2f} s cpu {one.peak_mb:8.1f} MB  {times}  {last}")


def _judged(took: dict[str, Took]) -> int:
    bare = took["bare orjson pass"]
    over = [
        name
        for name, one in took.items()
        if name.startswith("reenact") and (one.cpu_s > MOST_TIMES * bare.cpu_s or one.peak_mb > MOST_MB)
    ]
    _say(f"over {MOST_TIMES:g} times the bare pass or {MOST_MB:g} MB: {', '.join(over) or 'nothing'}")
    return 1 if over else 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    raise SystemExit(main())
