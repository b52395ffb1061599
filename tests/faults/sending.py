"""An agent that makes many calls of a tool and ends: how long it took to go, and what it held in memory at most.

    python sending.py CALLS BYTES STORE

Prints one line of JSON: when its work was done, in seconds since the epoch, and its largest resident set then, in MB.
"""

from __future__ import annotations

import json
import sys
import time

import reenact

calls, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
_LINE = "The order was checked against the invoice, line by line, and two of the amounts do not agree with it. "
text = "".join(f"{line}: {_LINE}" for line in range(size // len(_LINE) + 1))[: size - 20]


@reenact.tool
def look_up(number: int) -> str:
    return f"{number} {text}"


reenact.record(store=store)
began = time.time()
with reenact.run("load"):
    for each in range(calls):
        look_up(each)
print(json.dumps({"took": time.time() - began, "done": time.time()}), flush=True)  # noqa: T201 - for who started it
