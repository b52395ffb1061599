from __future__ import annotations

from collections.abc import Callable

import openai
import pytest

from matrix import cassettes
from matrix.exchange import Exchange
from matrix.whole import Share, Whole, census, each_exchange, each_share, in_turn, shares, wrong

pytestmark = pytest.mark.older

FOUND = cassettes.discovered()
RUN = [exchange for exchange in FOUND if not exchange.excluded]
SHARES = shares(RUN, one_in=12)


@pytest.fixture(scope="module")
def went(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Share], Whole]:
    return in_turn(tmp_path_factory.mktemp("stores"))


@each_exchange(SHARES)
def test_a_strangers_exchange_replays_as_it_was(
    went: Callable[[Share], Whole],
    share: Share,
    exchange: Exchange,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("counted", f"cassettes on openai {openai.__version__} ({share.way})")
    assert wrong(exchange, went(share)) == []


@pytest.mark.skipif(not FOUND, reason=cassettes.ABSENT)
@each_share(SHARES)
def test_every_call_of_a_recording_is_answered_once(went: Callable[[Share], Whole], share: Share) -> None:
    whole = went(share)
    assert whole.passed.is_whole(), (whole.passed.counts, whole.passed.unconsumed)
    assert len(whole.passed.calls) >= 3 * len(share.exchanges)


@pytest.mark.skipif(not FOUND, reason=cassettes.ABSENT)
def test_every_exchange_that_was_found_is_run_or_excluded_with_a_reason(
    record_property: Callable[[str, object], None],
) -> None:
    record_property("figure", f"cassettes on openai {openai.__version__}: {census(FOUND)}")
    assert {exchange.api for exchange in RUN} == {"chat", "responses", "embeddings"}
    assert any(exchange.streamed for exchange in RUN)
    assert any(exchange.status >= 400 for exchange in RUN)
    assert [exchange.name for exchange in FOUND if exchange.excluded and exchange.body.strip()] == []
