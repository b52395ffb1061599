"""The embedded collector: spans come in over OTLP and are durable before they are acknowledged.

In: OTLP requests over HTTP and gRPC. Out: frames in the store. To add a protocol, add a server beside `http` and `grpc`
that hands request bodies to the same intake.
"""
