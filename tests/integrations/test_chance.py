# ruff: noqa: NPY002, PLW0108 - the old ways are what is tested, and are looked up when they are called
from __future__ import annotations

import copy
import json
import os
import random
import secrets
import statistics
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import numpy as np
import pytest

import reenact
from held import Held
from reenact.boundary import tape
from reenact.integrations import chance

pytestmark = pytest.mark.usefixtures("_states")
ORIGINALS = (os.urandom, random.random, uuid.uuid4)


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def _states() -> Iterator[None]:
    state, other = random.getstate(), np.random.get_state()
    yield
    random.setstate(state)
    np.random.set_state(other)


@reenact.tool
def told(what: str) -> str:
    return what


def shuffled() -> list[int]:
    cards = list(range(20))
    random.shuffle(cards)
    return cards


DRAWS: dict[str, Callable[[], Any]] = {
    "os.urandom": lambda: os.urandom(12),
    "secrets.token_hex": secrets.token_hex,
    "secrets.token_urlsafe": lambda: secrets.token_urlsafe(9),
    "secrets.token_bytes": lambda: secrets.token_bytes(5),
    "secrets.randbelow": lambda: secrets.randbelow(10**40),
    "secrets.choice": lambda: secrets.choice(range(10**9)),
    "SystemRandom": lambda: (SystemRandom().random(), SystemRandom().sample(range(10**6), 3)),
    "uuid1": lambda: uuid.uuid1(),
    "uuid4": lambda: uuid.uuid4(),
    "random.random": lambda: random.random(),
    "random.randint": lambda: random.randint(1, 10**9),
    "random.choice": lambda: random.choice(range(10**9)),
    "random.choices": lambda: random.choices(range(10**9), k=3),
    "random.gauss": lambda: [random.gauss(0, 1) for _ in range(3)],
    "random.shuffle": shuffled,
    "random.sample": lambda: random.sample(range(10**6), 4),
    "random.randbytes": lambda: random.randbytes(8),
    "random's shared generator itself": lambda: [random._inst.random(), random._inst.choice(range(10**9))],
    "Random()": lambda: Random().random(),
    "random.seed()": lambda: (random.seed(), random.random()),
    "numpy.random.rand": lambda: np.random.rand(2).tolist(),
    "numpy.random.randint": lambda: int(np.random.randint(10**9)),
    "numpy.random.sample": lambda: float(np.random.sample()),
    "numpy.random.permutation": lambda: np.random.permutation(9).tolist(),
    "numpy's shared generator itself": lambda: np.random.mtrand._rand.randint(10**9),
    "default_rng": lambda: np.random.default_rng().random(2).tolist(),
    "RandomState()": lambda: np.random.RandomState().rand(),
    "SeedSequence()": lambda: np.random.SeedSequence().entropy,
}


def told_of(draw: Callable[[], Any]) -> list[str]:
    return [told(repr(draw())), told(repr([draw(), draw()]))]


