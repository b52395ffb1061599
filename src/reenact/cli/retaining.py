"""The rules of retention as `reenact store prune` and `reenact collect` are given them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import click

from reenact.errors import UsageError
from reenact.keep.retention import Rules, rules

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--keep-days", type=float, metavar="DAYS", help="Keep every run for so long."),
    click.option("--max-size", type=float, metavar="MIB", help="Then delete the oldest until the traces are so large."),
    click.option(
        "--errors-too", is_flag=True, help="Delete runs that ended badly as any other; else they stay for ever."
    ),
    click.option("--flag-if", multiple=True, metavar="ASSERTION", help="Flag runs in which this holds instead."),
    click.option(
        "--flag-unless", multiple=True, metavar="ASSERTION", help="Flag runs in which this does not hold instead."
    ),
)


def options(command: _Command) -> _Command:
    """Give a command the options of retention; they come to it in its `**given`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen(choices: Mapping[str, object]) -> Rules | None:
    """Read the rules, and take it that there are none where nothing would be deleted and nobody asked for it.

    Raises `UsageError` where something is asked for that deletes nothing, `AssertionInvalid` for an assertion.
    """
    days, size = cast("float | None", choices["keep_days"]), cast("float | None", choices["max_size"])
    flag_if, flag_unless = (cast("tuple[str, ...]", choices[name]) for name in ("flag_if", "flag_unless"))
    if days is None and size is None:
        if flag_if or flag_unless or choices["errors_too"]:
            raise UsageError("nothing would be deleted", hint="give --keep-days DAYS, --max-size MIB, or both")
        return None
    most = None if size is None else int(size * (1 << 20))
    return rules(days, most, errors=not choices["errors_too"], flag_if=flag_if, flag_unless=flag_unless)


def spelled(choices: Mapping[str, object]) -> list[str]:
    """Spell the options again, for a process that does the work."""
    words = [f"--{name}={choices[name.replace('-', '_')]}" for name in ("keep-days", "max-size")]
    words = [word for word in words if not word.endswith("=None")]
    words += ["--errors-too"] if choices["errors_too"] else []
    for name in ("flag-if", "flag-unless"):
        words += [f"--{name}={each}" for each in cast("tuple[str, ...]", choices[name.replace("-", "_")])]
    return words
