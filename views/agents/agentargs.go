package agents

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"acescope/tui/text"
)

// ArgumentLines are the arguments of a tool call, whole and readable: of an object each
// member by itself, texts as they are. Characters that cannot be shown are dropped, and it is
// said how many.
func ArgumentLines(raw []byte) []string {
	var lines []string
	dropped := 0
	add := func(indent, said string) {
		for _, l := range strings.Split(strings.ReplaceAll(said, "\r\n", "\n"), "\n") {
			safe := text.Safe(strings.ReplaceAll(l, "\t", "    "), " ")
			dropped += max(utf8.RuneCountInString(strings.ReplaceAll(l, "\t", "    "))-utf8.RuneCountInString(safe), 0)
			lines = append(lines, indent+safe)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		add("", laidOut(string(raw)))
		return noteDropped(lines, dropped)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			break
		}
		key, _ := name.(string)
		var said string
		if json.Unmarshal(value, &said) != nil {
			said = laidOut(string(value))
		}
		if !strings.Contains(said, "\n") {
			add("", key+": "+said)
			continue
		}
		add("", key+":")
		add("  ", said)
	}
	if len(lines) == 0 {
		lines = []string{"(no arguments)"}
	}
	return noteDropped(lines, dropped)
}

func noteDropped(lines []string, n int) []string {
	if n > 0 {
		lines = append(lines, "", plural(n, "character")+" that cannot be shown harmlessly are left out here")
	}
	return lines
}

// Arguments are the arguments of a tool call as lines for a person, as the console shows
// them.
func Arguments(raw []byte) []string { return ArgumentLines(raw) }
