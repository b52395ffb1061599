"""An agent that ends as it is told: calls tools, prints what they give, does something to its store, and ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import reenact


@reenact.tool
def bulky(number: int) -> str:
    return f"{number} " * 8000


@reenact.tool
def slight(number: int) -> int:
    return number


def main() -> None:
    """End as the first word says, after what the second says is done to the path that is the third."""
    end, deed, path = (*sys.argv[1:], "", "")[:3]
    sys.stdout.write(f"{slight(1)}\n")
    match deed:
        case "remove":
            shutil.rmtree(path)
        case "replace":
            shutil.rmtree(path)
            with open(path, "w") as file:  # noqa: PTH123 - no import more than is needed
                file.write("a file")
        case "unplug":
            subprocess.run(["umount", "-l", path], check=True)
        case _:
            pass
    for number in range(20):
        sys.stdout.write(f"{len(bulky(number))} {slight(number)}\n")
    sys.stdout.flush()
    if end.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, end))
    sys.exit(int(end))


main()
