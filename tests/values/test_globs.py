"""Stars: the same answers as `.*`, without its ways."""

from __future__ import annotations

import random
import re

from reenact.values import globs


def test_the_answers_are_those_of_a_plain_pattern() -> None:
    chance = random.Random(1)
    for _ in range(5000):
        pattern = "".join(chance.choice("ab*?") for _ in range(chance.randint(0, 6)))
        text = "".join(chance.choice("ab\n?") for _ in range(chance.randint(0, 8)))
        plain = "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in pattern)
        wanted = re.fullmatch(plain, text, re.DOTALL) is not None
        assert (globs.compiled(pattern, one="?").fullmatch(text) is not None) is wanted, (pattern, text)


def test_many_stars_cost_no_more_than_one() -> None:
    """A pattern of `.*` for each star takes longer than there is time: the limit of a test ends it."""
    assert globs.compiled("*a" * 40 + "*b").fullmatch("a" * 20_000) is None
