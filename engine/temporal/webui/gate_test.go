package webui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
)

// behind is what the gate lets through to.
var behind = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "behind "+r.Header.Get("Authorization")+r.Header.Get("Cookie"))
})

// ask sends a request; header lists names and values.
func ask(g *gate, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:4000"+path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

// enter uses a link and returns the cookie.
func enter(t *testing.T, g *gate, page string) string {
	t.Helper()
	w := ask(g, "GET", strings.TrimPrefix(g.link(page), "http://127.0.0.1:4000"))
	set := w.Header().Get("Set-Cookie")
	if w.Code != 200 || !strings.Contains(set, "HttpOnly; SameSite=Strict") ||
		!strings.Contains(w.Body.String(), page) {
		t.Fatalf("a new link: %d %q %s", w.Code, set, w.Body)
	}
	value, _, _ := strings.Cut(set, ";")
	return value
}

func TestGate(t *testing.T) {
	g := newGate("127.0.0.1:4000", behind)
	cookie := enter(t, g, "/namespaces/x/workflows")
	name, _, _ := strings.Cut(cookie, "=")
	const noCookie, otherSite = "opens by a link that works once", "pages of other sites"
	const otherHost, api = "must name this machine", "/api/v1/x"
	with := func(more ...string) []string { return append([]string{"Cookie", cookie}, more...) }
	links := []string{"Authorization", "Bearer " + g.secret, "Origin", "http://x"}
	for _, c := range []struct {
		what, method, path string
		header             []string
		code               int
		body               string
	}{
		{"cookie", "GET", "/", with(), 200, "behind "},
		{"cookie through a tunnel", "GET", "/", with("Host", "localhost:9000"), 200, "behind "},
		{"write from the page", "POST", api, with("Sec-Fetch-Site", "same-origin"), 200, "behind "},
		{"write of an older browser", "POST", api, with("Origin", "http://127.0.0.1:4000"), 200, "behind "},
		{"credentials of the browser", "GET", "/", with("Authorization", "Bearer x"), 200, "behind "},
		{"no cookie", "GET", "/", nil, 403, noCookie},
		{"no cookie, asset", "GET", "/favicon.ico", nil, 403, noCookie},
		{"no cookie, API", "GET", "/api/v1/namespaces", nil, 403, noCookie},
		{"wrong cookie", "GET", "/", []string{"Cookie", name + "=" + strings.Repeat("A", 26)}, 403, noCookie},
		{"empty cookie", "GET", "/", []string{"Cookie", name + "="}, 403, noCookie},
		{"cookie of another server", "GET", "/", []string{"Cookie", "x" + cookie}, 403, noCookie},
		{"wrong token", "GET", "/?token=AAAA", nil, 403, "the link was used"},
		{"foreign host", "GET", "/", with("Host", "evil.example:4000"), 403, otherHost},
		{"foreign host, rebound", "GET", "/", with("Host", "127.0.0.1.evil.example"), 403, otherHost},
		{"foreign origin", "POST", api, with("Origin", "https://evil.example"), 403, otherSite},
		{"other port", "POST", api, with("Origin", "http://127.0.0.1:4001"), 403, otherSite},
		{"foreign site", "DELETE", api, with("Sec-Fetch-Site", "cross-site"), 403, otherSite},
		{"same site", "PUT", api, with("Sec-Fetch-Site", "same-site"), 403, otherSite},
		{"opaque origin", "POST", api, with("Origin", "null"), 403, otherSite},
		{"links without the secret", "POST", linksPath, with(), 403, "the secret is wrong"},
		{"links of another site", "POST", linksPath, links, 403, otherSite},
	} {
		w := ask(g, c.method, c.path, c.header...)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s: %d %s", c.what, w.Code, w.Body)
		}
		if c.code == 200 && w.Body.String() != "behind " {
			t.Errorf("%s: the credentials were passed on: %s", c.what, w.Body)
		}
		if c.code == 403 && strings.Count(w.Body.String(), "\n") != 1 {
			t.Errorf("%s: not one line: %q", c.what, w.Body)
		}
	}
}

// A link works once, for a while, and for its user only.
func TestLinks(t *testing.T) {
	g := newGate("127.0.0.1:4000", behind)
	path := func() string { return strings.TrimPrefix(g.link("/a"), "http://127.0.0.1:4000") }
	used := path()
	if w := ask(g, "HEAD", used); w.Code != 403 {
		t.Errorf("HEAD: %d", w.Code)
	}
	if w := ask(g, "GET", used); w.Code != 200 {
		t.Errorf("first use: %d", w.Code)
	}
	if w := ask(g, "GET", used); w.Code != 403 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("second use: %d %s", w.Code, w.Body)
	}
	old := path()
	now := time.Now()
	g.now = func() time.Time { return now.Add(linkLife + time.Second) }
	if w := ask(g, "GET", old); w.Code != 403 {
		t.Errorf("an old link: %d", w.Code)
	}
	first := path()
	for range maxLinks {
		now = now.Add(time.Millisecond)
		path()
	}
	if w := ask(g, "GET", first); w.Code != 403 || len(g.links) != maxLinks {
		t.Errorf("the oldest of many links: %d, %d are open", w.Code, len(g.links))
	}
	hostile := strings.TrimPrefix(g.link(`/"><script>`), "http://127.0.0.1:4000")
	if w := ask(g, "GET", hostile); strings.Contains(w.Body.String(), "<script>") {
		t.Errorf("a page is not escaped: %s", w.Body)
	}
}

