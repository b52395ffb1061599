from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from made import Made, user
from reenact.compare.align import compare
from reenact.compare.judge import judge_replay
from reenact.graph.verdict import judge
from reenact.report import diff as diffs
from reenact.report import replay as replays
from reenact.report.doctor import doctor
from reenact.report.documents import replay_document
from reenact.values.effects import Seal, seals
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult
from reenact.values.run import Grade, KitItem, Reason, Run, Verdict


def deleting(seed: int, target: str = "staging", says: str = "Done.") -> Run:
    made = Made(seed)
    made.llm([user("go")], tools=[("delete", {"target": target})])
    made.tool("delete", {"target": target}, 1)
    made.llm([user("go"), user("and?")], says)
    return made.run()


def replayed(run: Run, *entries: dict[str, Any], code: int = 0) -> ReplayResult:
    ledger = [{"t": "guard", "world": seals(Seal.WATCHED, Seal.ENFORCED, Seal.WATCHED)}, {"t": "joined"}, *entries]
    return judge_replay(run, (), None, ledger, exit_code=code, recorded_exit=0)


def answers(run: Run) -> list[dict[str, Any]]:
    return [{"t": "answered", "id": node.id, "kind": node.kind.value} for node in run.nodes if node is not run.root]


def test_a_diff_begins_with_the_first_divergence() -> None:
    found = diffs.diff(compare(deleting(1), deleting(2, "production", "Ok.")))
    assert found == [
        (
            "diverged: llm ChatCompletion #2: reply.messages[0].tool_calls[0].arguments.target: "
            'a "staging", b "production"'
        ),
        "3 calls in a, 3 in b; 2 structural divergences, 1 of wording",
        '  ~  llm ChatCompletion #2: reply.messages[0].tool_calls[0].arguments.target: a "staging", b "production"',
        '  ~  tool delete #3: arguments.target: a "staging", b "production"',
        '  ~· llm ChatCompletion #4: reply.messages[0].content: a "Done.", b "Ok."',
    ]


def test_a_diff_of_the_same_is_one_line() -> None:
    assert diffs.diff(compare(deleting(1), deleting(2))) == ["same: 3 calls, no difference"]


def test_a_diff_of_words_says_that_the_path_is_the_same() -> None:
    assert diffs.first_line(compare(deleting(1), deleting(2, says="Ok."))).startswith("same path, other words: llm ")


def test_a_long_diff_is_cut_and_says_so() -> None:
    a, b = Made(1), Made(2)
    for n in range(9):
        a.tool("t", {"n": n, "m": 1, "o": 1}, 1)
        b.tool("t", {"n": n + 100, "m": 2, "o": 2}, 1)
    found = diffs.diff(compare(a.run(), b.run()), most=4)
    assert found[-1] == "  … 5 more not shown"
    assert found[3] == "      also arguments.n, arguments.o"


def test_texts_that_part_far_in_are_shown_where_they_part() -> None:
    a, b = Made(1), Made(2)
    a.llm([user("x" * 900 + "staging" + "y" * 900)], "ok")
    b.llm([user("x" * 900 + "production" + "y" * 900)], "ok")
    line = diffs.first_line(compare(a.run(), b.run()))
    assert "staging" in line
    assert "production" in line
    assert len(line) < 500


def test_a_replay_that_is_the_same_says_what_was_answered() -> None:
    run = deleting(1)
    found = replays.replayed(replayed(run, *answers(run)), recorded=run.id, commits=("a" * 40, "b" * 40))
    assert found == [
        "same: 2 llm, 1 tool calls answered from the recording, 0 live",
        "  outside world: enforced: network; watched: files, unix sockets, processes, shared memory, signals",
        "  commit recorded aaaaaaaaaaaa, now bbbbbbbbbbbb",
    ]


def test_a_replay_that_diverged_says_so_first_then_what_else_and_what_next() -> None:
    run = deleting(1)
    delete = run.nodes[2]
    fields = [{"field": "arguments.target", "recorded": "staging", "replay": "production"}]
    fields.append({"field": "arguments.force", "recorded": None, "replay": True})
    miss = {"t": "miss", "call": delete.label, "nearest": delete.id, "reason": "", "first": True, "absent": []}
    refused = {"t": "refused", "what": "connect to x", "where": "a.py:1", "hint": "declare it with @reenact.tool"}
    ledger = [answers(run)[0], {**miss, **fields[0], "differences": fields}, refused]
    result = replayed(run, *ledger, code=1)
    assert replays.replayed(result, recorded=run.id) == [
        'diverged: tool delete #3: arguments.target: recorded "staging", replay "production"',
        "  1 llm calls answered from the recording, 0 live",
        "  also tool delete #3: arguments.force: recorded null, replay true",
        "  1 recorded calls lie behind the place where the replay stopped",
        "  refused: connect to x at a.py:1; declare it with @reenact.tool",
        "  outside world: enforced: network; watched: files, unix sockets, processes, shared memory, signals",
        f"  next: reenact show {run.id[:12]}",
    ]


