package sources

import (
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// kind is the kind of the log line that tells a change.
func (c Change) kind() string {
	if c.Failure != nil || c.State == SkillFailed || c.State == SkillDenied {
		return "error"
	}
	return string(c.Type)
}

// Text tells a change in a line. It holds untrusted text.
func (c Change) Text() string {
	switch c.Type {
	case ChangePhase:
		return string(c.Phase)
	case ChangeSkill:
		return skillText(c)
	case ChangeDelta:
		return deltaText(c.Delta)
	default:
		return statusText(c)
	}
}

func skillText(c Change) string {
	text := fmt.Sprintf("%s %s", c.Skill.Name, c.State)
	if c.State == SkillStarted {
		return strings.TrimSpace(text + " " + string(c.Skill.Args))
	}
	text += fmt.Sprintf(" %.1fms", c.Skill.DurationMS)
	if c.Skill.Error != "" {
		return text + " " + c.Skill.Error
	}
	return strings.TrimSpace(text + " " + string(c.Skill.Result))
}

func deltaText(d *ace.DeltaAnswer) string {
	fates := map[ace.Fate]int{}
	for _, op := range d.Operations {
		fates[op.Fate]++
	}
	return fmt.Sprintf("%.8s → %.8s: %d accepted, %d rejected", or(d.PlaybookBefore, "empty"), d.PlaybookAfter,
		fates[ace.FateAccepted], fates[ace.FateRejected])
}

func statusText(c Change) string {
	text := string(c.ExitStatus)
	if c.Cancel && c.ExitStatus == ace.Running {
		text = "cancel requested"
	}
	if c.Answer != "" {
		text += ", answer " + c.Answer
	}
	if c.Failure != nil {
		text += ": " + c.Failure.Message
	}
	return text
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// experimentLog adds a line for each task of an experiment that ends.
func (w *watcher) experimentLog(e *historypb.HistoryEvent) {
	if w.tasks == nil {
		w.tasks = &experimentFolder{open: map[int64]child{}, on: ExperimentEvents{Task: func(f Finished) {
			kind := "status"
			if f.Result.ExitStatus != ace.Success {
				kind = "error"
			}
			text := fmt.Sprintf("%s %s, answer %s", f.Result.TaskID, f.Result.ExitStatus, or(f.Result.Answer, "none"))
			if f.Failure != nil {
				text += ": " + f.Failure.Message
			}
			w.line(LogLine{Event: w.at, At: f.At, Kind: kind, Text: text})
		}}, decoder: history.Decoder{}}
	}
	w.at = e.GetEventId()
	w.tasks.apply(e)
}
