"""Built-in patterns are compiled where their first anchor is met, and find what they found when all were compiled."""

from __future__ import annotations

import json
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from golden_cases import GOLDEN
from reenact.contracts.detector import Detector
from reenact.redact import scan
from reenact.redact.plan import discovered
from reenact.redact.scan import Detection, Scanner

DETECTORS = discovered()


def examples() -> list[str]:
    """Give every text in which a detector is to find a value, or to find none."""
    texts: list[str] = []
    for path in sorted(Path(GOLDEN / "detectors").glob("*.json")):
        for each in json.loads(path.read_text(encoding="utf-8")).values():
            parts = (
                (item.get("before", ""), item["prefix"], item["rest"], item.get("after", "")) for item in each["found"]
            )
            texts += ["".join(part) for part in parts]
            texts += each["not"]
    return texts


EXAMPLES = examples()


@pytest.fixture(scope="module")
def compiled() -> Scanner:
    """Give a scanner that compiled every pattern at its start, as one does for patterns that are not built in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "built_in_patterns", frozenset)
        return Scanner(DETECTORS)


@pytest.fixture(scope="module")
def expected(compiled: Scanner) -> list[list[Detection]]:
    return [compiled.find(text) for text in EXAMPLES]


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the patterns that are compiled from now on."""
    done: list[str] = []
    compile_pattern: Callable[..., Any] = re.compile

    def counted(pattern: Any, *flags: Any) -> Any:
        done.append(str(pattern))
        return compile_pattern(pattern, *flags)

    monkeypatch.setattr(re, "compile", counted)
    return done


@pytest.fixture
def eager_switches() -> Iterator[None]:
    """Have threads take turns as often as the interpreter can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_a_scanner_compiles_no_built_in_pattern_before_an_anchor_of_it_is_met(compilations: list[str]) -> None:
    scanner = Scanner(DETECTORS)
    assert scanner.find("words without any anchor of a key") == []
    assert compilations == []
    [found] = scanner.find("gsk_" + "a1" * 24)
    assert found.name == "groq_key"
    assert len(compilations) <= 3, "only what shares an anchor with the key"
    before = len(compilations)
    scanner.find("gsk_" + "b2" * 24)
    assert len(compilations) == before, "each pattern is compiled once"


def test_patterns_compiled_on_demand_find_the_same_in_any_order(expected: list[list[Detection]]) -> None:
    order = list(range(len(EXAMPLES)))
    for seed in range(3):
        random.Random(seed).shuffle(order)
        scanner = Scanner(DETECTORS)
        assert [at for at in order if scanner.find(EXAMPLES[at]) != expected[at]] == []


@pytest.mark.slow
@pytest.mark.usefixtures("eager_switches")
def test_a_pattern_that_many_threads_meet_first_at_once_finds_the_same_for_each(
    expected: list[list[Detection]],
) -> None:
    together = "\n".join(EXAMPLES[:400])
    for round_number in range(4):
        scanner = Scanner(DETECTORS)
        re.purge()
        begin = threading.Barrier(12)
        wrong: list[int] = []
        wholes: list[list[Detection]] = []

        def search(
            at: int,
            begin: threading.Barrier = begin,
            scanner: Scanner = scanner,
            wrong: list[int] = wrong,
            wholes: list[list[Detection]] = wholes,
        ) -> None:
            begin.wait()
            wholes.append(scanner.find(together))
            wrong += [n for n in range(at, len(EXAMPLES), 97) if scanner.find(EXAMPLES[n]) != expected[n]]

        threads = [threading.Thread(target=search, args=(round_number * 12 + at,)) for at in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(wholes) == 12
        assert all(whole == wholes[0] for whole in wholes)
        assert wholes[0], "there is something to be found"


def test_a_pattern_that_is_not_built_in_is_compiled_at_the_start(compilations: list[str]) -> None:
    own = Detector(name="own_key", group="credentials", anchors=("own-",), pattern=r"own-[0-9]{8}")
    scanner = Scanner([*DETECTORS, own])
    assert compilations == [own.pattern]
    assert [each.name for each in scanner.find("own-12345678")] == ["own_key"]


def test_a_pattern_of_a_plug_in_that_is_none_is_refused_at_the_start() -> None:
    broken = Detector(name="own_key", group="credentials", anchors=("own-",), pattern=r"own-[0-9")
    with pytest.raises(re.error):
        Scanner([*DETECTORS, broken])
