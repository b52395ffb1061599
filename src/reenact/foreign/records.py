"""What the record APIs of vendors have in common: ids of any spelling, instants of any spelling, JSON inside strings.

Nothing here raises on a value: what cannot be read comes back as the stated empty value.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_text, text_or_json

_HEX = re.compile(r"[0-9a-f]+")
_WORDED = re.compile(r"(?:[a-z]+[_-])?([0-9a-f]{32})")
_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?\s*(Z|UTC|[+-]\d\d:?\d\d)?", re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEEPEST = 4
"""How many times JSON may be written into a string of JSON."""
_SCALES = ((10**17, 1), (10**14, 10**3), (10**11, 10**6), (0, 10**9))
"""Numbers from here on, since 1970, count nanoseconds, microseconds, milliseconds, seconds."""


def trace_id(value: Json) -> str:
    """Give the 32 hexadecimal digits of a trace's id.

    UUIDs, hexadecimal with `0x` or a word before it (`tr-…`, `trace_…`) and base64 of 16 bytes are read; any other id
    becomes a digest of itself, the same each time. All zeros for none.
    """
    text = _plain(value)
    if not text:
        return "0" * 32
    worded = _WORDED.fullmatch(text.replace("-", "")) or _WORDED.fullmatch(text)
    if worded:
        return worded[1]
    return _decoded(value, 16) or hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def span_id(value: Json) -> str:
    """Give the 16 hexadecimal digits of a span's id.

    Hexadecimal with or without `0x`, and base64 of 8 bytes, are read; any other id (UUIDs too) becomes the low 8 bytes
    of a digest of itself, the same each time. All zeros for none.
    """
    text = _plain(value)
    if not text:
        return "0" * 16
    if len(text) == 16 and _HEX.fullmatch(text):
        return text
    return _decoded(value, 8) or hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()[16:]


def originals(vendor: str, trace: Json, span: Json, parent: Json = None) -> dict[str, str]:
    """Give the ids as the vendor spelled them, under `<vendor>.trace_id`, `.id` and `.parent_id`, where ours differ."""
    spellings: dict[str, str] = {}
    for name, value, ours in (("trace_id", trace, trace_id), ("id", span, span_id), ("parent_id", parent, span_id)):
        text = text_or_json(value)
        if text and text != ours(value):
            spellings[f"{vendor}.{name}"] = text
    return spellings


def _plain(value: Json) -> str:
    return text_or_json(value).strip().lower().removeprefix("0x")


def _decoded(value: Json, size: int) -> str:
    text = as_text(value).strip()
    if len(text) != (size + 2) // 3 * 4:
        return ""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) == size else ""


def nanoseconds(value: Json) -> int:
    """Give an instant in nanoseconds since the Unix epoch.

    Read are ISO 8601 (a missing zone is UTC) and numbers, also as text, whose unit their size tells. 0 for anything
    else, and for times before 1970.
    """
    if isinstance(value, str):
        match = _INSTANT.match(value.strip())
        if match is None:
            return nanoseconds(_number(value))
        return _at(match)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**63:
        return 0
    scale = next(scale for least, scale in _SCALES if value >= least)
    if isinstance(value, float):
        whole = int(value)
        return whole * scale + round((value - whole) * 10**6) * scale // 10**6
    return value * scale


def nanoseconds_of(fields: Mapping[str, Json], *names: str) -> int:
    """Give the instant of the first field that is there. A name that says nanoseconds (`…UnixNano`) is believed."""
    name = next((name for name in names if fields.get(name) is not None), "")
    value = fields.get(name)
    if name.lower().endswith(("nano", "_ns", "nanos")):
        count = _number(value) if isinstance(value, str) else value
        if isinstance(count, int | float) and not isinstance(count, bool) and count == count:  # noqa: PLR0124 - no NaN
            return int(count) if 0 < count < 2**63 else 0
    return nanoseconds(value)


def _number(text: str) -> Json:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _at(match: re.Match[str]) -> int:
    zone = (match[8] or "Z").upper().replace("UTC", "Z").replace("Z", "+00:00")
    try:
        moment = datetime.fromisoformat(f"{match[1]}-{match[2]}-{match[3]}T{match[4]}:{match[5]}:{match[6]}{zone}")
    except ValueError:
        return 0
    since = moment - _EPOCH
    return max(0, since.days * 86_400 + since.seconds) * 10**9 + int((match[7] or "0").ljust(9, "0"))


def unwrapped(value: Json) -> Json:
    """Read JSON that was written into a string, perhaps several times over; what is no such string comes back as is.

    Only objects, arrays and quoted strings are read: a text that happens to be a number or a word of JSON stays text.
    """
    for _ in range(_DEEPEST):
        if not isinstance(value, str):
            break
        text = value.strip()
        if text[:1] + text[-1:] not in ("{}", "[]", '""') or len(text) < 2:
            break
        read = parsed_or_none(text)
        if not isinstance(read, dict | list | str):
            break
        value = read
    return value


def attribute_text(value: Json) -> str:
    """Spell a field as an attribute's text: a string as it is, anything else as its JSON."""
    return value if isinstance(value, str) else compact(value)


def is_said(value: Json) -> bool:
    """Tell whether a field says anything: null and what is empty do not, zero and false do."""
    return value is not None and value not in ("", [], {})


def rest(record: Mapping[str, Json], used_fields: Iterable[str]) -> str:
    """Give the JSON text of a record's fields but for `used_fields` and those that say nothing; empty for none."""
    used_names = frozenset(used_fields)
    left: dict[str, Json] = {name: value for name, value in record.items() if name not in used_names and is_said(value)}
    return compact(left) if left else ""
