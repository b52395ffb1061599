from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reenact.report.incident.conversation import Conversations
from reenact.report.incident.pool import Pool
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list
from reenact.values.message import Message, Text


def message(letter: str) -> Message:
    return Message(role="user", parts=(Text(letter),))


def rebuilt(placed: list[dict[str, Json]], call: int) -> list[Json]:
    """Follow what a call repeats, as the page's script does."""
    begins = as_list(placed[call].get("as"))
    before: list[Json] = []
    if begins:
        earlier, kept = as_count(begins[0]), as_count(begins[1])
        assert earlier is not None
        assert earlier < call
        before = rebuilt(placed, earlier)[:kept]
        assert len(before) == kept
    return [*before, *as_list(placed[call]["new"])]


@given(st.lists(st.text("abc", max_size=6), max_size=12))
def test_every_conversation_can_be_put_together_again(conversations: list[str]) -> None:
    pool = Pool()
    kept = Conversations(pool)
    placed = [kept.place(call, [message(letter) for letter in said]) for call, said in enumerate(conversations)]
    numbers = {letter: pool.message(message(letter)) for letter in "abc"}
    for call, said in enumerate(conversations):
        assert rebuilt(placed, call) == [numbers[letter] for letter in said]


def test_a_conversation_that_grows_is_kept_once() -> None:
    pool = Pool()
    kept = Conversations(pool)
    said = [message(str(number)) for number in range(200)]
    placed = [kept.place(call, said[: call + 1]) for call in range(200)]
    assert sum(len(as_list(each["new"])) for each in placed) == 200
    assert len(pool.messages) == 200
