package blueprint

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

// FuzzRead checks that a blueprint is valid, or that each problem is one line.
func FuzzRead(f *testing.F) {
	f.Add(`{"name": "x", "description": "d", "type": "deterministic", "command": "a 'b c' \"d\"", "parameter_strategy": "args", "demands": {"tags": ["a"]}}`, crawler, "")
	f.Add(`{"name": "x", "description": "d", "system_prompt": "p", "mcp_servers": {"a": {"command": "b", "env": {"TOKEN": "${env:TOKEN}"}}}}`, "", "")
	f.Add(`{"name": "x", "description": "d", "type": "deterministic", "timeout_seconds": 1e5, "env": ["LD_PRELOAD"]}`, `{"$ref": "#"}`, "#!/bin/sh\n")
	f.Add("{\"name\": \"\xff\"}", `{"properties": {"a": {"$ref": "http://x"}}}`, "\x00")
	f.Fuzz(func(t *testing.T, agent, params, script string) {
		files := map[string]*document{}
		for name, text := range map[string]string{AgentFile: agent, ParamsFile: params, CommandFile: script} {
			if text != "" || name == AgentFile {
				files[name] = &document{name: name, data: []byte(text)}
			}
		}
		b, wrong := resolve(files, "/library/x")
		if wrong.any() {
			for _, p := range wrong.List {
				if strings.ContainsAny(p.String(), "\n\r") {
					t.Errorf("not one line: %q", p)
				}
			}
			return
		}
		if b.Name != "x" || b.Description == "" || len(b.Digest) != 64 {
			t.Errorf("%+v", b.Blueprint)
		}
		if b.Type != run.Deterministic {
			return
		}
		if (len(b.Argv) > 0) == (b.Script != "" || b.Command != "") {
			t.Errorf("%+v", b.Blueprint)
		}
		if _, err := Compile(b.Schema, b.Strategy); err != nil {
			t.Errorf("the schema was taken once: %v", err)
		}
	})
}

// FuzzCheck checks that parameters are valid and unchanged when they are checked again.
func FuzzCheck(f *testing.F) {
	f.Add(crawler, `{"url": "http://a.b", "depth": 3}`, "args")
	f.Add(`{"properties": {"a": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"default": {}, "properties": {"v": {"default": 1}}}}}`, `{}`, "env")
	f.Add(`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"a": {"$anchor": "x", "prefixItems": [{"default": 1}]}}, "additionalProperties": {"$ref": "#x"}}`, `{"z": [1e2, "\ud83d\ude00"]}`, "file")
	f.Add(`{"anyOf": [{"$ref": "#/anyOf/1"}, {"$ref": "#/anyOf/0"}]}`, `{"a": 1}`, "stdin_json")
	f.Add(`{"patternProperties": {"^(a+)+$": {"multipleOf": 0.1}}, "$id": "#x", "if": {}, "then": {"not": false}}`, `{"aaaa": 0.30}`, "stdin_json")
	f.Add(`{"properties": {"a": {"enum": [1.0, null, {"b": []}]}}, "uniqueItems": true}`, `{"a": 1}`, "args")
	f.Fuzz(func(t *testing.T, schema, params, strategy string) {
		s, err := Compile(json.RawMessage(schema), run.Strategy(strategy))
		if err != nil {
			return
		}
		filled, err := s.Check(json.RawMessage(params))
		if err != nil {
			return
		}
		if !json.Valid(filled) || filled[0] != '{' {
			t.Fatalf("%s", filled)
		}
		again, err := s.Check(filled)
		if err != nil || !bytes.Equal(again, filled) {
			t.Errorf("%s\n then %s, %v", filled, again, err)
		}
	})
}
