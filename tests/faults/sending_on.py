"""Sends what waits in a store, as every command does, in a process of its own that somebody kills, again and again.

    python sending_on.py STORE VICTIM KILLS

VICTIM is the file that says which process is the one. It ends when KILLS of them were killed, or when nothing waits any
more, and says how many were.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from reenact.keep.posting import send_waiting
from reenact.stores.directory import DirectoryStore
from reenact.stores.outbox import Outbox

store, victim, kills = DirectoryStore(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
killed = 0
while killed < kills and any(account.waiting for account in Outbox(store.folder).accounts()):
    process = os.fork()
    if process == 0:
        try:
            draft = victim.with_suffix(f".{os.getpid()}")
            draft.write_text(str(os.getpid()))
            draft.rename(victim)
            send_waiting(store, print, 60)
        finally:
            os._exit(0)
    _, status = os.waitpid(process, 0)
    killed += os.WIFSIGNALED(status)
    for account in Outbox(store.folder).accounts():
        assert account.created == account.exported + account.waiting + sum(account.dropped.values()), account
print(killed)  # noqa: T201 - for who started it
