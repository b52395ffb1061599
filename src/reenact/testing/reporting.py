"""What is said at the end of a session: calls that nobody asked for, fixtures that nobody uses, a table for GitHub."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from reenact.report.safe import clean
from reenact.testing.verdicts import path_name

_SUFFIX = ".jsonl"
_MOST = 20
_CELL = 160


class Report:
    """What a session has seen of fixtures. Each worker of xdist has its own; the controller takes them in."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._fixture_paths: set[str] = set()

    def names(self, fixture: str) -> None:
        """Hear that a collected test names a fixture, run or not."""
        self._fixture_paths.add(str(Path(fixture.partition("#")[0]).resolve()))

    def seen(self) -> list[str]:
        """Give what was heard, for the controller."""
        return sorted(self._fixture_paths)

    def take_in(self, names: Iterable[str]) -> None:
        """Take in what a worker heard."""
        self._fixture_paths.update(names)

    def stale(self) -> list[Path]:
        """Find fixtures that no collected test names, in the folders of those that are named.

        Only where the whole session was collected: a part of it cannot know.
        """
        if not self._is_whole():
            return []
        used = {Path(each) for each in self._fixture_paths}
        folders = {each.parent for each in used}
        paths = [path for folder in sorted(folders) if folder.is_dir() for path in sorted(folder.glob(f"*{_SUFFIX}"))]
        return [path for path in paths if path.resolve() not in used]

    def _is_whole(self) -> bool:
        config = self._config
        source = getattr(config, "args_source", None)
        if source is None or source.name != "ARGS":
            return True
        asked = [Path(config.invocation_params.dir, each).resolve() for each in config.args if "::" not in each]
        if len(asked) < len(config.args):
            return False
        tests = [config.rootpath / each for each in config.getini("testpaths")] or [config.rootpath]
        return all(any(each.resolve().is_relative_to(folder) for folder in asked) for each in tests)

    def close(self, terminal: Any, reports: Sequence[Any]) -> None:
        """Say it on the terminal, and in GitHub's step summary where there is one."""
        pairs = [(report, _facts(report)) for report in reports]
        stale = self.stale()
        unused = [(facts["fixture"], facts["unused"]) for report, facts in pairs if "unused" in facts and report.passed]
        additions = [facts for _, facts in pairs if "recorded" in facts or "added" in facts]
        renamed = [(facts["fixture"], facts["renamed"]) for _, facts in pairs if "renamed" in facts]
        if not (stale or unused or additions or renamed):
            self._summarise(pairs, stale)
            return
        terminal.section("reenact")
        for facts in additions[:_MOST]:
            what = f"{facts['added']} calls added to" if "added" in facts else "recorded"
            terminal.line(f"{what} {facts['fixture']}")
        for fixture, count in unused[:_MOST]:
            terminal.line(f"{fixture}: {count} recorded calls were not asked for")
        for fixture, count in renamed[:_MOST]:
            calls = "1 call was" if count == "1" else f"{count} calls were"
            terminal.line(f"{fixture}: {calls} matched by renaming redacted values, without the recording's key")
        for path in stale[:_MOST]:
            terminal.line(f"{path_name(path)}: no test uses it; delete it, or name it in a test")
        if (more := len(stale) - _MOST) > 0:
            terminal.line(f"{more} more recordings that no test uses")
        self._summarise(pairs, stale)

    def _summarise(self, entries: Sequence[tuple[Any, Mapping[str, str]]], stale: Sequence[Path]) -> None:
        target = os.environ.get("GITHUB_STEP_SUMMARY")
        if not target or not (entries or stale):
            return
        rows = [_row(report, facts) for report, facts in entries]
        names = "| test | result | recording | run | first divergence |"
        lines = ["### Recorded runs", "", names, "|---|---|---|---|---|", *rows]
        if stale:
            lines += ["", f"No test uses: {', '.join(f'`{path_name(path)}`' for path in stale[:_MOST])}"]
        with suppress(OSError), Path(target).open("a", encoding="utf-8") as stream:
            stream.write("\n".join(lines) + "\n\n")


def _facts(report: Any) -> dict[str, str]:
    return {
        name.removeprefix("reenact."): str(value)
        for name, value in report.user_properties
        if name.startswith("reenact.")
    }


def _row(report: Any, facts: Mapping[str, str]) -> str:
    outcome = "passed" if report.passed else "**failed**"
    word = facts.get("word", "")
    cells = [
        report.nodeid,
        f"{outcome}{f', {word}' if word else ''}",
        facts.get("fixture", ""),
        facts.get("run", facts.get("recorded", "")),
        facts.get("first", ""),
    ]
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """Make trace text harmless in a table of Markdown: one line, no markup of its own."""
    plain = clean(text).replace("\n", " ")
    plain = plain if len(plain) <= _CELL else f"{plain[: _CELL - 1]}…"
    for mark in "\\`*_[]<>|":
        plain = plain.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return plain
