"""Strands: a run of an agent is a section, and so are a graph, a swarm and their nodes; an agent stands in its node."""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import argument, cut, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json

_FRAMEWORK: Final = "strands"
_AGENT, _GRAPH, _SWARM = "strands.agent.agent", "strands.multiagent.graph", "strands.multiagent.swarm"


def _asked(args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Json:
    asked = argument(args, kwargs, name)
    return {name: asked if isinstance(asked, str) else None}


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or "agent")
    attributes = node(_FRAMEWORK, name)
    return sections.begin(
        _FRAMEWORK, CallKind.AGENT, name, inputs=_asked(args, kwargs, "prompt"), attributes=attributes
    )


def _several(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or type(args[0]).__name__)
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, inputs=_asked(args, kwargs, "task"))


def _node(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(argument(args, kwargs, "node"), "node_id", "node"))
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, attributes=node(_FRAMEWORK, name))


def _install(patches: PatchSet) -> None:
    def cut_several(library_class: Any) -> None:
        cut(patches, library_class, _several, "stream_async")
        cut(patches, library_class, _node, "_execute_node")

    patches.when_imported(_AGENT, lambda module: cut(patches, module.Agent, _agent, "stream_async"))
    patches.when_imported(_GRAPH, lambda module: cut_several(module.Graph))
    patches.when_imported(_SWARM, lambda module: cut_several(module.Swarm))


INTEGRATION = Integration(
    name="strands_sections", libraries=("strands",), install=_install, hooks=(_AGENT, _GRAPH, _SWARM)
)
