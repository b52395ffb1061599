"""reenact records an agent's run as OpenTelemetry spans and replays the agent's own code from them, offline.

    reenact.record()                            record this process
    @reenact.tool / agent / chain / retriever / llm
    with reenact.run("name", user=…, session=…, tenant=…): one unit of work, a run of its own
    reenact.flag(name, value)                   a feature flag: a replay gives its recorded value
    @reenact.unit                               each call of a function is a run, replayed by calling it again
    reenact.load("last")                        a recorded run
    with reenact.replay(run):                   answer this process from it
    reenact.check(run, 'never called pay')      hold assertions against a run (also `reenact.assertions`)
    reenact.compare(a, b)                       first divergence first
    reenact.RedactionSpanProcessor(processor)   spans of any OpenTelemetry program, redacted before they leave
    reenact.redact_everything(provider)         the same for all that a provider exports by, now and later

Importing this module imports nothing else: each name brings its module when it is first asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from reenact.version import VERSION

TYPE_CHECKING = False  # importing `typing` would take longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from reenact.facade import check, compare, load, record, replay, run
    from reenact.integrations.flags import flag
    from reenact.integrations.functions import agent, chain, llm, retriever, tool
    from reenact.integrations.units import unit
    from reenact.redact.exporter import RedactingSpanExporter
    from reenact.redact.logs import RedactingLogRecordExporter, RedactingLogRecordProcessor
    from reenact.redact.processor import RedactionSpanProcessor
    from reenact.redact.provider_guard import redact_everything

__version__ = VERSION

__all__ = [
    "RedactingLogRecordExporter",
    "RedactingLogRecordProcessor",
    "RedactingSpanExporter",
    "RedactionSpanProcessor",
    "__version__",
    "agent",
    "chain",
    "check",
    "compare",
    "flag",
    "llm",
    "load",
    "record",
    "redact_everything",
    "replay",
    "retriever",
    "run",
    "tool",
    "unit",
]

_DEFINED_IN = {
    "RedactingLogRecordExporter": "redact.logs",
    "RedactingLogRecordProcessor": "redact.logs",
    "RedactingSpanExporter": "redact.exporter",
    "RedactionSpanProcessor": "redact.processor",
    "agent": "integrations.functions",
    "chain": "integrations.functions",
    "check": "facade",
    "compare": "facade",
    "flag": "integrations.flags",
    "llm": "integrations.functions",
    "load": "facade",
    "record": "facade",
    "redact_everything": "redact.provider_guard",
    "replay": "facade",
    "retriever": "integrations.functions",
    "run": "facade",
    "tool": "integrations.functions",
    "unit": "integrations.units",
}
"""Each name of `__all__`, and the module that defines it, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Facade(ModuleType):
    """Keeps `reenact.record`, `.replay` and `.compare` the functions, though rooms of the same names are imported.

    The import system sets a submodule as an attribute of its package, which would hide the function from `__getattr__`;
    the rooms stay reachable by `from reenact.replay…`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
