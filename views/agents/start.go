package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/sessions"
	"acescope/tui"
	"acescope/tui/widget"
	"acescope/views/console"
)

// startFields returns the fields of a new session. The command "session start" takes them as name=value pairs.
func startFields(c console.StartChoices) []tui.Field {
	first := func(list []string) string { return strings.Join(list[:min(len(list), 1)], "") }
	return []tui.Field{
		{Name: "agent", Label: "Agent", Value: first(c.Agents), Options: c.Agents, Hint: "that is installed"},
		{Name: "dir", Label: "Directory", Value: first(c.Dirs), Options: c.Dirs, Hint: "where the agent works"},
		{Name: "prompt", Label: "First message", Lines: true, Hint: "empty: it waits for one"},
		{Name: "model", Label: "Model", Hint: "empty: its default"},
		{Name: "name", Label: "Name", Hint: "empty: its ID"},
		{Name: "mode", Label: "Permission mode", Options: []string{"default", "acceptEdits", "plan", "dontAsk"},
			Hint: "empty: its default"},
		{Name: "allow", Label: "Allowed tools", Hint: "separated by commas"},
		{Name: "rule", Label: "Rules", Lines: true, Hint: "TOOL=allow, deny, ask"},
		{Name: "otherwise", Label: "Other tools", Options: []string{"ask", "deny"}, Hint: "empty: ask"},
		{Name: "resume", Label: "Resume", Hint: "ID of a conversation"},
	}
}

// askStart reads which agents are installed and which directories exist, then opens the form for a session.
func (a *Agents) askStart(tui.Shell) tea.Cmd {
	dirs := a.directories()
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(a.pipeline.Context, console.ActionTimeout)
		defer stop()
		c := a.actions.StartChoices(ctx, dirs)
		if len(c.Agents) == 0 {
			return tui.Failed(errors.New("no agent is installed; install one: " + c.Install[ace.Agents()[0]]))
		}
		return tui.Filled(tui.Form{Title: "New session", Name: "session", Verb: "start", Fields: startFields(c),
			Check: func(v tui.Values) tui.Report { return a.checkStart(v, c) },
			Submit: func(ctx context.Context, v tui.Values) (func(tui.Shell) tea.Cmd, error) {
				in, first, err := startOf(v)
				if err != nil {
					return nil, err
				}
				id, err := a.actions.StartSession(ctx, in, first)
				return func(s tui.Shell) tea.Cmd {
					s.Open("agents")
					s.Note("started session " + id)
					return nil
				}, err
			}})
	}
}

// checkStart says what a session with these values does, or why it cannot be started.
func (a *Agents) checkStart(v tui.Values, c console.StartChoices) tui.Report {
	in, first, err := startOf(v)
	if how := c.Install[in.Agent]; how != "" {
		problem := in.Agent + " is not installed: " + how
		return tui.Report{Problems: map[string]string{"agent": problem}}
	}
	if err != nil {
		return tui.Report{Problems: map[string]string{"": err.Error()}}
	}
	summary := "starts " + in.Agent + " in " + cmp.Or(in.WorkingDir, "the directory of the conversation")
	summary += widget.If(in.Resume, ", continues "+in.AgentSessionID, "")
	summary += widget.If(first == "", "; it then waits for a message", " with a first message")
	return tui.Report{Lines: []string{summary}}
}

// maxDirs bounds the directories that are offered for a session.
const maxDirs = 20

// directories lists where a session may start: the directory of the selected session, the console's, then
// those of the newest sessions.
func (a *Agents) directories() (dirs []string) {
	add := func(dir string) {
		if strings.HasPrefix(dir, "/") && !slices.Contains(dirs, dir) && len(dirs) < maxDirs {
			dirs = append(dirs, dir)
		}
	}
	if r, ok := a.Row(); ok {
		add(r.Dir)
	}
	add(a.workDir)
	for _, r := range slices.SortedStableFunc(slices.Values(a.rows), orders[0].less) {
		add(r.Dir)
	}
	return dirs
}

// startOf returns the session that values stand for, and its first message.
func startOf(v tui.Values) (in session.Input, first string, err error) {
	in = session.Input{Agent: cmp.Or(v["agent"], "claude"), WorkingDir: v["dir"], Model: v["model"],
		Name: v["name"], PermissionMode: v["mode"], DefaultAction: session.Action(v["otherwise"]),
		AgentSessionID: v["resume"], Resume: v["resume"] != ""}
	if v["allow"] != "" {
		in.AllowedTools = strings.Split(v["allow"], ",")
	}
	for rule := range strings.Lines(v["rule"]) {
		r, err := sessions.ParseRule(strings.TrimSpace(rule))
		if err != nil {
			return in, "", err
		}
		in.Rules = append(in.Rules, r)
	}
	if o := v["otherwise"]; o != "" && o != "ask" && o != "deny" {
		return in, "", fmt.Errorf("otherwise=%s: want ask or deny", o)
	}
	adopts := in.Resume && in.Agent == "claude" // in the directory where the conversation began
	if in.WorkingDir == "" && !adopts {
		return in, "", errors.New("missing dir=…, the directory in which the agent works")
	}
	check := in
	check.SessionID, check.WorkingDir = "x", cmp.Or(in.WorkingDir, "/")
	return in, strings.TrimSpace(v["prompt"]), check.Check()
}

// ParseStart reads a new session from name=value pairs. The text after the last pair is the first message.
func ParseStart(line string) (in session.Input, first string, err error) {
	head := startPairs.FindString(line)
	pairs, err := console.SplitPairs(head)
	if err != nil {
		return in, "", err
	}
	v := tui.Values{"prompt": line[len(head):]}
	for _, p := range pairs {
		separator := map[string]string{"allow": ",", "rule": "\n"}[p.Name]
		if separator != "" && v[p.Name] != "" {
			p.Value = v[p.Name] + separator + p.Value
		}
		v[p.Name] = p.Value
	}
	return startOf(v)
}

// startPairs matches the name=value pairs at the start of a line.
var startPairs = func() *regexp.Regexp {
	var names []string
	for _, f := range startFields(console.StartChoices{}) {
		names = append(names, f.Name)
	}
	return regexp.MustCompile(`(?s)^(?:\s*(?:` + strings.Join(names, "|") +
		`)=(?:"(?:\\.|[^"\\])*"?|[^" ]\S*)?(?:\s+|$))*`)
}()

func (a *Agents) start(s tui.Shell, line string) tea.Cmd {
	in, first, err := ParseStart(line)
	if err != nil {
		return console.Failed("start", err)
	}
	s.Open("agents")
	return a.pipeline.Act("start", func(ctx context.Context) (string, error) {
		id, err := a.actions.StartSession(ctx, in, first)
		return "started session " + id, err
	})
}

// completeSession completes the fields of a new session, and the values of the last one.
func completeSession(arg string) (options []string) {
	head, word := arg[:strings.LastIndexByte(arg, ' ')+1], arg[strings.LastIndexByte(arg, ' ')+1:]
	if !strings.HasPrefix(head, "start ") {
		return nil
	}
	for _, f := range startFields(console.StartChoices{Agents: ace.Agents()}) {
		options = append(options, f.Name+"=")
		for _, o := range f.Options {
			if strings.HasPrefix(word, f.Name+"=") {
				options = append(options, f.Name+"="+o)
			}
		}
	}
	return console.WithHead(head, console.WithPrefix(word, options))
}
