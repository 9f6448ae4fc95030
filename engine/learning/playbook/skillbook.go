package playbook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tidwall/gjson"
)

// skill is a bullet of a JSON file.
type skill struct {
	Bullet
	status string
}

// fieldNames are the names of each field of a bullet in the JSON formats in use.
var fieldNames = map[string][]string{
	"id":      {"id", "skill_id", "bullet_id"},
	"section": {"section", "category"},
	"content": {"content", "text"},
	"helpful": {"helpful", "helpful_count"},
	"harmful": {"harmful", "harmful_count"},
	"neutral": {"neutral", "neutral_count"},
	"status":  {"status"},
}

// parseJSON parses skillbooks of all generations, whose skills are an object by ID, the canonical
// form, which has a list of bullets, and lists of bullets with other fields.
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
	r := jsonReader{data: data}
	next := file.Get("next_id").Int()
	if next < 0 || next > maxNextID {
		return nil, Report{}, fmt.Errorf("%w: next_id %d is out of range", ErrNotPlaybook, next)
	}
	if err := r.read(file); err != nil {
		return nil, Report{}, err
	}
	report := Report{Format: r.format, Losses: r.losses}
	if r.format == FormatSkillbook {
		next++ // the next_id of a skillbook is the last assigned ID
	}
	names := spellings{}
	drafts := make([]draft, 0, len(r.skills))
	for _, one := range ordered(r.skills, file.Get("sections")) {
		at := fmt.Sprintf("skill %.80q", one.ID)
		if one.status != "" && one.status != "active" {
			report.skip("%s is %.40q; skipped", at, one.status)
			report.Losses = lose(report.Losses, one.status+" skill", "only active skills are read")
			continue
		}
		if !one.counts().valid() {
			return nil, Report{}, fmt.Errorf("%w: %s has a counter out of range", ErrNotPlaybook, at)
		}
		one.Section = names.of(one.Section, at, &report)
		drafts = append(drafts, draft{one.Bullet, at})
	}
	var sections []string
	for _, name := range r.sections {
		sections = append(sections, names.of(name, "sections", &report))
	}
	return finish(drafts, sectionOrder(nil, sections), int(next), &report), report, nil
}

// jsonReader reads the skills of a JSON file in the order of the file.
type jsonReader struct {
	data     []byte
	format   Format
	skills   []skill
	sections []string // that the file states
	foreign  bool     // the file has a field that the canonical form lacks
	losses   []Loss
}

func (r *jsonReader) read(file gjson.Result) (err error) {
	from := file.Get("skills")
	if from.Type == gjson.Null {
		from = file.Get("bullets")
	}
	nested := file.Get("playbook")
	if from.Type == gjson.Null && !nested.IsObject() {
		return fmt.Errorf("%w: JSON with neither \"skills\" nor \"bullets\"", ErrNotPlaybook)
	}
	switch {
	case from.Type == gjson.Null:
		r.format = FormatSections
		nested.ForEach(func(section, list gjson.Result) bool {
			r.sections = append(r.sections, section.Str)
			err = r.list(list, section.Str)
			return err == nil
		})
	case from.IsArray():
		r.format = FormatCanonical
		err = r.list(from, "")
	default:
		r.format = FormatSkillbook
		err = r.list(from, "")
	}
	if err != nil {
		return err
	}
	r.rest(file)
	if r.format == FormatCanonical && r.foreign {
		r.format = FormatList
	}
	return nil
}

// rest reads the sections that a file states, and counts its other fields as losses.
func (r *jsonReader) rest(file gjson.Result) {
	file.ForEach(func(key, value gjson.Result) bool {
		switch name := key.Str; {
		case slices.Contains([]string{"skills", "bullets", "playbook", "next_id"}, name):
		case name == "sections" && value.IsObject():
			value.ForEach(func(section, _ gjson.Result) bool {
				r.sections = append(r.sections, section.Str)
				return true
			})
		case name == "sections" && value.IsArray():
			for _, section := range value.Array() {
				r.sections = append(r.sections, section.Str)
			}
		case value.Type == gjson.Null || value.IsObject() && len(value.Map()) == 0 || value.IsArray() &&
			len(value.Array()) == 0:
		default:
			r.foreign = true
			r.losses = lose(r.losses, name, "a field of the file, not of a bullet")
		}
		return true
	})
}

