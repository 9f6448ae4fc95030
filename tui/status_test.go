package tui

import (
	"strings"
	"testing"
	"time"
)

// TestNoticeShowsApprovals checks that a notice does not hide tool calls that wait for the user.
func TestNoticeShowsApprovals(t *testing.T) {
	now := time.Now()
	s := statusLine{now: now, status: &Status{Approvals: 1}, screen: "overview", messages: &messages{}}
	s.messages.notice, s.messages.at = noticeMsg{text: "sent"}, now
	if line, _ := s.message(); !strings.Contains(line, "sent") ||
		!strings.Contains(line, "1 approval pending") {
		t.Error(line)
	}
	s.status.Approvals = 0
	if line, ink := s.message(); line != "sent" || ink != s.Accent {
		t.Error(line)
	}
}
