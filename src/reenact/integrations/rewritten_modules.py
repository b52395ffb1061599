"""Modules that pytest rewrites as it imports them: its own plugins, which anyio, langsmith and pytest-xdist are.

Its importer stands before the one that tells of imports, which never sees them. So it tells of them itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import wrapt

from reenact.contracts.integration import Integration, PatchSet


def _exec_module(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def exec_module(self: Any, module: ModuleType) -> None:
        original(self, module)
        wrapt.notify_module_loaded(module)

    return exec_module


def _install(patches: PatchSet) -> None:
    patches.when_imported(
        "_pytest.assertion.rewrite",
        lambda module: patches.replace(module.AssertionRewritingHook, "exec_module", _exec_module),
    )


INTEGRATION = Integration(
    name="rewritten_modules", libraries=("pytest",), install=_install, hooks=("_pytest.assertion.rewrite",)
)
