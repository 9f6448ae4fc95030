package learning

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/learning/playbook"
)

// ExportLine is an exported playbook.
type ExportLine struct {
	Type    string `json:"type"` // playbook_export
	Name    string `json:"name"`
	Hash    string `json:"hash"`
	Bullets int    `json:"bullets"`
	File    string `json:"file,omitempty"`

	Losses []playbook.Loss `json:"losses,omitempty"`
}

func exportCommand(a *cli.App) *cobra.Command {
	format := "json"
	cmd := &cobra.Command{
		Use:   "export VERSION|BRANCH|FILE [TO]",
		Short: "Write a playbook to a file at once, and print its hash; without a file, only print its hash",
		Long: "Write a playbook to a file, which is replaced at once. Without a file, only print the hash of the\n" +
			"version.\n\n" + refHelp,
		Example: "acescope playbook export finance-1 playbook.json\n" +
			"acescope playbook export finance-1@40 --json | jq -r .hash",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := ""
			if len(args) == 2 {
				to = args[1]
			}
			return exportPlaybook(a, cmd.Context(), args[0], to, format)
		},
	}
	cmd.Flags().StringVar(&format, "format", format, "json (its SHA-256 is the version), text or skillbook")
	return cmd
}

func exportPlaybook(a *cli.App, ctx context.Context, name, to, format string) error {
	r, _, err := findRef(a, ctx, name)
	if err != nil {
		return err
	}
	reportFiles(a, r)
	n := len(r.book.Bullets)
	line := ExportLine{Type: "playbook_export", Name: r.name, Hash: r.hash, Bullets: n, File: to}
	if to == "" {
		return cli.Report(a, line, "%s", line.Hash)
	}
	var out bytes.Buffer
	switch format {
	case "json":
		out.Write(r.book.Canonical())
	case "text":
		line.Losses = r.book.Losses(playbook.FormatText)
		err = playbook.WriteText(&out, r.book)
	case "skillbook":
		err = playbook.WriteSkillbook(&out, r.book)
	default:
		return cli.UsageError("--format %s: must be json, text or skillbook", format)
	}
	if err != nil {
		return err
	}
	runs.ReportLosses(a, r.name+": not written", line.Losses)
	if err := cli.ReplaceFile(to, out.Bytes()); err != nil {
		return fmt.Errorf("write the playbook: %w", err)
	}
	return cli.Report(a, line, "%s: %s, version %.12s", to, cli.Numbered(int64(n), "bullet"), line.Hash)
}
