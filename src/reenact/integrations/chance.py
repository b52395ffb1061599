"""Chance, as the agent's own code throws it: the system's bytes, uuids, `random`, numpy's generators, salts, ports.

*The system's bytes* are taped as they are: `os.urandom`, and through it `secrets`, `SystemRandom`, `uuid4`, and the
entropy of numpy's generators that were given no seed. What such a library makes of them it makes again. A
`random.Random` without a seed is given one from there, as large as it would take by itself.

*Shared generators* (`random.random` and its like, `numpy.random.rand` and its like) are shared by all threads, so a
tape of their values would be as long as the program is busy, and their sequence depends on the scheduler. As long as
nobody has chosen a seed nothing can depend on which sequence it is; so each site in each lane and call is given a
stream of its own, whose seed is the one thing taped. A hundred thousand throws are one draw. Once the program chooses
a seed or a state it gets exactly the sequence that it asked for, and a replay relies on it doing so again; threads
that race for one seeded sequence are not told apart. A recording that begins in the middle of a program cannot know
whether a seed was chosen, so it leaves the sequence alone and tapes the state that it finds.
"""

from __future__ import annotations

import base64
import os
import random
import secrets
import sys
import uuid
import zlib
from array import array
from collections.abc import Callable
from functools import wraps
from random import Random
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final, cast

from reenact.boundary import flows, lanes, place, tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.inbound import LANE
from reenact.boundary.own_code import own_frame
from reenact.boundary.tape import SHARED, STREAMS, UNKNOWN, Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

_urandom: Callable[[int], bytes] = os.urandom
_SEED_BYTES: Final = 32


def _spell_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _read_bytes(value: Json) -> bytes:
    return base64.b64decode(str(value), validate=True)


def _spell_uuid(value: uuid.UUID) -> Json:
    return [value.hex, value.is_safe.value]


def _read_uuid(value: Json) -> uuid.UUID:
    fields = cast("list[Any]", value)
    return uuid.UUID(hex=fields[0], is_safe=uuid.SafeUUID(fields[1]))


def _spell_state(value: Any) -> Json:
    version, words, gauss = value
    return [version, _spell_bytes(zlib.compress(array("I", words).tobytes())), gauss]


def _read_state(value: Json) -> Any:
    version, packed, gauss = cast("list[Any]", value)
    return version, tuple(array("I", zlib.decompress(_read_bytes(packed)))), gauss


SEED = Source(name="random.Random", spell=_spell_bytes, read=_read_bytes)
UUID1 = Source(name="uuid.uuid1", spell=_spell_uuid, read=_read_uuid, flows=True)
UUID4 = Source(name="uuid.uuid4", spell=_spell_uuid, read=_read_uuid, flows=True)
TEMPORARY = Source(name="tempfile", spell=str, read=str)
"""The part of a temporary file's name that is thrown, where the agent's own code asks `tempfile` for one."""
PORT = Source(name="socket.bind", spell=int, read=lambda value: int(str(value)))
NODE = Source(name="uuid.getnode", spell=hex, read=lambda value: int(str(value), 16))
"""The machine's number: a sealed world has no network device, and Python throws one there."""
SALT = Source(name="bcrypt.gensalt", spell=_spell_bytes, read=_read_bytes, flows=True)
RANDOM = Source(name="random", spell=_spell_bytes, read=_read_bytes)
RANDOM_STATE = Source(name="random.getstate", spell=_spell_state, read=_read_state)

_THROWS: Final = (
    "betavariate",
    "binomialvariate",
    "choice",
    "choices",
    "expovariate",
    "gammavariate",
    "gauss",
    "getrandbits",
    "lognormvariate",
    "normalvariate",
    "paretovariate",
    "randbytes",
    "randint",
    "random",
    "randrange",
    "sample",
    "shuffle",
    "triangular",
    "uniform",
    "vonmisesvariate",
    "weibullvariate",
)


