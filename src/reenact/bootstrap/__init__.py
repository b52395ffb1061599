"""What makes a program record itself with no change to its code.

In: this folder at the head of PYTHONPATH, put there by `reenact run` and `reenact replay`, as
`opentelemetry-instrument` does it. Out: the interpreter imports `sitecustomize` from here at start-up, which starts
the recorder or the replayer and then hands over to whatever `sitecustomize` this one stands in front of. Python
children inherit the variable and join.
"""
