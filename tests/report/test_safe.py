from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from reenact.report.paint import painted
from reenact.report.safe import clean, fitted, lines, one_line

HOSTILE = st.text(
    st.sampled_from("\x1b[]();0123mHJ?PX^_\\\x07\x9b\x9c\x9d\x90\r\n\t\u202e\u2066\u200b\ufeff\U000e0041\ud800ab ")
    | st.characters()
)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b2Jgone", "gone"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;cm0gLXJm\x07paste", "paste"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1b\x1b[m[31mtwice", "[31mtwice"),
        ("pay\u202eeman", "payeman"),
        ("user\u2066name\u2069", "username"),
        ("a\u200bb\ufeffc", "abc"),
        ("hidden\U000e0041\U000e0042", "hidden"),
        ("over\rwrite\r\nnext", "over\nwrite\nnext"),
        ("bell\x07 back\x08 nul\x00", "bell back nul"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ("[bold]no markup[/nope]", "[bold]no markup[/nope]"),
        ("日本語 émoji 👩‍💻\ttab", "日本語 émoji 👩‍💻\ttab"),
    ],
)
def test_what_a_terminal_could_act_on_is_taken_out_and_the_rest_stays(text: str, safe: str) -> None:
    assert clean(text) == safe


@given(HOSTILE)
def test_nothing_is_left_to_act_on_and_cleaning_twice_is_cleaning_once(text: str) -> None:
    found = clean(text)
    assert not [c for c in found if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert not [c for c in found if unicodedata.bidirectional(c) in {"LRO", "RLO", "LRE", "RLE", "PDF", "LRI", "RLI"}]
    assert clean(found) == found
    found.encode()


@given(st.text(st.characters(exclude_categories=["C"], exclude_characters="\u2028\u2029")))
def test_ordinary_text_passes_unchanged(text: str) -> None:
    assert clean(text) == text


@given(st.lists(HOSTILE, max_size=4), st.booleans())
def test_whatever_a_line_holds_only_our_own_colours_reach_the_terminal(texts: list[str], color: bool) -> None:  # noqa: FBT001
    printed = painted([one_line(text) for text in texts], color=color)
    assert printed.count("\n") == len(texts)
    if not color:
        assert "\x1b" not in printed
    plain = printed
    while "\x1b[" in plain:
        begin = plain.index("\x1b[")
        end = plain.index("m", begin)
        assert set(plain[begin + 2 : end]) <= set("0123456789;")
        plain = plain[:begin] + plain[end + 1 :]
    assert plain == "".join(f"{one_line(text)}\n" for text in texts)


def test_unending_sequences_cost_no_more_than_their_length() -> None:
    """Were it their square, a million of them would take hours."""
    assert "\x1b" not in clean("\x1b]" * 1_000_000)
    assert "\x1b" not in clean("\x1b[" + "0" * 2_000_000)


@given(st.text(st.characters(exclude_categories=["C"]), max_size=60), st.integers(1, 40))
def test_a_fitted_line_takes_no_more_cells_than_it_may(text: str, width: int) -> None:
    assert cell_len(fitted(text, width)) <= max(width, 1)
    assert fitted(text, None) == text


def test_a_line_feed_in_a_text_makes_two_lines() -> None:
    assert lines(["a\nb", "", "c\td "]) == ["a", "b", "", "c   d"]
