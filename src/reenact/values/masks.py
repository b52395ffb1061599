"""Constants that other emitters put in the place of what they hide. A constant says nothing of what it hides.

Each is known from its vendor's source or documentation: OpenInference's `__REDACTED__`, Logfire's
`[Scrubbed due to '…']`, what Langfuse's SDK writes when a mask fails, LangSmith's `[redacted]`, Claude Code's and
Codex's `<REDACTED>` and `[REDACTED]`, Sentry's `[Filtered]`, the names in angle brackets that Presidio leaves, the
asterisks of the Collector's redaction processor and of masks by hand.
"""

from __future__ import annotations

import re
from typing import Final

_IN_TEXT: Final = (
    r"\[Scrubbed due to (?:'[^'\n]{0,200}'|\\{0,8}\"[^\"\n]{0,200}\")\]"
    r"|<fully masked due to failed mask function>"
    r"|(?:\[|<)(?:[A-Z]{1,20}[_ ]){0,4}(?:REDACTED|MASKED)(?:[_ ][A-Z]{1,20}){0,4}(?:\]|>)"
    r"|\[redacted\]|<redacted>|\[masked\]|<masked>"
    r"|\*{2,8}(?:MASKED|REDACTED|HIDDEN)\*{2,8}"
    r"|<(?:EMAIL_ADDRESS|PHONE_NUMBER|CREDIT_CARD|IBAN_CODE|US_SSN|IP_ADDRESS)>"
)
"""Telling enough to count wherever they stand."""
_WHOLE: Final = r"\*{3,400}|\[Filtered\]|\[FILTERED\]|\[REMOVED\]|REDACTED|redacted|•{3,400}"
"""Words that texts hold as well: they count where they are all of a value."""
_SCRUBBED: Final = re.compile(_IN_TEXT)
_ALL: Final = re.compile(rf"\s*(?:{_WHOLE})\s*")
_LEAF: Final = re.compile(
    rf'(?:"(?P<key>[^"\\]{{1,80}})\\{{0,8}}"\s*:\s*\\{{0,8}})?(?<!\w)"(?P<mask>{_WHOLE})\\{{0,8}}"'
)
_CREDENTIALS: Final = ("authorization", "cookie", "key", "token", "secret", "passw", "credential", "header")
"""Parts of names under which nothing stands that a replay needs."""


def masks_in(text: str) -> list[str]:
    """List the masks of a text, or of the JSON in it; those under the name of a credential are left out."""
    masks = [match[0].replace("\\", "") for match in _SCRUBBED.finditer(text)]
    if _ALL.fullmatch(text):
        masks.append(text.strip())
    elif '"' in text:
        leaves = (match for match in _LEAF.finditer(text))
        masks += [leaf["mask"] for leaf in leaves if not names_a_credential(leaf["key"] or "")]
    return masks


def is_masked(text: str) -> bool:
    """Tell that a part of a text, or all of it, was hidden by its emitter."""
    return _SCRUBBED.search(text) is not None or _ALL.fullmatch(text) is not None


def may_be(masked: str, text: str) -> bool:
    """Tell that a text may be the one of which an emitter hid parts: what it left stands there in the same order."""
    if _ALL.fullmatch(masked):
        return True
    left = _SCRUBBED.split(masked)
    first, last, at = left[0], left[-1], len(left[0])
    if len(left) == 1 or not text.startswith(first) or not text.endswith(last):
        return False
    for each in left[1:-1]:
        at = text.find(each, at)
        if at < 0:
            return False
        at += len(each)
    return at <= len(text) - len(last)


def names_a_credential(name: str) -> bool:
    """Tell a name under which credentials stand, and nothing that a model or a tool was told."""
    lowered = name.lower()
    return any(part in lowered for part in _CREDENTIALS) and not lowered.endswith(("_tokens", ".tokens"))


def setting_of(mask: str, scope: str) -> str:
    """Name the setting of the emitter that would not hide it, as far as the mask, or the span's scope, tells whose."""
    if mask.startswith("[Scrubbed due to"):
        return "logfire.configure(scrubbing=False), or ScrubbingOptions(callback=…) that gives back match.value"
    if "langfuse" in scope or "mask function" in mask:
        return "leave out Langfuse(mask=…), or have the mask give equal values equal pseudonyms"
    if "langsmith" in scope:
        return "leave out Client(anonymizer=…, hide_inputs=…, hide_outputs=…)"
    return "turn the emitter's mask off, and redact by reenact, whose tokens keep equal values equal"
