from __future__ import annotations

import collections
import dataclasses
import enum
import ipaddress
import math
import pathlib
import sys
import uuid
import zoneinfo
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.values import typed
from reenact.values.exception_record import exception_from_json, exception_to_json
from reenact.values.json import Json, canonical, compact, parse


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


class Bits(enum.Flag):
    A = 1
    B = 2


class Point(NamedTuple):
    x: int
    y: object


@dataclasses.dataclass
class Plain:
    a: object
    b: list[object] = dataclasses.field(default_factory=list[object])
    ran: bool = dataclasses.field(default=False, compare=False)

    def __post_init__(self) -> None:
        self.ran = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    a: object
    b: int = 3


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    n: int
    when: datetime | None = None
    _hidden: int = pydantic.PrivateAttr(default=1)


class Text(str):
    __slots__ = ()


class Table(dict[str, int]):
    note = ""


class TeaPotError(RuntimeError):
    def __init__(self, *, spout: str) -> None:
        self.spout = spout
        super().__init__(f"short and stout {spout}", 418)

    def __str__(self) -> str:
        return f"teapot {self.spout}"


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError


class Stopping:
    def __repr__(self) -> str:
        raise KeyboardInterrupt


def through_text(value: object) -> object:
    """Encode, write down as text, read the text, decode: what a recording does."""
    json = typed.encode(value)
    assert typed.unstable_places(json) == []
    assert parse(compact(json)) == json
    assert parse(canonical(json)) == json
    return typed.decode(parse(compact(json)))


