"""Refuses new namespaces, as Docker's default profile does, and then runs a program: `no_namespaces.py PROGRAM WORD…`.

The filter is built here: unshare(2), setns(2), mount(2) and clone(2) with a flag of a namespace get EPERM, clone3(2),
whose flags lie in memory, ENOSYS.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

NAMESPACES = 0x7E020000
CALLS = {"x86_64": (272, 308, 165, 56), "aarch64": (97, 268, 40, 220)}
REFUSED, UNKNOWN, ALLOWED = 0x00050001, 0x00050026, 0x7FFF0000


def refuse_namespaces() -> None:
    unshare, setns, mount, clone = CALLS[os.uname().machine]
    steps = [
        (0x20, 0, 0, 0),  # the number of the call
        (0x15, 7, 0, unshare),
        (0x15, 6, 0, setns),
        (0x15, 5, 0, mount),
        (0x15, 5, 0, 435),
        (0x15, 0, 2, clone),
        (0x20, 0, 0, 16),  # its flags
        (0x45, 1, 0, NAMESPACES),
        (0x06, 0, 0, ALLOWED),
        (0x06, 0, 0, REFUSED),
        (0x06, 0, 0, UNKNOWN),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    described = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    zero = ctypes.c_ulong(0)
    assert libc.prctl(38, ctypes.c_ulong(1), zero, zero, zero) == 0, "no new privileges"
    assert libc.prctl(22, ctypes.c_ulong(2), described, zero, zero) == 0, os.strerror(ctypes.get_errno())


if __name__ == "__main__":
    refuse_namespaces()
    os.execvp(sys.argv[1], sys.argv[1:])
