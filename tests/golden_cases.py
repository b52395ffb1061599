"""Golden cases: folders of plain files under `tests/golden/<family>/<member>/<case>/`, recorded by ourselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).resolve().parent / "golden"


def cases(family: str) -> list[Path]:
    """Every case of a family, in name order."""
    return sorted(path for path in (GOLDEN / family).glob("*/*") if path.is_dir())


def case_name(path: Path) -> str:
    """What a test calls a case."""
    return f"{path.parent.name}/{path.name}"


def expected(path: Path, value: Any) -> Any:
    """Give what a case says that `value` is. Where nothing says so yet, write `value` there, and fail."""
    if not path.exists():
        text = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")
        pytest.fail(f"{path} is written: read it, mend it by hand where it is wrong, and try again")
    return json.loads(path.read_text(encoding="utf-8"))


def plain(value: Any) -> Any:
    """Spell a tree of dataclasses as JSON; fields that hold their default's emptiness are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return {"is": type(value).__name__} | {
            name: item for name, item in held.items() if item not in (None, "", [], {})
        }
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def streamed(case: Path) -> bytes | None:
    """The bytes of a shape's stream: of events, or of Amazon's frames, each a line of its kind and its event."""
    if (case / "frames.jsonl").exists():
        from reenact.values.event_stream import event_frame

        lines = (case / "frames.jsonl").read_text(encoding="utf-8").splitlines()
        return b"".join(event_frame(*json.loads(line)) for line in lines)
    return (case / "stream.txt").read_bytes() if (case / "stream.txt").exists() else None
