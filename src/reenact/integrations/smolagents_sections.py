"""smolagents: a run of an agent is a section, and so is each step; a managed agent stands in the step it runs in."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import as_section
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import NODE_ID, NODE_NAME, NODE_PARENT

_HOOK: Final = "smolagents.agents"
_FRAMEWORK: Final = "smolagents"


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    agent = args[0]
    name = str(getattr(agent, "name", None) or type(agent).__name__)
    attributes: dict[str, Json] = {NODE_ID: name, NODE_NAME: name}
    around = sections.current()
    while around is not None and around.kind is not CallKind.AGENT:
        around = around.parent
    if around is not None and around.framework == _FRAMEWORK:
        attributes[NODE_PARENT] = around.name
    task = kwargs.get("task", args[1] if len(args) > 1 else None)
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs={"task": task}, attributes=attributes)


def _step(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    step = kwargs.get("memory_step", args[1] if len(args) > 1 else None)
    number = getattr(step, "step_number", "")
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, f"step {number}".strip())


def _planning(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Section | None:
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, "planning")


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        sections.use(patches)
        patches.replace(module.MultiStepAgent, "_run_stream", as_section(_agent))
        patches.replace(module.MultiStepAgent, "_generate_planning_step", as_section(_planning))
        for name in ("ToolCallingAgent", "CodeAgent"):
            patches.replace(getattr(module, name), "_step_stream", as_section(_step))

    patches.when_imported(_HOOK, cut)


INTEGRATION = Integration(name="smolagents_sections", libraries=("smolagents",), install=_install, hooks=(_HOOK,))
