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
	"acescope/sources/logs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// shared is the state of both panes: the files and the selection of lines.
type shared struct {
	nav      *console.Navigation
	location *time.Location
	feed     Feed
	detail   console.Value[*histories.Detail]
	now      *logs.Logs // newest, nil until the first is read
	frozen   *logs.Logs // shown while paused, otherwise nil
	Want     selection
	paths    []string // chosen by the user, nil for those of the selected run
	calls    *ace.Ref // artifact with the tool calls of the selected run, or nil
}

// selection says which lines are shown.
type selection struct {
	file    string // "" for all
	Level   logfile.Severity
	mention bool  // only lines that mention the selected run
	from    int64 // lines before it were cleared
	session int64
}

// Feed follows log files.
type Feed interface {
	console.Feed[*logs.Logs]
	// FollowLogs follows files or directories. Without paths it follows those of the selected run.
	FollowLogs(paths []string)
	// FollowCalls shows the artifact with the tool calls of a run.
	FollowCalls(ref ace.Ref)
}

// Screen returns the screen with the log lines and the list of files.
func Screen(c *console.Console, feed Feed, detail console.Value[*histories.Detail]) tui.Screen {
	l := &shared{nav: c.Navigation, location: c.Location, feed: feed, detail: detail}
	return tui.Screen{Name: "logs", Keys: []string{"6"}, Detail: true,
		Help: "log files of the run, or of a directory", Argument: c.RunArgument("logs"),
		Views: []tui.View{newLines(l), newFileList(l)}, Share: 72}
}

// shown returns what the panes draw.
func (l *shared) shown() *logs.Logs {
	if l.frozen != nil {
		return l.frozen
	}
	return l.now
}

func (l *shared) refresh() {
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

// unseen returns the number of lines read since the display was paused.
func (l *shared) unseen() int64 {
	if l.frozen == nil || l.now == nil {
		return 0
	}
	if l.now.Session != l.frozen.Session {
		return l.now.First + int64(len(l.now.Lines))
	}
	return l.now.First + int64(len(l.now.Lines)) - l.frozen.First - int64(len(l.frozen.Lines))
}

// nameIn returns the displayed name of a file: relative to the base directory if it is below it.
func nameIn(s *logs.Logs, path string) string {
	if rel, ok := strings.CutPrefix(path, s.Base+string(filepath.Separator)); ok && s.Base != "" {
		return text.Safe(rel, " ")
	}
	return text.Safe(filepath.Base(path), " ")
}

// bindings returns the keys of both panes.
func (l *shared) bindings(view string) []tui.Binding {
	selected := func(s tui.Shell) { l.choose(nil); s.Note("showing the logs of the selected run") }
	return []tui.Binding{
		console.Key(view+".open_file", "follow other files or directories", "open", l.ask, "o"),
		console.Key(view+".back", "back to the logs of the selected run", "", selected, "backspace"),
		console.Key(view+".related", "show the tool calls of the selected run, if an artifact holds them", "",
			l.showCalls, "O"),
		console.Key(view+".pause", "pause the display, or resume it; reading continues", "pause", l.hold,
			"p"),
		console.Key(view+".clear", "clear the lines shown so far", "", l.clear, "ctrl+l"),
	}
}

func (l *shared) ask(s tui.Shell) {
	s.Ask(tui.Prompt{
		Label: "follow ",
		Hint:  "file or directory, separate several with commas; empty for the logs of the selected run",
		Done:  func(typed string) tea.Cmd { l.choose(pathsOf(typed)); return nil },
	})
}

func pathsOf(typed string) (paths []string) {
	for p := range strings.SplitSeq(typed, ",") {
		if p = strings.TrimSpace(p); p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

func (l *shared) showCalls(s tui.Shell) {
	switch {
	case !l.nav.Selected.Ok:
		s.Note("no run is selected")
	case l.calls == nil:
		s.Note("the tool calls of " + console.NameOf(l.nav.Selected.Run) +
			" are in its history; 2 shows them")
	default:
		l.frozen, l.Want.file, l.paths = nil, "", nil
		l.feed.FollowCalls(*l.calls)
		s.Note("showing the tool calls of " + console.NameOf(l.nav.Selected.Run) +
			"; backspace goes back to its logs")
	}
}

func (l *shared) choose(paths []string) {
	l.frozen, l.Want.file, l.paths = nil, "", paths
	l.feed.FollowLogs(paths)
}

func (l *shared) hold(s tui.Shell) {
	if l.frozen != nil {
		l.frozen = nil
		s.Note("resumed")
	} else if l.now != nil {
		l.frozen = l.now
		s.Note("display paused; new lines are counted and shown later")
	}
}

func (l *shared) clear() {
	if s := l.shown(); s != nil {
		l.Want.from = s.First + int64(len(s.Lines))
	}
}

// selectionText describes the selection, "" for all lines.
func (l *shared) selectionText() string {
	var parts []string
	if l.Want.file != "" && l.shown() != nil {
		parts = append(parts, "only "+nameIn(l.shown(), l.Want.file))
	}
	if l.Want.Level != logfile.Unknown {
		parts = append(parts, l.Want.Level.String()+" and above")
	}
	if l.Want.mention {
		parts = append(parts, "only this run")
	}
	return strings.Join(parts, ", ")
}

// picker keeps the numbers of the selected lines and extends them when lines are added.
type picker struct {
	want   selection
	next   int64 // number of the first line not checked yet
	picked []int64
	levels logfile.Levels
}

func (p *picker) pick(want selection, s *logs.Logs) []int64 {
	end := s.First + int64(len(s.Lines))
	if p.want != want || p.next > end || p.levels == nil {
		*p = picker{want: want, levels: logfile.Levels{}}
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

func (p *picker) wanted(e logs.Entry, mention []string) bool {
	if p.want.file != "" && e.File != p.want.file {
		return false
	}
	if e.Note != "" {
		return true
	}
	if p.want.Level != logfile.Unknown && p.levels.Next(e.File, []byte(e.Text)) < p.want.Level {
		return false
	}
	return !p.want.mention || logs.Mentions([]byte(e.Text), mention)
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
