"""Keeping recordings: journals become traces in a store, are indexed, proven, mended, sent on and taken away again.

In: journals of processes, frames of a collector, runs that are named. Out: a store that `find` reads, and spans that
are owed to backends. Known here is the order of the rooms that keep (`stores`, `export`, `redact`, `collect`). Never
known is how a run is replayed: nothing here starts a program. To add a duty of a store, write a verb here and call it
from `leftovers` or from a command.
"""
