package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/sources/runs"
	"acescope/tui"
)

// ParseFork reads a fork from name=value pairs. Values with spaces are quoted.
func ParseFork(line string) (at runs.Point, fields []runs.Field, err error) {
	pairs, err := SplitPairs(line)
	if err != nil {
		return at, nil, err
	}
	for _, p := range pairs {
		switch p.Name {
		case "at", "event":
			if at.Event, err = parseEvent(p.Value); err != nil {
				return at, nil, err
			}
		case "phase":
			at.Phase = ace.Phase(p.Value)
			if at.Phase.Activity() == "" {
				return at, nil, fmt.Errorf("unknown phase %q; use one of %s", p.Value,
					strings.Join(phaseNames(), ", "))
			}
		default:
			fields = append(fields, p)
		}
	}
	switch {
	case at.Event == 0 && at.Phase == "":
		err = errors.New("missing point; give at=EVENT or phase=PHASE")
	case at.Event != 0 && at.Phase != "":
		err = errors.New("give at=EVENT or phase=PHASE, not both")
	}
	return at, fields, err
}

func parseEvent(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("at=%s: want the number of an event", value)
	}
	return n, nil
}

// SplitPairs reads name=value pairs. Values with spaces are quoted.
func SplitPairs(line string) (pairs []runs.Field, err error) {
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
				return nil, fmt.Errorf("%s: missing closing quote", name)
			}
			if value, err = strconv.Unquote(quoted); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			rest = after[len(quoted):]
		} else {
			value, rest, _ = strings.Cut(after, " ")
		}
		pairs = append(pairs, runs.Field{name, value})
	}
	return pairs, nil
}

func phaseNames() []string {
	var names []string
	for _, p := range ace.Steps() {
		names = append(names, string(p))
	}
	return names
}

// forkFields are the fields that a fork can change, the most common first.
var forkFields = []string{"model=", "provider=", "prompt=\"", "playbook=", "branch=", "label=", "pace_ms=",
	"adapter=",
	"skills_config.allowed_tools=", "skills_config.permission_mode=", "steps.generator=", "steps.skills=",
	"steps.reflector=", "steps.curator=", "experiment_id=", "dataset_id=", "epoch=", "index="}

// Forks forks the selected run, or the marked ones.
type Forks struct {
	actor    *Actor
	launcher *Launcher
	actions  ForkActions
	nav      *Navigation
	listing  *Listing
	pipeline *Pipeline
	controls Controls
}

// Changes reports whether the console can change runs.
func (fs *Forks) Changes() bool { return fs.actor.Changes() }

func (fs *Forks) completeForkArgs(arg string) []string {
	from, options := fs.CompleteFork(arg, len(arg))
	return WithHead(arg[:from], options)
}

// CompleteFork completes field names, phases, and models of loaded runs.
func (fs *Forks) CompleteFork(line string, cursor int) (int, []string) {
	if fs.selectedFlow() {
		return completeFlowFork(fs.flowView(), line[:cursor])
	}
	typed := line[:cursor]
	from := strings.LastIndexByte(typed, ' ') + 1
	word := typed[from:]
	name, _, isValue := strings.Cut(word, "=")
	switch {
	case !isValue:
		return from, WithPrefix(word, slices.Concat([]string{"phase=", "at="}, forkFields))
	case name == "phase":
		return from, WithPrefix(word, WithHead("phase=", phaseNames()))
	case name == "model":
		return from, WithPrefix(word, WithHead("model=", modelsOf(fs.listing.Runs.Rows)))
	}
	return from, nil
}

func completePoint(arg string) []string {
	options := []string{"at="}
	for _, p := range phaseNames() {
		options = append(options, "phase="+p+" ")
	}
	return WithPrefix(arg, options)
}

// forkKey is the key that forks, on every screen.
const forkKey = "f"

// forkBinding returns the key that forks, on a screen.
func forkBinding(view, help, short string, do func(tui.Shell) tea.Cmd) tui.Binding {
	return MutatingKey(view+".fork", help+" (opens a form)", short, do, forkKey)
}

// MutationBindings returns the keys that change the selected run.
func (fs *Forks) MutationBindings() []tui.Binding {
	b := forkBinding("run", "fork the marked runs, or the selected one: rerun from a point, with changes",
		"fork", fs.markedOr(func(s tui.Shell) tea.Cmd { return fs.askFork(s, "") }))
	b.Hints = []string{"runs", "lineage"}
	return []tui.Binding{b}
}

// ForkAt returns the key that forks, for a screen that knows the point under its cursor.
func (fs *Forks) ForkAt(view string, point func() string) []tui.Binding {
	if !fs.actor.Acts() {
		return nil
	}
	return []tui.Binding{forkBinding(view, "fork the run at the cursor, with changes", "fork",
		func(s tui.Shell) tea.Cmd { return fs.askFork(s, point()) })}
}

// ForkOf returns the key that forks, for a screen whose cursor may be on a run other than the selected one.
// The key selects that run. at returns the run, and the point or "" for the default.
func (fs *Forks) ForkOf(view string, at func() (runs.Run, string, bool)) tui.Binding {
	return forkBinding(view, "fork the run under the cursor, with changes", "", func(s tui.Shell) tea.Cmd {
		r, point, ok := at()
		if !ok {
			s.Note("no run is selected")
			return nil
		}
		fs.nav.Show(r)
		return fs.askFork(s, point)
	})
}

