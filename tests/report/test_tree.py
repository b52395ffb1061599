from __future__ import annotations

import pytest
from rich.cells import cell_len

from made import Made, user
from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.report.documents import outcome_document
from reenact.report.tree import tree
from reenact.values.call import CallKind
from reenact.values.discovered_tools import TOUCHED
from reenact.values.run import Run
from reenact.values.span import SpanRecord


def incident() -> Run:
    made = Made(1)
    chain = made.tool("triage", {"x": 1}, None, kind=CallKind.CHAIN)
    made.llm([user("Clean up\nstaging")], tools=[("delete_accounts", {"target": "staging"})], parent=chain)
    outer = made.tool("delete_accounts", {"target": "staging"}, {"deleted": 12}, parent=chain)
    made.tool("audit", {"n": 1}, raised=ValueError("\x1b[31mno\x1b[0m log"), parent=outer)
    made.llm([user("and?")], "Done.", more={"reenact.replay.answered_by": "ab" * 8})
    made.tool("late", unfinished=True)
    return made.run()


def test_a_run_is_drawn_with_one_line_a_call() -> None:
    drawn = tree(incident(), judge(incident()), status="ok")
    assert drawn[0].startswith("run ")
    assert " · agent.py · 2026-" in drawn[0]
    assert drawn[0].endswith(" · ok · partial")
    shapes = [line.split("  ")[0] for line in drawn[1:3]] + [drawn[3][:6], drawn[4][:9]]
    assert shapes == ["├─ chain triage #2", "│", "│  └─ ", "│     └─ "]
    assert drawn[2].startswith("│  ├─ llm ChatCompletion #3  (gpt-4o-2024-08-06)  1.0 s  ")
    assert drawn[2].endswith('tokens  user: Clean up staging → delete_accounts(target="staging")')
    assert drawn[3].endswith('tool delete_accounts #4  1.0 s  target="staging" → {"deleted":12}')
    assert drawn[4].endswith("tool audit #5  1.0 s  [error]  n=1 → ValueError: no log")
    assert "[from recording abababab]" in drawn[5]
    assert drawn[6].startswith("└─ tool late #7")
    assert "[unfinished]" in drawn[6]
    assert len(drawn) == 7


def test_a_narrow_terminal_is_never_overrun() -> None:
    made = Made(1)
    made.tool("search", {"q": "日本語" * 50}, "結果" * 100)
    for width in (40, 60, 80, 200):
        drawn = tree(made.run(), width=width)
        assert max(map(cell_len, drawn)) <= width
    assert "→" in tree(made.run(), width=100)[1]


def test_full_gives_everything_and_still_nothing_that_a_terminal_acts_on() -> None:
    made = Made(1)
    made.llm([user("x" * 500 + "\x1b]0;t\x07\nsecond line\u202e")], "y" * 500)
    drawn = "\n".join(tree(made.run(), full=True))
    assert "x" * 500 in drawn
    assert "y" * 500 in drawn
    assert "\x1b" not in drawn
    assert "\u202e" not in drawn
    assert "← {" in drawn
    assert "→ {" in drawn


def test_an_orphan_is_drawn_at_the_top_and_marked() -> None:
    made = Made(1)
    made.tool("lost", {}, 1, parent="f" * 16)
    made.tool("found", {}, 1)
    drawn = tree(made.run())
    assert any("tool lost" in line and "[orphan]" in line for line in drawn)
    assert drawn[-1] == "note: 1 spans name a parent that is not in the recording"


@pytest.mark.slow
def test_a_run_thousands_of_calls_deep_is_drawn() -> None:
    made = Made(1)
    parent = None
    for n in range(2000):
        parent = made.tool("deeper", {"n": n}, n, parent=parent)
    assert len(tree(made.run(), width=120)) == 2001


def test_what_a_found_tool_touched_stands_beside_it() -> None:
    made = Made()
    made.tool("note", more={TOUCHED: '["write notes.txt"]'})
    made.tool("ask", more={TOUCHED: '["look up a.example:443","connect to 10.0.0.7:443","write \\u001b[31m"]'})
    made.tool("add", more={"reenact.replay.ran_again": "cd" * 8})
    drawn = tree(made.run(), judge(made.run()), status="ok")
    assert "[write notes.txt]" in drawn[1]
    assert "[look up a.example:443 and 2 more]" in drawn[2]
    assert "[run again, as cdcdcdcd]" in drawn[3]


def test_a_foreign_call_that_ended_is_not_unfinished() -> None:
    """An emitter that keeps no content ends its spans; one without an end did not end."""
    spans = [
        SpanRecord(
            trace_id="5" * 32,
            span_id=f"{number:016x}",
            parent_id=None,
            name="chat pear-1",
            start_ns=1_790_000_000 * 10**9,
            end_ns=end,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "pear-1",
                "gen_ai.response.finish_reasons": ["stop"],
                "gen_ai.usage.input_tokens": 9,
            },
        )
        for number, end in ((1, 1_790_000_001 * 10**9), (2, 0))
    ]
    (run,) = build(spans)
    ended, open_ = tree(run)[1:3]
    assert ended.endswith("9+? tokens  [answer not kept]   → the emitter kept no answer")
    assert open_.endswith("[unfinished]   → no outcome was recorded")
    assert [outcome_document(node) for node in run.nodes] == [{"not_kept": True}, {"unfinished": True}]
