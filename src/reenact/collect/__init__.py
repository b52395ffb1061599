"""The embedded collector: spans come in over OTLP and are durable before they are acknowledged.

In: OTLP requests over HTTP and gRPC. Out: frames in the store (`disk.frames`), by way of one writer. To add a
protocol, add a connection beside `http1` and `grpc` that hands the bodies of requests to the same desk.
"""
