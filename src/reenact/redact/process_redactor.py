"""The redactor that stands for this process where a program names none: the policy and the key that are in force here.

A program that only redacts gets no store made for it: where no key is configured and no store has one, what is personal
is keyed by a key of this process alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from reenact.contracts.redactor import Redactor
from reenact.errors import InputError
from reenact.redact import in_force, keys
from reenact.redact.engine import Engine
from reenact.redact.sdk_copies import Copies
from reenact.stores.directory import locate
from reenact.values import locks

_log = logging.getLogger("reenact")
_lock = locks.lock()
_standing: dict[str, tuple[Engine, Mapping[str, Any]]] = {}


def copies(redactor: Redactor | None, policy: str | Path = "", *, marked: bool = True) -> Copies:
    """Give what copies spans with a redactor; without one, with that of the process for this policy."""
    if redactor is not None:
        return Copies(redactor, marked=marked)
    engine, facts = standing(policy)
    return Copies(engine, facts, marked=marked)


def standing(policy: str | Path = "") -> tuple[Engine, Mapping[str, Any]]:
    """Give the process's redactor, and what a trace says of it.

    One is made for each policy, at first use: processors share what it found clean, and equal values get equal tokens.
    `policy` is a file or `default`; else what is configured holds. One that cannot be read costs the payloads.
    """
    with _lock:
        if (redactor := _standing.get(str(policy))) is None:
            redactor = _standing[str(policy)] = _make_redactor(policy)
        return redactor


def _make_redactor(policy: str | Path) -> tuple[Engine, Mapping[str, Any]]:
    environ = dict(os.environ)
    store = locate(_here(), environ)
    with suppress(InputError):
        if keys.existing(store) is None:
            environ.setdefault(keys.OF_THIS_RUN, os.urandom(32).hex())
    guard = in_force.guard(store, environ, chosen=policy)
    if guard.problem:
        _log.warning("reenact: %s", guard.problem)
    return guard.engine(os.environ), guard.facts()


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path("/")
