"""What takes time, measured: `make bench` runs these in the environment of the tests. No other test looks at a clock.

Each fails past a bound that is far from what it takes on a quiet machine. What can be counted instead is (`counting`).
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given

from golden_cases import GOLDEN
from reenact.assess.grounding import pieces
from reenact.contracts.detector import Detector
from reenact.encodings import python_repr
from reenact.redact.engine import Engine
from reenact.redact.patterns import PatternRefused, linear
from reenact.redact.plan import discovered
from reenact.redact.scan import Scanner, TooHard
from reenact.redact.tables import cells
from reenact.values import typed
from reenact.values.json import Json, compact
from reenact.values.masks import masks_in, may_be
from strategies_anchors import ANCHORS, FILLERS, SHAPES
from strategies_pattern import HOSTILE, PATTERNS

pytestmark = pytest.mark.bench

DETECTORS = discovered()
ROWS = [pytest.param(row, id=f"{row.name}-{number}") for number, row in enumerate(DETECTORS)]
EXAMPLES = {
    name: held["found"]
    for path in sorted((GOLDEN / "detectors").glob("*.json"))
    for name, held in json.loads(path.read_text(encoding="utf-8")).items()
}


def seconds(work: Callable[[], object]) -> float:
    """Measure the processor time of this thread, so that a busy machine matters little."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


COSTS = """
import datetime, json, os, random, secrets, sys, time, uuid
from time import perf_counter_ns
import reenact
from reenact.boundary import tape

now = datetime.datetime.now
SOURCES = {
    "time.time": lambda: time.time(),
    "time.time_ns": lambda: time.time_ns(),
    "datetime.now": lambda: datetime.datetime.now(),
    "datetime.now(UTC)": lambda: datetime.datetime.now(datetime.UTC),
    "date.today": lambda: datetime.date.today(),
    "time.localtime": lambda: time.localtime(),
    "time.strftime": lambda: time.strftime("%Y"),
    "uuid.uuid1": lambda: uuid.uuid1(),
    "uuid.uuid4": lambda: uuid.uuid4(),
    "random.random": lambda: random.random(),
    "random.randint": lambda: random.randint(1, 6),
    "random.Random": lambda: random.Random(),
    "os.urandom": lambda: os.urandom(16),
    "secrets.token_hex": lambda: secrets.token_hex(16),
}
call = reenact.tool(lambda: 1)
costs = {}
for name, draw in SOURCES.items():
    draw()
    best = float("inf")
    for _ in range(9):
        began = perf_counter_ns()
        for _ in range(900):
            draw()
        best = min(best, (perf_counter_ns() - began) / 900)
    call()
    costs[name] = best
print(json.dumps([tape.is_on(), costs]))
"""


