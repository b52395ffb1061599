"""The proof that a root span was written by this user's recorder, into this store, and says what it said then.

A keyed digest (HMAC-SHA256, RFC 2104) over the run's identity, the store's folder and everything that starts a program.
The key lies outside every store (`disk.user_key`). Recorded processes get none but that of their own recording, which
is derived from it. The proof is an attribute of the root: `{"version":1,"mac":"<64 hexadecimal digits>"}`. A later
version may sign the whole recording beside it. A proof that this version does not know proves nothing.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from reenact.values.json import compact, parsed_or_none

ORIGIN: Final = "reenact.origin"
VARIABLE: Final = "REENACT_ORIGIN"
"""Names the file that holds the key of the recording to which a process belongs (`keep.run_proof`)."""
_VERSION: Final = 1
_COVERED: Final = (
    "reenact.run.root",
    "reenact.process.root",
    "reenact.entry",
    "reenact.surroundings",
    "reenact.app",
    "reenact.inbound",
    "reenact.inbound.process",
)
_COVERED_OF_A_UNIT: Final = ("input.value", "reenact.http.request.body", "reenact.http.request.body.too_large")
"""What a unit that came in was asked: where the root has `reenact.inbound`."""


def recording_key(key: bytes, recording: str) -> bytes:
    """Derive the key of one recording, 32 bytes, from the user's own."""
    return hmac.digest(key, b"reenact recording\0" + recording.encode("utf-8", "surrogatepass"), "sha256")


def proof(key: bytes, store: Path, trace_id: str, span_id: str, attributes: Mapping[str, Any]) -> str:
    """Spell the proof of a root with the key of its recording, as the value of the attribute `reenact.origin`."""
    return compact({"version": _VERSION, "mac": _mac(key, store, trace_id, span_id, attributes)})


def holds(key: bytes, store: Path, trace_id: str, span_id: str, attributes: Mapping[str, Any]) -> bool:
    """Tell whether a span read from `store` carries its proof, and says what it said when that was made."""
    text = attributes.get(ORIGIN)
    claim = parsed_or_none(text) if isinstance(text, str) else None
    if not isinstance(claim, dict) or claim.get("version") != _VERSION:
        return False
    mac = claim.get("mac")
    expected = _mac(key, store, trace_id, span_id, attributes)
    return isinstance(mac, str) and hmac.compare_digest(mac.encode("utf-8", "replace"), expected.encode())


def covers(name: str) -> bool:
    """Tell whether an attribute of this name is, or may be, under the proof."""
    return name in _COVERED or name in _COVERED_OF_A_UNIT


def without_proof(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give attributes less the proof, which is good in the store it was made for and nowhere else."""
    if ORIGIN not in attributes:
        return attributes
    return {name: value for name, value in attributes.items() if name != ORIGIN}


def _mac(key: bytes, store: Path, trace_id: str, span_id: str, attributes: Mapping[str, Any]) -> str:
    names = _COVERED + (_COVERED_OF_A_UNIT if "reenact.inbound" in attributes else ())
    content = {
        "store": str(store.resolve()),
        "trace": trace_id,
        "span": span_id,
        "attributes": {name: attributes[name] for name in names if attributes.get(name) is not None},
    }
    spelled = json.dumps(content, sort_keys=True, separators=(",", ":"), default=repr)  # ASCII, lone surrogates escaped
    return hmac.digest(key, b"reenact origin 1\0" + spelled.encode("ascii"), "sha256").hex()
