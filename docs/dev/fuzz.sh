#!/usr/bin/env bash
# Fuzzes every FuzzX function of the tree, one after another, for the time given ("30s",
# or "1000x" for a number of inputs). Stops at the first that fails; the input that broke
# it is then in the package's testdata/fuzz.
set -euo pipefail

if [ $# -ne 1 ]; then
	echo "usage: fuzz.sh TIME   (such as 30s, or 1000x)" >&2
	exit 2
fi
cd "$(dirname "$0")/../.."

# file:func, in a stable order
found=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' cmd tui views sources engine theme |
	sed 's/:func /:/' | sort)
if [ -z "$found" ]; then
	echo "fuzz.sh: no FuzzX function was found" >&2
	exit 1
fi

while IFS=: read -r file name; do
	pkg=./$(dirname "$file")
	echo "== $pkg $name"
	# Without a bound Go minimizes each interesting input for a minute, in which it tries no others.
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$1" -fuzzminimizetime 1s "$pkg"
done <<<"$found"
