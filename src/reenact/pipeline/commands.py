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
from reenact.find.sources import Found
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
    found: Found,
    given: Sequence[str],
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
    if given:
        return list(given), Path.cwd()
    if is_unit(found):
        if app is None and not found.starts:
            raise refused(found)
        further = [*(f"--path={each}" for each in path), *(f"--import={each}" for each in modules)]
        return _delivery(found, [*(["--app", app] if app else []), *further])
    if _argv(found) is None:
        hint = "name the program: `reenact replay RUN -- python your_agent.py`"
        raise CannotJudge("the recording does not say how its program was started", hint=hint)
    if not found.starts:
        raise refused(found)
    return _recorded(found)


def names_anything(found: Found) -> bool:
    """Tell whether a recording says at all what would be started."""
    return is_unit(found) or _argv(found) is not None


def is_unit(found: Found) -> bool:
    """Tell whether a run is a request or job that came in, which is delivered again."""
    return unit.request_of(found.run) is not None or unit.job_of(found.run) is not None


def refused(found: Found) -> NotYours:
    """Make the error that shows what a recording would start, and says how to have it started."""
    lines = [f"    {line if len(line) <= _MOST_SHOWN else _begun(line)}" for line in shown(found)]
    why = run_proof.problem()
    what = "-- CMD" if not is_unit(found) else "--app module:attribute"
    return NotYours(
        f"{one_line(found.source)}: run {found.run.id[:12]} is not known as your own recording, so what it would start "
        "is not run:\n" + "\n".join(lines),
        hint=f"name the program yourself: `{what}`; or add `--trust`, which runs what is shown here"
        + (f"\n  {why}" if why else ""),
    )


def _begun(line: str) -> str:
    return f"{line[:_MOST_SHOWN]}… ({len(line):,} characters; --trust shows all before it runs them)"


def shown(found: Found) -> list[str]:
    """Show all that a recording would have started or set, a line each, quoted for a shell, nothing of it raw."""
    entry, harmless = found.run.entry, settings.unset_ones(replace(found, trusted=False))
    environment = {k: v for k, v in settings.unset_ones(_as_trusted(found)).items() if harmless.get(k) != v}
    if is_unit(found):
        lines = _shown_application(found)
    else:
        words = _recorded(_as_trusted(found))[0] if _argv(found) is not None else []
        lines = [" ".join(map(quoted, words)) or "no command"]
    lines.append(f"in {quoted(as_text(entry.get('cwd')))}")
    lines += [f"with {quoted(f'{name}={value}')}" for name, value in sorted(environment.items())]
    return lines


def digest(found: Found) -> str:
    """Name what a recording would start by a digest of all that is shown of it."""
    return hashlib.sha256("\n".join(shown(found)).encode("utf-8", "surrogatepass")).hexdigest()


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


def _shown_application(found: Found) -> list[str]:
    app, job = unit.app(found.run), unit.job_of(found.run)
    named = as_text(app.get("import"))
    lines = [f"{quoted(_interpreter(found))} with the application {quoted(named or 'that it makes itself')}"]
    program = as_text(app.get("file")) or ("" if named else as_text(found.run.entry.get("main")))
    if program:
        words = [program, *map(as_text, as_list(found.run.entry.get("argv")))]
        lines.append(f"made by the program {quoted(program)}, started as {' '.join(map(quoted, words[1:]))}")
    if job is not None and job.module:
        lines.append(f"and the module {quoted(job.module)}")
    lines += [f"with modules from {quoted(as_text(path))}" for path in as_list(app.get("path"))]
    return lines


def _as_trusted(found: Found) -> Found:
    return replace(found, trusted=True)


def _argv(found: Found) -> list[str] | None:
    """Give the recorded command line; None where there is none, or it is something else."""
    said: Json = found.run.entry.get("argv")
    if not isinstance(said, list) or not said or not all(isinstance(word, str) for word in said):
        return None
    return [str(word) for word in said]


def _recorded(found: Found) -> tuple[list[str], Path]:
    words = [*(_argv(found) or [""])]
    words[0] = _interpreter(found)
    return words, _folder(found)


def _delivery(found: Found, further: Sequence[str]) -> tuple[list[str], Path]:
    if not found.starts:
        return [sys.executable, "-m", _DELIVERING, *further], Path.cwd()
    return [_interpreter(found), "-m", _DELIVERING, *further], _folder(found)


def _interpreter(found: Found) -> str:
    executable = as_text(found.run.entry.get("executable"))
    return executable if executable and Path(executable).exists() else sys.executable


def _folder(found: Found) -> Path:
    cwd = Path(as_text(found.run.entry.get("cwd")) or ".")
    return cwd if cwd.is_dir() else Path.cwd()
