"""The tape: what the agent's own code drew of the clock and of chance, kept while recording, given back in a replay.

Integrations put a wrapper in front of every source. The wrapper asks `Sites.of` whose code is calling: the agent's own
draws are taped; Python's library and ourselves get the real thing. What an installed package draws is taped where it is
seen in what the program gives out (`boundary.flows`).

Who calls is `_getframe().f_back`, in every wrapper of ours: None where native code does, on a thread of its own (a Rust
runtime that wakes a loop). `_getframe(1)` would raise there, into the agent.

A draw is known by its lane, the call it was made in, and its *site*: the module and qualified name of the code that
draws, and the source. No line number, so that an edit elsewhere in the file moves nothing; no running number over the
whole program, so that a draw more in one function does not shift those of another. Within a site draws are told apart
by their order, begun anew after each call that the lane makes, so that a loop that polls a clock more or less often
in a replay shifts nothing behind the next call.
"""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import CodeType, FrameType
from typing import Any, Final, Protocol, cast

from reenact.boundary import flows, lanes, own_processes, place
from reenact.boundary.forgiving import forgive
from reenact.boundary.lanes import Lane
from reenact.boundary.own_code import is_own_code, own_modules
from reenact.boundary.place import Place
from reenact.contracts.integration import PatchSet
from reenact.values.json import Json

_time: Final = time.time
"""The clock itself, and not the one that the agent's code reads."""
MOST: Final = 10_000
"""So many draws of one site are kept between two calls of a lane; the others are counted."""

MOST_ELAPSED: Final = 2_000
"""As many for a clock that says how long something took."""

_LIBRARY: Final = ("stdlib", "platstdlib")
_REMEMBERED: Final = 20_000
"""So many code objects are known by heart; a program that makes its code anew all the time is asked again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """Something that is drawn from, such as `time.time`."""

    name: str
    spell: Callable[[Any], Json] = lambda value: value
    """Writes a drawn value down. Never calls code of the agent's."""
    read: Callable[[Json], Any] = lambda value: value
    """Gives the value back. Raises `ValueError` or `TypeError` for what `spell` never wrote."""
    moment: Callable[[Any], float] | None = None
    """For a clock: the seconds since the epoch that a drawn value means."""
    elapses: bool = False
    """It is a clock that says nothing but how long something took; past the tape it goes on from the last value."""
    runs_on: bool = False
    """It is a clock that no reader looks at; past the tape it runs on from the last moment, and nobody is told."""
    flows: bool = False
    """What libraries draw from it is taped where it is seen in what the program gives out."""
    is_compared: bool = False
    """A replay says where today's value is another than the recorded one."""
    measures: bool = False
    """It is a clock of which libraries tell the difference of two readings: what they read is taped unseen."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Site:
    """A place in the agent's code that draws from a source."""

    key: str
    """`module:qualname source`"""
    source: Source
    of_library: bool = False
    """It is no code of the agent's."""


class Lost:
    """Stands at the end of a full list of draws for those that were not kept."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 1


class Answers(Protocol):
    """Who gives recorded draws back, in a replay."""

    def take(
        self, lane: Lane, here: Place | None, site: Site, make: Callable[[], Any], at: Callable[[float], Any] | None
    ) -> Any:
        """Give the recorded value, else one from `make`; or, for a clock, from `at` a moment in epoch seconds."""
        ...

    def moment(self, lane: Lane) -> float:
        """Give what the recorded clock says now, running on, in seconds since the epoch."""
        ...

    def take_for_library(
        self, lane: Lane, here: Place | None, site: Site, make: Callable[[], Any], at: Callable[[float], Any] | None
    ) -> Any:
        """Give what was recorded of a draw of a library's, else one from `make`."""
        ...


class Modes:
    """How the shared random generators are taped in one recording: those that are not in `STREAMS`."""

    __slots__ = ("first", "now")

    def __init__(self, first: Mapping[str, str]) -> None:
        self.first = dict(first)
        """When the recording began."""
        self.now = dict(first)


class _State:
    """Who is in charge. A class, so that reading it on the hot path is one attribute."""

    __slots__ = ("answers", "modes", "on", "untaped")

    def __init__(self) -> None:
        self.on = False
        self.answers: Answers | None = None
        self.modes = Modes({})
        self.untaped: dict[str, str] = {}


_STATE = _State()

FLAG: Final = "flag"
"""How the names of sources begin that are feature flags: the flag's own name stands behind it."""
STREAMS: Final = "streams"
"""Nobody chose a seed for a shared generator: each site of each lane has a stream of its own."""
SHARED: Final = "shared"
"""The program chose the seed or the state: its own draws are what it would get anyway."""
UNKNOWN: Final = "unknown"
"""The recording began in a program that may have chosen one already: the state is taped, once for each call."""


def install(*, on: bool, answers: Answers | None = None, modes: Modes | None = None) -> None:
    """Take draws down from now on, or not; given `answers`, have them answered. `modes` is kept up to date."""
    if on:  # at the end of a recording it is still told what was drawn
        flows.forget()
    _STATE.on, _STATE.answers = on, answers
    _STATE.modes = modes or Modes({})


