"""Google's ADK: an invocation of a runner is a section, and so is each agent in it, in the one that it is asked by."""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import argument, cut
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import NODE_ID, NODE_NAME, NODE_PARENT

_FRAMEWORK: Final = "google-adk"
_AGENTS, _RUNNERS = "google.adk.agents.base_agent", "google.adk.runners"


def _text(content: Any) -> str:
    """Join the texts of a `Content`."""
    return "".join(str(part.text) for part in getattr(content, "parts", None) or () if getattr(part, "text", None))


def _invocation(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "app_name", None) or "runner")
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, inputs={"new_message": _text(kwargs.get("new_message"))})


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    agent = args[0]
    name = str(agent.name)
    attributes: dict[str, Json] = {NODE_ID: name, NODE_NAME: name}
    if (above := getattr(agent, "parent_agent", None)) is not None:
        attributes[NODE_PARENT] = str(above.name)
    context = argument(args, kwargs, "parent_context")
    asked = _text(getattr(context, "user_content", None))
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs={"user_content": asked}, attributes=attributes)


def _install(patches: PatchSet) -> None:
    patches.when_imported(_AGENTS, lambda module: cut(patches, module.BaseAgent, _agent, "run_async", "run_live"))
    patches.when_imported(_RUNNERS, lambda module: cut(patches, module.Runner, _invocation, "run_async", "run_live"))


INTEGRATION = Integration(
    name="google_adk_sections", libraries=("google.adk",), install=_install, hooks=(_AGENTS, _RUNNERS)
)
