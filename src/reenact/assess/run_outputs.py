"""What a run gave out beside its answers: printed text, returned values, files; whether an assertion over it holds."""

from __future__ import annotations

from typing import Final

from reenact.assess.calls import Known, Lost
from reenact.assess.plain_values import plain
from reenact.assess.truth import glob
from reenact.assess.view import Assessment, View, failing, holding, undecided
from reenact.values.assertion import Subject, Wrote
from reenact.values.call import CallKind, FunctionCall, Raised, Returned, Value
from reenact.values.difference import ABSENT
from reenact.values.file_writes import writes_of
from reenact.values.output import is_noted, outputs
from reenact.values.run import Node, Run

SUBJECTS: Final = frozenset({Subject.STDOUT, Subject.STDERR, Subject.RETURNS})
_FRAMES: Final = frozenset({CallKind.AGENT, CallKind.CHAIN})


def value_of(subject: Subject, run: Run) -> Known:
    """Give what was printed on a stream, or what the last agent or chain at the top returned."""
    return _returned(run) if subject is Subject.RETURNS else _printed(subject.value, run)


def _printed(name: str, run: Run) -> Known:
    if not is_noted(run):
        return Lost("what it printed was not recorded")
    streams = [part.streams[name] for part in outputs([run]).values() if name in part.streams]
    if lost := next((each.lost for each in streams if each.lost), ""):
        return Lost(f"what it printed is not known: {lost}")
    if any(each.is_cut or each.rest for each in streams):
        return Lost("more was printed than is kept")
    return "".join(each.text for each in streams)


def _returned(run: Run) -> Known:
    tops = [node for node in run.nodes if _is_top(node, run)]
    if not tops:
        return Lost("no agent or chain of it was recorded: declare the function with @reenact.agent")
    match tops[-1].outcome:
        case Returned(payload=Value(json=value)):
            return plain(value)
        case Raised():
            return ABSENT
        case _:
            return Lost(f"what {tops[-1].label} returned was not recorded")


def _is_top(node: Node, run: Run) -> bool:
    top = run.root.id if run.root is not None else None
    if node.kind not in _FRAMES or not isinstance(node.call.request, FunctionCall) or node.id == top:
        return False
    return node.parent is None or node.parent == top


def wrote(assertion: Wrote, view: View) -> Assessment:
    """Decide whether a file was written."""
    if view.stopped:
        return undecided(view.stopped)
    writes = writes_of(view.run)
    if writes is None:
        return undecided("which files it wrote was not recorded")
    names = [writes.named(file.path) for file in writes.files.values() if file.after is not None and not file.part_of]
    met = [name for name in names if any(glob(assertion.path, each) for each in (name, name.rpartition("/")[2]))]
    if met:
        return (failing if assertion.never else holding)(f"it wrote {', '.join(met[:3])}")
    root = view.run.root
    if writes.more or root is None or root.span.attributes.get("reenact.incomplete"):
        return undecided("which files it wrote last was not recorded")
    return (holding if assertion.never else failing)(f"it wrote {', '.join(names[:3]) or 'no file'}")
