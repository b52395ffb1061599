"""How far a unit of work that came in can be delivered again: its part of the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reenact.values import unit
from reenact.values.history import History
from reenact.values.json import compact
from reenact.values.lenient import as_count, as_list, as_text
from reenact.values.redaction_marks import MARK
from reenact.values.run import FOLLOWED, KitItem, Reason, Run
from reenact.values.unit import WebRequest


def unit_reasons(run: Run, history: History | None = None) -> Iterator[Reason]:
    """Name what a delivery lacks. A run that did not come in has nothing to deliver."""
    yield from _standing_reasons(run, history)
    yield from _task_reasons(run)
    request = unit.request_of(run)
    if request is None:
        return
    if request.body is None:
        lost = "the request's body, which was too large to be kept"
        yield Reason(call="run", field="request", lost=lost, fix="give a program: `reenact replay RUN -- CMD`")
    elif not as_text(unit.app(run).get("import")) and not run.entry.get("main"):
        yield Reason(call="run", field="application", lost="how the application is made", fix=_NAME_IT)
    yield from _credential_reasons(request)
    answer = unit.answer_of(run)
    if answer is not None and answer.body is None:
        lost = "the answer's body, which was too large to be kept; it is not compared"
        yield Reason(call="run", field="answer", lost=lost, fix="nothing to do")


def _task_reasons(run: Run) -> Iterator[Reason]:
    """Name the calls of a task that outlived its unit: units that came in since may have handed its work to it."""
    labels = dict.fromkeys(node.label for node in run.nodes if FOLLOWED in node.span.attributes)
    for label in labels:
        lost = "what later units may have handed to the task that made it, which outlived its own"
        yield Reason(call=label, field="unit", lost=lost, fix=_START_IT)


_START_IT = "start what works for all units before the first one comes in, or let the unit wait for its task"


def _credential_reasons(request: WebRequest) -> Iterator[Reason]:
    """Name the headers by which an application knows who asks, where redaction left tokens in them."""
    if header_names := sorted({name for name, value in request.headers if name in _CREDENTIALS and MARK in value}):
        listing = " and ".join(header_names)
        lost = f"what {listing} of the request held: redaction left tokens, which no session and no check knows"
        yield Reason(call="run", field="request headers", lost=lost, fix=_KEEP_THEM)


_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
_KEEP_THEM = (
    "where the application reads them, keep them in a policy: a [[rule]] with "
    'attribute = "reenact.inbound", group = "credentials", do = "keep"'
)


def _standing_reasons(run: Run, history: History | None) -> Iterator[Reason]:
    """Name what it stands on and a delivery does not have; where nobody looked for its history, all of it."""
    basis = unit.stands_on(run)
    if not basis and history is None:
        return
    fix = "keep what lasts from one unit to the next outside the process, behind a tool"
    if history is not None:
        for lost in history.lost:
            yield Reason(call="run", field="state", lost=f"stands on {lost}", fix=fix)
        if changed := _read_in_two_states((*history.units, run)) if history.units else []:
            lost = f"{', '.join(changed[:_NAMED])} as each of the units read it: it changed between them"
            yield Reason(call="run", field="files", lost=lost, fix="let a request read such a file by itself")
        return
    if loss := unit.unseen(run):
        yield Reason(call="run", field="state", lost=f"stands on {loss}", fix=fix)
    units = [as_text(each)[:12] for each in as_list(basis.get("units"))]
    if not (units or basis.get("without_run")):
        return
    others = (as_count(basis.get("without_run")) or 0) + (as_count(basis.get("more")) or 0) + len(units[_NAMED:])
    labels = [*units[-_NAMED:], *([f"{others} more"] if others else [])]
    state = ", ".join(as_text(each) for each in as_list(basis.get("state"))[:_NAMED])
    lost = f"stands on unit {', '.join(labels)}: it may read what they left in {state}, and is delivered without them"
    yield Reason(call="run", field="state", lost=lost, fix=fix)


def _read_in_two_states(runs: Iterable[Run]) -> list[str]:
    """Name the files that units read in different states, and that none of them wrote: a replay has one state."""
    from reenact.values.file_writes import writes_of  # most runs stand on no other

    states: dict[str, set[str]] = {}
    written = set[str]()
    for writes in filter(None, map(writes_of, runs)):
        written |= writes.files.keys()
        for path, file in writes.reads.items():
            before = file.before or {}
            known = before.get("digest") or compact([before.get("size"), before.get("mtime")])
            states.setdefault(writes.named(path), set()).add(str(known))
        written |= {writes.named(path) for path in writes.files}
    return sorted(name for name, each in states.items() if len(each) > 1 and name not in written)


_NAMED = 3
"""Units and pieces of state that are named."""


def unit_kit(run: Run, history: History | None = None) -> Iterator[KitItem]:
    """List what a delivery needs, piece by piece."""
    if unit.stands_on(run) or (history is not None and history.units):
        units = history.units if history is not None else ()
        unit_names = ", ".join(each.id[:12] for each in units[:_NAMED])
        more = f" and {len(units) - _NAMED} more" if len(units) > _NAMED else ""
        state = "missing" if not units else "partial" if history is None or history.lost else "present"
        detail = f"{unit_names}{more} delivered first" if units else ""
        yield KitItem(name="earlier units", state=state, detail=detail)
    request, inbound = unit.request_of(run), unit.inbound(run)
    if request is None or inbound is None:
        return
    size = "" if request.body is None else f", {len(request.body)} bytes"
    state = "present" if request.body is not None else "missing"
    yield KitItem(name="request", state=state, detail=f"{request.method} {request.path}{size}")
    left_out = ", ".join(as_text(each) for each in as_list(inbound.get("left_out")))
    yield KitItem(
        name="request headers",
        state="partial" if left_out else "present",
        detail=f"without {left_out}" if left_out else f"{len(request.headers)}",
        fix="name those that the application reads in REENACT_KEEP_HEADERS" if left_out else "",
    )
    name = as_text(unit.app(run).get("import"))
    if name:
        yield KitItem(name="application", state="present", detail=name)
    elif main := as_text(run.entry.get("main")):
        detail = f"it has no name; {main} is run up to where it would serve"
        yield KitItem(name="application", state="partial", detail=detail, fix=_NAME_IT)
    else:
        yield KitItem(name="application", state="missing", fix=_NAME_IT)


_NAME_IT = "keep it in a variable of a module, or name it: `reenact replay RUN --app module:attribute`"
