"""Logfire's instrumentation of model providers: the calls that it shows are recorded too, and shown by it alone.

It opens a span of its own for a model call and has OpenTelemetry suppress every other instrumentation beneath it. That
says who shows the call, and not, as a `suppress_tracing` of the application's does, that nobody shall write it down.

When configured it asks git for the commit, to name the service's version, and does without where there is no git. A
replay starts no child process, so there it is told that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from reenact.boundary import door
from reenact.boundary.side_effects import replaced_in_a_replay
from reenact.contracts.integration import Integration, PatchSet


def _marked(original: Callable[[bool], AbstractContextManager[None]]) -> Callable[[bool], AbstractContextManager[None]]:
    @contextmanager
    def maybe_suppress_instrumentation(suppress: bool) -> Generator[None]:  # noqa: FBT001 - as Logfire declares it
        with door.shown_by_another(), original(suppress):
            yield

    return maybe_suppress_instrumentation


def _without_git(original: Callable[[], str]) -> Callable[[], str]:
    def get_git_revision_hash() -> str:
        if door.is_strict():
            raise FileNotFoundError("git is not asked in a replay")
        with replaced_in_a_replay():
            return original()

    return get_git_revision_hash


_CUTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "logfire._internal.integrations.llm_providers.llm_provider": ("maybe_suppress_instrumentation", _marked),
    "logfire._internal.config": ("get_git_revision_hash", _without_git),
}
"""Module to the name in it that is replaced. They are private: a Logfire without one of them is left alone."""


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        name, make = _CUTS[module.__name__]
        if hasattr(module, name):
            patches.replace(module, name, make)

    for library in INTEGRATION.libraries:
        patches.when_imported(library, cut)


INTEGRATION = Integration(name="logfire", libraries=tuple(_CUTS), install=_install, hooks=tuple(_CUTS))
