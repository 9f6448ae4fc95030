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
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/tui"
	"acescope/tui/text"
)

// Target is the run that something is done to: the one that was selected when it was
// asked for, whatever the list does meanwhile.
type Target struct{ WorkflowID, RunID string }

// Point is where in a run: an event, or the begin of a phase. One of the two is given.
type Point struct {
	Event int64
	Phase ace.Phase
}

// Field is a field of an input and its new value.
type Field struct{ Name, Value string }

// Prepared is what would be done, in words, and how to do it. Do gives a line that says
// what was done, and the run that came of it where that is a new one.
type Prepared struct {
	Title string
	Lines []string // plain text, not yet safe
	Yes   string   // what yes does, as a verb
	Do    func(context.Context) (said string, anew runs.Run, err error)
}

// prepareTimeout bounds the reading of the history that a fork is made of.
const prepareTimeout = ActionTimeout

// Propose prepares something behind the screen, says so meanwhile, and then asks. It can
// be left before it asks.
func (c *Console) Propose(s tui.Shell, what string, of Target, prepare func(context.Context, Target) (Prepared, error)) tea.Cmd {
	ctx, stop := context.WithTimeout(c.Context, prepareTimeout)
	w := &tui.Waiting{Title: strings.ToUpper(what[:1]) + what[1:] + " " + NameOf(c.Selected.Run) + "?", Leave: stop,
		Lines: []string{"workflow  " + text.Safe(of.WorkflowID, " "), "run       " + text.Safe(cmp.Or(of.RunID, "the newest, being looked up"), " ")}}
	s.Wait(w)
	return func() tea.Msg {
		defer stop()
		return tui.Settled(w, c.prepared(ctx, what, of, prepare))
	}
}

// prepared is the question, or why there is none. A run that was not named is looked up
// first: what is asked about one run is done to no other.
func (c *Console) prepared(ctx context.Context, what string, of Target, prepare func(context.Context, Target) (Prepared, error)) tea.Msg {
	var p Prepared
	of, err := c.frozen(ctx, of)
	if err == nil {
		p, err = prepare(ctx, of)
	}
	if err != nil {
		return tui.Failed(fmt.Errorf("%s: %w", what, err))
	}
	lines := make([]string, len(p.Lines))
	for i, l := range p.Lines {
		lines[i] = text.Safe(l, " ")
	}
	return tui.Asked(tui.Question{Title: p.Title, Lines: lines, Yes: p.Yes, Do: func() tea.Cmd { return c.Perform(what, p) }})
}

// frozen names the run where only its workflow is named: the newest as of now.
func (c *Console) frozen(ctx context.Context, of Target) (Target, error) {
	if of.RunID != "" {
		return of, nil
	}
	return c.Actions.Freeze(ctx, of.WorkflowID)
}

// AnewMsg says that a run was started from here.
type AnewMsg struct{ Run runs.Run }

func (c *Console) Perform(what string, p Prepared) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, ActionTimeout)
		defer stop()
		said, anew, err := p.Do(ctx)
		if err != nil {
			return tui.Failed(fmt.Errorf("%s: %w", what, err))
		}
		told := func() tea.Msg { return tui.Noted(said) }
		if anew.WorkflowID == "" {
			return told()
		}
		return tea.BatchMsg{told, func() tea.Msg { return AnewMsg{anew} }}
	}
}

// target is the selected run; it says so where there is none.
func (c *Console) target(s tui.Shell) (Target, bool) {
	if !c.Selected.Ok {
		s.Note("no run is selected")
		return Target{}, false
	}
	return Target{c.Selected.Run.WorkflowID, c.Selected.Run.RunID}, true
}

// forkKey forks, on every screen.
const forkKey = "f"

// MutationBindings are the keys for what is done to runs.
func (c *Console) MutationBindings() []tui.Binding {
	return []tui.Binding{{Action: "run.fork", Keys: []string{forkKey}, Help: "fork the selected run: run it again from a point, with something changed (asks first)",
		Short: "fork", Hints: []string{"runs", "lineage"}, Mutates: true, Do: func(s tui.Shell) tea.Cmd { return c.askFork(s, "") }}}
}

// ForkAt is the key of a screen that knows the point under its cursor.
func (c *Console) ForkAt(view string, point func() string) []tui.Binding {
	if !c.Acts() {
		return nil
	}
	return []tui.Binding{{Action: view + ".fork", Keys: []string{forkKey}, Help: "fork the run at what the cursor is on, with something changed (asks first)",
		Short: "fork", Mutates: true, Do: func(s tui.Shell) tea.Cmd { return c.askFork(s, point()) }}}
}

// ForkOf is the key of a screen whose cursor stands on a run that is not the selected one:
// it becomes that. at gives the point too, "" for the usual.
func (c *Console) ForkOf(view string, at func() (runs.Run, string, bool)) tui.Binding {
	return tui.Binding{Action: view + ".fork", Keys: []string{forkKey}, Help: "fork the run under the cursor, with something changed (asks first)", Mutates: true,
		Do: func(s tui.Shell) tea.Cmd {
			r, point, ok := at()
			if !ok {
				s.Note("there is no run here")
				return nil
			}
			c.Show(r)
			return c.askFork(s, point)
		}}
}

