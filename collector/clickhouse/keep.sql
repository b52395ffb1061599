-- Keeps for ever every trace in which something went wrong. Run it daily, before the 30 days of `standard` are over.
ALTER TABLE otel_traces UPDATE Retention = 'kept'
WHERE Retention = 'standard' AND TraceId IN (SELECT TraceId FROM otel_runs GROUP BY TraceId HAVING sum(Errors) > 0);
