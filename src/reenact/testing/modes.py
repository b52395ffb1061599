"""Record modes, in vcrpy's words, and the three words that flip a whole session: live, record, replay."""

from __future__ import annotations

from enum import StrEnum

from reenact.errors import UsageError


class Mode(StrEnum):
    """What becomes of a test's calls."""

    NONE = "none"
    """Answered from the fixture and from nothing else. The default."""
    ONCE = "once"
    """Answered from the fixture where there is one; else made for real and recorded."""
    NEW_EPISODES = "new_episodes"
    """Answered from the fixture where it can; what it does not hold is made for real and added to it."""
    ALL = "all"
    """Made for real, and recorded anew."""
    LIVE = "live"
    """Made for real; the fixture is neither read nor written."""


_OTHER_NAMES = {"replay": Mode.NONE, "record": Mode.ALL}
WORDS = (*(mode.value for mode in Mode), *_OTHER_NAMES)
"""What `--reenact-mode`, REENACT_MODE, the ini option and the marker take."""


def mode_named(word: str, place: str) -> Mode:
    """Read a mode; `place` says where it was written. Raises `UsageError`."""
    plain = word.strip().lower()
    if plain in _OTHER_NAMES:
        return _OTHER_NAMES[plain]
    try:
        return Mode(plain)
    except ValueError:
        raise UsageError(f"{place}: there is no mode {word!r}", hint=f"one of: {', '.join(WORDS)}") from None
