"""DSPy: a module that is called is a section; one that reasons and acts (`ReAct`) is an agent."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import as_section
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.run import NODE_ID, NODE_NAME

_FRAMEWORK: Final = "dspy"
_HOOK: Final = "dspy.primitives.module"
_AGENTS: Final = ("ReAct", "ReActV2", "CodeAct", "RLM")


def _module(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    names = [each.__name__ for each in type(args[0]).__mro__]
    kind = CallKind.AGENT if any(name in _AGENTS for name in names) else CallKind.CHAIN
    attributes = {NODE_ID: names[0], NODE_NAME: names[0]}
    return sections.begin(_FRAMEWORK, kind, names[0], inputs=kwargs, attributes={**attributes})


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        sections.use(patches)
        for name in ("__call__", "acall"):
            patches.replace(module.Module, name, as_section(_module))

    patches.when_imported(_HOOK, cut)


INTEGRATION = Integration(name="dspy_sections", libraries=("dspy",), install=_install, hooks=(_HOOK,))
