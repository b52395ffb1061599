"""Spans that can be kept in a project and replayed on any machine, and their way back.

What says where the recording machine kept things (the working directory, the interpreter, process ids, the folders in
tracebacks) becomes relative to the project or goes; what the agent asked and was answered is evidence, and stays to
the byte. Redaction passes over everything once more, with the recording's own key, so that what has been a token stays
the same token.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final

from reenact.find.sources import RunSource, among
from reenact.redact import in_force
from reenact.redact.engine import Engine
from reenact.values.discovered_tools import FILES
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.run import WRITTEN, Node, Run
from reenact.values.span import Resource, SpanEvent, SpanRecord

ENTRY = "reenact.entry"
_SURROUNDINGS = "reenact.surroundings"
_UNDECLARED = "reenact.undeclared"
_OF_THIS_MACHINE = frozenset({"caches", "made", "reads", "rewritten"})
"""What is told of files that a test neither compares nor puts back."""
_MOVED = "project_words"
"""In an entry point: places in `argv` of words that were absolute paths inside the project."""
_OF_THE_MACHINE = ("process.", "host.", "os.", "container.", "service.instance.id")
_FILE = re.compile(r'File \\?"(?P<path>[^"\\]+)\\?"')
_EVIDENCE = ("input.value", "output.value", "reenact.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Portable:
    """What leaves for a project."""

    spans: tuple[SpanRecord, ...]
    replaced: dict[str, int] = field(default_factory=dict[str, int])
    """What redaction found on the way out and had not been redacted when recorded: rule to count."""
    paths: tuple[str, ...] = ()
    """Calls whose evidence names a folder of this machine, as `tool read_file #4: input.value`. It stays there: a
    replay compares it."""


def portable(recording: RunSource, root: Path, environ: Mapping[str, str] | None = None) -> Portable:
    """Make the spans of a run, and of those that a replay of it needs, fit to be kept in the project at `root`."""
    environ = os.environ if environ is None else environ
    cwd = Path(as_text(recording.run.entry.get("cwd")) or root)  # to spell paths by; nothing is opened there
    spans: list[SpanRecord] = []
    replaced: dict[str, int] = {}
    paths: list[str] = []
    for run in recording.together:
        first = replace(run, salt=run.salt or recording.run.salt, root=run.root or recording.run.root)
        engine = in_force.of_run(first, environ).engine(environ)
        for node in run.nodes:
            span = _redacted(_unplaced(node.span, root, cwd), engine)
            spans.append(span)
            paths += [f"{node.label}: {name}" for name in _naming(span, root)]
        for rule, count in engine.replaced.items():
            replaced[rule] = replaced.get(rule, 0) + count
    return Portable(spans=tuple(spans), replaced=replaced, paths=tuple(paths))


def entered_by(spans: Sequence[SpanRecord], test: str) -> tuple[SpanRecord, ...]:
    """Give spans whose program is a test: how its session was started, and what it wrote, says nothing of it."""
    entry = compact({"test": test})
    attribute_sets = [
        {name: value for name, value in span.attributes.items() if name not in {_UNDECLARED, WRITTEN}} for span in spans
    ]
    return tuple(
        replace(span, attributes={**attributes, ENTRY: entry} if ENTRY in attributes else attributes)
        for span, attributes in zip(spans, attribute_sets, strict=True)
    )


SEED = "0"
"""The hash seed that fixtures share where they can: interpreters that are started alike can be kept warm."""


def seeded(spans: Iterable[SpanRecord]) -> tuple[SpanRecord, ...]:
    """Give spans whose program hashes by `SEED`. Whoever calls this has to see that the program does the same by it."""
    return tuple(_seeded(span) for span in spans)


def _seeded(span: SpanRecord) -> SpanRecord:
    text = span.attributes.get(_SURROUNDINGS)
    around = parsed_or_none(text) if isinstance(text, str) else None
    if not isinstance(around, dict) or around.get("hash_seed") == SEED:
        return span
    environment: dict[str, Json] = {**as_object(around.get("environment")), "PYTHONHASHSEED": SEED}
    moved: dict[str, Json] = {**around, "hash_seed": SEED, "hash_seed_recorded": around.get("hash_seed")}
    moved["environment"] = environment
    attributes = {**span.attributes, _SURROUNDINGS: compact(moved)}
    return replace(span, attributes=attributes)


def located(recording: RunSource, root: Path) -> RunSource:
    """Put the paths of a kept run back in place, in the project at `root`."""
    return replace(
        recording,
        run=_located_run(recording.run, root),
        siblings=tuple(_located_run(each, root) for each in recording.siblings),
        earlier=among(_located_run(each, root) for each in recording.history.units),
    )


def _located_run(run: Run, root: Path) -> Run:
    nodes = tuple(_located_node(node, root) for node in run.nodes)
    if all(a is b for a, b in zip(nodes, run.nodes, strict=True)):
        return run
    by_id = {node.id: node for node in nodes}
    root_node = by_id[run.root.id] if run.root is not None else None
    return replace(run, nodes=nodes, entry=_placed(run.entry, root), root=root_node)


def _located_node(node: Node, root: Path) -> Node:
    text = node.span.attributes.get(ENTRY)
    entry = parsed_or_none(text) if isinstance(text, str) else None
    if not isinstance(entry, dict) or Path(as_text(entry.get("cwd"))).is_absolute():
        return node
    attributes = {**node.span.attributes, ENTRY: compact(_placed(entry, root))}
    return replace(node, span=replace(node.span, attributes=attributes))


def _placed(entry: dict[str, Json], root: Path) -> dict[str, Json]:
    """Give an entry point its folders back. What names no folder, or one of this machine, stays."""
    if "cwd" not in entry or Path(as_text(entry["cwd"])).is_absolute():
        return entry
    cwd = (root / as_text(entry["cwd"])).resolve()
    moved = as_list(entry.get(_MOVED))
    argv: list[Json] = [
        os.path.normpath(cwd / as_text(word)) if place in moved else word
        for place, word in enumerate(as_list(entry.get("argv")))
    ]
    main = entry.get("main")
    return {
        **entry,
        "argv": [sys.executable, *argv[1:]] if argv else argv,
        "cwd": str(cwd),
        "main": str(root / main) if isinstance(main, str) else main,
    }


def _unplaced(span: SpanRecord, root: Path, cwd: Path) -> SpanRecord:
    attributes = dict(span.attributes)
    for name, change in _CHANGED.items():
        text = attributes.get(name)
        decoded = parsed_or_none(text) if isinstance(text, str) else None
        if isinstance(decoded, dict):
            attributes[name] = compact(change(decoded, root, cwd))
    if isinstance(text := attributes.get(_UNDECLARED), str):
        for folder in sorted(_folders(root), key=len, reverse=True):
            text = text.replace(folder, "" if folder.startswith(_prefix(root)) else "…/")
        attributes[_UNDECLARED] = text
    if root_text := _prefix(root):
        for name, value in attributes.items():
            if isinstance(value, str) and not name.startswith(_EVIDENCE):
                attributes[name] = value.replace(root_text, "")
    facts = {name: value for name, value in span.resource.attributes.items() if not name.startswith(_OF_THE_MACHINE)}
    return replace(
        span,
        attributes=attributes,
        events=tuple(_event(event, root) for event in span.events),
        resource=replace(span.resource, attributes=facts),
    )


def _prefix(root: Path) -> str:
    return f"{root}{os.sep}" if len(root.parts) > 1 else ""


def _event(event: SpanEvent, root: Path) -> SpanEvent:
    trace = event.attributes.get("exception.stacktrace")
    if not isinstance(trace, str):
        return event
    return replace(event, attributes={**event.attributes, "exception.stacktrace": _traceback(trace, root)})


def _exception(record: dict[str, Json], root: Path, cwd: Path) -> dict[str, Json]:
    fields = dict(record)
    if isinstance(trace := fields.get("stacktrace"), str):
        fields["stacktrace"] = _traceback(trace, root)
    if isinstance(cause := fields.get("cause"), dict):
        fields["cause"] = _exception(cause, root, cwd)
    return fields


def _traceback(text: str, root: Path) -> str:
    """Name files in a traceback by their place in the project or in a library, not by folders of this machine."""

    def shorter(match: re.Match[str]) -> str:
        path = match["path"]
        return match[0].replace(path, _short(path, root))

    return _FILE.sub(shorter, text)


def _short(path: str, root: Path) -> str:
    if not PurePath(path).is_absolute():
        return path
    if (below := _below(path, root)) is not None:
        return below
    for mark in ("site-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}", "src", "lib"):
        _, separator, rest = path.rpartition(f"/{mark}/")
        if separator:
            return rest
    return PurePath(path).name


def _below(path: str, folder: Path) -> str | None:
    """Give a path relative to a folder that it lies in, links resolved or not; else None."""
    for a in (Path(path), Path(os.path.realpath(path))):
        for b in (folder, folder.resolve()):
            if a.is_relative_to(b):
                return str(a.relative_to(b))
    return None


def relative_words(argv: Iterable[str], root: Path, cwd: Path) -> tuple[list[str], list[int]]:
    """Give the words of a command with paths inside the project relative to `cwd`, and the places of those words."""
    words, moved = list(argv), list[int]()
    for place, word in enumerate(words):
        if place and PurePath(word).is_absolute() and _below(word, root) is not None:
            words[place] = os.path.relpath(os.path.realpath(word), os.path.realpath(cwd))
            moved.append(place)
    return words, moved


def _entry(entry: dict[str, Json], root: Path, cwd: Path) -> dict[str, Json]:
    """Tell how the program was started in words of the project: the interpreter is whichever runs the test."""
    fields = {name: value for name, value in entry.items() if name != "executable"}
    own = Path(as_text(entry.get("cwd")) or cwd)
    argv = [str(word) for word in as_list(entry.get("argv"))]
    words, moved = relative_words(argv, root, own)
    if words:
        words[0] = "python"
    if len(words) > 1 and _is_beside(argv[1], as_text(entry.get("executable"))):
        words[1], moved = PurePath(words[1]).name, [place for place in moved if place != 1]
    below = _below(str(own), root)
    main = entry.get("main")
    fields |= {"argv": list(words), "cwd": below if below is not None else "."}
    if moved:
        fields[_MOVED] = list(moved)
    if isinstance(main, str):
        fields["main"] = _below(str(own / main), root) or PurePath(main).name
    return fields


def _is_beside(script: str, executable: str) -> bool:
    """Tell whether a script is one that an installer put beside the interpreter."""
    return PurePath(script).is_absolute() and PurePath(script).parent == PurePath(executable).parent


def _application(application: dict[str, Json], root: Path, cwd: Path) -> dict[str, Json]:
    """Tell where a service's application is imported from, relative to the folder it is served in."""
    fields = dict(application)
    if isinstance(path := application.get("path"), list):
        own = [each for each in map(as_text, path) if _below(each, root) is not None]
        fields["path"] = [os.path.relpath(each, cwd) for each in own]
    if isinstance(file := application.get("file"), str) and _below(file, root) is not None:
        fields["file"] = os.path.relpath(file, cwd)
    return fields


