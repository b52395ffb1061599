"""The closed list of what touches nothing outside the process: functions, classes and modules of Python's own.

A thing is on the list for one of these reasons. It computes from what it is given (`math`, `re`, `json`, `decimal`).
It keeps values (`dict`, `deque`, `StringIO`). It calls what it is given, and that is looked at like all else (`map`,
`functools.partial`, `contextlib.contextmanager`). It waits (`time.sleep`, locks). Or it prints, and a replay's
own output is what a replay is compared by (`print`, `sys.stdout`).

A thing is not on the list where it reads the world (files, environment, clock, chance), acts on it, reaches code or
attributes by names that are computed (`eval`, `operator.methodcaller`, `importlib`), differs from run to run (`id`),
keeps what is called at another
time (`atexit`, `weakref`, `threading.Thread`, `logging`), or where nobody looked at it. Installed libraries are not on
it.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock
from types import FunctionType, ModuleType
from typing import Any, Final, cast

from reenact.values import alarms

_BUILTINS: Final = """
    abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter
    float format frozenset hex int isinstance issubclass iter len list map max memoryview min next object oct
    ord pow print property range repr reversed round set slice sorted staticmethod str sum super tuple type zip
    __build_class__ NotImplemented Ellipsis NotImplementedType ellipsis function method generator coroutine cell code
    async_generator builtin_function_or_method NoneType dict_keys dict_values dict_items list_iterator tuple_iterator
    range_iterator set_iterator str_iterator str_ascii_iterator bytes_iterator dict_keyiterator dict_valueiterator
    dict_itemiterator list_reverseiterator callable_iterator mappingproxy member_descriptor getset_descriptor
    method_descriptor wrapper_descriptor method-wrapper classmethod_descriptor iterator coroutine_wrapper traceback
