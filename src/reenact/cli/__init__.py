"""The command line: each command parses, calls the pipeline, prints.

In: words and REENACT_* variables. Out: one JSON document on stdout with `--json`, else text; diagnostics on stderr;
an exit code: 0 same or done, 1 diverged, 2 usage, 3 input or configuration, 125 cannot judge. To add a command, write
a module with a click command and a row in `main.COMMANDS`.
"""
