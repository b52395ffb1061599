"""Values become what a person or a script reads: lines of plain text, or one JSON document.

In: runs, verdicts, comparisons, results of replays. Out: `list[str]` from `tree`, `listing`, `diff`, `replay` and
`doctor`, one file a medium; JSON objects from `documents`, the contract of every `--json`. Nothing here decides, reads
a file or writes to a terminal: the door prints `paint.painted(lines, color=…)`. Whatever came out of a trace passes
`safe`. To add a report, write one file with a function that gives lines.
"""
