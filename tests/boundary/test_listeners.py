"""What a program asks of this machine alone, and what of others."""

from __future__ import annotations

import socket

import pytest

from reenact.boundary.listeners import is_this_machine


@pytest.mark.parametrize(
    ("host", "expected"),
    [(None, True), ("localhost", True), ("127.0.0.9", True), ("example.com", False), ("10.1.2.3", False)],
)
def test_only_this_machine_is_asked_for_its_names(host: str | None, *, expected: bool) -> None:
    assert is_this_machine(host) is expected


def test_the_name_that_a_machine_has_is_one_of_them() -> None:
    """`smtplib` looks it up, to introduce itself."""
    assert is_this_machine(socket.gethostname())
    assert is_this_machine(f"{socket.gethostname().upper()}.")
    assert not is_this_machine(f"{socket.gethostname()}.example.com")
