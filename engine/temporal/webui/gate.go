package webui

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"acescope/engine/internal/loopback"
)

const (
	linkLife = 10 * time.Minute
	maxLinks = 100 // the oldest are dropped
	maxBody  = 8 << 20
	maxPage  = 4 << 10 // bytes of a page's path
)

// linksPath is the path at which other processes of the user request links.
const linksPath = "/acescope/links"

// gate lets requests through that have the cookie, which a browser gets by a link that works once.
type gate struct {
	next    http.Handler
	address string // host:port
	cookie  http.Cookie
	secret  string // with which other processes request links
	origins *http.CrossOriginProtection
	now     func() time.Time
	foreign func(address string) bool // whether another user opened the connection from an address

	mu    sync.Mutex
	links map[string]link // by token
}

// link is an unused link.
type link struct {
	page  string
	until time.Time
}

func newGate(address string, next http.Handler) *gate {
	_, port, _ := net.SplitHostPort(address)
	return &gate{
		next: next, address: address, secret: rand.Text(), origins: http.NewCrossOriginProtection(),
		now: time.Now, foreign: foreignUser,
		// The port distinguishes the cookies of several servers on one machine.
		cookie: http.Cookie{Name: "acescope-ui-" + port, Value: rand.Text(), Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode},
		links: map[string]link{},
	}
}

// link returns a new link to a page.
func (g *gate) link(page string) string { return linkOf(g.address, g.token(page)) }

func linkOf(address, token string) string { return "http://" + address + "/?token=" + token }

func (g *gate) token(page string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	maps.DeleteFunc(g.links, func(_ string, l link) bool { return now.After(l.until) })
	if len(g.links) == maxLinks {
		delete(g.links, slices.MinFunc(slices.Collect(maps.Keys(g.links)), func(a, b string) int {
			return cmp.Or(g.links[a].until.Compare(g.links[b].until), strings.Compare(a, b))
		}))
	}
	token := rand.Text()
	g.links[token] = link{page, now.Add(linkLife)}
	return token
}

// use returns the page of a token, which does not work again.
func (g *gate) use(token string) (page string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.links[token]
	delete(g.links, token)
	return l.page, ok && !g.now().After(l.until)
}

// ofForeign marks the context of a connection that another user opened.
type ofForeign struct{}

// connected returns the context of a connection, and marks connections of other users: they could see a link
// in the arguments of the command that starts the browser, or get the cookie of a browser that opens a page
// of theirs.
func (g *gate) connected(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, ofForeign{}, g.foreign(c.RemoteAddr().String()))
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "SAMEORIGIN", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	token := r.URL.Query().Get("token")
	cookie, err := r.Cookie(g.cookie.Name)
	switch errHost, errOrigin := loopback.CheckHost(r), g.origins.Check(r); {
	case errHost != nil:
		refuse(w, errHost.Error())
	case r.Context().Value(ofForeign{}) == true:
		refuse(w, "this Web UI is served by another user of this machine")
	case errOrigin != nil:
		refuse(w, "requests of pages of other sites are refused")
	case r.URL.Path == linksPath && r.Method == http.MethodPost:
		g.answer(w, r)
	case r.URL.Path == "/" && r.Method == http.MethodGet && token != "":
		g.enter(w, token)
	case err != nil || !same(cookie.Value, g.cookie.Value):
		refuse(w, `the Temporal Web UI opens by a link that works once; "acescope web" prints one`)
	default:
		r.Header.Del("Authorization") // the client has the credentials
		r.Header.Del("Cookie")
		g.next.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, why string) { http.Error(w, why, http.StatusForbidden) }

// same compares secrets in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// enter exchanges a token for the cookie and opens the page of the link. It does not redirect: if the link is
// on a page of another site, such as a terminal in a browser, the browser would not send the cookie with the
// redirect.
func (g *gate) enter(w http.ResponseWriter, token string) {
	page, ok := g.use(token)
	if !ok {
		refuse(w, `the link was used, or is older than 10 minutes; "acescope web" prints a new one`)
		return
	}
	http.SetCookie(w, &g.cookie)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	page = html.EscapeString(page)
	fmt.Fprintf(w, `<!doctype html><title>Temporal</title><meta http-equiv="refresh" content="0;url=%s">`+
		`<a href="%s">Temporal Web UI</a>`, page, page)
}

// answer returns a link to the page in the body, to another process of the user, which knows the secret.
func (g *gate) answer(w http.ResponseWriter, r *http.Request) {
	if secret, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !same(secret, g.secret) {
		refuse(w, "the secret is wrong")
		return
	}
	page, err := io.ReadAll(io.LimitReader(r.Body, maxPage+1))
	if u, bad := url.Parse(string(page)); err != nil || bad != nil || len(page) > maxPage || u.Host != "" ||
		!strings.HasPrefix(string(page), "/") {
		http.Error(w, "not a path of the Web UI", http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(g.token(string(page))) // fails only if the client has left
}

// askTimeout bounds a request for a link.
const askTimeout = 5 * time.Second

var tokenPattern = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// ask asks the process of an entry for a link.
func (e entry) ask(ctx context.Context, page string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return "", ErrNotServed
	}
	to := "http://" + e.Address + linksPath
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(page))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+e.Secret)
	direct := &http.Transport{DisableKeepAlives: true} // no proxy
	answer, err := direct.RoundTrip(r)
	if err != nil {
		return "", errors.Join(ErrNotServed, ctx.Err())
	}
	defer answer.Body.Close()
	var token string
	err = json.NewDecoder(io.LimitReader(answer.Body, maxPage)).Decode(&token)
	if answer.StatusCode != http.StatusOK || err != nil || !tokenPattern.MatchString(token) {
		return "", ErrNotServed // another program has the port now
	}
	return linkOf(e.Address, token), nil
}
