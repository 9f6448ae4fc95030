#!/usr/bin/env bash
# Builds bin/acescope and bin/acescope-hook and shows how many packages of those to compile are done: the first build
# compiles a Temporal server and takes minutes. usage: build.sh LDFLAGS
set -euo pipefail
mkdir -p bin
total=$(go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' ./cmd/acescope ./cmd/acescope-hook | wc -l)
every=1 end='\r'
[ -t 2 ] || { every=200 end='\n'; }
{
	go build -v -ldflags "$1" -o bin/acescope ./cmd/acescope
	go build -v -ldflags '-s -w' -o bin/acescope-hook ./cmd/acescope-hook
} 2>&1 | awk -v total="$total" -v every="$every" -v end="$end" '
	/^[^ #:]+$/ { if (++done % every == 0) printf "compiled %d of %d packages" end, done, total > "/dev/stderr"; next }
	{ print > "/dev/stderr" }
	END { if (done > 0 && every == 1) print "" > "/dev/stderr" }'
# A process keeps about 18 MB more of its program in memory if the linker wrote the file than if cp did (Linux).
cp bin/acescope bin/acescope.copy
mv bin/acescope.copy bin/acescope
