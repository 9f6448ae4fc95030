//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"acescope/cmd/acescope/internal/admin"
	"acescope/engine/temporal/codec/codectest"
)

// served is a data directory with one run, whose Web UI is served. Its payloads are encrypted.
type served struct {
	dir  string
	link string // to the list of runs
	task string
	args []string // of commands on the directory
}

func serveUI(t *testing.T) served {
	t.Helper()
	codec := codectest.New(codectest.Cipher{Key: "k"}, "Bearer s3cret")
	t.Cleanup(codec.Close)
	s := served{dir: t.TempDir(), task: "größe-e1-0001",
		args: []string{"--codec-endpoint", codec.URL, "--codec-auth", "Bearer s3cret", "--json"}}
	p := startProc(t, s.dir, append([]string{"serve", "--ui"}, s.args...)...)
	p.next(t, "serve", nil)
	var line admin.ServeLine
	if err := json.Unmarshal(p.out.Bytes(), &line); err != nil || line.UI == "" {
		t.Fatalf("%v: %s", err, p.out.Bytes())
	}
	s.link = line.UI
	run := startProc(t, s.dir, append([]string{"run", "--dataset", problemSet(t, 1), "--experiment",
		strings.TrimSuffix(s.task, "-e1-0001")}, s.args...)...)
	run.next(t, "summary", map[string]int{})
	return s
}

// web returns a link to a run.
func (s served) web(t *testing.T, id string) string {
	t.Helper()
	args := append([]string{"web", id, "--data-dir", s.dir}, s.args...)
	out, err := exec.Command("acescope", args...).Output()
	var line admin.WebLine
	if err == nil {
		err = json.Unmarshal(out, &line)
	}
	if err != nil {
		t.Fatalf("acescope web: %v: %s", err, out)
	}
	return line.URL
}

var pageOfLink = regexp.MustCompile(`url=([^"]*)"`)

