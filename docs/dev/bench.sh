#!/usr/bin/env bash
# Measures acescope side by side with what a user would otherwise use, and prints medians and ratios.
#
#   bash docs/dev/bench.sh [-quick] [-json] [-runs N] [-profile DIR] [-acescope PROGRAM] [SECTION...]
#
# Sections: start, tail, tasks, growth, list, idle, console, frame, scroll, history, logs, diff, step, verify, hook,
# transcripts, stream, runs, dispatch, cluster-tasks, cluster-list, evaluation, flows. All of them take about an hour on two cores.
# Needs Go only; the section logs also uses jq, and the sections of a cluster are skipped without PostgreSQL and openssl. Servers
# listen on loopback. Everything is written below .cache/bench: programs, the runs
# that list reads (created once, some minutes; remove runs-* and history-* to create them again), a cluster of 2.5 GB
# (remove cluster-*), and temporary data directories.
#
# Build bin/acescope first: make build. One section alone, here the lists of 100,000 runs on a cluster against
# temporal workflow list, in 10 minutes (20 the first time):
#
#   bash docs/dev/bench.sh -runs 5 cluster-list
#
# The environment: ACESCOPE is the program to measure (bin/acescope), such as that of an older version; TEMPORAL is the
# temporal command to compare with (built once, some minutes); ACESCOPE_STREAMS is a directory with recorded output of
# agents, in a directory for each; CLUSTER_PORT is the first of 16 ports of the cluster (7700), CLUSTER_BIN a directory
# with its programs (built once, some minutes).
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=$PWD/.cache/bench
mkdir -p "$cache/bin"
go test -c -tags bench -o "$cache/bin/acescope-bench" ./cmd/acescope-bench
exec "$cache/bin/acescope-bench" -acescope "${ACESCOPE:-bin/acescope}" -temporal "${TEMPORAL:-}" -dir "$cache" "$@"
