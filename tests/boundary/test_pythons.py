from __future__ import annotations

import pytest

from reenact.boundary.pythons import isolates


@pytest.mark.parametrize(
    ("words", "shut_off"),
    [
        ("-I -c x", True),
        ("-W ignore -I -c x", True),
        ("-X utf8 -S agent.py", True),
        ("-bE agent.py", True),
        ("--check-hash-based-pycs never -E agent.py", True),
        ("-WIgnore agent.py", False),
        ("-W I agent.py", False),
        ("agent.py -I", False),
        ("-c x -I", False),
        ("-m agent -S", False),
        ("- -I", False),
        ("", False),
    ],
)
def test_a_python_is_shut_off_by_flags_wherever_they_stand(words: str, shut_off: bool) -> None:  # noqa: FBT001
    assert isolates(words.split()) is shut_off
