"""Fuzzes what reads other people's bytes: every member of the walls formats, dialects and encodings, by discovery.

    python tests/fuzz/decoders.py --wall formats                     # every member, a minute each
    python tests/fuzz/decoders.py --wall dialects --family genai --seconds 600

Each family runs in a process of its own under atheris (coverage-guided). Seeds are the golden cases, what writable
formats make of them, and the real traces where they are there. A format may refuse with an error of `reenact.errors`;
dialects and encodings may not raise at all. More than 10 seconds for one input is a hang, more than 2 GiB a leak.
Exit code 0: nothing found; 1: found, with the input's path and the traceback; 2: atheris is not there.
"""

from __future__ import annotations

import argparse
import base64
import functools
import importlib
import inspect
import io
import json
import os
import pkgutil
import random
import re
import subprocess
import sys
import tempfile
import time
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
REAL = HERE.parent.parent.parent / "shared" / "data"
WALLS = ("formats", "dialects", "encodings")
_LARGEST, _MOST_SEEDS = 48 << 10, 400
_ONE_INPUT_S, _MEMORY_MB = 10, 2048
NO_TREE = (ValueError, RecursionError, IndexError, AttributeError, TypeError, KeyError)
"""What editing raises where an edit before left no span where one was, or more depth than JSON is written with."""


# ----------------------------------------------------------------------------------------------------------- families


def families(wall: str) -> list[str]:
    """The modules of a wall."""
    folder = importlib.import_module(f"reenact.{wall}")
    return sorted(found.name for found in pkgutil.iter_modules(folder.__path__))


def target(wall: str, family: str) -> Callable[[bytes], None]:
    """What is called with each input; raises what is a finding."""
    module = importlib.import_module(f"reenact.{wall}.{family}")
    if wall == "formats":
        return _format_target(module)
    return _dialect_target(module) if wall == "dialects" else _encoding_target(module)


def _format_target(module: Any) -> Callable[[bytes], None]:
    from reenact.contracts.format import Format
    from reenact.errors import ReenactError

    members = [value for value in vars(module).values() if isinstance(value, Format)]

    def run(data: bytes) -> None:
        for member in members:
            sure = member.recognises(data[: 64 << 10])
            assert 0 <= sure <= 1, sure
            try:
                for _ in member.decode(io.BytesIO(data), Path("fuzz")):
                    pass
            except ReenactError as refusal:
                if not str(refusal).startswith(("fuzz", "$")):
                    raise AssertionError("the error names no place") from refusal

    return run


def _dialect_target(module: Any) -> Callable[[bytes], None]:
    from reenact.contracts.dialect import Dialect

    members = [value for value in vars(module).values() if isinstance(value, Dialect)]

    def run(data: bytes) -> None:
        for span in spans_of(data):
            for member in members:
                sure = member.recognises(span)
                assert 0 <= sure <= 1, sure
                member.decode(span)  # of a span that it does not know as well: it never raises

    return run


