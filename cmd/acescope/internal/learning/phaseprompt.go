package learning

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/ace"
	"acescope/engine/learning/prompts"
)

const promptHelp = "Name a prompt by its phase and name, as in generator/brief; generator/brief@2 is its second version, and\n" +
	"generator or generator/default the prompt that acescope ships. Phases are generator, skills, reflector and\n" +
	"curator. \"acescope run --phase-prompt generator=brief\" uses one."

func PhasePromptCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "phase-prompt",
		Short: "Show, compare and change the instructions that the phases give to a model",
		Long: "Show, compare and change the instructions that the phases give to a model. They are kept as numbered\n" +
			"versions in the store, as playbooks are, and a run names the versions that it used.\n\n" +
			promptHelp,
	}, promptListCommand(a), promptLogCommand(a), promptShowCommand(a), promptDiffCommand(a),
		promptSetCommand(a),
		promptEditCommand(a), promptDeleteCommand(a))
}

func promptRows(a *cli.App, list []prompts.Prompt) error {
	for i := range list {
		list[i].Text = ""
	}
	header := "PHASE\tNAME\tVERSION\tHASH\tCHANGED\tFROM"
	return cli.WriteRows(a, slices.Values(list), header, func(v prompts.Prompt) []any {
		version, at, hash := "shipped", "-", fmt.Sprintf("%.12s", v.SHA256)
		if v.Version > 0 {
			version = fmt.Sprint(v.Version)
			at = v.At.Local().Format(time.DateTime)
		}
		if v.Deleted {
			hash = "deleted"
		}
		return []any{v.Phase, v.Name, version, hash, at, cmp.Or(v.From, "-")}
	})
}

func promptListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the newest version of each prompt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPrompts(a, cmd.Context(), true, func(s *prompts.Store) error {
				list, err := s.List(cmd.Context())
				if err != nil {
					return err
				}
				return promptRows(a, list)
			})
		},
	}
}

func promptLogCommand(a *cli.App) *cobra.Command {
	return onePrompt(a, true, &cobra.Command{
		Use:   "log PROMPT",
		Short: "List the versions of a prompt, newest first",
	}, func(ctx context.Context, s *prompts.Store, phase ace.Phase, name string) error {
		list, err := s.Versions(ctx, phase, name)
		if err == nil && len(list) == 0 {
			_, err = s.Find(ctx, phase, name)
		}
		if err != nil {
			return err
		}
		slices.Reverse(list)
		return promptRows(a, list)
	})
}

type PhasePromptText struct {
	prompts.Prompt
	Placeholders []prompts.Placeholder `json:"placeholders"` // that the text may have
}

func promptShowCommand(a *cli.App) *cobra.Command {
	return onePrompt(a, true, &cobra.Command{
		Use:   "show PROMPT",
		Short: "Write the text of a prompt",
		Long: "Write the text of a prompt, without the form of the answer, which acescope adds to every request.\n\n" +
			promptHelp,
		Example: "acescope phase-prompt show generator\nacescope phase-prompt show generator/brief@2 > brief.md",
	}, func(ctx context.Context, s *prompts.Store, phase ace.Phase, name string) error {
		v, err := findText(ctx, s, phase, name)
		if err != nil {
			return err
		}
		if a.JSON {
			return cli.NewLines(a).Write(PhasePromptText{v, prompts.Placeholders(phase)})
		}
		_, err = fmt.Fprint(a.Out, v.Text)
		return err
	})
}

func findText(ctx context.Context, s *prompts.Store, phase ace.Phase, name string) (v prompts.Prompt,
	err error) {
	if v, err = s.Find(ctx, phase, name); err == nil {
		v.Text, err = s.Text(ctx, v.PhasePrompt)
	}
	return v, err
}

type PhasePromptDiff struct {
	A     string `json:"a"`
	B     string `json:"b"`
	HashA string `json:"hash_a"`
	HashB string `json:"hash_b"`
	Diff  string `json:"diff"` // unified, "" for equal texts
}

func promptDiffCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "diff PROMPT [PROMPT]",
		Short: "Compare two prompts, or one with the prompt that acescope ships; exits 4 if they differ",
		Long:  "Compare two prompts line by line. With one, compare the shipped prompt of the phase with it.\n\n" + promptHelp,
		Example: "acescope phase-prompt diff generator/brief\n" +
			"acescope phase-prompt diff generator/brief@1 generator/brief@2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				phase, _ := splitPrompt(args[0])
				args = []string{string(phase), args[0]}
			}
			return withPrompts(a, cmd.Context(), true, func(s *prompts.Store) error {
				return promptDiff(a, cmd.Context(), s, args)
			})
		},
	}
}

func promptDiff(a *cli.App, ctx context.Context, s *prompts.Store, names []string) error {
	var of [2]prompts.Prompt
	var title [2]string
	for i, name := range names {
		phase, ref := splitPrompt(name)
		v, err := findText(ctx, s, phase, ref)
		if err != nil {
			return err
		}
		of[i] = v
		title[i] = string(phase) + "/" + v.PhasePrompt.String()
	}
	line := PhasePromptDiff{title[0], title[1], of[0].SHA256, of[1].SHA256,
		udiff.Unified(title[0], title[1], of[0].Text, of[1].Text)}
	err := cli.Show(a, line, func() error {
		_, err := fmt.Fprintln(a.Out, cmp.Or(strings.TrimSuffix(line.Diff, "\n"), "The prompts are equal."))
		return err
	})
	if err != nil || line.Diff == "" {
		return err
	}
	return cli.Diverged("%s and %s differ", title[0], title[1])
}

// PhasePromptSet reports a version that was added.
type PhasePromptSet struct {
	prompts.Prompt
	Added bool `json:"added"` // false if the newest version has this text
}

func promptSetCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "set PROMPT FILE",
		Short: "Add a version with the text of a file",
		Long: "Add a version with the text of a file; - is standard input. The first version creates the prompt.\n\n" +
			placeholderHelp(),
		Example: "acescope phase-prompt show generator > brief.md\nacescope phase-prompt set generator/brief brief.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			text, err := cli.ReadFile(ctx, args[1], prompts.MaxText)
			if err != nil {
				return err
			}
			return withPrompts(a, ctx, false, func(s *prompts.Store) error {
				phase, name := splitPrompt(args[0])
				return putPrompt(a, ctx, s, prompts.Prompt{
					Phase: phase, PhasePrompt: ace.PhasePrompt{Name: name, Text: string(text)},
				}, args[1])
			})
		},
	}
}

func placeholderHelp() string {
	lines := []string{"A text has these placeholders; {{{{ stands for two braces:"}
	for _, phase := range ace.PromptedPhases() {
		for _, p := range prompts.Placeholders(phase) {
			need := "optional"
			if p.Required {
				need = "required"
			}
			lines = append(lines, fmt.Sprintf("  %-10s {{%s}} (%s): %s", phase, p.Name, need, p.About))
		}
	}
	return strings.Join(lines, "\n")
}

// putPrompt adds a version with a text from a file.
func putPrompt(a *cli.App, ctx context.Context, s *prompts.Store, v prompts.Prompt, file string) error {
	v, added, err := s.Put(ctx, v.Phase, v.Name, v.Text, v.From)
	if err != nil {
		return runs.PromptError(file, err)
	}
	text := "%s/%s is unchanged; its newest version %d has this text"
	if added {
		text = "%s/%s has a new version %d"
	}
	return cli.Report(a, PhasePromptSet{v, added}, text, v.Phase, v.Name, v.Version)
}

func promptEditCommand(a *cli.App) *cobra.Command {
	from := ""
	cmd := onePrompt(a, false, &cobra.Command{
		Use:   "edit PROMPT",
		Short: "Change a prompt in $EDITOR, as a new version",
		Long: "Open the newest version in $VISUAL, $EDITOR or vi, and add what it saves as a new version. A new prompt\n" +
			"begins with the shipped text, or that of --from. A text with a mistake is kept in its file.\n\n" +
			placeholderHelp(),
		Example: "acescope phase-prompt edit generator/brief\nacescope phase-prompt edit reflector/strict --from brief@2",
	}, func(ctx context.Context, s *prompts.Store, phase ace.Phase, name string) error {
		return promptEdit(a, ctx, s, phase, name, from)
	})
	cmd.Flags().StringVar(&from, "from", "", "begin with this prompt of the phase, as NAME or NAME@VERSION")
	return cmd
}

func promptEdit(a *cli.App, ctx context.Context, s *prompts.Store, phase ace.Phase, name, from string) error {
	if err := prompts.CheckName(name); err != nil {
		return err
	}
	read := s.Base
	if from != "" {
		read = func(ctx context.Context, phase ace.Phase, _ string) (prompts.Prompt, error) {
			return findText(ctx, s, phase, from)
		}
	}
	base, err := read(ctx, phase, name)
	if err != nil {
		return err
	}
	edited, path, err := cli.Edit(ctx, string(phase)+"-"+name+".md", base.Text)
	if err != nil {
		return err
	}
	v := prompts.Prompt{Phase: phase, PhasePrompt: ace.PhasePrompt{Name: name, Text: edited},
		From: base.PhasePrompt.String()}
	if prompts.Clean(edited) == base.Text && from == "" {
		_ = os.RemoveAll(filepath.Dir(path))
		return fmt.Errorf("%s/%s: the text was not changed, so there is no new version", phase, name)
	}
	if err := putPrompt(a, ctx, s, v, path); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(path))
}

func promptDeleteCommand(a *cli.App) *cobra.Command {
	return onePrompt(a, false, &cobra.Command{
		Use:   "delete PROMPT",
		Short: "Remove a prompt from the list; runs that used it keep its versions",
	}, func(ctx context.Context, s *prompts.Store, phase ace.Phase, name string) error {
		if err := s.Delete(ctx, phase, name); err != nil {
			return err
		}
		line := PhasePromptDeleted{phase, name}
		return cli.Report(a, line, "%s/%s is deleted; its versions can still be named, as %s@1", phase, name,
			name)
	})
}

type PhasePromptDeleted struct {
	Phase ace.Phase `json:"phase"`
	Name  string    `json:"name" jsonschema:"name of the deleted prompt"`
}

// onePrompt completes a command whose only argument is a prompt.
func onePrompt(a *cli.App, readOnly bool, cmd *cobra.Command,
	do func(ctx context.Context, s *prompts.Store, phase ace.Phase, name string) error) *cobra.Command {
	if cmd.Long == "" {
		cmd.Long = cmd.Short + ".\n\n" + promptHelp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withPrompts(a, cmd.Context(), readOnly, func(s *prompts.Store) error {
			phase, name := splitPrompt(args[0])
			return do(cmd.Context(), s, phase, name)
		})
	}
	return cmd
}

// splitPrompt splits PHASE/NAME. The name of a phase alone is its default.
func splitPrompt(text string) (phase ace.Phase, name string) {
	before, name, ok := strings.Cut(text, "/")
	if !ok {
		name = ace.DefaultPrompt
	}
	return ace.Phase(before), name
}

func withPrompts(a *cli.App, ctx context.Context, readOnly bool, do func(*prompts.Store) error) error {
	s, err := runs.OpenPrompts(a, ctx, readOnly)
	if err != nil {
		return err
	}
	return runs.PromptError("", do(s))
}
