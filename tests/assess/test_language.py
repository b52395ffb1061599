from __future__ import annotations

import re
import subprocess
import sys

import pytest

from desk import ROOT
from reenact.assess.language import parse, spell
from reenact.errors import AssertionInvalid, InputError
from reenact.values.assertion import Called, Calls, Condition, OnlyAfter, Op, Part, Placed

CANONICAL = {
    "called pay once": "called pay exactly 1 time",
    "called pay at least 1 times": "called pay",
    "called pay at most 0 times": "never called pay",
    "called pay where target is 'production'": 'called pay where target = "production"',
    "called pay where note = 'it\\'s \"here\"'": 'called pay where note = "it\'s \\"here\\""',
    "called pay where arguments.target is not 3": "called pay where target != 3",
    "called pay where arguments.result = 3": "called pay where arguments.result = 3",
    'answer = "done"': 'answer is "done"',
    "answer is grounded in the tool results": "answer grounded in the tool results",
    "arguments of pay fit their schema": "arguments of pay fit its schema",
    'arguments of pay are a: ("x" or "y"), b: list of (string or null)': 'arguments of pay are a: "x" or "y", '
    "b: list of (string or null)",
    'called "before" before "where"': 'called "before" before "where"',
    "called tool where x = 1": "called tool where x = 1",
    'called tool "where" where x = 1': 'called tool "where" where x = 1',
    'prose: answer says "yes" by "judges:polite"': 'prose: answer says "yes" by "judges:polite"',
}


@pytest.mark.parametrize("written", CANONICAL)
def test_there_is_one_spelling(written: str) -> None:
    (placed,) = parse(written)
    assert spell(placed.assertion) == CANONICAL[written]


def test_a_file_has_one_assertion_a_line_and_each_knows_its_place() -> None:
    text = '# safety\n\nnever called pay   # not "#1"\r\n  called pay only after check where note = "# no comment"\n'
    never, only = parse(text, source="safety.txt")
    assert never == Placed(assertion=Called(calls=Calls(name="pay"), least=0, most=0), place="safety.txt:3")
    condition = Condition(part=Part.ARGUMENTS, path=("note",), op=Op.EQUAL, value="# no comment")
    after = Calls(name="check", where=(condition,))
    assert only == Placed(assertion=OnlyAfter(calls=Calls(name="pay"), after=after), place="safety.txt:4")


@pytest.mark.parametrize(
    ("written", "column", "said"),
    [
        ("nevr called pay", 1, "'nevr' is not `answer`, `arguments`, `called`"),
        ("called", 7, "the line ends before a kind of call (tool, llm, http, …), a name or a string in quotes"),
        ("called pay where", 17, "the line ends before a field or a string in quotes"),
        ("called pay wher a = 1", 12, "`where` or the end of the line"),
        ("called pay where target = production", 27, "'production' is not"),
        ("called pay at least 0 times", 21, "always true"),
        ("called pay between 3 and 2 times", 26, "never true"),
        ("called pay exactly 1.5 times", 20, "a whole number"),
        ('answer matches "("', 8, "no regular expression"),
        ("answer < true", 8, "compares numbers, or strings"),
        ("cost at most 3", 14, "the unit usd"),
        ("tokens at most 3 usd", 16, "no unit"),
        ("called pay where call.colour = 1", 18, "call.status or call.model"),
        ("called pay where raised.code = 1", 18, "raised.message"),
        ('prose: answer says "x" at least 2', 33, "a score from 0 to 1"),
        ("answer grounded in documents", 20, "'documents' is not `the`"),
        ('answer is "\\q"', 11, "no string of JSON"),
        ("ends with exit code 2.5", 21, "a whole number"),
        ("price of x is -1 in, 2 out usd per million tokens", 15, "from 0 up"),
        ("never called pay never called refund", 18, "`where` or the end of the line"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place_and_what_was_expected(written: str, column: int, said: str) -> None:
    with pytest.raises(AssertionInvalid) as told:
        parse(f"called x\n{written}", source="checks.txt")
    error = told.value
    assert error.place == f"checks.txt:2:{column}", str(error)
    assert said in error.problem
    assert error.exit_code == 3
    assert isinstance(error, InputError)
    line, mark = error.hint.split("\n")
    assert line == written
    assert mark.index("^") == column + 1


def test_importing_reenact_and_its_assertions_loads_no_parser() -> None:
    program = "import sys, reenact, reenact.assertions, reenact.assess.check; print('lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


STARTS = (
    *("called ", "never ", "path ", "arguments of", "every ", "no call", "answer ", "answer.", "response", "status "),
    *("model ", "tokens ", "input ", "output ", "cost ", "duration ", "ends ", "prose:", "price "),
)


def test_every_line_that_the_documentation_shows_is_read() -> None:
    text = (ROOT / "docs" / "assertions.md").read_text(encoding="utf-8")
    shown = [each for each in re.findall(r"`([^`\n]+)`", text) if each.startswith(STARTS) and "…" not in each]
    shown += [line for line in text.split("\n") if line.startswith("prose: ")]
    assert len(shown) > 35
    for line in shown:
        assert parse(re.split(r" {2,}", line)[0]), line
