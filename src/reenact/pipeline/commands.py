"""What a replay starts: the command that the user gives, else the one that the recording names, where that may be run.

A recording is data (`values.origin`). What it says of how its program is started is used where the run is the user's
own, or after the user saw it and said yes. Else it is shown, and refused.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from reenact.errors import CannotJudge, NotYours
from reenact.find.sources import RunSource
from reenact.keep import run_proof
from reenact.pipeline import settings
from reenact.report.safe import one_line
from reenact.values import unit
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_text

_DELIVERING: Final = "reenact.deliver.delivering"
_MOST_SHOWN: Final = 2000
"""Characters of a line that is shown where nothing is run; of what is to be run all are shown."""


def command(
    recording: RunSource,
    argv: Sequence[str],
    app: str | None = None,
    *,
    path: Sequence[str] = (),
    modules: Sequence[str] = (),
) -> tuple[list[str], Path]:
    """Say what to run and where: what was given, else the recorded entry point.

    A request that came in is delivered again, to `app` where it is given; its modules are searched for in the folders
    of `path` too, and `modules` are imported with it. Raises `CannotJudge` where the recording says
    nothing of it, `NotYours` where the user has to name the program, or to agree to what is named.
    """
    if argv:
        return list(argv), Path.cwd()
    if is_unit(recording):
        if app is None and not recording.starts:
            raise refused(recording)
        further = [*(f"--path={each}" for each in path), *(f"--import={each}" for each in modules)]
        return _delivery(recording, [*(["--app", app] if app else []), *further])
    if _argv(recording) is None:
        hint = "name the program: `reenact replay RUN -- python your_agent.py`"
        raise CannotJudge("the recording does not say how its program was started", hint=hint)
    if not recording.starts:
        raise refused(recording)
    return _recorded(recording)


def names_anything(recording: RunSource) -> bool:
    """Tell whether a recording says at all what would be started."""
    return is_unit(recording) or _argv(recording) is not None


def is_unit(recording: RunSource) -> bool:
    """Tell whether a run is a request or job that came in, which is delivered again."""
    return unit.request_of(recording.run) is not None or unit.job_of(recording.run) is not None


def refused(match: RunSource) -> NotYours:
    """Make the error that shows what a recording would start, and says how to have it started."""
    lines = [f"    {line if len(line) <= _MOST_SHOWN else _begun(line)}" for line in command_lines(match)]
    why = run_proof.problem()
    what = "-- CMD" if not is_unit(match) else "--app module:attribute"
    return NotYours(
        f"{one_line(match.source)}: run {match.run.id[:12]} is not known as your own recording, so what it would start "
        "is not run:\n" + "\n".join(lines),
        hint=f"name the program yourself: `{what}`; or add `--trust`, which runs what is shown here"
        + (f"\n  {why}" if why else ""),
    )


def _begun(line: str) -> str:
    return f"{line[:_MOST_SHOWN]}… ({len(line):,} characters; --trust shows all before it runs them)"


def command_lines(recording: RunSource) -> list[str]:
    """Show all that a recording would have started or set, a line each, quoted for a shell, nothing of it raw."""
    entry, harmless = recording.run.entry, settings.unset_ones(replace(recording, trusted=False))
    environment = {k: v for k, v in settings.unset_ones(_as_trusted(recording)).items() if harmless.get(k) != v}
    if is_unit(recording):
        lines = _shown_application(recording)
    else:
        words = _recorded(_as_trusted(recording))[0] if _argv(recording) is not None else []
        lines = [" ".join(map(quoted, words)) or "no command"]
    lines.append(f"in {quoted(as_text(entry.get('cwd')))}")
    lines += [f"with {quoted(f'{name}={value}')}" for name, value in sorted(environment.items())]
    return lines


def digest(recording: RunSource) -> str:
    """Name what a recording would start by a digest of all that is shown of it."""
    return hashlib.sha256("\n".join(command_lines(recording)).encode("utf-8", "surrogatepass")).hexdigest()


def quoted(word: str) -> str:
    """Quote a word for a shell; what does not print is spelled, as bash reads it between `$'` and `'`."""
    if word.isprintable():
        return shlex.quote(word)
    spelled = "".join(map(_spelled, word))
    return f"$'{spelled}'"


def _spelled(character: str) -> str:
    if character in {"\\", "'"}:
        return f"\\{character}"
    if character.isprintable():
        return character
    how = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", how))


def _shown_application(recording: RunSource) -> list[str]:
    app, job = unit.app(recording.run), unit.job_of(recording.run)
    app_name = as_text(app.get("import"))
    lines = [f"{quoted(_interpreter(recording))} with the application {quoted(app_name or 'that it makes itself')}"]
    program = as_text(app.get("file")) or ("" if app_name else as_text(recording.run.entry.get("main")))
    if program:
        words = [program, *map(as_text, as_list(recording.run.entry.get("argv")))]
        lines.append(f"made by the program {quoted(program)}, started as {' '.join(map(quoted, words[1:]))}")
    if job is not None and job.module:
        lines.append(f"and the module {quoted(job.module)}")
    lines += [f"with modules from {quoted(as_text(path))}" for path in as_list(app.get("path"))]
    return lines


def _as_trusted(recording: RunSource) -> RunSource:
    return replace(recording, trusted=True)


def _argv(recording: RunSource) -> list[str] | None:
    """Give the recorded command line; None where there is none, or it is something else."""
    words: Json = recording.run.entry.get("argv")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return None
    return [str(word) for word in words]


def _recorded(recording: RunSource) -> tuple[list[str], Path]:
    words = [*(_argv(recording) or [""])]
    words[0] = _interpreter(recording)
    return words, _folder(recording)


def _delivery(recording: RunSource, further: Sequence[str]) -> tuple[list[str], Path]:
    if not recording.starts:
        return [sys.executable, "-m", _DELIVERING, *further], Path.cwd()
    return [_interpreter(recording), "-m", _DELIVERING, *further], _folder(recording)


def _interpreter(recording: RunSource) -> str:
    executable = as_text(recording.run.entry.get("executable"))
    return executable if executable and Path(executable).exists() else sys.executable


def _folder(recording: RunSource) -> Path:
    cwd = Path(as_text(recording.run.entry.get("cwd")) or ".")
    return cwd if cwd.is_dir() else Path.cwd()
