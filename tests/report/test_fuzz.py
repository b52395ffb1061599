"""What a search tells a person and a script."""

from __future__ import annotations

from dataclasses import replace

from reenact.report.fuzz import fuzz_document, fuzz_lines
from reenact.values.fuzz_outcome import Fuzzed
from reenact.values.variation import Basis, Case, Discovery, Edit, Group, Harm, Honesty, KeyField, Variation

ONE_FIELD = "1 ignored field that alters the path"
HEEDED = "altered, the key is not honest about it"
RUN = "b74b92efb0c1e8737582c5378644bc4c"
NULL = Variation(
    kind="null",
    group=Group.TOOLS,
    call="tool get_quote #4",
    node="n4",
    path="result.last",
    before=207.09,
    after=None,
    description="null",
    edits=(Edit(node="n4"),),
)
FOUND = Discovery(
    harm=Harm.CRASH,
    what="TypeError: 'NoneType'",
    where="trader_agent.py:84",
    basis=Basis.NEAREST,
    outcome="crash",
    case=Case(number=12, variations=(NULL,)),
    seen=3,
    run="0e004c084f83ffffffffffffffffffff",
    replays=True,
)
KEYS = (
    KeyField(field="reply.usage", calls=3, path=Honesty.ALTERED, first="llm x #5: body", run="ab" * 16),
    KeyField(field="reply.id", calls=3, path=Honesty.SAME),
)
TOLD = Fuzzed(
    run=RUN,
    name="trade",
    named=RUN[:12],
    seed=4,
    cases=60,
    tried={"tools": 40, "models": 20},
    kinds={"null": 9},
    runs=66,
    seconds=11.0,
    jobs=2,
    discoveries=(FOUND,),
    keys=KEYS,
    untouched={"chunks": "no retrieval is in the recording"},
    groups=tuple(group.value for group in Group),
)


def test_a_discovery_is_told_with_its_case_its_worth_and_the_commands_that_show_it() -> None:
    assert fuzz_lines(TOLD) == [
        f"found 1, 1 of them beyond the evidence, {ONE_FIELD}: trade b74b92efb0c1, 60 cases, seed 4",
        "  1. crash: TypeError: 'NoneType'  at trader_agent.py:84",
        "       tool get_quote #4: result.last: 207.09 → null  (null)",
        "       before it a request that nobody recorded got the nearest recorded answer: that part is no evidence",
        "       seen in 3 cases; again: reenact replay 0e004c084f83",
        "       as a fork: reenact fork b74b92efb0c1 --at '#4' --set result.last=null --after nearest",
        "  ignored field  calls  path",
        f"  reply.usage      3  {HEEDED}: llm x #5: body; again: reenact replay abababababab",
        "  reply.id         3  same",
        "  tried: 40 tools, 20 models",
        "  ways: 9 null",
        "  not tried: chunks: no retrieval is in the recording",
        "  66 runs of the program in 11.0 s, 6.0 a second, 2 at a time",
    ]


def test_the_document_says_the_same() -> None:
    told = fuzz_document(TOLD)
    assert (told["run"], told["seed"], told["cases"]) == (RUN, 4, 60)
    (found,) = told["found"]  # type: ignore[misc]
    assert found["basis"] == "nearest"
    assert found["again"] == "reenact replay 0e004c084f83"
    assert found["case"]["variations"][0]["before"] == 207.09
    assert told["keys"][0] == {  # type: ignore[index]
        "field": "reply.usage",
        "calls": 3,
        "path": "altered",
        "first": "llm x #5: body",
        "run": "ab" * 16,
    }


def test_a_run_that_cannot_be_replayed_is_shown_by_its_number() -> None:
    told = replace(
        TOLD, discoveries=(replace(FOUND, replays=False),), groups=("prompts",), command=("python", "a b.py")
    )
    assert (
        "again: reenact fuzz b74b92efb0c1 --seed 4 --only prompts --case 12 -- python 'a b.py'" in fuzz_lines(told)[4]
    )


def test_a_fork_is_offered_where_a_fork_has_a_word_for_it() -> None:
    status = replace(NULL, path="status", before=200, after=429, call="llm x #3")
    once = replace(status, edits=(Edit(node="n", before=True),))
    pair = (NULL, replace(NULL, call="tool b #6"))
    offered = []
    for variations in ((status,), (once,), pair, (replace(NULL, path=""),)):
        told = replace(TOLD, discoveries=(replace(FOUND, case=Case(number=1, variations=variations)),))
        offered.append(any("as a fork" in line for line in fuzz_lines(told)))
    assert offered == [True, False, False, False]


def test_what_a_stranger_wrote_moves_no_cursor() -> None:
    hostile = replace(NULL, after="\x1b[2Jgone\u202e", description="a\nb")
    told = replace(
        TOLD, discoveries=(replace(FOUND, case=Case(number=1, variations=(hostile,)), what="x\x1b]0;t\x07\n"),)
    )
    assert not any({"\x1b", "\u202e", "\n", "\x07"} & set(line) for line in fuzz_lines(told))


def test_nothing_found_says_so_and_what_was_left() -> None:
    told = replace(TOLD, discoveries=(), keys=(), cases=1, exhausted=True)
    lines = fuzz_lines(told)
    assert lines[0] == "nothing found: trade b74b92efb0c1, 1 case, seed 4"
    assert lines[1].endswith("; there is nothing left to vary")
    assert not told.found
