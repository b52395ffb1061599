"""LlamaIndex: what its instrumentation tells of are sections: agents, workflows and their steps, query engines.

Cut are the dispatcher's own methods, so that a program that sets span handlers of its own changes nothing. Which span
is current the library keeps itself. Spans of models, embeddings and tools are calls, recorded where they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from types import ModuleType
from typing import Any, Final

from reenact.boundary import sections
from reenact.boundary.forgiving import swallow
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import NODE_ID, NODE_NAME

_HOOK: Final = "llama_index_instrumentation.dispatcher"
_FRAMEWORK: Final = "llama-index"
_MOST: Final = 10_000
_UUID: Final = 37
"""Characters behind the name in the id of a span: a hyphen and a UUID."""
_CALLS: Final = frozenset({"BaseLLM", "BaseEmbedding", "BaseTool", "AsyncBaseTool"})
_AGENTS: Final = frozenset({"BaseWorkflowAgent", "AgentWorkflow"})
_EVENT: Final = "llamaindex.step.input_event"
"""The tag of a span that is a step of a workflow."""
_GIVEN: Final = ("ev", "user_msg", "str_or_query_bundle")
"""Arguments that are what a step, a run or a query is given; others are the library's own objects."""


class _Spans:
    """The spans that are under way, each with the section that it is, or that it is in."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Section | None, bool]] = {}

    def within(self, span_id: Any) -> Section | None:
        """Give the section of a span."""
        return self._open.get(span_id, (None, False))[0]

    def enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: Any = None, tags: Any = None, **_: Any
    ) -> None:
        """Hear that a span began."""
        above, section = self.within(parent_id), None
        bases = {each.__name__ for each in type(instance).__mro__}
        if not bases & _CALLS:
            arguments: Mapping[str, Any] = bound_args.arguments
            inputs = {each: arguments[each] for each in _GIVEN if each in arguments}
            kind, name, attributes = _told(id_[:-_UUID], instance, bases, tags or {})
            for each in arguments.values():
                if attributes and isinstance(agent := getattr(each, "current_agent_name", None), str):
                    name, attributes = f"{name} of {agent}", {**attributes, "agent.name": agent}
                    break
            is_bare = kind is CallKind.CHAIN and "Workflow" not in bases and not attributes
            section = sections.begin(
                _FRAMEWORK, kind, name, below=above, inputs=inputs, attributes=attributes, bare=is_bare
            )
        self._open[id_] = section or above, section is not None
        if len(self._open) > _MOST:
            self._open.pop(next(iter(self._open)), None)

    def leave(self, id_: str, *_: Any, result: Any = None, **__: Any) -> None:
        """Hear that a span gave something."""
        section, is_own = self._open.pop(id_, (None, False))
        if is_own:
            sections.end(section, result)

    def drop(self, id_: str, *_: Any, err: BaseException | None = None, **__: Any) -> None:
        """Hear that a span failed."""
        section, is_own = self._open.pop(id_, (None, False))
        if is_own:
            sections.end(section, error=err or RuntimeError("it was dropped"))


def _told(name: str, instance: Any, bases: set[str], tags: Mapping[str, Any]) -> tuple[CallKind, str, dict[str, Json]]:
    """Say what a span is: the run of an agent or a workflow, a step of one, or any other function of the library's."""
    owner, _, method = name.rpartition(".")
    if instance is None and _EVENT in tags:
        return CallKind.CHAIN, method, {NODE_ID: name, NODE_NAME: method}
    if method != "run" or "Workflow" not in bases:
        return CallKind.CHAIN, name, {}
    if bases & _AGENTS:
        return CallKind.AGENT, str(getattr(instance, "name", None) or owner), {}
    return CallKind.CHAIN, owner, {}


def _heard(hear: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method of the dispatcher be heard of, before it does what it does."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                hear(*args, **kwargs)
            except Exception:
                swallow("llamaindex_sections", structure=True)
            return original(self, *args, **kwargs)

        return method

    return make


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        spans, active = _Spans(), module.active_span_id
        patches.replace(module.Dispatcher, "span_enter", _heard(spans.enter))
        patches.replace(module.Dispatcher, "span_exit", _heard(spans.leave))
        patches.replace(module.Dispatcher, "span_drop", _heard(spans.drop))
        sections.use(patches, lambda: spans.within(active.get()))

    patches.when_imported(_HOOK, cut)


INTEGRATION = Integration(
    name="llamaindex_sections", libraries=("llama_index_instrumentation",), install=_install, hooks=(_HOOK,)
)
