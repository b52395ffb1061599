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


_ENDINGS = (
    "pdf|csv|tsv|txt|json|jsonl|xml|html?|eml|msg|ics|vcf|bak|log|md|docx?|xlsx?|pptx?|odt|ods|rtf|zip|tar|gz|tgz|7z|rar|"
    "png|jpe?g|gif|webp|svg|mp3|mp4|wav|sql|db|sqlite|parquet|pem|key|crt|ya?ml|toml"
)
_DOMAINS = (
    "com|org|net|edu|gov|mil|int|info|biz|name|pro|app|dev|io|ai|co|me|tv|cloud|online|shop|site|xyz|tech|email|mail|test|"
    "example|invalid|local|eu|de|at|ch|fr|it|es|pt|nl|be|lu|dk|se|no|fi|ie|uk|us|ca|mx|br|ar|cl|au|nz|in|jp|cn|kr|sg|hk|tw|"
    "za|pl|cz|sk|hu|ro|bg|gr|tr|ua|ru|il|ae"
)
"""What an address ends in where a file's ending follows: behind any other word it may be a picture of double size."""
_BEGINS = rf"(?:(?<![{_LETTER}_.+\-\\/])|(?<=\\[bfnrt])|(?<=[^:/]/)|(?<=[^:]//))"

DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="e_mail",
        group="personal",
        anchors=("@",),
        pattern=(
            rf"{_BEGINS}(?P<secret>[{_LETTER}_](?:[{_LETTER}_.+'&%~\-]{{0,63}}[{_LETTER}_+\-])?"
            rf"@(?:{_LABEL}\.){{1,4}}(?i:{_DOMAINS}))(?i:[_\-][A-Za-z0-9_\-]{{0,40}})?\.(?i:{_ENDINGS})(?![A-Za-z0-9])"
        ),
        needs=".",
        before=66,
        after=512,
        order=49,
    ),
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
