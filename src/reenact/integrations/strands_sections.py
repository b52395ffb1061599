"""Strands: a run of an agent is a section, and so are a graph, a swarm and their nodes; an agent stands in its node."""

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

_FRAMEWORK: Final = "strands"
_AGENT, _GRAPH, _SWARM = "strands.agent.agent", "strands.multiagent.graph", "strands.multiagent.swarm"


def _asked(args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Json:
    asked = kwargs.get(name, args[1] if len(args) > 1 else None)
    return {name: asked if isinstance(asked, str) else None}


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or "agent")
    attributes: dict[str, Json] = {NODE_ID: name, NODE_NAME: name}
    if (around := sections.current()) is not None and around.framework == _FRAMEWORK:
        attributes[NODE_PARENT] = around.name
    return sections.begin(
        _FRAMEWORK, CallKind.AGENT, name, inputs=_asked(args, kwargs, "prompt"), attributes=attributes
    )


def _several(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or type(args[0]).__name__)
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, inputs=_asked(args, kwargs, "task"))


def _node(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    node = kwargs.get("node", args[1] if len(args) > 1 else None)
    name = str(getattr(node, "node_id", "node"))
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, attributes={NODE_ID: name, NODE_NAME: name})


def _install(patches: PatchSet) -> None:
    def cut_agent(module: ModuleType) -> None:
        sections.use(patches)
        patches.replace(module.Agent, "stream_async", as_section(_agent))

    def cut_several(library_class: Any) -> None:
        sections.use(patches)
        patches.replace(library_class, "stream_async", as_section(_several))
        if hasattr(library_class, "_execute_node"):  # another version has no such method
            patches.replace(library_class, "_execute_node", as_section(_node))

    patches.when_imported(_AGENT, cut_agent)
    patches.when_imported(_GRAPH, lambda module: cut_several(module.Graph))
    patches.when_imported(_SWARM, lambda module: cut_several(module.Swarm))


INTEGRATION = Integration(
    name="strands_sections", libraries=("strands",), install=_install, hooks=(_AGENT, _GRAPH, _SWARM)
)
