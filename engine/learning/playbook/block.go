package playbook

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// blockBullet is the first line of a bullet in a block.
var blockBullet = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^- \[([^\[\]]{1,200})\] (.*)$`)
})

// parseBlock reads the block that [WriteBlock] or [WriteSkill] wrote. Blocks have no counters.
func parseBlock(data []byte) (*Playbook, Report, error) {
	report := Report{Format: FormatBlock}
	text := cleanText(string(data))
	if strings.Count(text, blockBegin) != 1 || strings.Count(text, blockEnd) != 1 {
		return nil, report, fmt.Errorf("%w: %w", ErrNotPlaybook, errTwoMarks)
	}
	above, block, _ := strings.Cut(text, blockBegin)
	block, _, whole := strings.Cut(block, blockEnd)
	if !whole {
		return nil, report, fmt.Errorf("%w: %w", ErrNotPlaybook, errTwoMarks)
	}
	var drafts []draft
	var sections []string
	names := spellings{}
	section := defaultSection
	first := strings.Count(above, "\n") + 1
	for i, line := range strings.Split(block, "\n") {
		at := "line " + strconv.Itoa(first+i)
		if m := blockBullet().FindStringSubmatch(line); m != nil {
			b := Bullet{ID: m[1], Section: section, Content: m[2]}
			drafts = append(drafts, draft{b, at})
		} else if name, ok := strings.CutPrefix(line, "## "); ok {
			section = names.of(name, at, &report)
			sections = append(sections, section)
		} else if len(drafts) > 0 && (line == "" || strings.HasPrefix(line, "  ")) {
			drafts[len(drafts)-1].Content += "\n" + strings.TrimPrefix(line, "  ")
		} else if len(drafts) > 0 {
			report.skip("%s: text outside a bullet; skipped: %.60q", at, line)
		}
	}
	for i := range drafts {
		drafts[i].Content = original.Replace(drafts[i].Content)
		report.Losses = lose(report.Losses, "helpful, harmful, neutral", "a block for agents has no counters")
	}
	return finish(drafts, sections, 0, &report), report, nil
}
