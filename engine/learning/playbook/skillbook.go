package playbook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// skillbook is the common structure of all generations of the format. The oldest calls the
// skills bullets. The canonical form has a list of bullets.
type skillbook struct {
	Skills   *skills         `json:"skills"`
	Bullets  *skills         `json:"bullets"`
	Sections json.RawMessage `json:"sections"`
	NextID   int             `json:"next_id"`
}

type skill struct {
	Bullet
	Status string `json:"status"`
}

// skills is an object by ID or a list, in the order of the file.
type skills struct {
	all  []skill
	list bool
}

func (s *skills) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		s.list = true
		return json.Unmarshal(data, &s.all)
	}
	return eachKey(data, func(key string, d *json.Decoder) error {
		var one skill
		if err := d.Decode(&one); err != nil {
			return err
		}
		if one.ID == "" {
			one.ID = key
		}
		s.all = append(s.all, one)
		return nil
	})
}

// eachKey iterates over an object in the order of the file.
func eachKey(data []byte, do func(key string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("expected an object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		if err := do(t.(string), d); err != nil { // the keys of an object are strings
			return fmt.Errorf("%.80q: %w", t, err)
		}
	}
	return nil
}

func parseJSON(data []byte) (*Playbook, Report, error) {
	var file skillbook
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, Report{}, fmt.Errorf("%w: line %d: %v", ErrNotPlaybook, errorLine(data, err), err)
	}
	from := file.Skills
	if from == nil {
		from = file.Bullets
	}
	if from == nil {
		return nil, Report{}, fmt.Errorf("%w: JSON with neither \"skills\" nor \"bullets\"", ErrNotPlaybook)
	}
	if file.NextID < 0 || file.NextID > maxNextID {
		return nil, Report{}, fmt.Errorf("%w: next_id %d is out of range", ErrNotPlaybook, file.NextID)
	}
	report := Report{Format: FormatSkillbook}
	next := file.NextID + 1 // the next_id of a skillbook is the last assigned ID
	if from.list {
		report.Format, next = FormatCanonical, file.NextID
	}
	drafts, err := file.drafts(from.all, &report)
	if err != nil {
		return nil, Report{}, err
	}
	return finish(drafts, next, &report), report, nil
}

func (f *skillbook) drafts(all []skill, report *Report) ([]draft, error) {
	names := spellings{}
	drafts := make([]draft, 0, len(all))
	for _, one := range f.ordered(all, report) {
		at := fmt.Sprintf("skill %.80q", one.ID)
		if one.Status != "" && one.Status != "active" {
			report.skip("%s is %.40q; skipped", at, one.Status)
			continue
		}
		if !one.counts().valid() {
			return nil, fmt.Errorf("%w: %s has a counter out of range", ErrNotPlaybook, at)
		}
		one.Section = names.of(one.Section, at, report)
		drafts = append(drafts, draft{one.Bullet, at})
	}
	return drafts, nil
}

// ordered sorts the skills as the sections list them, unlisted skills last. It assigns a
// skill without a section to the section that lists it.
func (f *skillbook) ordered(all []skill, report *Report) []skill {
	if len(f.Sections) == 0 || string(f.Sections) == "null" {
		return all
	}
	index := make(map[string]int, len(all))
	for i, one := range slices.Backward(all) {
		index[one.ID] = i
	}
	listed := make([]bool, len(all))
	sorted := make([]skill, 0, len(all))
	err := eachKey(f.Sections, func(section string, d *json.Decoder) error {
		var ids []string
		if err := d.Decode(&ids); err != nil {
			return err
		}
		for _, id := range ids {
			i, ok := index[id]
			if !ok || listed[i] {
				continue
			}
			listed[i] = true
			if all[i].Section == "" {
				all[i].Section = section
			}
			sorted = append(sorted, all[i])
		}
		return nil
	})
	if err != nil {
		report.warn("sections: %v; kept the order of the skills", err)
		return all
	}
	for i, one := range all {
		if !listed[i] {
			sorted = append(sorted, one)
		}
	}
	return sorted
}

// errorLine returns the line of a JSON error, or 1 if it is unknown.
func errorLine(data []byte, err error) int {
	offset := int64(0)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = mismatch.Offset
	}
	return 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))
}

// WriteSkillbook writes skillbook JSON with counters. [Parse] returns an equal playbook.
func WriteSkillbook(w io.Writer, p *Playbook) error {
	bullets := grouped(p.Bullets)
	out := []byte("{\n  \"skills\": {")
	for i, b := range bullets {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(append(out, "\n    "...), b.ID)
		out = appendString(append(out, `: {"id": `...), b.ID)
		out = appendString(append(out, `, "section": `...), b.Section)
		out = appendString(append(out, `, "content": `...), b.Content)
		out = fmt.Appendf(out, `, "helpful": %d, "harmful": %d, "neutral": %d, "status": "active"}`,
			b.Helpful, b.Harmful, b.Neutral)
	}
	out = append(out, "\n  },\n  \"sections\": {"...)
	for i, b := range bullets {
		if i > 0 && b.Section == bullets[i-1].Section {
			out = append(out, ", "...)
		} else {
			if i > 0 {
				out = append(out, "],"...)
			}
			out = append(appendString(append(out, "\n    "...), b.Section), ": ["...)
		}
		out = appendString(out, b.ID)
	}
	if len(bullets) > 0 {
		out = append(out, ']')
	}
	out = fmt.Appendf(out, "\n  },\n  \"next_id\": %d\n}\n", max(p.NextID, 1)-1)
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write skillbook: %w", err)
	}
	return nil
}
