"""What redaction in a replayed program is keyed with, on its way there.

A program in a sealed world finds no key in its environment or in a file: the starter of the world hands a descriptor on
(`seal.launch`), which is read and closed before the program's first line, and a child that is Python gets another from
its parent. Where the world is not sealed a file in the scratch folder of the replay holds the same.

What is handed on are the salt of the recording, without which its credentials would have other tokens, and the keys
that its redaction may have had. Neither can prove the origin of a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from reenact.boundary.children import HANDED
from reenact.disk import user_key
from reenact.disk.private import write_text
from reenact.redact import in_force, keys
from reenact.redact.keys import Key
from reenact.stores.directory import DirectoryStore
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import Run
from reenact.values.span import SpanRecord

_FILE: Final = "keyring.json"
OURS: Final = (keys.VARIABLE, keys.OF_THIS_RUN, "REENACT_SALT", user_key.VARIABLE)
"""Variables that hold keys, which no program in a sealed world has."""
_SALT: Final = in_force.SALT


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """It."""

    salt: str = ""
    keys: tuple[Key, ...] = ()
    salts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What spans of the recording say of their own salts, by id."""

    @staticmethod
    def of(run: Run, environ: Mapping[str, str], store: DirectoryStore) -> Keyring:
        """Gather it for the replay of a run."""
        guard = in_force.of_run(run, environ, store.folder)
        known_keys = in_force.known_keys(environ, store.folder)
        return Keyring(salt=guard.salt, keys=tuple(known_keys or ([guard.key] if guard.key is not None else [])))

    def less(self, spans: Sequence[SpanRecord]) -> tuple[Keyring, list[SpanRecord]]:
        """Take the salts out of spans, and give a keyring that holds them."""
        salts = {span.span_id: str(span.attributes[_SALT]) for span in spans if _SALT in span.attributes}
        bare = [
            replace(span, attributes={name: value for name, value in span.attributes.items() if name != _SALT})
            if span.span_id in salts
            else span
            for span in spans
        ]
        return replace(self, salts=salts), bare

    def back(self, span: SpanRecord) -> SpanRecord:
        """Put its salt back into a span."""
        salt = self.salts.get(span.span_id)
        return span if salt is None else replace(span, attributes={**span.attributes, _SALT: salt})

    def spelled(self) -> str:
        """Spell it as JSON."""
        documents = [{"value": each.value.hex(), "source": each.source, "shared": each.shared} for each in self.keys]
        return json.dumps({"salt": self.salt, "keys": documents, "salts": {**self.salts}})

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `spelled` gave. What is no keyring is an empty one."""
        fields = as_object(parsed_or_none(text))
        read_keys: list[Key] = []
        for each in map(as_object, as_list(fields.get("keys"))):
            with suppress(ValueError):
                value = bytes.fromhex(as_text(each.get("value")))
                read_keys.append(
                    Key(value=value, source=as_text(each.get("source")), shared=each.get("shared") is True)
                )
        salts = {name: as_text(value) for name, value in as_object(fields.get("salts")).items()}
        return cls(salt=as_text(fields.get("salt")), keys=tuple(read_keys), salts=salts)


def leave(ring: Keyring, scratch: Path) -> None:
    """Leave it where a program that is not sealed finds it."""
    write_text(scratch / _FILE, ring.spelled())


def take(scratch: Path) -> None:
    """Take it over in a replaying process, which has it for good from here on."""
    text = ""
    if number := os.environ.pop(HANDED, ""):
        with suppress(OSError, ValueError), os.fdopen(int(number), "rb", closefd=True) as stream:
            text = os.pread(stream.fileno(), os.fstat(stream.fileno()).st_size, 0).decode()
    else:
        with suppress(OSError):
            text = (scratch / _FILE).read_text(encoding="utf-8")
    ring = Keyring.read(text)
    keys.hand(ring.keys, ring.salt)
    _held[:] = [ring]
    _by_descriptor[:] = [text] if number else []


_held: list[Keyring] = []
_by_descriptor: list[str] = []


def process_keyring() -> Keyring:
    """Give the keyring that this process was handed."""
    return _held[0] if _held else Keyring()


def descriptor() -> int | None:
    """Make a descriptor by which a child takes the same over, as this process did; None where it was by a file.

    Whoever starts the child closes it then.
    """
    if not _by_descriptor:
        return None
    handle = os.memfd_create("reenact")
    os.write(handle, _by_descriptor[0].encode())
    return handle


def without_ours(environ: Mapping[str, Any]) -> dict[str, Any]:
    """Give an environment without the variables that hold keys."""
    return {name: value for name, value in environ.items() if name not in OURS}
