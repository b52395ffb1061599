"""What an evaluation came to, read out of an evaluator's call: of our judges, or of anybody's function."""

from __future__ import annotations

from dataclasses import dataclass, field

from reenact.values.call import Call, FunctionCall, Outcome, Returned, Value
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One judgement on something that was said."""

    name: str
    """What was judged."""
    score: float | None = None
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """`label` and `explanation`, as far as they were given."""
    annotator: str = "CODE"
    """OpenInference's word for who judged: `LLM` or `CODE`."""


def evaluation_of(call: Call, outcome: Outcome) -> Evaluation | None:
    """Read an evaluator's call; None where it came to nothing."""
    if not isinstance(outcome, Returned) or not isinstance(outcome.payload, Value):
        return None
    value = outcome.payload.json
    fields = as_object(value)
    asked = as_object(call.request.arguments) if isinstance(call.request, FunctionCall) else {}
    score = _number(fields.get("score", value))
    holds = fields.get("holds", value)
    label = as_text(fields.get("label"))
    if isinstance(holds, bool):
        label = label or ("holds" if holds else "does not hold")
        score = float(holds) if score is None else score
    texts = {"label": label, "explanation": as_text(fields.get("explanation")) or as_text(fields.get("reason"))}
    texts = {name: text for name, text in texts.items() if text}
    if score is None and not texts:
        return None
    judged = as_text(asked.get("asks"))
    return Evaluation(name=judged or call.name, score=score, texts=texts, annotator="LLM" if judged else "CODE")


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
