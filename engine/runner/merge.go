package runner

import (
	"fmt"
	"path"
	"slices"
)

// Merge is what both demand together: the tags of both, and of the other demands the one
// that is made. Where both make one and differ, that is an error that names both values.
func (d Demands) Merge(more Demands) (Demands, error) {
	both := Demands{}
	for _, f := range []struct {
		what    string
		to      *string
		a, b    string
		cleaned bool
	}{
		{"hostname", &both.Hostname, d.Hostname, more.Hostname, false},
		{"project_dir", &both.ProjectDir, d.ProjectDir, more.ProjectDir, true},
		{"executor_type", &both.ExecutorType, d.ExecutorType, more.ExecutorType, false},
	} {
		a, b := f.a, f.b
		if f.cleaned {
			a, b = cleanPath(a), cleanPath(b)
		}
		if a != "" && b != "" && a != b {
			return Demands{}, fmt.Errorf("the demands contradict each other: %s %q and %s %q; a demand can be added, not changed", f.what, f.a, f.what, f.b)
		}
		*f.to = a
		if a == "" {
			*f.to = b
		}
	}
	both.Tags = tagSet(d.Tags, more.Tags)
	return both, nil
}

// tagSet is the tags of both, sorted, each once.
func tagSet(a, b []string) []string {
	if len(a)+len(b) == 0 {
		return nil
	}
	tags := slices.Concat(a, b)
	slices.Sort(tags)
	return slices.Compact(tags)
}

func cleanPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// normal is the demands as the table compares them.
func (d Demands) normal() Demands {
	d.ProjectDir, d.Tags = cleanPath(d.ProjectDir), tagSet(d.Tags, nil)
	return d
}

// normal is the capabilities as the table compares them.
func (c Capabilities) normal() Capabilities {
	c.ProjectDir, c.Tags, c.ExecutorTypes = cleanPath(c.ProjectDir), tagSet(c.Tags, nil), tagSet(c.ExecutorTypes, nil)
	return c
}