def _encoding_target(module: Any) -> Callable[[bytes], None]:
    functions = [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
    callable_ones = [(function, kinds) for function in functions if (kinds := _kinds(function)) is not None]

    def run(data: bytes) -> None:
        for span in spans_of(data):
            for function, kinds in callable_ones:
                for arguments in _arguments(span, kinds):
                    function(*arguments)

    return run


def spans_of(data: bytes) -> list[Any]:
    """The spans of OTLP/JSON, log events joined; none of what is no OTLP."""
    from reenact.errors import InputError
    from reenact.formats.otlp_json import FORMAT
    from reenact.graph.logs import joined

    try:
        return joined(FORMAT.decode(io.BytesIO(data), Path("fuzz")))
    except InputError:
        return []


_TREES = {"openinference": "tree"}
"""An encoding whose functions take what another function of it gives."""


def _kinds(function: Callable[..., Any]) -> list[str] | None:
    """What the required parameters of a function are; None where one is nothing that can be made of a span."""
    hints = typing.get_type_hints(function)
    kinds: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            continue
        text = str(hints.get(name))
        kind = next((kind for kind, pattern in _KINDS.items() if re.search(pattern, text)), None)
        if kind is None:
            return None
        kinds.append(kind)
    return kinds


_KINDS = {
    "reader": r"Callable\[\[?str",
    "span": r"SpanRecord",
    "event": r"^<class '[\w.]*SpanEvent'>",
    "events": r"SpanEvent",
    "tree": r"^dict\[str, (typing\.)?Any\]",
    "attributes": r"^(collections\.abc\.|typing\.)?Mapping\[str",
    "text": r"^<class 'str'>",
    "json": r"bool",
}


def _arguments(span: Any, kinds: list[str]) -> Iterator[list[Any]]:
    if "event" in kinds:
        for event in span.events:
            yield [event if kind == "event" else _argument(span, kind, dict(event.attributes)) for kind in kinds]
        return
    values = [*span.attributes.values(), *(value for event in span.events for value in event.attributes.values())]
    if kinds.count("json") + kinds.count("text") == 0:
        yield [_argument(span, kind, None) for kind in kinds]
        return
    for value in values[:40]:
        yield [_argument(span, kind, value) for kind in kinds]


def _argument(span: Any, kind: str, value: Any) -> Any:
    match kind:
        case "reader":
            from reenact.encodings.python_repr import read

            return read
        case "span":
            return span
        case "events":
            return span.events
        case "attributes":
            return span.attributes
        case "tree":
            from reenact.encodings.openinference import tree

            return tree(span.attributes)
        case "text":
            return value if isinstance(value, str) else json.dumps(value, default=repr)
        case _:
            try:
                return json.loads(value) if isinstance(value, str) else json.loads(json.dumps(value, default=repr))
            except (ValueError, RecursionError):
                return value


# -------------------------------------------------------------------------------------------------------------- seeds


def seeds(wall: str, family: str) -> list[bytes]:
    """Inputs to begin with."""
    found = list(_format_seeds(family)) if wall == "formats" else list(_span_seeds())
    kept = [data for data in found if 0 < len(data) <= _LARGEST]
    random.Random(family).shuffle(kept)
    return kept[:_MOST_SEEDS]


def _members(family: str) -> list[Any]:
    from reenact.contracts.format import Format

    module = importlib.import_module(f"reenact.formats.{family}")
    return [value for value in vars(module).values() if isinstance(value, Format)]


def _format_seeds(family: str) -> Iterator[bytes]:
    from reenact.contracts.format import Format
    from reenact.discover import members

    yield from _golden_files(family)
    yield from _written(family)
    mine = _members(family)
    for path in sorted(REAL.glob("**/*")):
        if path.is_file():
            head = path.read_bytes()[:_LARGEST]
            surest = max(members("formats", Format), key=lambda member: member.recognises(head))
            if any(member is surest for member in mine) and surest.recognises(head) > 0.3:
                yield from (head, *head.splitlines(keepends=True)[:5])


def _golden_files(family: str) -> Iterator[bytes]:
    for folder in sorted({family, *(member.name.replace("-", "_") for member in _members(family))}):
        for path in sorted((GOLDEN / "formats" / folder).glob("**/input.*")):
            yield path.read_bytes()


def _written(family: str) -> Iterator[bytes]:
    spans = _golden_spans()
    for member in _members(family):
        if member.encode is not None:
            yield from (member.encode([span]) for span in spans[:20])
            yield member.encode(spans[:20])


@functools.cache
def _golden_spans() -> list[Any]:
    return [span for data in _span_seeds(real=False) for span in spans_of(data)]


def _span_seeds(*, real: bool = True) -> Iterator[bytes]:
    """Single spans as OTLP/JSON."""
    from reenact.contracts.format import Format
    from reenact.discover import members
    from reenact.errors import ReenactError
    from reenact.formats.otlp_json import encode
    from reenact.graph.logs import joined

    paths = [*sorted(GOLDEN.glob("**/*span*.json*")), *sorted((GOLDEN / "formats").glob("**/input.*"))]
    for path in [*paths, *(sorted((REAL / "traces").glob("**/*.json*")) if real else ())]:
        head = path.read_bytes()
        surest = max(members("formats", Format), key=lambda member: member.recognises(head[: 64 << 10]))
        try:
            spans = joined(surest.decode(io.BytesIO(head), path))
        except ReenactError:
            continue
        for span in spans[:12]:
            yield encode([span])


# ----------------------------------------------------------------------------------------------------------- one family


def mutator(wall: str) -> Callable[[bytes, int, int], bytes]:
    """Edits JSON as JSON most of the time, and as bytes else, so that more than the parser is met."""
    import atheris
    from mutation import mutated

    def edit(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < (0.8 if wall == "formats" else 0.97):
            try:
                lines = data.splitlines() if data.count(b"\n") > 1 else [data]
                at = rng.randrange(len(lines)) if lines else 0
                lines[at] = _spelled(mutated(_loaded(lines[at], wall), rng), wall)
                made = b"\n".join(lines)
                if 0 < len(made) <= most:
                    return made
            except NO_TREE:
                pass
        return atheris.Mutate(data, most)

    return edit


def _loaded(line: bytes, wall: str) -> Any:
    """JSON; of a span the attributes as an object, so that edits meet them and not OTLP's spelling."""
    read = json.loads(line)
    if wall != "formats":
        for span in _told_spans(read):
            for holder in (span, *(span.get("events") or ())):
                holder["attributes"] = {pair["key"]: _plain(pair["value"]) for pair in holder.get("attributes") or ()}
    return read


def _spelled(value: Any, wall: str) -> bytes:
    if wall != "formats":
        for span in _told_spans(value):
            for holder in (span, *(each for each in span.get("events") or () if isinstance(each, dict))):
                told = holder.get("attributes")
                pairs = told.items() if isinstance(told, dict) else ()
                holder["attributes"] = [{"key": str(key), "value": _any(item)} for key, item in pairs]
    return json.dumps(value).encode()


def _told_spans(document: Any) -> Iterable[dict[str, Any]]:
    try:
        spans = [
            span for group in document["resourceSpans"] for scope in group["scopeSpans"] for span in scope["spans"]
        ]
    except (KeyError, TypeError, IndexError):
        return []
    return [span for span in spans if isinstance(span, dict)]


def _plain(told: Any) -> Any:
    for kind, value in told.items():
        match kind:
            case "intValue":
                return int(value)
            case "arrayValue":
                return [_plain(item) for item in value.get("values") or ()]
            case "kvlistValue":
                return {pair["key"]: _plain(pair["value"]) for pair in value.get("values") or ()}
            case _:
                return value
    return None


def _any(value: Any) -> Any:
    match value:
        case None:
            return {}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [_any(item) for item in value]}}
        case _:
            return {"kvlistValue": {"values": [{"key": str(key), "value": _any(item)} for key, item in value.items()]}}


