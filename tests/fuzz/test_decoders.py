from __future__ import annotations

import functools
import itertools
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import decoders
from mutation import mutated

FAMILIES = [(wall, family) for wall in decoders.WALLS for family in decoders.families(wall)]
each_family = pytest.mark.parametrize(("wall", "family"), FAMILIES, ids=lambda each: each)


@functools.cache
def _few_spans() -> tuple[bytes, ...]:
    return tuple(itertools.islice(decoders._span_seeds(real=False), 60))


@functools.cache
def golden_seeds(wall: str, family: str) -> tuple[bytes, ...]:
    if wall != "formats":
        return _few_spans()
    found = [*decoders._golden_files(family), *decoders._written(family)]
    return tuple(data for data in found if 0 < len(data) <= decoders._LARGEST)


def edited(seeds: tuple[bytes, ...], wall: str, count: int) -> Iterator[bytes]:
    rng = random.Random(count)
    for _ in range(count if seeds else 0):
        data = rng.choice(seeds)
        try:
            yield decoders._spelled(mutated(decoders._loaded(data, wall), rng), wall)
        except decoders.NO_TREE:  # no single JSON document any more, or one deeper than json writes: bytes
            at = rng.randrange(len(data))
            yield data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(3) :]


@pytest.mark.sample(6)
@pytest.mark.sample(3)
@each_family
def test_no_decoder_raises_anything_of_its_own_on_edited_input(wall: str, family: str) -> None:
    run = decoders.target(wall, family)
    for data in edited(golden_seeds(wall, family), wall, 60):
        try:
            run(data)
        except BaseException as failure:
            failure.add_note(f"input: {data[:2000]!r}")
            raise


@pytest.mark.slow
@each_family
def test_no_decoder_raises_anything_of_its_own_on_edited_real_traces(wall: str, family: str, shared_data: Path) -> None:
    assert shared_data == decoders.REAL
    run = decoders.target(wall, family)
    for data in edited(tuple(decoders.seeds(wall, family)), wall, 800):
        try:
            run(data)
        except BaseException as failure:
            failure.add_note(f"input: {data[:2000]!r}")
            raise


def test_edits_are_json_and_leave_what_they_edit_alone() -> None:
    value = {"a": [1, {"b": "text"}], "c": None}
    before = json.dumps(value)
    made = {json.dumps(mutated(value, random.Random(seed))) for seed in range(300)}
    assert len(made) > 200
    assert json.dumps(value) == before
