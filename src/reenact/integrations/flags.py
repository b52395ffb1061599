"""Feature flags: `reenact.flag(name, value)`, and what clients of OpenFeature evaluate for the agent's own code.

A flag is like a time: where it is read it has the value again that it had when recorded, whatever it is now. Who
evaluates it does so in a replay as well, its requests answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final, TypeVar, cast

from reenact.boundary.own_code import own_frame
from reenact.boundary.tape import FLAG, Sites, Source, draw, is_on
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms
from reenact.values.json import Json, compact, parse

V = TypeVar("V")
_MOST: Final = 1_000
"""So many flags are known by heart; a program that makes their names anew all the time is asked again."""
_sites: Final[dict[str, Sites]] = {}


def flag(name: str, value: V) -> V:
    """Tell what a feature flag is here, and give that; in a replay give what it was when recorded.

    The value is one of JSON: `if reenact.flag("new-prices", client.is_enabled("new-prices")):`. Any other is given back
    and not kept.
    """
    return _drawn(name, value, _getframe().f_back) if is_on() else value


def _spell(value: Json) -> Json:
    """Put a value into a list: an object would say that draws were lost."""
    return [value]


def _read(spelled: Json) -> Json:
    if not isinstance(spelled, list) or len(spelled) != 1:
        raise ValueError(f"{compact(spelled)} is no value of a flag")
    return spelled[0]


def _drawn(name: str, value: V, frame: FrameType | None) -> V:
    try:
        sites = _sites.get(name)
        if sites is None:
            if len(_sites) >= _MOST:
                _sites.clear()
            sites = _sites[name] = Sites(
                Source(name=f"{FLAG} {name}", spell=_spell, read=_read, is_compared=True), libraries=False
            )
        site = sites.of(frame)
        kept = parse(compact(cast("Any", value))) if site is not None else None
    except Exception:
        alarms.pass_on()
        return value
    if site is None or kept != value:
        return value
    given = draw(site, lambda: kept)
    return value if given == kept else given


def _given(details: Any, name: object, frame: FrameType | None) -> Any:
    """Give an evaluation with the value that it had when recorded."""
    was = {"value": details.value, "variant": details.variant, "reason": _text(details.reason)}
    given = _drawn(str(name), was, own_frame(frame))
    return details if given is was else replace(details, **{each: given[each] for each in was if each in given})


def _text(reason: object) -> str | None:
    return None if reason is None else str(reason)


def _evaluation(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def evaluate_flag_details(client: Any, *args: Any, **kwargs: Any) -> Any:
        details = original(client, *args, **kwargs)
        return _given(details, _key(args, kwargs), _getframe().f_back) if is_on() else details

    return evaluate_flag_details


def _evaluation_async(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    async def evaluate_flag_details_async(client: Any, *args: Any, **kwargs: Any) -> Any:
        details = await original(client, *args, **kwargs)
        return _given(details, _key(args, kwargs), _getframe().f_back) if is_on() else details

    return evaluate_flag_details_async


def _key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    return args[1] if len(args) > 1 else kwargs.get("flag_key")


def _install(patches: PatchSet) -> None:
    def of_client(module: Any) -> None:
        patches.replace(module.OpenFeatureClient, "evaluate_flag_details", _evaluation)
        if hasattr(module.OpenFeatureClient, "evaluate_flag_details_async"):
            patches.replace(module.OpenFeatureClient, "evaluate_flag_details_async", _evaluation_async)

    patches.when_imported("openfeature.client", of_client)


INTEGRATION = Integration(name="flags", libraries=("openfeature",), install=_install, hooks=("openfeature.client",))
