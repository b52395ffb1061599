"""Locks that are open in a forked process, whoever held them in the original.

A fork copies a lock as it stands. The thread that held it is not copied, so nobody opens the copy (fork(2), and
`os.register_at_fork` of Python's documentation). Hooks of other libraries may run in the child before ours and come
through code of ours: this module is imported before such a library makes anything, and its hook runs first.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """Make a lock."""
    new_lock = threading.Lock()
    _made.add(new_lock)
    return new_lock


def rlock() -> Any:
    """Make a lock that its holder may take again: a finalizer or a signal handler may call in the middle."""
    new_lock = threading.RLock()
    _made.add(new_lock)
    return new_lock


def _reopen() -> None:
    for each in tuple(_made):
        each._at_fork_reinit()  # noqa: SLF001 - what `threading` and `logging` do with theirs; there is no public way


os.register_at_fork(after_in_child=_reopen)
