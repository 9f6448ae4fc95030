package histories

import (
	"fmt"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

// Kind is the kind of the log line that tells a change.
func (c Change) Kind() string {
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
	text += " " + tookText(c.Skill.DurationMS)
	if c.Skill.Error != "" {
		return text + " " + c.Skill.Error
	}
	return strings.TrimSpace(text + " " + string(c.Skill.Result))
}

// tookText is a number of milliseconds; of less than one, in microseconds.
func tookText(ms float64) string {
	if ms > 0 && ms < 1 {
		return fmt.Sprintf("%.0fµs", max(ms*1000, 1))
	}
	return fmt.Sprintf("%.1fms", ms)
}

func deltaText(d *ace.DeltaAnswer) string {
	fates := map[ace.Outcome]int{}
	for _, op := range d.Operations {
		fates[op.Outcome]++
	}
	return fmt.Sprintf("%.8s → %.8s: %d accepted, %d rejected", cluster.Or(d.PlaybookBefore, "empty"), d.PlaybookAfter,
		fates[ace.OutcomeAccepted], fates[ace.OutcomeRejected])
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

// TaskLine tells the end of one task of an experiment.
func TaskLine(f experiments.Finished) runs.LogLine {
	kind := "status"
	if f.Failure != nil {
		kind = "error"
	}
	text := fmt.Sprintf("%s %s, answer %s", f.Result.TaskID, f.Result.ExitStatus, cluster.Or(f.Result.Answer, "none"))
	if f.Failure != nil {
		text += ": " + f.Failure.Message
	}
	return runs.LogLine{Event: f.Event, At: f.At, Kind: kind, Text: text}
}
