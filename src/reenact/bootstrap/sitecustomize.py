"""Imported by the interpreter at start-up; starts the recorder or the replayer, then whatever it hides."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is not worth its import time here


def _next_in_line() -> None:
    """Run the sitecustomize that this one hides."""
    elsewhere = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]  # noqa: PTH100 - before the site is set up, nothing more is imported
    spec = PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _start() -> None:
    try:
        from reenact.bootstrap.start import start
    except ImportError as error:
        sys.stderr.write(f"reenact: {sys.executable} cannot import reenact ({error}); this program is not recorded\n")
        return
    start()


_next_in_line()
_start()
