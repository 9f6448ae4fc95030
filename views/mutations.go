package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
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
	Do    func(context.Context) (said string, anew sources.Run, err error)
}

// Mutations are what a person may do to a run besides cancelling it. Each prepares it,
// which may read the run's history, and changes nothing; it is done with the answer to the
// question.
type Mutations interface {
	PrepareFork(ctx context.Context, of Target, at Point, changes []Field) (Prepared, error)
	PrepareReset(ctx context.Context, of Target, at Point, reason string) (Prepared, error)
	PrepareTerminate(of Target, reason string) (Prepared, error)
	PrepareSignal(of Target, name, argument string) (Prepared, error)
}

// prepareTimeout bounds the reading of the history that a fork is made of.
const prepareTimeout = actionTimeout

// propose prepares something behind the screen and then asks.
func (c *console) propose(what string, prepare func(context.Context) (Prepared, error)) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, prepareTimeout)
		defer stop()
		p, err := prepare(ctx)
		if err != nil {
			return tui.Failed(fmt.Errorf("%s: %w", what, err))
		}
		lines := make([]string, len(p.Lines))
		for i, l := range p.Lines {
			lines[i] = text.Safe(l, " ")
		}
		return tui.Asked(tui.Question{Title: p.Title, Lines: lines, Yes: p.Yes, Do: func() tea.Cmd { return c.perform(what, p) }})
	}
}

// anewMsg says that a run was started from here.
type anewMsg struct{ run sources.Run }

func (c *console) perform(what string, p Prepared) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, actionTimeout)
		defer stop()
		said, anew, err := p.Do(ctx)
		if err != nil {
			return tui.Failed(fmt.Errorf("%s: %w", what, err))
		}
		told := func() tea.Msg { return tui.Noted(said) }
		if anew.WorkflowID == "" {
			return told()
		}
		return tea.BatchMsg{told, func() tea.Msg { return anewMsg{anew} }}
	}
}

// target is the selected run; it says so where there is none.
func (c *console) target(s tui.Shell) (Target, bool) {
	if !c.selected.ok {
		s.Note("no run is selected")
		return Target{}, false
	}
	return Target{c.selected.run.WorkflowID, c.selected.run.RunID}, true
}

// mutationBindings are the keys for what is done to runs.
func (c *console) mutationBindings() []tui.Binding {
	return []tui.Binding{{Action: "run.fork", Keys: []string{"K"}, Help: "fork the selected run: run it again from a point, with something changed (asks first)",
		Mutates: true, Do: func(s tui.Shell) tea.Cmd { return c.askFork(s, "") }}}
}

// forkAt is the key of a screen that knows the point under its cursor.
func (c *console) forkAt(view string, keys []string, point func() string) []tui.Binding {
	if c.Actions == nil {
		return nil
	}
	return []tui.Binding{{Action: view + ".fork", Keys: keys, Help: "fork the run at what the cursor is on, with something changed (asks first)",
		Short: "fork", Mutates: true, Do: func(s tui.Shell) tea.Cmd { return c.askFork(s, point()) }}}
}

// mutationCommands are the commands for what is done to runs.
func (c *console) mutationCommands() []tui.Command {
	if c.Actions == nil {
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
func (c *console) askFork(s tui.Shell, point string) tea.Cmd {
	if _, ok := c.target(s); !ok {
		return nil
	}
	if point == "" {
		point = "phase=" + string(c.usualPhase())
	}
	s.Ask(tui.Prompt{Label: "fork", Value: point + " ", Hint: "phase=reflector model=other   or   at=16 prompt=\"…\" playbook=best.txt",
		Preview: previewFork, Complete: c.completeFork, Done: func(line string) tea.Cmd { return c.fork(s, line) }})
	return nil
}

func (c *console) usualPhase() ace.Phase {
	if r := c.selected.run; (r.Exit == ace.Failed || r.Exit == ace.Timeout) && r.Phase.Activity() != "" {
		return r.Phase
	}
	return ace.PhaseGenerator
}

func (c *console) fork(s tui.Shell, line string) tea.Cmd {
	of, ok := c.target(s)
	if !ok {
		return nil
	}
	at, fields, err := parseFork(line)
	if err != nil {
		return failed("fork", err)
	}
	return c.propose("fork", func(ctx context.Context) (Prepared, error) { return c.Actions.PrepareFork(ctx, of, at, fields) })
}

func failed(what string, err error) tea.Cmd {
	return func() tea.Msg { return tui.Failed(fmt.Errorf("%s: %w", what, err)) }
}

func (c *console) reset(s tui.Shell, args string) tea.Cmd {
	of, ok := c.target(s)
	if !ok {
		return nil
	}
	first, reason, _ := strings.Cut(args, " ")
	at, rest, err := parseFork(first)
	if len(rest) > 0 {
		err = fmt.Errorf("%q: first the point (at=EVENT or phase=PHASE), then the reason", first)
	}
	if reason = strings.TrimSpace(reason); err == nil && reason == "" {
		err = errNoReason
	}
	if err != nil {
		return failed("reset", err)
	}
	return c.propose("reset", func(ctx context.Context) (Prepared, error) { return c.Actions.PrepareReset(ctx, of, at, reason) })
}

var errNoReason = errors.New("give a reason; the history keeps it")

func (c *console) terminate(s tui.Shell, reason string) tea.Cmd {
	of, ok := c.target(s)
	switch {
	case !ok:
		return nil
	case !c.selected.run.Open():
		s.Note(nameOf(c.selected.run) + " has already closed")
		return nil
	case reason == "":
		return failed("terminate", errNoReason)
	}
	return c.propose("terminate", func(context.Context) (Prepared, error) { return c.Actions.PrepareTerminate(of, reason) })
}

func (c *console) signal(s tui.Shell, args string) tea.Cmd {
	of, ok := c.target(s)
	name, argument, _ := strings.Cut(args, " ")
	switch {
	case !ok:
		return nil
	case !c.selected.run.Open():
		s.Note(nameOf(c.selected.run) + " has already closed")
		return nil
	case name == "":
		return failed("signal", errors.New("give the signal's name, and its argument as JSON"))
	}
	return c.propose("signal", func(context.Context) (Prepared, error) {
		return c.Actions.PrepareSignal(of, name, strings.TrimSpace(argument))
	})
}

// parseFork reads name=value pairs; values with blanks stand in quotes.
func parseFork(line string) (at Point, fields []Field, err error) {
	pairs, err := splitPairs(line)
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

func splitPairs(line string) (pairs []Field, err error) {
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

// previewFork says what the line means so far.
func previewFork(line string) string {
	at, fields, err := parseFork(line)
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

func (c *console) completeForkArgs(arg string) []string {
	from, options := c.completeFork(arg, len(arg))
	for i, o := range options {
		options[i] = arg[:from] + o
	}
	return options
}

// completeFork completes names, phases, and values that the list knows.
func (c *console) completeFork(line string, cursor int) (int, []string) {
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
func (c *console) modelsSeen() []string {
	var names []string
	for _, r := range c.runs.Rows {
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
