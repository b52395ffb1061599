"""Reading: from a path to spans.

In comes the name of a file or `-`, out come `SpanRecord`s, whatever the file is packed and spelled in. A new spelling
is a member of `reenact.formats`; a new way of packing is a branch of `unpack.py`.
"""
