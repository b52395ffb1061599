"""The OpenAI Agents SDK: what it traces of a run are sections: workflows, agents, turns, hand-offs and guardrails.

Cut are the SDK's spans themselves, and no processor is added: programs take processors away, and with tracing turned
off the SDK opens spans that go nowhere, of which no processor hears. Which span is current the SDK keeps itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.forgiving import swallow
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import NODE_ID, NODE_NAME, NODE_PARENT

_HOOK: Final = "agents.tracing.spans"
_FRAMEWORK: Final = "openai-agents"
_MOST: Final = 10_000
_CLASSES: Final = ("SpanImpl", "NoOpSpan")


class _Spans:
    """The SDK's spans that are under way, each with the section that it is or that it is in."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Any, Section | None, bool]] = {}
        self._handed: dict[tuple[Section | None, str], str] = {}
        """Which agent handed over to which, by the section that the agents are in."""

    def within(self, span: Any) -> Section | None:
        """Give the section of a span."""
        entry = self._open.get(id(span))
        return entry[1] if entry is not None and entry[0] is span else None

    def begin(self, span: Any) -> None:
        """Hear that a span is about to begin."""
        around, section = sections.current(), None
        data = span.span_data
        match str(data.type):
            case "agent":
                name = str(data.name)
                attributes: dict[str, Json] = {NODE_ID: name, NODE_NAME: name}
                if (led := self._handed.pop((around, name), None)) is not None:
                    attributes[NODE_PARENT] = led
                section = sections.begin(_FRAMEWORK, CallKind.AGENT, name, attributes=attributes)
            case "turn":
                section = sections.begin(_FRAMEWORK, CallKind.CHAIN, f"turn {data.turn}")
            case "handoff":
                section = sections.begin(_FRAMEWORK, CallKind.CHAIN, f"hand-off from {data.from_agent}", bare=True)
            case "guardrail":
                section = sections.begin(_FRAMEWORK, CallKind.CHAIN, f"guardrail {data.name}")
            case "task" | "custom":
                section = sections.begin(_FRAMEWORK, CallKind.CHAIN, str(data.name))
            case _:  # a call, which is recorded where it is made
                pass
        self._open[id(span)] = span, section or around, section is not None
        if len(self._open) > _MOST:
            self._open.pop(next(iter(self._open)), None)

    def end(self, span: Any) -> None:
        """Hear that a span ended."""
        _, section, is_own = self._open.pop(id(span), (None, None, False))
        if section is None or not is_own:
            return
        data = span.span_data
        if str(data.type) == "handoff" and data.to_agent:
            section.name = f"hand-off to {data.to_agent}"
            section.attributes["metadata"] = {"from": str(data.from_agent), "to": str(data.to_agent)}
            self._hand(section, str(data.from_agent), str(data.to_agent))
            sections.keep(section)
        if span.error is not None:
            sections.end(section, error=RuntimeError(str(span.error.get("message", ""))))
        else:
            sections.end(section)

    def _hand(self, section: Section, giver: str, taker: str) -> None:
        agent = section.parent
        while agent is not None and agent.kind is not CallKind.AGENT:
            agent = agent.parent
        if len(self._handed) > _MOST:
            self._handed.clear()
        self._handed[agent.parent if agent is not None else None, taker] = giver


def _heard(hear: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method of a span be heard of, before it does what it does."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                hear(self)
            except Exception:
                swallow("openai_agents_sections", structure=True)
            return original(self, *args, **kwargs)

        return method

    return make


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        spans = _Spans()
        scope = module.Scope
        for name in _CLASSES:
            patches.replace(getattr(module, name), "start", _heard(spans.begin))
            patches.replace(getattr(module, name), "finish", _heard(spans.end))
        sections.use(patches, lambda: spans.within(scope.get_current_span()))

    patches.when_imported(_HOOK, cut)


INTEGRATION = Integration(name="openai_agents_sections", libraries=("agents",), install=_install, hooks=(_HOOK,))
