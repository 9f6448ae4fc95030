package blueprint

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Each test checks that a flaw of document 004 is fixed. docs/design/documents.md lists the flaws.

// TestFieldsAreReadOnce: `**metadata` passed fields twice, and kept unknown ones.
func TestFieldsAreReadOnce(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"name": "x", "description": "d", "type": "deterministic", "command": "true", "parameter_strategie": "args"}`, `did you mean "parameter_strategy"?`},
		{`{"name": "x", "description": "d", "type": "deterministic", "command": "true", "command": "false"}`,
			`$.command`},
	} {
		if _, err := Read(put(t, t.TempDir(), "x", files{AgentFile: c.text})); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	// All of the fields that the document's resolver names, as it has them.
	b, err := Read(put(t, t.TempDir(), "x",
		files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "tags": ["t"],
		"command": "true", "parameters_schema": {"type": "object"}, "timeout_seconds": 5}`}))
	if err != nil || b.Name != "x" || b.TimeoutSeconds != 5 || len(b.Schema) == 0 {
		t.Errorf("%+v, %v", b.Blueprint, err)
	}
}

// TestDefaultsAreFilledIn: defaults were not filled in.
func TestDefaultsAreFilledIn(t *testing.T) {
	got, err := documented(t).Check([]byte(`{"url": "https://docs.python.org"}`))
	if err != nil || string(got) != `{"depth":2,"patterns":["*"],"url":"https://docs.python.org"}` {
		t.Errorf("%s, %v", got, err)
	}
}

// TestFormatsAreChecked: formats were not checked.
func TestFormatsAreChecked(t *testing.T) {
	if got, err := documented(t).Check([]byte(`{"url": "not a uri"}`)); err == nil ||
		!strings.Contains(err.Error(), "$.url") {
		t.Errorf("%s, %v", got, err)
	}
}

// documented returns the blueprint of document 004 with its schema.
func documented(t *testing.T) *Schema {
	t.Helper()
	b, err := Read(put(t, t.TempDir(), "web-crawler", files{
		AgentFile: `{"name": "web-crawler", "description": "d", "type": "deterministic", "command": "python -m crawler.main"}`,
		ParamsFile: `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["url"], "properties": {
			"url": {"type": "string", "format": "uri"}, "depth": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
			"patterns": {"type": "array", "items": {"type": "string"}, "default": ["*"]}, "output_dir": {"type": "string"}}}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return b.Parameters
}

// TestNothingIsFetched: the validator fetched URLs of a schema.
func TestNothingIsFetched(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	_, err := Read(put(t, t.TempDir(), "x", files{
		AgentFile:  `{"name": "x", "description": "d", "type": "deterministic", "command": "true"}`,
		ParamsFile: `{"type": "object", "properties": {"a": {"$ref": "` + server.URL + `/a.json"}}}`,
	}))
	if err == nil || !strings.Contains(err.Error(), "$ref") || asked.Load() != 0 {
		t.Errorf("%v, %d requests", err, asked.Load())
	}
}
