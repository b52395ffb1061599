from __future__ import annotations

import pytest

from receivers import Receiver, http_receiver, span
from reenact.export.credential_removal import hushed, secrets_of
from reenact.export.otlp_http import HttpTarget, OtlpHttpSender
from reenact.export.outcome import Delivered, Rejected, Retry

KEY = "Zk39vBq71LmT"


@pytest.mark.parametrize("status", [400, 401, 429, 503, 200])
def test_a_backend_that_repeats_the_credentials_is_not_quoted_with_them(status: int) -> None:
    def repeats(state: Receiver, _: object) -> tuple[int, dict[str, str], bytes]:
        said = f"no account for {KEY}, sent as {state.headers[-1].get('authorization')}".encode()
        return status, {"Content-Type": "text/plain"}, said

    with http_receiver() as receiver:
        receiver.behave = repeats
        url = receiver.url.replace("://", f"://user:{KEY}@") if status == 400 else receiver.url
        headers = (("authorization", f"Bearer {KEY}"),) if status != 400 else ()
        outcome = OtlpHttpSender(HttpTarget(url=url, headers=headers)).send([span(1)])
    assert isinstance(outcome, Rejected | Retry)
    assert KEY not in outcome.reason
    assert "no account for [credentials]" in outcome.reason


def test_a_quotation_that_is_cut_in_the_middle_of_them() -> None:
    outcome = hushed(Rejected(count=1, reason=f"you sent Bearer {KEY[:8]}…"), secrets_of([("x", f"Bearer {KEY}")]))
    assert outcome == Rejected(count=1, reason="you sent [credentials]…")


def test_what_repeats_nothing_stays_as_it_is() -> None:
    outcome = Delivered(count=1, note="slow down")
    assert hushed(outcome, secrets_of([("x", "abc"), ("y", KEY)])) is outcome
