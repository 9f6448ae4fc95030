package console

import (
	"acescope/engine/ace"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseFork reads name=value pairs; values with blanks stand in quotes.
func ParseFork(line string) (at Point, fields []Field, err error) {
	pairs, err := SplitPairs(line)
	if err != nil {
		return at, nil, err
	}
	for _, p := range pairs {
		switch p.Name {
		case "at", "event":
			if at.Event, err = strconv.ParseInt(p.Value, 10, 64); err != nil || at.Event < 1 {
				return at, nil, fmt.Errorf("at=%s: give the number of an event", p.Value)
			}
		case "phase":
			at.Phase = ace.Phase(p.Value)
			if at.Phase.Activity() == "" {
				return at, nil, fmt.Errorf("there is no phase %q; there are %s", p.Value, strings.Join(phaseNames(), ", "))
			}
		default:
			fields = append(fields, p)
		}
	}
	switch {
	case at.Event == 0 && at.Phase == "":
		err = errors.New("where? give at=EVENT or phase=PHASE")
	case at.Event != 0 && at.Phase != "":
		err = errors.New("give at=EVENT or phase=PHASE, not both")
	}
	return at, fields, err
}

func SplitPairs(line string) (pairs []Field, err error) {
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		name, after, ok := strings.Cut(rest, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \"") {
			word, _, _ := strings.Cut(rest, " ")
			return nil, fmt.Errorf("%q: write it as name=value", word)
		}
		value := ""
		if strings.HasPrefix(after, `"`) {
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				return nil, fmt.Errorf("%s: the quotation has no end", name)
			}
			if value, err = strconv.Unquote(quoted); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			rest = after[len(quoted):]
		} else {
			value, rest, _ = strings.Cut(after, " ")
		}
		pairs = append(pairs, Field{name, value})
	}
	return pairs, nil
}

// PreviewFork says what the line means so far.
func PreviewFork(line string) string {
	at, fields, err := ParseFork(line)
	if err != nil {
		return err.Error()
	}
	said := "takes over what was recorded up to event " + strconv.FormatInt(at.Event, 10)
	if at.Phase != "" {
		var anew []string
		for i, p := range ace.Steps() {
			if p == at.Phase {
				anew = phaseNames()[i:]
			}
		}
		said = "executes anew: " + strings.Join(anew, ", ")
	}
	if len(fields) == 0 {
		return said + "; nothing changed yet"
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return said + "; changes " + strings.Join(names, ", ")
}

func phaseNames() []string {
	var names []string
	for _, p := range ace.Steps() {
		names = append(names, string(p))
	}
	return names
}

// forkFields are what a fork can change, the usual ones first.
var forkFields = []string{"model=", "provider=", "prompt=\"", "playbook=", "branch=", "label=", "pace_ms=", "adapter=",
	"skills_config.allowed_tools=", "skills_config.permission_mode=", "steps.generator=", "steps.skills=", "steps.reflector=", "steps.curator=",
	"experiment_id=", "dataset_id=", "epoch=", "index="}

func (a *Actor) completeForkArgs(arg string) []string {
	from, options := a.CompleteFork(arg, len(arg))
	for i, o := range options {
		options[i] = arg[:from] + o
	}
	return options
}

// CompleteFork completes names, phases, and values that the list knows.
func (a *Actor) CompleteFork(line string, cursor int) (int, []string) {
	typed := line[:cursor]
	from := strings.LastIndexByte(typed, ' ') + 1
	word := typed[from:]
	name, value, isValue := strings.Cut(word, "=")
	begin := func(prefix, typed string, options []string) []string {
		var out []string
		for _, o := range options {
			if strings.HasPrefix(o, typed) && o != typed {
				out = append(out, prefix+o)
			}
		}
		return out
	}
	switch {
	case !isValue:
		return from, begin("", word, slices.Concat([]string{"phase=", "at="}, forkFields))
	case name == "phase":
		return from, begin("phase=", value, phaseNames())
	case name == "model":
		return from, begin("model=", value, a.modelsSeen())
	}
	return from, nil
}

// modelsSeen are the models of the runs that are loaded.
func (a *Actor) modelsSeen() []string {
	var names []string
	for _, r := range a.listing.Runs.Rows {
		if r.Model != "" && !slices.Contains(names, r.Model) && !strings.ContainsAny(r.Model, " \"") {
			names = append(names, r.Model)
		}
	}
	slices.Sort(names)
	return names
}

func completePoint(arg string) []string {
	var out []string
	for _, p := range append([]string{"at="}, phaseNames()...) {
		if p != "at=" {
			p = "phase=" + p + " "
		}
		if strings.HasPrefix(p, arg) {
			out = append(out, p)
		}
	}
	return out
}
