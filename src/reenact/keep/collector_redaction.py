"""What a policy takes out of spans and log records that others send, before a collector writes them down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reenact.formats.otlp_proto import attributes_of, write_attributes
from reenact.redact import in_force, keys
from reenact.redact.engine import Engine, credentials_in
from reenact.redact.plan import Place

_BODY = "body"


def taking_out(store: Path, environ: dict[str, str], chosen: str) -> Callable[[Any], None]:
    """Give what redacts a request in place, by the policy `chosen` (a file, or `default`), with the store's key.

    Equal values become equal tokens in whatever trace they are. A span of which something was replaced says what, and
    by which policy and key. Raises `InputError` where the policy or its key cannot be read.
    """
    guard = in_force.of_policy(in_force.chosen_policy(store, environ, chosen=chosen), store, environ)
    key = guard.key or keys.of_store(store, environ)
    engine = Engine(guard.plan, key=key.value, shared=True, known_secrets=credentials_in(environ))
    return taking_out_by(engine)


def taking_out_by(engine: Engine) -> Callable[[Any], None]:
    """Give what redacts a request in place by an engine."""
    return lambda request: _redact(request, engine)


def _redact(request: Any, engine: Engine) -> None:
    traces = hasattr(request, "resource_spans")
    for group in request.resource_spans if traces else request.resource_logs:
        _pairs(group.resource.attributes, engine)
        for entry in group.scope_spans if traces else group.scope_logs:
            _pairs(entry.scope.attributes, engine)
            for record in entry.spans if traces else entry.log_records:
                with engine.counting() as replaced:
                    _pairs(record.attributes, engine)
                    _span(record, engine) if traces else _log(record, engine)
                if replaced:
                    counts = {f"{in_force.REPLACED}{name}": count for name, count in replaced.items()}
                    marks = {in_force.POLICY: engine.policy_digest, in_force.KEY: engine.key_id, **counts}
                    if engine.salt:
                        marks[in_force.SALT] = engine.salt
                    attributes = attributes_of(record.attributes)
                    del record.attributes[:]
                    write_attributes(record.attributes, {**attributes, **marks})


def _span(span: Any, engine: Engine) -> None:
    span.name = engine.text(span.name, place=Place(attribute="name"))
    if span.status.message:
        span.status.message = engine.text(span.status.message, place=Place(attribute="status"))
    for event in span.events:
        event.name = engine.text(event.name, place=Place(attribute="event"))
        _pairs(event.attributes, engine)
    for link in span.links:
        _pairs(link.attributes, engine)


def _log(log: Any, engine: Engine) -> None:
    attributes: dict[str, Any] = attributes_of([_Pair(_BODY, log.body)])
    redacted = engine.attributes(attributes)
    if redacted != attributes:
        pairs: Any = type(log)().attributes
        write_attributes(pairs, {_BODY: redacted[_BODY]})
        log.body.CopyFrom(pairs[0].value)


class _Pair:
    def __init__(self, key: str, value: Any) -> None:
        self.key, self.value = key, value


def _pairs(pairs: Any, engine: Engine) -> None:
    if not pairs:
        return
    attributes = attributes_of(pairs)
    redacted = engine.attributes(attributes)
    if redacted != attributes or len(attributes) != len(pairs):  # of a key that is there twice, the last counts
        del pairs[:]
        write_attributes(pairs, redacted)
