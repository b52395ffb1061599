"""Landlock: rights on files that a process gives up for good, for itself and its children (landlock(7)).

A ruleset names the rights that are taken away; each rule gives some of them back below one folder, or for one file.
What a kernel does not know yet (the ABI tells) is not asked for: callers look at `abi` before they say what holds.
"""

from __future__ import annotations

import os
import struct

from reenact.seal import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

_CREATE_RULESET: Final = 444  # the same on every architecture
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1

WRITE: Final = 1 << 1
READ: Final = 1 << 2
_MAKE_CHARACTER_DEVICE: Final = 1 << 6
_MAKE_BLOCK_DEVICE: Final = 1 << 11
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_DEVICE_CONTROL: Final = 1 << 15
_CHANGES: Final = sum(1 << bit for bit in (1, *range(4, 13)))
"""WRITE_FILE, REMOVE_DIR, REMOVE_FILE and every MAKE_: what each ABI knows."""
_LATER: Final = ((2, _REFER), (3, _TRUNCATE), (5, _DEVICE_CONTROL))
_OF_A_FILE: Final = WRITE | READ | _TRUNCATE | _DEVICE_CONTROL
_TCP: Final = 0x3
"""BIND_TCP and CONNECT_TCP."""
_SCOPES: Final = 0x3
"""ABSTRACT_UNIX_SOCKET and SIGNAL."""

MOVES: Final = 2
"""Since this ABI a file can be moved from one folder to another; before, no process with a ruleset may."""
TRUNCATES: Final = 3
NETWORK: Final = 4
SCOPES: Final = 6


def abi() -> int:
    """Give the version of Landlock that this kernel has. Raises `OSError` where it has none, or it is switched off."""
    return kernel.call(_CREATE_RULESET, 0, 0, _VERSION, about="Landlock")


def changes(version: int) -> int:
    """Give every right to change files that an ABI knows."""
    return _CHANGES | sum(right for since, right in _LATER if version >= since)


def limit_files(version: int, open_folders: Iterable[str], devices: Iterable[str], readable: Mapping[str, int]) -> None:
    """Keep this process from changing any file that does not lie below `open_folders`, and is none of `devices`.

    Where `readable` names places (with their `O_PATH` descriptors), only they and the open folders can be read.
    Raises `OSError`. It is called with `NO_NEW_PRIVS`.
    """
    every = changes(version)
    handled = every | (READ if readable else 0)
    devices_too = _MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE
    ruleset = _ruleset(version, handled, 0, 0)
    try:
        for path in open_folders:
            _allow_path(ruleset, path, handled & ~devices_too)
        for path in devices:
            _allow_path(ruleset, path, handled & _OF_A_FILE)
        for path, handle in readable.items():
            _allow(ruleset, handle, READ, path)
        kernel.call(_RESTRICT_SELF, ruleset, 0, about="landlock_restrict_self")
    finally:
        os.close(ruleset)


def limit_contacts(version: int) -> None:
    """Keep this process from TCP, and from abstract sockets and signals of others, as far as its kernel can."""
    if version < NETWORK:
        return
    ruleset = _ruleset(version, 0, _TCP, _SCOPES if version >= SCOPES else 0)
    try:
        kernel.call(_RESTRICT_SELF, ruleset, 0, about="landlock_restrict_self")
    finally:
        os.close(ruleset)


def _ruleset(version: int, files: int, network: int, scopes: int) -> int:
    attributes = struct.pack("QQQ", files, network, scopes)[
        : 8 if version < NETWORK else 16 if version < SCOPES else 24
    ]
    return kernel.call(_CREATE_RULESET, attributes, len(attributes), 0, about="landlock_create_ruleset")


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _allow(ruleset, handle, rights, path)
    finally:
        os.close(handle)


def _allow(ruleset: int, handle: int, rights: int, about: str) -> None:
    kernel.call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, handle), 0, about=about)
