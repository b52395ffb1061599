from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SDKS = {"anthropic", "botocore", "httpx", "httpx2", "openai"}
IMPORTED = re.compile(r"\b(?:from|import)\s+(reenact(?:\.\w+)*)\b")
HEAVY = SDKS | {"click", "grpc", "rich", "uvicorn"}

NEW_MODULES = """
import importlib, pkgutil, sys
before = set(sys.modules)
import reenact
if sys.argv[1] == "all":
    for found in pkgutil.walk_packages(reenact.__path__, "reenact."):
        if not found.name.startswith(("reenact.bootstrap", "reenact.__main__", "reenact.pytest_plugin")):
            importlib.import_module(found.name)
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_no_import_goes_through_a_facade(root: Path, sources: list[Path]) -> None:
    package = root / "src"
    found = [f"{path}:{line}" for path in sources for line in facades((root / path).read_text("utf-8"), package)]
    assert found == [], "import the module that defines the name"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from reenact.values import Call", ["1 reenact.values: Call"]),
        ("def f():\n    from reenact.values import Call", ["2 reenact.values: Call"]),
        ("import reenact", ["1 reenact"]),
        ("import reenact.values", ["1 reenact.values"]),
        ("from reenact import record, errors", ["1 reenact: record"]),
        ("from reenact.values.call import Call", []),
        ("from reenact.values import call", []),
        ("import reenact.values.call", []),
        ("from reenactment import x", []),
    ],
)
def test_a_facade_is_told_from_a_leaf(tmp_path: Path, line: str, expected: list[str]) -> None:
    for name in ("__init__", "errors", "values/__init__", "values/call"):
        path = tmp_path / "reenact" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "reenact" / "record").mkdir()
    (tmp_path / "reenact" / "record" / "__init__.py").touch()
    assert facades(line, tmp_path) == expected


def test_importing_the_package_brings_no_sdk_and_no_server(root: Path) -> None:
    brought = imported(root, "top")
    assert "reenact" in brought
    assert brought & HEAVY == set()


def test_importing_every_module_brings_no_sdk(root: Path) -> None:
    brought = imported(root, "all")
    assert {"reenact", "opentelemetry"} <= brought
    assert brought & SDKS == set()


def facades(source: str, top: Path) -> list[str]:
    """Name the imports that end at a package of ours and take something other than a module from it."""
    if not any(is_package(top, name) for name in IMPORTED.findall(source)):
        return []  # most files: no need to read them as Python
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found += [f"{node.lineno} {name}" for name in names if is_ours(name) and is_package(top, name)]
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module or "") and is_package(top, node.module or ""):
            folder = top.joinpath(*(node.module or "").split("."))
            taken = [alias.name for alias in node.names if not (folder / f"{alias.name}.py").is_file()]
            found += [f"{node.lineno} {node.module}: {name}" for name in taken]
    return found


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "reenact"


def is_package(top: Path, module: str) -> bool:
    return top.joinpath(*module.split("."), "__init__.py").is_file()


def imported(root: Path, which: str) -> set[str]:
    """Give the top-level names that importing brings into a fresh interpreter."""
    command = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {str(root / 'src')!r})\n{NEW_MODULES}",
        which,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())
