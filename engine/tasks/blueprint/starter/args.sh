#!/bin/sh
# The parameters are flags: --greeting=hello --times=1.
for flag; do
	printf '%s\n' "$flag"
done
