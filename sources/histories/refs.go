package histories

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"acescope/engine/ace"
)

// maxRefBytes bounds the JSON that is searched for references.
const maxRefBytes = 64 << 10

// RefsIn lists the artifacts that a JSON value refers to, at most eight, at most four
// levels down.
func RefsIn(raw []byte) []ace.Ref {
	if len(raw) > maxRefBytes || !bytes.Contains(raw, []byte(`"sha256"`)) {
		return nil
	}
	var refs []ace.Ref
	var walk func(raw json.RawMessage, depth int)
	walk = func(raw json.RawMessage, depth int) {
		if depth > 4 || len(refs) == 8 {
			return
		}
		var r ace.Ref
		if json.Unmarshal(raw, &r) == nil && isHash(r.SHA256) {
			refs = append(refs, r)
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil {
			for _, one := range list {
				walk(one, depth+1)
			}
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) == nil {
			for _, name := range slices.Sorted(maps.Keys(object)) {
				walk(object[name], depth+1)
			}
		}
	}
	walk(raw, 0)
	return refs
}

func isHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// Refs lists every artifact that a run refers to.
func Refs(d *Detail) []ace.Ref {
	var refs []ace.Ref
	if d.Input.PromptRef != nil {
		refs = append(refs, *d.Input.PromptRef)
	}
	if d.CallLog != nil {
		refs = append(refs, *d.CallLog)
	}
	if d.Phase.Failure != nil {
		refs = append(refs, refsInWords(d.Phase.Failure.Message)...)
	}
	d.Calls.All(func(_ int, c *ToolCall) bool {
		refs = append(append(refs, RefsIn(c.Args)...), RefsIn(c.Result)...)
		return true
	})
	return refs
}

// inWords is how a failure names an artifact.
var inWords = regexp.MustCompile(`artifact ([0-9a-f]{64}), (\d{1,15}) bytes`)

// refsInWords lists the artifacts that a failure's message names.
func refsInWords(message string) (refs []ace.Ref) {
	for _, m := range inWords.FindAllStringSubmatch(message, 8) {
		size, _ := strconv.ParseInt(m[2], 10, 64) // at most fifteen digits
		refs = append(refs, ace.Ref{SHA256: m[1], Size: size, MediaType: "text/plain; charset=utf-8"})
	}
	return refs
}
