package tui

import "strings"

// KeysPage is the keys as a page of Markdown.
func KeysPage(groups []KeyGroup) string {
	var b strings.Builder
	b.WriteString("# Keys\n\n" +
		"Written by `acescope config keys --markdown` from the bindings that dispatch; `make golden` writes it anew.\n" +
		"`?` in the console shows the keys that work where you are. Every action can be given as a command (`:runs.down`)\n" +
		"and mapped to other keys in the [configuration](config.md). An action that is marked changes something outside the\n" +
		"console and is off in read-only mode. A pane's key takes the place of one that works everywhere.\n")
	for _, g := range groups {
		b.WriteString("\n## " + g.Name + "\n\n| keys | action | |\n|---|---|---|\n")
		for _, k := range g.Bindings {
			keys := make([]string, len(k.Keys))
			for i := range keys {
				keys[i] = "`" + strings.ReplaceAll(k.Keys[i], "|", `\|`) + "`"
			}
			help := k.Help
			if k.Mutates {
				help += " **(changes something)**"
			}
			b.WriteString("| " + strings.Join(keys, " ") + " | `" + k.Action + "` | " + help + " |\n")
		}
	}
	return b.String()
}