@pytest.fixture(params=["before the first line", "in the middle"])
def begins(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How a recording begins: where nobody can have chosen a seed, or in a program that may have."""
    return {"generators": {}} if request.param == "before the first line" else {}


SETS = [
    pytest.param(tuple(DRAWS), id="all in one run"),
    *(pytest.param((n,), id=n, marks=pytest.mark.slow) for n in DRAWS),
]


@pytest.mark.parametrize("names", SETS)
def test_what_was_thrown_comes_again(held: Held, names: tuple[str, ...], begins: dict[str, Any]) -> None:
    def work() -> dict[str, list[str]]:
        return {name: told_of(DRAWS[name]) for name in names}

    did = held.record(work, **begins)
    assert [name for name, (first, second) in did.value.items() if first in second] == [], "thrown anew each time"
    again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert (again.result.result, again.result.volatile) == ("same", [])


@pytest.mark.parametrize(
    "name", [next(iter(DRAWS)), *(pytest.param(n, marks=pytest.mark.slow) for n in list(DRAWS)[1:])]
)
def test_without_the_tape_it_does_not_come_again(held: Held, name: str) -> None:
    did = held.record(lambda: told_of(DRAWS[name]), {"REENACT_TAPE": "off"})
    again = held.replay(did, lambda: told_of(DRAWS[name]))
    assert again.result is not None
    assert again.result.result == "diverged"


def test_everything_is_given_back_at_the_end(held: Held) -> None:
    before = dict(vars(random)), dict(vars(np.random)), Random.seed, uuid.uuid1, secrets.token_bytes
    made = held.start()
    assert random.random is not ORIGINALS[1]
    held.finish(made)
    assert (dict(vars(random)), dict(vars(np.random)), Random.seed, uuid.uuid1, secrets.token_bytes) == before
    assert (os.urandom, random.random, uuid.uuid4) == ORIGINALS
    assert not tape.is_on()


def at_hand(generator: Random) -> list[float]:
    random.seed(42)
    state = generator.getstate()
    values = [generator.random(), random.random()]
    random.setstate(state)
    return [*values, generator.random(), generator.gauss(0, 1)]


SEEDED: dict[str, Callable[[], Any]] = {
    "random": lambda: (random.seed(42), random.random(), random.randint(1, 100), shuffled()),
    "random by state": lambda: (random.setstate(Random(7).getstate()), random.random()),
    "random, by its shared generator": lambda: (random.seed(42), random._inst.random(), random.random()),
    "random, whose shared generator is seeded": lambda: (random._inst.seed(42), random.random(), random._inst.random()),
    "random, by a shared generator at hand": lambda: at_hand(random._inst),
    "random, by a copy of its shared generator": lambda: (random.seed(42), copy.copy(random._inst).random()),
    "Random": lambda: Random(42).random(),
    "numpy": lambda: (np.random.seed(42), np.random.rand(2).tolist()),
    "numpy by state": lambda: (np.random.set_state(np.random.RandomState(7).get_state()), np.random.rand()),
    "default_rng": lambda: np.random.default_rng(42).random(),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_gives_the_sequence_that_it_gives_without_us(held: Held, name: str, begins: dict[str, Any]) -> None:
    wanted = SEEDED[name]()
    did = held.record(lambda: (told(repr(SEEDED[name]())), SEEDED[name]())[1], **begins)
    assert did.value == wanted


def test_a_seed_chosen_before_the_recording_holds(held: Held) -> None:
    def work() -> list[str]:
        return [told(str(random.random())) for _ in range(4)]

    random.seed(11)
    wanted = [str(random.random()) for _ in range(4)]
    random.seed(11)
    did = held.record(work)
    assert did.value == wanted
    random.seed(12)
    assert held.replay(did, work).value == wanted


def test_a_state_that_was_asked_for_leads_to_the_same_throws(held: Held, begins: dict[str, Any]) -> None:
    def twice() -> tuple[list[float], list[float]]:
        state = random.getstate()
        one = [random.random() for _ in range(3)]
        random.setstate(state)
        return one, [random.random() for _ in range(3)]

    def work() -> str:
        one, two = twice()
        assert one == two
        return told(str(one))

    did = held.record(work, **begins)
    assert did.error is None
    assert held.replay(did, work).value == did.value


@pytest.mark.slow
def test_a_hundred_thousand_throws_are_one_draw(held: Held) -> None:
    def work() -> str:
        return told(str(sum(random.random() for _ in range(100_000))))

    did = held.record(work, generators={})
    assert held.replay(did, work).value == did.value
    assert sum(len(str(node.span.attributes.get("reenact.draws", ""))) for node in did.runs[0].nodes) < 300


def test_streams_are_as_good_as_one_generator(held: Held) -> None:
    def work() -> list[float]:
        return [(random.random, random.uniform)[n % 2](*((), (0, 1))[n % 2]) for n in range(20_000)]

    thrown = held.record(lambda: (told(""), work())[1], generators={}).value
    assert len(set(thrown)) == 20_000
    assert abs(statistics.fmean(thrown) - 0.5) < 0.01
    assert abs(statistics.pvariance(thrown) - 1 / 12) < 0.005


def test_two_calls_of_one_function_do_not_throw_the_same(held: Held) -> None:
    @reenact.tool
    def roll() -> int:
        return random.randrange(10**12)

    values = held.record(lambda: [roll() for _ in range(5)], generators={}).value
    assert len(set(values)) == 5


def test_bytes_and_uuids_that_a_library_draws_and_nobody_sees_are_its_own(held: Held) -> None:
    library: dict[str, Any] = {"__name__": "library", "__file__": os.__file__}
    exec("import os, uuid, random\ndef draw(): return os.urandom(4), uuid.uuid4(), random.random()", library)
    seen: list[Any] = []
    did = held.record(lambda: (told(""), seen.append(library["draw"]()), told("again")), generators={})
    (drawn,) = [
        node.span.attributes["reenact.draws"] for node in did.runs[0].nodes if "reenact.draws" in node.span.attributes
    ]
    assert [site for _, ((site, _),) in json.loads(str(drawn))] == ["library:draw random"]
    held.replay(did, lambda: (told(""), seen.append(library["draw"]()), told("again")))
    assert [one == other for one, other in zip(*seen, strict=True)] == [False, False, True]


def test_what_a_library_drew_for_one_call_comes_again_with_what_is_seen_of_it(held: Held) -> None:
    tokens: dict[str, Any] = {"__name__": "library.tokens", "__file__": os.__file__}
    exec("import random\ndef token(): return ''.join(random.SystemRandom().choice('abc') for _ in range(9))", tokens)
    signing: dict[str, Any] = {"__name__": "library.signing", "__file__": os.__file__, "token": tokens["token"]}
    exec("import uuid\ndef sign(): return f'{uuid.uuid4()} {token()}'", signing)
    seen: list[str] = []

    def work() -> None:
        told(signed := signing["sign"]())
        seen.append(signed)
        seen.append(tokens["token"]())

    did = held.record(work, generators={})
    assert held.replay(did, work).error is None
    assert seen[0] == seen[2]
    assert seen[1] != seen[3], "it was made by another call, and is nowhere to be seen"


def test_bytes_of_another_length_are_not_answered(held: Held) -> None:
    did = held.record(lambda: (told(""), len(os.urandom(8)), told("x")))
    again = held.replay(did, lambda: (told(""), len(os.urandom(16)), told("x")))
    assert again.value == ("", 16, "x")
    assert again.result is not None
    assert [entry["site"] for entry in again.result.volatile] == [
        f"{__name__}:test_bytes_of_another_length_are_not_answered.<locals>.<lambda> os.urandom(16)"
    ]


def test_the_shared_generator_is_one_of_its_class_and_outlives_the_recording(held: Held) -> None:
    made = held.start()
    generator = random._inst
    assert isinstance(generator, Random)
    assert generator is random._inst
    held.finish(made)
    assert random._inst is not generator
    random.seed(3)
    drawn = generator.random()
    random.seed(3)
    assert random.random() == drawn


def test_every_function_of_random_is_cut() -> None:
    bound = {name for name, value in vars(random).items() if getattr(value, "__self__", None) is random._inst}
    assert bound - {"seed", "getstate", "setstate"} <= {*chance._THROWS}
