"""Masks of other emitters, told from what users write."""

from __future__ import annotations

import json

import pytest

from reenact.values.masks import is_masked, masks_in, may_be, setting_of


@pytest.mark.parametrize(
    ("text", "masks"),
    [
        ("my [Scrubbed due to 'password'] is", ["[Scrubbed due to 'password']"]),
        (json.dumps({"a": '[Scrubbed due to "it\'s"]'}), ['[Scrubbed due to "it\'s"]']),
        ("<fully masked due to failed mask function>", ["<fully masked due to failed mask function>"]),
        ("write to [EMAIL_REDACTED] or <PHONE_NUMBER>", ["[EMAIL_REDACTED]", "<PHONE_NUMBER>"]),
        ("[REDACTED]", ["[REDACTED]"]),
        ("***MASKED***", ["***MASKED***"]),
        ("****", ["****"]),
        (json.dumps({"card": "***", "rows": ["***", 1]}), ["***", "***"]),
        (json.dumps({"content": json.dumps({"iban": "***"})}), ["***"]),
        (json.dumps({"authorization": "***", "X-Api-Key": "***"}), []),
        (json.dumps({"max_tokens": "***"}), ["***"]),
        ("***bold***, a rule:\n***\n and 2 *** 3", []),
        ("the word redacted, a <LOCATION>, a [link](x), stars ** **", []),
        ("REDACTED_e_mail_00112233445566778899@redacted.invalid", []),
    ],
)
def test_masks_are_found_and_nothing_else(text: str, masks: list[str]) -> None:
    assert masks_in(text) == masks


def test_what_is_left_beside_a_mask_must_be_there_in_its_order() -> None:
    masked = "refund [REDACTED] of order 4711 to <EMAIL_ADDRESS> please"
    assert is_masked(masked)
    assert may_be(masked, "refund 12.50 of order 4711 to bob@example.com please")
    assert not may_be(masked, "refund 12.50 of order 4712 to bob@example.com please")
    assert not may_be(masked, "refund to order 4711 please")
    assert not may_be("a [REDACTED] a", "a ")
    assert may_be("***", "anything")
    assert not may_be("nothing hidden", "nothing hidden at all")


def test_the_setting_is_the_emitters_own() -> None:
    assert "scrubbing=False" in setting_of("[Scrubbed due to 'auth']", "logfire")
    assert "Langfuse(mask" in setting_of("***", "langfuse-sdk")
    assert "reenact" in setting_of("[REDACTED]", "")


def test_no_text_is_too_long_to_be_searched() -> None:
    for text in ('"' * 10**6, "[" * 10**6, "[A_" * 10**5, "\\" * 10**6, "[Scrubbed due to '" * 10**4, '"a":"' * 10**5):
        assert masks_in(text) == []
        assert not may_be(text, text)
