"""pydantic-ai: a run of an agent is a section, however it was begun; an agent that a tool asks stands in the tool."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import argument, as_section_of_block, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind

_HOOK: Final = "pydantic_ai.agent"
_FRAMEWORK: Final = "pydantic-ai"


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or "agent")
    inputs = {"user_prompt": argument(args, kwargs, "user_prompt")}
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs=inputs, attributes=node(_FRAMEWORK, name))


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        sections.use(patches)
        patches.replace(module.Agent, "iter", as_section_of_block(_agent))

    patches.when_imported(_HOOK, cut)


INTEGRATION = Integration(name="pydantic_ai_sections", libraries=("pydantic_ai",), install=_install, hooks=(_HOOK,))
