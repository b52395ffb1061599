"""What a program asks of this machine alone, and what of others."""

from __future__ import annotations

import socket
import subprocess
import sys

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


TALKS = """
import socket
from reenact.boundary import listeners

with socket.create_server(("127.0.0.1", 0)) as server:
    client = socket.create_connection(server.getsockname())
    accepted = server.accept()[0]
    assert not listeners.is_visited()
    client.close()
    assert accepted.recv(1) == b""
    print(listeners.is_visited())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells whose a socket is")
def test_a_client_of_its_own_that_has_closed_is_no_visitor() -> None:
    done = subprocess.run([sys.executable, "-c", TALKS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
