"""pydantic-ai: a run of an agent is a section, however it was begun; an agent that a tool asks stands in the tool."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import as_section_of_block
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import NODE_ID, NODE_NAME, NODE_PARENT

_HOOK: Final = "pydantic_ai.agent"
_FRAMEWORK: Final = "pydantic-ai"


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or "agent")
    attributes: dict[str, Json] = {NODE_ID: name, NODE_NAME: name}
    if (around := sections.current()) is not None and around.framework == _FRAMEWORK:
        attributes[NODE_PARENT] = around.name
    asked = kwargs.get("user_prompt", args[1] if len(args) > 1 else None)
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs={"user_prompt": asked}, attributes=attributes)


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        sections.use(patches)
        patches.replace(module.Agent, "iter", as_section_of_block(_agent))

    patches.when_imported(_HOOK, cut)


INTEGRATION = Integration(name="pydantic_ai_sections", libraries=("pydantic_ai",), install=_install, hooks=(_HOOK,))
