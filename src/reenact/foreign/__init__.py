"""What readers of other people's traces share: OTLP's JSON, dumped spans, messages of any spelling, rebuilt calls.

In: JSON as files and spans of others have it. Out: `SpanRecord`s, `Message`s, `Call`s and their outcomes; what is of no
known kind stays as it came, and nothing is guessed in silence. Known here are the spellings that several emitters have
in common, and how a live question agrees with what a trace kept of one (`partial_question`). Never known is a single
vendor (that is a member of `formats` or `dialects`), a file's name, or a store. To add a spelling that two readers
need, write a module here; one that a single reader needs stays with that reader.
"""
