"""The law over all that the tests replay: an `exact` recording whose program is as it was does not diverge.

A desk tells of every command here. What a test changes between recording and replay (a file that the recording left
behind, the command, how it is compared) makes it no longer the unchanged program; so does a setting, but for those of
the place where it is replayed.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

_EXACT = re.compile(r"replayable: exact\b")
_PLAIN = re.compile(r"last|--json|--quiet|[0-9a-f]{6,32}")
"""Words of a replay that leave everything as it was recorded."""
_ELSEWHERE = frozenset({"HOME", "TZ", "LD_PRELOAD", "CLOCK_SHIFT_S", "PYTHONHASHSEED", "XDG_CONFIG_HOME"})
"""Settings that may be others in a replay."""
_OURS = frozenset({"REENACT_KEY", "REENACT_STORE"})
_LARGEST = 1 << 20


@dataclass
class Unchanged:
    """What one desk recorded last."""

    folder: Path
    _left: dict[str, str] = field(default_factory=dict[str, str])
    """The files that the recording left behind, with digests."""
    _settings: dict[str, str] = field(default_factory=dict[str, str])
    _exact: bool = False
    _runs: int = 0

    def heard(self, words: tuple[str, ...], settings: dict[str, str], done: subprocess.CompletedProcess[str]) -> None:
        """Hear of a command that was run.

        Raises:
            AssertionError: The program was recorded `exact`, is unchanged, and diverged.

        """
        if words[:1] == ("run",):
            self._runs += 1
            told = _EXACT.findall(done.stderr)
            ours = {name for name in settings if name.startswith("REENACT_")} - _OURS
            self._exact = len(told) == 1 and "exact, up to redaction" not in done.stderr and not ours
            self._settings = settings
            self._left = self._files()
        elif words[:1] == ("replay",) and done.returncode == 1 and self._is_unchanged(words[1:], settings):
            raise AssertionError(f"recorded exact, unchanged, and: {done.stdout[-2000:]}\n{done.stderr[-2000:]}")

    def _is_unchanged(self, words: tuple[str, ...], settings: dict[str, str]) -> bool:
        known = [{*self._settings.items()}, {*os.environ.items()}]
        others = {name for name, value in settings.items() if all((name, value) not in each for each in known)}
        plain = others <= _ELSEWHERE | _OURS
        plain = plain and self._exact and self._runs == 1 and all(_PLAIN.fullmatch(word) for word in words)
        return plain and self._files().items() >= self._left.items()

    def _files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.folder)): hashlib.blake2b(path.read_bytes()).hexdigest()
            for path in self.folder.rglob("*")
            if path.is_file()
            and not path.is_symlink()
            and ".reenact" not in path.parts
            and "__pycache__" not in path.parts
            and path.stat().st_size <= _LARGEST
        }
