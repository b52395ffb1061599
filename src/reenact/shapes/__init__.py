"""What providers say on the wire: each module knows one provider API's own JSON and nothing else.

In: a request body, a reply body, or the JSON events of a stream. Out: `Asked` and `Answered`, and the reply that a
stream folds into. A shape knows no SDK, no span and no other shape, and never raises on a JSON object. To add one,
write a module that declares a `SHAPE` (`contracts.shape.Shape`) and a folder of cases in `tests/golden/shapes`, and run
`make index`.
"""
