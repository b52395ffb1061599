"""Recorded calls found again although their redacted values are keyed otherwise here: one to one, or not at all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from made import Made
from reenact.errors import Miss
from reenact.replay.ledger import Ledger
from reenact.replay.policy import Policy
from reenact.replay.replayer import Replayer
from reenact.replay.stubs import Stubs
from reenact.values.call import Call, CallKind, FunctionCall, Returned, Value
from reenact.values.json import Json
from reenact.values.run import Run
from scripted import _Recorder  # pyright: ignore[reportPrivateUsage]

_MAIL = re.compile(r"(?i:redacted_e_mail_[0-9a-f]{20}@redacted\.invalid)|[a-z.]+@[a-z]+\.com")
_KEYS = {"a": "key-of-a", "b": "key-of-b"}


@dataclass
class Keyed:
    """Redacts addresses alone, by the key of a machine."""

    machine: str
    policy_digest: str = "p1"
    salt: str = "00"

    @property
    def key_id(self) -> str:
        return _KEYS[self.machine]

    def group(self, name: str) -> str:
        return "personal" if name in {"e_mail", "value"} else "credentials"

    def text(self, text: str) -> str:
        return _MAIL.sub(lambda found: found[0] if "REDACTED" in found[0] else self.token(found[0]), text)

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.text(value) if isinstance(value, str) else value for name, value in attributes.items()}

    def token(self, value: str) -> str:
        digits = hashlib.blake2b(value.encode(), key=self.machine.encode(), digest_size=10).hexdigest()
        return f"REDACTED_e_mail_{digits}@redacted.invalid"


RECORDED = Keyed("a")
BOB, EVE = RECORDED.token("bob@x.com"), RECORDED.token("eve@x.com")


class Again:
    """A replay on another machine than the one that recorded."""

    def __init__(self, made: Made, redactor: Keyed | None = None) -> None:
        self.run: Run = replace(made.run(), key_id=RECORDED.key_id, policy_digest="p1", salt="00")
        self.ledger = Ledger()
        self.stubs = Stubs([self.run])
        told = (self.stubs, _Recorder(Made(9)), redactor or Keyed("b"), self.ledger, Policy())
        self.replayer = Replayer(*told)  # type: ignore[arg-type]

    def ask(self, name: str, arguments: Json, kind: CallKind = CallKind.TOOL) -> Json:
        """Ask for a tool's result."""
        request = FunctionCall(function=f"agent:{name}", arguments=arguments)
        answer = self.replayer.open(Call(kind=kind, name=name, request=request)).answer
        assert isinstance(answer, Returned)
        assert isinstance(answer.payload, Value)
        return answer.payload.json

    def told(self, what: str) -> list[dict[str, Any]]:
        return [entry for entry in self.ledger.entries if entry["t"] == what]


def test_a_value_that_the_program_holds_itself_is_matched_by_renaming_and_told() -> None:
    made = Made(1)
    made.tool("lookup", {"mail": BOB}, {"id": 7})
    again = Again(made)
    assert again.ask("lookup", {"mail": "bob@x.com"}) == {"id": 7}
    (told,) = again.told("ignored")
    assert (told["field"], told["recorded"], told["replay"]) == ("redaction key", "key-of-a", "key-of-b")
    assert told["reason"] == "matched by renaming, without the recording's key: 1 e_mail"
    assert again.told("renamed")[0]["pairs"] == {Keyed("b").token("bob@x.com"): BOB}


def test_with_the_recordings_key_nothing_is_renamed() -> None:
    made = Made(1)
    made.tool("lookup", {"mail": BOB}, {"id": 7})
    again = Again(made, Keyed("a"))
    assert again.ask("lookup", {"mail": "bob@x.com"}) == {"id": 7}
    assert again.ledger.entries[0]["t"] == "answered"
    with pytest.raises(Miss):
        Again(made, Keyed("a")).ask("lookup", {"mail": "eve@x.com"})


def test_two_that_fit_are_a_miss_that_names_the_key() -> None:
    made = Made(1)
    made.tool("lookup", {"mail": BOB}, 1)
    made.tool("lookup", {"mail": EVE}, 2)
    again = Again(made)
    with pytest.raises(Miss):
        again.ask("lookup", {"mail": "bob@x.com"})
    (miss,) = again.told("miss")
    assert miss["hint"].startswith("2 recorded calls fit by renaming; only the recording's key key-of-a tells which")


