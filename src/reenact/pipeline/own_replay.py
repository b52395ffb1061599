"""The run that a replay makes, as whoever started it knows it: its salt, and the proof that it is the user's own.

The replayed processes have no key of origin. Whoever started them proves their run's root, and only where all that it
says of how a program is started is known here: it is what was started, or what the recording said, which was the user's
own. Else the run is kept and is nobody's: a replay of it asks.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from reenact.disk import user_key
from reenact.errors import InputError
from reenact.find.sources import RunSource
from reenact.redact.in_force import POLICY, SALT
from reenact.stores.directory import DirectoryStore
from reenact.values import origin
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.redaction_marks import TOKEN
from reenact.values.span import SpanRecord

_ROOT: Final = "reenact.run.root"
_ENTRY: Final = "reenact.entry"
_SURROUNDINGS: Final = "reenact.surroundings"
_MARKS: Final = frozenset({_ROOT, "reenact.process.root", "reenact.inbound.process"})
"""What starts nothing."""

Mend = Callable[[SpanRecord], SpanRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What was started."""

    found: RunSource
    """What is replayed."""
    argv: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]


def mending(started: Started, store: DirectoryStore, recording: str, salt: str) -> Mend:
    """Make what completes each span of a replay's journal. Makes no key of the user's, and never raises."""
    try:
        key = user_key.find_key()
    except (InputError, OSError):
        key = None  # the run that comes of it is not known as the user's own; nothing else depends on it
    derived = origin.recording_key(key, recording) if key is not None else None
    knows = _Knowledge(started)

    def mend(span: SpanRecord) -> SpanRecord:
        attributes = dict(origin.without_proof(span.attributes))
        if salt and POLICY in attributes:
            attributes.setdefault(SALT, salt)
        if derived is not None and attributes.get(_ROOT) and knows.all_of(attributes):
            proof = origin.proof(derived, store.folder, span.trace_id, span.span_id, attributes)
            attributes[origin.ORIGIN] = proof
        return span if attributes == span.attributes else replace(span, attributes=attributes)

    return mend


class _Knowledge:
    """What is known here of what a root may say."""

    def __init__(self, started: Started) -> None:
        self._launch = started
        recording = started.found
        self._root_attributes: Mapping[str, Any] = {}
        if recording.starts and recording.run.root is not None:
            self._root_attributes = recording.run.root.span.attributes
        self._entry = recording.run.entry if recording.starts else {}

    def all_of(self, attributes: Mapping[str, Any]) -> bool:
        """Tell whether all that a root says of how a program is started is known."""
        for name, value in attributes.items():
            if name in _MARKS or not origin.covers(name):
                continue
            if name == _ENTRY:
                known = self._is_entry(as_object(parsed_or_none(str(value))))
            elif name == _SURROUNDINGS:
                known = self._is_environment(as_object(as_object(parsed_or_none(str(value))).get("environment")))
            elif name.startswith(("input.", "reenact.http.")) and "reenact.inbound" not in attributes:
                known = True  # it is what the run was given, and starts nothing
            else:
                known = self._root_attributes.get(name) == value
            if not known:
                return False
        return True

    def _is_entry(self, entry: Mapping[str, Json]) -> bool:
        if entry and entry == self._entry:
            return True
        started = self._launch
        first = shutil.which(started.argv[0], path=started.environ.get("PATH")) or started.argv[0]
        executables = {started.argv[0], first, sys.executable, as_text(self._entry.get("executable"))}
        words = [as_text(word) for word in as_list(entry.get("argv"))]
        commands = [[*started.argv], [first, *started.argv[1:]]]
        commands += [[each, first, *started.argv[1:]] for each in executables]  # a script that names its interpreter
        main = entry.get("main")
        return (
            as_text(entry.get("executable")) in executables
            and any(_are(words, command) for command in commands)
            and Path(as_text(entry.get("cwd"))).resolve() == started.cwd.resolve()
            and (main is None or main == self._entry.get("main") or as_text(main) in self._programs(first))
        )

    def _programs(self, first: str) -> set[str]:
        """Give the files that were named, as they were and by their full paths."""
        words = [first, *self._launch.argv[1:]]
        return {*words, *(str(self._launch.cwd / word) for word in words if "\0" not in word)}

    def _is_environment(self, environment: Mapping[str, Json]) -> bool:
        recording, environ = self._launch.found, self._launch.environ
        recorded = as_object(recording.run.surroundings.get("environment")) if recording.starts else {}
        return all(
            value in (environ.get(name), recorded.get(name)) or TOKEN.fullmatch(as_text(value))
            for name, value in environment.items()
        )


def _are(words: Sequence[str], command: Sequence[str]) -> bool:
    """Tell whether words are those of a command, a token standing for what redaction took out of one."""
    return len(words) == len(command) and all(map(_is, words, command))


def _is(word: str, actual: str) -> bool:
    if word == actual:
        return True
    parts = [re.escape(part) for part in TOKEN.sub("\0", word).split("\0")]
    return len(parts) > 1 and re.fullmatch(".*".join(parts), actual, re.DOTALL) is not None
