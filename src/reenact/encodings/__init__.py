"""Encodings: the few ways in which all vendors write messages down.

In comes what a span, its events or a record said, out come `Asked` and `Answered` (`values.message`). Tool
definitions of every spelling come out as OpenAI's chat completions nest them; what is of no known kind stays as it
came, and nothing raises. A dialect is a combination of them. A new encoding is a module here; nothing lists the
modules, and none knows another.
"""
