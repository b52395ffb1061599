"""Programs on the SDKs of providers, recorded and replayed as a user does: nothing arrives, and nothing differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from providers.standing import Standing

if find_spec("voyageai") is None or find_spec("boto3") is None:
    pytest.skip("the providers' SDKs live in an environment of their own: make test-providers", allow_module_level=True)

CLIENTS = Path(__file__).resolve().parent / "clients"
EXPECTED: dict[str, dict[str, int]] = {
    "google_genai": {"llm": 8, "embedding": 1, "tool": 1},
    "ollama_sdk": {"llm": 8, "embedding": 1, "tool": 1},
    "bedrock": {"llm": 8, "tool": 1},
    "anthropic_clouds": {"llm": 4},
    "cohere_sdk": {"llm": 5, "embedding": 1, "reranker": 1, "tool": 1},
    "others": {"llm": 4, "embedding": 1, "reranker": 1},
}
"""Calls of each kind that a program makes."""


def reenact(folder: Path, environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reenact", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("client", EXPECTED)
def test_a_program_on_a_providers_sdk_replays_as_it_was(client: str, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_", "AWS_"))}
    (tmp_path / "agent.py").write_text((CLIENTS / f"{client}.py").read_text(encoding="utf-8"), encoding="utf-8")
    with Standing() as provider:
        environ["BASE"] = provider.base
        recorded = reenact(tmp_path, environ, "run", "--", "python", "agent.py")
        assert recorded.returncode == 0, recorded.stderr
        assert "replayable: exact" in recorded.stderr
        asked = provider.asked
        again = reenact(tmp_path, environ, "replay", "last")
        assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr
        other = reenact(tmp_path, {**environ, "MODEL": "other"}, "replay", "last", "--", "python", "agent.py")
        assert other.returncode == 1, other.stderr
        assert provider.asked == asked  # the stand-in is up, and nothing arrived
    alone = reenact(tmp_path, environ, "replay", "last", "--json")
    told = json.loads(alone.stdout[alone.stdout.index("{") :])
    assert told["result"] == "same", alone.stderr
    counted = {kind: told["answered"].get(kind, 0) + told["ran_again"].get(kind, 0) for kind in EXPECTED[client]}
    assert counted == EXPECTED[client]
