package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestPathFlags checks that a flag for a path does not take the next flag as its value.
func TestPathFlags(t *testing.T) {
	for line, want := range map[string]int{
		"--data-dir --json": ExitUsage, "--data-dir=--json": ExitUsage, "-o --json": ExitUsage,
		"--agents-dir a --agents-dir b --json": ExitFine, "--agents-dir --json": ExitUsage,
		"--prompt --json": ExitFine, "--data-dir ./--json": ExitFine, "--data-dir - --json": ExitFine,
	} {
		cmd := &cobra.Command{PreRunE: func(c *cobra.Command, _ []string) error { return checkFlags(c) },
			Run: func(*cobra.Command, []string) {}, SilenceErrors: true, SilenceUsage: true}
		f := cmd.Flags()
		f.String("data-dir", "", "")
		f.String("prompt", "", "")
		f.StringP("output", "o", "", "")
		f.StringArray("agents-dir", nil, "")
		f.Bool("json", false, "")
		cmd.SetArgs(strings.Fields(line))
		if err := cmd.Execute(); ExitCode(err) != want {
			t.Errorf("%s: exit code %d, want %d: %v", line, ExitCode(err), want, err)
		}
	}
}
