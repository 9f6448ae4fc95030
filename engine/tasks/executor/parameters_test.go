package executor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

// TestArgs checks the arguments of parameters.
func TestArgs(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{}`, ``},
		{`{"on":true,"off":false,"none":null}`, `--on`},
		{`{"v":""}`, `--v=`},
		{`{"v":"a b\n-c"}`, "--v=a b\n-c"},
		{`{"v":"--rm"}`, `--v=--rm`},
		{`{"n":123456789012345678901234567890.10}`, `--n=123456789012345678901234567890.10`},
		{`{"n":1e400}`, `--n=1e400`},
		{`{"l":["a","-b",2,true,null,{"x":[1]}]}`, `--l=a|--l=-b|--l=2|--l=true|--l=null|--l={"x":[1]}`},
		{`{"l":[]}`, ``},
		{`{"o":{"a": {"b": "c d"}}}`, `--o={"a":{"b":"c d"}}`},
		{`{"b":1,"a":2}`, `--b=1|--a=2`},
	} {
		g, err := passParameters(run.Blueprint{Strategy: run.Args}, json.RawMessage(c.in))
		if got := strings.Join(g.args, "|"); err != nil || got != c.want || g.stdin != nil || g.env != nil ||
			g.file != nil {
			t.Errorf("%s: %q, %v", c.in, got, err)
		}
	}
}

// TestSpacedArgs checks parameters of programs that take --depth 2.
func TestSpacedArgs(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"depth":2,"on":true,"off":false,"none":null}`, `--depth|2|--on`},
		{`{"v":"","w":"a b"}`, `--v||--w|a b`},
		{`{"l":["a",2,{"x":[1]}],"e":[]}`, `--l|a|--l|2|--l|{"x":[1]}`},
	} {
		p, err := passParameters(run.Blueprint{Strategy: run.ArgsSpaced}, json.RawMessage(c.in))
		if got := strings.Join(p.args, "|"); err != nil || got != c.want || p.stdin != nil {
			t.Errorf("%s: %q, %v", c.in, got, err)
		}
	}
	for _, in := range []string{`{"v":"--rm"}`, `{"v":-2}`, `{"l":["a","-b"]}`} {
		_, err := passParameters(run.Blueprint{Strategy: run.ArgsSpaced}, json.RawMessage(in))
		if err == nil || !strings.Contains(err.Error(), "begins with a dash") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestVariables checks the variables of parameters.
func TestVariables(t *testing.T) {
	g, err := passParameters(run.Blueprint{Strategy: run.Env},
		json.RawMessage(`{"path":"/evil","ld-preload":"x","on":true,"off":false,"none":null,"l":["a", 1],"n":1.50,"s":"a\nb=c"}`))
	want := []string{"PARAM_PATH=/evil", "PARAM_LD_PRELOAD=x", "PARAM_ON=true", "PARAM_OFF=false",
		`PARAM_L=["a",1]`, "PARAM_N=1.50", "PARAM_S=a\nb=c"}
	if err != nil || !slices.Equal(g.env, want) {
		t.Errorf("%q, %v", g.env, err)
	}
}

// TestBadNames checks that unsafe names of flags and variables are refused.
func TestBadNames(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"-rf":true}`, `$["-rf"]: the strategy`},
		{`{"--":"x"}`, `$["--"]: the strategy`},
		{`{"":1}`, `$[""]: the strategy`},
		{`{"a=b":1}`, `$["a=b"]: the strategy`},
		{`{"a b":1}`, `$["a b"]: the strategy`},
		{`{"a\u0000b":1}`, `cannot pass a parameter of this name`},
		{`{"a\nb":1}`, `cannot pass a parameter of this name`},
		{`{"é":1}`, `$["é"]: the strategy`},
		{`{"v":"a\u0000b"}`, `a NUL`},
		{`{"v":1,"v":2}`, `occurs twice`},
		{`[1]`, `expected an object`},
		{`{"v":1} {}`, `after top-level value`},
		{`{"v":`, `unexpected end of JSON input`},
	} {
		for _, s := range []run.Strategy{run.Args, run.ArgsSpaced, run.Env} {
			if _, err := passParameters(run.Blueprint{Strategy: s}, json.RawMessage(c.in)); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v", s, c.in, err)
			}
		}
	}
	for _, in := range []string{`{"a-b":1,"a_b":2}`, `{"a":1,"A":2}`} {
		if _, err := passParameters(run.Blueprint{Strategy: run.Env}, json.RawMessage(in)); err == nil ||
			!strings.Contains(err.Error(), "has the same variable") {
			t.Errorf("%s: %v", in, err)
		}
	}
	if _, err := passParameters(run.Blueprint{Strategy: run.Args},
		json.RawMessage(`{"v":["a\u0000b"]}`)); err == nil || !strings.Contains(err.Error(), "a NUL") {
		t.Errorf("%v", err)
	}
	if _, err := passParameters(run.Blueprint{Strategy: "telepathy"}, json.RawMessage(`{}`)); err == nil {
		t.Error("an unknown strategy is taken")
	}
}

// FuzzArgs checks that every argument is a flag with the parameter's name.
func FuzzArgs(f *testing.F) {
	f.Add(`{"a":"b","l":[1,"-x"]}`)
	f.Add(`{"-a":true}`)
	f.Fuzz(func(t *testing.T, in string) {
		var object map[string]any
		if json.Unmarshal([]byte(in), &object) != nil {
			return
		}
		g, err := passParameters(run.Blueprint{Strategy: run.Args}, json.RawMessage(in))
		if err != nil {
			return
		}
		for _, a := range g.args {
			flag, _, _ := strings.Cut(a, "=")
			if _, ok := object[strings.TrimPrefix(flag, "--")]; strings.ContainsRune(a, 0) ||
				!strings.HasPrefix(flag, "--") || !ok {
				t.Errorf("%q makes %q", in, a)
			}
		}
		g, err = passParameters(run.Blueprint{Strategy: run.Env}, json.RawMessage(in))
		for _, v := range g.env {
			if err == nil && (!strings.HasPrefix(v, run.EnvPrefix) || strings.ContainsRune(v, 0)) {
				t.Errorf("%q sets %q", in, v)
			}
		}
	})
}

// TestStrategies checks what programs receive with each strategy.
func TestStrategies(t *testing.T) {
	h := newFixture(t, nil)
	const params = `{"name":"a b\n$(touch pwned) 'q' \"d\"","big":123456789012345678901234567890,"yes":true,"no":false,"list":["x","-y"]}`
	for _, c := range []struct {
		strategy     run.Strategy
		script, want string
	}{
		{run.StdinJSON, `cat`, params + "\n"},
		{"", `cat; echo "$#"`, params + "\n0\n"},
		{run.Args, `for a in "$@"; do echo "[$a]"; done; cat`,
			"[--name=a b\n$(touch pwned) 'q' \"d\"]\n[--big=123456789012345678901234567890]\n[--yes]\n[--list=x]\n[--list=-y]\n"},
		{run.Env, `echo "$PARAM_NAME|$PARAM_BIG|$PARAM_YES|$PARAM_NO|$PARAM_LIST"; cat`,
			"a b\n$(touch pwned) 'q' \"d\"|123456789012345678901234567890|true|false|[\"x\",\"-y\"]\n"},
		{run.File, `cat "$1"; ls -l "$1" | cut -c1-10; ls -ld "$(dirname "$1")" | cut -c1-10`,
			params + "\n-rw-------\ndrwx------\n"},
	} {
		r := h.run(c.script, params, c.strategy)
		if r.Status != run.Completed || r.Stdout != c.want {
			t.Errorf("%s: %s %s\n%s", c.strategy, r.Status, r.Error, r.Stdout)
		}
	}
	if _, err := os.Stat(filepath.Join(h.work, "pwned")); err == nil {
		t.Error("a value was run")
	}
}

// TestCommands checks argument vectors, shell commands and scripts.
func TestCommands(t *testing.T) {
	h := newFixture(t, nil)
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		b    run.Blueprint
		want string
	}{
		{"argv", run.Blueprint{Argv: []string{"printf", "[%s]", "{blueprint_dir}/x", "$HOME"},
			Strategy: run.Args}, "[" + dir + "/x][$HOME][--v=1;2]"},
		{"named file", run.Blueprint{Argv: []string{"cat", "{parameters_file}"}, Strategy: run.File},
			"{\"v\":\"1;2\"}\n"},
		{"named file within", run.Blueprint{Argv: []string{"sh", "-c", "cat \"${1#x=}\"; echo $#", "sh",
			"x={parameters_file}"}, Strategy: run.File}, "{\"v\":\"1;2\"}\n1\n"},
		{"last file", run.Blueprint{Argv: []string{"cat"}, Strategy: run.File}, "{\"v\":\"1;2\"}\n"},
		{"shell", run.Blueprint{Shell: true, Command: `echo "$# $1" | tr a-z A-Z`, Strategy: run.Args},
			"1 --V=1;2\n"},
		{"shell, no splicing", run.Blueprint{Shell: true, Command: `echo {parameters_file}; cat "$1"`,
			Strategy: run.File}, "{parameters_file}\n{\"v\":\"1;2\"}\n"},
		{"script's interpreter", run.Blueprint{Script: "#!/bin/sh -e\nfalse\necho no", Strategy: run.Env},
			""},
		{"script's env", run.Blueprint{Script: "#!/usr/bin/env sh\necho \"$PARAM_V $ACESCOPE_RUN_ID $ACESCOPE_SESSION_ID $ACESCOPE_BLUEPRINT_DIR\"", Strategy: run.Env}, "1;2 r1 ses_1 " + dir + "\n"},
	} {
		b := c.b
		b.Name, b.Dir = "test", dir
		r := h.Run(t.Context(), Job{RunID: "r1", SessionID: "ses_1", ProjectDir: h.work,
			Parameters: json.RawMessage(`{"v":"1;2"}`), Blueprint: b})
		if r.Stdout != c.want || r.Reason == run.NotStarted {
			t.Errorf("%s: %s %s %q", c.name, r.Status, r.Error, r.Stdout)
		}
	}
}

// TestEnvironment checks that a program gets the allowed variables only.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", planted)
	t.Setenv("WANTED", "here")
	t.Setenv("UNWANTED", "x")
	t.Setenv("LD_PRELOAD_X", "x")
	h := newFixture(t, nil)
	j := h.job("env | cut -d= -f1 | sort | tr '\\n' ' '", `{"path":"/evil","ld_preload":"/evil.so"}`, run.Env)
	j.Blueprint.Env = []string{"WANTED", "MISSING"}
	r := h.Run(t.Context(), j)
	for name := range strings.FieldsSeq(r.Stdout) {
		if !slices.Contains([]string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "WANTED", "PWD", "SHLVL",
			"_", "OLDPWD", "PARAM_PATH", "PARAM_LD_PRELOAD",
			"ACESCOPE_RUN_ID", "ACESCOPE_SESSION_ID", "ACESCOPE_PROJECT_DIR"}, name) &&
			!strings.HasPrefix(name, "LC_") {
			t.Errorf("the program sees $%s", name)
		}
	}
	if !strings.Contains(r.Stdout, "WANTED") || !strings.Contains(r.Stdout, "PARAM_PATH") {
		t.Errorf("%s, %s", r.Stdout, r.Error)
	}
	j.Blueprint.Env = []string{"SECRET_*"}
	if r := h.Run(t.Context(), j); r.Reason != run.NotStarted ||
		!strings.Contains(r.Error, "not a valid variable name") {
		t.Errorf("%+v", r)
	}
}