// TestWebUI reads an encrypted run as a browser does: a link, a cookie, the page, the API.
func TestWebUI(t *testing.T) {
	t.Parallel()
	s := serveUI(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(url string) (int, string) {
		r, err := browser.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	root := s.link[:strings.Index(s.link, "/?")]
	if code, body := get(root + "/api/v1/namespaces/ace-dev/workflows"); code != 403 {
		t.Errorf("without a cookie: %d %s", code, body)
	}
	link := s.web(t, s.task)
	code, body := get(link)
	page := pageOfLink.FindStringSubmatch(body)
	if code != 200 || page == nil {
		t.Fatalf("the link: %d %s", code, body)
	}
	if code, body := get(link); code != 403 || !strings.Contains(body, "the link was used") {
		t.Errorf("the link again: %d %s", code, body)
	}
	if code, body := get(root + page[1]); code != 200 || !strings.Contains(body, "<!doctype html>") {
		t.Errorf("%s: %d %s", page[1], code, body)
	}
	at := strings.LastIndex(page[1], "/")
	history := root + "/api/v1" + page[1][:at] + "/history?execution.runId=" + page[1][at+1:]
	input := base64.StdEncoding.EncodeToString([]byte(`{"task_id":"größe`))
	if code, body := get(history); code != 200 || !strings.Contains(body, input[:20]) {
		t.Errorf("%s: %d %.2000s", history, code, body)
	}
	token, err := os.ReadFile(filepath.Join(s.dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	if _, body := get(root + "/api/v1/settings"); strings.Contains(body, strings.TrimSpace(string(token))) {
		t.Error("the browser gets the server's token")
	}
}

// TestConsoleWebUI opens a run with a key of the console: with the command in $BROWSER, then, as over SSH,
// with a link on the screen. The console serves the Web UI until it ends.
func TestConsoleWebUI(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	opened, command := filepath.Join(home, "opened"), filepath.Join(home, "browser")
	script := "#!/bin/sh\nprintf %s \"$1\" > " + opened + ".new && mv " + opened + ".new " + opened
	if err := os.WriteFile(command, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	run := startProc(t, dir, "run", "--dataset", problemSet(t, 1), "--experiment", "walk", "--json")
	run.next(t, "summary", map[string]int{})
	console := func(env ...string) *terminal {
		env = append(env, "acescope", "--data-dir", dir)
		return inTerminal(t, home, 100, 30, exec.Command("env", env...))
	}
	term := console("BROWSER=" + command)
	term.press("1")
	term.await("walk-e1-0001", "experiment walk")
	term.press("W")
	term.await("opened", "in the browser")
	link, err := os.ReadFile(opened)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(string(link))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if page := pageOfLink.FindSubmatch(body); err != nil || page == nil ||
		!strings.HasPrefix(string(page[1]), "/namespaces/ace-dev/workflows/ace") {
		t.Errorf("%s: %v %s", link, err, body)
	}
	term.press("q")
	term.quits()
	if r, err := http.Get(string(link)); err == nil {
		r.Body.Close()
		t.Errorf("it is served after the console ended: %s", r.Status)
	}
	term = console("-u", "BROWSER", "SSH_CONNECTION=x")
	term.await("walk-e1-0001", "experiment walk")
	term.press("W")
	term.await("http://127.0.0.1:", "?token=", "copied the link through the terminal", "ssh -L")
	term.press("n")
	term.press("q")
	term.quits()
}

// TestWebUIInBrowser looks at the list of runs and at a run in Chromium. With $ACESCOPE_SCREENSHOTS it writes
// what it sees to that directory.
func TestWebUIInBrowser(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	s := serveUI(t)
	root := s.link[:strings.Index(s.link, "?")]
	b.open(root)
	b.await("opens by a link that works once")
	if got := b.failures(); len(got) == 0 || !strings.HasPrefix(got[0], "403 ") {
		t.Errorf("without the cookie: %q", got)
	}
	b.open(s.link)
	b.await("Workflows", "AceTaskWorkflow", s.task)
	b.shoot("list")
	b.open(s.link)
	b.await("the link was used")
	if got := b.failures(); len(got) != 1 {
		t.Errorf("only the used link should fail: %q", got)
	}
	b.open(s.web(t, s.task))
	// The prompt was encrypted.
	b.await(s.task, "COMPLETED", "Event History", "persist_results", `"prompt": "`)
	b.shoot("run")
	if got := b.failures(); len(got) > 0 {
		t.Errorf("failed requests: %q", got)
	}
	b.checkWrites(s, root)
	b.open(strings.Replace(root, "127.0.0.1", "localhost", 1))
	b.await("opens by a link that works once")
}

// checkWrites starts a workflow from the page, with an ID that needs escaping, opens it, and terminates it. A
// page of another port cannot, although the browser adds the cookie to its requests.
func (b *browser) checkWrites(s served, root string) {
	b.t.Helper()
	const id = "50% #1?/ö"
	const post = `const [root, id, body] = arguments;
		return fetch(root+"api/v1/namespaces/ace-dev/workflows/"+encodeURIComponent(id),
			{method: "POST", mode: "no-cors", credentials: "include", body}).then(r => r.type+r.status, String)`
	start := `{"workflowType":{"name":"Odd"},"taskQueue":{"name":"idle"},"requestId":"r"}`
	if got := b.run(post, root, id, start); got != "basic200" {
		b.t.Fatalf("start: %v", got)
	}
	b.open(s.web(b.t, id))
	b.await(id, "RUNNING", "Odd")
	terminate := strings.Replace(post, `(id)`, `(id)+"/terminate"`, 1)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	b.open(other.URL)
	_ = b.failures()
	b.run(terminate, root, id, "{}")
	if got := b.failures(); !strings.Contains(fmt.Sprint(got), "403 "+root+"api") {
		b.t.Errorf("a page of another port terminates a workflow: %q", got)
	}
	b.open(s.web(b.t, id))
	b.await(id, "RUNNING", "More Actions")
	b.run(`[...document.querySelectorAll("[data-testid=confirm-modal-button]")].
		find(b => b.innerText.includes("Terminate")).click()`)
	b.await(id, "TERMINATED")
	if got := b.failures(); len(got) > 0 {
		b.t.Errorf("failed requests: %q", got)
	}
}

// browser is a headless Chromium that chromedriver controls (W3C WebDriver).
type browser struct {
	t       *testing.T
	session string // URL
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	for _, program := range []string{"chromedriver", "chromium"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed (Debian: chromium, chromium-driver)")
		}
	}
	driver := exec.Command("chromedriver", "--port=0")
	out, err := driver.StdoutPipe()
	if err == nil {
		err = driver.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Process.Kill(); _ = driver.Wait() })
	b := &browser{t: t}
	started := regexp.MustCompile(`started successfully on port (\d+)`)
	for lines := bufio.NewScanner(out); b.session == "" && lines.Scan(); {
		if m := started.FindStringSubmatch(lines.Text()); m != nil {
			b.session = "http://127.0.0.1:" + m[1] + "/session"
		}
	}
	if b.session == "" {
		t.Fatal("chromedriver did not start")
	}
	var made struct{ SessionID string }
	b.call("POST", "", &made, `{"capabilities":{"alwaysMatch":{"goog:loggingPrefs":{"performance":"ALL"},
		"goog:chromeOptions":{"args":["--headless=new","--no-sandbox","--window-size=1400,1000"]}}}}`)
	b.session += "/" + made.SessionID
	t.Cleanup(func() { b.call("DELETE", "", nil, "") })
	return b
}

// call makes a call of WebDriver.
func (b *browser) call(method, path string, result any, body string) {
	b.t.Helper()
	r, err := http.NewRequest(method, b.session+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		b.t.Fatalf("%s %s: %d %v %s", method, path, answer.StatusCode, err, data)
	}
	var value struct{ Value json.RawMessage }
	if err = json.Unmarshal(data, &value); err == nil && result != nil {
		err = json.Unmarshal(value.Value, result)
	}
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.call("POST", "/url", nil, fmt.Sprintf(`{"url":%q}`, url))
}

// run runs a script and returns its result.
func (b *browser) run(script string, args ...any) (result any) {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"script": script, "args": append([]any{}, args...)})
	if err != nil {
		b.t.Fatal(err)
	}
	b.call("POST", "/execute/sync", &result, string(body))
	return result
}

// await waits until the page shows all texts.
func (b *browser) await(texts ...string) {
	b.t.Helper()
	shown := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		shown = fmt.Sprint(b.run("return document.body ? document.body.innerText : ''"))
		missing := false
		for _, text := range texts {
			missing = missing || !strings.Contains(shown, text)
		}
		if !missing {
			return
		}
	}
	b.t.Fatalf("no page within a minute shows %q:\n%s", texts, shown)
}

