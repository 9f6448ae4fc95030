#!/bin/sh
# The parameters are flags and values: --greeting hello --times 1.
for word; do
	printf '%s\n' "$word"
done
