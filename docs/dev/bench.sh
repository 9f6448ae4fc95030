#!/usr/bin/env bash
# Measures acescope against the temporal command and a bare Temporal worker, side by side.
#
#   bash docs/dev/bench.sh [-quick] [-json] [-runs N] [-profile DIR] [SECTION...]
#
# Sections: start tail tasks growth list idle console frame scroll history logs hook transcripts stream runs dispatch (all of them take about half an hour on two
# cores). Needs Go alone. Everything is written below .cache/bench: the programs, the
# closed runs that list reads (made once, some minutes; remove runs-* to make them anew),
# and data directories that are removed afterwards. Servers listen on loopback only.
#
# ACESCOPE names the program to measure (bin/acescope), TEMPORAL another temporal command.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The newest release that Go can build by itself: later ones replace a module by a
# directory that their own module does not hold.
peer=github.com/temporalio/cli/cmd/temporal@v1.5.1

cache=$PWD/.cache/bench
mkdir -p "$cache/bin"

wants() { # whether a section is asked for
  local sections=0 word
  for word in ${args[@]+"${args[@]}"}; do
    [[ $word == "$1" ]] && return 0
    case $word in start | tail | tasks | growth | list | idle | console | frame | scroll | history | logs | hook | transcripts | stream | runs | dispatch) sections=1 ;; esac
  done
  [[ $sections == 0 ]]
}
args=("$@")

acescope=${ACESCOPE:-bin/acescope}
if [[ ! -x $acescope ]]; then
  echo "no $acescope: run make build first" >&2
  exit 2
fi
temporal=${TEMPORAL:-$cache/bin/temporal}
if wants list && [[ ! -x $temporal ]]; then
  echo "building ${peer##*/}, once: this takes minutes" >&2
  GOBIN=$cache/bin go install "$peer"
fi
go build -o "$cache/bin/acescope-bench" ./cmd/acescope-bench
exec "$cache/bin/acescope-bench" -acescope "$acescope" -temporal "$temporal" -dir "$cache" "$@"
