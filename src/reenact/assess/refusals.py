"""Where a model refused: its provider says so, by the reason it ended or by a part of its message."""

from __future__ import annotations

from reenact.assess.calls import CallView
from reenact.values.call import HttpReply, Raised, Returned, Streamed, Unfinished
from reenact.values.json import Json
from reenact.values.message import Opaque

_REASONS = frozenset({"refusal", "content_filter", "content_filtered", "guardrail_intervened"})
"""`stop_reason` of Anthropic and Bedrock, `finish_reason` of OpenAI and Azure."""
_GEMINI = frozenset({"safety", "prohibited_content", "blocklist", "recitation", "spii", "image_safety"})


def refused(each: CallView) -> bool | None:
    """Tell whether a model refused; None where its answer is not known."""
    if isinstance(each.node.outcome, Raised):
        return False
    answer = each.answered
    if answer is None:
        match each.node.outcome:
            case Unfinished():
                return None
            case Returned(payload=HttpReply(status=status)) | Streamed(status=status) if status >= 400:
                return False
            case _:
                return None
    reasons = {reason.lower() for reason in answer.finish_reasons}
    if reasons & _REASONS or reasons & _GEMINI:
        return True
    parts = [part.json for message in answer.messages for part in message.parts if isinstance(part, Opaque)]
    return any(map(_is_refusal, parts))


def _is_refusal(part: Json) -> bool:
    return isinstance(part, dict) and (bool(part.get("refusal")) or part.get("type") == "refusal")
