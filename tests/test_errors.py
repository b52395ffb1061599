"""Exit codes by which a script tells errors apart."""

from __future__ import annotations

import pytest

from reenact import errors


@pytest.mark.parametrize(
    ("name", "code"),
    [("CannotJudge", 125), ("InputError", 3), ("UsageError", 2)],
)
def test_an_error_has_the_exit_code_that_the_documentation_names(name: str, code: int) -> None:
    """125 has `git bisect run` skip a commit."""
    assert getattr(errors, name).exit_code == code