// MutationCommands are the commands for what is done to runs.
func (c *Console) MutationCommands() []tui.Command {
	if !c.Acts() {
		return nil
	}
	return []tui.Command{
		{Name: "fork", Args: "[at=EVENT|phase=PHASE] [model=M] [prompt=\"…\"] …", Help: "run it again from a point, with something changed", Mutates: true,
			Complete: c.completeForkArgs, Do: func(s tui.Shell, args string) tea.Cmd {
				if args == "" {
					return c.askFork(s, "")
				}
				return c.fork(s, args)
			}},
		{Name: "reset", Args: "at=EVENT|phase=PHASE REASON", Help: "let the run itself begin again at a point, with the same input", Mutates: true,
			Complete: completePoint, Do: c.reset},
		{Name: "terminate", Args: "REASON", Help: "end the run at once, unasked", Mutates: true, Do: c.terminate},
		{Name: "signal", Args: "NAME [JSON]", Help: "send the run a signal", Mutates: true, Do: c.signal},
	}
}

// askFork opens the line in which a fork is described. It begins with the point: the one
// under the cursor, else where the run failed, else its first phase.
func (c *Console) askFork(s tui.Shell, point string) tea.Cmd {
	if of, ok := c.target(s); !ok || c.refused(s, "fork", of) {
		return nil
	}
	if !c.forkable(s) {
		return nil
	}
	name := NameOf(c.Selected.Run)
	if point == "" {
		point = "phase=" + string(c.usualPhase())
	}
	s.Ask(tui.Prompt{Label: "fork", Value: point + " ", Hint: "phase=reflector model=other   or   at=16 prompt=\"…\" playbook=best.txt",
		Preview: func(line string) string { return name + ": " + PreviewFork(line) }, Complete: c.CompleteFork, Done: func(line string) tea.Cmd { return c.fork(s, line) }})
	return nil
}

// forkable tells whether the selected run is of a type that can be forked, and says it where
// it is not.
func (c *Console) forkable(s tui.Shell) bool {
	switch c.Selected.Run.Type {
	case ace.ExperimentWorkflow:
		s.Note("an experiment cannot be forked; fork a run of one of its tasks")
	case sessions.SessionWorkflow:
		s.Note("a session of an agent cannot be forked; :session start begins another")
	case runners.RunWorkflow:
		s.Note("a run of a blueprint cannot be forked; acescope agent start begins another")
	default:
		return true
	}
	return false
}

func (c *Console) usualPhase() ace.Phase {
	if r := c.Selected.Run; (r.Exit == ace.Failed || r.Exit == ace.Timeout) && r.Phase.Activity() != "" {
		return r.Phase
	}
	return ace.PhaseGenerator
}

func (c *Console) fork(s tui.Shell, line string) tea.Cmd {
	of, ok := c.target(s)
	if !ok || c.refused(s, "fork", of) || !c.forkable(s) {
		return nil
	}
	at, fields, err := ParseFork(line)
	if err != nil {
		return Failed("fork", err)
	}
	return c.Propose(s, "fork", of, func(ctx context.Context, of Target) (Prepared, error) {
		return c.Actions.PrepareFork(ctx, of, at, fields)
	})
}

func Failed(what string, err error) tea.Cmd {
	return func() tea.Msg { return tui.Failed(fmt.Errorf("%s: %w", what, err)) }
}

func (c *Console) reset(s tui.Shell, args string) tea.Cmd {
	of, ok := c.target(s)
	if !ok || c.refused(s, "reset", of) {
		return nil
	}
	first, reason, _ := strings.Cut(args, " ")
	at, rest, err := ParseFork(first)
	if len(rest) > 0 {
		err = fmt.Errorf("%q: first the point (at=EVENT or phase=PHASE), then the reason", first)
	}
	if reason = strings.TrimSpace(reason); err == nil && reason == "" {
		err = errNoReason
	}
	if err != nil {
		return Failed("reset", err)
	}
	return c.Propose(s, "reset", of, func(ctx context.Context, of Target) (Prepared, error) {
		return c.Actions.PrepareReset(ctx, of, at, reason)
	})
}

var errNoReason = errors.New("give a reason; the history keeps it")

func (c *Console) terminate(s tui.Shell, reason string) tea.Cmd {
	of, ok := c.target(s)
	switch {
	case !ok || c.refused(s, "terminate", of):
		return nil
	case !c.Selected.Run.Open():
		s.Note(NameOf(c.Selected.Run) + " has already closed")
		return nil
	case reason == "":
		return Failed("terminate", errNoReason)
	}
	return c.Propose(s, "terminate", of, func(_ context.Context, of Target) (Prepared, error) { return c.Actions.PrepareTerminate(of, reason) })
}

func (c *Console) signal(s tui.Shell, args string) tea.Cmd {
	of, ok := c.target(s)
	name, argument, _ := strings.Cut(args, " ")
	switch {
	case !ok || c.refused(s, "signal", of):
		return nil
	case !c.Selected.Run.Open():
		s.Note(NameOf(c.Selected.Run) + " has already closed")
		return nil
	case name == "":
		return Failed("signal", errors.New("give the signal's name, and its argument as JSON"))
	}
	return c.Propose(s, "signal", of, func(_ context.Context, of Target) (Prepared, error) {
		return c.Actions.PrepareSignal(of, name, strings.TrimSpace(argument))
	})
}

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

func (c *Console) completeForkArgs(arg string) []string {
	from, options := c.CompleteFork(arg, len(arg))
	for i, o := range options {
		options[i] = arg[:from] + o
	}
	return options
}

// CompleteFork completes names, phases, and values that the list knows.
func (c *Console) CompleteFork(line string, cursor int) (int, []string) {
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
		return from, begin("model=", value, c.modelsSeen())
	}
	return from, nil
}

// modelsSeen are the models of the runs that are loaded.
func (c *Console) modelsSeen() []string {
	var names []string
	for _, r := range c.Runs.Rows {
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
