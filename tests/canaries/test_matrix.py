"""The matrix of canaries: every path out of a recorded agent, every spelling of a value; nothing promised is found."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from canaries.encodings import ENCODINGS
from canaries.matrix import Matrix, Part, everything, parts_of
from canaries.promises import EXCEPTIONS
from canaries.recorded import EVERY, OF_PROCESS, STREAMED
from canaries.searching import Cell
from canaries.values import CLASSES

SOME = (
    ("e_mail", "JSON in JSON, all \\u"),
    ("known_secret", "plain"),
)
CUT = (
    ("github_token", "chat text", "plain"),
    ("payment_card", "yielded", "plain"),
)
THOROUGH = ("github_token", "known_secret")
"""Classes that go along every path: one that is known by its form, one by its value. The others go along a few."""
FEW = (
    "run user",
    "chat prompt",
    "chat tool schema",
    "query of a model call",
    "chat answer",
    "messages tool call",
    "error of status 400",
    "tool argument, nested",
    "tool result, bytes",
    "exception of a tool",
    "generator",
    "name of a tool",
    "body of a plain call, form",
    "answer of a plain call",
    "answer of a plain call, zipped",
    "redirect",
    "service: query",
    "service: body",
)
PROMISED = [each.name for each in ENCODINGS if not each.not_promised]


CARRIED = [path for path in EVERY if path not in OF_PROCESS]


def _held(matrix: Matrix, shown: Sequence[Cell] | None = None) -> None:
    """Assert that nothing promised was found, and that with redaction off all of `shown` was (all, by default)."""
    sys.stdout.write(matrix.told() + "\n")
    assert matrix.never_there(matrix.cells if shown is None else shown) == []
    assert matrix.wrong() == []


@pytest.mark.timeout(300)
def test_nothing_that_is_promised_is_found(tmp_path: Path) -> None:
    part = Part(rows=SOME, streams=CUT, deaths=[("payment_card", "plain")])
    shown = Part(rows=SOME[:1], streams=CUT[1:])
    matrix = everything(tmp_path, [part, Part(rows=SOME[:1], facts=True)], [shown], looked_at=1)
    _held(matrix, [cell for cell in matrix.cells if (cell.name, cell.encoding) in SOME[:1] and cell.path in CARRIED])
    assert {cell.path for cell in matrix.cells} >= set(EVERY)
    assert sum(not matrix.void(cell) for cell in matrix.cells) > 0.9 * len(matrix.cells)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CLASSES)
def test_every_encoding_on_every_path(name: str, tmp_path: Path) -> None:
    thorough = name in THOROUGH
    parts = parts_of([(name, encoding.name) for encoding in ENCODINGS], () if thorough else FEW)
    matrix = everything(tmp_path, parts, parts if name == THOROUGH[0] else (), looked_at=2)
    _held(matrix, None if name == THOROUGH[0] else ())
    assert len(EVERY) >= 30
    assert len(PROMISED) >= 35


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", STREAMED)
def test_every_class_cut_at_every_place_of_a_stream(kind: str, tmp_path: Path) -> None:
    part = Part(streams=[(name, kind, "plain") for name in CLASSES])
    _held(everything(tmp_path, [part], [part]))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["chat text", "as it stands"])
def test_every_encoding_cut_at_every_place_of_a_stream(kind: str, tmp_path: Path) -> None:
    some = [PROMISED[at::6] for at in range(6)]
    parts = [Part(streams=[("github_token", kind, encoding) for encoding in each]) for each in some]
    _held(everything(tmp_path, parts, ()), ())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(6))
def test_a_process_that_is_killed_inside_a_value(first: int, tmp_path: Path) -> None:
    part = Part(deaths=[(name, "plain") for name in [*CLASSES][first::6]])
    _held(everything(tmp_path, [part], [part]))


def test_what_is_not_promised_is_told_in_the_documentation(root: Path) -> None:
    told = " ".join((root / "docs" / "redaction-canaries.md").read_text().split())
    for each in EXCEPTIONS:
        assert each.said in told, f"not told: {each.said}"
        assert each.why in told, f"not told: {each.why}"
    for encoding in ENCODINGS:
        assert f"| {encoding.name} |" in told
