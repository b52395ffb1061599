"""Tools that nobody declared: found by the names in the model's tool schemas, and cut like declared ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reenact.boundary import tool_discovery
from reenact.boundary.wrapping import boundary
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.discovered_tools import FOUND


def _tool_boundary(target: Any, name: str, offered: Callable[[str], bool]) -> Callable[..., Any]:
    """Make a tool that was found a boundary, like a declared one but for what its span says of it."""
    return boundary(CallKind.TOOL, target, name=name, attributes={FOUND: True}, offered=offered)


def _install(patches: PatchSet) -> None:
    patches.when_undone(tool_discovery.install(_tool_boundary))


INTEGRATION = Integration(name="found_tools", libraries=(), install=_install)
