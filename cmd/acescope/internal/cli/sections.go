package cli

import (
	"fmt"
	"strings"

	"acescope/engine/kind"
)

// Sections writes sections as text, with labels padded to a width. A star marks an item that changed.
func (l *Lines) Sections(sections []kind.Section, width int) {
	for _, s := range sections {
		l.Printf("")
		l.Printf("%s", strings.TrimSpace(s.Title+"  "+s.Remark))
		for _, i := range s.Items {
			mark := "  "
			if i.Changed {
				mark = "* "
			}
			indent := "  "
			if head := strings.TrimSpace(i.Head + " " + string(i.Outcome)); head != "" {
				l.Printf("%s%s", mark, head)
				mark, indent = "    ", "    "
			}
			for _, f := range i.Fields {
				text := strings.TrimSpace(fmt.Sprintf("%-*s %s", width, f.Label, f.Text))
				l.Printf("%s%s", mark, text)
				mark = indent
			}
		}
	}
}
