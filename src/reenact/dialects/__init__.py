"""How calls are spelled in span attributes: each module knows one vendor's convention, both ways.

In: a `Call` and its `Outcome`, or any `SpanRecord`. Out: attributes, or the call and outcome that a span stands for. A
dialect decodes whatever it is given and never raises; what it does not understand stays among the call's attributes. To
add one, write a module that declares a `DIALECT` (`contracts.dialect.Dialect`) and cases in `tests/golden/dialects`,
and run `make index`.
"""
