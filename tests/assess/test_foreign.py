"""One agent's run as many vendors' emitters wrote it down: what is true of it is never found false, nor the reverse."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact.assess.check import check
from reenact.errors import InputError
from reenact.graph.build import build
from reenact.read.open import open_spans
from reenact.values.assertion import Standing
from reenact.values.run import Run

TRUE = [
    "called get_current_weather exactly 2 times",
    'called get_current_weather where location = "Seattle, WA"',
    'called get_current_weather where result contains "raining"',
    'never called get_current_weather where location matches "^New"',
    "never called refund",
    "arguments of get_current_weather are location: string",
    "arguments of get_current_weather fit its schema",
    "path is get_current_weather, get_current_weather",
    "tokens at most 500",
    "model asked is gpt-4o*",
    "no call after refusal",
]
ANSWERED = ['answer contains "Seattle"', "answer grounded in the tool results"]
"""True of the program that ended as all but one did: that emitter was given another last reply."""
ANSWER = "Seattle is 50 degrees"
FALSE = [
    "never called get_current_weather",
    'every get_current_weather has location = "Seattle, WA"',
    'called get_current_weather where location = "Oslo"',
    "called refund",
    "arguments of get_current_weather are location: number",
    "path is get_current_weather",
    'answer contains "Oslo"',
    "tokens at most 20",
    "model asked is gpt-5*",
    "no call of tool after llm",
]


def runs(folder: Path) -> dict[str, Run]:
    found: dict[str, Run] = {}
    for path in sorted(folder.iterdir()):
        try:
            made = build(open_spans(path))
        except InputError:
            continue
        if len(made) == 1:  # of some emitters each call is a trace of its own: no run as a whole
            found[path.name] = made[0]
    return found


@pytest.mark.parametrize(
    ("assertions", "never"), [(TRUE, Standing.FAILS), (FALSE, Standing.HOLDS)], ids=["true", "false"]
)
def test_no_emitter_s_trace_contradicts_what_happened(
    shared_data: Path, assertions: list[str], never: Standing
) -> None:
    decided: dict[str, int] = {}
    answered = 0
    for name, run in runs(shared_data / "traces" / "rosetta").items():
        told = ANSWER in (shared_data / "traces" / "rosetta" / name).read_text().replace("\\", "")
        answered += told
        findings = check(run, [*assertions, *ANSWERED] if told and assertions is TRUE else assertions)
        assert [each for each in findings if each.standing is never] == [], name
        decided[name] = sum(each.standing is not Standing.UNDECIDED for each in findings)
    assert len(decided) >= 12
    assert answered >= len(decided) - 2, "another file without it keeps its contents in a file of logs"
    whole = {"openinference.otlp.jsonl", "otel-genai-new.otlp.jsonl", "pydantic-ai.otlp.jsonl", "logfire.otlp.jsonl"}
    assert {name for name, count in decided.items() if count >= len(assertions)} >= whole


@pytest.mark.slow
def test_any_trace_of_anybody_s_can_be_asked(shared_data: Path) -> None:
    asked = 0
    for path in sorted((shared_data / "traces").rglob("*")):
        if path.is_dir() or path.stat().st_size > 3_000_000:
            continue
        try:
            made = build(open_spans(path))
        except InputError:
            continue
        for run in made[:3]:
            for finding in check(run, [*TRUE, *FALSE, "ends ok", "cost at most 1 usd", "called llm"]):
                assert finding.because
            asked += 1
    assert asked > 50