// networkEvent is an event of Chromium's network log.
type networkEvent struct {
	Message struct {
		Method string
		Params struct {
			RequestID  string
			Request    struct{ URL string }
			StatusCode int
			ErrorText  string
			Canceled   bool
		}
	}
}

// failures returns the requests that failed since the last call, as "STATUS URL" or "ERROR URL".
func (b *browser) failures() (failed []string) {
	b.t.Helper()
	var entries []struct{ Message string }
	b.call("POST", "/se/log", &entries, `{"type":"performance"}`)
	events, urls := make([]networkEvent, len(entries)), map[string]string{}
	for i, e := range entries {
		if err := json.Unmarshal([]byte(e.Message), &events[i]); err != nil {
			b.t.Fatal(err)
		}
		if m := events[i].Message; m.Method == "Network.requestWillBeSent" {
			urls[m.Params.RequestID] = m.Params.Request.URL
		}
	}
	for _, e := range events {
		p := e.Message.Params
		switch url := urls[p.RequestID]; {
		case strings.HasSuffix(url, "/favicon.ico"): // of pages that are refused
		case e.Message.Method == "Network.responseReceivedExtraInfo" && p.StatusCode >= 400:
			failed = append(failed, fmt.Sprint(p.StatusCode, " ", url))
		case e.Message.Method == "Network.loadingFailed" && !p.Canceled:
			failed = append(failed, p.ErrorText+" "+url)
		}
	}
	return failed
}

// shoot writes a picture of the page to $ACESCOPE_SCREENSHOTS, if it is set.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("ACESCOPE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture []byte // base64 in JSON
	b.call("GET", "/screenshot", &picture, "")
	if !bytes.HasPrefix(picture, []byte("\x89PNG")) {
		b.t.Errorf("screenshot %s is not a PNG", name)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