def fuzz(wall: str, family: str, seconds: int, folder: Path) -> None:
    """Fuzz one family in this process; does not return."""
    import atheris

    with atheris.instrument_imports(include=["reenact"], enable_loader_override=False):
        for name in ("formats", "dialects", "encodings"):
            for each in families(name):
                importlib.import_module(f"reenact.{name}.{each}")
        run = target(wall, family)
    corpus, found = folder / "corpus", folder / "found"
    for made in (corpus, found):
        made.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(wall, family)):
        (corpus / f"seed-{number:04}").write_bytes(data)
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={_ONE_INPUT_S}",
        f"-rss_limit_mb={_MEMORY_MB}",
        f"-max_len={_LARGEST}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        str(corpus),
    ]
    edit = mutator(wall)
    atheris.Setup([sys.argv[0], *options], run, custom_mutator=edit)
    atheris.Fuzz()


# ---------------------------------------------------------------------------------------------------------- all of them


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wall", choices=WALLS, action="append", help="default: all three")
    parser.add_argument("--family", action="append", help="modules of the wall; default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each family")
    parser.add_argument("--keep", type=Path, help="folder for corpora and findings; default: a temporary one")
    parser.add_argument("--one", metavar="WALL/FAMILY", help=argparse.SUPPRESS)
    parser.add_argument("--input", type=Path, metavar="FILE", help="run --wall --family on this input alone")
    told = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if told.one:
        wall, _, family = told.one.partition("/")
        fuzz(wall, family, told.seconds, told.keep)
    if told.input:
        target(told.wall[0], told.family[0])(told.input.read_bytes())
        return 0
    try:
        importlib.import_module("atheris")
    except ImportError:
        sys.stderr.write("atheris is not installed: pip install atheris\n")
        return 2
    keep = told.keep or Path(tempfile.mkdtemp(prefix="reenact-fuzz-"))
    bad = 0
    for wall in told.wall or WALLS:
        for family in families(wall):
            if not told.family or family in told.family:
                bad += _report(wall, family, told.seconds, keep / wall / family)
    _say(f"{bad} families with findings" + (f": see {keep}" if bad else ""))
    return 1 if bad else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _report(wall: str, family: str, seconds: int, folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--one", f"{wall}/{family}", "--seconds", str(seconds), "--keep", str(folder)]
    began = time.monotonic()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )  # fmt: skip
    text = done.stdout.decode("utf-8", "replace")
    runs = re.search(r"stat::number_of_executed_units:\s+(\d+)", text)
    found = sorted((folder / "found").glob("*"))
    said = "nothing found" if done.returncode == 0 else f"exit {done.returncode}: {', '.join(map(str, found)) or '?'}"
    took = time.monotonic() - began
    _say(f"{wall}/{family}: {runs[1] if runs else '?'} inputs in {took:.0f} s: {said}")
    if done.returncode:
        kept = [line for line in text.splitlines() if not line.startswith(("INFO", "#", "WARNING"))]
        _say("\n".join(f"    {line}" for line in kept[:40]))
        for path in found[:1]:
            _say(f"    input: {base64.b64encode(path.read_bytes()[:600]).decode()}")
    return done.returncode != 0


if __name__ == "__main__":
    raise SystemExit(main())
