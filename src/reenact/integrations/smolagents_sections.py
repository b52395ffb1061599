"""smolagents: a run of an agent is a section, and so is each step; a managed agent stands in the step it runs in."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import argument, cut, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind

_HOOK: Final = "smolagents.agents"
_FRAMEWORK: Final = "smolagents"


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    agent = args[0]
    name = str(getattr(agent, "name", None) or type(agent).__name__)
    attributes = node(_FRAMEWORK, name, in_agent=True)
    task = argument(args, kwargs, "task")
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs={"task": task}, attributes=attributes)


def _step(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    step = argument(args, kwargs, "memory_step")
    number = getattr(step, "step_number", "")
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, f"step {number}".strip())


def _planning(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Section | None:
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, "planning")


def _install(patches: PatchSet) -> None:
    def cut_agents(module: ModuleType) -> None:
        cut(patches, module.MultiStepAgent, _agent, "_run_stream")
        cut(patches, module.MultiStepAgent, _planning, "_generate_planning_step")
        for name in ("ToolCallingAgent", "CodeAgent"):
            cut(patches, getattr(module, name), _step, "_step_stream")

    patches.when_imported(_HOOK, cut_agents)


INTEGRATION = Integration(name="smolagents_sections", libraries=("smolagents",), install=_install, hooks=(_HOOK,))
