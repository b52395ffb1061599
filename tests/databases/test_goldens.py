"""What real servers once answered is read, and answers the same programs again where there is no server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reenact.contracts.integration import Integration
from reenact.discover import members

CLIENTS = {
    "aiomysql": "aiomysql",
    "asyncpg": "asyncpg",
    "chromadb": "chromadb",
    "elasticsearch": "elasticsearch",
    "opensearch": "opensearchpy",
    "psycopg": "psycopg",
    "psycopg2": "psycopg2",
    "pymongo": "pymongo",
    "pymysql": "pymysql",
    "qdrant": "qdrant_client",
    "redis": "redis",
}
"""The folders of recordings, and the modules of the clients."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_program_is_answered_as_it_was_by_the_server(client: str, root: Path, tmp_path: Path) -> None:
    pytest.importorskip(CLIENTS[client])
    golden = root / "tests" / "golden" / "databases" / client
    result = replayed(golden / "recording.jsonl", golden / "program.py", tmp_path)
    assert (result["result"], result["divergences"], result["live"]) == ("same", [], 0)
    spans = [json.loads(line) for line in (golden / "recording.jsonl").read_text().splitlines() if line]
    assert result["answered"]["database"] > len(spans) // 2


def replayed(recording: Path, program: Path, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "reenact", "replay", str(recording), "--json", "--", sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, timeout=120)
    assert done.stdout.count('{"'), done.stderr
    return json.loads(done.stdout[done.stdout.index('{"') :])


def test_what_a_client_asks_aside_may_not_have_begun(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client")
    golden = root / "tests" / "golden" / "databases" / "qdrant"
    told = json.loads((golden / "recording.jsonl").read_text())
    [scope] = told["resourceSpans"][0]["scopeSpans"]
    asked = [span for span in scope["spans"] if "aside" not in json.dumps(span["attributes"])]
    assert len(asked) == len(scope["spans"]) - 1
    scope["spans"] = asked
    (tmp_path / "recording.jsonl").write_text(json.dumps(told))
    result = replayed(tmp_path / "recording.jsonl", golden / "program.py", tmp_path)
    assert (result["result"], result["divergences"], result["misses"]) == ("same", [], [])


def test_every_client_is_one_integration() -> None:
    named = {each.name for each in members("integrations", Integration)}
    assert {f"{client}_connections" for client in CLIENTS} <= named
