"""What sets a connection up is owed once, however many connections there were; a ping is never owed."""

from __future__ import annotations

import pytest

from made import Made
from reenact.compare.unasked_calls import Recorded
from reenact.values.call import Returned, Value
from reenact.values.query import PING, SET_UP, Query


def asked(made: Made, operation: str, text: str) -> str:
    call = Query(system="postgresql", operation=operation, text=text).call()
    return made.add(call.kind, call.name, call.request, Returned(payload=Value(json={"results": []})))


@pytest.mark.always
def test_one_of_several_connections_is_set_up_again_at_least() -> None:
    made = Made()
    zones = [asked(made, SET_UP, "SET timezone = 'UTC'") for _ in range(2)]
    path, ping = asked(made, SET_UP, "SET search_path = shop"), asked(made, PING, "SELECT 1")
    recorded = Recorded([made.run()])
    owed = [node.id for node in recorded.answerable()]
    assert owed == [*zones, path]
    assert ping not in owed
    assert recorded.set_ups_like([zones[1]]) == {*zones}
    assert recorded.set_ups_like([]) == set()
