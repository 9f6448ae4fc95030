// Package logs follows log files and filters their lines.
package logs

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/logfile"
	logspkg "acescope/sources/logs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// logs is what the two panes of the logs share: the files and which lines are wanted.
type logScreen struct {
	nav      *console.Navigation
	location *time.Location
	feed     Feed
	detail   console.Value[*histories.Detail]
	now      *logspkg.Logs // newest, nil before the first
	frozen   *logspkg.Logs // what is shown while it is paused, else nil
	Want     logWant
	paths    []string // chosen by name, nil for those of the selected run
	calls    *ace.Ref // the artifact with the selected run's calls, nil where there is none
}

// logWant says which of the lines are shown.
type logWant struct {
	file    string // "" for all
	Level   logfile.Severity
	mention bool  // only lines that mention the selected run
	from    int64 // lines before it were cleared away
	session int64
}

// Feed follows log files.
type Feed interface {
	console.Feed[*logspkg.Logs]
	// FollowLogs follows files or directories; none go back to those of the selected run.
	FollowLogs(paths []string)
	// FollowCalls shows the artifact with the tool calls of a run.
	FollowCalls(ref ace.Ref)
}

// LogScreen is the lines and beside them the files.
func LogScreen(c *console.Console, feed Feed, detail console.Value[*histories.Detail]) tui.Screen {
	l := &logScreen{nav: c.Navigation, location: c.Location, feed: feed, detail: detail}
	return tui.Screen{Name: "logs", Keys: []string{"6"}, Help: "log files of the run, or of a directory",
		Views: []tui.View{newLogLines(l), newLogFiles(l)}, Share: 72}
}

// shown is what the panes draw.
func (l *logScreen) shown() *logspkg.Logs {
	if l.frozen != nil {
		return l.frozen
	}
	return l.now
}

func (l *logScreen) takeLogs() {
	l.calls = nil
	if d := l.detail.Value(); d != nil && l.nav.Selected.Is(d.WorkflowID, d.RunID) {
		l.calls = d.CallLog
	}
	s := l.feed.Value()
	if s != nil && s.Session != l.Want.session {
		l.Want.session, l.Want.from = s.Session, 0
	}
	l.now = s
}

// unseen is how many lines came since the pause began.
func (l *logScreen) unseen() int64 {
	if l.frozen == nil || l.now == nil {
		return 0
	}
	if l.now.Session != l.frozen.Session {
		return l.now.First + int64(len(l.now.Lines))
	}
	return l.now.First + int64(len(l.now.Lines)) - l.frozen.First - int64(len(l.frozen.Lines))
}

// nameIn is a file's name as it is shown: below the base directory where it lies there.
func nameIn(s *logspkg.Logs, path string) string {
	if rel, ok := strings.CutPrefix(path, s.Base+string(filepath.Separator)); ok && s.Base != "" {
		return text.Safe(rel, " ")
	}
	return text.Safe(filepath.Base(path), " ")
}

// bindings are the keys of both panes; view is the name their actions begin with.
func (l *logScreen) bindings(view string) []tui.Binding {
	return []tui.Binding{
		{Action: view + ".open", Keys: []string{"o"}, Help: "follow other files or directories", Short: "open", Do: l.ask},
		{Action: view + ".run", Keys: []string{"O"}, Help: "back to the logs of the selected run",
			Do: func(s tui.Shell) tea.Cmd { l.choose(nil); s.Note("the logs of the selected run"); return nil }},
		{Action: view + ".calls", Keys: []string{"a"}, Help: "the tool calls of the selected run, whole, where an artifact holds them", Do: l.showCalls},
		{Action: view + ".pause", Keys: []string{"P"}, Help: "hold the lines still, or go on; the reading goes on", Short: "hold", Do: l.hold},
		{Action: view + ".clear", Keys: []string{"c"}, Help: "clear away the lines that are here",
			Do: func(tui.Shell) tea.Cmd { l.clear(); return nil }},
	}
}