class Shared:
    """A generator that a whole process shares, and the streams that stand for it."""

    def __init__(
        self,
        name: str,
        streams: Source,
        states: Source,
        make: Callable[[bytes], Any],
        access: tuple[Callable[[], Any], Callable[[Any], Any]],
    ) -> None:
        self.name, self._make = name, make
        self._get_state, self._set_state = access
        self._streams, self._states = Sites(streams, libraries=True), Sites(states)
        self._own = Sites(streams)

    def stream(self, frame: FrameType | None) -> Any:
        """Give the stream of the agent's code in `frame`; None where the generator itself is to be used."""
        try:
            return None if frame is None else self._stream(frame)
        except Exception:
            forgive("chance.stream")
            return None

    def _stream(self, frame: FrameType) -> Any:
        mode = tape.mode(self.name)
        if mode == SHARED and lanes.current().reel.path != LANE:
            return None
        site = self._streams.of(frame) if tape.is_on() else None
        if site is None:
            return None
        if mode != STREAMS and site.of_library:
            return None
        if mode != STREAMS:  # a unit that came in is replayed alone, and finds the sequence elsewhere
            self._keep_state(frame)
            return None
        lane, here = lanes.current(), place.current()
        streams = lane.streams if here is None else here.streams
        if streams is None:
            streams = dict[Any, Any]()
            if here is None:
                lane.streams = streams
            else:
                object.__setattr__(here, "streams", streams)  # frozen in all that says where it is
        stream = streams.get((lane, site))
        if stream is None:
            stream = streams[lane, site] = self._make(tape.draw(site, _entropy))
        return stream

    def _keep_state(self, frame: FrameType) -> None:
        """Tape the state at the first draw of each call of each lane; in a replay, go on from there."""
        lane, here = lanes.current(), place.current()
        streams = lane.streams if here is None else here.streams
        if streams is not None and self.name in streams:
            return
        site = self._states.of(frame)
        if site is None:
            return
        current_state = self._get_state()
        state = tape.draw(site, lambda: current_state)
        if state is not current_state:
            self._set_state(state)
        if here is None:
            lane.streams = {**(streams or {}), self.name: True}
        else:
            object.__setattr__(here, "streams", {**(streams or {}), self.name: True})

    def settle(self, frame: FrameType | None) -> None:
        """Give the generator a taped seed, since somebody asks for its state: what follows goes by that."""
        try:
            if frame is not None:
                self._settle(frame)
        except Exception:
            forgive("chance.settle")

    def _settle(self, frame: FrameType) -> None:
        if tape.mode(self.name) == UNKNOWN:
            self._keep_state(frame)
        elif tape.mode(self.name) == STREAMS and (site := self._own.of(frame)) is not None:
            other = self._make(tape.draw(site, _entropy))
            self._set_state(_STATE_OF[self.name](other))
            tape.set_mode(self.name, SHARED)


def _entropy() -> bytes:
    return _urandom(_SEED_BYTES)


def _stream(seed: bytes) -> Random:
    return Random(int.from_bytes(seed))  # noqa: S311 - it stands for the program's own dice


_RANDOM = Shared("random", RANDOM, RANDOM_STATE, _stream, (random.getstate, random.setstate))


