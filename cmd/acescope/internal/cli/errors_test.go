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

// TestArguments checks what errors about arguments and flags say.
func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"a":                   "",
		"":                    "an argument is missing; usage: copy FROM [TO]",
		"a b c":               `unexpected argument "c"; usage: copy FROM [TO]`,
		"a --count x":         `--count "x": must be a whole number`,
		"a --every 1":         `--every "1": must be a duration such as 90s or 12h`,
		"a --share x":         `--share "x": must be a number`,
		"a --quick=x":         `--quick "x": must be true or false`,
		"a --quick --count 1": "--count and --quick exclude each other",
		"--need a":            "needs --name; usage: copy FROM [TO]",
	} {
		cmd := &cobra.Command{Use: "copy FROM [TO]", Args: cobra.RangeArgs(1, 2), SilenceErrors: true,
			SilenceUsage: true, DisableFlagsInUseLine: true, Run: func(*cobra.Command, []string) {},
			PreRunE: func(c *cobra.Command, _ []string) error { return checkFlags(c) }}
		f := cmd.Flags()
		f.Int("count", 0, "")
		f.Duration("every", 0, "")
		f.Float64("share", 0, "")
		f.Bool("quick", false, "")
		cmd.MarkFlagsMutuallyExclusive("count", "quick")
		args := strings.Fields(line)
		if f.String("name", "", ""); len(args) > 0 && args[0] == "--need" {
			_ = cmd.MarkFlagRequired("name")
			args = args[1:]
		}
		TypeUsageErrors(cmd, nil)
		cmd.SetArgs(args)
		got := ""
		if err := cmd.Execute(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
