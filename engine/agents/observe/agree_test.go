package observe

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
)

// TestAgreesWithTranscript checks that the calls in a session's hooks are those in its transcript,
// with the same arguments and results, in the same order. Hooks do not fire for the result of a
// denied call.
func TestAgreesWithTranscript(t *testing.T) {
	var fromHooks, fromTranscript []string
	a := newHookDecoder(nil, func([]byte) json.RawMessage { t.Fatal("stored a payload"); return nil }, nil,
		nil)
	for i, line := range linesIn(t, "../transcript/testdata/hooks.jsonl") {
		observations, _ := a.decode(spool.Record{ID: "r" + strconv.Itoa(i), Kind: spool.Hook,
			Micros: int64(i + 1), Payload: line})
		for _, one := range observations {
			fromHooks = append(fromHooks, callOf(t, one.Event)...)
		}
	}
	for _, line := range linesIn(t, "../transcript/testdata/session.jsonl") {
		fromTranscript = append(fromTranscript, callsIn(t, gjson.ParseBytes(line))...)
	}
	if len(fromHooks) == 0 || !reflect.DeepEqual(fromHooks, fromTranscript) {
		t.Errorf("hooks:\n%s\n\ntranscript:\n%s", strings.Join(fromHooks, "\n"),
			strings.Join(fromTranscript, "\n"))
	}
}

func linesIn(t *testing.T, path string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

// callsIn describes the tool calls of a line of a transcript, and the results of those that were not
// denied. The result is the tool's own, as a hook gets it.
func callsIn(t *testing.T, line gjson.Result) (calls []string) {
	t.Helper()
	for _, block := range line.Get("message.content").Array() {
		call, result := block.Get("tool_use_id").String(), line.Get("toolUseResult")
		switch {
		case block.Get("type").String() == "tool_use":
			input := plainJSON(t, json.RawMessage(block.Get("input").Raw))
			calls = append(calls, block.Get("id").String()+" calls "+block.Get("name").String()+" "+input)
		case call == "" || strings.HasPrefix(block.Get("content").String(), "The user doesn't want to"):
		case block.Get("is_error").Bool():
			calls = append(calls, call+" ends false "+block.Get("content").String())
		default:
			calls = append(calls, call+" ends true "+plainJSON(t, json.RawMessage(result.Raw)))
		}
	}
	return calls
}

// callOf describes the tool call of an event, if it has one.
func callOf(t *testing.T, e ace.ToolEvent) []string {
	t.Helper()
	switch e.Kind {
	case ace.KindToolUse:
		return []string{e.Call() + " calls " + e.Name + " " + plainJSON(t, e.Args)}
	case ace.KindToolResult:
		return []string{e.Call() + " ends " + strconv.FormatBool(*e.OK) + " " + plainJSON(t, e.Result) +
			e.Error}
	}
	return nil
}

func plainJSON(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if len(raw) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(v)
	return string(out)
}
