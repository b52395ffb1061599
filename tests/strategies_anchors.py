"""What tests repeat to make a search slow: every anchor of the default plan, and what may stand between two."""

from __future__ import annotations

from reenact.redact.plan import DEFAULT

ANCHORS = sorted({anchor for each in DEFAULT.detectors if not each.run for anchor in each.anchors})
SHAPES = sorted(
    {anchor.translate({48: "7", 65: "B"}) for each in DEFAULT.detectors if each.run for anchor in each.anchors}
)
FILLERS = (
    "",
    "a",
    "A1",
    "1",
    " ",
    "=",
    ":",
    "-",
    ".",
    '"',
    "\\",
    "@",
    "%41",
    "\\u0041",
    "&#65;",
    "\u200b",
    "\u0430",
    "0 ",
)