// list reads an object of skills by ID or a list of skills.
func (r *jsonReader) list(from gjson.Result, section string) (err error) {
	from.ForEach(func(key, value gjson.Result) bool {
		var one skill
		if one, err = r.skill([]byte(value.Raw)); err != nil {
			err = fmt.Errorf("%w: line %d: %v", ErrNotPlaybook, lineAt(r.data, value.Index), err)
			return false
		}
		one.ID = cmp.Or(one.ID, key.Str)
		one.Section = cmp.Or(one.Section, section)
		r.skills = append(r.skills, one)
		return true
	})
	return err
}

// skill reads a skill. Of a field with several names, the first counts; the others are extra fields.
func (r *jsonReader) skill(data []byte) (one skill, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return one, err
	}
	for _, f := range []struct {
		name string
		to   any
	}{
		{"id", &one.ID}, {"section", &one.Section}, {"content", &one.Content}, {"status", &one.status},
		{"helpful", &one.Helpful}, {"harmful", &one.Harmful}, {"neutral", &one.Neutral},
	} {
		for _, name := range fieldNames[f.name] {
			value, ok := fields[name]
			if !ok {
				continue
			}
			if err := json.Unmarshal(value, f.to); err != nil {
				return one, fmt.Errorf("field %q: %w", name, err)
			}
			r.foreign = r.foreign || name != f.name || name == "status"
			delete(fields, name)
			break
		}
	}
	if extra, ok := fields["extra"]; ok {
		delete(fields, "extra")
		var more map[string]json.RawMessage
		if json.Unmarshal(extra, &more) != nil {
			r.losses = lose(r.losses, "extra", "it is not an object")
		}
		r.foreign = r.foreign || len(fields) > 0
		maps.Copy(fields, more)
	} else if len(fields) > 0 {
		r.foreign = true
	}
	var lost []string
	one.Extra, lost = newExtra(fields)
	for _, name := range lost {
		r.losses = lose(r.losses, name, "a bullet cannot hold it")
	}
	return one, nil
}

// lineAt returns the number of the line of a position.
func lineAt(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

// ordered sorts the skills as the sections list them, unlisted skills last. It assigns a
// skill without a section to the section that lists it.
func ordered(all []skill, sections gjson.Result) []skill {
	index := make(map[string]int, len(all))
	for i, one := range slices.Backward(all) {
		index[one.ID] = i
	}
	listed := make([]bool, len(all))
	sorted := make([]skill, 0, len(all))
	if !sections.IsObject() {
		return all
	}
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

// WriteSkillbook writes skillbook JSON with counters and extra fields. [Parse] returns an equal playbook.
func WriteSkillbook(w io.Writer, p *Playbook) error {
	bullets := grouped(p.Bullets, p.Sections)
	out := []byte("{\n  \"skills\": {")
	for i := range bullets {
		b := &bullets[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(append(out, "\n    "...), b.ID)
		out = appendString(append(out, `: {"id": `...), b.ID)
		out = appendString(append(out, `, "section": `...), b.Section)
		out = appendString(append(out, `, "content": `...), b.Content)
		out = fmt.Appendf(out, `, "helpful": %d, "harmful": %d, "neutral": %d, "status": "active"`,
			b.Helpful, b.Harmful, b.Neutral)
		if b.Extra != "" {
			out = append(append(out, ", "...), b.Extra[1:len(b.Extra)-1]...)
		}
		out = append(out, '}')
	}
	out = append(out, "\n  },\n  \"sections\": {"...)
	for i, section := range sectionOrder(bullets, p.Sections) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(append(out, "\n    "...), section), ": ["...)
		for n := 0; len(bullets) > 0 && bullets[0].Section == section; bullets = bullets[1:] {
			if n++; n > 1 {
				out = append(out, ", "...)
			}
			out = appendString(out, bullets[0].ID)
		}
		out = append(out, ']')
	}
	out = fmt.Appendf(out, "\n  },\n  \"next_id\": %d\n}\n", max(p.NextID, 1)-1)
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write skillbook: %w", err)
	}
	return nil
}
