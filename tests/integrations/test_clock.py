# ruff: noqa: DTZ002, DTZ003, DTZ005, DTZ011, PLW0108 - every way to read the clock, looked up when it is called
from __future__ import annotations

import copy
import datetime as dt
import inspect
import math
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, Field

import reenact
from held import Held
from reenact.boundary import tape
from reenact.graph.verdict import judge

NAMES = {"now": datetime, "utcnow": datetime, "today": date}
ORIGINALS = {name: vars(cls)[name] for name, cls in NAMES.items()}
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def told(what: str) -> str:
    return what


class Moment(datetime):
    """An agent's own kind of datetime."""


@dataclass
class Note:
    at: datetime = field(default_factory=lambda: datetime.now())


class Entry(BaseModel):
    at: datetime = Field(default_factory=lambda: datetime.now(UTC))


READS: dict[str, Callable[[], Any]] = {
    "datetime.now()": lambda: datetime.now(),
    "datetime.now(UTC)": lambda: datetime.now(UTC),
    "datetime.now(zone)": lambda: datetime.now(BERLIN),
    "datetime.now(tz=offset)": lambda: datetime.now(tz=timezone(timedelta(hours=-3))),
    "datetime.utcnow()": lambda: datetime.utcnow(),
    "datetime.today()": lambda: datetime.today(),
    "subclass.now()": lambda: Moment.now(),
    "subclass.now(zone)": lambda: Moment.now(BERLIN),
    "subclass.utcnow()": lambda: Moment.utcnow(),
    "subclass.today()": lambda: Moment.today(),
    "through the module": lambda: dt.datetime.now(),
    "default_factory": lambda: Note(),
    "pydantic": lambda: Entry(),
    "time.time()": lambda: time.time(),
    "time.time_ns()": lambda: time.time_ns(),
    "time.clock_gettime(wall)": lambda: time.clock_gettime(time.CLOCK_REALTIME),
    "time.clock_gettime(elapsed)": lambda: time.clock_gettime(time.CLOCK_MONOTONIC),
    "time.clock_gettime_ns(wall)": lambda: time.clock_gettime_ns(time.CLOCK_REALTIME),
    "time.clock_gettime_ns(processor)": lambda: time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID),
}
COARSE: dict[str, Callable[[], Any]] = {
    "date.today()": lambda: date.today(),
    "time.localtime()": lambda: time.localtime(),
    "time.localtime(None)": lambda: time.localtime(None),
    "time.gmtime()": lambda: time.gmtime(),
    "time.strftime(f)": lambda: time.strftime("%c %Z"),
    "time.ctime()": lambda: time.ctime(),
    "time.asctime()": lambda: time.asctime(),
}


def told_of(read: Callable[[], Any]) -> list[str]:
    return [told(repr(read())), told(repr([read(), read()]))]


SETS = [
    pytest.param(tuple(READS), id="all in one run"),
    *(pytest.param((n,), id=n, marks=pytest.mark.slow) for n in READS),
]


@pytest.mark.parametrize("names", SETS)
def test_what_the_clock_said_is_said_again(held: Held, names: tuple[str, ...]) -> None:
    def work() -> dict[str, list[str]]:
        return {name: told_of(READS[name]) for name in names}

    did = held.record(work)
    time.sleep(0.001)
    again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert (again.result.result, again.result.volatile) == ("same", [])


@pytest.mark.parametrize(
    "name", [next(iter(READS)), *(pytest.param(n, marks=pytest.mark.slow) for n in list(READS)[1:])]
)
def test_without_the_tape_the_clock_has_moved_on(held: Held, name: str) -> None:
    did = held.record(lambda: told_of(READS[name]), {"REENACT_TAPE": "off"})
    time.sleep(0.001)
    again = held.replay(did, lambda: told_of(READS[name]))
    assert again.result is not None
    assert again.result.result == "diverged"


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", COARSE)
def test_seconds_and_days_are_on_the_tape_too(held: Held, name: str) -> None:
    did = held.record(lambda: told_of(COARSE[name]))
    ends = did.call("told") if len(did.calls) == 1 else did.calls[0]
    assert name.partition("(")[0] in str(ends.span.attributes["reenact.draws"])
    again = held.replay(did, lambda: told_of(COARSE[name]))
    assert again.value == did.value
    assert again.result is not None
    assert (again.result.result, again.result.volatile) == ("same", [])


