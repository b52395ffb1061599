"""Texts that are made to be slow, deep or impossible: bounded, replaced whole where they must be; never an error."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counting import growth
from reenact.contracts.detector import Detector
from reenact.redact.engine import Engine
from reenact.redact.fields import TOKEN_MARK
from reenact.redact.plan import UNSCANNED, Plan, compiled
from reenact.redact.scan import Budget, Scanner, TooHard
from strategies_anchors import ANCHORS, FILLERS, SHAPES

SECRET = "ghp_" + "aB3dE5gH7j" * 3 + "aB3dE5"
MAIL = "jane.doe@corp-example.org"
ENGINE = Engine(salt="00" * 16, key=b"the store's own key", shared=False)


def search(text: str) -> Callable[[], object]:
    """Give one search, without what is remembered."""
    made = Engine(salt="00" * 16, key=b"the store's own key", shared=False)
    return lambda: made.text(text)


def of_length(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


@given(
    anchor=st.sampled_from([*ANCHORS, *SHAPES]),
    filler=st.sampled_from(FILLERS),
    more=st.integers(0, 40),
    tail=st.sampled_from(["", "}", "@", "=", "."]),
)
def test_no_repeated_anchor_makes_a_search_quadratic(anchor: str, filler: str, more: int, tail: str) -> None:
    unit = anchor + filler * more + tail
    assert growth(lambda size: search(of_length(unit, size)), 5_000) < 3


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "unit", ["%25", "\\u005c", "&amp;", "\\\\", '{"a":', "[", "=3D", "aGVsbG8gd29ybGQg" * 2, "é\u200b"]
)
def test_nothing_that_is_opened_makes_a_search_quadratic(unit: str) -> None:
    assert growth(lambda size: search(of_length(unit, size)), 12_500) < 3


COSTLY = Detector(name="costly", group="credentials", anchors=("zy",), pattern=r"zy[a-z]{0,4000}\d", after=4096)
SLOW: Plan = compiled("slow", [COSTLY])


@pytest.mark.slow
def test_a_text_that_takes_too_long_is_replaced_whole_and_counted() -> None:
    engine = Engine(SLOW, salt="00" * 16)
    text = "zy" * 100_000
    clean = engine.text(f"{SECRET} {text}")
    assert clean == engine.token(UNSCANNED, f"{SECRET} {text}")
    assert engine.replaced == {UNSCANNED: 1}
    document = json.dumps({"a": text})
    assert engine.attributes({"input.value": document, "n": 1}) == {
        "input.value": engine.token(UNSCANNED, document),
        "n": 1,
    }
    assert b"".join(engine.pieces([text.encode(), b"more"])).decode().startswith(f"{TOKEN_MARK}{UNSCANNED}_")


def test_the_limit_is_of_tries_and_not_of_time() -> None:
    scanner = Scanner([COSTLY])
    assert scanner.find("zy" * 100) == []
    budget = Budget(1_000)
    budget.spend(21_000)
    with pytest.raises(TooHard):
        budget.spend(2_000)


def test_much_that_is_found_is_no_reason_to_give_up() -> None:
    lines = [f"{number},user{number}@corp-example.org,+1 415 555 {number % 9000 + 1000:04d}" for number in range(5_000)]
    clean = ENGINE.text("\n".join(lines))
    assert UNSCANNED not in clean
    assert "corp-example" not in clean


class _Fails:
    def __getattr__(self, name: str) -> Any:
        raise MemoryError(name)


def test_an_engine_that_fails_lets_nothing_through_and_raises_nothing() -> None:
    engine = Engine(salt="00" * 16)
    engine._scanner = _Fails()  # type: ignore[assignment]
    secret = {
        "input.value": SECRET,
        "a": json.dumps({"a": SECRET}),
        "b": SECRET.encode(),
        "c": [SECRET],
        "d": {"e": SECRET},
    }
    clean = engine.attributes(secret)
    assert list(clean.values()).count(None) == 0
    assert SECRET not in repr(clean)
    assert SECRET.encode() not in b"".join(engine.pieces([SECRET[:9].encode(), SECRET[9:].encode()]))
    assert engine.replaced[UNSCANNED] >= 5


@pytest.mark.parametrize("depth", [30, 500, 2_000, 100_000])
@pytest.mark.parametrize("opens", ["[", '{"a":', '[{"b":'])
def test_depth_is_no_obstacle(depth: int, opens: str) -> None:
    closes = "".join({"[": "]", "{": "}"}[c] for c in reversed([c for c in opens if c in "[{"]))
    text = opens * depth + json.dumps(f"to {MAIL}") + closes * depth
    assert MAIL not in ENGINE.text(text)
    assert MAIL.encode() not in b"".join(ENGINE.pieces([text.encode()]))


def test_values_that_are_deep_are_replaced_whole() -> None:
    value: Any = SECRET
    for _ in range(3_000):
        value = [value]
    clean = ENGINE.attributes({"deep": value, "plain": "x"})
    assert clean["plain"] == "x"
    while isinstance(clean["deep"], tuple):
        (clean["deep"],) = clean["deep"]
    assert clean["deep"].startswith(f"{TOKEN_MARK}{UNSCANNED}_")


def test_threads_share_an_engine() -> None:
    engine = Engine(salt="00" * 16, key=b"the store's own key", shared=False)
    wrong: list[str] = []

    def work(number: int) -> None:
        for turn in range(60):
            text = json.dumps([{"n": f"{number}/{turn}", "to": f"{number}.{turn}{MAIL}", "k": SECRET}] * 3)
            with engine.counting() as counted:
                clean = engine.text(text)
            if MAIL in clean or SECRET in clean or counted != {"e_mail": 3, "github_token": 3}:
                wrong.append(clean)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert engine.replaced == {"e_mail": 8 * 60 * 3, "github_token": 8 * 60 * 3}
