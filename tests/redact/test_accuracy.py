"""Recall, precision and false hits keep the bounds that `docs/detectors.md` publishes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reenact.redact.plan import discovered


@pytest.fixture(scope="module")
def accuracy() -> ModuleType:
    spec = importlib.util.spec_from_file_location("accuracy", Path(__file__).with_name("accuracy.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy"] = module  # its dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def scores(accuracy: Any) -> Any:
    return accuracy.measure(20, 4, accuracy.ordinary())


@pytest.mark.slow
def test_secrets_are_found(accuracy: Any, scores: Any, record_property: Any) -> None:
    recall = accuracy.total(scores, "credentials")
    record_property("figure", f"secrets: recall {recall:.4f} of {sum(s.planted for s in scores.values())} planted")
    assert recall >= 0.98
    for name, score in scores.items():
        if score.planted >= 4:
            assert score.recall >= 0.75, (name, score.missed[:2])


@pytest.mark.slow
def test_structured_personal_data_is_found(accuracy: Any, scores: Any, record_property: Any) -> None:
    recall = accuracy.total(scores, "personal")
    record_property("figure", f"structured personal data: recall {recall:.4f}; phone {scores['phone'].recall:.3f}")
    assert recall >= 0.95
    groups = {detector.name: detector.group for detector in discovered()}
    for name, score in scores.items():
        if groups[name] == "personal" and score.planted:
            assert score.recall >= (0.8 if name == "phone" else 0.95), (name, score.missed[:2])


@pytest.mark.slow
def test_every_class_is_mostly_right(scores: Any) -> None:
    for name, score in scores.items():
        assert score.precision >= 0.85 or score.hits - score.right <= 1, (name, score.wrong[:3])


@pytest.mark.slow
def test_ordinary_text_of_agents_is_left_alone(accuracy: Any, shared_data: Path, record_property: Any) -> None:
    """At most one different hit for each MB that is no standing address; what is counted is listed by the script."""
    size, hits = accuracy.false_hits(accuracy.ordinary(shared_data))
    counted = {name: dict(each) for name, each in hits.items() if name not in accuracy.STANDING}
    record_property(
        "figure", f"ordinary agent text: {size:.2f} MB, {sum(map(len, counted.values()))} hits to be judged"
    )
    assert sum(map(len, counted.values())) <= max(1, size), counted
