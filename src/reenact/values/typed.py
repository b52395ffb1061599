"""Typed JSON: any Python value as plain JSON, with a tag where plain JSON will not do, and back.

Plain values (strings, numbers, booleans, None, lists, dicts with string keys) are spelled as themselves. Others are an
object with one key of `classes.TAGS`, such as `{"$tuple": [1, 2]}` or `{"$bytes": "AP8="}`; `docs/schema.md` lists
them. No pickle, no code in the recording. What has no spelling becomes `{"$unstable": "module.Qualname", "repr": …}`
and is found again by `unstable_places`.
"""

from __future__ import annotations

import marshal
import re
from typing import Any, cast

import orjson

from reenact.values import alarms
from reenact.values.call import ExceptionRecord
from reenact.values.classes import TAGS, Resolve, Unhydratable, loaded, text_json, unstable_places
from reenact.values.json import Json

__all__ = ["Unhydratable", "decode", "decode_exception", "encode", "encode_exception", "unstable_places"]

_TAGGED = re.compile(b'"(?:' + b"|".join(re.escape(tag.encode()) for tag in sorted(TAGS)) + b')":')


def encode(value: object) -> Json:
    """Spell `value`, so that nothing done to it afterwards shows.

    Never raises an `Exception`, whatever the value's own code does; `KeyboardInterrupt` and its like pass through.
    """
    if type(value) is dict or type(value) is list:
        # marshal refuses all but the exact built-in types, orjson what is no JSON, and the comparison finds what
        # orjson spelled otherwise (tuples, NaN): together faster than any walk in Python.
        try:
            marshal.dumps(cast("Any", value))
            text = orjson.dumps(value)
            if b'"$' not in text or not _TAGGED.search(text):
                copy: Json = orjson.loads(text)
                if copy == value:
                    return copy
        except Exception:  # noqa: BLE001 -- not plain: the walk below finds out where
            alarms.pass_on()
    elif type(value) is str:
        return text_json(value)
    from reenact.values.spelling import Encoding

    return Encoding().write(value)


def encode_exception(error: BaseException) -> ExceptionRecord:
    """Write down an exception: class, `args`, instance attributes, notes and up to eight explicit causes.

    Attributes that typed JSON cannot hold, such as an HTTP client's live request, are left out. Never raises an
    `Exception`.
    """
    from reenact.values.spelling import Encoding

    return Encoding().record(error)


def decode(json: Json, *, resolve: Resolve = loaded) -> object:
    """Build the value that `encode` spelled, as `hydrate.decode` does. Raises `Unhydratable`."""
    from reenact.values import hydrate

    return hydrate.decode(json, resolve=resolve)


def decode_exception(record: ExceptionRecord, *, resolve: Resolve = loaded) -> BaseException:
    """Build the exception that `encode_exception` wrote down, as `hydrate.decode_exception` does."""
    from reenact.values import hydrate

    return hydrate.decode_exception(record, resolve=resolve)
