package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/admin"
	"acescope/cmd/acescope/internal/cli"
)

// compiled compiles a command's schema with a validator other than the library that generates it.
func compiled(command string, strict bool) (*jsonschema.Schema, error) {
	for _, o := range admin.Outputs {
		if o.Command != command {
			continue
		}
		s, err := o.Schema(strict)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("acescope.json", doc); err != nil {
			return nil, err
		}
		return c.Compile("acescope.json")
	}
	return nil, fmt.Errorf("no schema for %q", command)
}

// conforms checks that each line of a file fits a command's schema and has no unknown fields: conforms FILE
// COMMAND …
func conforms(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: conforms FILE COMMAND …")
	}
	s, err := compiled(strings.Join(args[1:], " "), true)
	ts.Check(err)
	data := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	if data == "" {
		ts.Fatalf("%s is empty", args[0])
	}
	for i, l := range strings.Split(data, "\n") {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(l))
		if err == nil {
			err = s.Validate(v)
		}
		if (err != nil) != neg {
			ts.Fatalf("%s, line %d: %v\n%s", args[0], i+1, err, l)
		}
	}
}

// withoutJSON are the commands without JSON output; some only group subcommands.
var withoutJSON = []string{"demo", "problems", "experiment", "playbook", "phase-prompt", "replay", "session",
	"agent", "runner", "store", "flow", "observe", "observe temporal", "adapter"}

// TestEveryCommandHasASchema checks that every command has a schema or is listed in withoutJSON.
func TestEveryCommandHasASchema(t *testing.T) {
	known := append(admin.OutputNames(), withoutJSON...)
	seen := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "acescope ")
		if c.Runnable() && name != "help" && !strings.HasPrefix(name, "completion") {
			seen[name] = true
			if !slices.Contains(known, name) {
				t.Errorf("acescope %s has no schema", name)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root(&cli.App{}))
	for _, name := range known {
		if !seen[name] {
			t.Errorf("schema for %q, which is not a command", name)
		}
	}
}

func TestSchemasCompile(t *testing.T) {
	t.Parallel()
	for _, o := range admin.Outputs {
		for _, strict := range []bool{true, false} {
			if _, err := compiled(o.Command, strict); err != nil {
				t.Errorf("%s: %v", o.Command, err)
			}
		}
	}
}

// TestStrictSchema checks that a published schema allows additional fields and a strict one does not, and
// that neither allows a missing field or a wrong type.
func TestStrictSchema(t *testing.T) {
	for text, want := range map[string][2]bool{ // fits the published schema, fits the strict schema
		`{"type":"run_action","action":"cancel","workflow_id":"a","run_id":"b"}`:         {true, true},
		`{"type":"run_action","action":"cancel","workflow_id":"a","run_id":"b","new":1}`: {true, false},
		`{"type":"run_action","action":"cancel","workflow_id":"a"}`:                      {false, false},
		`{"type":"run_action","action":"cancel","workflow_id":1,"run_id":"b"}`:           {false, false},
		`{"type":"action","action":"cancel","workflow_id":"a","run_id":"b"}`:             {false, false},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for i, strict := range []bool{false, true} {
			s, err := compiled("cancel", strict)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Validate(v) == nil; got != want[i] {
				t.Errorf("%s, strict %v: fits %v", text, strict, got)
			}
		}
	}
}
