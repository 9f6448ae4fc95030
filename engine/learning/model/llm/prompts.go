package llm

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/prompts"
)

// Prompts.
var (
	//go:embed formats
	formats embed.FS
	//go:embed prompts/judge.md
	judgePrompt string
	//go:embed prompts/repair.md
	repairPrompt string
)

// system returns the part of a prompt that only changes with the playbook: the instructions, then the form of
// the answer, which instructions of the user cannot change.
func system(phase ace.Phase, instructions prompts.Template, book *playbook.Playbook) (blocks []Block) {
	values := map[string]string{
		prompts.Playbook: between("playbook", render(book)),
		prompts.Sections: strings.Join(book.WithReferenceSections().Sections, ", "),
	}
	for _, text := range instructions.Paragraphs(values) {
		blocks = append(blocks, Block{Text: text})
	}
	format, _ := formats.ReadFile("formats/" + string(phase) + ".md") // a test reads all
	return append(blocks, Block{Text: strings.TrimSpace(string(format)), Cache: true})
}

// render formats a playbook for a model: sections, and bullets with IDs and counters.
func render(book *playbook.Playbook) string {
	if book == nil || len(book.Bullets) == 0 {
		return "(The playbook is empty.)"
	}
	var b strings.Builder
	_ = playbook.WriteText(&b, book) // a strings.Builder never fails
	return strings.TrimSpace(b.String())
}

// between encloses untrusted text in tags that it cannot close: their names contain a part of
// its digest.
func between(name, text string) string {
	sum := sha256.Sum256([]byte(text))
	tag := fmt.Sprintf("%s-%x", name, sum[:4])
	return "<" + tag + ">\n" + text + "\n</" + tag + ">"
}

func bulletsOf(book *playbook.Playbook, ids []string) string {
	some := &playbook.Playbook{}
	for _, id := range ids {
		if b, ok := book.Find(id); ok {
			some.Bullets = append(some.Bullets, b)
		}
	}
	if len(some.Bullets) == 0 {
		return "(No bullet was used.)"
	}
	return render(some)
}

func generatorMessage(in ace.GeneratorInput) string {
	if in.Reflection == "" {
		return between("task", in.Prompt)
	}
	return between("task", in.Prompt) +
		"\n\nAn earlier answer to this task was wrong. A reflection on it says:\n" +
		between("reflection", in.Reflection)
}

func skillsMessage(in ace.SkillsInput) string {
	return between("task", in.Prompt) + "\n\n" + between("plan", in.Plan) + "\n\n" +
		between("answer", orNone(in.Answer)) +
		"\n\nBullets that the plan uses: " + orNone(strings.Join(in.BulletIDs, ", "))
}

func reflectorMessage(in ace.ReflectorInput, book *playbook.Playbook, correct *bool, score *float64) string {
	parts := []string{between("task", in.Prompt), between("plan", in.Plan),
		between("answer", orNone(in.Answer)),
		between("bullets", bulletsOf(book, in.BulletIDs))}
	if in.Label != nil {
		parts = append(parts, between("expected", *in.Label))
	}
	switch {
	case correct == nil:
		parts = append(parts, "The expected answer is not known.")
	case *correct:
		parts = append(parts, "The answer is RIGHT: it agrees with the expected one.")
	case score != nil && *score > 0:
		parts = append(parts, fmt.Sprintf("The answer is PARTLY RIGHT: its score is %.2f of 1.", *score))
	default:
		parts = append(parts, "The answer is WRONG: it differs from the expected one.")
	}
	return strings.Join(parts, "\n\n")
}

func curatorMessage(in ace.CuratorInput, r reflected, book *playbook.Playbook) string {
	var parts []string
	if r.Question != "" {
		parts = append(parts, between("task", r.Question))
	}
	switch {
	case in.Correct == nil:
		parts = append(parts, "It is not known whether the task was solved.")
	case *in.Correct:
		parts = append(parts, "The task was solved.")
	default:
		parts = append(parts, "The task was not solved.")
	}
	parts = append(parts, between("insights", orNone(in.Insights)))
	var tags []string
	for _, t := range in.BulletTags {
		tags = append(tags, t.ID+" "+t.Tag)
	}
	size := fmt.Sprintf("The playbook has %d bullets.", len(book.Bullets))
	if in.PlaybookTokens > 0 {
		size = fmt.Sprintf("The playbook has %d bullets and about %d tokens. It may have %d tokens at most; what "+
			"exceeds them is rejected.", len(book.Bullets), book.Tokens(), in.PlaybookTokens)
	}
	parts = append(parts, "Tags given: "+orNone(strings.Join(tags, ", ")), size)
	return strings.Join(parts, "\n\n")
}

func repairMessage(why error, shorter bool) string {
	how := ""
	if shorter {
		how = ". It was also too long: be brief"
	}
	return strings.TrimSpace(fmt.Sprintf(repairPrompt, strings.TrimSuffix(why.Error(), "."), how))
}

func orNone(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(none)"
	}
	return s
}
