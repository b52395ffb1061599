"""Bad input: exit code 3, one clear sentence that names file and line, no traceback, the store untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from desk import Desk

SPAN = (
    '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0123456789abcdef0123456789abcdef",'
    '"spanId":"0123456789abcdef","name":"x","startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}'
)

BAD = {
    "truncated.jsonl": (f"{SPAN}\n{SPAN[:80]}".encode(), ":2"),
    "bad-utf8.jsonl": (
        SPAN.encode() + b"\n" + SPAN.replace('"x"', '"\x00"').encode().replace(b"\x00", b"\xff\xfe") + b"\n",
        ":2",
    ),
    "wrong.pb": (b"\x0a\xff\xff\xff\xff\x0f" + b"junk" * 40, ""),
    "empty.jsonl": (b"", ""),
    "deep.json": (b'{"resourceSpans":' + b"[" * 10_000 + b"]" * 10_000 + b"}", ""),
    "prose.txt": (b"Dear reader, this is not a trace.\n" * 40, ""),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", ["ls", "show", "replay", "doctor", "import"])
def test_bad_input_is_named(desk: Desk, name: str, command: str) -> None:
    data, place = BAD[name]
    (desk.folder / name).write_bytes(data)
    done = desk.reenact(command, name)
    assert done.returncode == 3, done.stderr
    lines = done.stderr.strip().splitlines()
    assert f"{name}{place}" in lines[0], done.stderr
    assert "Traceback" not in done.stderr
    assert not (desk.folder / ".reenact" / "traces").exists()


def test_a_line_of_200_mb_is_refused(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as stream:
        stream.write(SPAN.encode() + b"\n")
        stream.write(SPAN[:-40].encode().replace(b'"x"', b'"' + b"x" * 1024))
        for _ in range(200):
            stream.write(b"y" * (1 << 20))
    done = desk.reenact("show", str(path))
    assert done.returncode == 3
    assert "long.jsonl:2" in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr
