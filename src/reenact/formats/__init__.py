"""Spellings of spans in bytes, on disk and on the wire.

In comes a stream of bytes, out come `SpanRecord`s and `LogRecord`s one at a time; and back, where a format is written.
A format interprets nothing: dialects do.
To add one, write a module here that declares a `contracts.format.Format` as `FORMAT`; it is found by looking, and the
laws in `tests/laws/test_formats.py` hold for it at once. `make index` then notes by what marks a file of its is known.
"""
