#!/bin/sh
# The parameters are variables: PARAM_GREETING, PARAM_TIMES.
printf '%s\n' "$PARAM_GREETING" "$PARAM_TIMES"
