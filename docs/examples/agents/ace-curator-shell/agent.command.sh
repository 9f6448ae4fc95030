#!/bin/sh
# Serves the curator of ACE's loop. The step's input comes in variables: a text as it is, a list
# as JSON in one line, with the names of its objects sorted. The result goes to standard output.
set -eu

# quoted is a text as a JSON string.
quoted() {
	printf '"'
	printf '%s\n' "$1" | tr '\t\r' '  ' | tr -d '\001-\010\013\014\016-\037\177' |
		sed 's/\\/\\\\/g; s/"/\\"/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
	printf '"'
}

# Every tag of the reflector becomes an operation that counts it.
operations=$(printf '%s' "${PARAM_BULLET_TAGS:-[]}" |
	sed 's/^\[//; s/\]$//; s/{"id":\("[^"]*"\),"tag":"\([a-z]*\)"}/{"type":"TAG","bullet_id":\1,"metadata":{"\2":1}}/g')

# What the reflector calls a lesson becomes a bullet.
lesson=$(printf '%s\n' "${PARAM_INSIGHTS:-}" | sed -n 's/^Lesson: //p' | head -n 1)
rationale="nothing new"
if [ -n "$lesson" ]; then
	rationale="a lesson: $lesson"
	operations="$operations${operations:+,}{\"type\":\"ADD\",\"section\":\"CONVERSIONS\",\"content\":$(quoted "$lesson")}"
fi

printf '{"accepted":[%s],"rejected":[],"rationale":%s}\n' "$operations" "$(quoted "$rationale")"
