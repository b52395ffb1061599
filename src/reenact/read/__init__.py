"""Reading: from a path to spans.

In comes the name of a file, a folder or `-`, out come `SpanRecord`s and `LogRecord`s, whatever the files are packed and
spelled in. A new spelling is a member of `reenact.formats`; a new way of packing is a branch of `unpack.py`. A big file
is not read whole: `file_index.py` notes where in it each trace lies.
"""
