"""Make a virtual environment that has pip, on a machine that may have neither ensurepip nor pip.

    python3 .ci/bootstrap.py FOLDER

Tried in this order: the standard library's `venv`; `venv` without pip, filled by the pip of this Python; `virtualenv`;
`venv` without pip, filled from the package index that pip itself is configured to use (PIP_INDEX_URL or a pip.conf).
No index is named here: where none is configured, the last way ends in a message that says what to install.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

OLDEST = (3, 11)
WHEEL = re.compile(r"pip-(\d+(?:\.\d+)*)-py3-none-any\.whl")
ADVICE = (
    "Install python3-venv (Debian, Ubuntu: apt-get install python3-venv) or pip, or set PIP_INDEX_URL to the simple\n"
    "  API of your package index, and run make again."
)


class Failed(Exception):
    """One way of making the environment does not work here; the message says why."""


class Link(NamedTuple):
    """A pip wheel that an index page offers."""

    version: tuple[int, ...]
    url: str
    sha256: str


class Page(HTMLParser):
    """The wheels of pip on a page of the simple repository API (PEP 503, PEP 592, PEP 658 attributes ignored).

    Left out: pre-releases, yanked files, files that want a newer Python, files without a sha256 digest.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.links = url, list[Link]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read one anchor."""
        given = dict(attrs)
        url, _, digest = urllib.parse.urljoin(self.url, given.get("href") or "").partition("#sha256=")
        wheel = WHEEL.fullmatch(urllib.parse.unquote(url.rpartition("/")[2]))
        floor = re.search(r">=\s*(\d+)\.(\d+)", given.get("data-requires-python") or "")
        too_new = floor is not None and (int(floor[1]), int(floor[2])) > sys.version_info
        if tag == "a" and wheel and digest and not too_new and "data-yanked" not in given:
            self.links.append(Link(tuple(map(int, wheel[1].split("."))), url, digest))


def main(folder: Path) -> int:
    """Make the environment and give the exit code."""
    if sys.version_info < OLDEST:
        print(f"error: Python {sys.version.split()[0]} is older than 3.11.", file=sys.stderr)
        return 1
    if usable(folder):
        return 0
    ways: tuple[Callable[[Path], None], ...] = (with_ensurepip, with_own_pip, with_virtualenv, with_index)
    reasons: list[str] = []
    for way in ways:
        shutil.rmtree(folder, ignore_errors=True)
        try:
            way(folder)
        except Failed as failure:
            reasons.append(f"  {way.__name__.replace('_', ' ')}: {failure}")
            continue
        if usable(folder):
            return 0
        reasons.append(f"  {way.__name__.replace('_', ' ')}: the environment has no working pip")
    shutil.rmtree(folder, ignore_errors=True)
    print(f"error: {sys.executable} cannot make a virtual environment in {folder}.", file=sys.stderr)
    print(*reasons, f"  {ADVICE}", sep="\n", file=sys.stderr)
    return 1


def python_of(folder: Path) -> str:
    """Give the path of the environment's interpreter."""
    return str(folder / "bin" / "python")


def usable(folder: Path) -> bool:
    """Tell whether the environment has a Python that is new enough and a pip that starts."""
    wanted = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    return Path(python_of(folder)).exists() and run(python_of(folder), "-I", "-c", wanted).returncode == 0


def with_ensurepip(folder: Path) -> None:
    """Let the standard library do all of it."""
    must(sys.executable, "-m", "venv", str(folder))


def with_own_pip(folder: Path) -> None:
    """Let the pip of this Python (22.3 or later) install itself into an empty environment."""
    must(sys.executable, "-m", "pip", "--version")
    must(sys.executable, "-m", "venv", "--without-pip", str(folder))
    must(sys.executable, "-m", "pip", "--python", python_of(folder), "install", "--quiet", "pip")


def with_virtualenv(folder: Path) -> None:
    """Let virtualenv do it, which carries a pip of its own."""
    program = shutil.which("virtualenv")
    command = [program] if program else [sys.executable, "-m", "virtualenv"]
    must(*command, "--quiet", "--python", sys.executable, str(folder))


def with_index(folder: Path) -> None:
    """Fetch the newest pip wheel from the configured index, check its digest, and let it install itself."""
    settings = pip_settings()
    index = settings.get("index-url")
    if not index:
        raise Failed("pip is not here, and neither PIP_INDEX_URL nor a pip.conf names a package index")
    trust = ssl.create_default_context(cafile=settings.get("cert"))
    page_url = f"{index.rstrip('/')}/pip/"
    page = Page(page_url)
    page.feed(fetch(page_url, trust).decode("utf-8", "replace"))
    if not page.links:
        raise Failed(f"{without_secret(page_url)} offers no pip wheel with a sha256 digest for this Python")
    newest = max(page.links)
    wheel = fetch(newest.url, trust)
    if hashlib.sha256(wheel).hexdigest() != newest.sha256:
        raise Failed(f"{without_secret(newest.url)} is not what the index says: its sha256 differs")
    must(sys.executable, "-m", "venv", "--without-pip", str(folder))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / newest.url.rpartition("/")[2]
        path.write_bytes(wheel)
        must(python_of(folder), "-I", str(path / "pip"), "install", "--quiet", "--no-index", "--no-deps", str(path))


def pip_settings() -> dict[str, str]:
    """Read what pip would: its configuration files, the later ones first in rank, then the environment."""
    settings: dict[str, str] = {}
    for path in pip_files():
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip will name the place as soon as it runs
        for section in ("global", "install"):
            if parser.has_section(section):
                settings.update(parser.items(section))
    for name in ("index-url", "cert"):
        value = os.environ.get("PIP_" + name.upper().replace("-", "_"))
        if value:
            settings[name] = value
    return settings


def pip_files() -> Iterator[Path]:
    """Give the places of pip's configuration files, in the order in which they override each other."""
    named = os.environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    for folder in os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":"):
        yield Path(folder) / "pip" / "pip.conf"
    yield Path("/etc/pip.conf")
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is no home
    yield home / ".pip" / "pip.conf"
    yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    if named:
        yield Path(named)


def fetch(url: str, trust: ssl.SSLContext) -> bytes:
    """Get a page or file. A user and password in the URL become basic authentication (RFC 7617)."""
    parts = urllib.parse.urlsplit(url)
    accept = {"Accept": "text/html, */*;q=0.1"}
    request = urllib.request.Request(without_secret(url), headers=accept)  # noqa: S310 - the user's own index
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        # unredirected: the secret is for this host alone
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=60, context=trust) as reply:  # noqa: S310 - as above
            return reply.read()
    except (OSError, ValueError) as failure:
        raise Failed(f"{without_secret(url)}: {failure}") from failure


def without_secret(url: str) -> str:
    """Give the URL without its user and password."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def must(*command: str) -> None:
    """Run a command; raise `Failed` with the last line that it printed if it does not succeed."""
    done = run(*command)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"{command[0]} ended with {done.returncode}")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command quietly and keep what it printed, both channels in one."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: bootstrap.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
