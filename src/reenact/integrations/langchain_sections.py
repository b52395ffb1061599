"""LangChain and LangGraph: their runs, as callbacks tell of them, are sections: agents, graphs, nodes and chains.

A handler of ours is in every callback manager, as one of `register_configure_hook`'s. Where code runs is told by the
configuration that LangChain carries along for child runs, in tasks, threads and streams alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from types import ModuleType
from typing import Any, Final, cast

from reenact.boundary import sections
from reenact.boundary.forgiving import swallow
from reenact.boundary.sections import Section
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import NODE_ID, NODE_NAME, NODE_PARENT

_HOOKS: Final = ("langchain_core.tracers.context",)
"""Imported by the first run of anything of LangChain's."""
_MOST: Final = 10_000
"""So many runs are known at most: one whose end is never told is forgotten by and by."""
_STEP, _HIDDEN = "graph:step:", "langsmith:hidden"
_KEPT: Final = ("langgraph_step", "langgraph_triggers", "langgraph_checkpoint_ns", "thread_id", "lc_agent_name")
"""What of a run's metadata goes along."""


class _Runs:
    """The runs that are under way, by their ids."""

    def __init__(self) -> None:
        self._sections: dict[Any, Section] = {}
        self._parts: dict[Any, Section] = {}
        """Runs that are no sections, and the sections that they are in."""
        self._steps: dict[Any, _Steps] = {}

    def within(self, run_id: Any) -> Section | None:
        """Give the section of a run, or of the one that it is part of."""
        return self._sections.get(run_id) or self._parts.get(run_id)

    def part(self, run_id: Any, parent_run_id: Any) -> None:
        """Hear of a run that is no section: what is called in it hangs in the one around."""
        if (section := self.within(parent_run_id)) is not None:
            self._parts[run_id] = section
            if len(self._parts) > _MOST:
                self._parts.pop(next(iter(self._parts)), None)

    def begin(self, name: str, inputs: object, run_id: Any, parent_run_id: Any, facts: Mapping[str, Any]) -> None:
        """Hear that a run began."""
        below, metadata = self.within(parent_run_id), dict(facts.get("metadata") or {})
        tags: Sequence[str] = facts.get("tags") or ()
        if _HIDDEN in tags:
            self.part(run_id, parent_run_id)
            return
        is_node = any(tag.startswith(_STEP) for tag in tags)
        kind = CallKind.AGENT if not is_node and _is_agent(name, metadata) else CallKind.CHAIN
        attributes: dict[str, Json] = {"metadata": told} if (told := _told(metadata)) else {}
        if is_node:
            steps = self._steps.setdefault(parent_run_id, _Steps())
            attributes |= steps.node(name, metadata)
        section = sections.begin(
            "langgraph" if is_node or kind is CallKind.AGENT or name == "LangGraph" else "langchain",
            kind,
            name,
            below=below,
            inputs=inputs,
            attributes=attributes,
            bare=not is_node and kind is not CallKind.AGENT and name != "LangGraph",
        )
        if section is not None:
            self._note(run_id, section)

    def end(self, run_id: Any, result: object = None, error: BaseException | None = None) -> None:
        """Hear that a run ended."""
        self._steps.pop(run_id, None)
        self._parts.pop(run_id, None)
        section = self._sections.pop(run_id, None)
        if error is None:
            sections.end(section, result)
        elif any(each.__name__ == "GraphBubbleUp" for each in type(error).__mro__):
            sections.end(section, left_by=error)
        else:
            sections.end(section, error=error)

    def _note(self, run_id: Any, section: Section) -> None:
        self._sections[run_id] = section
        if len(self._sections) > _MOST:
            oldest = next(iter(self._sections))
            self._sections.pop(oldest, None)
            self._steps.pop(oldest, None)


