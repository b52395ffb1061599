"""fastmcp's transports over stdio: they look whether a server's script is there, before the SDK starts it.

A replay starts none, so that the script need not be there. The transports themselves are the SDK's (`mcp_client`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from reenact.boundary import door
from reenact.contracts.integration import Integration, PatchSet

_MODULES: Final = ("fastmcp.client.transports.stdio", "fastmcp.client.transports.inference")
_SCRIPTS: Final = frozenset({".py", ".js"})


class _AsPath(type):
    """Takes every path for one of the class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Path)


@cache
def _script() -> Any:
    """Make the class of paths that are there for a replay where they name a script."""
    plain: Any = type(Path())

    def there(name: str) -> Any:
        def look(self: Any, **kwargs: Any) -> bool:
            return (door.is_strict() and self.suffix in _SCRIPTS) or getattr(plain, name)(self, **kwargs)

        return look

    return _AsPath("Path", (plain,), {"__slots__": (), "is_file": there("is_file"), "exists": there("exists")})


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        if getattr(module, "Path", None) is Path:
            patches.replace(module, "Path", lambda _: _script())

    for name in _MODULES:
        patches.when_imported(name, cut)


INTEGRATION = Integration(name="fastmcp_scripts", libraries=("fastmcp",), install=_install, hooks=_MODULES)
