package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
)

const schemaOfCrawler = `{
	"type": "object",
	"required": ["url"],
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"$defs": {
		"level": {"$ref": "#/$defs/number"}, "number": {"type": "integer"}
	},
	"properties": {
		"url": {"type": "string"}, "depth": {"type": "integer"}, "wait": {"type": "number"},
		"follow": {"type": "boolean"}, "zip": {"type": "string"},
		"patterns": {"type": "array", "items": {"type": "string"}},
		"ports": {"type": "array", "items": {"type": "integer"}}, "any": {"type": "array"},
		"level": {"$ref": "#/$defs/level"},
		"size": {"type": ["integer", "string", "null"]}, "mode": {"enum": ["fast", 1]}, "one": {"const": true},
		"either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "opts": {"type": "object"}
	},
	"allOf": [{"properties": {"extra": {"type": "integer"}}}]
}`

func TestParams(t *testing.T) {
	for given, want := range map[string]string{
		``:                                     `{}`,
		`url=x depth=2`:                        `{"depth":2,"url":"x"}`,
		`url=5 zip=01234`:                      `{"url":"5","zip":"01234"}`,
		`depth=12345678901234567890`:           `{"depth":12345678901234567890}`,
		`wait=1.50 follow=true`:                `{"follow":true,"wait":1.50}`,
		`patterns=*.html patterns=*.md`:        `{"patterns":["*.html","*.md"]}`,
		`patterns=1`:                           `{"patterns":["1"]}`,
		`ports=80 ports=443`:                   `{"ports":[80,443]}`,
		`any=1`:                                `{"any":["1"]}`,
		`patterns:=["a"]`:                      `{"patterns":["a"]}`,
		`level=3`:                              `{"level":3}`,
		`size=3 mode=fast`:                     `{"mode":"fast","size":3}`,
		`size=big mode=1`:                      `{"mode":1,"size":"big"}`,
		`size=null`:                            `{"size":null}`,
		`one=true either=false`:                `{"either":false,"one":true}`,
		`opts={"a":1}`:                         `{"opts":{"a":1}}`,
		`unknown=7 extra=7`:                    `{"extra":7,"unknown":"7"}`,
		`unknown:=7 deep:={"a":[null]} t:="7"`: `{"deep":{"a":[null]},"t":"7","unknown":7}`,
		`url=a=b=c`:                            `{"url":"a=b=c"}`,
		`url=`:                                 `{"url":""}`,
		`--force=1`:                            `{"--force":"1"}`,
	} {
		got, err := agents.ParseParams(strings.Fields(given), json.RawMessage(schemaOfCrawler))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", given, got, err, want)
		}
	}
	for given, want := range map[string]string{
		`url`:                     "write NAME=VALUE",
		`=x`:                      "write NAME=VALUE",
		`:=1`:                     "write NAME=VALUE",
		`depth=two`:               `"two" does not match the schema, which requires: integer`,
		`follow=yes`:              "requires: boolean",
		`ports=a`:                 "requires: integer",
		`url=a url=b`:             "url is repeated",
		`x:=nope`:                 "x is not JSON",
		`patterns=a patterns:=[]`: "both by its items and as a whole",
		`patterns:=[] patterns=a`: "both by its items and as a whole",
		`opts=a`:                  "requires: object",
	} {
		got, err := agents.ParseParams(strings.Fields(given), json.RawMessage(schemaOfCrawler))
		if err == nil || !strings.Contains(err.Error(), want) || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%s: %s, %v; want %s", given, got, err, want)
		}
	}
	if got, err := agents.ParseParams([]string{"a=1"}, nil); err != nil || string(got) != `{"a":"1"}` {
		t.Errorf("without a schema: %s, %v", got, err)
	}
}

func FuzzParams(f *testing.F) {
	f.Add("url=x\ndepth=2", schemaOfCrawler)
	f.Add("a:={}\na=1", `{"anyOf":[{"anyOf":[{"$ref":"#"}]},{"$ref":"#/anyOf/0"}]}`)
	f.Add("a=1", `{"properties":{"a":{"items":{"$ref":"#/properties/a"},"type":"array"}}}`)
	f.Add("a=1", `[`)
	f.Fuzz(func(t *testing.T, given, schema string) {
		got, err := agents.ParseParams(strings.Split(given, "\n"), json.RawMessage(schema))
		if err != nil {
			if cli.ExitCode(err) != cli.ExitUsage {
				t.Fatalf("%v", err)
			}
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(got, &m); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
	})
}
