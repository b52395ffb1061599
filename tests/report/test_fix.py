from __future__ import annotations

from reenact.assess.fix import judge_fix
from reenact.replay.policy import After, Policy
from reenact.report.fix import judged, judgement_document
from reenact.report.suite import Row, suite, suite_document
from scripted import recorded, replayed

RUN = [
    ["llm", ["go"], {"name": "a", "arguments": {}}],
    ["tool", "a", {"text": "\x1b[31mred"}, "ok"],
    ["llm", ["ok"], "!"],
]


def test_a_judgement_is_said_with_its_condition_and_what_can_be_done() -> None:
    run = recorded(RUN)
    replay = replayed(run, [["llm", ["go on"], "!"]], Policy())
    lines = judged(judge_fix(run, replay.run, replay.result, ["never called a", "called llm"]))
    assert lines[0].startswith("unjudged: the replay left the recording in its wording (llm ChatCompletion #2: ")
    assert lines[1:] == [
        "  recorded fails, replay undecided: never called a",
        "  recorded holds, replay holds: called llm",
        "  next: --after nearest goes on with recorded answers, --after live-models asks the model itself",
    ]
    replay = replayed(run, [["llm", ["go on"], "!"], 2, ["llm", ["fine"], "!"]], Policy(after=After.NEAREST))
    lines = judged(judge_fix(run, replay.run, replay.result, ["never called a"]), after="nearest")
    assert lines[0].startswith("reproduced, if the model answers as recorded (nearest answers are no evidence): ")
    assert lines[1:] == ["  recorded fails, replay fails (no evidence): never called a"]


def test_what_a_trace_says_is_printed_inert() -> None:
    run = recorded(RUN)
    replay = replayed(run, [1, ["tool", "a", {"text": "\x1b[32m\u202egreen"}]], Policy())
    said = "\n".join(judged(judge_fix(run, replay.run, replay.result, ["called a exactly 2 times"])))
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_a_judgement_is_a_document_with_both_sides_one_for_one() -> None:
    run = recorded(RUN)
    replay = replayed(run, [1], Policy())
    document = judgement_document(judge_fix(run, replay.run, replay.result, ["never called a", "called llm"]))
    assert (document["word"], document["basis"], document["after"]) == ("fixed", "recorded", "writes")
    findings = document["findings"]
    assert isinstance(findings, dict)
    assert {side: [each["standing"] for each in found] for side, found in findings.items()} == {  # type: ignore[index,union-attr]
        "recorded": ["fails", "holds"],
        "replay": ["holds", "holds"],
    }
    assert document["first"]["call"] == "tool a #3"  # type: ignore[index,call-overload]


def test_a_suite_is_a_table_and_a_count() -> None:
    rows = [
        Row("same", "1b8a27bcd4c2", "cleanup", "same: 3 llm calls answered from the recording, 0 live", 1.25),
        Row("reproduced", "5e6f", "desk", "reproduced: `never called a` fails as recorded: …", 0.5),
        Row("same", "77aa", "x", "same: nothing", 12.0),
    ]
    assert suite(rows, 2.5) == [
        "same        1b8a27bcd4c2  cleanup    1.2 s  3 llm calls answered from the recording, 0 live",
        "reproduced  5e6f          desk       0.5 s  `never called a` fails as recorded: …",
        "same        77aa          x         12.0 s  nothing",
        "3 recordings: 2 same, 1 reproduced; 2.5 s",
    ]
    assert suite_document([], ["same", "same", "broken"], 1) == {
        "runs": [],
        "summary": {"same": 2, "broken": 1},
        "exit": 1,
    }
