"""How calls are spelled in span attributes: each module knows one vendor's convention.

In: a `Call` and its `Outcome`, or any `SpanRecord`. Out: attributes, or the call and outcome that a span stands for.
A dialect decodes whatever it is given and never raises. What it does not understand stays among the call's attributes,
and what its emitter never keeps is a `Loss`. What we record with is written as well, all others are only read. To add
one, write a module that declares a `DIALECT` (`contracts.dialect.Dialect`), which reads with `encodings` and hands a
`Reading` to `encodings.semconv.call`, and cases in `tests/golden/dialects`; run `make index`.
"""