class _Steps:
    """Which nodes a graph ran in the step before the one that it is at."""

    def __init__(self) -> None:
        self._step: Any = None
        self._now: set[str] = set()
        self._before: set[str] = set()

    def node(self, name: str, metadata: Mapping[str, Any]) -> dict[str, Json]:
        """Name a node that runs, and the node that led to it, where only one can have: else what the graph is in."""
        names = [part.partition(":")[0] for part in str(metadata.get("langgraph_checkpoint_ns") or name).split("|")]
        node_id, around = "|".join(names), "|".join(names[:-1])
        if (step := metadata.get("langgraph_step")) != self._step:
            self._step, self._before, self._now = step, self._now, set()
        self._now.add(node_id)
        led = next(iter(self._before)) if len(self._before) == 1 else "" if self._before else around
        return {NODE_ID: node_id, NODE_NAME: name, **({NODE_PARENT: led} if led else {})}


def _is_agent(name: str, metadata: Mapping[str, Any]) -> bool:
    """Tell the run of an agent that `create_agent` made: its parts come with the same metadata."""
    made = metadata.get("ls_integration") == "langchain_create_agent"
    return made and name == metadata.get("lc_agent_name", "LangGraph")


def _told(metadata: Mapping[str, Any]) -> dict[str, Json]:
    told: dict[str, Json] = {}
    for name in _KEPT:
        value = metadata.get(name)
        if isinstance(value, str | int):
            told[name] = value
        elif isinstance(value, list | tuple):
            told[name] = [str(each) for each in cast("list[Any]", value)]
    return told


def _name(serialized: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    return str(facts.get("name") or serialized.get("name") or (serialized.get("id") or ["chain"])[-1])


class _Heard:
    """What the handler does that is told of runs. It never raises: what fails is ours."""

    run_inline = True  # in the task that runs, and at once
    ignore_llm = ignore_chat_model = ignore_custom_event = True

    def __init__(self, runs: _Runs) -> None:
        self._runs = runs

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, **facts: Any
    ) -> None:
        """Hear that a run began."""
        _shielded(lambda: self._runs.begin(_name(serialized or {}, facts), inputs, run_id, parent_run_id, facts))

    def on_chain_end(self, outputs: Any, *, run_id: Any, **_: Any) -> None:
        """Hear that a run gave something."""
        _shielded(lambda: self._runs.end(run_id, outputs))

    def on_chain_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """Hear that a run failed, or handed control on."""
        _shielded(lambda: self._runs.end(run_id, error=error))

    def on_tool_start(self, *_: Any, run_id: Any, parent_run_id: Any = None, **__: Any) -> None:
        """Hear that a tool runs, in which others may run."""
        _shielded(lambda: self._runs.part(run_id, parent_run_id))

    def on_tool_end(self, *_: Any, run_id: Any, **__: Any) -> None:
        """Hear that a tool is at its end."""
        _shielded(lambda: self._runs.end(run_id))

    on_tool_error = on_retriever_end = on_retriever_error = on_tool_end
    on_retriever_start = on_tool_start


def _handler(runs: _Runs) -> Any:
    """Make the handler, of LangChain's own class."""
    own: Any = import_module("langchain_core.callbacks.base").BaseCallbackHandler
    return type("SectionHandler", (_Heard, own), {})(runs)


def _shielded(hear: Callable[[], None]) -> None:
    try:
        hear()
    except Exception:
        swallow("langchain_sections", structure=True)


def _teller(runs: _Runs) -> Callable[[], Section | None]:
    child_config: ContextVar[Any] = import_module("langchain_core.runnables.config").var_child_runnable_config

    def current() -> Section | None:
        config = child_config.get()
        return None if config is None else runs.within(getattr(config.get("callbacks"), "parent_run_id", None))

    return current


def _install(patches: PatchSet) -> None:
    def cut(module: ModuleType) -> None:
        runs = _Runs()
        ours: ContextVar[Any] = ContextVar("reenact_langchain_sections", default=_handler(runs))  # noqa: B039 - one for all contexts
        hooks: list[Any] = vars(module)["_configure_hooks"]
        module.register_configure_hook(ours, inheritable=True)
        entry = hooks[-1]
        patches.when_undone(lambda: hooks.remove(entry))
        sections.use(patches, _teller(runs))

    patches.when_imported(_HOOKS[0], cut)


INTEGRATION = Integration(name="langchain_sections", libraries=("langchain_core",), install=_install, hooks=_HOOKS)
