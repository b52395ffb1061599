"""Where spans rest between a recording and its replay.

In: `SpanRecord`s, in any order and more than once. Out: the same by trace id, and the facts by which runs are found.
`directory` is the default: a folder, no server. A store knows nothing of calls or runs; what it indexes it is told.
"""
