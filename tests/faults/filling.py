"""An agent whose recorder cannot write: calls tools, prints what they give, and exits with a code of its own."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator

import reenact


@reenact.tool
def bulky(number: int) -> str:
    return f"{number} " * 4000


@reenact.tool
def slight(number: int) -> int:
    return number


@reenact.tool
def pieces(number: int) -> Iterator[str]:
    yield from (f"{number} {piece}. " * 200 for piece in range(5))  # ends in nothing that a secret may begin with


def main() -> None:
    """Call, with files no larger than is said, if anything is."""
    if len(sys.argv) > 1 and sys.argv[1].isdecimal():
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
    for number in range(12):
        sys.stdout.write(f"{len(bulky(number))} {slight(number)} {sum(len(str(each)) for each in pieces(number))}\n")
    if sys.argv[1:] == ["--killed"]:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(5)


main()
