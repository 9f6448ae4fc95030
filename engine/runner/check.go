package runner

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is said of runs and runners, beside [MaxTags].
const (
	MaxSlots = 1000
	MaxTypes = 32 // executor types of a runner
	maxName  = 100
	maxTag   = 64
	maxHost  = 253
	maxPath  = 4096
)

// Check says in one sentence what is wrong with the demands, nil where nothing is.
func (d Demands) Check() error {
	if d.ExecutorType != "" && !validName(d.ExecutorType, maxName) {
		return fmt.Errorf("demanded executor_type %q: %s", short(d.ExecutorType), nameRule(maxName))
	}
	if err := checkText("demanded hostname", d.Hostname, maxHost); err != nil {
		return err
	}
	if err := checkText("demanded project_dir", d.ProjectDir, maxPath); err != nil {
		return err
	}
	return checkTags("demanded tag", d.Tags)
}

// Check says in one sentence what is wrong with the capabilities, nil where nothing is.
func (c Capabilities) Check() error {
	switch {
	case c.Hostname == "":
		return fmt.Errorf("the runner has no hostname")
	case c.ProjectDir == "":
		return fmt.Errorf("the runner has no project directory")
	case len(c.ExecutorTypes) == 0:
		return fmt.Errorf("the runner has no executor: name one, such as %s", Deterministic)
	case len(c.ExecutorTypes) > MaxTypes:
		return fmt.Errorf("the runner has %d executor types, at most %d are taken", len(c.ExecutorTypes), MaxTypes)
	case c.Slots < 1 || c.Slots > MaxSlots:
		return fmt.Errorf("slots %d: from 1 to %d", c.Slots, MaxSlots)
	}
	for _, e := range c.ExecutorTypes {
		if !validName(e, maxName) {
			return fmt.Errorf("executor type %q: %s", short(e), nameRule(maxName))
		}
	}
	if err := checkText("hostname", c.Hostname, maxHost); err != nil {
		return err
	}
	if err := checkText("project directory", c.ProjectDir, maxPath); err != nil {
		return err
	}
	return checkTags("tag", c.Tags)
}

// Check says in one sentence what is wrong with the registration, nil where nothing is.
func (r Registration) Check() error {
	switch {
	case !validName(r.ID, maxName):
		return fmt.Errorf("runner id %q: %s", short(r.ID), nameRule(maxName))
	case r.Token == "" || len(r.Token) > maxName:
		return fmt.Errorf("the runner's process has no token, or one above %d characters", maxName)
	case len(r.Last) > maxName:
		return fmt.Errorf("the token of the runner's last process is above %d characters", maxName)
	case r.HeartbeatMS < 0 || r.RemoveMS < 0:
		return fmt.Errorf("heartbeat_ms %d, remove_ms %d: neither can be below 0", r.HeartbeatMS, r.RemoveMS)
	}
	for _, f := range []struct {
		what, text string
		longest    int
	}{{"version", r.Version, maxName}, {"session queue", r.SessionQueue, maxPath}} {
		if err := checkText(f.what, f.text, f.longest); err != nil {
			return err
		}
	}
	return r.Capabilities.Check()
}

func checkTags(what string, tags []string) error {
	if len(tags) > MaxTags {
		return fmt.Errorf("%d tags, at most %d are taken", len(tags), MaxTags)
	}
	for _, t := range tags {
		if !validName(t, maxTag) {
			return fmt.Errorf("%s %q: %s", what, short(t), nameRule(maxTag))
		}
	}
	return nil
}

func nameRule(longest int) string {
	return fmt.Sprintf("letters, digits and . _ - : / + @ only, beginning with a letter or a digit, at most %d", longest)
}

// validName tells whether a text can be a tag, an executor type or a runner's id.
func validName(s string, longest int) bool {
	if s == "" || len(s) > longest {
		return false
	}
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || strings.IndexByte("._-:/+@", c) < 0) {
			return false
		}
	}
	return true
}

// checkText refuses what is too long for a name or a path, or no line of text.
func checkText(what, s string, longest int) error {
	if len(s) > longest {
		return fmt.Errorf("the %s has %d bytes, at most %d are taken", what, len(s), longest)
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("the %s %q is not one line of text", what, short(s))
	}
	return nil
}

// short is the beginning of a text, for a message.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
