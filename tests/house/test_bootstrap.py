from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pip
import pytest

# What a Python on a bare machine may lack; each is taken away by a module put on the path before it.
ENSUREPIP = (
    "sitecustomize",
    """
import sys, venv

def no_ensurepip(self, context):
    sys.exit("The virtual environment was not created successfully because ensurepip is not available.")

venv.EnvBuilder._setup_pip = no_ensurepip
""",
)
PIP = "pip", "raise ImportError('no pip here')"
VIRTUALENV = "virtualenv", "raise ImportError('no virtualenv here')"

Bootstrap = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the pip that runs here, packed again."""
    site = Path(pip.__file__).parent.parent
    path = tmp_path_factory.mktemp("wheel") / f"pip-{pip.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for folder in (site / "pip", site / f"pip-{pip.__version__}.dist-info"):
            for file in sorted(folder.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    packed.write(file, file.relative_to(site))
    return path


@pytest.fixture
def bootstrap(root: Path, tmp_path: Path) -> Bootstrap:
    """Run the script in an empty home, with nothing configured, without what it `lacks`."""

    def run(
        folder: Path, *, lacks: Sequence[tuple[str, str]] = (), **settings: str
    ) -> subprocess.CompletedProcess[str]:
        shadow = tmp_path / "shadow"
        shadow.mkdir()
        for name, source in lacks:
            (shadow / f"{name}.py").write_text(source, encoding="utf-8")
        (tmp_path / "home").mkdir()
        surroundings = {"HOME": str(tmp_path / "home"), "PATH": "", "PYTHONPATH": str(shadow)}
        surroundings |= {"XDG_CONFIG_DIRS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull} | settings
        command = [sys.executable, str(root / ".ci" / "bootstrap.py"), str(folder)]
        return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)

    return run


@contextmanager
def index(folder: Path, wheel: Path, *, digest: str | None = None) -> Iterator[tuple[str, list[str | None]]]:
    """Serve `wheel` by the simple repository API; give the address, and the credentials of each request."""
    digest = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "simple" / "pip").mkdir(parents=True)
    (folder / wheel.name).write_bytes(wheel.read_bytes())
    decoys = "".join(
        f'<a href="../../{name}#sha256={"0" * 64}" {attribute}>{name}</a>'
        for name, attribute in [
            ("pip-999.0-py3-none-any.whl", 'data-yanked="broken"'),
            ("pip-998.0-py3-none-any.whl", 'data-requires-python="&gt;=99.1"'),
            ("pip-997.0b1-py3-none-any.whl", ""),
            ("pip-0.1-py3-none-any.whl", ""),
            ("pip-996.0.tar.gz", ""),
        ]
    )
    link = f'<a href="../../{wheel.name}#sha256={digest}" data-requires-python="&gt;=3.9">{wheel.name}</a>'
    page = f"<!DOCTYPE html><html><body>{decoys}{link}<a href='../../pip-995.0-py3-none-any.whl'>x</a></body></html>"
    (folder / "simple" / "pip" / "index.html").write_text(page, encoding="utf-8")
    seen: list[str | None] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            super().do_GET()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}/simple", seen
    finally:
        server.shutdown()
        server.server_close()


def pip_works(folder: Path) -> bool:
    command = [str(folder / "bin" / "python"), "-I", "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_ensurepip_is_enough(tmp_path: Path, bootstrap: Bootstrap) -> None:
    done = bootstrap(tmp_path / "made", lacks=(PIP, VIRTUALENV))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert pip_works(tmp_path / "made")


@pytest.mark.slow
def test_without_ensurepip_the_pip_of_this_python_installs_itself(
    tmp_path: Path, bootstrap: Bootstrap, wheel: Path
) -> None:
    made = tmp_path / "made"
    wheels = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.parent)}
    done = bootstrap(made, lacks=(ENSUREPIP, VIRTUALENV), **wheels)
    assert (done.returncode, done.stderr) == (0, "")
    assert pip_works(made)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["environment", "file"])
def test_without_any_pip_it_comes_from_the_configured_index(
    tmp_path: Path, bootstrap: Bootstrap, wheel: Path, where: str
) -> None:
    made = tmp_path / "made"
    with index(tmp_path / "served", wheel) as (address, seen):
        url = f"http://us%40er:secret@{address}/"
        (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {url}\n", encoding="utf-8")
        settings = {"PIP_INDEX_URL": url} if where == "environment" else {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
        done = bootstrap(made, lacks=(ENSUREPIP, PIP, VIRTUALENV), **settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert pip_works(made)
    assert seen == ["Basic dXNAZXI6c2VjcmV0"] * 2  # us@er:secret, for the page and for the wheel


def test_a_wheel_that_is_not_what_the_index_says_is_refused(tmp_path: Path, bootstrap: Bootstrap, wheel: Path) -> None:
    with index(tmp_path / "served", wheel, digest="f" * 64) as (address, _):
        url = f"http://user:secret@{address}"
        done = bootstrap(tmp_path / "made", lacks=(ENSUREPIP, PIP, VIRTUALENV), PIP_INDEX_URL=url)
    assert done.returncode == 1
    assert "is not what the index says: its sha256 differs" in done.stderr
    assert "secret" not in done.stderr
    assert not (tmp_path / "made").exists()


def test_with_nothing_configured_the_message_says_what_to_do(tmp_path: Path, bootstrap: Bootstrap) -> None:
    done = bootstrap(tmp_path / "made", lacks=(ENSUREPIP, PIP, VIRTUALENV))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {sys.executable} cannot make a virtual environment in {tmp_path}/made.\n")
    assert "Install python3-venv" in done.stderr
    assert "set PIP_INDEX_URL" in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_working_environment_is_kept(tmp_path: Path, bootstrap: Bootstrap) -> None:
    made = tmp_path / "made"
    command = [sys.executable, "-m", "venv", str(made)]
    subprocess.run(command, check=True)
    (made / "mine").touch()
    assert bootstrap(made).returncode == 0
    assert (made / "mine").exists()


@pytest.mark.parametrize("path", ["", "old:gone"])
def test_no_python_new_enough_is_an_error_that_says_so(root: Path, tmp_path: Path, path: str) -> None:
    for folder in ("old", "gone"):
        (tmp_path / folder).mkdir()
    old = tmp_path / "old" / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    folders = ":".join(str(tmp_path / name) for name in path.split(":") if name)
    done = find_python(root, PATH=folders or "/nowhere")
    assert done.returncode == 1
    assert "error: no Python 3.11 or newer on PATH." in done.stderr
    assert (f"Too old or broken: {old}." in done.stderr) == bool(path)


def test_the_first_python_that_fits_runs_the_arguments(root: Path, tmp_path: Path) -> None:
    for folder, target in (("a b", "/bin/false"), ("c", sys.executable)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python3").symlink_to(target)
    done = find_python(root, PATH=f"{tmp_path}/a b:{tmp_path}/c")
    assert (done.returncode, done.stdout) == (0, "two words\n")
    assert find_python(root, PATH="/nowhere", PYTHON=sys.executable).stdout == "two words\n"
    assert "PYTHON=/bin/false does not run" in find_python(root, PATH="/nowhere", PYTHON="/bin/false").stderr


def find_python(root: Path, **surroundings: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(root / ".ci" / "python"), "-c", "import sys; print(sys.argv[1])", "two words"]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
