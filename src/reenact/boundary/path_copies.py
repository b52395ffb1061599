"""Where the copies of folders lie that a replayed program is led to, and which paths they stand for.

Where the kernel can mount nothing, a program works in a copy of its folder that has another path. Its Python code
goes on to name the original: what it opens is led to the copy (`led`), what it is told is led back (`original`). The
launcher of the world (`reenact.seal`) says in REENACT_LEADS which folders these are. Without it nothing is led.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

VARIABLE: Final = "REENACT_LEADS"
_working_folder: Final = os.getcwd
"""The kernel's answer, also when `os.getcwd` tells the original."""


class Leads:
    """Folders and their copies, by absolute paths. One that stands for itself lies in another and is not copied."""

    def __init__(self, copies: dict[str, str]) -> None:
        """`copies` names the copy of each folder."""
        self._all: dict[str, str] = {}
        self._lead(copies)

    def add(self, path: str, copy: str) -> None:
        """Lead to another copy from here on."""
        if self._all.get(path) != copy:
            self._lead({**self._all, path: copy})

    def _lead(self, copies: dict[str, str]) -> None:
        self._all = copies
        self._copies = sorted(copies.items(), key=lambda pair: -len(pair[0]))  # the innermost first
        originals = {copy: path for path, copy in reversed(copies.items())}  # of two names the first is told
        self._originals = sorted(originals.items(), key=lambda pair: -len(pair[0]))
        self._tops = tuple(f"{path}/" for path in copies)

    def led(self, path: Any) -> Any:
        """Give the path at which a program finds what it names; whatever is no such path is given back as it is.

        Only paths that climb out of the working folder (`..`) are made absolute: all others lie in the copy by
        themselves.
        """
        text = _text(path)
        if text is None:
            return path
        if not text.startswith("/"):
            if ".." not in text:
                return path
            here = _working_folder()
            there = self.original(here)
            return path if here == there else _as(path, self._led(os.path.normpath(f"{there}/{text}")))
        plain = os.path.normpath(text) if "/." in text or "//" in text else text
        if plain.startswith("//"):
            plain = plain[1:]
        target = self._led(plain)
        return path if target is plain else _as(path, f"{target}/" if text.endswith("/") else target)

    def _led(self, path: str) -> str:
        if f"{path}/".startswith(self._tops):
            for original, copy in self._copies:
                if path == original or path.startswith(f"{original}/"):
                    return copy + path[len(original) :]
        return path

    def original(self, path: str) -> str:
        """Give the path for which one in a copy stands; any other as it is."""
        for copy, original in self._originals:
            if path == copy or path.startswith(f"{copy}/"):
                return original + path[len(copy) :]
        return path


def _text(path: Any) -> str | None:
    """Give a path as text; None for descriptors, and for what is no path."""
    if isinstance(path, str):
        return path
    try:
        return os.fsdecode(path) if not isinstance(path, int) and path is not None else None
    except TypeError:
        return None


def _as(path: Any, text: str) -> str | bytes:
    """Spell a path as the one that it stands for is spelled: text, or bytes."""
    return os.fsencode(text) if isinstance(os.fspath(path), bytes) else text


def _read(text: str) -> Leads | None:
    try:
        copies = json.loads(text)
        return Leads({str(path): str(copy) for path, copy in copies.items()})
    except (ValueError, AttributeError):
        return None


_known: dict[str, Leads | None] = {}


def of_this_process() -> Leads | None:
    """Give the leads of this process; None where nothing is led."""
    setting = os.environ.get(VARIABLE)
    if not setting:
        return None
    if setting not in _known:
        _known[setting] = _read(setting)
    return _known[setting]