func (l *logScreen) ask(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{
		Label: "follow ", Hint: "file or directory, several apart by commas; empty for the logs of the selected run",
		Done: func(typed string) tea.Cmd { l.choose(pathsOf(typed)); return nil },
	})
	return nil
}

func pathsOf(typed string) (paths []string) {
	for p := range strings.SplitSeq(typed, ",") {
		if p = strings.TrimSpace(p); p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

func (l *logScreen) showCalls(s tui.Shell) tea.Cmd {
	switch {
	case !l.nav.Selected.Ok:
		s.Note("no run is selected")
	case l.calls == nil:
		s.Note("the calls of " + console.NameOf(l.nav.Selected.Run) + " lie in its history: 2 shows them")
	default:
		l.frozen, l.Want.file, l.paths = nil, "", nil
		l.feed.FollowCalls(*l.calls)
		s.Note("the tool calls of " + console.NameOf(l.nav.Selected.Run) + "; O goes back to its logs")
	}
	return nil
}

func (l *logScreen) choose(paths []string) {
	l.frozen, l.Want.file, l.paths = nil, "", paths
	l.feed.FollowLogs(paths)
}

func (l *logScreen) hold(s tui.Shell) tea.Cmd {
	if l.frozen != nil {
		l.frozen = nil
		s.Note("going on")
	} else if l.now != nil {
		l.frozen = l.now
		s.Note("held: lines that come are counted and shown later")
	}
	return nil
}

func (l *logScreen) clear() {
	if s := l.shown(); s != nil {
		l.Want.from = s.First + int64(len(s.Lines))
	}
}

// choice says which lines are left out, "" for none.
func (l *logScreen) choice() string {
	var parts []string
	if l.Want.file != "" && l.shown() != nil {
		parts = append(parts, "only "+nameIn(l.shown(), l.Want.file))
	}
	if l.Want.Level != logfile.Unknown {
		parts = append(parts, l.Want.Level.String()+" and worse")
	}
	if l.Want.mention {
		parts = append(parts, "only this run")
	}
	return strings.Join(parts, ", ")
}

// logPicker keeps the numbers of the wanted lines, and goes on where it was when more come.
type logPicker struct {
	want   logWant
	next   int64 // number of the first line that was not looked at
	picked []int64
	levels map[string]*logfile.Levels
}

func (p *logPicker) pick(want logWant, s *logspkg.Logs) []int64 {
	end := s.First + int64(len(s.Lines))
	if p.want != want || p.next > end || p.levels == nil {
		*p = logPicker{want: want, levels: map[string]*logfile.Levels{}}
	}
	for p.next = max(p.next, s.First, want.from); p.next < end; p.next++ {
		if p.wanted(s.Lines[p.next-s.First], s.Mention) {
			p.picked = append(p.picked, p.next)
		}
	}
	gone, _ := slices.BinarySearch(p.picked, s.First)
	if p.picked = p.picked[gone:]; cap(p.picked) > 4*len(p.picked)+1024 {
		p.picked = slices.Clone(p.picked)
	}
	return p.picked
}

func (p *logPicker) wanted(e logspkg.LogEntry, mention []string) bool {
	if p.want.file != "" && e.File != p.want.file {
		return false
	}
	if e.Note != "" {
		return true
	}
	if p.want.Level != logfile.Unknown {
		levels := p.levels[e.File]
		if levels == nil {
			levels = &logfile.Levels{}
			p.levels[e.File] = levels
		}
		if levels.Next([]byte(e.Text)) < p.want.Level {
			return false
		}
	}
	return !p.want.mention || logspkg.Mentions([]byte(e.Text), mention)
}

func levelInk(l logfile.Severity, s theme.Styles) theme.Ink {
	switch l {
	case logfile.Error:
		return s.Error
	case logfile.Warn:
		return s.Warning
	case logfile.Info:
		return s.Accent
	}
	return s.Muted
}