// ForkMarkedOf is [Forks.ForkOf] for a screen that marks runs: the key prefers the marked runs.
func (fs *Forks) ForkMarkedOf(view string, at func() (runs.Run, string, bool)) tui.Binding {
	return forkBinding(view, "fork the marked runs, or the run under the cursor, with changes", "fork",
		fs.markedOr(fs.ForkOf(view, at).Do))
}

// markedOr returns an action that forks the marked runs, or without marks does the other.
func (fs *Forks) markedOr(other func(tui.Shell) tea.Cmd) func(tui.Shell) tea.Cmd {
	return func(s tui.Shell) tea.Cmd {
		if fs.actor.hasMarks() {
			return fs.askForkMarked(s)
		}
		return other(s)
	}
}

// MarkMatching marks all runs that the filter matches. It reads those that are not loaded. Until the list is
// loaded, its rows are those of the previous filter.
func (fs *Forks) MarkMatching(s tui.Shell) tea.Cmd {
	list := fs.listing.Runs
	if fs.actions == nil || !list.Loading && list.First == 0 && !list.More && !list.Bounded {
		fs.listing.Mark(s, list.Rows)
		return nil
	}
	working, progress, end := fs.controls.StartWork(fs.pipeline.Context, "reading the runs to mark")
	return func() tea.Msg {
		defer end()
		progress(0, list.Total)
		found, err := fs.actions.Matching(working, list.Query, MaxMarks+1)
		switch {
		case errors.Is(err, context.Canceled):
			return tui.Noted("stopped; no run was marked")
		case err != nil:
			return tui.Failed(err)
		}
		return tui.Then(func(s tui.Shell) tea.Cmd { fs.listing.Mark(s, found); return nil })
	}
}

// MutationCommands returns the commands that change runs.
func (fs *Forks) MutationCommands() []tui.Command {
	if !fs.actor.Acts() {
		return nil
	}
	return append([]tui.Command{
		{Name: "fork", Args: "[at=EVENT|phase=PHASE|from=STEP] [model=M] [prompt=\"…\"] …", Mutates: true,
			Help: "rerun it from a point, with changes", Complete: fs.completeForkArgs,
			Do: func(s tui.Shell, args string) tea.Cmd {
				if args == "" {
					return fs.askFork(s, "")
				}
				return fs.fork(s, args)
			}},
	}, fs.actor.Commands()...)
}

// askFork opens the form for a fork, or the prompt if the run is that of a flow. The fork point is the
// point under the cursor, or else the phase or step in which the run failed, or else the first phase or
// step.
func (fs *Forks) askFork(s tui.Shell, point string) tea.Cmd {
	of, ok := fs.forkTarget(s)
	switch {
	case !ok:
		return nil
	case fs.selectedFlow():
		fs.askFlowFork(s, point)
		return nil
	}
	_, at, _ := strings.Cut(cmp.Or(point, "phase="+string(fs.defaultPhase())), "=")
	return fs.askForkForm(s, of, strings.TrimSpace(at))
}

func (fs *Forks) askFlowFork(s tui.Shell, point string) {
	name := NameOf(fs.nav.Selected.Run)
	s.Ask(tui.Prompt{Label: "fork", Complete: fs.CompleteFork, Done: func(line string) tea.Cmd {
		return fs.fork(s, line)
	},
		Check:   func(line string) error { _, err := fs.parseFork(line); return err },
		Value:   cmp.Or(point, defaultStep(fs.flowView())) + " ",
		Hint:    "from=STEP inputs.NAME=VALUE prompt=\"…\"   or   at=16 flow=FILE",
		Preview: func(line string) string { return name + ": " + PreviewFlowFork(fs.flowView(), line) }})
}

// forkTarget returns the selected run if it can be forked. If not, it notes why.
func (fs *Forks) forkTarget(s tui.Shell) (of runs.ID, ok bool) {
	r, ok := fs.nav.Target(s)
	of = r.ID()
	if !ok || fs.actor.refused(s, "fork", of) {
		return of, false
	}
	switch r.Type {
	case ace.ExperimentWorkflow:
		s.Note("an experiment cannot be forked; fork the run of one of its tasks")
	case session.Workflow:
		s.Note("an agent session cannot be forked; start another with :session start")
	case run.Workflow:
		s.Note("a blueprint run cannot be forked; start another with acescope agent start")
	default:
		return of, true
	}
	return of, false
}

func (fs *Forks) defaultPhase() ace.Phase {
	if r := fs.nav.Selected.Run; (r.Status == ace.Failed || r.Status == ace.TimedOut) &&
		r.Phase.Activity() != "" {
		return r.Phase
	}
	return ace.PhaseGenerator
}

// parseFork reads the fork of the selected run.
func (fs *Forks) parseFork(line string) (c runs.Change, err error) {
	c.Verb = "fork"
	if fs.selectedFlow() {
		c.Step, c.At.Event, c.Fields, err = ParseFlowFork(line)
	} else {
		c.At, c.Fields, err = ParseFork(line)
	}
	return c, err
}

func (fs *Forks) fork(s tui.Shell, line string) tea.Cmd {
	of, ok := fs.forkTarget(s)
	if !ok {
		return nil
	}
	c, err := fs.parseFork(line)
	if err != nil {
		return Failed("fork", err)
	}
	return fs.actor.Propose(s, "fork", of, fs.actor.preparing(c))
}