def test_what_was_ignored_given_up_or_left_is_told() -> None:
    run = deleting(1)
    ignored = {"t": "ignored", "id": "x", "call": "llm", "field": "url", "recorded": "a", "replay": "b"}
    released = {"t": "released_out_of_order", "granted": 5, "passed": [3, 4], "count": 2}
    found = replays.replayed(replayed(run, *answers(run), ignored, ignored, released, {"t": "left", "id": "x"}))
    assert found[2:] == [
        "  matched, although these differ: url (2 calls)",
        "  the recorded order of answers was given up 1 times, 2 skipped",
        "  1 streams were left early that had been read to the end",
    ]


def test_a_replay_that_cannot_be_judged_says_why_and_how_it_could() -> None:
    result = judge_replay(deleting(1), (), None, [], exit_code=0, recorded_exit=0)
    assert replays.first_line(result) == "unjudged: the program never joined the replay"
    assert replays.replayed(result, recorded="f" * 32)[-1].startswith("  next: give the program after `--`")


def test_a_replay_that_one_copied_folder_could_not_hold_names_the_world_that_can() -> None:
    result = judge_replay(deleting(1), (), None, [], exit_code=0, recorded_exit=0)
    told = replace(result, answered={"tool": 1}, world={"files copied in": "/app"})
    assert replays.replayed(told, recorded="f" * 32)[-1] == (
        "  next: replay it where every file can be a copy, with namespaces (docs/sealed-replay.md)"
    )


def test_a_replay_of_a_killed_run_says_how_far_it_came() -> None:
    result = ReplayResult(result="same", ended_with="tool a #3")
    assert replays.first_line(result).startswith("same, up to where the recording ends: tool a #3 ")


def test_the_doctor_names_each_loss_once_with_its_cure_and_the_kit() -> None:
    lost = [Reason(call=f"llm c #{n}", field="reply", lost="its bytes\nare gone", fix="keep it") for n in range(5)]
    kit = (KitItem(name="commit", state="present", detail="abc"), KitItem(name="seed", state="missing", fix="set it"))
    verdict = Verdict(grade=Grade.PARTIAL, reasons=tuple(lost), kit=kit, redacted=2)
    assert doctor(verdict) == [
        "partial, up to redaction (2 values replaced): it can be replayed, less what is named here",
        "  llm c #0, llm c #1, llm c #2 and 2 more: reply: its bytes are gone",
        "      keep it",
        "replay kit",
        "  + commit  abc",
        "  - seed    missing; set it",
    ]


def test_the_doctor_speaks_of_a_real_run() -> None:
    found = doctor(judge(deleting(1)))
    assert found[0].startswith(("exact", "partial"))
    assert any(line.startswith("  + system prompt") or "inputs" in line for line in found)


def test_no_report_lets_a_trace_speak_to_the_terminal() -> None:
    evil = "\x1b]0;x\x07\u202e\x9b2J\nfake: same"
    a, b = Made(1), Made(2)
    a.tool(f"t{evil}", {"n": evil}, evil)
    b.tool(f"t{evil}", {"n": f"{evil}!"}, evil)
    run = a.run()
    entry = {"t": "miss", "call": f"tool {evil}", "field": evil, "reason": evil, "first": True}
    texts = [
        *diffs.diff(compare(run, b.run())),
        *replays.replayed(replayed(run, entry, {"t": "refused", "what": evil, "where": evil, "hint": evil})),
        *doctor(Verdict(grade=Grade.NONE, reasons=(Reason(call=evil, field=evil, lost=evil, fix=evil),))),
    ]
    assert not [text for text in texts if set(text) & set("\x1b\x07\x9b\u202e\n\r")]


@pytest.mark.parametrize(("result", "why"), [("same", ""), ("diverged", ", which may be why")])
def test_a_replay_of_a_partial_recording_names_what_that_lacks(result: str, why: str) -> None:
    lacks: list[dict[str, Json]] = [{"call": "run", "field": "end", "lost": f"nobody saw {n}"} for n in range(5)]
    lacks += [{"call": f"tool pay #{n}", "field": "end", "lost": "nobody saw 0"} for n in range(2)]
    told = ReplayResult(result=result, lacks=lacks)
    lines = replays.replayed(told)
    assert f"  the recording is partial{why}: run and 2 more: end: nobody saw 0" in lines
    assert sum("the recording is partial" in each for each in lines) == 3
    assert "  … 2 more that it lacks: `reenact doctor` lists them" in lines
    assert replay_document(told)["lacks"] == lacks