def _throw(shared: Shared, name: str) -> Callable[[Any], Any]:
    """Wrap one function of a shared generator."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        find = shared.stream

        @wraps(original)
        def throw(*args: Any, **kwargs: Any) -> Any:
            stream = find(_getframe().f_back)
            return original(*args, **kwargs) if stream is None else getattr(stream, name)(*args, **kwargs)

        return throw

    return make


def _seed(shared: Shared) -> Callable[[Any], Any]:
    """Wrap what chooses a seed. Without one, nobody chose: streams stand for the generator again.

    A server that seeds its workers by itself chose nothing for the agent either.
    """

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            return_value = original(*args, **kwargs)
            if tape.is_asked_for_by_the_agent(_getframe().f_back):
                chosen = any(each is not None for each in (*args[:1], kwargs.get("a"), kwargs.get("seed")))
                tape.set_mode(shared.name, SHARED if chosen else STREAMS)
            return return_value

        return seed

    return make


def _set_state(shared: Shared) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def set_state(*args: Any, **kwargs: Any) -> Any:
            return_value = original(*args, **kwargs)
            if tape.is_asked_for_by_the_agent(_getframe().f_back):
                tape.set_mode(shared.name, SHARED)
            return return_value

        return set_state

    return make


def _get_state(shared: Shared) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def get_state(*args: Any, **kwargs: Any) -> Any:
            shared.settle(_getframe().f_back)
            return original(*args, **kwargs)

        return get_state

    return make


def _shared_itself(original: Random) -> Random:
    """Give what stands for `random`'s shared generator: each of its methods is the module's function of that name.

    Libraries take it for the generator of whoever chose none, as networkx does.
    """
    del original
    generator = Random(0)  # noqa: S311 - nothing is drawn from its own state
    for name in (*_THROWS, "seed", "getstate", "setstate"):
        if hasattr(random, name):
            setattr(generator, name, getattr(random, name))
    return generator


def _bytes(original: Callable[[int], bytes]) -> Callable[[int], bytes]:
    @wraps(original)
    def urandom(size: int, /) -> bytes:
        site = (_SIZED.get(size) or _of_size(size)).of(_getframe().f_back)
        return original(size) if site is None else tape.draw(site, lambda: _urandom(size))

    return urandom


def _token_bytes(original: Callable[..., bytes]) -> Callable[..., bytes]:
    """Wrap what `secrets` makes its tokens of, nearer to the agent than the bytes underneath."""

    @wraps(original)
    def token_bytes(nbytes: int | None = None) -> bytes:
        size: Any = original.__globals__.get("DEFAULT_ENTROPY") if nbytes is None else nbytes
        site = (_SIZED.get(size) or _of_size(size)).of(_getframe().f_back) if type(size) is int else None
        return original(nbytes) if site is None else tape.draw(site, lambda: _urandom(size))

    return token_bytes


def _choosing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what chooses out of a sequence by the system's bytes: libraries put ids together of what it gives."""

    @wraps(original)
    def choose(*args: Any, **kwargs: Any) -> Any:
        if not tape.is_on():
            return original(*args, **kwargs)
        lane = lanes.current()
        before = flows.last_draw(lane)
        choice = original(*args, **kwargs)
        try:
            flows.note_choice(lane, before, choice)
        except Exception:
            forgive("chance.choose")
        return choice

    return choose


def _of_size(size: int) -> Sites:
    try:
        return _sized(size)
    except Exception:
        forgive("chance.urandom")
        return _NOBODYS


class _Nobody(Sites):
    """Sites that nobody draws at."""

    def __init__(self) -> None: ...

    def of(self, frame: FrameType | None) -> None:
        """Give none."""
        del frame


_NOBODYS: Final = _Nobody()


def _sized(size: int) -> Sites:
    """Tell draws of different lengths apart: none is answered by one of another."""
    if len(_SIZED) >= _MOST_SIZES:
        _SIZED.clear()
    source = Source(name=f"os.urandom({size})", spell=_spell_bytes, read=_read_bytes, flows=True)
    sites = _SIZED[size] = Sites(source)
    return sites


_SIZED: Final[dict[int, Sites]] = {}
_MOST_SIZES: Final = 1000


def _unseeded(original: Callable[..., None]) -> Callable[..., None]:
    """Wrap `Random.seed`, which `Random()` calls: what is given no seed gets one that is taped."""
    sites = Sites(SEED, libraries=True)

    @wraps(original)
    def seed(self: Random, a: Any = None, version: int = 2) -> None:
        if a is None and tape.is_on():
            site = sites.of(_getframe().f_back)
            if site is not None:
                a = int.from_bytes(tape.draw(site, _entropy))
        original(self, a, version)

    return seed


def _uuid1(original: Callable[..., uuid.UUID]) -> Callable[..., uuid.UUID]:
    sites = Sites(UUID1)

    @wraps(original)
    def uuid1(*args: Any, **kwargs: Any) -> uuid.UUID:
        site = sites.of(_getframe().f_back)
        return original(*args, **kwargs) if site is None else tape.draw(site, lambda: original(*args, **kwargs))

    return uuid1


def _uuid4(original: Callable[[], uuid.UUID]) -> Callable[[], uuid.UUID]:
    sites = Sites(UUID4)

    @wraps(original)
    def uuid4() -> uuid.UUID:
        site = sites.of(_getframe().f_back)
        return original() if site is None else tape.draw(site, new_uuid)

    def new_uuid() -> uuid.UUID:
        try:
            return _new_uuid()
        except Exception:
            forgive("chance.uuid4")
            return original()

    return uuid4


