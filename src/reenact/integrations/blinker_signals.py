"""The order in which blinker calls the receivers of a signal, as Flask's signals have them.

blinker keeps its receivers by `id()` and goes through a set of these, so that several are called in another order in
every process. It promises none. While a run is recorded or replayed, they are called as they were connected.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, Final

from reenact.boundary import tape
from reenact.boundary.forgiving import forgive
from reenact.contracts.integration import Integration, PatchSet

_MODULE: Final = "blinker.base"


def _in_order(make_id: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def make(original: Callable[..., Generator[Any]]) -> Callable[..., Generator[Any]]:
        @wraps(original)
        def receivers_for(self: Any, sender: Any) -> Generator[Any]:
            if not tape.is_on():
                yield from original(self, sender)
                return
            receivers = [*original(self, sender)]
            try:
                places = {identity: place for place, identity in enumerate(self.receivers)}
                receivers.sort(key=lambda each: places.get(make_id(each), -1))
            except Exception:
                forgive("blinker_signals.receivers_for")
            for receiver in receivers:
                if make_id(receiver) in self.receivers:  # one that was called before may have disconnected it
                    yield receiver

        return receivers_for

    return make


def _cut(patches: PatchSet, module: Any) -> None:
    if hasattr(module, "make_id") and hasattr(module.Signal, "receivers_for"):
        patches.replace(module.Signal, "receivers_for", _in_order(module.make_id))


def _install(patches: PatchSet) -> None:
    patches.when_imported(_MODULE, lambda module: _cut(patches, module))


INTEGRATION = Integration(name="blinker_signals", libraries=("blinker",), install=_install, hooks=(_MODULE,))