def test_what_an_earlier_call_told_tells_two_apart() -> None:
    made = Made(1)
    made.tool("list", {"all": [BOB, EVE]}, "ok")
    made.tool("lookup", {"mail": EVE}, 2)
    made.tool("lookup", {"mail": BOB}, 1)
    again = Again(made)
    again.ask("list", {"all": ["bob@x.com", "eve@x.com"]})
    assert again.ask("lookup", {"mail": "bob@x.com"}) == 1
    assert again.ask("lookup", {"mail": "eve@x.com"}) == 2


def test_one_value_never_stands_for_two() -> None:
    made = Made(1)
    made.tool("first", {"mail": BOB}, 1)
    made.tool("second", {"mail": EVE}, 2)
    again = Again(made)
    assert again.ask("first", {"mail": "bob@x.com"}) == 1
    with pytest.raises(Miss):
        again.ask("second", {"mail": "bob@x.com"})


def test_two_values_never_stand_for_one() -> None:
    made = Made(1)
    made.tool("first", {"mail": BOB}, 1)
    made.tool("second", {"mail": BOB}, 2)
    again = Again(made)
    assert again.ask("first", {"mail": "bob@x.com"}) == 1
    with pytest.raises(Miss):
        again.ask("second", {"mail": "eve@x.com"})


def test_a_value_that_came_from_the_recording_stands_for_itself_alone() -> None:
    made = Made(1)
    made.tool("lookup", {"mail": BOB}, {"other": EVE})
    made.tool("write", {"to": BOB}, "sent")
    again = Again(made)
    with pytest.raises(Miss):
        again.ask("write", {"to": EVE})


def test_what_stands_beside_a_value_must_be_the_same() -> None:
    made = Made(1)
    made.tool("write", {"to": f"Bob <{BOB}>", "n": 1}, "sent")
    with pytest.raises(Miss):
        Again(made).ask("write", {"to": "Rob <bob@x.com>", "n": 1})
    with pytest.raises(Miss):
        Again(made).ask("write", {"to": "Bob <bob@x.com>", "n": 2})
    assert Again(made).ask("write", {"to": "Bob <bob@x.com>", "n": 1}) == "sent"


def test_keys_of_objects_are_renamed_as_well() -> None:
    made = Made(1)
    made.tool("write", {"by": {BOB: 1, "n": 2}}, "sent")
    made.tool("write", {"by": {BOB: 1, EVE: 2}}, "both")
    assert Again(made).ask("write", {"by": {"bob@x.com": 1, "n": 2}}) == "sent"
    with pytest.raises(Miss):  # which is which, nobody can say
        Again(made).ask("write", {"by": {"bob@x.com": 1, "eve@x.com": 2}})


def test_lanes_tell_apart_and_the_order_never_does() -> None:
    made = Made(1)
    made.tool("lookup", {"mail": BOB}, 1, lane="main")
    made.tool("lookup", {"mail": EVE}, 2, lane="main/t:0")
    assert Again(made).ask("lookup", {"mail": "bob@x.com"}) == 1


def test_credentials_keyed_by_the_salt_are_never_renamed() -> None:
    made = Made(1)
    made.tool("login", {"token": "REDACTED_jwt_" + "0" * 20}, 1)
    with pytest.raises(Miss):
        Again(made).ask("login", {"token": "REDACTED_jwt_" + "1" * 20})


def test_a_recording_of_another_policy_passes_the_one_in_force() -> None:
    made = Made(1)
    made.tool("lookup", {"mail": "bob@x.com"}, 1)  # it knew no addresses
    again = Again(made, Keyed("b", policy_digest="p2"))
    assert again.ask("lookup", {"mail": "bob@x.com"}) == 1
    (told,) = again.told("ignored")
    assert (told["field"], told["recorded"], told["replay"]) == ("redaction policy", "p1", "p2")


def test_a_text_that_the_program_made_of_whole_values_stands_for_the_recorded_one() -> None:
    city, both = f"REDACTED_value_{'1' * 20}", f"REDACTED_value_{'2' * 20}"
    made = Made(1)
    made.tool("ask", {}, {"city": city})
    made.tool("say", {"text": both}, "said")

    class Whole(Keyed):
        def text(self, text: str) -> str:
            return text.replace(f"I like {city}", f"REDACTED_value_{'3' * 20}")

    again = Again(made, Whole("a"))
    given = again.ask("ask", {})
    assert isinstance(given, dict)
    assert again.ask("say", {"text": f"I like {given['city']}"}) == "said"
    (told,) = again.told("ignored")
    assert told["reason"] == "matched by renaming: the program made a text of replaced values (1 value)"
    with pytest.raises(Miss):
        Again(made, Whole("a")).ask("say", {"text": f"REDACTED_value_{'3' * 20}"})  # a value of its own
