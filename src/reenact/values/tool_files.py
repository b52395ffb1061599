"""What a tool did to files, as its span tells it: an answer to its call does the same in the copy of a sealed replay.

Each file stands there with what it was when the call began and what it was when it ended, as in `values.file_writes`;
of a file that was only appended to, the size before (`cut`) and what came behind (`from`).
"""

from __future__ import annotations

from dataclasses import dataclass

from reenact.values.discovered_tools import FILES
from reenact.values.file_writes import State
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFile:
    """One file that a tool changed. None stands for nothing there."""

    path: str
    """Where it lies in the program's folder, from there; else absolute."""
    before: State | None
    after: State | None
    temporary: str | None = None
    """Where `tempfile` made it, or a folder above it: its way from the folder for temporary files; None for others."""

    @property
    def is_database(self) -> bool:
        """Tell a database of SQLite's."""
        return any((each or {}).get("sqlite") is True for each in (self.before, self.after))

    @property
    def lost(self) -> str:
        """Why an answer cannot do the same; empty where it can."""
        return next((why for each in (self.before, self.after) if (why := as_text((each or {}).get("lost")))), "")


def tool_files(node: Node) -> list[ToolFile]:
    """Read what a call of a tool did to files."""
    told = node.span.attributes.get(FILES)
    return read(as_list(parsed_or_none(told)) if isinstance(told, str) else ())


def read(entries: list[Json] | tuple[Json, ...]) -> list[ToolFile]:
    """Read the members of the attribute."""
    fields = [as_object(each) for each in entries]
    return [
        ToolFile(
            path=path,
            before=_state(each.get("before")),
            after=_state(each.get("after")),
            temporary=as_text(each.get("temporary")) if "temporary" in each else None,
        )
        for each in fields
        if (path := as_text(each.get("path")))
    ]


def _state(value: Json) -> State | None:
    return value if isinstance(value, dict) else None