"""
_EXCEPTIONS: Final = frozenset(
    name
    for name, each in vars(sys.modules["builtins"]).items()
    if isinstance(each, type) and issubclass(each, BaseException)
)

_NAMES: Final[dict[str, str]] = {
    "builtins": _BUILTINS,
    # computes
    "math": "*",
    "cmath": "*",
    "json": "*",
    "json.encoder": "*",
    "json.decoder": "*",
    "json.scanner": "*",
    "_json": "*",
    "re": "*",
    "re._compiler": "*",
    "re._parser": "*",
    "re._constants": "*",
    "re._casefix": "*",
    "_sre": "*",
    "string": "Template capwords",
    "textwrap": "*",
    "difflib": "*",
    "unicodedata": "*",
    "heapq": "*",
    "_heapq": "*",
    "bisect": "*",
    "_bisect": "*",
    "decimal": "*",
    "_decimal": "*",
    "fractions": "*",
    "numbers": "*",
    "statistics": "* but NormalDist",
    "calendar": "monthrange isleap leapdays weekday timegm monthcalendar",
    "datetime": "date datetime time timedelta timezone tzinfo",
    "html": "escape unescape",
    "base64": "* but main test",
    "binascii": "*",
    "struct": "*",
    "_struct": "*",
    "hashlib": "* but file_digest",
    "_hashlib": "*",
    "_md5": "*",
    "_sha1": "*",
    "_sha2": "*",
    "_sha256": "*",
    "_sha512": "*",
    "_sha3": "*",
    "_blake2": "*",
    "hmac": "*",
    "zlib": "*",
    "urllib.parse": "*",
    "ipaddress": "*",
    "uuid": "UUID SafeUUID",
    "graphlib": "*",
    "reprlib": "*",
    "pprint": "pformat PrettyPrinter",
    "colorsys": "*",
    "keyword": "*",
    "shlex": "quote join",
    "ast": "* but main NodeVisitor NodeTransformer",
    "_ast": "*",
    "os": "path fspath PathLike",
    "posixpath": "join basename dirname split splitext normpath commonpath isabs normcase commonprefix",
    "pathlib": "PurePath PurePosixPath PureWindowsPath _PosixFlavour _WindowsFlavour",
    # keeps values
    "collections": "*",
    "collections.abc": "*",
    "_collections_abc": "*",
    "_collections": "*",
    "array": "*",
    "queue": "Queue LifoQueue PriorityQueue SimpleQueue Empty Full",
    "_queue": "SimpleQueue Empty",
    "io": "StringIO BytesIO",
    "_io": "StringIO BytesIO",
    "types": "SimpleNamespace MappingProxyType NoneType GenericAlias UnionType DynamicClassAttribute",
    "csv": "*",
    "_csv": "*",
    # calls what it is given
    "itertools": "*",
    "functools": "*",
    "_functools": "*",
    "operator": "* but attrgetter methodcaller",
    "_operator": "* but attrgetter methodcaller",
    "copy": "copy deepcopy",
    "contextlib": "* but redirect_stdout redirect_stderr _RedirectStream chdir",
    "dataclasses": "replace asdict astuple field fields is_dataclass Field FrozenInstanceError _recursive_repr "
    "_MISSING_TYPE _HAS_DEFAULT_FACTORY_CLASS _DataclassParams _FIELD_BASE KW_ONLY",
    "enum": "*",
    "abc": "*",
    "_abc": "*",
    "typing": "* but get_type_hints ForwardRef _eval_type",
    # waits
    "time": "sleep struct_time",
    "asyncio": "sleep",
    "asyncio.tasks": "sleep",
    "threading": "Lock RLock _RLock",
    "_thread": "allocate_lock lock RLock LockType",
    # prints
    "sys": "stdout stderr exit intern",
}


class _Names:
    """Which names of a module are on the list."""

    __slots__ = ("_all", "_names")

    def __init__(self, spelled: str) -> None:
        first, *rest = spelled.split()
        self._all = first == "*"
        self._names = frozenset(rest[1:]) if self._all else frozenset((first, *rest))

    def __contains__(self, name: str) -> bool:
        return (name in self._names) != self._all


_ASKS: Final[dict[str, frozenset[str]]] = {
    "builtins": frozenset({"keys"}),
    "collections": frozenset({"keys", "items", "elements"}),
    "contextlib": frozenset({"close", "aclose"}),
    "csv": frozenset({"write"}),
    "_csv": frozenset({"write"}),
    "fractions": frozenset({"numerator", "denominator", "as_integer_ratio"}),
    "decimal": frozenset({"numerator", "denominator"}),
    "json": frozenset({"read", "write"}),
    "pprint": frozenset({"write"}),
    "statistics": frozenset({"numerator", "denominator", "as_integer_ratio"}),
    "urllib.parse": frozenset({"decode", "encode", "items"}),
}
PRINT_ASKS: Final = frozenset({"write", "flush"})
"""What `print` asks of the stream that it is given."""


def asks(value: Any) -> frozenset[str]:
    """Name the methods that what is on the list calls of what it is given, beside those between two underscores."""
    return _ASKS.get(str(value.__module__), frozenset())


_LISTED: Final = {module: _Names(names) for module, names in _NAMES.items()}
CLOCK: Final = frozenset({"now", "utcnow", "today"})
"""Names by which the classes of `datetime` read the clock."""
_CLOCKS: Final = frozenset({"date", "datetime"})
_SPECIAL: Final = """
    abs add aenter aexit aiter all and anext annotations author await bool bytes call cause class class_getitem
    complex contains context copy debug deepcopy del delattr delete delitem dict_factory divmod doc enter eq
    exit file float floordiv format ge get getattr getitem gt hash iadd iand ifloordiv ilshift imatmul imod imul
    index init init_subclass instancecheck int invert ior ipow irshift isub iter itruediv ixor le len
    length_hint lshift lt main match_args matmul members missing mod module mul name ne neg new next notes or
    path pos post_init pow qualname radd rand rdivmod repr reversed rfloordiv rlshift rmatmul rmod rmul ror
    round rpow rrshift rshift rsub rtruediv rxor set set_name setattr setitem sizeof slots spec str sub
    subclasscheck suppress_context traceback truediv trunc version wrapped xor dataclass_fields
    dataclass_builtins_object
