"""The environment variables that a replay sets, and how far the present ones are those of the recording."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reenact.boundary.reading import shape_of
from reenact.find.sources import Found
from reenact.pipeline.hook import HOOK
from reenact.redact.known_secrets import names_a_secret
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.redaction_marks import TOKEN
from reenact.values.run import READ_VARIABLES, Run
from reenact.values.settings import digests, is_locale, is_seed, is_zone_name, is_zone_rule, steers

_INERT: Final = "reenact-inert"
_WITHHELD_SHOWN: Final = 8


def unset_ones(found: Found) -> dict[str, str]:
    """Give what a replay sets where the present environment does not have it.

    A credential is its token: inert, and the same in every prompt. Of a stranger's recording nothing else is set but
    the locale.
    """
    recorded = _recorded(found.run)
    taken = {name: value for name, value in recorded.items() if not steers(name) and _is_taken(found, name, value)}
    return dict.fromkeys(_credentials(found.run), _INERT) | taken


def set_always(found: Found) -> dict[str, str]:
    """Give the recorded order of sets and the recorded time zone, which a replay sets whatever is set here."""
    settings: dict[str, str] = {}
    seed = as_text(found.run.surroundings.get("hash_seed"))
    if is_seed(seed):
        settings["PYTHONHASHSEED"] = seed
    recorded = _recorded(found.run).get("TZ")
    zone = as_object(found.run.surroundings.get("zone"))
    name, rule = as_text(zone.get("name")), as_text(zone.get("rule"))
    if recorded is not None and (found.starts or is_zone_name(recorded) or is_zone_rule(recorded)):
        settings["TZ"] = recorded
    elif recorded is None and is_zone_name(name):
        settings["TZ"] = name
    elif recorded is None and is_zone_rule(rule):
        settings["TZ"] = rule
    return settings


def notes(found: Found, environ: Mapping[str, str] | None = None) -> list[str]:
    """Say before a replay which settings are not those of the recording, and are not made so."""
    environ = os.environ if environ is None else environ
    said: list[str] = []
    told = as_object(found.run.surroundings.get("steering"))
    if "steering" in found.run.surroundings:
        now = digests(environ, HOOK)
        if other := sorted(name for name in {*told, *now} if told.get(name) != now.get(name)):
            few = ", ".join(map(_shown, other[:_WITHHELD_SHOWN]))
            said.append(f"{few}: not as when it was recorded; a replay takes these from this shell")
    said += _read_otherwise(found, environ)
    if left := _left_out(found, environ):
        few = ", ".join(map(_shown, left[:_WITHHELD_SHOWN]))
        more = f" and {len(left) - _WITHHELD_SHOWN} more" if len(left) > _WITHHELD_SHOWN else ""
        said.append(f"the recording names settings that are not taken from it: {few}{more}")
    return said


def _read_otherwise(found: Found, environ: Mapping[str, str]) -> list[str]:
    """Say which variables the program read that are set here and were not then, or the other way round."""
    made = unset_ones(found) | set_always(found)
    read = {name: was for name, was in _read(found.run) if name not in made and not name.startswith("REENACT_")}
    gone = [_shown(name) for name, was_set in read.items() if was_set and name not in environ]
    more = [_shown(name) for name, was_set in read.items() if not was_set and name in environ]
    said: list[str] = []
    if gone:
        said.append(f"{_few(gone)}: set when it was recorded, and not here; the program reads it")
    if more:
        said.append(f"{_few(more)}: not set when it was recorded, and set here; the program reads it")
    return said


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _WITHHELD_SHOWN} more" if len(names) > _WITHHELD_SHOWN else ""
    return ", ".join(names[:_WITHHELD_SHOWN]) + more


def _read(run: Run) -> Iterator[tuple[str, bool]]:
    told = run.root.span.attributes.get(READ_VARIABLES) if run.root is not None else None
    for each in as_list(parsed_or_none(told) if isinstance(told, str) else None):
        match each:
            case [str(name), bool(was_set)] if name:
                yield name, was_set
            case _:
                continue


def _shown(text: str) -> str:
    """Spell a name from a trace so that a terminal only shows it."""
    return text if text.isascii() and text.isprintable() and len(text) < 64 else ascii(text[:64])


def _left_out(found: Found, environ: Mapping[str, str]) -> list[str]:
    taken = unset_ones(found) | set_always(found)
    return sorted(
        name for name, value in _recorded(found.run).items() if name not in taken and environ.get(name) != value
    )


def _recorded(run: Run) -> dict[str, str]:
    kept = as_object(run.surroundings.get("environment"))
    return {name: value for name, value in kept.items() if isinstance(value, str) and "\0" not in value and name}


def _is_taken(found: Found, name: str, value: str) -> bool:
    if found.starts:
        return True
    return is_locale(name, value) or (names_a_secret(name) and TOKEN.fullmatch(value) is not None)


def _credentials(run: Run) -> Sequence[str]:
    """Name the keys that the SDKs of the recorded calls insist on. Others stay unset: an agent may choose by them."""
    shapes = (shape_of(node) for node in run.nodes)
    return [name for shape in shapes if shape is not None for name in shape.credentials] or ["OPENAI_API_KEY"]
