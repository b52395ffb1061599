from __future__ import annotations

import ast
from pathlib import Path

LINES_OF_A_FILE = 700
LINES_OF_A_FUNCTION = 50


def test_no_source_file_is_too_long(root: Path, sources: list[Path]) -> None:
    lengths = {str(path): len((root / path).read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {path: length for path, length in lengths.items() if length > LINES_OF_A_FILE} == {}


def test_no_function_is_too_long(root: Path, sources: list[Path]) -> None:
    found = [f"{path}:{line}" for path in sources for line in long_functions((root / path).read_text(encoding="utf-8"))]
    assert found == []


def test_a_long_function_is_seen_wherever_it_stands() -> None:
    body = "\n".join(f"        x = {n}" for n in range(LINES_OF_A_FUNCTION))
    assert long_functions(f"class A:\n    async def f():\n{body}\n") == ["2 f: 51 lines"]
    assert long_functions(f"class A:\n    def f():\n{body[: body.rindex(chr(10))]}\n") == []


def long_functions(source: str) -> list[str]:
    return [
        f"{node.lineno} {node.name}: {length} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LINES_OF_A_FUNCTION
    ]
