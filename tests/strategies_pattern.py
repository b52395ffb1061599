"""Patterns as a policy may hold them, those that would be slow among them."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "[ab]",
        "[^a]",
        ".",
        r"\d",
        r"\w",
        "(?:a|b)",
        "(?:a|ab)",
        "(?:a|aa)",
        "(?:a{1,3}b)",
        "(a)",
        "x",
        r"\b",
    ]
)
REPEATS = st.sampled_from(["", "", "?", "{2}", "{0,3}", "{1,20}", "{1,60}", "{1,9}?", "+", "*"])
PATTERNS = st.recursive(
    st.lists(st.tuples(PIECES, REPEATS), min_size=1, max_size=4).map(
        lambda items: "".join(piece + ("" if piece == r"\b" else repeat) for piece, repeat in items)
    ),
    lambda inner: st.tuples(inner, REPEATS).map(lambda each: f"(?:{each[0]}){each[1]}"),
    max_leaves=3,
)
HOSTILE = ("a" * 300, "ab" * 150, "a" * 299 + "!", "ba" * 100 + "0" * 100)
"""Texts on which a pattern that tries many ways tries them all."""
