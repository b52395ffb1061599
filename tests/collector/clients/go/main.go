// Sends the spans of a file through the official OTLP exporters for Go.
//
//	send FILE http|grpc ADDRESS none|gzip SPANS_IN_A_REQUEST
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

type named struct {
	Key   string          `json:"key"`
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

type event struct {
	Name       string  `json:"name"`
	Time       string  `json:"time"`
	Attributes []named `json:"attributes"`
}

type link struct {
	TraceID    string  `json:"traceId"`
	SpanID     string  `json:"spanId"`
	Attributes []named `json:"attributes"`
}

type span struct {
	TraceID    string  `json:"traceId"`
	SpanID     string  `json:"spanId"`
	ParentID   string  `json:"parentId"`
	Name       string  `json:"name"`
	Kind       int     `json:"kind"`
	Start      string  `json:"start"`
	End        string  `json:"end"`
	Status     int     `json:"status"`
	Message    string  `json:"message"`
	Attributes []named `json:"attributes"`
	Events     []event `json:"events"`
	Links      []link  `json:"links"`
}

type stream struct {
	Resource []named `json:"resource"`
	Scope    struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"scope"`
	Spans []span `json:"spans"`
}

func main() {
	if err := send(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func send(file, over, address, compression, size string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var given stream
	if err := json.Unmarshal(text, &given); err != nil {
		return err
	}
	many, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	exporter, err := made(ctx, over, address, compression)
	if err != nil {
		return err
	}
	spans := snapshots(given)
	for at := 0; at < len(spans); at += many {
		if err := exporter.ExportSpans(ctx, spans[at:min(at+many, len(spans))]); err != nil {
			return err
		}
	}
	return exporter.Shutdown(ctx)
}

func made(ctx context.Context, over, address, compression string) (*otlptrace.Exporter, error) {
	if over == "grpc" {
		options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure()}
		if compression == "gzip" {
			options = append(options, otlptracegrpc.WithCompressor("gzip"))
		}
		return otlptracegrpc.New(ctx, options...)
	}
	options := []otlptracehttp.Option{otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure()}
	if compression == "gzip" {
		options = append(options, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	}
	return otlptracehttp.New(ctx, options...)
}

func snapshots(given stream) []sdktrace.ReadOnlySpan {
	from := resource.NewSchemaless(attributes(given.Resource)...)
	scope := instrumentation.Scope{Name: given.Scope.Name, Version: given.Scope.Version}
	var stubs tracetest.SpanStubs
	for _, each := range given.Spans {
		stub := tracetest.SpanStub{
			Name:                 each.Name,
			SpanContext:          contextOf(each.TraceID, each.SpanID),
			SpanKind:             trace.SpanKind(each.Kind),
			StartTime:            instant(each.Start),
			EndTime:              instant(each.End),
			Attributes:           attributes(each.Attributes),
			Status:               sdktrace.Status{Code: status(each.Status), Description: each.Message},
			Resource:             from,
			InstrumentationScope: scope,
		}
		if each.ParentID != "" {
			stub.Parent = contextOf(each.TraceID, each.ParentID)
		}
		for _, one := range each.Events {
			stub.Events = append(stub.Events, sdktrace.Event{
				Name: one.Name, Time: instant(one.Time), Attributes: attributes(one.Attributes),
			})
		}
		for _, one := range each.Links {
			stub.Links = append(stub.Links, sdktrace.Link{
				SpanContext: contextOf(one.TraceID, one.SpanID), Attributes: attributes(one.Attributes),
			})
		}
		stubs = append(stubs, stub)
	}
	return stubs.Snapshots()
}

func contextOf(traceID, spanID string) trace.SpanContext {
	first, err := trace.TraceIDFromHex(traceID)
	must(err)
	second, err := trace.SpanIDFromHex(spanID)
	must(err)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: first, SpanID: second, TraceFlags: trace.FlagsSampled})
}

func status(number int) codes.Code {
	return []codes.Code{codes.Unset, codes.Ok, codes.Error}[number]
}

func instant(nanoseconds string) time.Time {
	number, err := strconv.ParseInt(nanoseconds, 10, 64)
	must(err)
	return time.Unix(0, number)
}

func attributes(given []named) []attribute.KeyValue {
	var made []attribute.KeyValue
	for _, each := range given {
		key := attribute.Key(each.Key)
		switch each.Type {
		case "string":
			made = append(made, key.String(read[string](each.Value)))
		case "int":
			made = append(made, key.Int64(read[int64](each.Value)))
		case "double":
			made = append(made, key.Float64(read[float64](each.Value)))
		case "bool":
			made = append(made, key.Bool(read[bool](each.Value)))
		case "strings":
			made = append(made, key.StringSlice(read[[]string](each.Value)))
		case "ints":
			made = append(made, key.Int64Slice(read[[]int64](each.Value)))
		case "doubles":
			made = append(made, key.Float64Slice(read[[]float64](each.Value)))
		default:
			panic(each.Type)
		}
	}
	return made
}

func read[T any](text json.RawMessage) T {
	var value T
	must(json.Unmarshal(text, &value))
	return value
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
