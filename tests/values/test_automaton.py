"""Regular expressions in linear time: the same answers as `re`, for every pattern that is taken."""

from __future__ import annotations

import random
import re
import warnings

import pytest

from reenact.values.automaton import Automaton, PatternRefused, TooHard, automaton

ATOMS = (
    *(
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        r"\d",
        r"\w",
        r"\s",
        r"\b",
        r"\B",
        "^",
        "$",
        r"\A",
        r"\Z",
        "A",
        "é",
        "(?i:a)",
        "\n",
    ),
    *("0", "-", r"(?a:\w)", r"(?a:\b)", "(?s:.)", "(?m:^)", "(?m:$)", "(?:)"),
)
REPEATS = ("*", "+", "?", "{1,2}", "*?", "{2}", "{0}", "{2,}")
REFUSED = {
    "(?=a)b": "looks ahead or behind",
    "(?<!a)b": "looks ahead or behind",
    r"(a)\1": "a reference back",
    "(a)?(?(1)b|c)": "a condition on a group",
    "a*+b": "possessive",
    "(?>a|ab)c": "atomic",
    "[": "no regular expression",
    "(?:a{1000}){1000}": "too large",
    "((((a{50}){50}){50}){50})": "too large",
    "(" * 3000 + ")" * 3000: "nested too deep",
}


def drawn(chance: random.Random, depth: int = 0) -> str:
    """Draw a pattern."""
    how = chance.random()
    if depth > 3 or how < 0.4:
        return chance.choice(ATOMS)
    if how < 0.6:
        return drawn(chance, depth + 1) + drawn(chance, depth + 1)
    if how < 0.7:
        return f"(?:{drawn(chance, depth + 1)}|{drawn(chance, depth + 1)})"
    return f"({drawn(chance, depth + 1)}){chance.choice(REPEATS)}"


def test_the_answers_are_those_of_re() -> None:
    chance, compared = random.Random(3), 0
    while compared < 3000:
        pattern = chance.choice(["", "", "(?i)", "(?m)", "(?s)", "(?a)"]) + drawn(chance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                plain = re.compile(pattern)
            except re.error:
                continue
            ours = Automaton(pattern)
        for _ in range(3):
            text = "".join(chance.choice("abAB\n 0-éÉ_") for _ in range(chance.randint(0, 7)))
            assert ours.search(text) == (plain.search(text) is not None), (pattern, text)
            compared += 1


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "a.*b", "(.*a){25}b", "(a|aa)+$", "([a-z]+)*!$"])
def test_no_text_makes_a_pattern_slow(pattern: str) -> None:
    """Python's own `re` takes longer than there is time: the limit of a test ends it."""
    assert automaton(pattern).search("a" * 300_000 + "?") is False


@pytest.mark.slow
def test_what_costs_too_much_is_given_up() -> None:
    chance = random.Random(1)
    text = "".join(chance.choice("ab") for _ in range(200_000))
    with pytest.raises(TooHard):
        automaton("[ab]*a[ab]{200}c").search(text)


@pytest.mark.parametrize("pattern", REFUSED, ids=[pattern[:20] for pattern in REFUSED])
def test_what_is_none_of_an_automaton_s_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused, match=REFUSED[pattern]):
        Automaton(pattern)


@pytest.mark.parametrize("pattern", ["(?:(?:){60000}){60000}", "(?:a{0}){65000}", "(?:){1,4000}"])
def test_what_repeats_nothing_ends(pattern: str) -> None:
    assert Automaton(pattern).search("x")
