package playbook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/internal/plainjson"
)

// Bounds of the extra fields of a bullet.
const (
	maxExtraField  = 16 << 10 // bytes of the JSON of one field
	maxExtraFields = 64
	maxExtraName   = 100 // bytes
)

// Extra holds the fields of a bullet that a playbook format has besides those of [Bullet], such as a
// justification: a JSON object with sorted keys and no white space, or "" without such fields. Merges
// keep it unchanged.
type Extra string

// MarshalJSON implements [json.Marshaler].
func (x Extra) MarshalJSON() ([]byte, error) {
	if x == "" {
		return []byte("{}"), nil
	}
	return []byte(x), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It drops fields that newExtra does not keep.
func (x *Extra) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("extra: %w", err)
	}
	*x, _ = newExtra(fields)
	return nil
}

// valid reports whether the fields are as newExtra writes them.
func (x Extra) valid() bool {
	var y Extra
	return y.UnmarshalJSON([]byte(x)) == nil && x == y
}

// Fields returns the fields as JSON by name.
func (x Extra) Fields() map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if x != "" {
		_ = json.Unmarshal([]byte(x), &fields) // newExtra wrote it
	}
	return fields
}

// newExtra returns the fields in the form that is hashed, and the names of those that it does not keep
// because they exceed the bounds or have the name of a field of a bullet.
func newExtra(fields map[string]json.RawMessage) (x Extra, lost []string) {
	out := []byte("{")
	kept := 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, err := plainjson.Canonical(fields[name])
		switch {
		case err != nil, len(value) > maxExtraField, len(name) > maxExtraName, kept >= maxExtraFields,
			slices.Contains(bulletFields, name):
			lost = append(lost, name)
			continue
		}
		if kept++; kept > 1 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, name), ':'), value...)
	}
	if kept == 0 {
		return "", lost
	}
	return Extra(append(out, '}')), lost
}

// Loss is a field of a file that was not read or cannot be written, and how often.
type Loss struct {
	Field  string `json:"field"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

func (l Loss) String() string { return fmt.Sprintf("%s (%d): %s", l.Field, l.Count, l.Reason) }

// maxLosses bounds the number of losses in a list.
const maxLosses = 100

func lose(list []Loss, field, reason string) []Loss {
	field = ace.Head(cleanSection(field), maxExtraName)
	for i := range list {
		if list[i].Field == field && list[i].Reason == reason {
			list[i].Count++
			return list
		}
	}
	if len(list) >= maxLosses {
		list[maxLosses-1] = Loss{"further fields", list[maxLosses-1].Count + 1, "too many to list"}
		return list
	}
	return append(list, Loss{field, 1, reason})
}

// Losses returns what a format cannot hold of a playbook. FormatCanonical and FormatSkillbook hold
// everything.
func (p *Playbook) Losses(f Format) (list []Loss) {
	if f != FormatText {
		return nil
	}
	const reason = "the text format has no such field"
	highest := 0
	for i := range p.Bullets {
		b := &p.Bullets[i]
		highest = max(highest, idNumber(b.ID))
		if b.Neutral > 0 {
			list = lose(list, "neutral", reason)
		}
		fields := b.Extra.Fields()
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if string(fields[name]) != "null" {
				list = lose(list, name, reason)
			}
		}
	}
	if p.NextID > highest+1 {
		list = lose(list, "next_id", reason)
	}
	return list
}
