"""Build the values that typed JSON spells. Classes come from what is loaded; no `__init__` of theirs is run."""

from __future__ import annotations

import base64
import contextlib
import pathlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from reenact.values import alarms
from reenact.values.call import ExceptionRecord
from reenact.values.classes import (
    BUILTIN_BASES,
    RECORD,
    SCALARS,
    TAGS,
    UNSTABLE,
    Resolve,
    Unhydratable,
    json_text,
    loaded,
)
from reenact.values.exception_record import exception_from_json
from reenact.values.json import Json

"""Gives the class that `module:qualname` names, or None."""

_BASES = {base.__name__: base for base in BUILTIN_BASES}
_FILLED: dict[Any, Callable[[Any, Any], object]] = {
    list: list.extend,
    set: set.update,
    bytearray: bytearray.extend,
}
"""Built-in types that are made empty, and what fills them."""
_HEAP_TYPE = 1 << 9
"""Set in `__flags__` of a class that Python code made (CPython's Py_TPFLAGS_HEAPTYPE); its `__new__` is not run."""
_PATHS = ("PurePosixPath", "PureWindowsPath", "PosixPath", "WindowsPath", "PurePath", "Path")


def decode(json: Json, *, resolve: Resolve = loaded) -> object:
    """Build the value that `values.typed.encode` spelled.

    Classes are asked of `resolve`, which by default looks among the loaded modules only, and must be of the recorded
    kind: a dataclass, an enumeration, a pydantic model. Instances are made without `__init__` or `__post_init__`.

    Raises `Unhydratable` with the JSON path of the first value that cannot be built.
    """
    return _Decoding(resolve).read(json, "$")


def decode_exception(record: ExceptionRecord, *, resolve: Resolve = loaded) -> BaseException:
    """Build the exception that `values.typed.encode_exception` wrote down; `str()` of it is the recorded message.

    It is of the recorded class where that is loaded, else of a stand-in with the same name, derived from the first
    base that is loaded. Arguments and attributes that cannot be built are left out. Raises nothing.
    """
    cls = resolve(f"{record.module}:{record.qualname}")
    decoding = _Decoding(resolve)
    args, state = _args(decoding, record), _state(decoding, record)
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        cls = _stand_in(record.module, record.qualname, _first_base(record, resolve))
    error = _built(cls, args, state)
    if error is None or _message_of(error) != record.message:
        base = cls if issubclass(cls, _StandIn) else _stand_in(record.module, record.qualname, cls)
        fields = {**state, RECORD: record}
        error = _built(base, args, fields) or _built(_stand_in(record.module, record.qualname, Exception), (), fields)
    if error is None:  # a class that cannot even be derived from
        error = RuntimeError(record.message)
    if record.cause is not None:
        error.__cause__ = error.__context__ = _raised(decode_exception(record.cause, resolve=resolve))
    if record.context is not None:
        error.__context__ = _raised(decode_exception(record.context, resolve=resolve))
    return error


def _raised(error: BaseException) -> BaseException:
    """Give an error a traceback: only of one that was raised somewhere does Python print that it was."""
    context = error.__context__
    with contextlib.suppress(type(error)):
        raise error
    error.__context__ = context
    return error


class _StandIn(BaseException):
    """Says what the recorded exception said."""

    def __str__(self) -> str:
        record = self.__dict__.get(RECORD)
        return record.message if isinstance(record, ExceptionRecord) else super().__str__()


_stand_ins: dict[tuple[str, str, type], type[BaseException]] = {}


def _stand_in(module: str, qualname: str, base: type[BaseException]) -> type[BaseException]:
    key = module, qualname, base
    if key not in _stand_ins:
        try:
            namespace = {"__module__": module, "__qualname__": qualname}
            _stand_ins[key] = type(qualname.rpartition(".")[2], (_StandIn, base), namespace)
        except Exception:  # noqa: BLE001 -- the base's own metaclass or __init_subclass__
            alarms.pass_on()
            return type("Exception", (_StandIn, Exception), {})
    return _stand_ins[key]


def _first_base(record: ExceptionRecord, resolve: Resolve) -> type[BaseException]:
    for name in record.bases:
        base = resolve(name)
        if isinstance(base, type) and issubclass(base, BaseException) and base is not BaseException:
            return base
    return BaseException if record.bases else Exception


def _args(decoding: _Decoding, record: ExceptionRecord) -> tuple[object, ...]:
    try:
        return tuple(decoding.list_at(record.args, "$.args"))
    except Unhydratable:
        return (record.message,)


def _state(decoding: _Decoding, record: ExceptionRecord) -> dict[str, object]:
    state: dict[str, object] = {}
    for name, value in record.state.items() if isinstance(record.state, dict) else ():
        try:
            state[name] = decoding.read(value, f"$.state.{name}")
        except Unhydratable:
            continue
    return state