def test_datetime_stays_the_class_that_it_is(held: Held) -> None:
    def look() -> None:
        from datetime import datetime as taken_later

        now = datetime.now()
        assert type(now) is datetime is taken_later is dt.datetime
        assert isinstance(now, date)
        assert type(Moment.now(BERLIN)) is Moment
        assert type(Moment.today()) is Moment
        assert type(date.today()) is date
        assert pickle.loads(pickle.dumps(datetime)) is datetime
        assert pickle.loads(pickle.dumps(now)) == copy.deepcopy(now) == now
        assert pickle.loads(pickle.dumps(datetime.now))(UTC).tzinfo is UTC
        assert list(inspect.signature(datetime.now).parameters) == ["tz"]
        assert isinstance(Entry().at, datetime)
        assert Entry.model_validate_json(Entry().model_dump_json()).at.tzinfo is not None
        before = math.floor(time.time())
        assert before <= datetime.now(BERLIN).timestamp() <= math.ceil(time.time())
        with pytest.raises(TypeError):
            datetime.now("Europe/Berlin")  # type: ignore[arg-type]
        told("done")

    did = held.record(look)
    assert did.error is None
    again = held.replay(did, look)
    assert again.error is None
    assert again.result is not None
    assert again.result.result == "same"


def test_the_classes_and_the_module_are_given_back(held: Held) -> None:
    before = dict(vars(time))
    made = held.start()
    assert all(vars(cls)[name] is not ORIGINALS[name] for name, cls in NAMES.items())
    assert time.time is not before["time"]
    held.finish(made)
    assert {name: vars(cls)[name] for name, cls in NAMES.items()} == ORIGINALS
    assert dict(vars(time)) == before
    assert datetime.now.__self__ is datetime


def test_a_name_taken_before_the_recording_is_taken_again(held: Held) -> None:
    module: dict[str, Any] = {}
    agent = type(sys)("an_agent_module")
    agent.__file__ = str(Path(__file__).with_name("an_agent_module.py"))
    exec("from time import time\ndef ask(): return time()", vars(agent))
    original = vars(agent)["time"]
    sys.modules["an_agent_module"] = agent
    try:
        did = held.record(lambda: told(str(vars(agent)["ask"]())))
        assert held.replay(did, lambda: told(str(vars(agent)["ask"]()))).value == did.value
    finally:
        del sys.modules["an_agent_module"]
    assert vars(agent)["time"] is original, module


def test_the_clock_of_libraries_is_that_of_the_recording(held: Held) -> None:
    library: dict[str, Any] = {"__name__": "library", "__file__": inspect.__file__}
    exec(compile("import time\ndef read(): return time.time()", inspect.__file__, "exec"), library)
    did = held.record(lambda: (told(""), library["read"](), told("x")))
    seen: list[float] = []
    again = held.replay(did, lambda: (told(""), seen.append(library["read"]()), told("x")))
    assert seen == [did.value[1]]
    assert again.result is not None
    assert again.result.volatile == []


def test_arguments_are_not_the_clock(held: Held) -> None:
    def read() -> tuple[object, ...]:
        return (
            time.localtime(0),
            time.gmtime(0),
            time.ctime(0),
            time.strftime("%Y", time.gmtime(0)),
            time.asctime((1,) * 9),
        )

    wanted = read()
    assert held.record(lambda: (told(""), read())[1]).value == wanted
    did = held.record(lambda: time.localtime(1, 2))  # type: ignore[call-arg]
    assert isinstance(did.error, TypeError)


def test_a_call_that_goes_live_sees_the_real_clock(held: Held) -> None:
    seen: list[float] = []

    @reenact.tool
    def live() -> str:
        seen.append(time.time())
        return ""

    did = held.record(lambda: (live(), told(str(time.time()))))
    held.replay(did, lambda: (live(), told(str(time.time()))), tools="live")
    assert seen[1] > seen[0]


def test_what_is_not_recorded_runs_on_from_what_is(held: Held) -> None:
    def work(*, more: bool) -> tuple[float, float]:
        first = time.time()
        told("")
        return first, other() if more else 0.0

    def other() -> float:
        return datetime.now().timestamp()

    did = held.record(lambda: work(more=False))
    time.sleep(5)  # longer than a busy machine takes from one line to the next
    begun = time.time()
    again = held.replay(did, lambda: work(more=True))
    first, second = again.value
    assert first == did.value[0]
    assert first <= second < begun
    assert again.result is not None
    assert again.result.result == "same"
    assert [each["site"] for each in again.result.volatile] == [f"{__name__}:{other.__qualname__} datetime.now"]


def test_a_loop_past_the_end_of_the_tape_is_told(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "MOST", 5)

    def work(times: int) -> str:
        told("")
        for _ in range(times):
            last = time.time()
        return told(str(last))

    kept, beyond = held.record(lambda: work(5)), held.record(lambda: work(9))
    assert judge(kept.runs[0]).reasons == ()
    (reason,) = judge(beyond.runs[0]).reasons
    assert reason.lost.startswith("4 draws")
    assert held.replay(kept, lambda: work(5)).value == kept.value
    again = held.replay(beyond, lambda: work(9))
    assert again.result is not None
    assert again.result.result == "diverged"
    assert again.result.volatile
