"""The text of a promoted test: short, readable, the user's own from now on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reenact.boundary.reading import frames
from reenact.compare.content import gist
from reenact.report.safe import clean
from reenact.report.times import instant
from reenact.values.difference import short_json
from reenact.values.lenient import as_object, as_text
from reenact.values.run import Node, Run

_MOST_CALLS = 12
_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Authored:
    """What a test says."""

    name: str
    """Of the function, without `test_`."""
    fixture: str
    """As the marker names it: relative to the test's file, with `#id` where it holds several runs."""
    run: Run
    words: tuple[str, ...] = ()
    """Empty for the delivery of a request."""
    cwd: str = ""
    app: str | None = None
    path: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    assertions: tuple[str, ...] = ()
    """As spelled. None: the run is expected to be the same."""
    proposals: tuple[str, ...] = ()
    """Assertions that the run suggests, as comments."""
    remarks: tuple[str, ...] = ()
    settings: Mapping[str, str | bool | Sequence[str]] = field(default_factory=dict[str, str | bool | Sequence[str]])
    """Further words of the marker: `writes`, `children`, `stubs`, `lifespan`."""


def source(test: Authored) -> str:
    """Write the test's file."""
    lines = [*_docstring(test), "", "import pytest", "", ""]
    keywords = ", keep=True" if test.assertions else ""  # what happened once is not to be recorded over
    keywords += "".join(f", {name}={_spelled(value)}" for name, value in test.settings.items())
    lines += [f"@pytest.mark.reenact({quoted(test.fixture)}{keywords})", f"def test_{test.name}(reenact_replay):"]
    lines += [f"    # {line}" for line in test.remarks]
    lines.append(f"    outcome = reenact_replay({', '.join(_arguments(test))})")
    lines += _expectations(test)
    return "\n".join(lines) + "\n"


def _docstring(test: Authored) -> Iterator[str]:
    run = test.run
    commit = as_text(as_object(run.surroundings.get("commit")).get("id"))
    at = f", commit {commit[:12]}" if commit else ""
    yield _safe(f'"""{run.name}: run {run.id[:12]} of {instant(run.started_ns)}{at}.')
    yield ""
    yield "The program runs again, its calls answered from the recording: no network, no key, nothing live."
    if test.assertions:
        yield "The test fails on code that does again what was recorded, and passes on code that no longer does."
    else:
        yield "The test fails where the program leaves the recording."
    yield ""
    below = frames(run.nodes)
    calls = [node for node in run.nodes if not node.call.is_structure and node.id not in below]
    for node in calls[:_MOST_CALLS]:
        yield _safe(f"    {node.label}{_about(node)}")
    if (more := len(calls) - _MOST_CALLS) > 0:
        yield f"    … {more} calls more"
    yield '"""'


def _about(node: Node) -> str:
    if node.kind in {"LLM", "EMBEDDING"}:
        return ""
    return f"  {short_json(gist(node), _WIDTH)}"


def _safe(text: str) -> str:
    """Keep trace text inside a docstring: one line, no quotes that end it, nothing invisible."""
    plain = clean(text).replace("\n", " ").replace("\\", "\\\\")
    opening = plain.startswith('"""')
    return ('"""' if opening else "") + plain.removeprefix('"""' if opening else "").replace('"""', "'''")


def _arguments(test: Authored) -> Iterator[str]:
    yield from (quoted(word) for word in test.words)
    if test.app:
        yield f"app={quoted(test.app)}"
    for name, words in (("path", test.path), ("imports", test.imports)):
        if words:
            yield f"{name}=[{', '.join(map(quoted, words))}]"
    if test.cwd and test.cwd != ".":
        yield f"cwd={quoted(test.cwd)}"


def _expectations(test: Authored) -> Iterator[str]:
    if len(test.assertions) == 1:
        yield f"    outcome.holds({quoted(test.assertions[0])})"
    elif test.assertions:
        yield "    outcome.holds("
        yield from (f"        {quoted(each)}," for each in test.assertions)
        yield "    )"
    else:
        yield "    outcome.same()"
    for each in test.proposals:
        yield f"    # outcome.holds({quoted(each)})"


def _spelled(value: str | bool | Sequence[str]) -> str:  # noqa: FBT001 - of a marker
    if isinstance(value, bool):
        return repr(value)
    return quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"


def quoted(text: str) -> str:
    """Spell a text as Python does, in double quotes where that needs no escapes."""
    spelled = repr(text)  # which escapes what is invisible
    if spelled.startswith("'") and '"' not in spelled and "\\" not in spelled:
        return f'"{spelled[1:-1]}"'
    return spelled


def proposals(run: Run, verbs: Sequence[str]) -> tuple[str, ...]:
    """Suggest assertions about tools whose names say that they change something for good."""
    from reenact.assess.language import spell
    from reenact.values.assertion import Called, Calls

    names = dict.fromkeys(
        node.call.name
        for node in run.nodes
        if node.kind == "TOOL" and any(part in verbs for part in node.call.name.lower().replace(".", "_").split("_"))
    )
    return tuple(spell(Called(calls=Calls(kind="tool", name=name), least=0, most=_times(run, name))) for name in names)


def _times(run: Run, name: str) -> int:
    return sum(node.kind == "TOOL" and node.call.name == name for node in run.nodes)
