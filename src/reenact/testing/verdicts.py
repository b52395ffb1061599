"""What a test says when it fails: the first divergence, where it was asked, both values, what to run next."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reenact.report.safe import clean
from reenact.report.times import instant
from reenact.values.assertion import Finding, Standing
from reenact.values.difference import one_line, short_json
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import Run

_MOST = 5
_WIDTH = 300
_HOST = re.compile(r"(?:look up|connect to|send to) \[?(.+?)\]?(?::\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a failing test is about."""

    fixture: str
    """As the user would name it on a command line, with `#id` where that is needed."""
    recorded: Run | None = None
    command: tuple[str, ...] = ()
    app: str | None = None
    """The application to which a recorded request is delivered."""
    test: str = ""
    """The node id."""
    inline: bool = False
    """The test's own body makes the calls: there is no program to replay."""

    @property
    def run(self) -> str:
        """Name the recorded run and when it was recorded."""
        if self.recorded is None:
            return self.fixture
        return f"{self.fixture} (run {self.recorded.id[:12]}, {instant(self.recorded.started_ns)})"

    @property
    def replayed_by(self) -> str:
        """Spell the command that does the same outside the test, or shows the recording."""
        if self.inline:
            return f"reenact show {self.fixture}"
        arguments = f" -- {shlex.join(self.command)}" if self.command else ""
        app = f" --app {shlex.quote(self.app)}" if self.app else ""
        return f"reenact replay {self.fixture}{app}{arguments}"


def path_name(path: Path, run_id: str = "") -> str:
    """Name a file as from the working directory."""
    shown_path = os.path.relpath(path)
    shown_path = str(path) if shown_path.startswith(f"..{os.sep}..{os.sep}..") else shown_path
    return f"{shown_path}#{run_id}" if run_id else shown_path


def divergence_lines(result: ReplayResult) -> Iterator[str]:
    """Say where a replay left its recording."""
    first = result.divergences[0] if result.divergences else None
    if first is None:
        yield f"{result.result}: {result.why or 'nothing can be said of it'}"
    else:
        yield f"{result.result}: {_headline(first)}"
        if not first.get("reason"):
            absent = as_list(first.get("absent"))
            yield f"  recorded  {_side(first, 'a', absent)}"
            yield f"  now       {_side(first, 'b', absent)}"
    if result.misses and (place := as_text(result.misses[0].get("where"))):
        yield f"  asked at  {_place(place)}"
    if result.outside:
        yield f"  outside   {result.of_scopes}"
    for each in _further(result):
        yield f"  also      {each}"
    for entry in result.refused[:_MOST]:
        hint = as_text(entry.get("hint"))
        yield f"  refused   {as_text(entry.get('what'))} at {_place(as_text(entry.get('where')))}; {hint}"
        if host := _HOST.fullmatch(as_text(entry.get("what"))):
            yield f"  allow it  pytest --reenact-allowed-hosts={host[1]}   or allowed_hosts=[…] of the marker"


def _headline(first: dict[str, Json]) -> str:
    call = as_text(first.get("call"))
    if reason := as_text(first.get("reason")):
        return f"{call}: {reason.replace(f'{Path.cwd()}{os.sep}', '')}"
    match first.get("kind"):
        case "missing":
            return f"{call} was recorded and is not called any more"
        case "extra":
            return f"{call} is called and was not recorded"
        case _:
            return f"{call}: {as_text(first.get('field'))} differs"


def _side(first: dict[str, Json], side: str, absent: Sequence[Json]) -> str:
    return "absent" if side in absent else short_json(first.get(side), _WIDTH)


def _further(result: ReplayResult) -> Iterator[str]:
    if result.misses:
        differences = [as_object(each) for each in as_list(result.misses[0].get("differences"))]
        for each in differences[1:_MOST]:
            sides = f"recorded {short_json(each.get('recorded'))}, now {short_json(each.get('replay'))}"
            yield f"{as_text(each.get('field'))}: {sides}"
    for each in result.divergences[1:_MOST]:
        yield one_line(each, b="now")
    if (hidden := len(result.divergences) - _MOST) > 0:
        yield f"{hidden} divergences more"


def _place(place: str) -> str:
    """Name a line as from the working directory."""
    path, _, line = place.rpartition(":")
    if not path or not Path(path).is_absolute():
        return place
    below = os.path.relpath(path)
    return place if below.startswith("..") else f"{below}:{line}"


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Say which assertions do not hold, and why."""
    for each in findings:
        if each.standing is not Standing.HOLDS:
            yield f"  {each.standing.value:<9} {each.assertion}"
            yield f"  because   {each.because}"


def failure_text(lines: Sequence[str], about: About, *, again: bool = True, anew: bool = True) -> str:
    """Put a failure together: what is wrong, of which recording, and what to run next: `again`, or `anew`."""
    text_lines = [*lines, f"  recording {about.run}"]
    if again:
        text_lines.append(f"  next      {about.replayed_by}")
        if about.test and anew:
            text_lines.append(f"            pytest --reenact-mode=record '{about.test}'   records it anew")
    return "\n".join(clean(line).replace("\n", " ") for line in text_lines)
