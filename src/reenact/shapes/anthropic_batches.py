"""The call that submits a batch of messages to Anthropic (`POST /v1/messages/batches`).

A model call by kind, for it spends tokens: no replay under `--tools live` sends it. It is answered with the batch's
state and by no model, so nothing of it is read as messages or usage; the conversations stay among the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, at, text_or_none
from reenact.values.message import Answered, Asked


def _read_request(body: Json) -> Asked:
    """Name the model where all requests of the batch go to one."""
    asked = as_object(body)
    models = {as_text(at(request, "params", "model")) for request in as_list(asked.get("requests"))}
    only = next(iter(models), "") if len(models) == 1 else ""
    return Asked(model=text_or_none(asked.get("model")) or only or None, parameters=asked)


def _read_reply(body: Json) -> Answered:
    return Answered(id=text_or_none(as_object(body).get("id")))


def _fold(events: Iterable[Json]) -> Json:
    """Give the one whole body: a batch's state is not streamed."""
    return as_object(next(iter(events), None))


SHAPE = Shape(
    name="anthropic.batches",
    system="anthropic",
    operation="create_batch",
    kind=CallKind.LLM,
    span_name="messages.batches.create",
    paths=("/v1/messages/batches",),
    needs=(b'"requests"',),
    noise=frozenset(),
    opaque=("signature", "data", "encrypted_content"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
    credentials=("ANTHROPIC_API_KEY",),
)
