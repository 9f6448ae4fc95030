package playbook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidwall/gjson"
)

type skill struct {
	Bullet
	Status string `json:"status"`
}

// parseJSON parses the skillbooks of all generations, whose skills are an object by ID, and the
// canonical form, which has a list. The oldest generation calls the skills bullets.
func parseJSON(data []byte) (*Playbook, Report, error) {
	var valid json.RawMessage
	if err := json.Unmarshal(data, &valid); err != nil {
		offset := len(data)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset = min(int(syntax.Offset), offset)
		}
		return nil, Report{}, fmt.Errorf("%w: line %d: %v", ErrNotPlaybook, lineAt(data, offset), err)
	}
	file := gjson.ParseBytes(data)
	from := file.Get("skills")
	if from.Type == gjson.Null {
		from = file.Get("bullets")
	}
	next := file.Get("next_id").Int()
	switch {
	case from.Type == gjson.Null:
		return nil, Report{}, fmt.Errorf("%w: JSON with neither \"skills\" nor \"bullets\"", ErrNotPlaybook)
	case next < 0 || next > maxNextID:
		return nil, Report{}, fmt.Errorf("%w: next_id %d is out of range", ErrNotPlaybook, next)
	}
	report := Report{Format: FormatCanonical}
	if !from.IsArray() {
		report.Format = FormatSkillbook
		next++ // the next_id of a skillbook is the last assigned ID
	}
	all, err := readSkills(data, from)
	if err != nil {
		return nil, Report{}, err
	}
	names := spellings{}
	drafts := make([]draft, 0, len(all))
	for _, one := range ordered(all, file.Get("sections")) {
		at := fmt.Sprintf("skill %.80q", one.ID)
		if one.Status != "" && one.Status != "active" {
			report.skip("%s is %.40q; skipped", at, one.Status)
			continue
		}
		if !one.counts().valid() {
			return nil, Report{}, fmt.Errorf("%w: %s has a counter out of range", ErrNotPlaybook, at)
		}
		one.Section = names.of(one.Section, at, &report)
		drafts = append(drafts, draft{one.Bullet, at})
	}
	return finish(drafts, int(next), &report), report, nil
}

// lineAt returns the number of the line of a position.
func lineAt(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

// readSkills reads an object of skills by ID or a list of skills, in the order of the file.
func readSkills(data []byte, from gjson.Result) (all []skill, err error) {
	from.ForEach(func(key, value gjson.Result) bool {
		var one skill
		if err = json.Unmarshal([]byte(value.Raw), &one); err != nil {
			err = fmt.Errorf("%w: line %d: %v", ErrNotPlaybook, lineAt(data, value.Index), err)
			return false
		}
		one.ID = cmp.Or(one.ID, key.Str)
		all = append(all, one)
		return true
	})
	return all, err
}

// ordered sorts the skills as the sections list them, unlisted skills last. It assigns a
// skill without a section to the section that lists it.
func ordered(all []skill, sections gjson.Result) []skill {
	index := make(map[string]int, len(all))
	for i, one := range slices.Backward(all) {
		index[one.ID] = i
	}
	listed := make([]bool, len(all))
	sorted := make([]skill, 0, len(all))
	sections.ForEach(func(section, ids gjson.Result) bool {
		for _, id := range ids.Array() {
			i, ok := index[id.Str]
			if !ok || listed[i] {
				continue
			}
			listed[i] = true
			all[i].Section = cmp.Or(all[i].Section, section.Str)
			sorted = append(sorted, all[i])
		}
		return true
	})
	for i, one := range all {
		if !listed[i] {
			sorted = append(sorted, one)
		}
	}
	return sorted
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
