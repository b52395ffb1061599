"""Clients in native code, where they reach out: Python raises no audit event for what they do.

Each is cut at its Python surface, where it connects, and says so by an audit event of ours. Whoever listens to Python's
own events hears it as one of them: a recording notes that nobody recorded it, a replay refuses it and names the line.
What such a client does over a connection is not looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from reenact.boundary.touches import CHILD, NATIVE
from reenact.contracts.integration import Integration, PatchSet

_Target = Callable[[tuple[Any, ...], dict[str, Any]], str | None]
"""Says of the arguments of a call what it reaches; None where that is nothing outside."""


def _nothing_more(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> str:
    return ""


def _file(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Give the path of an embedded database; None for one in memory."""
    path = str(args[0] if args else kwargs.get("database", "")) or ":memory:"
    return None if path.startswith(":memory:") else path


def _host(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Give the address of an event loop's connection; None where the socket is connected already."""
    if kwargs.get("sock") is not None:
        return None
    host, port = (*args[2:4], None, None)[:2]  # behind the loop and the protocol
    host, port = kwargs.get("host", host), kwargs.get("port", port)
    return f"{host}:{port}" if port is not None else str(host or kwargs.get("path") or "")


def _program(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> str:
    """Give the program that an event loop starts, or the line of the shell."""
    return _text(args[2]) if len(args) > 2 else ""  # behind the loop and the protocol


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _after(*names: str) -> _Target:
    """Give the first named argument that a call has."""

    def read(_args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return next((str(kwargs[name]) for name in names if kwargs.get(name)), "")

    return read


_CUTS: Final[dict[str, tuple[tuple[str, str, _Target], ...]]] = {
    "MySQLdb": (("", "connect", _after("host")), ("", "Connect", _after("host"))),
    "pyodbc": (("", "connect", _nothing_more),),
    "duckdb": (("", "connect", _file),),
    "pycurl": (("Curl", "perform", _nothing_more), ("CurlMulti", "perform", _nothing_more)),
    "curl_cffi.curl": (("Curl", "perform", _nothing_more),),
    "uvloop": (
        ("Loop", "create_connection", _host),
        ("Loop", "create_unix_connection", _host),
        ("Loop", "create_datagram_endpoint", _host),
        ("Loop", "subprocess_exec", _program),
        ("Loop", "subprocess_shell", _program),
    ),
    "zmq.sugar.socket": (("Socket", "connect", lambda args, _: str(args[1]) if len(args) > 1 else ""),),
    "confluent_kafka": (("Producer", "produce", _nothing_more), ("Consumer", "subscribe", _nothing_more)),
}
"""Module to what in it reaches out: its class (empty for the module itself), its name, and who says what it reaches."""


def _says(library: str, target: _Target) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
    def say(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        reached = target(args, kwargs)
        if target is _program:
            sys.audit(CHILD, library, reached)
        elif reached is not None:
            sys.audit(NATIVE, library, reached, target is _file)

    return say


def _cut_function(original: Any, say: Callable[..., None]) -> Any:
    @wraps(original)
    def reaching(*args: Any, **kwargs: Any) -> Any:
        say(args, kwargs)
        return original(*args, **kwargs)

    return reaching


def _cut_class_method(original: Any, say: Callable[..., None]) -> Any:
    function = original.__func__

    @wraps(function)
    def reaching(cls: Any, *args: Any, **kwargs: Any) -> Any:
        say(args, kwargs)
        return function(cls, *args, **kwargs)

    return classmethod(reaching)


def _subclass(original: Any, name: str, say: Callable[..., None]) -> Any:
    """Make a class for one in C, whose methods nobody can replace."""
    inner = getattr(original, name)

    def reaching(self: Any, *args: Any, **kwargs: Any) -> Any:
        say((self, *args), kwargs)
        return inner(self, *args, **kwargs)

    identity = {"__module__": original.__module__, "__qualname__": original.__qualname__, "__doc__": original.__doc__}
    return type(original.__name__, (original,), {**identity, name: wraps(inner)(reaching)})


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        for holder, name, target in _CUTS[module.__name__]:
            say = _says(module.__name__.partition(".")[0], target)
            owner: Any = getattr(module, holder, None) if holder else module
            if getattr(owner, name, None) is None:
                continue
            if not holder or isinstance(vars(owner).get(name), _Function):
                patches.replace(owner, name, lambda original, say=say: _cut_function(original, say))
            elif isinstance(vars(owner).get(name), classmethod):
                patches.replace(owner, name, lambda original, say=say: _cut_class_method(original, say))
            else:
                patches.replace(module, holder, lambda kind, say=say, name=name: _subclass(kind, name, say))

    for library in _CUTS:
        patches.when_imported(library, cut)


_Function = type(_install)

INTEGRATION = Integration(name="native_clients", libraries=tuple(_CUTS), install=_install, hooks=tuple(_CUTS))
