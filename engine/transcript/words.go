package transcript

import "strings"

// speech is what a user's text is: of a person, or made by the CLI in a person's name.
type speech int

const (
	prompt      speech = iota
	command            // a slash command
	machine            // output of a local command, reminders, caveats
	interrupted        // the person broke the turn off
)

// speechOf tells by how a text begins.
func speechOf(t string) speech {
	t = strings.TrimSpace(t)
	switch {
	case t == "":
		return machine
	case strings.HasPrefix(t, "[Request interrupted by user"):
		return interrupted
	case strings.HasPrefix(t, "<command-name>"), strings.HasPrefix(t, "<command-message>"):
		return command
	}
	for _, start := range []string{"<local-command-", "<bash-", "<system-reminder>", "<task-notification>", "Caveat: The messages below"} {
		if strings.HasPrefix(t, start) {
			return machine
		}
	}
	return prompt
}

// commandOf is a slash command as it was typed.
func commandOf(t string) string {
	name := between(t, "<command-name>", "</command-name>")
	if name != "" && !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return strings.TrimSpace(name + " " + between(t, "<command-args>", "</command-args>"))
}

func between(t, start, end string) string {
	_, t, ok := strings.Cut(t, start)
	if !ok {
		return ""
	}
	t, _, _ = strings.Cut(t, end)
	return strings.TrimSpace(t)
}

// deniedStarts begin the result of a call that a person, a rule or a hook did not allow.
var deniedStarts = []string{
	"The user doesn't want to proceed with this tool use",
	"The user doesn't want to take this action",
	"Permission to use ",
	"Claude requested permissions to ",
	"This command requires approval",
}

func denied(result string) bool {
	result = strings.TrimPrefix(strings.TrimSpace(result), "Error: ")
	for _, start := range deniedStarts {
		if strings.HasPrefix(result, start) {
			return true
		}
	}
	return strings.Contains(result, "denied by the Claude Code auto mode classifier")
}
