// Sends the spans of a file through the official OTLP exporters for JavaScript.
//
//   node send.mjs FILE proto|json|grpc URL none|gzip SPANS_IN_A_REQUEST

import { readFileSync } from 'node:fs';
import { OTLPTraceExporter as OverGrpc } from '@opentelemetry/exporter-trace-otlp-grpc';
import { OTLPTraceExporter as AsJson } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as AsProtobuf } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';

const [file, over, url, compression, size] = process.argv.slice(2);
const given = JSON.parse(readFileSync(file, 'utf8'));

const named = (list) => Object.fromEntries(list.map(({ key, value }) => [key, value]));
const instant = (nanoseconds) => [Number(BigInt(nanoseconds) / 1000000000n), Number(BigInt(nanoseconds) % 1000000000n)];
const context = (traceId, spanId) => ({ traceId, spanId, traceFlags: 1 });

const resource = resourceFromAttributes(named(given.resource));
const spans = given.spans.map((span) => ({
  name: span.name,
  kind: Math.max(span.kind - 1, 0), // the enumeration of its API begins at INTERNAL
  spanContext: () => context(span.traceId, span.spanId),
  parentSpanContext: span.parentId ? context(span.traceId, span.parentId) : undefined,
  startTime: instant(span.start),
  endTime: instant(span.end),
  duration: [0, 0],
  status: { code: span.status, message: span.message || undefined },
  attributes: named(span.attributes),
  events: span.events.map((event) => ({
    name: event.name,
    time: instant(event.time),
    attributes: named(event.attributes),
    droppedAttributesCount: 0,
  })),
  links: span.links.map((link) => ({
    context: context(link.traceId, link.spanId),
    attributes: named(link.attributes),
    droppedAttributesCount: 0,
  })),
  ended: true,
  resource,
  instrumentationScope: given.scope,
  droppedAttributesCount: 0,
  droppedEventsCount: 0,
  droppedLinksCount: 0,
}));

const Exporter = { proto: AsProtobuf, json: AsJson, grpc: OverGrpc }[over];
const exporter = new Exporter({ url, compression, timeoutMillis: 60000 });
for (let at = 0; at < spans.length; at += Number(size)) {
  const result = await new Promise((done) => exporter.export(spans.slice(at, at + Number(size)), done));
  if (result.code !== 0) {
    console.error(result.error);
    process.exit(1);
  }
}
await exporter.shutdown();
