package runner

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"acescope/engine/ace"
)

// Executor types that are part of acescope. A custom executor is named after its directory.
const (
	Deterministic = "deterministic"
	ClaudeCode    = ace.ClaudeCode
	Codex         = "codex"
	Gemini        = "gemini"
	OpenCode      = "opencode"
)

// Agent returns the agent command of an executor type, or "" for other types.
func Agent(executorType string) string {
	if executorType == "claude" {
		return ""
	}
	return ace.AgentOf(executorType)
}

// TypeOf returns the executor type of an agent command, or "" for other commands.
func TypeOf(agent string) string {
	if agent == "claude" {
		return ClaudeCode
	}
	if Agent(agent) == agent {
		return agent
	}
	return ""
}

// Requirements are what a run requires of its runner. Host name, project directory and
// executor type must be equal, unless they are ""; the runner must have all tags.
type Requirements struct {
	Hostname     string   `json:"hostname,omitempty"`
	ProjectDir   string   `json:"project_dir,omitempty"`
	ExecutorType string   `json:"executor_type,omitempty"`
	Tags         []string `json:"tags,omitempty"` // sorted and unique
}

// Capabilities are what a runner offers.
type Capabilities struct {
	Hostname      string   `json:"hostname"`
	ProjectDir    string   `json:"project_dir"`           // its working directory
	AnyProject    bool     `json:"any_project,omitempty"` // runs may use other directories
	ExecutorTypes []string `json:"executor_types"`
	Tags          []string `json:"tags,omitempty"`
	Slots         int      `json:"slots"` // runs that it executes at a time
}

// normal returns the requirements in normal form, which Meets needs.
func (r Requirements) normal() Requirements {
	r.ProjectDir = cleanPath(r.ProjectDir)
	r.Tags = sortedSet(r.Tags)
	return r
}

// normal returns the capabilities in normal form, which Meets needs.
func (c Capabilities) normal() Capabilities {
	c.ProjectDir = cleanPath(c.ProjectDir)
	c.Tags = sortedSet(c.Tags)
	c.ExecutorTypes = sortedSet(c.ExecutorTypes)
	return c
}

// sortedSet returns a sorted copy without duplicates, or nil if it is empty.
func sortedSet(items []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(items)))
}

func cleanPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// Merge combines two requirements. It fails if they contradict each other.
func (r Requirements) Merge(other Requirements) (Requirements, error) {
	a, b := r.normal(), other.normal()
	for _, f := range []struct {
		name string
		a    *string
		b    string
	}{
		{"hostname", &a.Hostname, b.Hostname},
		{"project_dir", &a.ProjectDir, b.ProjectDir},
		{"executor_type", &a.ExecutorType, b.ExecutorType},
	} {
		if *f.a != "" && f.b != "" && *f.a != f.b {
			return Requirements{}, fmt.Errorf(
				"%s %q contradicts %s %q; a requirement can be added, but not changed",
				f.name, short(f.b), f.name, short(*f.a))
		}
		*f.a = cmp.Or(*f.a, f.b)
	}
	a.Tags = sortedSet(slices.Concat(a.Tags, b.Tags))
	return a, nil
}

// meets reports whether a runner with the capabilities can execute a run with the
// requirements. Both must be normal.
func (c Capabilities) meets(r Requirements) bool {
	return c.hasHost(r) && c.hasDir(r) && c.hasType(r) && subset(r.Tags, c.Tags)
}

func (c Capabilities) hasHost(r Requirements) bool {
	return r.Hostname == "" || r.Hostname == c.Hostname
}

func (c Capabilities) hasDir(r Requirements) bool {
	return r.ProjectDir == "" || c.AnyProject || r.ProjectDir == c.ProjectDir
}

func (c Capabilities) hasType(r Requirements) bool {
	return r.ExecutorType == "" || slices.Contains(c.ExecutorTypes, r.ExecutorType)
}

// subset reports whether all of few are among many; both are sorted.
func subset(few, many []string) bool {
	for _, tag := range few {
		for len(many) > 0 && many[0] < tag {
			many = many[1:]
		}
		if len(many) == 0 || many[0] != tag {
			return false
		}
	}
	return true
}

