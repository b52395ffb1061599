"""A refusal names as keys only what a file has as keys, and says in plain words what is lacking."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from reenact.errors import InputError
from reenact.formats import jaeger_json
from reenact.read.likeness import nearest


def test_a_value_is_no_key() -> None:
    assert nearest(b'[{"orchard": "request", "row": "response"}]') is None
    near = nearest(b'[{"request": {"row": 1}, "response": {"row": 2}}]')
    assert near is not None
    assert "it has `request`, `response`" in near.sentence


def test_the_key_that_is_there_is_named() -> None:
    head = json.dumps({"id": "a", "project_name": "orchard", "thread_id": "t", "row": 1}).encode()
    near = nearest(head)
    assert near is not None
    named = near.sentence.partition(", and ")[0]
    assert "`project_id`" not in named
    for key in near.has:
        assert f'"{key.rpartition(".")[2].strip(chr(34))}"' in head.decode(), key


def test_a_field_that_is_lacking_is_named_in_words() -> None:
    spans = [{"spanID": "1f", "operationName": "pick", "startTime": 1, "duration": 1}]
    data = json.dumps({"data": [{"spans": spans}]}).encode()
    with pytest.raises(InputError, match=r"\(it lacks `traceID`\)") as refused:
        list(jaeger_json.FORMAT.decode(io.BytesIO(data), Path("file")))
    assert "KeyError" not in str(refused.value)
