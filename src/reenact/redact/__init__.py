"""Spans lose what must not leave, before they are written down anywhere.

In: the strings of a span. Out: the same, with each secret replaced by a keyed token, and the count by class. `rules`
says what to look for, `engine` walks texts, JSON and attributes, `processor` puts it around any OpenTelemetry span
processor. To add a detector, add a row to `rules.RULES`.
"""