def is_on() -> bool:
    """Tell whether draws are taped."""
    return _STATE.on


def generators() -> dict[str, str]:
    """Give the mode of each shared generator that was not in `STREAMS` when the recording began."""
    return dict(_STATE.modes.first)


def mode(generator: str) -> str:
    """Say how a shared generator, such as `random`, is taped: `STREAMS`, `SHARED` or `UNKNOWN`."""
    return _STATE.modes.now.get(generator, STREAMS) if _STATE.on else SHARED


def set_mode(generator: str, wanted: str) -> None:
    """Hear that somebody seeded a shared generator."""
    _STATE.modes.now[generator] = wanted


def cannot(source: str, why: str) -> None:
    """Note that a source cannot be taped here."""
    _STATE.untaped[source] = why


def untaped() -> dict[str, str]:
    """Name the sources that cannot be taped in this process, each with the reason."""
    return dict(_STATE.untaped)


def draw(site: Site, make: Callable[[], Any], at: Callable[[float], Any] | None = None) -> Any:
    """Draw a value at `site`: a real one, which is kept, or in a replay the recorded one."""
    state = _STATE
    if not state.on:
        return make()
    lane, here = lanes.current(), place.current()
    loose = site.of_library and (site.source.flows or site.source.measures)
    if state.answers is None:
        value = make()
    else:
        take = state.answers.take_for_library if loose else state.answers.take
        value = take(lane, here, site, make, at)
    try:
        (flows.hold if loose else _keep)(lane, 0 if here is None else here.span_id, site, value)
    except Exception:
        forgive("tape.draw")
    return value


def moment() -> float:
    """Give the time, in seconds since the epoch; in a replay that of the recorded clock. Nothing is kept of it."""
    state = _STATE
    return _time() if not state.on or state.answers is None else state.answers.moment(lanes.current())


def _keep(lane: Lane, call: int, site: Site, value: Any) -> None:
    """Note a draw."""
    drawn = lane.drawn
    if drawn is None:
        drawn = lane.begin_drawing()
    page = drawn.get(call)
    if page is None:
        page = drawn[call] = {}
    draws = page.get(site)
    if draws is None:
        page[site] = [value]
    elif len(draws) < (MOST_ELAPSED if site.source.elapses or site.source.runs_on else MOST):
        draws.append(value)
    elif site.source.elapses or site.source.runs_on:
        return
    elif type(draws[-1]) is Lost:
        draws[-1].count += 1
    else:
        draws.append(Lost())


_DRAWS_FOR_ITS_CALLER: Final = (
    *("random.py", "secrets.py", "uuid.py", "sched.py", "timeit.py", "statistics.py", "calendar.py"),
    *("email/", "mailbox.py", "imaplib.py", "smtplib.py", "xmlrpc/client.py", "http/cookies.py", "http/cookiejar.py"),
    *("gzip.py", "tarfile.py", "zipfile.py", "zipfile/"),
)
"""Modules of Python's own that put a time or chance into what they make: ids, boundaries and dates of messages, heads
of archives."""
_PASSED_ON = tuple({f"{sysconfig.get_path(path)}/{name}" for path in _LIBRARY for name in _DRAWS_FOR_ITS_CALLER})
_MAKES_FOR_ITS_CALLER = frozenset(
    {
        *("pydantic", "pydantic_core", "attr", "attrs", "sqlmodel", "flask_caching"),
        *("uuid_utils", "uuid6", "uuid7", "uuid_extensions", "ulid", "nanoid", "shortuuid", "cuid2", "ksuid", "xid"),
        *("passlib", "pwdlib", "argon2", "cryptography", "Crypto", "Cryptodome", "rsa", "ecdsa", "jose"),
    }
)
"""Libraries that call `default_factory=datetime.now` for whoever makes an object, those that make ids, one that puts an
id into the names of its caller's files, and those that draw salts, keys and nonces, of which only a hash or a cipher
text may be seen."""

_WRAPS_CHANCE = "reenact.integrations.chance"
"""Stands between whoever chooses and Python's `random`."""


def _whose(code: CodeType, names: dict[str, Any]) -> bool | None:
    """Tell whether code is the agent's own; None where it draws for its caller."""
    file, module = code.co_filename, names.get("__name__")
    if file.startswith(("<attrs ", "<timeit-src>", *_PASSED_ON)) or not isinstance(module, str):
        return None
    if module == _WRAPS_CHANCE or module.partition(".")[0] in _MAKES_FOR_ITS_CALLER:
        return None
    return is_own_code(code, names)


_REAL: Final = frozenset(
    {"reenact", "opentelemetry", "_pytest", "pytest", "trio", *sys.stdlib_module_names} - {"__main__"}
)
"""What gets the real clock and real chance: what it gives out is no part of a run, or it waits by the clock."""