def _temporary(original: Callable[[Any], str]) -> Callable[[Any], str]:
    sites = Sites(TEMPORARY, libraries=False)

    @wraps(original)
    def __next__(self: Any) -> str:  # noqa: N807 - a method of the class that is patched
        frame: FrameType | None = _getframe().f_back
        while frame is not None and frame.f_globals.get("__name__") == "tempfile":
            if frame.f_code.co_name == "_get_default_tempdir":  # it tries folders, once in a process
                return original(self)
            frame = frame.f_back
        site = sites.of(frame)
        return original(self) if site is None else tape.draw(site, lambda: original(self))

    return __next__


def _getnode(original: Callable[[], int]) -> Callable[[], int]:
    sites = Sites(NODE)

    @wraps(original)
    def getnode() -> int:
        site = sites.of(_getframe().f_back)
        return original() if site is None else tape.draw(site, original)

    return getnode


def _binding(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Tape the port that the kernel chooses. A replay asks for the recorded one; where it is taken, for any."""
    sites = Sites(PORT)

    @wraps(original)
    def bind(self: Any, address: Any, /) -> None:
        site = sites.of(_own_frame(_getframe().f_back)) if _lets_choose(address) else None
        if site is None:
            original(self, address)
            return
        chosen: list[int] = []

        def choose() -> int:
            original(self, address)
            chosen.append(self.getsockname()[1])
            return chosen[0]

        port = tape.draw(site, choose)
        if chosen:
            return
        try:
            original(self, (address[0], port, *address[2:]))
        except OSError:
            original(self, address)

    return bind


def _lets_choose(address: object) -> bool:
    fields = [*cast("tuple[object, ...]", address)] if isinstance(address, tuple) else []
    return len(fields) in {2, 4} and type(fields[1]) is int and fields[1] == 0


def _own_frame(frame: FrameType | None) -> FrameType | None:
    """Find the agent's own code that lets a library bind."""
    try:
        return own_frame(frame)
    except Exception:
        forgive("chance.own_frame")
        return None


def _new_uuid() -> uuid.UUID:
    return uuid.UUID(bytes=_urandom(16), version=4)


def _install_tempfile(patches: PatchSet, module: Any) -> None:
    patches.replace(module._RandomNameSequence, "__next__", _temporary)  # noqa: SLF001 - there is no public one


def _install(patches: PatchSet) -> None:
    replaced: dict[int, Any] = {}

    def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        patches.replace(owner, name, make)
        replaced[id(original)] = getattr(owner, name)

    replace(os, "urandom", _bytes)
    patches.replace(random, "_urandom", _bytes)
    for name in _THROWS:
        if hasattr(random, name):
            replace(random, name, _throw(_RANDOM, name))
    replace(random, "seed", _seed(_RANDOM))
    replace(random, "setstate", _set_state(_RANDOM))
    replace(random, "getstate", _get_state(_RANDOM))
    if hasattr(random, "_inst"):
        replace(random, "_inst", _shared_itself)
    patches.replace(Random, "seed", _unseeded)
    replace(secrets, "token_bytes", _token_bytes)
    for name in ("choice", "choices", "sample"):
        patches.replace(random.SystemRandom, name, _choosing)
    replace(secrets, "choice", _choosing)
    replace(uuid, "uuid1", _uuid1)
    replace(uuid, "uuid4", _uuid4)
    replace(uuid, "getnode", _getnode)
    tape.rebind(patches, replaced)
    patches.when_imported("socket", lambda module: patches.replace(module.socket, "bind", _binding))
    patches.when_imported("tempfile", lambda module: _install_tempfile(patches, module))
    patches.when_imported("numpy.random", lambda module: _install_numpy(patches, module))
    patches.when_imported("uuid_utils", lambda module: _install_uuid_utils(patches, module))
    patches.when_imported("bcrypt", lambda module: patches.replace(module, "gensalt", _native(Sites(SALT))))


# uuid_utils, which draws in Rust


def _install_uuid_utils(patches: PatchSet, module: Any) -> None:
    """Wrap what `uuid_utils` draws: it gives uuids of a class of its own, and to its twin of the `uuid` module ints."""
    for name in ("uuid1", "uuid4", "uuid6", "uuid7"):
        source = Source(name=f"uuid_utils.{name}", spell=lambda value: value.hex, read=module.UUID, flows=True)
        patches.replace(module, name, _native(Sites(source)))
    for name in ("_uuid4_int", "_uuid7_int"):
        if hasattr(module, name):
            source = Source(name=f"uuid_utils.{name}", spell=hex, read=lambda value: int(str(value), 16), flows=True)
            patches.replace(module, name, _native(Sites(source)))


def _native(sites: Sites) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            site = sites.of(_getframe().f_back)
            return original(*args, **kwargs) if site is None else tape.draw(site, lambda: original(*args, **kwargs))

        draw.__name__ = draw.__qualname__ = original.__name__
        draw.__doc__ = original.__doc__
        return draw

    return make


# numpy


def _spell_numpy_state(value: Any) -> Json:
    inner = value["state"]
    packed = _spell_bytes(zlib.compress(inner["key"].astype("<u4").tobytes()))
    return [packed, int(inner["pos"]), int(value["has_gauss"]), float(value["gauss"])]


def _read_numpy_state(value: Json) -> Any:
    packed, pos, has_gauss, gauss = cast("list[Any]", value)
    numpy: Any = sys.modules["numpy"]
    key = numpy.frombuffer(zlib.decompress(_read_bytes(packed)), dtype="<u4").copy()
    return {
        "bit_generator": "MT19937",
        "state": {"key": key, "pos": pos},
        "has_gauss": has_gauss,
        "gauss": gauss,
    }


NUMPY = Source(name="numpy.random", spell=_spell_bytes, read=_read_bytes)
NUMPY_STATE = Source(name="numpy.random.get_state", spell=_spell_numpy_state, read=_read_numpy_state)
_SAME: Final = {"sample": "random_sample", "ranf": "random_sample"}
_STATE_OF: Final[dict[str, Callable[[Any], Any]]] = {
    "random": lambda stream: stream.getstate(),
    "numpy": lambda stream: stream.get_state(legacy=False),
}


def _install_numpy(patches: PatchSet, module: Any) -> None:
    def make(seed: bytes) -> Any:
        return module.RandomState(module.MT19937(module.SeedSequence(int.from_bytes(seed))))

    shared_one = module.mtrand._rand  # noqa: SLF001 - the one generator behind numpy's functions
    access = (lambda: shared_one.get_state(legacy=False), shared_one.set_state)
    numpy = Shared("numpy", NUMPY, NUMPY_STATE, make, access)
    replaced: dict[int, Callable[..., Any]] = {}
    special = {"seed": _seed(numpy), "set_state": _set_state(numpy), "get_state": _get_state(numpy)}
    for name, value in tuple(cast("dict[str, Any]", vars(module)).items()):
        bound = getattr(value, "__self__", None) is shared_one
        if name in special:
            wrapper = special[name]
        elif (bound and hasattr(module.RandomState, name)) or name in _SAME:
            wrapper = _throw(numpy, _SAME.get(name) or name)
        else:
            continue
        patches.replace(module, name, wrapper)
        replaced[id(value)] = getattr(module, name)
    tape.rebind(patches, replaced)
    _hand_out_streams(patches, module.mtrand, numpy)


def _hand_out_streams(patches: PatchSet, mtrand: Any, shared: Shared) -> None:
    """Give a stream to those who take the shared generator itself, as scikit-learn and SciPy do without a seed."""
    plain = cast("type[Any]", type(mtrand))

    class Streaming(plain):
        """A module whose shared generator is a stream, as long as nobody has chosen a seed."""

        @property
        def _rand(self) -> Any:
            stream = shared.stream(_getframe().f_back)
            return self.__dict__["_rand"] if stream is None else stream

        @_rand.setter
        def _rand(self, value: Any) -> None:
            self.__dict__["_rand"] = value

    def undo() -> None:
        if type(mtrand) is Streaming:
            mtrand.__class__ = plain

    mtrand.__class__ = Streaming
    patches.when_undone(undo)


INTEGRATION = Integration(
    name="chance",
    libraries=("os", "random", "secrets", "uuid", "numpy.random", "uuid_utils", "bcrypt"),
    install=_install,
)
