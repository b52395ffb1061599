"""What two runs printed: colours count, screens are folded, what differs from replay to replay is passed over."""

from __future__ import annotations

from typing import Any

import pytest

from reenact.compare.console_text import PrintedCompared, compare_printed
from reenact.compare.redraws import settled
from reenact.values.output import KILLED, Output, Piece, Stream

KEY = ("main", 0)


def printed(text: str, *, terminal: bool = False) -> dict[tuple[str, int], Output]:
    stream = Stream(pieces=(Piece("main", text),), digest=text, is_terminal=terminal)
    return {KEY: Output(streams={"stdout": stream})}


def compared(a: str, b: str, *, again: str | None = None, **kinds: Any) -> PrintedCompared:
    second = printed(again) if again is not None else None
    return compare_printed(printed(a), printed(b, **kinds), again=second)


def test_another_colour_is_a_divergence_and_no_colour_at_all_is_told() -> None:
    red, green, bare = "\x1b[31mfail\x1b[0m\n", "\x1b[32mfail\x1b[0m\n", "fail\n"
    (found,) = compared(red, green).divergences
    assert (found["a"], found["b"]) == ("fail (in colours 31, 0)", "fail (in colours 32, 0)")
    assert compared(red, bare).divergences == ()
    assert [each["kind"] for each in compared(red, bare).passed] == ["lines in colour"]
    assert compared(red, green, terminal=True).divergences == ()


def of_lanes(*pieces: tuple[str, str], ordered: tuple[str, ...] = ("main",)) -> dict[tuple[str, int], Output]:
    text = "".join(text for _, text in pieces)
    stream = Stream(pieces=tuple(Piece(*each) for each in pieces), digest=text)
    return {KEY: Output(streams={"stdout": stream}, threads=True, ordered=frozenset(ordered))}


@pytest.mark.parametrize(
    ("others", "line"),
    [
        ((("main", "one\n"), ("beat", "tick\n"), ("main", "two\n")), 0),
        ((("main", "one\ntwo\n"), ("beat", "tick\n")), 0),
        ((("main", "two\n"), ("beat", "tick\n"), ("main", "one\n")), 2),
        ((("beat", "tick\n"), ("main", "two\none\n")), 2),
    ],
)
def test_how_lanes_interleave_says_nothing_and_the_order_of_one_does(
    others: tuple[tuple[str, str], ...], line: int
) -> None:
    recorded = of_lanes(("beat", "tick\n"), ("main", "one\ntwo\n"))
    found = compare_printed(recorded, of_lanes(*others))
    assert [each["line"] for each in found.divergences][:1] == ([line] if line else [])
    assert compare_printed(recorded, of_lanes(*others, ordered=())).divergences == ()


def test_a_long_token_that_is_another_in_each_replay_is_passed_over() -> None:
    texts = [f"key {letter * 10}Q7x{letter * 9} of 3\n" for letter in "abc"]
    assert compared(texts[0], texts[1]).divergences != ()
    assert compared(texts[0], texts[1], again=texts[2]).divergences == ()
    assert compared(texts[0], texts[1], again=texts[1]).divergences != ()
    assert compared(texts[0], texts[1].replace("3", "4"), again=texts[2].replace("3", "4")).divergences != ()


@pytest.mark.parametrize("texts", [("1\n2\n3\n", "2\n1\n3\n", "1\n2\n3\n"), ("[1, 2]\n", "[2, 1]\n", "[1, 2]\n")])
def test_recorded_values_in_another_order_are_a_divergence_also_where_they_differ_from_replay_to_replay(
    texts: tuple[str, str, str],
) -> None:
    (found,) = compared(texts[0], texts[1], again=texts[2]).divergences
    assert found["line"] == 1
    others = [f"{number}\n{number + 1}\n3\n" for number in (1, 5, 8)]
    assert compared(others[0], others[1], again=others[2]).divergences == ()


def test_how_long_the_last_state_of_a_bar_took_is_passed_over() -> None:
    """Piped, rich prints the last state alone: nothing in it was written over."""
    bar = "Working... ━━━━━━━━━━━━ {} 0:00:0{}\n"
    assert compared(bar.format("100%", 1), bar.format("100%", 0)).divergences == ()
    assert compared(bar.format("6/6", 1), bar.format("6/6", 4)).divergences == ()
    assert compared(bar.format("100%", 1), bar.format("83%", 1)).divergences != ()


