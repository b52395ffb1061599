"""Bytes on the disk: written whole or not at all, appended by many processes at once, and found again.

In: bytes, frames, facts of a run. Out: the same, after a crash and a power cut as well (fsync(2)), in files that are
the user's alone. What the bytes mean is not known here: no span, no provider, no format; identity and layout of a store
are `reenact.stores`'. To add a way of keeping bytes, write a module that says what it promises after a crash, and a
fault test that kills its writer.
"""
