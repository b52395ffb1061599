"""What `ls` and `what` say of strangers' files: their counts are those of the raw file, and none makes them stumble.

The raw files are read here by nothing of ours.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import in_process

KINDS = {"chat": "llm", "generate_content": "llm", "execute_tool": "tool", "embeddings": "embedding"}
COUNTED = ("llm", "tool", "embedding")


def _otlp(path: Path) -> Iterator[tuple[str, str | None]]:
    """Give the trace and the kind of each span, by the emitter's own word."""
    for line in filter(None, path.read_text(encoding="utf-8").splitlines()):
        for group in json.loads(line).get("resourceSpans", []):
            for span in (span for scope in group["scopeSpans"] for span in scope["spans"]):
                held = {each["key"]: next(iter(each["value"].values()), "") for each in span.get("attributes", [])}
                kind = str(held.get("openinference.span.kind", "")).lower()
                kind = kind or KINDS.get(str(held.get("gen_ai.operation.name")), "")
                yield (
                    span["traceId"],
                    kind or ("llm" if "llm.request.type" in held else held.get("traceloop.span.kind")),
                )


def _langfuse(path: Path) -> Iterator[tuple[str, str | None]]:
    trace = json.loads(path.read_text(encoding="utf-8"))
    for each in trace["observations"]:
        yield each["traceId"], {"GENERATION": "llm", "TOOL": "tool"}.get(each["type"])


def _langsmith(path: Path) -> Iterator[tuple[str, str | None]]:
    batches = json.loads(path.read_text(encoding="utf-8"))
    runs: dict[str, dict[str, Any]] = {}
    for batch in batches if isinstance(batches, list) else [batches]:
        for each in (*batch.get("post", []), *batch.get("patch", [])):
            runs.setdefault(each["id"], {}).update(each)
    yield from ((run["trace_id"], run.get("run_type")) for run in runs.values())


FILES: dict[str, Callable[[Path], Iterator[tuple[str, str | None]]]] = {
    "openinference-replay/oi-anthropic.otlp.jsonl": _otlp,
    "openinference-replay/oi-dspy.otlp.jsonl": _otlp,
    "openinference-replay/oi-google-genai.otlp.jsonl": _otlp,
    "openinference-replay/oi-autogen-agentchat.otlp.jsonl": _otlp,
    "otel-genai-replay/otel-openai-v2.otlp.jsonl": _otlp,
    "traceloop-openllmetry-replay/tl-sdk.otlp.jsonl": _otlp,
    "rosetta/langsmith.otlp.jsonl": _otlp,
    "rosetta/traceloop-old.otlp.jsonl": _otlp,
    "langfuse-api-export/crewai-2025-07-11.trace.json": _langfuse,
    "langsmith-runs/python__langsmith_py_wrap_openai_stream.json": _langsmith,
}


@pytest.mark.parametrize("name", FILES)
def test_the_calls_of_a_file_are_those_of_the_raw_file(name: str, shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "traces" / name
    raw = list(FILES[name](path))
    done = in_process.run(["ls", str(path), "-n", "0", "--json"], tmp_path, dict(os.environ))
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == len({trace for trace, _ in raw})
    calls = sum((Counter(run["calls"]) for run in runs), Counter[str]())
    assert {kind: calls[kind] for kind in COUNTED} == {kind: [each for _, each in raw].count(kind) for kind in COUNTED}
    assert sum(calls[kind] for kind in COUNTED) > 0


@pytest.mark.slow
def test_every_real_file_is_read_or_refused_with_a_sentence(shared_data: Path, tmp_path: Path) -> None:
    read = 0
    for path in sorted(each for each in shared_data.rglob("*") if each.is_file()):
        for words in (["what", str(path), "--json"], ["ls", str(path), "-n", "0", "--json"]):
            done = in_process.run(words, tmp_path, dict(os.environ))
            assert done.returncode in (0, 3), (words, done.stderr)
            read += done.returncode == 0
            if done.returncode == 3 and words[0] == "what":
                said = json.loads(done.stdout)
                assert (said["path"], said["runs"]) == (str(path), 0)
                assert len(said["problem"].splitlines()) == 1
                assert done.stderr == ""
            elif done.returncode == 3:
                assert done.stderr.startswith(f"reenact: {path}"), done.stderr
                assert len(done.stderr.splitlines()) <= 2, done.stderr  # with a hint
    assert read > 400
