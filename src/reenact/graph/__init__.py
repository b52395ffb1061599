"""Spans become runs.

In: `SpanRecord`s of any order, number of traces and completeness. Out: `values.run.Run`: calls in causal order,
parents resolved, duplicates, projections and twins folded, tool calls joined to the model calls that asked for them;
and the verdict, computed from the graph alone. `build` makes the graph, `twins` finds calls that several emitters saw,
`join` ties tools to models, `verdict` judges it, `select` finds runs by their facts.
"""
