"""DSPy: a module that is called is a section; one that reasons and acts (`ReAct`) is an agent."""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import cut, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind

_FRAMEWORK: Final = "dspy"
_HOOK: Final = "dspy.primitives.module"
_AGENTS: Final = ("ReAct", "ReActV2", "CodeAct", "RLM")


def _module(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    names = [each.__name__ for each in type(args[0]).__mro__]
    kind = CallKind.AGENT if any(name in _AGENTS for name in names) else CallKind.CHAIN
    return sections.begin(_FRAMEWORK, kind, names[0], inputs=kwargs, attributes=node(_FRAMEWORK, names[0]))


def _install(patches: PatchSet) -> None:
    patches.when_imported(_HOOK, lambda module: cut(patches, module.Module, _module, "__call__", "acall"))


INTEGRATION = Integration(name="dspy_sections", libraries=("dspy",), install=_install, hooks=(_HOOK,))
