"""The environment variables that a replay sets, and how far the present ones are those of the recording."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reenact.boundary.reading import shape_of
from reenact.find.sources import RunSource
from reenact.pipeline.hook import HOOK
from reenact.values.json import parsed_or_none
from reenact.values.known_secrets import names_a_secret
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.redaction_marks import MARK, TOKEN
from reenact.values.run import READ_VARIABLES, Run
from reenact.values.settings import digests, is_locale, is_seed, is_zone_name, is_zone_rule, steers

_INERT: Final = "reenact-inert"
_WITHHELD_SHOWN: Final = 8
_MASK: Final = re.compile("[0-7]{1,4}")


def unset_ones(source: RunSource) -> dict[str, str]:
    """Give what a replay sets where the present environment does not have it.

    A credential is its token: inert, and the same in every prompt. Of a stranger's recording nothing else is set but
    the locale.
    """
    recorded = _recorded(source.run)
    if source.starts:
        recorded |= _set_by_command(source.run)
    variables = {name: value for name, value in recorded.items() if not steers(name) and _is_taken(source, name, value)}
    return dict.fromkeys(_credentials(source.run), _INERT) | variables


def set_always(recording: RunSource) -> dict[str, str]:
    """Give what a replay sets whatever is set here: the order of sets, the time zone, what the recorded command set.

    A secret that the command set is but a token, and gives way to the one that is set here.
    """
    settings: dict[str, str] = {}
    if recording.starts:
        by_command = _set_by_command(recording.run)
        settings |= {name: value for name, value in by_command.items() if not steers(name) and MARK not in value}
    seed = as_text(recording.run.surroundings.get("hash_seed"))
    if is_seed(seed):
        settings["PYTHONHASHSEED"] = seed
    recorded = _recorded(recording.run).get("TZ")
    zone = as_object(recording.run.surroundings.get("zone"))
    name, rule = as_text(zone.get("name")), as_text(zone.get("rule"))
    if recorded is not None and (recording.starts or is_zone_name(recorded) or is_zone_rule(recorded)):
        settings["TZ"] = recorded
    elif recorded is None and is_zone_name(name):
        settings["TZ"] = name
    elif recorded is None and is_zone_rule(rule):
        settings["TZ"] = rule
    return settings


def added(recording: RunSource) -> list[str]:
    """List what a replay sets, a zone and inert keys, and the recorded program did not have: it sees none of them."""
    recorded, always = _recorded(recording.run), set_always(recording)
    keys = [name for name in _credentials(recording.run) if name not in always]
    return [name for name in (*(("TZ",) if "TZ" in always else ()), *keys) if name not in recorded]


def umask(recording: RunSource) -> int | None:
    """Give the recorded mask of new files' modes; None where it is unknown, or a stranger's."""
    mask = as_text(recording.run.surroundings.get("umask"))
    return int(mask, 8) if recording.starts and _MASK.fullmatch(mask) else None


def notes(recording: RunSource, environ: Mapping[str, str] | None = None) -> list[str]:
    """Say before a replay which settings are not those of the recording, and are not made so."""
    environ = os.environ if environ is None else environ
    lines: list[str] = []
    steering = as_object(recording.run.surroundings.get("steering"))
    if "steering" in recording.run.surroundings:
        now = digests(environ, HOOK)
        if other := sorted(name for name in {*steering, *now} if steering.get(name) != now.get(name)):
            few = ", ".join(map(_printable, other[:_WITHHELD_SHOWN]))
            lines.append(f"{few}: not as when it was recorded; a replay takes these from this shell")
    lines += _read_otherwise(recording, environ)
    if left := _left_out(recording, environ):
        few = ", ".join(map(_printable, left[:_WITHHELD_SHOWN]))
        more = f" and {len(left) - _WITHHELD_SHOWN} more" if len(left) > _WITHHELD_SHOWN else ""
        lines.append(f"the recording names settings that are not taken from it: {few}{more}")
    return lines


def _read_otherwise(recording: RunSource, environ: Mapping[str, str]) -> list[str]:
    """Say which variables the program read that are set here and were not then, or the other way round."""
    settings = unset_ones(recording) | set_always(recording)
    read = {name: was for name, was in _read(recording.run) if name not in settings and not name.startswith("REENACT_")}
    missing = [_printable(name) for name, was_set in read.items() if was_set and name not in environ]
    more = [_printable(name) for name, was_set in read.items() if not was_set and name in environ]
    lines: list[str] = []
    if missing:
        lines.append(f"{_few(missing)}: set when it was recorded, and not here; the program reads it")
    if more:
        lines.append(f"{_few(more)}: not set when it was recorded, and set here; the program reads it")
    return lines


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _WITHHELD_SHOWN} more" if len(names) > _WITHHELD_SHOWN else ""
    return ", ".join(names[:_WITHHELD_SHOWN]) + more


def _read(run: Run) -> Iterator[tuple[str, bool]]:
    text = run.root.span.attributes.get(READ_VARIABLES) if run.root is not None else None
    for each in as_list(parsed_or_none(text) if isinstance(text, str) else None):
        match each:
            case [str(name), bool(was_set)] if name:
                yield name, was_set
            case _:
                continue


def _printable(text: str) -> str:
    """Spell a name from a trace so that a terminal only shows it."""
    return text if text.isascii() and text.isprintable() and len(text) < 64 else ascii(text[:64])


def _left_out(recording: RunSource, environ: Mapping[str, str]) -> list[str]:
    variables = unset_ones(recording) | set_always(recording)
    return sorted(
        name for name, value in _recorded(recording.run).items() if name not in variables and environ.get(name) != value
    )


def _recorded(run: Run) -> dict[str, str]:
    return _variables(run, "environment")


def _set_by_command(run: Run) -> dict[str, str]:
    return _variables(run, "set_by_command")


def _variables(run: Run, key: str) -> dict[str, str]:
    variables = as_object(run.surroundings.get(key))
    return {name: value for name, value in variables.items() if isinstance(value, str) and "\0" not in value and name}


def _is_taken(recording: RunSource, name: str, value: str) -> bool:
    if recording.starts:
        return True
    return is_locale(name, value) or (names_a_secret(name) and TOKEN.fullmatch(value) is not None)


def _credentials(run: Run) -> Sequence[str]:
    """Name the keys that the SDKs of the recorded calls insist on. Others stay unset: an agent may choose by them."""
    shapes = (shape_of(node) for node in run.nodes)
    return [name for shape in shapes if shape is not None for name in shape.credentials] or ["OPENAI_API_KEY"]
