//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReport opens the report of an experiment, whose tasks contain markup, in a browser.
func TestReport(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	file, set := filepath.Join(home, "report.html"), filepath.Join(home, "set.jsonl")
	attack := `<script>document.title = "run"</script>` +
		`<img src="http://127.0.0.1:9/x.png" onerror="document.title = 'run'">`
	line, err := json.Marshal(map[string]string{"context": "Use formula Margin to answer. " + attack,
		"target": attack})
	if err == nil {
		err = os.WriteFile(set, append(line, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := startProc(t, dir, "serve", "--json")
	p.next(t, "serve", nil)
	run := startProc(t, dir, "run", "--dataset", set, "--eval", set, "--experiment", "walk", "--json")
	run.next(t, "summary", map[string]int{})
	startProc(t, dir, "experiment", "report", "walk", "-o", file, "--json").next(t, "experiment_report", nil)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", `href="http`, "url(", "@import"} {
		if strings.Contains(string(content), bad) {
			t.Errorf("the report contains %s", bad)
		}
	}
	if !strings.Contains(string(content), "&lt;script&gt;document.title") {
		t.Error("the report does not show the expected answer")
	}
	b := openBrowser(t)
	for _, width := range []int{1280, 400} {
		b.call("POST", "/window/rect", nil, fmt.Sprintf(`{"width":%d,"height":900}`, width))
		b.open("file://" + file)
		b.await("walk", "Settings", "Evaluations", "Items", "Cost")
		b.shoot(fmt.Sprint("report-", width))
		if wide := b.run("return document.documentElement.scrollWidth > window.innerWidth"); wide != false {
			t.Errorf("at %d pixels the page scrolls sideways", width)
		}
	}
	if title := b.run("return document.title"); title != "walk: experiment report" {
		t.Errorf("title %v", title)
	}
	if got := b.requests(); len(got) > 0 {
		t.Errorf("requests besides the file: %q", got)
	}
	if got := b.console(); len(got) > 0 {
		t.Errorf("console: %q", got)
	}
}

// requests returns the URLs that the page requested besides files and data.
func (b *browser) requests() (urls []string) {
	b.t.Helper()
	var entries []struct{ Message string }
	b.call("POST", "/se/log", &entries, `{"type":"performance"}`)
	for _, e := range entries {
		var event networkEvent
		if err := json.Unmarshal([]byte(e.Message), &event); err != nil {
			b.t.Fatal(err)
		}
		url := event.Message.Params.Request.URL
		if event.Message.Method == "Network.requestWillBeSent" && !strings.HasPrefix(url, "file:") &&
			!strings.HasPrefix(url, "data:") {
			urls = append(urls, url)
		}
	}
	return urls
}

// console returns the messages of the console.
func (b *browser) console() (texts []string) {
	b.t.Helper()
	var entries []struct{ Message string }
	b.call("POST", "/se/log", &entries, `{"type":"browser"}`)
	for _, e := range entries {
		texts = append(texts, e.Message)
	}
	return texts
}
