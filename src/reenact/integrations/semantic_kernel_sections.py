"""Semantic Kernel: an agent that is asked is a section, whichever of its methods asks it."""

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

_FRAMEWORK: Final = "semantic-kernel"
_HOOK: Final = "semantic_kernel.agents.chat_completion.chat_completion_agent"
_ASKING: Final = ("get_response", "invoke", "invoke_stream")


def _agent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    name = str(args[0].name)
    around = sections.current()
    attributes: dict[str, Json] = {NODE_ID: name, NODE_NAME: name}
    if around is not None and around.framework == _FRAMEWORK:
        attributes[NODE_PARENT] = around.name
    asked = kwargs.get("messages", args[1] if len(args) > 1 else None)
    text = asked if isinstance(asked, str) else str(getattr(asked, "content", None) or "")
    return sections.begin(_FRAMEWORK, CallKind.AGENT, name, inputs={"messages": text}, attributes=attributes)


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        sections.use(patches)
        for name in _ASKING:
            patches.replace(module.ChatCompletionAgent, name, as_section(_agent))

    patches.when_imported(_HOOK, cut)


INTEGRATION = Integration(
    name="semantic_kernel_sections", libraries=("semantic_kernel",), install=_install, hooks=(_HOOK,)
)