def test_what_a_draw_costs(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    program = tmp_path / "costs.py"
    program.write_text(COSTS)

    def measured(*words: str) -> tuple[bool, dict[str, float]]:
        done = subprocess.run(
            [sys.executable, *words, str(program)], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        on, costs = json.loads(done.stdout)
        return on, costs

    (off, bare), (on, taped) = measured(), measured("-m", "reenact", "run", "-q", "--", sys.executable)
    assert (off, on) == (False, True)
    assert bare.keys() == taped.keys()
    for name, cost in taped.items():
        figure = f"a draw, ns: {name:18} {bare[name]:6.0f} bare, {cost:6.0f} taped, {cost - bare[name]:+6.0f}"
        record_property("figure", figure)


def hostile(row: Detector, size: int) -> list[str]:
    """Give texts that are made to be slow: beginnings over and over, none of which comes to an end."""
    begun = row.anchors[0].replace("A", "b").replace("0", "7") if row.run else row.anchors[0]
    fillers = ["a", "7", "7 ", "aB3-", "a.", ".7", "7-7", " ", "A7", "=", "::7", "\\"]
    made = [
        begun * (size // len(begun)),
        begun + "a" * size,
        begun + "a1" * (size // 2),
        *((f * size)[:size] for f in fillers),
    ]
    made += [(begun + filler) * (size // len(begun + filler)) for filler in fillers]
    for item in EXAMPLES[row.name][:2]:
        value = item["prefix"] + item["rest"]
        text = item.get("before", "") + value + item.get("after", "")
        made += [
            text[: text.index(value) + len(value) // 2] * (size // max(1, len(text) // 2)),
            value[:-1] * (size // len(value)),
        ]
    return [each[:size] for each in made]


def searched(scanner: Scanner, text: str) -> None:
    with suppress(TooHard):  # given up is replaced whole
        scanner.find(text)


def least(scanner: Scanner, text: str) -> float:
    return min(seconds(partial(searched, scanner, text)) for _ in range(3))


@pytest.mark.parametrize("row", ROWS)
def test_four_times_the_text_is_four_times_the_work(row: Detector) -> None:
    """A quadratic pattern needs sixteen times; processor time of the thread, so that a busy machine does not matter."""
    scanner = Scanner([row])
    for small, large in zip(hostile(row, 6_000), hostile(row, 24_000), strict=True):
        took = least(scanner, large)
        if took > 0.02:
            assert took < 9 * max(least(scanner, small), 0.002), large[:60]
        assert took < 3.0, large[:60]


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("part", range(4))
def test_no_anchor_at_all_takes_long_repeated(filler: str, part: int) -> None:
    for anchor in [*ANCHORS, *SHAPES][part::4]:
        unit = anchor + filler
        text = (unit * (20_000 // len(unit) + 1))[:20_000]
        engine = Engine(salt="00" * 16, key=b"the store's own key", shared=False)
        took = seconds(partial(engine.text, text))
        assert took < 1.5, (anchor, filler, took)


@given(PATTERNS)
def test_a_pattern_that_is_taken_is_quick_on_texts_made_to_be_slow(pattern: str) -> None:
    try:
        linear(pattern)
    except PatternRefused:
        return
    compiled = re.compile(pattern, re.ASCII)
    for text in HOSTILE:
        assert seconds(lambda text=text: [compiled.match(text, start) for start in range(40)]) < 2.0, pattern


def test_hostile_texts_take_no_time() -> None:
    for unit in ("a1B", "-", ".", "a_", "a.", "1,", '"', "Ab", "/."):
        assert seconds(lambda unit=unit: list(pieces(unit * 50_000))) < 3, unit
    for text in ('"' * 10**6, "[" * 10**6, "[A_" * 10**5, "\\" * 10**6, "[Scrubbed due to '" * 10**4, '"a":"' * 10**5):
        assert seconds(lambda text=text: (masks_in(text), may_be(text, text))) < 3, text[:20]
    for text in (f"[{', '.join(['1'] * 20_000)}]", "[" * 100_000, "'" + "\\'" * 50_000):
        assert seconds(lambda text=text: python_repr.read(text)) < 3, text[:20]


def test_a_plain_dict_of_8_kb_takes_microseconds() -> None:
    value: dict[str, Json] = {
        "rows": [{"role": "user", "text": "twelve words of it " * 4, "n": n, "x": [1, 2.5, None]} for n in range(65)]
    }
    assert 8_000 < len(compact(value)) < 10_000
    rounds = 300
    took = min(seconds(lambda: [typed.encode(value) for _ in range(rounds)]) for _ in range(3)) / rounds
    assert took < 500e-6


def test_tables_cost_no_more_than_their_length() -> None:
    chance = random.Random(4)
    texts = {
        "headings without end": "user,password\n" * 20_000,
        "rules": "| password |\n|---|\n" * 20_000,
        "one wide line": "password," * 40_000 + "\n" + "a," * 40_000,
        "quotes": '"password,' * 20_000 + "\n" + '"' * 100_000,
        "noise": "".join(chance.choice('password,|\n"- ') for _ in range(200_000)),
    }
    for name, text in texts.items():
        places = [at for at in range(len(text)) if text.startswith("password", at)]
        began = time.process_time()
        for _ in cells(text, places):
            pass
        assert time.process_time() - began < 20, name  # minutes, were it the square
