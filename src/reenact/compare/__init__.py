"""Two runs, or a recording and what its replay did, become one judgement.

In: `values.run.Run`s and the entries of a replay's ledger. Out: `values.judgement.Comparison` and `ReplayResult`: every
difference that matters, the first one first, and whether it changes the path or only the wording. `content` says what
of a call is compared, `fields` where two contents differ, `pairing` which call goes with which, `align` holds two runs
against each other, `judge` a replay against its recording. To leave something out of every comparison, add it to
`content`; to have it count as wording, to `fields`.
"""
