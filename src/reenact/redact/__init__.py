"""Spans lose what must not leave, before they are written down anywhere.

In: the strings of a span. Out: the same, with each secret replaced as the policy says, and the count by class. `plan`
says what to look for and what becomes of it; `gate` finds where in a text anything may stand, `scan` what does,
`decode` opens what is spelled otherwise; `documents`, `whole_document_scan` and `conversation_cache` keep JSON as it is
and look at nothing twice; `text_redactor` and `engine` put that together, `split_secrets` for streams; `processor`
stands around any OpenTelemetry span processor. To add a detector, add a row to a module of `reenact.detectors`.
"""
