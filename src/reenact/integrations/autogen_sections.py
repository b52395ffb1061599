"""AutoGen's AgentChat: a team is a section, and so is each turn of an agent in it, or an agent that runs by itself.

A team hands each turn to a container, which asks the agent; an agent that runs alone is asked by its own `run`.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import cut, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json

_FRAMEWORK: Final = "autogen"
_AGENTS: Final = "autogen_agentchat.agents._base_chat_agent"
_TEAMS: Final = "autogen_agentchat.teams._group_chat._base_group_chat"
_TURNS: Final = "autogen_agentchat.teams._group_chat._chat_agent_container"


def _agent_section(agent: Any, inputs: Json) -> Section | None:
    name = str(agent.name)
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs=inputs, attributes=node(_FRAMEWORK, name))


def _task(kwargs: dict[str, Any]) -> Json:
    task = kwargs.get("task")
    text = task if isinstance(task, str) else str(getattr(task, "content", None) or "")
    return {"task": text}


def _alone(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    return _agent_section(args[0], _task(kwargs))


def _turn(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Section | None:
    """Begin the section of an agent's turn; a team in a team has its own."""
    agent = getattr(args[0], "_agent", None)
    if agent is None or not hasattr(agent, "on_messages_stream"):
        return None
    messages = getattr(args[0], "_message_buffer", None) or ()
    return _agent_section(agent, {"messages": [str(getattr(each, "content", "")) for each in messages]})


def _team(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(getattr(args[0], "name", None) or type(args[0]).__name__)
    return sections.begin(_FRAMEWORK, CallKind.CHAIN, name, inputs=_task(kwargs))


def _install(patches: PatchSet) -> None:
    patches.when_imported(_AGENTS, lambda module: cut(patches, module.BaseChatAgent, _alone, "run", "run_stream"))
    patches.when_imported(_TEAMS, lambda module: cut(patches, module.BaseGroupChat, _team, "run_stream"))
    patches.when_imported(_TURNS, lambda module: cut(patches, module.ChatAgentContainer, _turn, "handle_request"))


INTEGRATION = Integration(
    name="autogen_sections", libraries=("autogen_agentchat",), install=_install, hooks=(_AGENTS, _TEAMS, _TURNS)
)
