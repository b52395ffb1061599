"""Attributes that a fork writes on its spans."""

from typing import Final

FORK_PARENT: Final = "reenact.fork.parent"
"""On the root of a fork: the trace id of the run that it was forked from."""
FORK_AT: Final = "reenact.fork.at"
"""On the root of a fork: the label of the call at which it was; absent where from the beginning."""
FORK_CHANGES: Final = "reenact.fork.changes"
"""On the root of a fork, JSON: `[{"call", "id", "path", "from", "to"}]`."""
FORK_PARAMETERS: Final = "reenact.fork.parameters"
"""On the root of a fork, JSON: what every model call from there on was asked with, by name of the field."""
FORK_CHANGED: Final = "reenact.fork.changed"
"""On the calls of a fork whose question or answer was changed; always true."""

FORK_ASKED: Final = "reenact.fork.asked"
"""On a model call of a fork that went out with another request than the program made: the body that it made."""
