"""What may differ between two runs by nature, and what may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reenact.compare.volatile import Side, Volatile

BEGAN = 1_795_646_200_000_000_000  # 2026-11-25 22:36:40 UTC
SPAN = (BEGAN, BEGAN + 600_000_000_000)
A = Side(began_ns=SPAN[0], ended_ns=SPAN[1], processes=frozenset({20277}), threads=frozenset({139641235688320}))
B = Side(began_ns=SPAN[0], ended_ns=SPAN[1], processes=frozenset({2}), threads=frozenset({140273435995008}))
JSON = '{"process": {"id": %d}, "thread": {"id": %d, "name": "MainThread"}}'
POOL = "%(asctime)s [%(threadName)s] %(message)s"


def passed(one: str, other: str, log: str | None = None) -> dict[str, int] | None:
    found = Volatile(A, B).alike(one, other, log=log)
    return None if found is None else dict(found)


@pytest.mark.parametrize(
    ("one", "other", "log", "kinds"),
    [
        pytest.param(
            JSON % (20277, 139641235688320),
            JSON % (2, 140273435995008),
            None,
            {"process ids": 1, "thread ids": 1},
            id="a thread's id in a JSON log",
        ),
        pytest.param(
            "on ThreadPoolExecutor-0_1", "on ThreadPoolExecutor-0_0", None, {"threads of a pool": 1}, id="pool"
        ),
        pytest.param(
            "2026-11-25 22:37:53,103 [fetch_1] done",
            "2026-11-25 22:38:21,243 [fetch_0] done",
            POOL,
            {"threads of a pool": 1, "times": 1},
            id="a pool of a name of its own in a log",
        ),
        pytest.param(
            "2026-11-25 22:37:53,103,103 done",
            "2026-11-25 22:38:21,243,243 done",
            "%(asctime)s,%(msecs)03d %(message)s",
            {"times": 2},
            id="milliseconds behind a time that has them",
        ),
        pytest.param(
            "Message-ID: <179564620206.20277.122@host> in new/1795646202.M12P20277Q1.host of 1.2.3",
            "Message-ID: <179564620206.2.122@host> in new/1795646202.M12P2Q1.host of 1.2.3",
            None,
            {"process ids": 2},
            id="a process id in the id of a message and in its name in a Maildir",
        ),
        pytest.param(
            "                    INFO     said it",
            "[11/25/26 22:38:21] INFO     said it",
            None,
            {"times": 1},
            id="a time that rich leaves out",
        ),
    ],
)
def test_two_runs_differ_in_it(one: str, other: str, log: str | None, kinds: dict[str, int]) -> None:
    assert passed(one, other, log) == kinds


@pytest.mark.parametrize(
    ("one", "other", "log"),
    [
        pytest.param("thread 139641235688321", "thread 140273435995008", None, id="no thread of the run"),
        pytest.param("by ThreadPoolExecutor-0_1", "by ThreadPoolExecutor-1_1", None, id="another pool"),
        pytest.param("release 1.20277.0", "release 1.3.0", None, id="a version"),
        pytest.param("on stage_1", "on stage_2", None, id="a name outside of logging's field"),
        pytest.param("[11/25/26 22:37:53] INFO a", "[11/24/26 22:37:53] INFO a", None, id="another day in rich's log"),
        pytest.param("                    INFO a", "[11/24/26 22:37:53] INFO a", None, id="another day than none"),
        pytest.param("                    INFO a", "[11/25/26 22:37:53] WARNING a", None, id="another level"),
        pytest.param("I1125 22:37:53.1 7 a.py:1] a", "I1127 22:37:53.1 7 a.py:1] a", None, id="absl's, another day"),
        pytest.param(
            "I1125 22:37:53.1 7 a.py:1] a", "W1125 22:37:53.1 7 a.py:1] a", None, id="another level of absl's"
        ),
        pytest.param("[fetch_1] 3 done", "[fetch_0] 4 done", "[%(threadName)s] %(message)s", id="what it says"),
    ],
)
def test_two_runs_do_not_differ_in_it(one: str, other: str, log: str | None) -> None:
    assert passed(one, other, log) is None


@pytest.mark.always
@pytest.mark.parametrize(
    ("one", "other", "kinds", "log"),
    [
        *(
            pytest.param(one, other, {"times": 1}, f"%(asctime:{dates})s %(levelname)s %(message)s", id=dates)
            for dates, one, other in (
                ("%m/%d/%Y %I:%M:%S %p", "11/25/2026 10:37:53 PM INFO 11", "11/26/2026 10:38:21 PM INFO 11"),
                ("%m-%d %H:%M", "11-25 22:37 INFO 11", "11-26 22:38 INFO 11"),
                ("%d-%b-%y %H:%M:%S", "25-Nov-26 22:37:53 INFO 11", "26-Nov-26 22:38:21 INFO 11"),
                ("%b %d %H:%M:%S", "Nov 25 22:37:53 INFO 11", "Nov 26 22:38:21 INFO 11"),
                ("%d.%m.", "25.11. INFO 11", "26.11. INFO 11"),
                ("%A", "Wednesday INFO 11", "Thursday INFO 11"),
                ("%c", "Wed Nov 25 22:37:53 2026 INFO 11", "Thu Nov 26 22:38:21 2026 INFO 11"),
            )
        ),
        pytest.param(
            "[11/25/26 22:37:53] INFO  said it", "[11/26/26 22:38:21] INFO  said it", {"times": 1}, None, id="rich's"
        ),
        pytest.param(
            "[I 261125 22:37:53 web:2348] GET /q",
            "[I 261126 22:38:21 web:2348] GET /q",
            {"times": 1},
            None,
            id="tornado's",
        ),
        pytest.param(
            "I1125 22:37:53.120000 139641235688320 agent.py:12] said it",
            "I1126 22:38:21.310000 140273435995008 agent.py:12] said it",
            {"times": 2, "thread ids": 1},
            None,
            id="absl's",
        ),
    ],
)
def test_a_log_of_another_day_is_the_same(one: str, other: str, kinds: dict[str, int], log: str | None) -> None:
    day = 86_400_000_000_000
    tomorrow = replace(B, began_ns=B.began_ns + day, ended_ns=B.ended_ns + day)
    assert Volatile(A, tomorrow).alike(one, other, log=log) == kinds
    assert Volatile(A, tomorrow).alike(one, f"{other}2", log=log) is None
    assert Volatile(A, B).alike(one, other, log=log) is None


FIRST, SECOND, THIRD = (f"{number}8f0c862-ed23-49ee-bb1b-841840fb1283" for number in (1, 2, 3))


def test_a_uuid_of_the_recording_in_the_place_of_another_is_a_difference() -> None:
    recorded, swapped = f"order {FIRST} of {SECOND}", f"order {SECOND} of {FIRST}"
    known = Volatile(A, B, drawn=frozenset({FIRST, SECOND}))
    assert known.alike(recorded, swapped) is None
    assert known.alike(recorded, f"order {FIRST} of {THIRD}") == {"uuids": 1}
    assert Volatile(A, B).alike(recorded, swapped) == {"uuids": 2}


def test_a_temporary_name_of_the_recording_in_the_place_of_another_is_a_difference() -> None:
    one, two = (replace(side, temporary=frozenset({"tmpone11", "tmptwo22"})) for side in (A, B))
    sides = Volatile(one, replace(two, temporary=two.temporary | {"tmpnew33"}))
    assert sides.alike("wrote /tmp/tmpone11/a", "wrote /tmp/tmptwo22/a") is None
    assert sides.alike("wrote /tmp/tmpone11/a", "wrote /tmp/tmpnew33/a") == {"temporary names": 1}