// Another user gets in with neither a link nor the cookie, and uses up no link.
func TestForeignUser(t *testing.T) {
	var foreign atomic.Bool
	foreign.Store(true)
	g := newGate("127.0.0.1:4000", behind)
	g.foreign = func(string) bool { return foreign.Load() }
	s := httptest.NewUnstartedServer(g)
	s.Config.ConnContext = g.connected
	s.Start()
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path, cookie string) (int, string) {
		r, err := http.NewRequest("GET", s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", cookie)
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(body)
	}
	link := strings.TrimPrefix(g.link("/a"), "http://127.0.0.1:4000")
	cookie := g.cookie.Name + "=" + g.cookie.Value
	for path, cookie := range map[string]string{link: "", "/": cookie} {
		if code, body := get(path, cookie); code != 403 || !strings.Contains(body, "another user") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	foreign.Store(false)
	for path, cookie := range map[string]string{link: "", "/": cookie} {
		if code, body := get(path, cookie); code != 200 {
			t.Errorf("%s of the user: %d %s", path, code, body)
		}
	}
}

func TestUserOfConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says whose a connection is")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if uid, ok := userOf(r.RemoteAddr); !ok || uid != os.Getuid() {
			t.Errorf("user %d, %v", uid, ok)
		}
	}))
	defer s.Close()
	if code, body := fetch(t, s.URL); code != 200 {
		t.Errorf("%d %s", code, body)
	}
}

func lazyClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Another process gets a link from the server, and an error that it can act on from what is left of one.
func TestAsk(t *testing.T) {
	dir, of := t.TempDir(), Namespace{Cluster: "c:7233", Name: "n"}
	if _, err := Ask(t.Context(), dir, of, "/"); !errors.Is(err, ErrNotServed) {
		t.Errorf("without a server: %v", err)
	}
	s, err := Start(Options{Client: lazyClient(t), Of: of, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, entryFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v %v", file, info, err)
	}
	link, err := Ask(t.Context(), dir, of, "/namespaces/n/workflows/w")
	if err != nil {
		t.Fatal(err)
	}
	if code, body := fetch(t, link); code != 200 || !strings.Contains(body, "/namespaces/n/workflows/w") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := fetch(t, link); code != 403 {
		t.Errorf("second use: %d", code)
	}
	long := "/" + strings.Repeat("x", maxPage)
	for _, bad := range []string{"", "x", "//evil.example/", "http://evil.example", long} {
		if link, err := Ask(t.Context(), dir, of, bad); err == nil {
			t.Errorf("page %.40q: %s", bad, link)
		}
	}
	if _, err := Ask(t.Context(), dir, Namespace{Name: "n"}, "/"); !errors.Is(err, ErrNotServed) {
		t.Errorf("another cluster: %v", err)
	}
	left, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
	if err := os.WriteFile(file, left, 0o600); err != nil { // as after kill -9
		t.Fatal(err)
	}
	if _, err := Ask(t.Context(), dir, of, "/"); !errors.Is(err, ErrNotServed) {
		t.Errorf("after its end: %v", err)
	}
	if err := os.WriteFile(file, left[:9], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(t.Context(), dir, of, "/"); !errors.Is(err, ErrNotServed) {
		t.Errorf("from a damaged file: %v", err)
	}
}

// The server that ends first leaves the file of the one that replaced it.
func TestTwoServers(t *testing.T) {
	dir, of := t.TempDir(), Namespace{Name: "n"}
	var all []*Server
	for range 2 {
		s, err := Start(Options{Client: lazyClient(t), Of: of, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all = append(all, s)
	}
	all[0].Close()
	if _, err := Ask(t.Context(), dir, of, "/"); err != nil {
		t.Error(err)
	}
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(body)
}

func TestPage(t *testing.T) {
	for _, c := range [][4]string{
		{"ace-dev", "", "", "/namespaces/ace-dev/workflows"},
		{"ace-dev", "ace/q 1", "r1", "/namespaces/ace-dev/workflows/ace%2Fq%201/r1"},
		{"ace-dev", "50%?#", "", "/namespaces/ace-dev/workflows/50%25%3F%23"},
	} {
		if got := Page(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%q: %s", c, got)
		}
	}
	for address, want := range map[string]string{
		"ns.acc.tmprl.cloud:7233": cloudUI, "eu-west-1.aws.api.temporal.io:7233": cloudUI,
		"temporal.example:7233": "", "127.0.0.1:7233": "", "tmprl.cloud.example:7233": "",
	} {
		if got := Of(address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
	for address, ok := range map[string]bool{
		"https://ui.example": true, "http://ui:8080/temporal/": true, "ui.example": false, "ftp://x": false,
		"https://x?y": false, "https://u:p@x": false, "javascript:alert(1)": false,
	} {
		if err := CheckAddress(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if got := Join("https://ui.example/t/", "/namespaces"); got != "https://ui.example/t/namespaces" {
		t.Error(got)
	}
}
