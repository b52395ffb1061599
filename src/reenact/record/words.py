"""The words of a command line, with those replaced that are secrets because of the option they belong to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence


def without_secrets(
    words: Sequence[str], token: Callable[[str, str], str], names_a_secret: Callable[[str], bool]
) -> list[str]:
    """Put tokens in place of the values of options such as `--api-key VALUE`, `--token=VALUE` and `PASSWORD=VALUE`.

    A value that names a file, is another option or a short number is none: `--private-key id.pem`, `--max-token 5`.
    What is secret by its looks is not this function's to find.
    """
    clean: list[str] = []
    option = ""
    for word in words:
        if option and not word.startswith("-") and _may_be_secret(word):
            clean.append(token(option, word))
            option = ""
            continue
        name, equals, value = word.partition("=")
        option = ""
        if names_a_secret(name.lstrip("-").replace("-", "_")) or name in {"--token", "--password", "--secret"}:
            if equals and _may_be_secret(value):
                word = f"{name}={token(name, value)}"  # noqa: PLW2901 - what is left of it
            elif not equals and name.startswith("--"):
                option = name
        clean.append(word)
    return clean


def _may_be_secret(value: str) -> bool:
    if len(value) < 4 or (value.isdecimal() and len(value) < 6):
        return False
    return not os.path.lexists(value) if "\0" not in value else True