def _surroundings(surroundings: dict[str, Json], root: Path, cwd: Path) -> dict[str, Json]:
    """Leave out settings that are folders of this machine."""
    del cwd
    environment = {
        name: value
        for name, value in as_object(surroundings.get("environment")).items()
        if not (isinstance(value, str) and any(folder in value for folder in _folders(root)))
    }
    return {**surroundings, "environment": environment}


def _redacted(span: SpanRecord, engine: Engine) -> SpanRecord:
    """Pass redaction once more. A span that holds no secret stays the same to the byte."""
    events = tuple(replace(event, attributes=engine.attributes(event.attributes)) for event in span.events)
    return replace(
        span,
        name=engine.text(span.name),
        status_message=engine.text(span.status_message),
        attributes=engine.attributes(span.attributes),
        events=events,
        resource=Resource(attributes=engine.attributes(span.resource.attributes), schema_url=span.resource.schema_url),
    )


def _folders(root: Path) -> Iterator[str]:
    """Name the folders that mean this machine and no other."""
    home = os.path.expanduser("~")  # noqa: PTH111 - a container may know of no home, where `Path.home` raises
    for folder in {str(root), str(root.resolve()), home, sys.prefix, sys.base_prefix, tempfile.gettempdir()}:
        if len(PurePath(folder).parts) > 1:
            yield f"{folder}{os.sep}"


