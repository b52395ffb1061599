from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.assess.check import check
from reenact.assess.language import parse, spell
from reenact.errors import AssertionInvalid
from reenact.values.assertion import Assertion, Placed, Price, Standing
from reenact.values.run import Run
from runs_asserted import BEGINNINGS, DAMAGED, INCIDENT
from strategies_assertion import MEMBERS


def test_every_member_of_the_union_has_a_law() -> None:
    assert set(MEMBERS) == set(get_args(Assertion))


@pytest.mark.sample(2)
@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.__name__)
@given(data=st.data())
def test_what_is_spelled_is_read_as_the_same(member: type, data: st.DataObject) -> None:
    assertion = data.draw(MEMBERS[member])
    line = spell(assertion)
    assert parse(line) == (Placed(assertion=assertion),)
    assert spell(parse(f"  {line}   # said\n")[0].assertion) == line


@pytest.mark.sample(4)
@pytest.mark.parametrize("run", [INCIDENT, DAMAGED], ids=["whole", "damaged"])
@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.__name__)
@given(data=st.data())
def test_any_assertion_is_held_against_a_run_and_stopping_it_never_turns_a_finding_round(
    member: type, run: Run, data: st.DataObject
) -> None:
    assertion: Any = data.draw(MEMBERS[member])
    whole, stopped = check(run, [assertion]), check(run, [assertion], complete=False)
    if isinstance(assertion, Price):
        assert whole == stopped == ()
        return
    (found,), (early,) = whole, stopped
    assert found.assertion == spell(assertion)
    assert found.because
    assert early.standing in {found.standing, Standing.UNDECIDED}
    assert {*found.nodes} <= {node.id for node in run.nodes}


@pytest.mark.sample(3)
@pytest.mark.parametrize("member", [each for each in MEMBERS if each is not Price], ids=lambda member: member.__name__)
@given(data=st.data())
def test_what_is_decided_of_a_run_s_beginning_stays_so_to_its_end(member: type, data: st.DataObject) -> None:
    assertion = data.draw(MEMBERS[member])
    whole = data.draw(st.sampled_from(BEGINNINGS))
    (found,) = check(whole[-1], [assertion], complete=data.draw(st.booleans()))
    for beginning in whole:
        (early,) = check(beginning, [assertion], complete=False)
        assert early.standing in {found.standing, Standing.UNDECIDED} or found.standing is Standing.UNDECIDED


@given(st.text(max_size=60))
def test_any_other_text_is_refused_by_its_place_or_read(text: str) -> None:
    try:
        read = parse(text, source="checks.txt")
    except AssertionInvalid as error:
        assert error.place.startswith("checks.txt:")  # noqa: PT017 - either is right
    else:
        assert all(each.place.startswith("checks.txt:") for each in read)