def _built(cls: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> BaseException | None:
    try:
        error = _new_exception(cls, args)
    except Exception:  # noqa: BLE001 -- whatever a class objects to: the caller has another way
        alarms.pass_on()
        return None
    for name, value in state.items():
        with contextlib.suppress(AttributeError, TypeError):  # a property of the class
            object.__setattr__(error, name, value)
    return error


def _new_exception(cls: type[BaseException], args: tuple[object, ...]) -> BaseException:
    """Make an exception: a built-in one the usual way, any other past its own `__new__` and `__init__`."""
    if cls.__module__ == "builtins":
        return cls(*args)
    builtin = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    error = cast("BaseException", cast("Any", builtin).__new__(cls, *args))
    error.args = args
    return error


def _message_of(error: BaseException) -> str | None:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 -- the exception's own code
        alarms.pass_on()
        return None


class _Decoding:
    """One walk through one typed JSON."""

    __slots__ = ("resolve",)

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve

    def read(self, json: Json, path: str) -> Any:
        """Build one value; one frame a plain level, as in writing."""
        if isinstance(json, list):
            items: list[object] = []
            for index, item in enumerate(json):
                items.append(self.read(item, f"{path}[{index}]"))
            return items
        if not isinstance(json, dict):
            return json
        if tag := next((key for key in json if key in TAGS), None):
            return self.tagged(tag, json, path)
        pairs: dict[str, object] = {}
        for key, item in json.items():
            pairs[key] = self.read(item, f"{path}.{key}")
        return pairs

    def tagged(self, tag: str, json: dict[str, Json], path: str) -> Any:
        """Build a tagged value; whatever a malformed one raises becomes `Unhydratable`."""
        if tag == UNSTABLE:
            raise Unhydratable(path, f"a {json[tag]}")
        try:
            return _READERS[tag](self, json, path)
        except Unhydratable:
            raise
        except Exception as failure:
            raise Unhydratable(path, f"a {tag[1:]} ({type(failure).__name__}: {failure})") from failure

    def list_at(self, json: Json, path: str) -> list[object]:
        """Build an array."""
        if not isinstance(json, list):
            raise Unhydratable(path, "what should be an array")
        return [self.read(item, f"{path}[{index}]") for index, item in enumerate(json)]

    def pairs_at(self, json: Json, path: str) -> list[tuple[Any, Any]]:
        """Build the keys and values of a dict that was spelled as pairs."""
        pairs = self.list_at(json, path)
        return [cast("tuple[Any, Any]", tuple(cast("list[object]", pair))) for pair in pairs]

    def dict_at(self, json: Json, path: str) -> dict[str, object]:
        """Build an object."""
        value = self.read(json, path)
        if not isinstance(value, dict):
            raise Unhydratable(path, "what should be an object")
        return cast("dict[str, object]", value)

    def class_at(self, json: Json, path: str, marker: str = "__class__") -> Any:
        """Find a class, and make sure that it is of the kind that the recording says."""
        name = json if isinstance(json, str) else ""
        cls = self.resolve(name)
        if not isinstance(cls, type) or not hasattr(cls, marker):
            raise Unhydratable(path, f"the class {name or json!r}")
        return cls


def _with_fields(cls: type, fields: dict[str, object]) -> object:
    instance = cast("object", object.__new__(cls))
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
    return instance


def _data(tag: str, marker: str) -> Callable[[_Decoding, dict[str, Json], str], object]:
    def read(decoding: _Decoding, json: dict[str, Json], path: str) -> object:
        cls = decoding.class_at(json[tag], path, marker)
        return _with_fields(cls, decoding.dict_at(json.get("fields"), f"{path}.fields"))

    return read


def _model(decoding: _Decoding, json: dict[str, Json], path: str) -> object:
    cls = decoding.class_at(json["$model"], path, "__pydantic_fields_set__")
    extra, private = (
        None if json.get(name) is None else decoding.dict_at(json[name], f"{path}.{name}")
        for name in ("extra", "private")
    )
    state: dict[str, object] = {
        "__dict__": decoding.dict_at(json.get("fields"), f"{path}.fields"),
        "__pydantic_fields_set__": set(decoding.list_at(json.get("set"), f"{path}.set")),
        "__pydantic_extra__": extra,
        "__pydantic_private__": private,
    }
    return _with_fields(cls, state)


def _enum(decoding: _Decoding, json: dict[str, Json], path: str) -> object:
    cls = decoding.class_at(json["$enum"], path)
    if not issubclass(cls, Enum):
        raise Unhydratable(path, f"the enumeration {json['$enum']!r}")
    member = cls.__members__.get(str(json.get("name")))
    if member is None and issubclass(cls, Flag):
        return cls(decoding.read(json.get("value"), f"{path}.value"))
    if member is None:
        raise Unhydratable(path, f"the member {json.get('name')!r} of {json['$enum']}")
    return member


def _namedtuple(decoding: _Decoding, json: dict[str, Json], path: str) -> object:
    cls = decoding.class_at(json["$namedtuple"], path, "_fields")
    return tuple.__new__(cls, decoding.list_at(json.get("values"), f"{path}.values"))


def _subclass(decoding: _Decoding, json: dict[str, Json], path: str) -> object:
    base = _BASES[str(json["of"])]
    cls = decoding.class_at(json["$subclass"], path)
    if not issubclass(cls, base):
        raise Unhydratable(path, f"the class {json['$subclass']!r}, which is no {base.__name__},")
    value = decoding.read(json.get("value"), f"{path}.value")
    native: Any = next(ancestor for ancestor in cls.__mro__ if not ancestor.__flags__ & _HEAP_TYPE)
    empty = base is dict or base in _FILLED
    make: Callable[..., Any] = native.__new__
    instance = make(cls) if empty else make(cls, value)
    if base is dict:
        for key, item in value.items():
            native.__setitem__(instance, key, item)
    elif base in _FILLED:
        _FILLED[base](instance, value)
    for name, item in decoding.dict_at(json.get("state", {}), f"{path}.state").items():
        object.__setattr__(instance, name, item)
    return instance


def _zone(json: Json) -> tzinfo | None:
    if not isinstance(json, dict):
        return None
    if isinstance(key := json.get("zone"), str):
        from zoneinfo import ZoneInfo

        return ZoneInfo(key)
    offset = timedelta(microseconds=cast("int", json["offset"]))
    return timezone(offset, json_text(json["name"])) if "name" in json else timezone(offset)


def _moment(tag: str, kind: Any) -> Callable[[_Decoding, dict[str, Json], str], object]:
    def read(_: _Decoding, json: dict[str, Json], __: str) -> object:
        return kind.fromisoformat(json[tag]).replace(tzinfo=_zone(json.get("tz")), fold=json.get("fold", 0))

    return read


def _path(_: _Decoding, json: dict[str, Json], path: str) -> object:
    name = str(json["$path"])
    if name not in _PATHS:
        raise Unhydratable(path, f"a path of the kind {name!r}")
    text = json_text(json.get("value"))
    try:
        return getattr(pathlib, name)(text)
    except NotImplementedError:  # a path of the other system: only its pure form can be made here
        return getattr(pathlib, f"Pure{name}")(text)


def _scalar(decoding: _Decoding, json: dict[str, Json], path: str) -> object:
    name = str(json["$scalar"])
    if name not in SCALARS:
        raise Unhydratable(path, f"a scalar of the class {name!r}")
    make: Callable[[Json], object] = decoding.class_at(name, path)
    return make(json.get("value"))


def _defaultdict(decoding: _Decoding, json: dict[str, Json], path: str) -> object:
    factory = decoding.read(json.get("factory"), f"{path}.factory")
    return defaultdict(factory, decoding.pairs_at(json["$defaultdict"], path))


def _listed(tag: str, make: Callable[[list[Any]], object]) -> Callable[[_Decoding, dict[str, Json], str], object]:
    return lambda decoding, json, path: make(decoding.list_at(json[tag], path))


def _of_text(tag: str, make: Callable[[str], object]) -> Callable[[_Decoding, dict[str, Json], str], object]:
    return lambda _, json, __: make(cast("str", json[tag]))


_READERS: dict[str, Callable[[_Decoding, dict[str, Json], str], Any]] = {
    "$attrs": _data("$attrs", "__attrs_attrs__"),
    "$bytearray": _of_text("$bytearray", lambda text: bytearray(base64.b64decode(text))),
    "$bytes": _of_text("$bytes", base64.b64decode),
    "$class": lambda decoding, json, path: decoding.class_at(json["$class"], path),
    "$complex": _listed("$complex", lambda parts: complex(*parts)),
    "$dataclass": _data("$dataclass", "__dataclass_fields__"),
    "$date": _of_text("$date", date.fromisoformat),
    "$datetime": _moment("$datetime", datetime),
    "$decimal": _of_text("$decimal", Decimal),
    "$defaultdict": _defaultdict,
    "$deque": lambda decoding, json, path: deque(
        decoding.list_at(json["$deque"], path),
        maxlen=cast("int | None", json.get("maxlen")),
    ),
    "$dict": lambda decoding, json, path: dict(decoding.pairs_at(json["$dict"], path)),
    "$enum": _enum,
    "$exception": lambda decoding, json, _: decode_exception(
        exception_from_json(json["$exception"]),
        resolve=decoding.resolve,
    ),
    "$float": _of_text("$float", float),
    "$frozenset": _listed("$frozenset", frozenset),
    "$int": _of_text("$int", lambda text: int(text, 16)),
    "$model": _model,
    "$namedtuple": _namedtuple,
    "$namespace": lambda decoding, json, path: SimpleNamespace(**dict(decoding.pairs_at(json["$namespace"], path))),
    "$ordereddict": lambda decoding, json, path: OrderedDict(decoding.pairs_at(json["$ordereddict"], path)),
    "$path": _path,
    "$range": _listed("$range", lambda parts: range(*parts)),
    "$scalar": _scalar,
    "$set": _listed("$set", set),
    "$str": lambda _, json, __: json_text(json),
    "$subclass": _subclass,
    "$time": _moment("$time", time),
    "$timedelta": _listed("$timedelta", lambda parts: timedelta(*parts)),
    "$tuple": _listed("$tuple", tuple),
    "$uuid": _of_text("$uuid", UUID),
}
