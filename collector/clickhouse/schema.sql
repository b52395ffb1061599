-- The tables of reenact in ClickHouse (24.8 or newer), for the Collector's `clickhouse` exporter with create_schema: false.
--
-- otel_traces      one row a span, with the exporter's own columns. Sorted by trace: one trace is a few granules, and a
--                  conversation's growing prefix lies beside itself, which is what compresses. ReplacingMergeTree: a span
--                  that was sent twice becomes one; readers fold by span id before that happens.
-- otel_runs        one row a trace: what `reenact ls` filters by. Filled by the view below, merged by itself. Models and
--                  tools are told of reenact's own spans; a trace with others (Foreign) is read to be judged.
-- otel_logs        GenAI events that carry payloads, with the exporter's columns, sorted by trace as well.
--
-- Attributes are Map columns: a trace is read whole, and reading one from JSON columns costs a file for each path.
-- What is asked across traces (model, tool, user, session, tokens) has columns of its own in otel_runs.
--
-- Retention: `standard` expires after 30 days, `kept` never, `short` after 3. A resource attribute `reenact.retention`
-- says so when a span arrives; keep.sql changes it later. Change the days with ALTER TABLE ... MODIFY TTL.

CREATE TABLE IF NOT EXISTS otel_traces
(
    Timestamp          DateTime64(9) CODEC(Delta(8), ZSTD(1)),
    TraceId            String CODEC(ZSTD(1)),
    SpanId             String CODEC(ZSTD(1)),
    ParentSpanId       String CODEC(ZSTD(1)),
    TraceState         String CODEC(ZSTD(1)),
    SpanName           LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind           LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName        LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName          LowCardinality(String) CODEC(ZSTD(1)),
    ScopeVersion       LowCardinality(String) CODEC(ZSTD(1)),
    SpanAttributes     Map(LowCardinality(String), String) CODEC(ZSTD(3)),
    Duration           UInt64 CODEC(ZSTD(1)),
    StatusCode         LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage      String CODEC(ZSTD(1)),
    Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    Links Nested (TraceId String, SpanId String, TraceState String, Attributes Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    Retention          LowCardinality(String) DEFAULT if(ResourceAttributes['reenact.retention'] IN ('kept', 'short'), ResourceAttributes['reenact.retention'], 'standard')
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(Timestamp)
ORDER BY (TraceId, Timestamp, SpanId)
TTL toDateTime(Timestamp) + INTERVAL 30 DAY DELETE WHERE Retention = 'standard',
    toDateTime(Timestamp) + INTERVAL 3 DAY DELETE WHERE Retention = 'short'
SETTINGS index_granularity = 512;

CREATE TABLE IF NOT EXISTS otel_runs
(
    TraceId   String CODEC(ZSTD(1)),
    Start     SimpleAggregateFunction(min, DateTime64(9)),
    End       SimpleAggregateFunction(max, DateTime64(9)),
    Spans     SimpleAggregateFunction(sum, UInt64),
    Errors    SimpleAggregateFunction(sum, UInt64),
    Recording SimpleAggregateFunction(max, String),
    Users     SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    Sessions  SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    Tenants   SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    Models    SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    Tools     SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    Foreign   SimpleAggregateFunction(max, UInt8)
)
ENGINE = AggregatingMergeTree
ORDER BY TraceId
SETTINGS index_granularity = 512;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_runs_of_traces TO otel_runs AS
SELECT
    TraceId,
    min(Timestamp) AS Start,
    max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans,
    countIf(StatusCode IN ('Error', 'STATUS_CODE_ERROR')) AS Errors,
    max(ResourceAttributes['reenact.recording.id']) AS Recording,
    groupUniqArrayArray(arrayFilter(v -> v != '', [SpanAttributes['user.id'], SpanAttributes['enduser.id']])) AS Users,
    groupUniqArrayArray(arrayFilter(v -> v != '', [SpanAttributes['session.id'], SpanAttributes['gen_ai.conversation.id']])) AS Sessions,
    groupUniqArrayArray(arrayFilter(v -> v != '', [SpanAttributes['reenact.tenant']])) AS Tenants,
    groupUniqArrayArray(arrayFilter(v -> v != '', [SpanAttributes['llm.model_name'], SpanAttributes['gen_ai.request.model'], SpanAttributes['gen_ai.response.model'], SpanAttributes['embedding.model_name']])) AS Models,
    groupUniqArrayArray(arrayFilter(v -> v != '', arrayConcat([SpanAttributes['tool.name']], mapValues(mapFilter((k, v) -> endsWith(k, '.tool_call.function.name'), SpanAttributes))))) AS Tools,
    max(ScopeName != 'reenact') AS Foreign
FROM otel_traces
WHERE TraceId != ''
GROUP BY TraceId;

CREATE TABLE IF NOT EXISTS otel_logs
(
    Timestamp          DateTime64(9) CODEC(Delta(8), ZSTD(1)),
    TraceId            String CODEC(ZSTD(1)),
    SpanId             String CODEC(ZSTD(1)),
    TraceFlags         UInt8,
    SeverityText       LowCardinality(String) CODEC(ZSTD(1)),
    SeverityNumber     UInt8,
    ServiceName        LowCardinality(String) CODEC(ZSTD(1)),
    Body               String CODEC(ZSTD(3)),
    ResourceSchemaUrl  LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeSchemaUrl     LowCardinality(String) CODEC(ZSTD(1)),
    ScopeName          String CODEC(ZSTD(1)),
    ScopeVersion       LowCardinality(String) CODEC(ZSTD(1)),
    ScopeAttributes    Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    LogAttributes      Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    EventName          LowCardinality(String) CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(Timestamp)
ORDER BY (TraceId, Timestamp)
TTL toDateTime(Timestamp) + INTERVAL 30 DAY
SETTINGS index_granularity = 512;
