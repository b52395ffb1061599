"""Keys: whose they are, that one store has one, and that nothing tells them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reenact.errors import InputError
from reenact.redact import keys

_RACE = """
import sys, time
from pathlib import Path
from reenact.redact import keys
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
print(keys.of_store(Path(sys.argv[1]), {}).value.hex())
"""


def test_a_store_gets_a_key_once_for_its_owner_alone(tmp_path: Path) -> None:
    store = tmp_path / "store"
    first, second = keys.of_store(store, {}), keys.of_store(store, {})
    assert first.value == second.value
    assert len(first.value) == 32
    assert not first.shared
    assert stat.S_IMODE((store / keys.FILE).stat().st_mode) == 0o600
    assert [each.name for each in store.iterdir()] == [keys.FILE]
    assert keys.of_store(tmp_path / "other", {}).value != first.value


def test_processes_that_begin_at_once_get_one_key(tmp_path: Path) -> None:
    store, go = tmp_path / "store", tmp_path / "go"
    racing = [
        subprocess.Popen([sys.executable, "-c", _RACE, str(store), str(go)], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    go.touch()
    said = {process.communicate(timeout=60)[0].strip() for process in racing}
    assert len(said) == 1
    assert said == {keys.of_store(store, {}).value.hex()}


def test_threads_that_begin_at_once_get_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = {key.value for key in pool.map(keys.of_store, [tmp_path / "store"] * 64, [dict[str, str]()] * 64)}
    assert len(found) == 1


def test_without_links_the_key_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with ThreadPoolExecutor(8) as pool:
        found = {key.value for key in pool.map(keys.of_store, [tmp_path / "store"] * 32, [dict[str, str]()] * 32)}
    assert len(found) == 1
    assert [each.name for each in (tmp_path / "store").iterdir()] == [keys.FILE]


def test_where_nothing_can_be_written_the_run_has_a_key_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    key = keys.of_store(tmp_path / "store", {})
    assert key.problem
    assert key.source == "this run"
    handed = keys.of_store(tmp_path / "store", {keys.OF_THIS_RUN: key.value.hex()})
    assert handed.value == key.value


def test_a_damaged_key_file_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_PATIENCE_S", 0.05)
    (tmp_path / keys.FILE).write_text("not a key")
    assert keys.of_store(tmp_path, {}).problem.endswith("holds no key: 64 hexadecimal digits are expected")
    assert (tmp_path / keys.FILE).read_text() == "not a key"


def test_a_configured_key_is_the_variable_then_what_the_policy_names(tmp_path: Path) -> None:
    file = tmp_path / "project.key"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    environ = {keys.VARIABLE: "from the variable", "OURS": "x" * 20}
    assert keys.configured({}) is None
    by_file = keys.configured({}, file=file)
    by_name = keys.configured({"OURS": "x" * 20}, variable="OURS")
    by_variable = keys.configured(environ, variable="OURS")
    assert by_file is not None
    assert by_file.value == b"0123456789abcdef0123456789abcdef"
    assert by_name is not None
    assert by_name.value == b"x" * 20
    assert by_variable is not None
    assert by_variable.value == b"from the variable"
    assert all(key.shared for key in (by_file, by_name, by_variable))


def test_a_key_that_is_missing_or_short_is_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="OURS: the policy takes its key from this variable, which is not set"):
        keys.configured({}, variable="OURS")
    with pytest.raises(InputError, match="cannot be read"):
        keys.configured({}, file=tmp_path / "none")
    (tmp_path / "short").write_text("hush")
    with pytest.raises(InputError, match="shorter than 16 bytes") as refused:
        keys.configured({}, file=tmp_path / "short")
    assert "hush" not in str(refused.value)


def test_a_key_is_named_and_never_shown(tmp_path: Path) -> None:
    key = keys.of_store(tmp_path, {})
    assert len(key.id) == 8
    assert key.id == keys.key_id(key.value)
    assert key.id not in key.value.hex()
    assert key.value.hex() not in repr(key)
    assert repr(key.value) not in repr(key)