def _naming(span: SpanRecord, root: Path) -> list[str]:
    """Name the attributes that still hold a folder of this machine."""
    folders = list(_folders(root))
    texts: dict[str, Any] = dict(span.attributes)
    if isinstance(files := texts.get(FILES), str):  # a replay makes temporary ones where its own folder for them is
        texts[FILES] = compact([each for each in as_list(parsed_or_none(files)) if "temporary" not in as_object(each)])
    return [name for name, value in texts.items() if isinstance(value, str) and any(map(value.__contains__, folders))]


def named_paths(words: Iterable[str]) -> list[str]:
    """Give the words of a command that are absolute paths: they mean this machine."""
    return [word for word in words if PurePath(word).is_absolute()]


def _project_writes(writes: dict[str, Json], root: Path, cwd: Path) -> dict[str, Json]:
    """Keep of what was written what lies below the program's folder, named from there; not what was there before."""
    below, prefix = f"{cwd}{os.sep}", _prefix(root)
    files = [as_object(each) for each in as_list(writes.get("files"))]
    inside = [each for each in files if as_text(each.get("path")).startswith(below)]
    left = len(files) - len(inside) + (as_count(writes.get("more")) or 0)
    entries: list[Json] = [
        {
            **{name: value.replace(below, "") if isinstance(value, str) else value for name, value in each.items()},
            "at": as_text(each.get("at")).replace(prefix, "") if prefix else "",
            "before": _before(each.get("before")),
        }
        for each in inside
    ]
    fields = {name: value for name, value in writes.items() if name not in _OF_THIS_MACHINE}
    if "temporary" in fields:
        fields["temporary"] = [as_text(each).rpartition("/")[2] for each in as_list(fields["temporary"])]
    if "folders" in fields:
        folders = [each for each in map(as_list, as_list(fields["folders"])) if len(each) == 2]
        listed = [(f"{as_text(path)}{os.sep}", names) for path, names in folders]
        fields["folders"] = [
            [path.removeprefix(below).rstrip(os.sep) or ".", names] for path, names in listed if path.startswith(below)
        ]
    return {**fields, "files": entries, **({"more": left} if left else {})}


def _before(state: Json) -> Json:
    if not isinstance(state, dict):
        return state
    return {name: value for name, value in state.items() if name not in {"text", "zlib", "mtime"}}


_CHANGED: Final = {
    ENTRY: _entry,
    WRITTEN: _project_writes,
    _SURROUNDINGS: _surroundings,
    "reenact.app": _application,
    "reenact.exception": _exception,
}