def same(a: object, b: object) -> bool:  # noqa: PLR0911 -- one return for each kind of value
    """Equality that also tells 1 from 1.0 and True, 0.0 from -0.0, and takes NaN for equal to itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        assert isinstance(b, float)
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, complex):
        assert isinstance(b, complex)
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, dict):
        assert isinstance(b, dict)
        pairs = zip(a.items(), b.items(), strict=True)
        return len(a) == len(b) and all(same(x, y) and same(v, w) for (x, v), (y, w) in pairs)
    if isinstance(a, list | tuple | collections.deque):
        assert isinstance(b, list | tuple | collections.deque)
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Plain | Model | SimpleNamespace):
        assert isinstance(b, Plain | Model | SimpleNamespace)
        return same(vars(a), vars(b))
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, datetime | time):
        assert isinstance(b, datetime | time)
        return a.isoformat() == b.isoformat() and a.fold == b.fold and a.tzinfo == b.tzinfo
    return a == b


zones = st.one_of(
    st.none(),
    st.just(UTC),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)), st.text()),
    st.sampled_from(["Europe/Berlin", "America/New_York"]).map(zoneinfo.ZoneInfo),
)
hashables = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters()),
    st.binary(),
    st.sampled_from([*Colour, *Level, *Word, Bits.A | Bits.B, Bits(0), int, Plain, uuid.NAMESPACE_DNS]),
    st.dates(),
    st.datetimes(timezones=zones),
    st.datetimes().map(lambda moment: moment.replace(fold=1)),
    st.times(timezones=zones.filter(lambda zone: not isinstance(zone, zoneinfo.ZoneInfo))),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.ip_addresses(),
    st.ip_addresses(v=4).map(lambda address: ipaddress.ip_network(f"{address}/24", strict=False)),
    st.ip_addresses(v=6).map(lambda address: ipaddress.ip_interface(f"{address}/64")),
    st.sampled_from(["Europe/Berlin", "UTC"]).map(zoneinfo.ZoneInfo),
    st.complex_numbers(allow_nan=False),
    st.ranges() if hasattr(st, "ranges") else st.builds(range, st.integers(), st.integers(), st.integers(1)),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")).map(pathlib.PurePosixPath),
    st.text(st.characters(codec="ascii", exclude_characters="\0")).map(pathlib.Path),
    st.text().map(Text),
)
awkward = st.one_of(
    st.just(math.nan),
    st.decimals(),
    st.complex_numbers(),
    st.binary().map(bytearray),
    st.frozensets(hashables, max_size=4),
    st.sets(hashables, max_size=4),
    st.builds(Slotted, a=st.integers(), b=st.integers()),
    st.builds(Model, n=st.integers(), when=st.none() | st.datetimes(), other=st.text()),
)
values = st.recursive(
    hashables | awkward,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text() | st.sampled_from(["$int", "$ref", "$type", "$unstable"]), inner, max_size=4),
        st.dictionaries(hashables, inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=4).map(collections.deque),
        st.builds(Point, st.integers(), inner),
        st.builds(Plain, inner),
        st.builds(SimpleNamespace, left=inner, right=inner),
        st.dictionaries(st.text(), inner, max_size=4).map(collections.OrderedDict),
    ),
    max_leaves=12,
)


@given(values)
def test_decode_gives_back_what_encode_was_given(value: object) -> None:
    assert same(through_text(value), value)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text().filter(lambda key: not key.startswith("$")), inner)
    ),
    max_leaves=20,
)


@given(plain)
def test_plain_json_is_spelled_as_itself(value: Json) -> None:
    assert same(typed.encode(value), value)


@pytest.mark.parametrize("value", [{"$ref": "#/$defs/A", "price": "$5"}, {"a": ["$int"]}, {"$schema": {"$defs": {}}}])
def test_dollar_keys_of_json_schema_are_plain(value: Json) -> None:
    assert typed.encode(value) == value


@pytest.mark.parametrize("key", ["$int", "$unstable", "$tuple"])
def test_a_dict_that_looks_like_a_tag_comes_back_as_a_dict(key: str) -> None:
    value = {"outer": {key: "12"}}
    assert typed.encode(value) != value
    assert through_text(value) == value


def test_what_is_changed_afterwards_does_not_show() -> None:
    for value in ({"a": [1]}, {"a": [1], "b": (1,)}):
        json = typed.encode(value)
        before = compact(json)
        value["a"].append(2)  # type: ignore[union-attr]
        assert compact(json) == before


def test_sets_are_spelled_in_one_order() -> None:
    one, other = set[int](), set[int]()
    for number in (0, 8, 16):
        one.add(number)
    for number in (16, 8, 0):
        other.add(number)
    assert one == other
    assert list(one) != list(other)
    assert compact(typed.encode(one)) == compact(typed.encode(other))


def test_a_dataclass_comes_back_without_running_its_code() -> None:
    before = Plain({"a": (1, 2)})
    object.__setattr__(before, "ran", False)
    before.cached = 7  # type: ignore[attr-defined]
    after = through_text(before)
    assert isinstance(after, Plain)
    assert vars(after) == {"a": {"a": (1, 2)}, "b": [], "ran": False, "cached": 7}


def test_a_model_keeps_fields_set_extra_and_private() -> None:
    before = Model(n=1, more={"x": (1,)})
    before._hidden = 5
    after = through_text(before)
    assert after == before
    assert isinstance(after, Model)
    assert (after.model_fields_set, after.model_extra, after._hidden) == ({"n", "more"}, {"more": {"x": (1,)}}, 5)
    assert after.model_dump_json() == before.model_dump_json()


def test_subclasses_of_builtins_keep_their_class_and_attributes() -> None:
    table = Table(a=1)
    table.note = "n"
    after = through_text({"t": table, "w": Text("x"), "d": collections.defaultdict(list, a=[1])})
    assert isinstance(after, dict)
    assert (type(after["t"]), after["t"], after["t"].note) == (Table, {"a": 1}, "n")
    assert type(after["w"]) is Text
    assert (type(after["d"]), after["d"].default_factory) == (collections.defaultdict, list)
    assert through_text(collections.Counter("aab")) == collections.Counter("aab")


def test_integers_past_the_digit_limit_come_back() -> None:
    assert through_text(-(7**9000)) == -(7**9000)


def test_cycles_and_depth_become_unstable() -> None:
    loop: list[object] = [1]
    loop.append({"loop": loop})
    assert typed.unstable_places(typed.encode(loop)) == ["$[1].loop"]
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    assert len(typed.unstable_places(typed.encode(deep))) == 1
    fair: object = (1,)
    for _ in range(300):
        fair = [fair]
    assert through_text(fair) == fair


class NoZone(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(hours=2)

    def dst(self, _: datetime | None) -> None:
        return None


def test_what_has_no_spelling_is_named_with_its_place() -> None:
    @dataclasses.dataclass
    class Local:
        a: int = 1

    value = {
        "a": [1, object()],
        "b": Hostile(),
        "c": Local(),
        "d": (n for n in [1]),
        "e": datetime(2026, 1, 2, tzinfo=NoZone()),
    }
    json = typed.encode(value)
    assert typed.unstable_places(json) == ["$.a[1]", "$.b", "$.c", "$.d", "$.e.tz"]
    assert isinstance(json, dict)
    assert json["a"] == [1, {"$unstable": "builtins.object", "repr": "<object object at 0x>"}]
    assert json["b"] == {"$unstable": f"{__name__}.Hostile", "repr": "<repr raised RuntimeError>"}
    with pytest.raises(typed.Unhydratable, match=r"^\$\.a\[1\]: a builtins\.object cannot be rebuilt"):
        typed.decode(json)


def test_only_exceptions_of_the_value_are_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        typed.encode({"a": Stopping()})


@pytest.mark.parametrize(
    ("json", "path"),
    [
        ({"a": [{"$dataclass": "gone:Class", "fields": {}}]}, "$.a[0]"),
        ({"$dataclass": "builtins:int", "fields": {}}, "$"),
        ({"$model": "subprocess:Popen", "fields": {}}, "$"),
        ({"$enum": f"{__name__}:Colour", "name": "GREEN"}, "$"),
        ({"$enum": f"{__name__}:Plain", "name": "a"}, "$"),
        ({"$subclass": "builtins:int", "of": "str", "value": "1"}, "$"),
        ({"$namedtuple": f"{__name__}:Plain", "values": []}, "$"),
        ({"$class": "subprocess:run"}, "$"),
        ({"$path": "Popen", "value": ""}, "$"),
        ({"$tuple": 1}, "$"),
        ({"$bytes": None}, "$"),
        ({"$datetime": "tomorrow"}, "$"),
        ({"$unstable": "a.B", "repr": ""}, "$"),
    ],
)
def test_what_cannot_be_built_names_its_place(json: Json, path: str) -> None:
    with pytest.raises(typed.Unhydratable) as caught:
        typed.decode(json)
    assert caught.value.path == path


def test_decoding_imports_nothing() -> None:
    name = "sndhdr" if "sndhdr" not in sys.modules else "nntplib"
    assert name not in sys.modules
    with pytest.raises(typed.Unhydratable):
        typed.decode({"$class": f"{name}:X"})
    assert name not in sys.modules


def test_decoding_never_asks_a_modules_getattr() -> None:
    module = ModuleType("lazy_module")
    module.__getattr__ = lambda name: pytest.fail(f"asked for {name}")  # type: ignore[method-assign]
    sys.modules["lazy_module"] = module
    try:
        with pytest.raises(typed.Unhydratable):
            typed.decode({"$class": "lazy_module:X"})
    finally:
        del sys.modules["lazy_module"]


def throw(error: BaseException) -> None:
    raise error


def raised(error: BaseException) -> BaseException:
    """Raise, write down, spell as text, read, build."""
    try:
        throw(error)
    except BaseException as caught:  # noqa: BLE001
        record = typed.encode_exception(caught)
    assert exception_from_json(parse(compact(exception_to_json(record)))) == record
    return typed.decode_exception(record)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        ValueError("a", 1, (2,)),
        KeyError("x"),
        FileNotFoundError(2, "No such file", "there.txt"),
        ConnectionResetError(104, "reset"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        StopIteration(3),
        SystemExit(4),
        KeyboardInterrupt(),
        ImportError("no", name="mod", path="p"),
        ExceptionGroup("several", [ValueError("a"), KeyError("b")]),
        TeaPotError(spout="left"),
        typed.Unhydratable("$.a", "x"),
        AssertionError("lone \ud800"),
    ],
    ids=lambda error: type(error).__name__ + str(len(error.args)),
)
def test_an_exception_is_raised_again_as_itself(error: BaseException) -> None:
    after = raised(error)
    assert type(after) is type(error)
    assert str(after) == str(error)
    if not isinstance(error, BaseExceptionGroup):
        assert after.args == error.args
    for name in ("errno", "strerror", "filename", "name", "path", "spout", "value", "code"):
        assert getattr(after, name, None) == getattr(error, name, None)


def test_an_http_clients_error_comes_back_without_its_live_request() -> None:
    import httpx

    error = httpx.ConnectError("refused", request=httpx.Request("GET", "http://127.0.0.1"))
    after = raised(error)
    assert (type(after), str(after), after.args) == (httpx.ConnectError, "refused", ("refused",))
    assert typed.encode_exception(error).state is None


def test_notes_and_causes_come_back() -> None:
    error = ValueError("outer")
    error.add_note("a note")
    error.__cause__ = TeaPotError(spout="right")
    after = raised(error)
    assert after.__notes__ == ["a note"]
    assert isinstance(after.__cause__, TeaPotError)
    assert after.__cause__.spout == "right"


def test_a_chain_of_causes_ends() -> None:
    error = ValueError("self")
    error.__cause__ = error
    record = typed.encode_exception(error)
    length = 0
    while record.cause:
        record, length = record.cause, length + 1
    assert length == 8


def test_a_class_that_is_not_loaded_gets_a_stand_in() -> None:
    error = TeaPotError(spout="far")
    record = dataclasses.replace(typed.encode_exception(error), module="not_loaded")
    after = typed.decode_exception(record)
    assert isinstance(after, RuntimeError)
    assert (type(after).__module__, type(after).__qualname__) == ("not_loaded", "TeaPotError")
    assert (str(after), after.spout) == ("teapot far", "far")  # type: ignore[attr-defined]
    assert type(typed.decode_exception(record)) is type(after)
    assert typed.encode_exception(after) == record


def test_a_message_that_its_class_no_longer_says_is_kept() -> None:
    record = dataclasses.replace(typed.encode_exception(ValueError("x")), args=None, message="Error code: 500")
    assert str(typed.decode_exception(record)) == "Error code: 500"
    record = dataclasses.replace(typed.encode_exception(KeyError("x")), args=None)
    after = typed.decode_exception(record)
    assert isinstance(after, KeyError)
    assert str(after) == "'x'"


def test_an_exception_with_hostile_parts_is_still_written_down() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    error = OddError(Hostile())
    error.live = Hostile()  # type: ignore[attr-defined]
    record = typed.encode_exception(error)
    assert (record.message, record.state) == ("<raised RuntimeError>", None)
    assert isinstance(typed.decode_exception(record), Exception)