FRAME = "┏━━━┓\n┃ {} ┃\n┗━━━┛"
UP = "\r\x1b[2K" + "\x1b[1A\x1b[2K" * 2


@pytest.mark.parametrize("frames", [1, 2, 9])
def test_of_a_table_that_is_drawn_anew_the_last_state_counts(frames: int) -> None:
    def drawn(count: int, last: str) -> str:
        return "before\n" + UP.join([FRAME.format("…")] * count + [FRAME.format(last)]) + "\nbehind\n"

    assert compared(drawn(1, "x"), drawn(frames, "x")).divergences == ()
    (found,) = compared(drawn(1, "x"), drawn(frames, "y")).divergences
    assert (found["line"], found["a"]) == (3, "┃ x ┃")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ab\rc", "cb"),
        ("one\ntwo\x1b[1A\x1b[2Kup\n\nthree", "   up\ntwo\nthree"),
        ("a\nb\nc\x1b[2F\x1b[Jd", "d"),
        ("abc\x1b[2D\x1b[Kx", "ax"),
        ("\x1b[31mred\x1b[0m\x1b[5Gx", "red x"),
        ("a\bb", "b"),
    ],
)
def test_a_screen_is_folded_as_a_terminal_does(text: str, left: str) -> None:
    assert settled(text) == left


def of_a_thread(number: str, *ids: int) -> dict[tuple[str, int], Output]:
    text = f'{{"thread": {number}}}\n'
    stream = Stream(pieces=(Piece("main", text),), digest=text)
    return {KEY: Output(streams={"stdout": stream}, thread_ids=frozenset(ids), ended_ns=1)}


PLACEHOLDER = "REDACTED_fr_nir_4aa158f708014f337cf2"


@pytest.mark.parametrize(
    ("one", "other", "kinds"),
    [
        (of_a_thread("140", 140), of_a_thread("139", 139), ["thread ids"]),
        (of_a_thread("140", 140), of_a_thread(PLACEHOLDER, 139), ["thread ids"]),
        (of_a_thread("140", 140), of_a_thread(f'"{PLACEHOLDER}"', 139), ["thread ids"]),
        (of_a_thread('"140"', 140), of_a_thread(f'"{PLACEHOLDER}"', 139), ["thread ids"]),
        (of_a_thread("140", 140), of_a_thread("141", 139), None),
        (of_a_thread("140"), of_a_thread(PLACEHOLDER, 139), None),
        (of_a_thread(PLACEHOLDER), of_a_thread(f"{PLACEHOLDER[:-1]}3"), None),
    ],
    ids=[
        "each its own",
        "one that redaction takes for a number of a person",
        "a number that redaction makes a text",
        "a text before redaction and behind it",
        "not its own",
        "no thread",
        "two hidden",
    ],
)
def test_the_id_of_a_thread_of_its_own_run_is_passed_over(
    one: dict[tuple[str, int], Output], other: dict[tuple[str, int], Output], kinds: list[str] | None
) -> None:
    found = compare_printed(one, other)
    assert (found.divergences == ()) == (kinds is not None)
    assert [each["kind"] for each in found.passed] == (kinds or [])


def test_what_a_killed_process_may_have_printed_is_no_divergence_and_is_told() -> None:
    killed = {KILLED: Output(lost="it was ended")}
    job = {("main/p:job#1", 1): printed("a\n")[KEY]}
    found = compare_printed(printed("1\n") | killed, printed("1\n") | job)
    assert (found.divergences, found.notes) == ((), ("it was ended",))
    assert compare_printed(printed("1\n") | killed, printed("2\n") | job).divergences != ()
    assert compare_printed(printed("1\n"), printed("1\n") | job).divergences != ()


def test_frames_of_a_group_of_errors_are_passed_over_and_the_errors_are_not() -> None:
    group = """  + Exception Group Traceback (most recent call last):
  |   File "{0}.py", line {1}, in run
  |     go()
  | ExceptionGroup: unhandled (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "{0}.py", line 1, in go
    | OSError: first
    |{2}
    | The above exception was the direct cause of the following exception:
    |
    | Traceback (most recent call last):
    |   File "{0}.py", line {1}, in go
    | ValueError: {3}
    +------------------------------------
"""
    first = group.format("a", 1, "", "no")
    assert compared(first, group.format("b", 22, " ", "no")).divergences == ()
    assert compared(first, group.format("a", 1, "", "yes")).divergences != ()
