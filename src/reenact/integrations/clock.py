"""The clocks, as the agent's own code reads them: `time`, `datetime`, `date`.

What is taped is the answer and not the instant where the answer depends on the time zone (`localtime`, `strftime`,
naive `now`), so that midnight and daylight saving come again as they were wherever the replay runs. Clocks that only
say how long something took (`monotonic`, `perf_counter`, processor time) are given back as numbers, so that what the
program prints of them is the same; whatever waits (`sleep`, asyncio, locks) reads the real ones.

`datetime.datetime` and `datetime.date` keep their identity (`boundary.static_types`).
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from typing import Any, Final, cast

from reenact.boundary import tape
from reenact.boundary.static_types import OpenType, unsupported
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FOLDED: Final = " fold"
_localtime, _strftime, _ctime = time.localtime, time.strftime, time.ctime
_now, _date_today = datetime.now, date.today
_fromtimestamp = datetime.fromtimestamp
_WARNS: Final = sys.version_info >= (3, 12)
"""`utcnow` warns of itself, and would warn of us."""


def _of_kind(kind: type | tuple[type, ...]) -> Callable[[Json], Any]:
    def read(value: Json) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} is not what a clock says")
        return value

    return read


def _spell_naive(value: datetime) -> str:
    return value.isoformat() + (_FOLDED if value.fold else "")


def _read_naive(value: Json) -> datetime:
    text = str(value)
    moment = datetime.fromisoformat(text.removesuffix(_FOLDED))
    return moment.replace(fold=1) if text.endswith(_FOLDED) else moment


def _spell_struct(value: time.struct_time) -> Json:
    return [*value, value.tm_zone, value.tm_gmtoff]


def _read_struct(value: Json) -> time.struct_time:
    fields: Any = value
    if not isinstance(value, list) or len(value) != 11:
        raise TypeError(f"{value!r} is no struct_time")
    return time.struct_time(fields)


TIME = Source(name="time.time", read=_of_kind((float, int)), moment=float, flows=True, measures=True)
TIME_NS = Source(name="time.time_ns", read=_of_kind(int), moment=lambda value: value / 1e9, flows=True, measures=True)
STRFTIME = Source(name="time.strftime", read=_of_kind(str), flows=True)
CTIME = Source(name="time.ctime", read=_of_kind(str), flows=True)
ASCTIME = Source(name="time.asctime", read=_of_kind(str), flows=True)
LOCALTIME = Source(name="time.localtime", spell=_spell_struct, read=_read_struct, moment=time.mktime, flows=True)
GMTIME = Source(name="time.gmtime", spell=_spell_struct, read=_read_struct, flows=True)
NOW = Source(
    name="datetime.now",
    spell=_spell_naive,
    read=_read_naive,
    moment=datetime.timestamp,
    flows=True,
    measures=True,
)
NOW_IN_ZONE = Source(
    name="datetime.now(tz)",
    spell=lambda value: (value - _EPOCH) // _MICROSECOND,
    read=lambda value: _EPOCH + cast("int", value) * _MICROSECOND,
    moment=datetime.timestamp,
    flows=True,
    measures=True,
)
UTCNOW = Source(
    name="datetime.utcnow",
    spell=_spell_naive,
    read=_read_naive,
    moment=lambda value: value.replace(tzinfo=UTC).timestamp(),
    flows=True,
    measures=True,
)
TODAY = Source(name="datetime.today", spell=_spell_naive, read=_read_naive, moment=datetime.timestamp, flows=True)
CLOCK = Source(name="time.clock_gettime", read=_of_kind((float, int)), moment=float, flows=True, measures=True)
CLOCK_NS = replace(TIME_NS, name="time.clock_gettime_ns")
OTHER_CLOCK = Source(name="time.clock_gettime, elapsed", read=_of_kind((float, int)), elapses=True, measures=True)
OTHER_CLOCK_NS = replace(OTHER_CLOCK, name="time.clock_gettime_ns, elapsed", read=_of_kind(int))
DATE = Source(name="date.today", spell=date.isoformat, read=lambda value: date.fromisoformat(str(value)), flows=True)
_ELAPSED: Final = tuple(
    Source(
        name=f"time.{name}",
        read=_of_kind(int) if name.endswith("_ns") else _of_kind((float, int)),
        elapses=True,
        measures=True,
    )
    for name in (
        *("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
        *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
    )
    if hasattr(time, name)
)


def _reading(source: Source, at: Callable[[float], Any] | None) -> Callable[[Any], Any]:
    """Wrap a function of `time` that takes nothing."""
    sites = Sites(source)

    def make(original: Callable[[], Any]) -> Callable[[], Any]:
        find, draw = sites.of, tape.draw

        @wraps(original)
        def read() -> Any:
            site = find(_getframe().f_back)
            return original() if site is None else draw(site, original, at)

        return read

    return make


def _of_clocks(wall: Source, elapsed: Source, at: Callable[[float], Any]) -> Callable[[Any], Any]:
    """Wrap a function of `time` that is told which clock to read: that of the wall, or one that only elapses."""
    wall_sites, elapsed_sites = Sites(wall), Sites(elapsed)

    def make(original: Callable[[int], Any]) -> Callable[[int], Any]:
        @wraps(original)
        def read(clock: int) -> Any:
            is_wall = clock == time.CLOCK_REALTIME
            site = (wall_sites if is_wall else elapsed_sites).of(_getframe().f_back)
            if site is None:
                return original(clock)
            return tape.draw(site, partial(original, clock), at if is_wall else None)

        return read

    return make


def _of_seconds(source: Source) -> Callable[[Any], Any]:
    """Wrap a function of `time` that reads the clock where no seconds are given."""
    sites = Sites(source)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def read(*seconds: Any) -> Any:
            if not seconds or (len(seconds) == 1 and seconds[0] is None):
                site = sites.of(_getframe().f_back)
                if site is not None:
                    return tape.draw(site, original, original)
            return original(*seconds)

        return read

    return make


def _asctime(original: Callable[..., str]) -> Callable[..., str]:
    sites = Sites(ASCTIME)

    @wraps(original)
    def asctime(*args: Any) -> str:
        site = None if args else sites.of(_getframe().f_back)
        return original(*args) if site is None else tape.draw(site, original, _ctime)

    return asctime


def _strftime_of(original: Callable[..., str]) -> Callable[..., str]:
    sites = Sites(STRFTIME)

    @wraps(original)
    def strftime(*args: Any) -> str:
        site = sites.of(_getframe().f_back) if len(args) == 1 else None
        if site is None:
            return original(*args)
        spelled = args[0]
        return tape.draw(site, lambda: original(spelled), lambda seconds: original(spelled, _localtime(seconds)))

    return strftime


def _as_class(cls: type[datetime], value: datetime) -> datetime:
    """Make a naive moment one of `cls`, in the way in which the class makes its own."""
    if cls is datetime:
        return value
    fields = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return cls(*fields, fold=value.fold)


def _now_of(original: Any) -> Any:
    del original  # bound to `datetime`, as `_now` is
    naive, aware = Sites(NOW), Sites(NOW_IN_ZONE)

    def now(cls: type[datetime], tz: tzinfo | None = None) -> datetime:
        """Return new datetime object local to tz.

        tz
          Timezone object.
        """
        if tz is None:
            site = naive.of(_getframe().f_back)
            if site is not None:
                return _as_class(cls, tape.draw(site, _now, _fromtimestamp))
        elif isinstance(tz, tzinfo):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller may err
            site = aware.of(_getframe().f_back)
            if site is not None:
                moment: datetime = tape.draw(site, _now_utc, _utc_at)
                if tz is UTC and cls is datetime:
                    return moment
                return tz.fromutc(_as_class(cls, moment.replace(tzinfo=None)).replace(tzinfo=tz))
        return _NOW.__get__(None, cls)(tz)

    return classmethod(now)


def _now_utc() -> datetime:
    return _now(UTC)


def _utc_at(seconds: float) -> datetime:
    return _fromtimestamp(seconds, UTC)


def _utcnow_of(original: Any) -> Any:
    del original
    sites = Sites(UTCNOW)

    def utcnow(cls: type[datetime]) -> datetime:
        """Return a new datetime representing UTC day and time."""
        if _WARNS:
            warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=2)
        site = sites.of(_getframe().f_back)
        if site is None:
            return _as_class(cls, _utc_naive())
        return _as_class(cls, tape.draw(site, _utc_naive, lambda seconds: _utc_at(seconds).replace(tzinfo=None)))

    return classmethod(utcnow)


_DEPRECATED = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use timezone-aware "
    "objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)


def _utc_naive() -> datetime:
    return _now(UTC).replace(tzinfo=None) if _WARNS else _UTCNOW.__get__(None, datetime)()


def _today_of(original: Any) -> Any:
    del original
    days, moments = Sites(DATE), Sites(TODAY)

    def today(cls: type[date]) -> date:
        """Current date or datetime:  same as self.__class__.fromtimestamp(time.time())."""
        if issubclass(cls, datetime):  # which inherits this from `date`
            site = moments.of(_getframe().f_back)
            if site is not None:
                return _as_class(cls, tape.draw(site, _now, _fromtimestamp))
        elif (site := days.of(_getframe().f_back)) is not None:
            drawn: date = tape.draw(site, _date_today, date.fromtimestamp)
            return drawn if cls is date else cls(drawn.year, drawn.month, drawn.day)
        return _TODAY.__get__(None, cls)()

    return classmethod(today)


_NOW, _UTCNOW, _TODAY = vars(datetime)["now"], vars(datetime)["utcnow"], vars(date)["today"]
_TIME: Final[tuple[tuple[str, Callable[[Any], Any]], ...]] = (
    ("time", _reading(TIME, float)),
    ("time_ns", _reading(TIME_NS, lambda seconds: int(seconds * 1e9))),
    ("localtime", _of_seconds(LOCALTIME)),
    ("gmtime", _of_seconds(GMTIME)),
    ("ctime", _of_seconds(CTIME)),
    ("asctime", _asctime),
    ("strftime", _strftime_of),
    *((source.name.removeprefix("time."), _reading(source, None)) for source in _ELAPSED),
    *(
        [
            ("clock_gettime", _of_clocks(CLOCK, OTHER_CLOCK, float)),
            ("clock_gettime_ns", _of_clocks(CLOCK_NS, OTHER_CLOCK_NS, lambda seconds: int(seconds * 1e9))),
        ]
        if hasattr(time, "clock_gettime")
        else []
    ),
)
_CLASSES: Final[tuple[tuple[type, str, Callable[[Any], Any]], ...]] = (
    (datetime, "now", _now_of),
    (datetime, "utcnow", _utcnow_of),
    (date, "today", _today_of),
)


def _install(patches: PatchSet) -> None:
    replaced: dict[int, Callable[..., Any]] = {}
    for name, make in _TIME:
        original = getattr(time, name)
        patches.replace(time, name, make)
        replaced[id(original)] = getattr(time, name)
    _install_figures(patches, replaced)
    tape.rebind(patches, replaced)
    why = unsupported() or ("time_machine holds it" if "_time_machine" in sys.modules else "")
    if why:
        tape.cannot("datetime.datetime, datetime.date", why)
        return
    try:
        for cls, name, make in _CLASSES:
            patches.replace(OpenType(cls), name, make)
    except (ImportError, TypeError) as error:  # a Python built without ctypes
        tape.cannot("datetime.datetime, datetime.date", str(error))
    patches.when_imported("_time_machine", _make_way)


def _install_figures(patches: PatchSet, replaced: dict[int, Callable[..., Any]]) -> None:
    """Cut what the system says of load, processor times and room on a disk: it is other in each moment, too."""
    for name in ("getloadavg", "times", "statvfs", "fstatvfs"):
        if not hasattr(os, name):  # not every system has them
            continue
        original = getattr(os, name)
        patches.replace(os, name, tape.measurement(f"os.{name}"))
        replaced[id(original)] = getattr(os, name)
        if original in os.supports_fd:  # programs ask whether the function that they see is one of these
            os.supports_fd.add(getattr(os, name))
    patches.when_imported(
        "shutil", lambda module: patches.replace(module, "disk_usage", tape.measurement("shutil.disk_usage"))
    )


def _make_way(_module: Any) -> None:
    """Give the classes back to a library that reaches into them as C does, and would crash on what stands there."""
    for cls, name, original in ((datetime, "now", _NOW), (datetime, "utcnow", _UTCNOW), (date, "today", _TODAY)):
        if getattr(vars(cls)[name], "__func__", None) is not None:
            setattr(OpenType(cls), name, original)
    tape.cannot("datetime.datetime, datetime.date", "time_machine holds it")


INTEGRATION = Integration(name="clock", libraries=("time", "datetime", "os", "shutil"), install=_install)
