from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desk import Desk
from genai_spec import findings
from reenact.formats.otlp_json import FORMAT
from reenact.values.span import SpanRecord
from stories import recorded


def spans_in(path: Path) -> list[SpanRecord]:
    with path.open("rb") as stream:
        return [record for record in FORMAT.decode(stream, path) if isinstance(record, SpanRecord)]


def told(desk: Desk, selector: str) -> Any:
    """What `show` says of a run, less where it lies."""
    shown = json.loads(desk.reenact("show", selector, "--json").stdout)
    return [call | {"run": shown["run"]["id"]} for call in shown["calls"]]


def without_view(calls: Any) -> Any:
    """The same less the attributes, among which a reader is shown a view in OpenInference's names."""
    return [{name: value for name, value in call.items() if name != "attributes"} for call in calls]


@pytest.mark.always
def test_a_run_is_the_same_in_whatever_names_it_left(desk: Desk) -> None:
    sent = desk.folder / "sent.jsonl"
    recorded(desk, "cleanup_agent.py", REENACT_SEMCONV="genai", REENACT_EXPORT=sent.as_uri())
    spans = spans_in(sent)
    assert [problem for span in spans for problem in findings(span)] == []
    names = {span.name.partition(" ")[0] for span in spans}
    assert {"chat", "execute_tool"} <= names
    assert not any(name.startswith("llm.input_messages") for span in spans for name in span.attributes)
    kept = desk.folder / "kept.jsonl"
    desk.reenact("export", "last", "--plain", "-o", str(kept))
    assert not any("gen_ai.input.messages" in span.attributes for span in spans_in(kept))
    plain = told(desk, str(kept))
    assert told(desk, str(sent)) == plain
    for semconv in ("openinference", "genai", "both"):
        target = desk.folder / f"{semconv}.jsonl"
        done = desk.reenact("export", "last", "--semconv", semconv, "-o", str(target))
        assert done.returncode == 0, done.stderr
        assert without_view(told(desk, str(target))) == without_view(plain)
        assert semconv != "genai" or told(desk, str(target)) == plain
        if semconv != "openinference":
            assert [problem for span in spans_in(target) for problem in findings(span)] == []
            assert any("gen_ai.tool.call.id" in span.attributes for span in spans_in(target))
    replayed = desk.reenact("replay", str(desk.folder / "genai.jsonl"), "--json", "--", "python", "cleanup_agent.py")
    assert json.loads(replayed.stdout)["result"] == "same", replayed.stderr
