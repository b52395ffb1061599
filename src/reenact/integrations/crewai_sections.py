"""CrewAI: a crew, a flow, its methods, a task and an agent at work on it are sections, each in the one around it."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import argument, cut, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind

_FRAMEWORK: Final = "crewai"
_CREW, _TASK, _AGENT, _FLOW = "crewai.crew", "crewai.task", "crewai.agent.core", "crewai.flow.flow"
_LONGEST: Final = 60
"""Characters of a description that stand for a name."""


def _crew(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or "crew")
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, inputs={"inputs": argument(args, kwargs, "inputs")})


def _task(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Section | None:
    task = args[0]
    description = " ".join(str(task.description).split())
    name = str(getattr(task, "name", None) or description[:_LONGEST])
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, f"task {name}", inputs={"description": description})


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    """Begin the section of an agent; one that hands work to another has that one in its own."""
    name = str(args[0].role).strip()
    attributes = node(_FRAMEWORK, name, in_agent=True)
    asked = kwargs.get("messages", args[1] if len(args) > 1 else kwargs.get("task"))
    text = asked if isinstance(asked, str) else str(getattr(asked, "description", ""))
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs={"task": text}, attributes=attributes)


def _is_own(flow: Any) -> bool:
    """Tell a flow that CrewAI itself is built of, such as the loop of an agent."""
    return type(flow).__module__.partition(".")[0] == "crewai"


def _flow(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    if _is_own(args[0]):
        return None
    name = str(getattr(args[0], "name", None) or type(args[0]).__name__)
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, inputs={"inputs": argument(args, kwargs, "inputs")})


def _method(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    if _is_own(args[0]):
        return None
    name = str(argument(args, kwargs, "method_name"))
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, attributes=node(_FRAMEWORK, name))


def _install(patches: PatchSet) -> None:
    def cut_agent(module: ModuleType) -> None:
        cut(patches, module.Agent, _agent, "execute_task", "aexecute_task", "kickoff", "kickoff_async")

    def cut_flow(module: ModuleType) -> None:
        cut(patches, module.Flow, _flow, "kickoff_async")
        cut(patches, module.Flow, _method, "_execute_method")

    patches.when_imported(_CREW, lambda module: cut(patches, module.Crew, _crew, "kickoff", "akickoff"))
    patches.when_imported(_TASK, lambda module: cut(patches, module.Task, _task, "_execute_core", "_aexecute_core"))
    patches.when_imported(_AGENT, cut_agent)
    patches.when_imported(_FLOW, cut_flow)


INTEGRATION = Integration(
    name="crewai_sections", libraries=("crewai",), install=_install, hooks=(_CREW, _TASK, _AGENT, _FLOW)
)