_RUNNERS: Final = frozenset({"_pytest", "pytest", "unittest"})
"""They say how long the tests took. They are part of a run where it is all of the program."""


def _is_of_library(names: dict[str, Any]) -> bool:
    module = names.get("__name__")
    if not isinstance(module, str):
        return False
    package = module.partition(".")[0]
    return package not in _REAL or (package in _RUNNERS and own_processes.is_whole())


def is_asked_for_by_the_agent(frame: FrameType | None) -> bool:
    """Tell whether the agent's own code, or what it called, is running in `frame`."""
    try:
        while frame is not None:
            if is_own_code(frame.f_code, frame.f_globals):
                return True
            frame = frame.f_back
    except Exception:
        forgive("tape.is_asked_for_by_the_agent")
    return False


class Sites:
    """The places that draw from one source, found by the code object that is running."""

    def __init__(self, source: Source, *, libraries: bool | None = None) -> None:
        """`libraries` says whether those of installed libraries are among them; else where it flows or measures."""
        self.source = source
        self._libraries = source.flows or source.measures if libraries is None else libraries
        self._site_by_code: dict[int, Site | bool] = {}
        """By the identity of code: False for other people's, True where its caller is meant."""
        self._code_objects: list[CodeType] = []
        """Keeps those code objects, so that their identity stays their own."""

    def of(self, frame: FrameType | None) -> Site | None:
        """Give the site of the code that `frame` runs or draws for; None where nothing is taped of it."""
        try:
            while frame is not None:
                site = self._site_by_code.get(id(frame.f_code))
                if site is None:
                    site = self._learn(frame.f_code, frame.f_globals)
                if site is False:
                    return None
                if site is not True:
                    return site
                frame = frame.f_back
        except Exception:
            forgive("Sites.of")
        return None

    def _learn(self, code: CodeType, names: dict[str, Any]) -> Site | bool:
        whose = _whose(code, names)
        site: Site | bool = whose is None
        if whose or (whose is not None and self._libraries and _is_of_library(names)):
            key = f"{names.get('__name__')}:{code.co_qualname} {self.source.name}"
            site = Site(key=key, source=self.source, of_library=not whose)
        if len(self._code_objects) >= _REMEMBERED:
            self._site_by_code.clear()
            self._code_objects.clear()
        self._code_objects.append(code)
        self._site_by_code[id(code)] = site
        return site


_waiting: list[dict[int, tuple[PatchSet, Any]]] = []
"""What is to be rebound at the end of `rebound_at_once`; the innermost stands last."""


def rebind(patches: PatchSet, replaced: Mapping[int, Any]) -> None:
    """Put wrappers where the agent's modules took an original by name (`from time import time`) before we came.

    `replaced` maps the identity of an original to its wrapper.
    """
    wanted = {each: (patches, wrapper) for each, wrapper in replaced.items()}
    if _waiting:
        _waiting[-1].update(wanted)
    else:
        _rebind(wanted)


@contextmanager
def rebound_at_once() -> Generator[None]:
    """Look through the agent's modules once for all that is rebound within: large programs have thousands."""
    _waiting.append({})
    try:
        yield
    finally:
        _rebind(_waiting.pop())


def _rebind(wanted: Mapping[int, tuple[PatchSet, Any]]) -> None:
    for module in own_modules() if wanted else ():
        for name, value in tuple(vars(module).items()):
            if (patch := wanted.get(id(value))) is None:
                continue
            while (around := wanted.get(id(patch[1]))) is not None:  # another integration wrapped the wrapper
                patch = around
            patches, wrapper = patch
            patches.replace(module, name, lambda _, wrapper=wrapper: wrapper)


# figures


def _figures(value: Json) -> Json:
    if isinstance(value, int | float) or (isinstance(value, list) and all(isinstance(v, int | float) for v in value)):
        return value
    raise TypeError(f"{value!r} is no figure")


def measurement(name: str) -> Callable[[Any], Any]:
    """Wrap what measures, so that its figures are taped at the site of its caller."""
    sites = Sites(Source(name=name, read=_figures))

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def measure(*args: Any, **kwargs: Any) -> Any:
            site = sites.of(_getframe().f_back) if is_on() else None
            real = original(*args, **kwargs)
            if site is None or not isinstance(real, int | float | tuple):
                return real
            plain: Any = [*cast("tuple[Any, ...]", real)] if isinstance(real, tuple) else real
            return _like(real, draw(site, lambda: plain))

        return measure

    return make


def _like(real: Any, drawn: Any) -> Any:
    """Give recorded figures in the class of the real ones; these themselves where there are more or fewer."""
    if not isinstance(real, tuple):
        return real if isinstance(drawn, list) else drawn
    figures = cast("tuple[Any, ...]", real)
    if not isinstance(drawn, list) or len(cast("list[Any]", drawn)) != len(figures):
        return figures
    kind: Any = type(figures)
    return kind._make(drawn) if hasattr(kind, "_make") else kind(drawn)