// Missing describes the requirements that the capabilities do not meet, such as
// "tag playwright" or "hostname db-server (it is web-1)".
func (c Capabilities) Missing(r Requirements) []string {
	c, r = c.normal(), r.normal()
	var missing []string
	if !c.hasHost(r) {
		missing = append(missing, "hostname "+r.Hostname+" (it is "+c.Hostname+")")
	}
	if !c.hasDir(r) {
		missing = append(missing, "project directory "+r.ProjectDir+" (it is "+c.ProjectDir+")")
	}
	if !c.hasType(r) {
		missing = append(missing, "executor "+r.ExecutorType+" (it has "+strings.Join(c.ExecutorTypes, ", ")+
			")")
	}
	for _, tag := range r.Tags {
		if !slices.Contains(c.Tags, tag) {
			missing = append(missing, "tag "+tag)
		}
	}
	return missing
}

// Bounds of texts, in bytes.
const (
	maxName = 100
	maxTag  = 64
	maxHost = 253
	maxPath = 4096
)

// Check returns an error if the requirements are invalid.
func (r Requirements) Check() error {
	var typeErr error
	if r.ExecutorType != "" {
		typeErr = checkName("required executor_type", r.ExecutorType, maxName)
	}
	return cmp.Or(typeErr,
		checkText("required hostname", r.Hostname, maxHost),
		checkText("required project_dir", r.ProjectDir, maxPath),
		checkTags("required tag", r.Tags))
}

// Check returns an error if the capabilities are invalid.
func (c Capabilities) Check() error {
	switch {
	case c.Hostname == "":
		return errors.New("the runner has no hostname")
	case c.ProjectDir == "":
		return errors.New("the runner has no project directory")
	case len(c.ExecutorTypes) == 0:
		return fmt.Errorf("the runner has no executor type; add one, such as %s", Deterministic)
	case len(c.ExecutorTypes) > MaxTypes:
		return fmt.Errorf("the runner has %d executor types, at most %d are allowed", len(c.ExecutorTypes),
			MaxTypes)
	case c.Slots < 1 || c.Slots > MaxSlots:
		return fmt.Errorf("slots %d: must be from 1 to %d", c.Slots, MaxSlots)
	}
	for _, e := range c.ExecutorTypes {
		if err := checkName("executor type", e, maxName); err != nil {
			return err
		}
	}
	return cmp.Or(checkText("hostname", c.Hostname, maxHost),
		checkText("project directory", c.ProjectDir, maxPath),
		checkTags("tag", c.Tags))
}

// Check returns an error if the registration is invalid.
func (r Registration) Check() error {
	if err := checkName("runner id", r.ID, maxName); err != nil {
		return err
	}
	switch {
	case r.Token == "" || len(r.Token) > maxName:
		return fmt.Errorf("the token of the runner's process must have 1 to %d characters", maxName)
	case len(r.LastToken) > maxName:
		return fmt.Errorf("the token of the runner's previous process has more than %d characters", maxName)
	case r.HeartbeatMS < 0 || r.RemoveMS < 0:
		return fmt.Errorf("heartbeat_ms %d, remove_ms %d: must not be negative", r.HeartbeatMS, r.RemoveMS)
	}
	return cmp.Or(checkText("version", r.Version, maxName),
		checkText("session queue", r.SessionQueue, maxPath),
		r.Capabilities.Check())
}

func checkTags(what string, tags []string) error {
	if len(tags) > MaxTags {
		return fmt.Errorf("%d tags, at most %d are allowed", len(tags), MaxTags)
	}
	for _, t := range tags {
		if err := checkName(what, t, maxTag); err != nil {
			return err
		}
	}
	return nil
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+@-]*$`)

// isName reports whether s can be a tag, an executor type, a runner id or a queue.
func isName(s string, longest int) bool { return len(s) <= longest && namePattern.MatchString(s) }

func checkName(what, s string, longest int) error {
	if isName(s, longest) {
		return nil
	}
	return fmt.Errorf("%s %q: must have 1 to %d letters, digits and . _ - : / + @, and start with a letter or a digit",
		what, short(s), longest)
}

// checkText returns an error if s is too long or is not a line of text.
func checkText(what, s string, longest int) error {
	if len(s) > longest {
		return fmt.Errorf("the %s has %d bytes, at most %d are allowed", what, len(s), longest)
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("the %s %q is not one line of text", what, short(s))
	}
	return nil
}

// short truncates a text for a message.
func short(s string) string { return ace.Cut(s, 60) }
