"""Addresses of electronic mail, with letters of Latin, Greek and Cyrillic beyond ASCII.

A `user@host:path/` of scp and git, and the user of a URL, are no addresses; a decorator and an operator are none.
"""

from __future__ import annotations

from reenact.contracts.detector import Detector

_LETTER = r"A-Za-z0-9\u00c0-\u024f\u0370-\u04ff"
_LABEL = rf"[{_LETTER}](?:[{_LETTER}\-]{{0,61}}[{_LETTER}])?"
_FILES = frozenset(
    [
        "png",
        "jpg",
        "jpeg",
        "gif",
        "svg",
        "webp",
        "css",
        "js",
        "jsx",
        "tsx",
        "json",
        "html",
        "htm",
        "xml",
        "yaml",
        "yml",
        "toml",
        "txt",
        "pdf",
        "whl",
        "po",
        "pot",
        "service",
        "timer",
        "socket",
        "mount",
        "target",
        "header",
    ]
)
_CODE = frozenset(["transpose", "dot", "shape", "sum", "mean", "inverse", "matmul", "reshape", "forward", "weight"])


def _address(value: str) -> bool:
    """Tell an address from the picture of double size (`icon@2x.png`) and from a product of matrices."""
    last = value.rpartition(".")[2].lower()
    return last not in _FILES and last not in _CODE


DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="e_mail",
        group="personal",
        anchors=("@",),
        pattern=(
            rf"(?:(?<![{_LETTER}_.+\-\\/])|(?<=\\[bfnrt])|(?<=[^:/]/)|(?<=[^:]//))"
            rf"[{_LETTER}_](?:[{_LETTER}_.+'&%~\-]{{0,63}}[{_LETTER}_+\-])?"
            rf"@(?:{_LABEL}\.){{1,6}}(?:xn--[A-Za-z0-9\-]{{2,59}}|[A-Za-z\u00c0-\u024f\u0370-\u04ff]{{2,24}})"
            rf"(?![{_LETTER}(_]|\.[A-Za-z0-9]|-[A-Za-z0-9]|:[~/]|:[A-Za-z0-9_.~\-]{{1,64}}/)"
        ),
        needs=".",
        before=66,
        after=512,
        check=_address,
    ),
)
