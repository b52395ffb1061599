"""Sending spans out, and telling the truth about what became of them.

In come `SpanRecord`s, out comes per backend how many it accepted, refused or never got (`delivery.Report`). A backend
is a `sender.Sender`: one `send` is one request with one `outcome.Outcome`; splitting, patience and several backends at
once are done here for all of them. To add a kind of backend, write a sender and give it a URL scheme in `backends.py`.
"""
