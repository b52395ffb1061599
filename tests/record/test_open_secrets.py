from __future__ import annotations

import base64
import json

import pytest

from reenact.record.open_secrets import Following


def event(**fields: object) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


@pytest.mark.parametrize(
    "said",
    [
        "The order was shipped on Tuesday ",
        "The order was",
        "See page 4",
        "version 2 of it.",
        "A sentence that ends in a tab\t",
    ],
)
def test_prose_never_waits(said: str) -> None:
    assert Following().settles(said.encode())
    assert Following().settles(event(id="chatcmpl-0123456789abcdef", model="gpt-5-mini-2026-08-07", content=said))


@pytest.mark.parametrize(
    "said",
    [
        "Use ghp_x7",
        "Use ghp_x7K2",
        "mail mara.k3f",
        "johannawagner",
        "card 4539 14",
        "card 4539 1488 ",
        "account DE44 5001 ",
        "call +49 1",
        "call +49 151 48",
        "eyJhbGciOi",
        "%67%68",
        "&#103;",
        "-----BEGIN PRIVATE KEY-----\nMC4C\n",
    ],
)
def test_what_may_be_half_a_secret_waits(said: str) -> None:
    assert not Following().settles(said.encode())
    assert not Following().settles(event(id="1", content=said))


def test_a_character_that_is_cut_waits_for_its_rest() -> None:
    following = Following()
    assert not following.settles("für".encode()[:2])
    assert following.settles("für".encode()[2:] + b" you ")


def test_what_waits_settles_when_it_is_seen_to_end() -> None:
    following = Following()
    assert not following.settles(event(delta="ghp_x7K2q"))
    assert not following.settles(event(delta="Pz9"))
    assert following.settles(event(delta=" is it."))


def test_two_answers_at_a_time_are_followed_each_by_itself() -> None:
    following = Following()
    assert not following.settles(event(index=0, content="ghp_x7K2q"))
    assert not following.settles(event(index=1, content="and so on "))
    assert following.settles(event(index=0, content=" that was it "))
    assert any(said == "and so on and so on " for said in _joined(following))


def _joined(following: Following) -> list[str]:
    following.settles(event(index=1, content="and so on "))
    return following.joined


def test_a_field_that_is_spoken_of_no_more_has_ended() -> None:
    following = Following()
    assert not following.settles(event(reasoning="ghp_x7K2q"))
    settled = [following.settles(event(content=f"word {word} ")) for word in ("a", "b", "c", "d")]
    assert settled == [False, False, False, True]


def test_what_every_event_repeats_is_no_stream() -> None:
    following = Following()
    first, second = (following.settles(event(provider="OpenAI-compatible", content="word ")) for _ in range(2))
    assert (first, second) == (False, True)


def test_an_event_may_come_in_pieces() -> None:
    following = Following()
    whole = event(content="Use ghp_x7K2qPz9 for it ")
    assert not following.settles(whole[:30])
    assert following.settles(whole[30:])


def test_lines_of_base64_wait_wherever_they_are_cut_and_settle_behind_the_last() -> None:
    told = base64.encodebytes(b"the key of it is ghp_x7K2q and so on, again and again. " * 5)
    assert told.count(b"\n") > 3
    last = told.rindex(b"\n", 0, -1)
    for cut in range(77, last + 2):
        assert not Following().settles(b"see: \n" + told[:cut]), cut
    assert Following().settles(b"see: \n" + told + b"and so on ")
