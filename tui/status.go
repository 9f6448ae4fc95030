package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// How long a note and a problem stay in the status line. A note covers hints.
const (
	noteTime    = 6 * time.Second
	problemTime = 15 * time.Second
)

// maxErrors bounds the log of errors that are not in [Status]. The oldest are dropped, and the
// log counts them.
const maxErrors = 100

// messages is the current notice and the log of errors.
type messages struct {
	now    func() time.Time
	notice noticeMsg
	at     time.Time // of the notice
	errors []Error   // newest last
}

// show shows a notice; errors are logged too.
func (m *messages) show(n noticeMsg) {
	m.notice, m.at = n, m.now()
	if n.isError {
		m.log(n.text)
	}
}

// note shows the result of a key until the next key.
func (m *messages) note(text string) { m.show(noticeMsg{text: text, untilKey: true}) }

// nextKey hides the note about an earlier key.
func (m *messages) nextKey() {
	if m.notice.untilKey {
		m.notice = noticeMsg{}
	}
}

// noteAny shows a note unless it is empty.
func (m *messages) noteAny(text string) {
	if text != "" {
		m.note(text)
	}
}

func (m *messages) fail(err error) { m.show(noticeMsg{text: err.Error(), isError: true}) }

func (m *messages) log(text string) {
	m.errors = append(m.errors, Error{m.now(), text})
	m.errors = slices.Delete(m.errors, 0, max(0, len(m.errors)-maxErrors))
}

// warn logs several warnings and shows the first.
func (m *messages) warn(warnings []string) {
	if len(warnings) == 0 {
		return
	}
	for _, w := range warnings {
		m.log(w)
	}
	m.notice, m.at = noticeMsg{text: warnings[0], isError: true}, m.now()
	if len(warnings) > 1 {
		m.notice.text = fmt.Sprintf("%d warnings (:errors): %s", len(warnings), warnings[0])
	}
}

// current returns the notice, or ok false if it has expired.
func (m *messages) current(now time.Time) (n noticeMsg, ok bool) {
	stays := noteTime
	if m.notice.isError {
		stays = problemTime
	}
	return m.notice, m.notice.text != "" && now.Sub(m.at) < stays
}

// lines returns the log, newest first, together with the errors of the status, in lines of
// at most width cells.
func (m *messages) lines(s theme.Styles, status *Status, width int) []string {
	all := slices.Clone(m.errors)
	if status != nil {
		all = append(all, status.Errors...)
	}
	if len(all) == 0 {
		return []string{s.Muted.Paint("No errors so far.")}
	}
	slices.SortStableFunc(all, func(a, b Error) int { return b.At.Compare(a.At) })
	const stamp = "15:04:05  "
	var lines []string
	for _, e := range all {
		head := e.At.In(m.now().Location()).Format(stamp)
		for _, l := range text.Wrap(text.Safe(e.Text, " "), width-len(stamp)) {
			lines = append(lines, s.Muted.Paint(head)+s.Text.Paint(l))
			head = text.Spaces(len(stamp))
		}
	}
	if len(m.errors) == maxErrors {
		lines = append(lines, s.Muted.Paint("Older errors were dropped."))
	}
	return lines
}

// statusLine draws the last line: hints for the keys that work now, and on the right the
// most important message.
type statusLine struct {
	theme.Styles
	width    int
	now      time.Time
	status   *Status // nil before the first
	screen   string  // the current one
	keys     *keymap
	messages *messages
}

// hint is a key and what it does.
type hint struct{ key, what string }

func (h hint) width() int { return text.Width(h.key) + text.Width(h.what) + 3 }

// draw draws the hints as far as they fit; the last one is drawn in any case.
func (s statusLine) draw(hints []hint, last hint) string {
	right, ink := s.message()
	space := s.width * 2 / 3
	if n, ok := s.messages.current(s.now); ok && n.isError {
		space = s.width - 12 // the end of an error matters most; the hint for help fits beside it
	}
	right = text.Cut(right, space, s.Glyphs.Ellipsis)
	l := text.Line{Max: s.width - text.Width(right) - 2}
	l.Add(s.Text, " ")
	s.addWork(&l)
	reserved := 0
	if last.key != "" {
		reserved = last.width()
	}
	for _, h := range hints {
		if h.width()+reserved <= l.Rest() {
			l.Add(s.Key, h.key).Add(s.Hint, " "+h.what+"  ")
		}
	}
	if reserved > 0 && reserved <= l.Rest() {
		l.Add(s.Key, last.key).Add(s.Hint, " "+last.what+"  ")
	}
	return l.String(s.Text) + " " + ink.Paint(right) + " "
}

// message returns the most important message: a notice, a recent problem, pending approvals,
// or an unhealthy source.
func (s statusLine) message() (string, theme.Ink) {
	approvals := s.approvals()
	if n, ok := s.messages.current(s.now); ok {
		line := text.Safe(n.text, " ")
		switch {
		case n.isError:
			return s.Glyphs.Failed + " " + line, s.Error
		case approvals != "":
			return line + "  " + approvals, s.Alert
		}
		return line, s.Accent
	}
	if s.status == nil {
		return "", s.Text
	}
	if p := s.status.Errors; len(p) > 0 && s.now.Sub(p[len(p)-1].At) < problemTime {
		return s.Glyphs.Failed + " " + text.Safe(p[len(p)-1].Text, " "), s.Error
	}
	if approvals != "" {
		return approvals, s.Alert
	}
	if u := s.status.Unhealthy; u != "" {
		return s.Glyphs.Failed + " " + text.Safe(u, " "), s.Warning
	}
	return "", s.Text
}

// approvals counts what waits for the user, or returns "".
func (s statusLine) approvals() string {
	if s.status == nil || s.status.Approvals == 0 {
		return ""
	}
	return s.Glyphs.Failed + " " + ace.Count(s.status.Approvals, "approval") + " pending" +
		s.keyOfScreen("overview")
}

// keyOfScreen returns the key that opens a screen, or "" if it is the current one.
func (s statusLine) keyOfScreen(screen string) string {
	if s.screen == screen {
		return ""
	}
	if key := s.keys.firstKey("screen." + screen); key != "" {
		return ": " + key
	}
	return ": :" + screen
}

// addWork adds the progress of the newest long operation, and the number of others.
func (s statusLine) addWork(l *text.Line) {
	w, ok := s.status.newestWork()
	if !ok {
		return
	}
	l.Add(s.Running, text.Cut(text.Safe(w.Label, " "), max(s.width/4, 12), s.Glyphs.Ellipsis)+" ")
	switch {
	case w.Total > 0:
		const size = 8
		done := min(max(w.Done, 0), w.Total)
		full := int(done * size / w.Total)
		l.Add(s.Running, strings.Repeat(s.Glyphs.Full, full))
		l.Add(s.Border, strings.Repeat(s.Glyphs.Empty, size-full))
		l.Add(s.Text, " "+strconv.FormatInt(done*100/w.Total, 10)+"%")
	case w.Done > 0:
		l.Add(s.Text, ace.Number(w.Done))
	default:
		l.Add(s.Text, text.Span(s.now.Sub(w.Since)))
	}
	if n := len(s.status.Work) - 1; n > 0 {
		l.Add(s.Muted, " +"+strconv.Itoa(n))
	}
	if key := s.keys.firstKey("shell.cancel_work"); key != "" {
		l.Add(s.Key, " "+key).Add(s.Hint, " stop")
	}
	l.Add(s.Text, "   ")
}
