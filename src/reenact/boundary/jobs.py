"""What is kept of a job that came in by a function call: a task of a queue, a message, a unit of the agent's own.

`docs/schema.md`, "Inbound units". Arguments are taken down before the function gets them, since it may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from reenact.boundary.inbound import Inbound
from reenact.boundary.origins import Origin
from reenact.values import typed
from reenact.values.json import Json, compact

PROTOCOL = "job"
_stopped_at: list[bool] = []


class _FirstUnit(SystemExit):
    """Thrown where a program comes to its first unit of work. It ends a thread in silence."""


@contextmanager
def up_to_the_first() -> Generator[None]:
    """Run a block no further than to the first unit of work that it comes to, by itself or on a thread."""
    _stopped_at.append(True)
    try:
        yield
    except _FirstUnit:
        return
    finally:
        _stopped_at.clear()


def unit(
    name: str,
    arguments: Mapping[str, Json],
    description: Mapping[str, Json],
    origin: Callable[[], Mapping[str, Json] | None],
    *,
    handed: bool = False,
) -> Inbound:
    """Make the unit for one call: `arguments` is typed JSON, `description` says what it is, `origin` where it is from.

    `handed` says that a worker took it from others.
    """
    if _stopped_at:
        raise _FirstUnit

    def asked() -> dict[str, Any]:
        facts: dict[str, Any] = {
            "reenact.inbound": compact({"protocol": PROTOCOL, **description}),
            "input.value": compact(dict(arguments)),
            "input.mime_type": "application/json",
        }
        if (app_origin := origin()) is not None:
            facts["reenact.app"] = compact(dict(app_origin))
        return facts

    return Inbound(lambda: name, asked, handed=handed)


def arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Json]:
    """Take down what a function is called with."""
    return {"args": [typed.encode(each) for each in args], "kwargs": {k: typed.encode(v) for k, v in kwargs.items()}}


def answered(result: Any) -> Callable[[], dict[str, Any]]:
    """Describe what it returned."""
    return lambda: {"output.value": compact(typed.encode(result)), "output.mime_type": "application/json"}


def nothing() -> dict[str, Any]:
    """Describe that it returned nothing, as it raised."""
    return {}


def said_of(origin: Origin | None, interface: str) -> Mapping[str, Json] | None:
    """Spell an origin, where one was found."""
    return origin.to_json(interface) if origin is not None else None
