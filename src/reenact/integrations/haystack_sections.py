"""Haystack: a pipeline is a section, and so are its components in which something is called, and agents."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import argument, as_section, cut, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind

_FRAMEWORK: Final = "haystack"
_PIPELINE, _AGENT = "haystack.core.pipeline.pipeline", "haystack.components.agents.agent"


def _pipeline(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Section | None:
    metadata: Any = getattr(args[0], "metadata", None) or {}
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, str(metadata.get("name") or "pipeline"))


def _component(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    """Begin the section of a component; the functions that run one are static."""
    name = str(kwargs.get("component_name", args[0] if args else "component"))
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, attributes=node(_FRAMEWORK, name), bare=True)


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    messages = argument(args, kwargs, "messages") or ()
    inputs = {"messages": [str(getattr(each, "text", None) or "") for each in messages]}
    return sections.begin(_FRAMEWORK, CallKind.AGENT, "agent", inputs=inputs, attributes=node(_FRAMEWORK, "agent"))


def _static(original: Any) -> Any:
    return staticmethod(as_section(_component)(original))


def _install(patches: PatchSet) -> None:
    def cut_pipeline(module: ModuleType) -> None:
        cut(patches, module.Pipeline, _pipeline, "run", "run_async_generator")
        for name in ("_run_component", "_run_component_async"):
            if hasattr(module.Pipeline, name):  # another version has no such function
                patches.replace(module.Pipeline, name, _static)

    patches.when_imported(_PIPELINE, cut_pipeline)
    patches.when_imported(_AGENT, lambda module: cut(patches, module.Agent, _agent, "run", "run_async"))


INTEGRATION = Integration(
    name="haystack_sections", libraries=("haystack",), install=_install, hooks=(_PIPELINE, _AGENT)
)
