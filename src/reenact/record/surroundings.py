"""What else a replay needs, or a reader of it wants to know: code, interpreter, libraries, settings, entry point."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from reenact.disk.private import read_regular
from reenact.values.json import Json
from reenact.values.settings import digests, keeps

_LIBRARIES = ("reenact", "openai", "anthropic", "httpx", "httpx2", "pydantic", "opentelemetry-sdk")
_HOOK = str(Path(__file__).parents[1] / "bootstrap")
"""What `reenact` itself puts on PYTHONPATH."""


def entry_point(words: Callable[[list[str]], list[str]] = list, *, folder: str | None = None) -> dict[str, Json]:
    """Say how this program was started, so that it can be started again.

    `words` gives those that may be written, `folder` is where it was started, if it may have gone elsewhere since.
    """
    main = sys.modules.get("__main__")
    source = getattr(main, "__file__", None)
    entry: dict[str, Json] = {
        "argv": [*words(sys.orig_argv)],
        "executable": sys.executable,
        "cwd": working_folder() if folder is None else folder,
        "main": str(source) if source else None,
    }
    if source and (mark := _sha256(Path(source))):
        entry["main_sha256"] = mark
    return entry


def umask() -> str | None:
    """Give the mask of new files' modes, in octal digits (proc_pid_status(5)); None where nobody says so.

    umask(2) could only tell by changing it, while other threads make files.
    """
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:  # no such system
        return None
    return status.partition("\nUmask:")[2].partition("\n")[0].strip() or None


def surroundings(
    token: Callable[[str, str], str],
    names_a_secret: Callable[[str], bool],
    *,
    folder: str | None = None,
    mask: str | None = None,
    by_command: Mapping[str, str] | None = None,
) -> dict[str, Json]:
    """Say what the program ran in. `token` stands for the value of a variable that holds a secret.

    `folder` and `mask` (of new files' modes) are those that it was started with, if it may have changed them since.
    `by_command` are the variables that the command which started it had set.
    """
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": _system(),
        "libraries": _versions(),
        "commit": commit(Path(working_folder() if folder is None else folder)),
        "build": os.environ.get("REENACT_BUILD"),
        "environment": _environment(os.environ, token, names_a_secret),
        **({"set_by_command": _tokens(by_command, token, names_a_secret)} if by_command else {}),
        "steering": dict[str, Json](digests(os.environ, _HOOK)),
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
        "umask": mask,
        "utc_offset_s": time.localtime().tm_gmtoff,
        "zone": _zone(Path("/etc/localtime")),
    }


def _system() -> str:
    """Name the kernel, the machine and the C library.

    `platform.platform` says the same, and starts `uname -p` for it: a child of the agent's process that the agent never
    started.
    """
    system = os.uname()
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):  # no glibc
        library = ""
    return "-".join(
        [system.sysname, system.release, system.machine, *(["with", library.replace(" ", "")] if library else [])]
    )


def _zone(file: Path) -> dict[str, Json]:
    """Say which time zone the system keeps, for programs that TZ tells nothing: its name, and its rule today.

    The rule is the last line of the file (RFC 9636, section 3.3), as TZ takes it: it needs no files of zones.
    """
    try:
        name = str(file.resolve()).partition("zoneinfo/")[2]
        lines = file.read_bytes().rsplit(b"\n", 2)
    except OSError:  # no such file: the system keeps UTC
        return {"name": "UTC", "rule": "UTC0"}
    rule = lines[-2].decode("ascii", "replace") if len(lines) == 3 else ""
    return {"name": name or None, "rule": rule or None}


def _tokens(
    variables: Mapping[str, str], token: Callable[[str, str], str], names_a_secret: Callable[[str], bool]
) -> dict[str, Json]:
    return {name: token(name, value) if names_a_secret(name) else value for name, value in variables.items()}


def _environment(
    environ: Mapping[str, str], token: Callable[[str, str], str], names_a_secret: Callable[[str], bool]
) -> dict[str, Json]:
    """Keep the variables that steer an agent; of secrets only a token; of the rest nothing, not even the name.

    REENACT_KEEP_ENV names further ones, separated by commas.
    """
    chosen = {name.strip() for name in environ.get("REENACT_KEEP_ENV", "").split(",") if name.strip()}
    variables: dict[str, Json] = {}
    for name, value in environ.items():
        if name.startswith(("REENACT_", "OTEL_")):
            continue
        if names_a_secret(name):
            variables[name] = token(name, value)
        elif name in chosen or keeps(name):
            variables[name] = value
    return variables


def commit(folder: Path) -> dict[str, Json] | None:
    """Read the checked-out commit of the git work tree around `folder`, from its files and without running git.

    `uncommitted` says whether tracked files differ from it; None where nobody can say.
    """
    for candidate in (folder, *folder.parents):
        git = candidate / ".git"
        try:
            if git.is_file():  # a linked work tree
                git = (candidate / _file_text(git).removeprefix("gitdir:").strip()).resolve()
            if not git.is_dir():
                continue
            head = _file_text(git / "HEAD")
            if _COMMIT.fullmatch(head):
                return {"id": head, "branch": None, "uncommitted": _uncommitted(candidate, git, head)}
            ref = head.removeprefix("ref:").strip()
            if not _REF.fullmatch(ref) or ".." in ref:
                return None
            commit_id = _resolve(git, ref)
            changes = _uncommitted(candidate, git, commit_id)
            return {"id": commit_id, "branch": ref.removeprefix("refs/heads/"), "uncommitted": changes}
        except (OSError, ValueError):
            return None
    return None


_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF: Final = re.compile(r"refs/[^\s~^:?*\[\\]{1,1000}")
"""A name of a branch (gitrevisions(7)): whoever wrote this folder may not lead us to any other file."""


def _file_text(file: Path) -> str:
    """Read a small text of git's. Raises `OSError`, also for a pipe, on which a program would wait for ever."""
    return read_regular(file).decode().strip()


def _uncommitted(folder: Path, git: Path, commit_id: str | None) -> bool | None:
    if commit_id is None:
        return None
    from reenact.record.work_tree import uncommitted  # a program outside a work tree never needs it

    return uncommitted(folder, git, _roots(git)[-1], commit_id)


def _roots(git: Path) -> list[Path]:
    """List the folders that hold what git knows: that of the work tree, then the one that work trees share."""
    common = git / "commondir"
    return [git, (git / _file_text(common)).resolve()] if common.exists() else [git]


def _resolve(git: Path, ref: str) -> str | None:
    for root in _roots(git):
        if (root / ref).is_file():
            return _commit_id(_file_text(root / ref))
        packed = root / "packed-refs"
        if packed.is_file():
            for line in _file_text(packed).splitlines():
                mark, _, name = line.partition(" ")
                if name == ref:
                    return _commit_id(mark)
    return None


def _commit_id(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _versions() -> dict[str, Json]:
    versions: dict[str, Json] = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def working_folder() -> str:
    """Give the folder that the process is in; empty where it is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _sha256(path: Path) -> str | None:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except OSError:
        return None
