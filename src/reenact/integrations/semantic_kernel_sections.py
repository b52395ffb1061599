"""Semantic Kernel: an agent that is asked is a section, whichever of its methods asks it."""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.section_cuts import argument, cut, node
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind

_FRAMEWORK: Final = "semantic-kernel"
_HOOK: Final = "semantic_kernel.agents.chat_completion.chat_completion_agent"
_ASKING: Final = ("get_response", "invoke", "invoke_stream")


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(args[0].name)
    asked = argument(args, kwargs, "messages")
    inputs = {"messages": asked if isinstance(asked, str) else str(getattr(asked, "content", None) or "")}
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs=inputs, attributes=node(_FRAMEWORK, name))


def _install(patches: PatchSet) -> None:
    patches.when_imported(_HOOK, lambda module: cut(patches, module.ChatCompletionAgent, _agent, *_ASKING))


INTEGRATION = Integration(
    name="semantic_kernel_sections", libraries=("semantic_kernel",), install=_install, hooks=(_HOOK,)
)
