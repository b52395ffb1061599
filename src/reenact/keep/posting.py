"""From the store to backends: who is to have the spans of a recording, and the couriers that bring them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reenact.disk.blob import LOST, is_cut, references, restored
from reenact.disk.writable_folder import has_room
from reenact.errors import InputError
from reenact.stores.directory import DirectoryStore
from reenact.stores.outbox import Outbox
from reenact.values.span import SpanRecord

if TYPE_CHECKING:  # every command asks whether anything waits; what sends is imported where something does
    from reenact.export.courier import Leaving, Wares
    from reenact.export.outcome import Outcome
    from reenact.export.post import Post, Standing
    from reenact.export.sender import Sender
    from reenact.values.semconv import Semconv


@dataclass(slots=True)
class _Named:
    """A sender under a name that no other of the process bears: the same endpoint may be two projects."""

    sender: Sender
    name: str

    def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
        """Send."""
        return self.sender.send(spans, within_s)

    def close(self) -> None:
        """Let go."""
        self.sender.close()


def with_names(backends: Sequence[Sender]) -> list[Sender]:
    """Give every backend a name of its own: the second of one name is `name (2)`."""
    counts: dict[str, int] = {}
    senders: list[Sender] = []
    for sender in backends:
        counts[sender.name] = number = counts.get(sender.name, 0) + 1
        senders.append(sender if number == 1 else _Named(sender, f"{sender.name} ({number})"))
    return senders


def post_for(
    store: DirectoryStore, backends: Sequence[Sender], recording: str | None = None, *, gentle: bool = False
) -> Post | None:
    """Set couriers to work for these backends; where `recording` is named, its spans are for them from now on.

    Without one, only backends that something was ever owed to are served. None where there are none of those. Raises
    `InputError` where the outbox cannot be used.
    """
    from reenact.export.limits import limits_from
    from reenact.export.post import Post

    outbox, senders = Outbox(store.folder), with_names(backends)
    names = [sender.name for sender in senders]
    numbers = outbox.register(recording, names) if recording else outbox.known(names)
    served = {numbers[sender.name]: sender for sender in senders if sender.name in numbers}
    return Post(served, outbox, wares(store), limits_from(os.environ), gentle=gentle) if served else None


def send_waiting(store: DirectoryStore, say: Callable[[str], None], within_s: float | None = None) -> list[Standing]:
    """Send what waits for backends that the environment names, and say what came of it.

    Without `within_s` for the moment that an exit may take, and only where a backend may be tried now. Never raises:
    the store is there without its backends.
    """
    try:
        waiting = {account.name for account in Outbox(store.folder).accounts() if account.waiting}
        if not waiting:
            return []
        if not has_room(store.folder / "outbox"):
            say(f"{store.folder} cannot be written: what waits for backends is sent as soon as that can be noted")
            return []
        from reenact.export.backends import backends_from_environment

        backends = [sender for sender in with_names(backends_from_environment(os.environ)) if sender.name in waiting]
        post = post_for(store, backends)
        if post is None:
            return []
        if within_s is not None:
            post.flush(within_s)
        return post.close(post.limits.exit_s if within_s is None else 0.0, force=within_s is not None)
    except InputError as error:
        say(f"exporting is off: {error}")
        return []


def wares(store: DirectoryStore) -> Wares:
    """Give what couriers need to know of a store. Raises `InputError` on a setting that makes no sense."""
    from reenact.export.courier import Wares
    from reenact.values.semconv import semconv_from

    semconv = semconv_from(os.environ)

    def dress(span: SpanRecord, size: int) -> Leaving:
        return leaving(span, store, size, semconv)

    return Wares(load=store.parcel, dress=dress)


def leaving(span: SpanRecord, store: DirectoryStore, size: int, semconv: Semconv) -> Leaving:
    """Make a span ready to leave: its large values put back, where they are no more than `size` bytes, and shown.

    A span of which a blob is lost leaves with references, as one whose values are too large.
    """
    from reenact.export.courier import Leaving
    from reenact.keep.flattening import flattened

    as_is = Leaving(span=span)
    if is_cut(span):
        as_is = Leaving(span=span, referred=True)
        if sum(reference.size for reference in references(span)) > size:
            return as_is
        span = restored(span, store.blobs.get)
        if LOST in span.attributes:
            return as_is
        as_is = Leaving(span=span, smaller=as_is)
    try:
        view = flattened(span, semconv)
    except Exception:  # noqa: BLE001 - a view for readers; the evidence leaves without it
        return as_is
    return as_is if view is span else Leaving(span=view, smaller=as_is)


def undelivered(standing: Standing) -> str:
    """Say in one line what a backend did not get, and where to learn more."""
    from reenact.export.log_events import SUFFIX

    what = "log events" if standing.backend.endswith(SUFFIX) else "spans"
    phrases = [f"{standing.exported} {what} delivered"]
    if standing.dropped:
        phrases.append(f"{sum(standing.dropped.values())} dropped ({', '.join(standing.dropped)})")
    if standing.waiting:
        phrases.append(f"{standing.waiting} waiting, to be sent next time")
    why = f" ({standing.reason})" if standing.reason else ""
    return f"{standing.backend}: {', '.join(phrases)}{why}; `reenact status` says how things stand"
