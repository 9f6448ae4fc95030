package llm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"acescope/engine/model"
	"acescope/engine/redact"
)

// Server is what a completer knows of the server that it talks to, for its errors.
type Server struct {
	Name    string // of the provider
	Address string // without secrets
	Key     string
	// HowKey says where a key comes from.
	HowKey string
	// Model is the one that was asked for.
	Model string
}

// maxMessage is how much of a server's own words is repeated, in bytes.
const maxMessage = 300

// words is a server's message as a part of a sentence: one line, short, without secrets.
func (s Server) words(message string) string {
	secrets := []redact.Secret{}
	if s.Key != "" {
		secrets = append(secrets, redact.Secret{Kind: "key", Value: s.Key})
	}
	message = clip(oneLine(redact.New(secrets...).String(message)), maxMessage)
	if message == "" {
		return ""
	}
	return ": " + message
}

// Status is the error of an answer with a status of HTTP, or of an error that came in the
// middle of an answer with status 200. code is the server's own word for it.
func (s Server) Status(status int, header http.Header, code, message string) *model.Error {
	kind := kindOf(status, code, message)
	e := &model.Error{Kind: kind, RetryAfter: retryAfter(header, time.Now())}
	said, at := s.words(message), ""
	if status != 0 && status != http.StatusOK {
		at = fmt.Sprintf(" (%d)", status)
	}
	switch kind {
	case model.RateLimited:
		when := ""
		if e.RetryAfter > 0 {
			when = ", it asks to wait " + e.RetryAfter.Round(time.Millisecond).String()
		}
		e.Message = fmt.Sprintf("%s: rate limited%s%s%s", s.Name, at, when, said)
	case model.Overloaded:
		e.Message = fmt.Sprintf("%s: the server is overloaded%s%s", s.Name, at, said)
	case model.ServerError:
		e.Message = fmt.Sprintf("%s: the server failed%s%s", s.Name, at, said)
	case model.Auth:
		e.Message = fmt.Sprintf("%s: the server does not accept the key%s; check %s%s", s.Name, at, s.HowKey, said)
	case model.NoModel:
		e.Message = fmt.Sprintf("%s: %s has no model %q%s%s", s.Name, s.Address, s.Model, at, said)
	case model.TooLong:
		e.Message = fmt.Sprintf("%s: the prompt is longer than the model's context%s: shorten the playbook or the task, or take another model%s", s.Name, at, said)
	default:
		e.Message = fmt.Sprintf("%s: the server refused the request%s%s", s.Name, at, said)
	}
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
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusPaymentRequired ||
		strings.Contains(code, "authentication") || strings.Contains(code, "permission_error") || strings.Contains(code, "invalid_api_key"):
		return model.Auth
	case status == http.StatusRequestTimeout || status == http.StatusConflict || strings.Contains(code, "timeout"):
		return model.ServerError
	case has("context_length", "context length", "context window", "prompt is too long", "maximum context", "exceeds the context", "too many tokens") ||
		status == http.StatusRequestEntityTooLarge:
		return model.TooLong
	case status == http.StatusNotFound || has("model_not_found", "model not found") || strings.Contains(code, "not_found"):
		return model.NoModel
	case status >= 500, strings.Contains(code, "api_error"), strings.Contains(code, "server_error"):
		return model.ServerError
	}
	return model.BadRequest
}

// longestWait bounds what a server may ask to wait.
const longestWait = time.Hour

// retryAfter is how long a server asks to wait, 0 where it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if h == nil {
		return 0
	}
	var d time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = asDuration(ms / 1000)
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		d = asDuration(s)
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), longestWait)
}

func asDuration(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, longestWait.Seconds()) * float64(time.Second))
}

// Broken is the error of a connection that could not be made, or broke off. got is how
// many bytes of the answer had come.
func (s Server) Broken(ctx context.Context, err error, got int) error {
	if ctx.Err() != nil && context.Cause(ctx) == ctx.Err() {
		return ctx.Err()
	}
	var e *model.Error
	if errors.As(err, &e) {
		return e
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	why := s.words(err.Error())
	switch {
	case got > 0:
		return model.Errorf(model.Network, "%s: the connection to %s broke off in the middle of the answer, after %d bytes%s", s.Name, s.Address, got, why)
	case errors.As(err, &dns) && dns.IsNotFound:
		return model.Errorf(model.Network, "%s: there is no host %s; check the base URL", s.Name, dns.Name)
	}
	return model.Errorf(model.Network, "%s: %s cannot be reached%s", s.Name, s.Address, why)
}

// Cut is the error of an answer that ended too early without any other.
func (s Server) Cut(got int) error {
	return model.Errorf(model.Network, "%s: the answer of %s ended too early, after %d bytes", s.Name, s.Address, got)
}

// NotAPI is the error of an answer that is none of this kind of server.
func (s Server) NotAPI(contentType string) error {
	return model.Errorf(model.BadRequest, "%s: %s answers, but not as such a server does (it sent %q); check the base URL", s.Name, s.Address, clip(contentType, 80))
}

// AddressOf is a base URL as it may be shown: without a user, a query or a fragment.
func AddressOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "the server"
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")
}

// Client is what completers connect with: it goes to no other host than the one named,
// since a key would go with it.
func Client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return errors.New("it sends on to another host, which is not followed")
		}
		if len(via) > 3 {
			return errors.New("it sends on in circles")
		}
		return nil
	}}
}
