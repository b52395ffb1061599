"""What real servers once answered is read, and answers the same programs again where there is no server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reenact.contracts.integration import Integration
from reenact.discover import members

CLIENTS = ("asyncpg", "elasticsearch", "opensearchpy", "psycopg", "psycopg2", "pymongo", "redis")
FOLDERS = {"opensearchpy": "opensearch"}
"""Where a client's folder is not named as its module."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_program_is_answered_as_it_was_by_the_server(client: str, root: Path, tmp_path: Path) -> None:
    pytest.importorskip(client)
    golden = root / "tests" / "golden" / "databases" / FOLDERS.get(client, client)
    command = [
        sys.executable,
        "-m",
        "reenact",
        "replay",
        str(golden / "recording.jsonl"),
        "--json",
        "--",
        sys.executable,
    ]
    done = subprocess.run(
        [*command, str(golden / "program.py")], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120
    )
    result = json.loads(done.stdout[done.stdout.index('{"') :])
    assert (result["result"], result["divergences"], result["live"]) == ("same", [], 0), done.stderr
    spans = [json.loads(line) for line in (golden / "recording.jsonl").read_text().splitlines() if line]
    assert result["answered"]["database"] > len(spans) // 2


def test_every_client_is_one_integration() -> None:
    named = {each.name for each in members("integrations", Integration)}
    clients = ("asyncpg", "elasticsearch", "opensearch", "psycopg2", "psycopg", "pymongo", "redis")
    assert {f"{client}_connections" for client in clients} <= named