"""
SPECIAL: Final = frozenset(f"__{name}__" for name in _SPECIAL.split())
"""Names between two underscores that lead to nothing but what is looked at anyway. `__globals__` leads elsewhere."""
FRAMES: Final = frozenset(
    {
        "gi_frame",
        "gi_code",
        "gi_yieldfrom",
        "cr_frame",
        "cr_code",
        "cr_await",
        "ag_frame",
        "ag_code",
        "ag_await",
        "tb_frame",
        "f_back",
        "f_globals",
        "f_locals",
        "f_builtins",
        "f_code",
        "co_code",
    }
)
"""Names by which code reaches the variables of other code."""
EVERYTHING: Final = frozenset({"format", "format_map", "asdict", "astuple", "deepcopy", "vformat"})
"""Names of what reads attributes that nothing spells."""
_PLAIN: Final = frozenset(
    {"builtins", "_io", "array", "decimal", "datetime", "uuid", "fractions", "re", "struct", "_hashlib"}
)


def is_listed_module(name: str) -> bool:
    """Tell whether anything of a module is on the list."""
    return name in _LISTED


def is_listed(module: object, name: str) -> bool:
    """Tell whether what a module of Python's names so is on the list."""
    names = _LISTED.get(module) if isinstance(module, str) else None
    if names is None:
        return False
    return name in names or (module == "builtins" and name in _EXCEPTIONS)


def is_listed_class(cls: type) -> bool:
    """Tell whether a class is on the list, and no other one that only bears its name."""
    if cls is _LOCK or _is_our_lock(cls):
        return True
    outer = cls.__qualname__.partition(".")[0]
    if not is_listed(cls.__module__, outer):
        return False
    member: Any = sys.modules.get(cls.__module__)
    if not isinstance(member, ModuleType):
        return False
    for part in cls.__qualname__.split("."):
        member = vars(member).get(part)
        if member is None:
            return cls.__module__ in _PLAIN and not cls.__flags__ & _HEAP  # a type of C's that no module names
    return member is cls


def _is_our_lock(cls: type) -> bool:
    """Tell a class of locks that stands for the native one while waits are recorded, and no subclass of it."""
    return type(cls).__module__ == _OUR_LOCKS and cls.__base__ is not None and cls.__base__.__module__ == _OUR_LOCKS


_OUR_LOCKS: Final = "reenact.integrations.native_waits"
_LOCK: Final = type(allocate_lock())
_HEAP: Final = 1 << 9
"""Set in `__flags__` of a class that Python code, or a module of C's that makes its own, made (Py_TPFLAGS_HEAPTYPE)."""


def is_listed_function(fn: FunctionType) -> bool:
    """Tell whether a function of Python's library is on the list, with what it is defined in."""
    name = fn.__globals__.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    own = isinstance(module, ModuleType) and vars(module) is fn.__globals__
    return own and is_listed(name, fn.__code__.co_qualname.partition(".")[0])


def is_listed_builtin(value: Any) -> bool:
    """Tell whether a function that is written in C, and bound to no value, is on the list."""
    module, name = value.__module__, value.__name__
    home_module = sys.modules.get(module) if isinstance(module, str) else None
    return isinstance(home_module, ModuleType) and vars(home_module).get(name) is value and is_listed(module, name)


def reads_clock(cls: type, names: frozenset[str]) -> str:
    """Give the name by which code that uses these names may read the clock of a class; empty where it cannot."""
    if cls.__module__ != "datetime" or cls.__qualname__ not in _CLOCKS:
        return ""
    return next(iter(sorted(names & CLOCK)), "")


def is_standard_stream(value: Any) -> bool:
    """Tell whether a value is the process's own standard output or error, or keeps text in memory."""
    kind = cast("type[Any]", type(value))
    if kind.__module__ == "_io" and kind.__qualname__ in {"StringIO", "BytesIO"}:
        return True
    try:
        return kind.__module__ == "_io" and value.fileno() in {1, 2}
    except Exception:  # a stream without a file
        alarms.pass_on()
        return False
