from __future__ import annotations

from collections.abc import Callable

import openai
import pytest

from matrix import cassettes
from matrix.exchange import Exchange
from matrix.whole import FIRST, Way, Whole, census, every, wrong

pytestmark = pytest.mark.older

FOUND = cassettes.discovered()
RUN = [exchange for exchange in FOUND if not exchange.excluded]
ABSENT = pytest.param(None, marks=pytest.mark.skip(reason=cassettes.ABSENT), id="absent")


@pytest.fixture(scope="module", params=FIRST, ids=str)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    way: Way = request.param
    return every(RUN, way, tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("exchange", RUN or [ABSENT], ids=lambda exchange: exchange.name)
def test_a_strangers_exchange_replays_as_it_was(
    whole: Whole, exchange: Exchange, record_property: Callable[[str, object], None]
) -> None:
    record_property("counted", f"cassettes on openai {openai.__version__} ({whole.way})")
    assert wrong(exchange, whole) == []


@pytest.mark.skipif(not FOUND, reason=cassettes.ABSENT)
def test_every_call_of_a_recording_is_answered_once(whole: Whole) -> None:
    assert whole.passed.is_whole(), (whole.passed.counts, whole.passed.unconsumed)
    assert len(whole.passed.calls) >= 3 * len(RUN)


@pytest.mark.skipif(not FOUND, reason=cassettes.ABSENT)
def test_every_exchange_that_was_found_is_run_or_excluded_with_a_reason(
    record_property: Callable[[str, object], None],
) -> None:
    record_property("figure", f"cassettes on openai {openai.__version__}: {census(FOUND)}")
    assert {exchange.api for exchange in RUN} == {"chat", "responses", "embeddings"}
    assert any(exchange.streamed for exchange in RUN)
    assert any(exchange.status >= 400 for exchange in RUN)
    assert [exchange.name for exchange in FOUND if exchange.excluded and exchange.body.strip()] == []
