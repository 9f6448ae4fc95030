package llm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
)

// Server is a model server of a completer, which also formats the errors of its requests.
type Server struct {
	Name    string // of the provider
	BaseURL string
	Key     string // "": no key is sent
	KeyHint string // where the key comes from
	Model   string // of the request
}

// maxMessage is the number of bytes quoted of a server's message.
const maxMessage = 300

// words returns a server's message for the end of an error: one line, short, without secrets.
func (s Server) words(message string) string {
	secrets := []redact.Secret{}
	if s.Key != "" {
		secrets = append(secrets, redact.Secret{Kind: "key", Value: s.Key})
	}
	message = ace.OneLine(redact.New(secrets...).String(message), maxMessage)
	if message == "" {
		return ""
	}
	return ": " + message
}

// Status returns the error for an HTTP status, or for an error inside an answer with status
// 200. code is the server's error code.
func (s Server) Status(status int, header http.Header, code, message string) *model.Error {
	kind := kindOf(status, code, message)
	e := &model.Error{Kind: kind, RetryAfter: retryAfter(header, time.Now())}
	at := ""
	if status != 0 && status != http.StatusOK {
		at = fmt.Sprintf(" (%d)", status)
	}
	what := "the server rejected the request" + at
	switch kind {
	case model.RateLimited:
		what = "rate limited" + at
		if e.RetryAfter > 0 {
			what += ", retry after " + e.RetryAfter.Round(time.Millisecond).String()
		}
	case model.Overloaded:
		what = "the server is overloaded" + at
	case model.ServerError:
		what = "the server failed" + at
	case model.Auth:
		what = "the server rejected the key" + at + "; check " + s.KeyHint
	case model.NoModel:
		what = fmt.Sprintf("%s has no model %q%s", AddressOf(s.BaseURL), s.Model, at)
	case model.TooLong:
		what = "the prompt is longer than the model's context" + at +
			"; shorten the playbook or the task, or use another model"
	}
	e.Message = s.Name + ": " + what + s.words(message)
	return e
}

func kindOf(status int, code, message string) model.ErrorKind {
	code, message = strings.ToLower(code), strings.ToLower(message)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(code, p) || strings.Contains(message, p) {
				return true
			}
		}
		return false
	}
	switch {
	case status == 529 || status == http.StatusServiceUnavailable || strings.Contains(code, "overloaded"):
		return model.Overloaded
	case strings.Contains(code, "insufficient_quota") || strings.Contains(code, "billing"):
		return model.Auth
	case status == http.StatusTooManyRequests || strings.Contains(code, "rate_limit"):
		return model.RateLimited
	case status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusPaymentRequired ||
		strings.Contains(code, "authentication") || strings.Contains(code, "permission_error") ||
		strings.Contains(code, "invalid_api_key"):
		return model.Auth
	case status == http.StatusRequestTimeout || status == http.StatusConflict ||
		strings.Contains(code, "timeout"):
		return model.ServerError
	case has("context_length", "context length", "context window", "prompt is too long", "maximum context",
		"exceeds the context", "too many tokens") ||
		status == http.StatusRequestEntityTooLarge:
		return model.TooLong
	case status == http.StatusNotFound || has("model_not_found", "model not found") ||
		strings.Contains(code, "not_found"):
		return model.NoModel
	case status >= 500, strings.Contains(code, "api_error"), strings.Contains(code, "server_error"):
		return model.ServerError
	}
	return model.BadRequest
}

// longestWait bounds the wait that a server may request.
const longestWait = time.Hour

// retryAfter returns the wait that a server requests, or 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	after := h.Get("Retry-After")
	d, err := time.ParseDuration(h.Get("Retry-After-Ms") + "ms")
	if err != nil {
		d, err = time.ParseDuration(after + "s")
	}
	if at, timeErr := http.ParseTime(after); err != nil && timeErr == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), longestWait)
}

// Broken returns the error for a connection that failed or broke. got is the number of bytes
// of the answer received.
func (s Server) Broken(ctx context.Context, err error, got int) error {
	if ctx.Err() != nil && context.Cause(ctx) == ctx.Err() {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	why := s.words(err.Error())
	if got > 0 {
		return model.Errorf(model.Network, "%s: the connection to %s broke after %d bytes of the answer%s",
			s.Name, AddressOf(s.BaseURL), got, why)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return model.Errorf(model.Network, "%s: host %s not found; check the base URL", s.Name, dns.Name)
	}
	return model.Errorf(model.Network, "%s: cannot reach %s%s", s.Name, AddressOf(s.BaseURL), why)
}

// Incomplete returns the error for a stream that ended without an error before the answer was
// complete. began reports whether any event was received, got the number of bytes of text.
func (s Server) Incomplete(ctx context.Context, header http.Header, began bool, got int) error {
	if ctx.Err() != nil {
		return s.Broken(ctx, ctx.Err(), got)
	}
	if kind := header.Get("Content-Type"); !began && !strings.HasPrefix(kind, "text/event-stream") {
		return model.Errorf(model.BadRequest,
			"%s: %s does not speak the expected API (it sent %q); check the base URL",
			s.Name, AddressOf(s.BaseURL), ace.Cut(kind, 80))
	}
	return model.Errorf(model.Network, "%s: the response from %s ended early, after %d bytes",
		s.Name, AddressOf(s.BaseURL), got)
}

// Malformed returns the error for events that do not form an answer.
func (s Server) Malformed() error {
	return model.Errorf(model.ServerError, "%s: %s sent invalid events", s.Name, AddressOf(s.BaseURL))
}

// AddressOf returns a base URL without user, query and fragment, for display.
func AddressOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "the server"
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")
}

// Client returns the HTTP client of completers. It follows no redirect to another host, which
// would get the key.
func Client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return errors.New("the server redirects to another host, which is not followed")
		}
		if len(via) > 3 {
			return errors.New("too many redirects")
		}
		return nil
	}}
}
