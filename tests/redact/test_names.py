"""Names in free text: off by default, refused where Presidio is not installed, found beside all else."""

from __future__ import annotations

import importlib.util

import pytest

from reenact.errors import InputError
from reenact.redact.engine import Engine
from reenact.redact.names import CLASSES, chosen, finder
from reenact.redact.plan import DEFAULT, discovered
from reenact.redact.scan import Scanner


def test_names_are_off_unless_a_policy_asks() -> None:
    assert finder({}) is None
    assert finder({"presidio": False, "language": "de"}) is None
    assert finder(DEFAULT.names) is None
    text = "Jane Doe lives at 12 Elm Street, Springfield."
    assert Engine(key=b"k" * 32).text(text) == text


@pytest.mark.skipif(importlib.util.find_spec("presidio_analyzer") is not None, reason="Presidio is installed here")
def test_what_is_not_installed_is_said_with_what_to_do() -> None:
    with pytest.raises(InputError, match="Presidio, which is not installed") as said:
        finder({"presidio": True})
    assert "reenact[names]" in said.value.hint


def test_an_entity_that_nobody_finds_is_refused() -> None:
    with pytest.raises(InputError, match="'COLOUR' is none of PERSON"):
        finder({"presidio": True, "entities": ["COLOUR"]})


def test_the_largest_installed_model_of_a_language_is_taken() -> None:
    assert chosen(["en_core_web_sm", "en_core_web_lg", "de_core_news_md", "notes"], "en") == "en_core_web_lg"
    assert chosen(["en_core_web_sm", "en_core_web_trf"], "en") == "en_core_web_trf"
    assert chosen(["de_core_news_md"], "en") is None


def test_what_a_model_finds_is_found_beside_what_has_a_form() -> None:
    def named(text: str) -> list[tuple[int, int, str]]:
        return [(at, at + 8, CLASSES["PERSON"]) for at in range(len(text)) if text.startswith("Jane Doe", at)]

    text = "Jane Doe <jane@example.com>, again Jane Doe"
    found = Scanner(discovered(), named=named).find(text)
    assert [(each.name, each.secret) for each in found] == [
        ("person", "Jane Doe"),
        ("e_mail", "jane@example.com"),
        ("person", "Jane Doe"),
    ]
    assert Scanner(discovered(), named=named).places('{"note": "Jane Doe"}') is None, "no document is clean at a glance"
